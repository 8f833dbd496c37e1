//! One task of a run: its attempts, log, config and output.

use std::collections::BTreeMap;

use api::Graph;
use api::explain::Explanation;
use api::expressions::rendered_config;
use api::page::Page;
use api::request::{Path, Query};
use api::views::{AttemptView, RunView, TaskView};
use askama::Template;
use axum::extract::State;
use host::Problem;
use model::{RunId, Task, TaskIndex, TaskState};
use read::RunReader;
use serde::Deserialize;
use serde_json::Value;

use super::log::{self, Lines};
use super::{Answer, At};
use crate::ask::{part, query};
use crate::charts;
use crate::refused::Refused;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// Which part of a task's log is shown.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskQuery {
    /// The log of this attempt; default the current one.
    pub(crate) attempt: Option<u32>,
    /// Only lines with this text.
    pub(crate) q: Option<String>,
    /// Only lines of this level, or worse.
    pub(crate) level: Option<String>,
    /// The first line; default near the end.
    pub(crate) from: Option<u32>,
}

/// The maximum number of attempts that are shown, the latest ones.
const MAX_ATTEMPTS: u32 = 100;

/// The maximum number of tasks that are shown upstream, and downstream.
const MAX_NEIGHBOURS: usize = 100;

/// Tasks that this one depends on, or the other way round.
struct Neighbours {
    shown: Vec<Neighbour>,
    left_out: usize,
}

struct Neighbour {
    name: String,
    state: TaskState,
}

#[derive(Template)]
#[template(path = "task.html")]
struct TaskPage {
    shell: Shell,
    run: RunView,
    task: TaskView,
    why: Option<Explanation>,
    attempts: Vec<AttemptView>,
    /// How many attempts came before those.
    earlier: u32,
    attempt: u32,
    wanted: TaskQuery,
    lines: Lines,
    config: Value,
    item: Option<Value>,
    upstream: Neighbours,
    downstream: Neighbours,
    description: Option<String>,
}

pub(crate) async fn page(
    State(console): At,
    visitor: Visitor,
    path: Result<Path<(RunId, String)>, Problem>,
    query: Result<Query<TaskQuery>, Problem>,
) -> Answer {
    let (Path((id, name)), Query(wanted)) = (path?, query?);
    let path = format!("/runs/{id}/tasks/{}", part(&name));
    let run: RunView = visitor.ask.get(&format!("/runs/{id}")).await?;
    let task: TaskView = visitor.ask.get(&path).await?;
    let earlier = task.attempt.saturating_sub(MAX_ATTEMPTS);
    let attempts = attempts(&visitor, &path, earlier).await?;
    let why = match task.state {
        TaskState::Succeeded => None,
        _ => Some(visitor.ask.get(&format!("/runs/{id}/explain?task={}", part(&name))).await?),
    };
    let (reader, graph) = console.run(&visitor, id).await?;
    let found = find(&reader, &graph, &task).await?;
    let attempt = wanted.attempt.unwrap_or(task.attempt);
    let (upstream, downstream) = neighbours(&reader, &graph, &found).await?;
    let page = TaskPage {
        why,
        attempts,
        earlier,
        attempt,
        lines: log::lines(&reader, found.index, attempt, &wanted).await?,
        config: rendered_config(&reader, &graph, &found).await?,
        item: reader.item(found.index).await?,
        upstream,
        downstream,
        description: graph.spec_at(found.index, found.child).description.clone(),
        wanted,
        run,
        task,
        shell: visitor.shell,
    };
    Ok(show::html(&page))
}

/// The row of a task that the API has found.
pub(crate) async fn find(run: &RunReader, graph: &Graph, task: &TaskView) -> Result<Task, Refused> {
    let parent = task.parent.as_deref().and_then(|parent| graph.index_of(parent));
    let gone = || {
        let id = run.record().run.id;
        Problem::not_found(format!("run {id} has no task `{}`", task.name))
    };
    let record = match (parent, task.index) {
        (Some(parent), Some(index)) => {
            let fan = run.task(None, parent).await?.and_then(|record| record.task.fan);
            let child = fan.and_then(|fan| fan.children().nth(index as usize)).ok_or_else(gone)?;
            run.task(Some(parent), child).await?
        }
        _ => run.task(None, graph.index_of(&task.name).ok_or_else(gone)?).await?,
    };
    Ok(record.ok_or_else(gone)?.task)
}

