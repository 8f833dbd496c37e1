//! Workflows: what each is for, when it runs next, and how its last runs went.

use api::page::Page;
use api::request::Query;
use api::schedules::NextView;
use api::views::WorkflowView;
use askama::Template;
use axum::extract::State;
use model::RunState;
use serde::Deserialize;
use service::Problem;
use store::{RunFilter, RunRecord};

use super::{Answer, At};
use crate::Console;
use crate::ask::query;
use crate::charts::{percentile, strip};
use crate::reader::Reader;
use crate::refused::Refused;
use crate::shell::Shell;
use crate::show::{self, Markup};

/// So many workflows are looked through for a text or a tag.
const SEARCHED: usize = 1_000;

/// So many workflows are on a page.
const SHOWN: usize = 25;

/// So many of its last runs tell how a workflow is.
pub(crate) const RUNS: u32 = 20;

/// Which workflows to show.
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
    known: usize,
}

pub(crate) async fn page(
    State(console): At,
    reader: Reader,
    wanted: Result<Query<WorkflowsQuery>, Problem>,
) -> Answer {
    let mut wanted = wanted?.0;
    for field in [&mut wanted.q, &mut wanted.tag, &mut wanted.cursor] {
        *field = field.take().filter(|text| !text.is_empty());
    }
    let (found, next_cursor) = find(&reader, &wanted).await?;
    let mut tags: Vec<String> = found.iter().flat_map(|workflow| workflow.tags.clone()).collect();
    tags.sort();
    tags.dedup();
    let known = found.len();
    let mut rows = Vec::new();
    for workflow in found.into_iter().take(SHOWN) {
        rows.push(row(&console, &reader, workflow).await?);
    }
    Ok(show::html(&WorkflowsPage { shell: reader.shell, wanted, rows, tags, next_cursor, known }))
}

/// A page of them; with a text or a tag, the first that fit among the first thousand.
async fn find(
    reader: &Reader,
    wanted: &WorkflowsQuery,
) -> Result<(Vec<WorkflowView>, Option<String>), Refused> {
    let filtered = wanted.q.is_some() || wanted.tag.is_some();
    let limit = if filtered { "100".to_owned() } else { SHOWN.to_string() };
    let fits = |workflow: &WorkflowView| {
        let text = wanted.q.as_deref().unwrap_or_default().to_lowercase();
        let said = format!("{} {}", workflow.name, workflow.description.as_deref().unwrap_or_default());
        let tagged = wanted.tag.as_ref().is_none_or(|tag| workflow.tags.contains(tag));
        tagged && said.to_lowercase().contains(&text)
    };
    let (mut found, mut cursor, mut seen) = (Vec::new(), wanted.cursor.clone(), 0);
    loop {
        let query = query([("limit", Some(limit.as_str())), ("cursor", cursor.as_deref())]);
        let page: Page<WorkflowView> = reader.ask.get(&format!("/workflows{query}")).await?;
        seen += page.items.len();
        found.extend(page.items.into_iter().filter(fits));
        cursor = page.next_cursor;
        if cursor.is_none() || !filtered || seen >= SEARCHED {
            return Ok((found, cursor));
        }
    }
}

async fn row(console: &Console, reader: &Reader, workflow: WorkflowView) -> Result<Row, Refused> {
    let record = api::workflows::find(&console.api, &reader.caller, &workflow.name).await?;
    let definition = &record.version.workflow;
    let next = api::schedules::next_of(definition, reader.shell.now).into_iter().next();
    let scheduled = match definition.schedules.as_slice() {
        [] => String::new(),
        [only] => when(&only.when),
        several => format!("{} schedules", several.len()),
    };
    let next = next.filter(|_| !workflow.archived);
    let runs = last_runs(console, reader, &workflow.name, RUNS).await?;
    Ok(Row { next, scheduled, record: Record::of(&runs, &reader.shell), workflow })
}

/// When a schedule fires, in short.
pub(crate) fn when(when: &model::When) -> String {
    match when {
        model::When::Cron(pattern) => pattern.clone(),
        model::When::Every(seconds) => format!("every {}", show::seconds(&i64::from(*seconds))),
        model::When::At(instant) => format!("once, {}", show::day(instant)),
    }
}

/// The last runs of a workflow, the newest first.
pub(crate) async fn last_runs(
    console: &Console,
    reader: &Reader,
    workflow: &str,
    limit: u32,
) -> Result<Vec<RunRecord>, Refused> {
    let filter = RunFilter { workflow: Some(workflow.to_owned()), limit, ..RunFilter::default() };
    Ok(console.store().runs(reader.caller.tenant, &filter).await.map_err(api::error::store)?)
}

impl Record {
    pub(crate) fn of(runs: &[RunRecord], shell: &Shell) -> Self {
        let square = |record: &RunRecord| {
            let run = &record.run;
            let words = format!("{}, {}", run.state.name(), show::distance(run.created_at, shell.now));
            (format!("/runs/{}", run.id), run.state, words)
        };
        let squares: Vec<_> = runs.iter().map(square).collect();
        let count = |wanted: RunState| runs.iter().filter(|record| record.run.state == wanted).count();
        let (good, bad) = (count(RunState::Succeeded), count(RunState::Failed));
        let took = runs
            .iter()
            .filter(|record| record.run.state == RunState::Succeeded)
            .filter_map(|record| Some((record.run.finished_at? - record.run.started_at?).num_milliseconds()));
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

    /// The rate of success in words.
    pub(crate) fn success(&self) -> String {
        self.rate.map_or_else(|| "–".into(), |rate| show::percent(&rate))
    }
}
