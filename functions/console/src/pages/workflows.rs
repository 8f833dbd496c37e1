//! Workflows: what each is for, when it runs next, and how its last runs went.

use std::collections::BTreeMap;

use api::request::Query;
use api::schedules::NextView;
use api::views::WorkflowView;
use askama::Template;
use host::Problem;
use model::{Instant, RunState};
use read::{Listing, RunSummary, WorkflowFilter, WorkflowRecord, WorkflowSort};
use serde::Deserialize;

use super::Answer;
use crate::charts::{percentile, strip};
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// The number of workflows on a page.
const PAGE_SIZE: u32 = 25;

/// The number of last runs that a workflow's row shows.
pub(crate) const MAX_RUNS: u32 = 20;

/// Which workflows to show: those after a name, with a text or a tag.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowsQuery {
    q: Option<String>,
    tag: Option<String>,
    cursor: Option<String>,
}

/// How the last runs of a workflow went.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) strip: Markup,
    pub(crate) count: usize,
    /// Of those that ended, how many succeeded, of 1.
    pub(crate) rate: Option<f64>,
    pub(crate) p50: Option<i64>,
    pub(crate) p95: Option<i64>,
}

struct Row {
    workflow: WorkflowView,
    next: Option<NextView>,
    scheduled: String,
    record: Record,
}

#[derive(Template)]
#[template(path = "workflows.html")]
struct WorkflowsPage {
    shell: Shell,
    wanted: WorkflowsQuery,
    rows: Vec<Row>,
    tags: Vec<String>,
    next_cursor: Option<String>,
}

pub(crate) async fn page(visitor: Visitor, wanted: Result<Query<WorkflowsQuery>, Problem>) -> Answer {
    let mut wanted = wanted?.0;
    for field in [&mut wanted.q, &mut wanted.tag, &mut wanted.cursor] {
        *field = field.take().filter(|text| !text.is_empty());
    }
    let Listing { items: found, next } = visitor.data.workflows().list(&wanted.filter()).await?;
    let next_cursor = next.map(|(_, name)| name);
    let mut tags: Vec<String> =
        found.iter().flat_map(|record| record.version.workflow.tags.clone()).collect();
    tags.sort();
    tags.dedup();
    let names: Vec<String> = found.iter().map(|record| record.name.clone()).collect();
    let mut runs: BTreeMap<String, Vec<RunSummary>> = BTreeMap::new();
    for run in visitor.data.runs().last(&names, MAX_RUNS).await? {
        runs.entry(run.workflow.clone()).or_default().push(run);
    }
    let row = |record: &WorkflowRecord| {
        let runs = runs.get(&record.name).map(Vec::as_slice).unwrap_or_default();
        row(record, runs, &visitor.shell)
    };
    let rows = found.iter().map(row).collect();
    Ok(show::html(&WorkflowsPage { shell: visitor.shell, wanted, rows, tags, next_cursor }))
}

fn row(record: &WorkflowRecord, runs: &[RunSummary], shell: &Shell) -> Row {
    let definition = &record.version.workflow;
    let next = api::schedules::next_of(definition, shell.now).into_iter().next();
    let scheduled = match definition.schedules.as_slice() {
        [] => String::new(),
        [only] => when(&only.when),
        several => format!("{} schedules", several.len()),
    };
    let next = next.filter(|_| !record.archived);
    Row { next, scheduled, record: Record::of(runs, shell), workflow: WorkflowView::from(record) }
}

/// When a schedule fires, in short.
pub(crate) fn when(when: &model::When) -> String {
    match when {
        model::When::Cron(pattern) => pattern.clone(),
        model::When::Every(seconds) => format!("every {}", show::seconds(&i64::from(*seconds))),
        model::When::At(instant) => format!("once, {}", show::day(instant)),
    }
}

impl WorkflowsQuery {
    /// By name; the cursor is the last name of the page before.
    fn filter(&self) -> WorkflowFilter {
        WorkflowFilter {
            tag: self.tag.clone(),
            text: self.q.clone(),
            sort: WorkflowSort::Name,
            after: self.cursor.clone().map(|name| (Instant::UNIX_EPOCH, name)),
            limit: PAGE_SIZE,
        }
    }
}

impl Record {
    pub(crate) fn of(runs: &[RunSummary], shell: &Shell) -> Self {
        let square = |run: &RunSummary| {
            let words = format!("{}, {}", run.state.name(), show::distance(run.created_at, shell.now));
            (format!("/runs/{}", run.id), run.state, words)
        };
        let squares: Vec<_> = runs.iter().map(square).collect();
        let count = |wanted: RunState| runs.iter().filter(|run| run.state == wanted).count();
        let (good, bad) = (count(RunState::Succeeded), count(RunState::Failed));
        let took = runs
            .iter()
            .filter(|run| run.state == RunState::Succeeded)
            .filter_map(|run| Some((run.finished_at? - run.started_at?).num_milliseconds()));
        let mut took: Vec<i64> = took.collect();
        took.sort_unstable();
        Self {
            strip: strip(&squares),
            count: runs.len(),
            rate: (good + bad > 0).then(|| good as f64 / (good + bad) as f64),
            p50: percentile(&took, 50),
            p95: percentile(&took, 95),
        }
    }

    /// The rate of success, for people.
    pub(crate) fn success(&self) -> String {
        self.rate.map_or_else(|| "–".into(), |rate| show::percent(&rate))
    }
}
