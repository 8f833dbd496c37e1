//! One workflow: its graph and how its tasks went run by run; its source; starting a run or a backfill of it.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::backfills::{BackfillView, PlanView};
use api::page::Page;
use api::request::{Path, Query};
use api::schedules::ScheduleList;
use api::schedules::ScheduleView;
use api::views::{RunView, WorkflowView};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::Graph;
use model::{RunId, TaskState};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use service::Problem;
use store::{RunRecord, WorkflowRecord};

use super::fields::{Field, values};
use super::workflows::{Record, last_runs};
use super::{Answer, At};
use crate::ask::part;
use crate::charts::durations;
use crate::reader::Reader;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::{Shell, back};
use crate::show::{self, Markup};
use crate::{Console, graph, yaml};

/// So many runs stand in the grid.
const RUNS: u32 = 30;

/// So many tasks have a row in the grid.
const ROWS: usize = 60;

/// What stands on top of every page about a workflow.
pub(crate) struct Title {
    pub(crate) workflow: WorkflowView,
    pub(crate) tab: &'static str,
}

impl Title {
    pub(crate) fn new(record: &WorkflowRecord, tab: &'static str) -> Self {
        Self { workflow: WorkflowView::from(record), tab }
    }

    pub(crate) fn link(&self, rest: &str) -> String {
        format!("/workflows/{}{rest}", part(&self.workflow.name))
    }
}

/// A task and how it went in each run.
struct GridRow {
    task: String,
    cells: Vec<Option<TaskState>>,
}

#[derive(Template)]
#[template(path = "workflow.html")]
struct WorkflowPage {
    shell: Shell,
    title: Title,
    graph: Markup,
    record: Record,
    durations: Markup,
    runs: Vec<(RunId, model::RunState, String)>,
    grid: Vec<GridRow>,
    left_out: usize,
    schedules: Vec<ScheduleView>,
    backfills: Vec<BackfillView>,
}

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage {
    shell: Shell,
    title: Title,
    source: Markup,
}

#[derive(Template)]
#[template(path = "trigger.html")]
struct TriggerPage {
    shell: Shell,
    title: Title,
    fields: Vec<Field>,
    date: String,
    wrong: Option<String>,
    /// The run that is in the way, if one is.
    other: Option<RunId>,
}

#[derive(Template)]
#[template(path = "backfill.html")]
struct BackfillPage {
    shell: Shell,
    title: Title,
    sent: BTreeMap<&'static str, String>,
    plan: Option<PlanView>,
    wrong: Option<String>,
    backfills: Vec<BackfillView>,
}

/// A form that is filled in as another run was.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TriggerQuery {
    like: Option<RunId>,
}

pub(crate) async fn page(State(console): At, reader: Reader, name: Result<Path<String>, Problem>) -> Answer {
    let Path(name) = name?;
    let record = api::workflows::find(&console.api, &reader.caller, &name).await?;
    let graph = console.graph(record.version.id).await?;
    let runs = last_runs(&console, &reader, &name, RUNS).await?;
    let (grid, left_out) = grid(&console, &graph, &runs).await?;
    let schedules: ScheduleList = reader.ask.get(&format!("/schedules/{}", part(&name))).await?;
    let shown = |record: &RunRecord| {
        let run = &record.run;
        (run.id, run.state, show::distance(run.created_at, reader.shell.now))
    };
    let page = WorkflowPage {
        title: Title::new(&record, "overview"),
        graph: graph::of_definition(&graph),
        record: Record::of(&runs, &reader.shell),
        durations: durations(&runs),
        runs: runs.iter().rev().map(shown).collect(),
        grid,
        left_out,
        schedules: schedules.items,
        backfills: backfills(&reader, &name).await?,
        shell: reader.shell,
    };
    Ok(show::html(&page))
}

