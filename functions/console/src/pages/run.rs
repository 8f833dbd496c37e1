//! One run: why it is where it is, what can be done about it, its graph, and what each task did with its time.

mod tried;

use std::collections::BTreeMap;

use api::Graph;
use api::approvals::ApprovalForm;
use api::explain::Explanation;
use api::expressions::rendered_config;
use api::page::Page;
use api::request::{Path, Query};
use api::timers::TimerView;
use api::views::{ChildrenView, EventView, ProgressView, RunView, TaskView};
use askama::Template;
use axum::extract::State;
use host::Problem;
use model::{Event, EventKind, Instant, RunId, RunState, Task, TaskIndex, TaskKind, TaskState};
use read::RunReader;
use serde::Deserialize;
use serde_json::Value;
use tried::Tried;

use super::fields::Field;
use super::{Answer, At};
use crate::ask::{part, query};
use crate::charts::{self, bars};
use crate::graph;
use crate::graph::Annotations;
use crate::phases;
use crate::refused::Refused;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// The maximum number of events from which the phases of tasks are computed.
const MAX_EVENTS: u32 = 5_000;

/// The maximum number of tasks with a bar.
const MAX_ROWS: usize = 500;

/// The maximum number of tasks that are explained.
const MAX_EXPLAINED: usize = 5;

/// What of a run is shown.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunQuery {
    /// `events`, `data` or `try`; default the graph and the tasks.
    tab: Option<String>,
    /// The children of this fan-out instead of the tasks.
    parent: Option<String>,
    /// From an earlier page.
    cursor: Option<String>,
    /// An expression to try out on the run, as this task sees it or with all that was delivered.
    expression: Option<String>,
    task: Option<String>,
}

/// A task and what it did with its time.
struct Row {
    name: String,
    kind: String,
    state: TaskState,
    attempt: u32,
    max_attempts: u32,
    took: String,
    bars: Markup,
    children: Option<ChildrenView>,
    progress: Option<ProgressView>,
    error: Option<String>,
    /// Whether it decided when the run ended.
    critical: bool,
    /// Why it was skipped, where the reason is its own.
    skipped: Option<String>,
}

/// An approval that waits for a person.
pub(crate) struct Question {
    pub(crate) task: String,
    pub(crate) message: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) since: Instant,
    pub(crate) may: bool,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    shell: Shell,
    run: RunView,
    tab: &'static str,
    why: Option<Explanation>,
    questions: Vec<Question>,
    timers: Vec<TimerView>,
    graph: Markup,
    rows: Vec<Row>,
    left_out: usize,
    children: Option<(String, Page<TaskView>)>,
    events: Option<Page<EventView>>,
    outputs: Option<Page<TaskView>>,
    child_runs: Vec<RunView>,
    tried: Option<Tried>,
}

pub(crate) async fn page(
    State(console): At,
    visitor: Visitor,
    id: Result<Path<RunId>, Problem>,
    query: Result<Query<RunQuery>, Problem>,
) -> Answer {
    let (Path(id), Query(wanted)) = (id?, query?);
    let tab = match wanted.tab.as_deref() {
        Some("events") => "events",
        Some("data") => "data",
        Some("try") => "try",
        _ => "tasks",
    };
    let (reader, graph) = console.run(&visitor, id).await?;
    let run = visitor.ask.get::<RunView>(&format!("/runs/{id}")).await?;
    let tasks = reader.outline().await?;
    let mut page = RunPage {
        tab,
        why: why(&visitor, &run).await?,
        questions: questions(&visitor, &reader, &graph, &tasks).await?,
        timers: timers(&visitor, &run).await?,
        graph: Markup::default(),
        rows: Vec::new(),
        left_out: tasks.len().saturating_sub(MAX_ROWS),
        children: None,
        events: None,
        outputs: None,
        child_runs: child_runs(&visitor, id).await?,
        tried: None,
        run,
        shell: visitor.shell.clone(),
    };
    match tab {
        "events" => page.events = Some(events(&visitor, id, &wanted).await?),
        "data" => page.outputs = Some(outputs(&visitor, id, &wanted).await?),
        "try" => page.tried = Some(Tried::new(&reader, &graph, &wanted).await?),
        _ => page.add_tasks(&visitor, &reader, &graph, &tasks, &wanted).await?,
    }
    Ok(show::html(&page))
}

/// The explanation of a run, unless it succeeded.
async fn why(visitor: &Visitor, run: &RunView) -> Result<Option<Explanation>, Refused> {
    if run.state == RunState::Succeeded {
        return Ok(None);
    }
    visitor.ask.get(&format!("/runs/{}/explain", run.id)).await.map(Some)
}