/// The latest attempts. Those before them are not even read.
async fn attempts(visitor: &Visitor, path: &str, earlier: u32) -> Result<Vec<AttemptView>, Refused> {
    let (mut all, mut cursor) = (Vec::new(), Some(api::page::cursor_after(&earlier)));
    while let Some(after) = cursor {
        let query = query([("limit", Some("100")), ("cursor", Some(after.as_str()))]);
        let page: Page<AttemptView> = visitor.ask.get(&format!("{path}/attempts{query}")).await?;
        all.extend(page.items);
        cursor = page.next_cursor;
    }
    Ok(all)
}

async fn neighbours(
    run: &RunReader,
    graph: &Graph,
    task: &Task,
) -> Result<(Neighbours, Neighbours), Refused> {
    let anchor = task.child.map_or(task.index, |child| child.of);
    let states: BTreeMap<TaskIndex, TaskState> =
        run.outline().await?.into_iter().map(|task| (task.index, task.state)).collect();
    let beside = |index: &TaskIndex| {
        let state = *states.get(index)?;
        Some(Neighbour { name: graph.spec(*index).name.clone(), state })
    };
    let those = |all: &[TaskIndex]| Neighbours {
        shown: all.iter().take(MAX_NEIGHBOURS).filter_map(beside).collect(),
        left_out: all.len().saturating_sub(MAX_NEIGHBOURS),
    };
    let upstream = match task.child {
        Some(child) => those(&[child.of]),
        None => those(&graph.parents(anchor).iter().copied().collect::<Vec<_>>()),
    };
    Ok((upstream, those(graph.dependants(anchor))))
}

impl TaskPage {
    fn link(&self) -> String {
        format!("/runs/{}/tasks/{}", self.run.id, part(&self.task.name))
    }

    /// All of its output.
    fn output_link(&self) -> String {
        format!("/api/v1{}/output", self.link())
    }

    /// The definition, which has all of its settings.
    fn source_link(&self) -> String {
        format!("/workflows/{}/source", part(&self.run.workflow))
    }

    fn beside(&self, name: &str) -> String {
        format!("/runs/{}/tasks/{}", self.run.id, part(name))
    }

    fn act(&self, action: &str) -> Markup {
        self.shell.post(format!("{}/{action}", self.link()))
    }

    /// The beginning of the form that retries all that failed in the run.
    fn retry(&self) -> Markup {
        self.shell.post(format!("/runs/{}/retry", self.run.id))
    }

    /// The log from another line on, with the same filters.
    fn log_from(&self, from: impl std::fmt::Display) -> String {
        let (attempt, from) = (self.attempt.to_string(), from.to_string());
        let query = query([
            ("attempt", Some(attempt.as_str())),
            ("q", self.wanted.q.as_deref()),
            ("level", self.wanted.level.as_deref()),
            ("from", Some(from.as_str())),
        ]);
        format!("{}{query}#log", self.link())
    }

    fn is_level(&self, level: &str) -> bool {
        self.wanted.level.as_deref() == Some(level)
    }

    fn is_asleep(&self) -> bool {
        let waiting = self.task.waiting.as_ref().map(|waiting| waiting.reason.as_str());
        matches!(self.task.state, TaskState::UpForRetry) || matches!(waiting, Some("timer" | "sensor"))
    }

    /// A link to the job in another system, which connectors put into their output.
    fn elsewhere(&self) -> Option<&str> {
        let output = self.task.output.as_ref()?;
        let link = ["job_url", "console_url", "url"].iter().find_map(|name| output.get(name)?.as_str());
        link.filter(|link| link.starts_with("https://"))
    }
}
