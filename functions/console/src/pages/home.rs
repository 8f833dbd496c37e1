//! Home: problems first, then what runs, what is due next, and how it went lately.

use std::collections::BTreeMap;

use api::Graph;
use api::dead_letters::DeadLetterView;
use api::doctor::{self, CheckView};
use api::limits::LimitView;
use api::page::Page;
use api::schedules::ScheduleView;
use api::views::{RunView, WorkerView};
use askama::Template;
use axum::extract::State;
use chrono::TimeDelta;
use model::{Instant, RunId, RunState, TaskIndex, TaskKey, TaskKind, TaskState};
use read::RunFilter;

use super::{Answer, At};
use crate::Console;
use crate::charts::{beats, spark};
use crate::refused::Refused;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// The maximum number of runs in the chart of the last day.
const MAX_PULSE_RUNS: u32 = 2_000;

/// The number of columns of that chart.
const PULSE_COLUMNS: usize = 48;

/// The number of unfinished runs that are searched for approvals.
const MAX_SEARCHED_RUNS: u32 = 50;

/// The number of sleeping tasks that are read to find approvals, and of approvals that are shown.
const MAX_SLEEPING: u32 = 1_000;
const MAX_ASKING: usize = 50;

/// The number of problems of files that are shown; the doctor shows more.
const MAX_FILE_PROBLEMS: usize = 5;

/// An approval that waits for a person.
struct Asking {
    run: RunId,
    workflow: String,
    task: String,
    since: Instant,
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    shell: Shell,
    stalled: Vec<RunView>,
    failed: Vec<RunView>,
    asking: Vec<Asking>,
    letters: Page<DeadLetterView>,
    running: Vec<RunView>,
    more_running: bool,
    due: Vec<(Instant, String, String)>,
    late: Vec<ScheduleView>,
    /// Problems of the files that `ebb dev` loads.
    files: Vec<CheckView>,
    pulse: Markup,
    window: String,
    count: usize,
    failures: usize,
    queues: Vec<LimitView>,
    workers: Vec<WorkerView>,
}

pub(crate) async fn page(State(console): At, visitor: Visitor) -> Answer {
    let now = visitor.shell.now;
    let list = async |state: &str, limit: u32| {
        visitor.ask.get::<Page<RunView>>(&format!("/runs?state={state}&limit={limit}")).await
    };
    let failed = list("failed", 6).await?.items;
    let running = list("running", 9).await?;
    let schedules: Option<Page<ScheduleView>> = visitor.ask.get_if_allowed("/schedules?limit=100").await?;
    let schedules = schedules.map(|page| page.items).unwrap_or_default();
    let queues: Option<Page<LimitView>> = visitor.ask.get_if_allowed("/limits?kind=queue&limit=100").await?;
    let workers: Option<Page<WorkerView>> = visitor.ask.get_if_allowed("/workers?limit=50").await?;
    let letters = visitor.ask.get_if_allowed("/dead-letters?limit=5").await?;
    let since = now - TimeDelta::days(1);
    let runs = visitor.data.runs().pulse(since, MAX_PULSE_RUNS).await?;
    // With too many runs to count in a day, the chart covers a shorter time.
    let from =
        if runs.len() == MAX_PULSE_RUNS as usize { runs.last().map_or(since, |run| run.0) } else { since };
    let failures = runs.iter().filter(|(_, state)| *state == RunState::Failed).count();
    let window = if from == since { "24 h".to_owned() } else { show::span(now - from) };
    let words = format!("{} runs in the last {window}, {failures} failed", runs.len());
    let page = HomePage {
        stalled: list("stalled", 5).await?.items,
        // What failed long ago is history, not a problem.
        failed: failed.into_iter().filter(|run| run.created_at > now - TimeDelta::days(7)).collect(),
        asking: asking(&console, &visitor).await?,
        letters: letters.unwrap_or(Page { items: Vec::new(), next_cursor: None }),
        more_running: running.next_cursor.is_some(),
        running: running.items,
        due: due(&schedules),
        files: doctor::of_files(&console.api, &visitor.caller, MAX_FILE_PROBLEMS),
        late: schedules.into_iter().filter(|schedule| schedule.problem.is_some()).collect(),
        pulse: spark(&beats(&runs, from, now, PULSE_COLUMNS), &words),
        window,
        count: runs.len(),
        failures,
        queues: queues.map(|page| page.items).unwrap_or_default(),
        workers: workers.map(|page| page.items).unwrap_or_default(),
        shell: visitor.shell,
    };
    Ok(show::html(&page))
}

/// What is due next, by schedule.
fn due(schedules: &[ScheduleView]) -> Vec<(Instant, String, String)> {
    let next = |schedule: &ScheduleView| {
        let next = schedule.next.first().filter(|_| !schedule.paused)?;
        Some((next.at, schedule.workflow.clone(), schedule.name.clone()))
    };
    let mut due: Vec<_> = schedules.iter().filter_map(next).collect();
    due.sort();
    due.truncate(6);
    due
}

/// The approvals of a graph.
fn approvals(graph: &Graph) -> impl Iterator<Item = TaskIndex> {
    graph.indices().filter(move |task| graph.spec(*task).kind == TaskKind::Approval)
}

/// Who is waited for: approvals among the newest unfinished runs that have one in their graph.
async fn asking(console: &Console, visitor: &Visitor) -> Result<Vec<Asking>, Refused> {
    let filter =
        RunFilter { state: Some(RunState::Running), limit: MAX_SEARCHED_RUNS, ..RunFilter::default() };
    let (mut asked, mut graphs) = (Vec::new(), BTreeMap::new());
    for listed in visitor.data.runs().readable(&filter).await? {
        let run = &listed.record.run;
        let sleeps = run.counts.present().any(|(state, _)| state == TaskState::Sleeping);
        let graph = console.graph(run.version).await?;
        if sleeps && approvals(&graph).next().is_some() {
            graphs.insert(run.id, (run.workflow.clone(), graph));
            asked.push(listed);
        }
    }
    let approvals = graphs.values().flat_map(|(_, graph)| approvals(graph)).collect();
    let mut found = Vec::new();
    for (TaskKey { run, task }, since) in
        visitor.data.runs().sleeping(&asked, &approvals, MAX_SLEEPING).await?
    {
        let Some((workflow, graph)) = graphs.get(&run) else { continue };
        // In a run of another workflow, the same index may be that of another task.
        let asks = graph.has(task, None) && graph.spec(task).kind == TaskKind::Approval;
        if asks && found.len() < MAX_ASKING {
            let (workflow, task) = (workflow.clone(), graph.spec(task).name.clone());
            found.push(Asking { run, workflow, task, since });
        }
    }
    Ok(found)
}

impl HomePage {
    fn all_well(&self) -> bool {
        self.stalled.is_empty()
            && self.failed.is_empty()
            && self.asking.is_empty()
            && self.letters.items.is_empty()
            && self.late.is_empty()
            && self.files.is_empty()
    }

    /// How many tasks wait for a slot of a queue.
    fn depth(&self) -> u32 {
        self.queues.iter().map(|queue| queue.waiting).sum()
    }

    fn alive(&self) -> usize {
        self.workers.iter().filter(|worker| worker.state.is_up()).count()
    }

    fn busy(&self) -> i64 {
        self.workers.iter().map(|worker| worker.holding).sum()
    }

    fn retry(&self, run: &RunView) -> Markup {
        self.shell.post(format!("/runs/{}/retry", run.id))
    }
}