async fn timers(visitor: &Visitor, run: &RunView) -> Result<Vec<TimerView>, Refused> {
    if run.state.is_final() {
        return Ok(Vec::new());
    }
    let page: Page<TimerView> = visitor.ask.get(&format!("/runs/{}/timers?limit=10", run.id)).await?;
    Ok(page.items)
}

async fn child_runs(visitor: &Visitor, id: RunId) -> Result<Vec<RunView>, Refused> {
    let page: Page<RunView> = visitor.ask.get(&format!("/runs?parent={id}&limit=6")).await?;
    Ok(page.items)
}

async fn events(visitor: &Visitor, id: RunId, wanted: &RunQuery) -> Result<Page<EventView>, Refused> {
    let query = query([("limit", Some("100")), ("cursor", wanted.cursor.as_deref())]);
    visitor.ask.get(&format!("/runs/{id}/events{query}")).await
}

async fn children(
    visitor: &Visitor,
    id: RunId,
    wanted: &RunQuery,
) -> Result<Option<(String, Page<TaskView>)>, Refused> {
    let Some(parent) = &wanted.parent else { return Ok(None) };
    let query = query([
        ("parent", Some(parent.as_str())),
        ("limit", Some("100")),
        ("cursor", wanted.cursor.as_deref()),
    ]);
    let page = visitor.ask.get(&format!("/runs/{id}/tasks{query}")).await?;
    Ok(Some((parent.clone(), page)))
}

/// The tasks on a page that have an output: a long one is there in part.
async fn outputs(visitor: &Visitor, id: RunId, wanted: &RunQuery) -> Result<Page<TaskView>, Refused> {
    let query = query([("limit", Some("50")), ("cursor", wanted.cursor.as_deref())]);
    let mut page: Page<TaskView> = visitor.ask.get(&format!("/runs/{id}/tasks{query}")).await?;
    page.items.retain(|task| task.output.is_some() || task.output_preview.is_some());
    Ok(page)
}

/// Why tasks were skipped whose own condition did not hold, or whose switch chose others.
fn skipped(events: &[(i64, Event)]) -> BTreeMap<TaskIndex, String> {
    let own = events.iter().map(|(_, event)| event).filter(|event| event.child.is_none());
    let why = |event: &Event| Some((event.task?, reason(&event.data)?));
    own.filter(|event| event.kind == EventKind::TaskSkipped).filter_map(why).collect()
}

/// A condition with the values that it saw, or the switch that chose others.
fn reason(data: &Value) -> Option<String> {
    if let Some(switch) = data["switch"].as_str() {
        return Some(format!("{switch} chose another branch"));
    }
    let condition = data["condition"].as_str()?;
    let seen = data["seen"].as_object().into_iter().flatten();
    let seen: Vec<String> = seen.map(|(name, value)| format!("{name} was {value}")).collect();
    let saw = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join(", ")) };
    Some(format!("when {condition}{saw}"))
}

/// What each task did with its time, in the order in which they began.
fn rows(
    graph: &Graph,
    tasks: &[Task],
    events: &[(i64, Event)],
    run: &RunView,
    annotations: &Annotations<'_>,
) -> Vec<Row> {
    let mut of: BTreeMap<TaskIndex, Vec<&Event>> = BTreeMap::new();
    for (_, event) in events {
        if let Some(task) = event.task.filter(|_| event.child.is_none()) {
            of.entry(task).or_default().push(event);
        }
    }
    let end = run.finished_at.unwrap_or(annotations.now);
    let row = |task: &Task| {
        let own = of.get(&task.index).map(Vec::as_slice).unwrap_or_default();
        let stretches = phases::of_task(task, own, run.created_at, end);
        let spec = graph.spec(task.index);
        let took = task.started_at.map(|from| show::span(task.finished_at.unwrap_or(end) - from));
        Row {
            name: spec.name.clone(),
            kind: spec.kind.to_string(),
            state: task.state,
            attempt: task.attempt,
            max_attempts: api::attempts_allowed(spec, task),
            took: took.unwrap_or_default(),
            bars: bars(&stretches, task.state, run.created_at, end),
            children: task.fan.map(ChildrenView::from),
            progress: None,
            error: None,
            critical: annotations.critical.contains(&task.index),
            skipped: annotations
                .skipped
                .get(&task.index)
                .filter(|_| task.state == TaskState::Skipped)
                .cloned(),
        }
    };
    tasks.iter().filter(|task| task.state != TaskState::Removed).take(MAX_ROWS).map(row).collect()
}