/// How each task went in each of the runs, the oldest first.
async fn grid(
    console: &Console,
    graph: &Arc<Graph>,
    runs: &[RunRecord],
) -> Result<(Vec<GridRow>, usize), Refused> {
    let ids: Vec<RunId> = runs.iter().map(|record| record.run.id).collect();
    let outline = console.store().outline(&ids).await.map_err(api::error::store)?;
    let mut graphs = BTreeMap::new();
    for version in runs.iter().map(|record| record.run.version).collect::<BTreeSet<_>>() {
        graphs.insert(version, console.graph(version).await?);
    }
    let versions: BTreeMap<RunId, _> =
        runs.iter().map(|record| (record.run.id, record.run.version)).collect();
    let mut states: BTreeMap<(RunId, &str), TaskState> = BTreeMap::new();
    for (run, task) in &outline {
        let of = versions.get(run).and_then(|version| graphs.get(version));
        if let Some(of) = of.filter(|of| of.has(task.index, None)) {
            states.insert((*run, of.spec(task.index).name.as_str()), task.state);
        }
    }
    let names = graph.workflow().tasks.iter().map(|task| task.name.clone());
    let row = |task: String| {
        let cells = ids.iter().rev().map(|run| states.get(&(*run, task.as_str())).copied()).collect();
        GridRow { task, cells }
    };
    let count = graph.workflow().tasks.len();
    Ok((names.take(ROWS).map(row).collect(), count.saturating_sub(ROWS)))
}

async fn backfills(reader: &Reader, name: &str) -> Result<Vec<BackfillView>, Refused> {
    let page: Page<BackfillView> =
        reader.ask.get(&format!("/backfills?workflow={}&limit=5", part(name))).await?;
    Ok(page.items)
}

pub(crate) async fn source(
    State(console): At,
    reader: Reader,
    name: Result<Path<String>, Problem>,
) -> Answer {
    let record = api::workflows::find(&console.api, &reader.caller, &name?.0).await?;
    let (title, source) = (Title::new(&record, "source"), yaml::highlighted(&record.version.source));
    Ok(show::html(&SourcePage { shell: reader.shell, title, source }))
}

pub(crate) async fn form(
    State(console): At,
    reader: Reader,
    name: Result<Path<String>, Problem>,
    wanted: Result<Query<TriggerQuery>, Problem>,
) -> Answer {
    let (Path(name), Query(wanted)) = (name?, wanted?);
    let record = api::workflows::find(&console.api, &reader.caller, &name).await?;
    let like = match wanted.like {
        Some(run) => reader.ask.get::<RunView>(&format!("/runs/{run}")).await?.inputs,
        None => Map::new(),
    };
    let field = |input| {
        let field = Field::of_input(input);
        let value = like.get(&field.label).map(|value| match value {
            Value::Array(_) | Value::Object(_) => show::json(value),
            other => show::value(other),
        });
        Field { value: value.unwrap_or(field.value), ..field }
    };
    let fields = record.version.workflow.inputs.iter().map(field).collect();
    let title = Title::new(&record, "trigger");
    let (date, wrong, other) = (String::new(), None, None);
    Ok(show::html(&TriggerPage { shell: reader.shell, title, fields, date, wrong, other }))
}

/// Starts a run, or shows at each field what is wrong with it.
pub(crate) async fn trigger(
    State(console): At,
    reader: Reader,
    name: Result<Path<String>, Problem>,
    sent: Sent,
) -> Result<Response, Refused> {
    let Path(name) = name?;
    let record = api::workflows::find(&console.api, &reader.caller, &name).await?;
    let inputs = &record.version.workflow.inputs;
    let given = values(inputs.iter().map(|input| (input.name.clone(), input.kind)), &sent);
    let date = sent.field("logical_date").map(instant);
    let body = json!({"inputs": given, "logical_date": date});
    match reader.ask.post::<RunView>(&format!("/workflows/{}/runs", part(&name)), &body).await {
        Ok(run) => Ok(back(&format!("/runs/{}", run.id), true, "The run was started.")),
        Err(no) if no.status == StatusCode::UNAUTHORIZED => Err(no),
        Err(no) => {
            let field = |input| at_field(Field::of_input(input).with_sent(&sent), &no.details);
            let fields: Vec<Field> = inputs.iter().map(field).collect();
            let other = no.details.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
            let told = fields.iter().any(|field| field.wrong.is_some());
            let wrong = Some(if told { "Some inputs do not fit.".into() } else { no.message });
            let (title, date) =
                (Title::new(&record, "trigger"), sent.field("logical_date").unwrap_or_default());
            let (shell, date) = (reader.shell, date.to_owned());
            let page = TriggerPage { shell, title, fields, date, wrong, other };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, show::html(&page)).into_response())
        }
    }
}

