//! One workflow: its graph and how its tasks went run by run, and its source.

pub(crate) mod backfill;
pub(crate) mod trigger;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::Graph;
use api::backfills::BackfillView;
use api::page::Page;
use api::request::Path;
use api::schedules::{ScheduleList, ScheduleView};
use api::views::WorkflowView;
use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::{RunId, TaskState};
use read::{RunSummary, WorkflowRecord};

use super::Answer;
use super::workflows::Record;
use crate::ask::part;
use crate::charts::durations;
use crate::refused::Refused;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;
use crate::{Console, graph, yaml};

/// The number of runs in the grid.
const MAX_RUNS: u32 = 30;

/// The maximum number of tasks in the grid.
const MAX_ROWS: usize = 60;

/// The maximum number of tasks of each run that are looked at: in another version, those in the grid have other places.
const MAX_READ: u32 = 1_000;

/// The head of every page about a workflow.
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

/// A workflow that a page is about, and who reads it.
pub(crate) struct Named {
    pub(crate) console: Console,
    pub(crate) visitor: Visitor,
    pub(crate) record: WorkflowRecord,
}

impl FromRequestParts<Console> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Refused> {
        let visitor = Visitor::from_request_parts(parts, console).await?;
        let Path(name) = Path::<String>::from_request_parts(parts, console).await?;
        let record = api::workflows::find(&console.api, &visitor.caller, &name).await?;
        Ok(Self { console: console.clone(), visitor, record })
    }
}

pub(crate) async fn page(Named { console, visitor, record }: Named) -> Answer {
    let name = &record.name;
    let graph = console.graph(record.version.id).await?;
    let runs = visitor.data.runs().last(std::slice::from_ref(name), MAX_RUNS).await?;
    let (grid, left_out) = grid(&console, &visitor, &graph, &runs).await?;
    let schedules: ScheduleList = visitor.ask.get(&format!("/schedules/{}", part(name))).await?;
    let shown = |run: &RunSummary| (run.id, run.state, show::distance(run.created_at, visitor.shell.now));
    let page = WorkflowPage {
        title: Title::new(&record, "overview"),
        graph: graph::of_definition(&graph),
        record: Record::of(&runs, &visitor.shell),
        durations: durations(&runs),
        runs: runs.iter().rev().map(shown).collect(),
        grid,
        left_out,
        schedules: schedules.items,
        backfills: backfills(&visitor, name).await?,
        shell: visitor.shell,
    };
    Ok(show::html(&page))
}

/// How each task went in each of the runs, the oldest first.
async fn grid(
    console: &Console,
    visitor: &Visitor,
    graph: &Arc<Graph>,
    runs: &[RunSummary],
) -> Result<(Vec<GridRow>, usize), Refused> {
    let ids: Vec<RunId> = runs.iter().map(|run| run.id).collect();
    let outline = visitor.data.runs().outlines_of(&graph.workflow().name, runs, MAX_READ).await?;
    let mut graphs = BTreeMap::new();
    for version in runs.iter().map(|run| run.version).collect::<BTreeSet<_>>() {
        graphs.insert(version, console.graph(version).await?);
    }
    let versions: BTreeMap<RunId, _> = runs.iter().map(|run| (run.id, run.version)).collect();
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
    Ok((names.take(MAX_ROWS).map(row).collect(), count.saturating_sub(MAX_ROWS)))
}

async fn backfills(visitor: &Visitor, name: &str) -> Result<Vec<BackfillView>, Refused> {
    let page: Page<BackfillView> =
        visitor.ask.get(&format!("/backfills?workflow={}&limit=5", part(name))).await?;
    Ok(page.items)
}

pub(crate) async fn source(Named { visitor, record, .. }: Named) -> Answer {
    let (title, source) = (Title::new(&record, "source"), yaml::highlighted(&record.version.source));
    Ok(show::html(&SourcePage { shell: visitor.shell, title, source }))
}

impl WorkflowPage {
    fn cell(&self, index: impl Borrow<usize>, task: &str) -> String {
        self.runs
            .get(*index.borrow())
            .map(|(run, ..)| format!("/runs/{run}/tasks/{}", part(task)))
            .unwrap_or_default()
    }
}