/// The approvals that wait for an answer.
pub(crate) async fn questions(
    visitor: &Visitor,
    run: &RunReader,
    graph: &Graph,
    tasks: &[Task],
) -> Result<Vec<Question>, Refused> {
    let mut found = Vec::new();
    let waits =
        |task: &&Task| task.state == TaskState::Sleeping && graph.spec(task.index).kind == TaskKind::Approval;
    for task in tasks.iter().filter(waits).take(10) {
        let spec = graph.spec(task.index);
        let Some(form) = ApprovalForm::of(spec)? else { continue };
        let rendered = rendered_config(run, graph, task).await?;
        let message = rendered.get("message").and_then(|message| message.as_str()).unwrap_or("Continue?");
        found.push(Question {
            task: spec.name.clone(),
            message: message.to_owned(),
            fields: Field::of_approval(&form),
            since: task.since,
            may: form.allows(&visitor.caller.name),
        });
    }
    Ok(found)
}

impl RunPage {
    /// Adds the graph, and below it what each task did with its time, or the children of one of them.
    async fn add_tasks(
        &mut self,
        visitor: &Visitor,
        reader: &RunReader,
        graph: &Graph,
        tasks: &[Task],
        wanted: &RunQuery,
    ) -> Result<(), Refused> {
        let id = self.run.id;
        let events = reader.own_events(None, 0, MAX_EVENTS).await?.items;
        let (critical, skipped) = (graph::critical_path(graph, tasks), skipped(&events));
        let annotations = Annotations { critical: &critical, skipped: &skipped, now: self.shell.now };
        self.graph = graph::of_run(graph, &id.to_string(), tasks, &annotations);
        self.children = children(visitor, id, wanted).await?;
        if self.children.is_none() {
            self.rows = rows(graph, tasks, &events, &self.run, &annotations);
            self.add_failures(reader, graph, tasks).await?;
            self.add_progress(reader, graph, tasks).await?;
        }
        Ok(())
    }

    /// Adds why tasks failed.
    async fn add_failures(
        &mut self,
        reader: &RunReader,
        graph: &Graph,
        tasks: &[Task],
    ) -> Result<(), Refused> {
        let shown: Vec<TaskIndex> = tasks.iter().take(MAX_ROWS).map(|task| task.index).collect();
        for (task, failure) in reader.failures(&shown).await? {
            let name = &graph.spec(task).name;
            if let Some(row) = self.rows.iter_mut().find(|row| row.name == *name) {
                row.error = Some(failure.message);
            }
        }
        Ok(())
    }

    /// Adds how far the running tasks say that they have come.
    async fn add_progress(
        &mut self,
        reader: &RunReader,
        graph: &Graph,
        tasks: &[Task],
    ) -> Result<(), Refused> {
        let running = || tasks.iter().filter(|task| task.state == TaskState::Running);
        let indices: Vec<TaskIndex> = running().map(|task| task.index).take(MAX_ROWS).collect();
        if indices.is_empty() {
            return Ok(());
        }
        let reported = reader.progress(&indices).await?;
        for task in running() {
            let reported = reported.get(&task.index).map_or(&[][..], Vec::as_slice);
            let name = &graph.spec(task.index).name;
            if let Some(row) = self.rows.iter_mut().find(|row| row.name == *name) {
                row.progress = ProgressView::of_task(reported, task.attempt, task.voided);
            }
        }
        Ok(())
    }

    /// The beginning of the explanation, without what the page's head shows.
    fn summary(&self, why: &Explanation) -> Markup {
        let named = format!("Run {} of `{}`", self.run.id, self.run.workflow);
        show::prose(&why.summary.replacen(&named, "It", 1))
    }

    /// The tasks that the explanation covers besides the summary.
    fn explained(&self) -> &[api::explain::TaskExplanation] {
        let all = self.why.as_ref().map(|why| why.tasks.as_slice()).unwrap_or_default();
        &all[..all.len().min(MAX_EXPLAINED)]
    }

    /// The task that failed first, whose log one wants to read.
    fn culprit(&self) -> Option<&str> {
        let mut tasks = self.why.as_ref()?.tasks.iter();
        tasks.find(|task| task.state == TaskState::Failed).map(|task| task.task.as_str())
    }

    /// The beginning of a form that steers the run.
    fn act(&self, action: &str) -> Markup {
        self.shell.post(format!("/runs/{}/{action}", self.run.id))
    }

    /// The beginning of a form that steers one of its tasks.
    fn task_act(&self, task: &str, action: &str) -> Markup {
        self.shell.post(format!("{}/{action}", self.task_link(task)))
    }

    fn task_link(&self, task: &str) -> String {
        format!("/runs/{}/tasks/{}", self.run.id, part(task))
    }

    /// How many tasks are not explained.
    fn unexplained(&self) -> usize {
        self.why.as_ref().map_or(0, |why| (why.tasks.len() + why.more).saturating_sub(MAX_EXPLAINED))
    }

    fn can_retry(&self) -> bool {
        matches!(self.run.state, RunState::Failed | RunState::Cancelled)
            || self.run.counts.contains_key(&TaskState::Failed)
    }
}