/// A field of a browser has neither seconds nor a zone; times here are UTC.
fn instant(text: &str) -> String {
    if text.len() == "2026-01-31T18:00".len() { format!("{text}:00Z") } else { text.to_owned() }
}

/// What the API says of one input, at its field.
fn at_field(mut field: Field, details: &Value) -> Field {
    let of = |problem: &&Value| problem["input"] == field.label.as_str();
    let found = details.as_array().and_then(|problems| problems.iter().find(of));
    field.wrong = found.map(|problem| {
        let hint = problem["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", problem["message"].as_str().unwrap_or("does not fit"))
    });
    field
}

pub(crate) async fn backfill_form(
    State(console): At,
    reader: Reader,
    name: Result<Path<String>, Problem>,
) -> Answer {
    let Path(name) = name?;
    let record = api::workflows::find(&console.api, &reader.caller, &name).await?;
    let (title, backfills) = (Title::new(&record, "backfill"), backfills(&reader, &name).await?);
    let (sent, plan, wrong) = (BTreeMap::new(), None, None);
    Ok(show::html(&BackfillPage { shell: reader.shell, title, sent, plan, wrong, backfills }))
}

/// Shows what a backfill would do, and once that is confirmed, begins it.
pub(crate) async fn backfill(
    State(console): At,
    reader: Reader,
    name: Result<Path<String>, Problem>,
    sent: Sent,
) -> Result<Response, Refused> {
    let Path(name) = name?;
    let record = api::workflows::find(&console.api, &reader.caller, &name).await?;
    let text = |field: &str| sent.field(field).unwrap_or_default().to_owned();
    let number = |field: &str| sent.field(field).and_then(|text| text.parse::<u32>().ok());
    let sure = sent.field("sure").is_some();
    let body = json!({
        "workflow": name, "from": text("from"), "to": text("to"), "schedule": sent.field("schedule"),
        "max_parallel": number("max_parallel").unwrap_or(api::backfills::PARALLEL),
        "rerun": sent.field("rerun").unwrap_or("missing"), "dry_run": !sure,
    });
    let mut page = BackfillPage {
        title: Title::new(&record, "backfill"),
        sent: ["from", "to", "rerun", "max_parallel"].map(|field| (field, text(field))).into(),
        plan: None,
        wrong: None,
        backfills: backfills(&reader, &name).await?,
        shell: reader.shell.clone(),
    };
    if sure {
        match reader.ask.post::<BackfillView>("/backfills", &body).await {
            Ok(_) => return Ok(back("/operations/backfills", true, "The backfill was begun.")),
            Err(no) => page.wrong = Some(no.message),
        }
    } else {
        match reader.ask.post::<PlanView>("/backfills", &body).await {
            Ok(plan) => page.plan = Some(plan),
            Err(no) => page.wrong = Some(no.message),
        }
    }
    let status = if page.wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok((status, show::html(&page)).into_response())
}

impl BackfillPage {
    fn was(&self, field: &str) -> &str {
        self.sent.get(field).map(String::as_str).unwrap_or_default()
    }
}

impl WorkflowPage {
    fn cell(&self, place: impl Borrow<usize>, task: &str) -> String {
        self.runs
            .get(*place.borrow())
            .map(|(run, ..)| format!("/runs/{run}/tasks/{}", part(task)))
            .unwrap_or_default()
    }
}
