//! Runs that start by themselves in some worlds: schedules, a backfill, events, sensors and upstream runs. Whichever process
//! dies between noticing something and starting its run, nothing is lost and nothing is duplicated.

use std::collections::BTreeSet;

use calendar::Calendar;
use chrono::TimeDelta;
use host::App;
use language::{FileKind, SourceFile};
use model::{BackfillId, CloudEvent, Instant, RunState, TenantId, TriggerKey, Workflow};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use runtime::{NewBackfill, Steer};
use serde_json::Value;
use store::{
    BackfillState, Backfills, Maintenance, Memory, Rerun, RunFilter, RunRecord, Runs, Schedules, Triggers,
};
use uuid::Uuid;

use crate::check::{Checked, violation};
use crate::fault_points::now;
use crate::people::{Action, ScheduledAction};

const TENANT: TenantId = TenantId::DEFAULT;

const PLANNED: &str = "
name: planned
schedules:
  - {name: once, at: '2026-01-01T00:00:40Z', catchup: all}
  - {name: often, every: 10m, catchup: all}
tasks:
  - {name: wait, type: sensor, config: {time: {at: '2026-01-01T00:02:00Z'}, interval_seconds: 20}}
  - {name: work, type: noop, depends_on: [wait]}
";

const FOLLOWED: &str = "
name: followed
triggers: [{name: after, workflow: planned, state: finished}]
tasks: [{name: a, type: noop}]
";

const LISTENING: &str = "
name: listener
triggers:
  - {name: announced, event: thing}
  - {name: seen, sensor: {time: {at: '2026-01-01T00:03:00Z'}, interval_seconds: 30}}
tasks: [{name: a, type: noop}]
";

/// By then a world has seen some of everything.
const LEAST: TimeDelta = TimeDelta::minutes(15);

/// An event or a person's action, repeated until it is accepted.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Happened(Box<CloudEvent>),
    Backfill,
    SteerBackfill(Steer),
}

/// Whether a world of that seed has any of it.
pub(crate) fn are_in(seed: u64) -> bool {
    seed % 16 == 4
}

pub(crate) fn workflows() -> Vec<Workflow> {
    let file = |text: &str| SourceFile {
        path: text.lines().nth(1).unwrap().replace("name: ", ""),
        kind: FileKind::Workflow,
        text: text.to_owned(),
    };
    let compiled = language::compile(&[PLANNED, FOLLOWED, LISTENING].map(file));
    assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
    compiled.definitions.into_iter().map(|definition| definition.workflow).collect()
}

/// What happens in the first minutes of a world: events, some of them twice, and a backfill that people steer.
pub(crate) fn actions(seed: u64, start: Instant) -> Vec<ScheduledAction> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x91A5);
    let mut at = || start + TimeDelta::seconds(rng.random_range(0..600));
    let mut steps = vec![(at(), Step::Backfill)];
    for event in events() {
        steps.push((at(), Step::Happened(Box::new(event.clone()))));
        steps.push((at(), Step::Happened(Box::new(event))));
    }
    let steers = [Steer::Pause, Steer::Resume, Steer::Cancel, Steer::Resume];
    steps.extend(
        steers.into_iter().take(seed as usize / 9 % 5).map(|steer| (at(), Step::SteerBackfill(steer))),
    );
    steps.into_iter().map(|(at, step)| ScheduledAction { at, action: Action::Plan(step) }).collect()
}

fn events() -> impl Iterator<Item = CloudEvent> {
    (0..3).map(|number| CloudEvent {
        id: number.to_string(),
        source: "/somewhere".into(),
        kind: "thing".into(),
        ..CloudEvent::default()
    })
}

fn backfill() -> BackfillId {
    BackfillId(Uuid::from_u128(77))
}

/// Does it. Doing it twice does no harm.
pub(crate) async fn run(step: Step, app: App) -> bool {
    match step {
        Step::Happened(event) => app.runtime.triggers().receive(&event).await.is_ok(),
        Step::SteerBackfill(steer) => app.runtime.backfills().steer(backfill(), steer, "ana").await.is_ok(),
        Step::Backfill => {
            let new = NewBackfill {
                id: backfill(),
                tenant: TENANT,
                workflow: "listener".into(),
                schedule: None,
                from: "2025-12-28".into(),
                to: "2025-12-31".into(),
                max_parallel: 2,
                weight: 1,
                rerun: Rerun::Missing,
                version: None,
                by: "ana".into(),
            };
            match app.runtime.backfills().plan(&new).await {
                Ok(plan) => app.runtime.backfills().start(&plan).await.is_ok(),
                Err(_) => false,
            }
        }
    }
}

/// Whether nothing of it is due, and the sensor has seen what it waits for.
pub(crate) fn are_quiet(memory: &Memory, start: Instant, at: Instant) -> bool {
    let agenda = now(memory.agenda(at)).unwrap();
    let due = |instant: Option<Instant>| instant.is_some_and(|instant| instant <= at);
    let key = TriggerKey { tenant: TENANT, workflow: "listener".into(), name: "seen".into() };
    let seen = now(memory.trigger(&key)).unwrap().is_some_and(|trigger| trigger.watermark != Value::Null);
    at > start + LEAST && !due(agenda.schedule) && agenda.backfill.is_none() && seen
}

/// What must hold once everything is over.
pub(crate) fn end(memory: &Memory, start: Instant) -> Checked {
    every_instant_has_one_run(memory, start)?;
    each_end_is_followed_once(memory)?;
    each_event_starts_one_run(memory)?;
    a_backfill_leaves_nothing_open(memory)
}

fn runs(memory: &Memory, workflow: &str) -> Vec<RunRecord> {
    let filter = RunFilter { workflow: Some(workflow.into()), limit: u32::MAX, ..RunFilter::default() };
    now(memory.runs(TENANT, &filter)).unwrap()
}

fn every_instant_has_one_run(memory: &Memory, start: Instant) -> Checked {
    for row in now(memory.schedules(TENANT, None, None, 100)).unwrap() {
        let calendar = Calendar::of(&row.schedule).unwrap();
        let expected: BTreeSet<Instant> =
            calendar.following(start).take_while(|at| *at <= row.decided_until).collect();
        let of_it = |found: &&RunRecord| {
            found.facts.planned.as_ref().is_some_and(|planned| planned.schedule == row.schedule.name)
        };
        let found = runs(memory, &row.workflow);
        let dates: Vec<Instant> =
            found.iter().filter(of_it).filter_map(|found| found.facts.logical_date).collect();
        let mut made: BTreeSet<Instant> = dates.iter().copied().collect();
        let twice = made.len() != dates.len();
        // The process that created a run may have died before it moved the schedule on.
        made.retain(|date| {
            *date <= row.decided_until || calendar.following(row.decided_until).next() != Some(*date)
        });
        if twice || made != expected {
            let what = format!("{} should have {expected:?}, and has {dates:?}", row.schedule.name);
            return violation("every_instant_has_one_run", what);
        }
    }
    Ok(())
}

fn each_end_is_followed_once(memory: &Memory) -> Checked {
    let dates = |workflow| {
        let mut dates: Vec<_> =
            runs(memory, workflow).into_iter().map(|found| found.facts.logical_date).collect();
        dates.sort_unstable();
        dates
    };
    let (ended, followed) = (dates("planned"), dates("followed"));
    if ended != followed {
        return violation("each_end_is_followed_once", format!("{ended:?} were followed by {followed:?}"));
    }
    Ok(())
}

fn each_event_starts_one_run(memory: &Memory) -> Checked {
    for (kind, expected) in [("event", events().count()), ("sensor", 1)] {
        let started =
            runs(memory, "listener").into_iter().filter(|found| found.facts.trigger_kind == kind).count();
        if started != expected {
            let what = format!("{started} runs by {kind}, where {expected} things happened");
            return violation("each_event_starts_one_run", what);
        }
    }
    Ok(())
}

fn a_backfill_leaves_nothing_open(memory: &Memory) -> Checked {
    let Some(record) = now(memory.any_backfill(backfill())).unwrap() else {
        return violation("a_backfill_leaves_nothing_open", "it was never begun");
    };
    let (queued, turn) = (
        now(memory.backfill_runs(backfill(), &[RunState::Queued], 100)).unwrap().len(),
        now(memory.backfill_turn(backfill(), 100)).unwrap(),
    );
    let of_it = runs(memory, "listener").into_iter().filter(|found| found.facts.trigger_kind == "backfill");
    let dates: Vec<Instant> = of_it.filter_map(|found| found.facts.logical_date).collect();
    let made = dates.len();
    // A cancelled run is re-run once its backfill is resumed.
    let waiting = turn.waiting.iter().chain(&turn.claimed).map(|waiting| waiting.date);
    let all: BTreeSet<Instant> = dates.iter().copied().chain(waiting).collect();
    let twice = dates.iter().collect::<BTreeSet<_>>().len() != made;
    let over = record.state == BackfillState::Finished;
    let open = queued > 0 || over && !(turn.waiting.is_empty() && turn.claimed.is_empty());
    if open || twice || all.len() != 4 {
        let what =
            format!("it is {} with {queued} queued runs, {made} runs and {turn:?}", record.state.name());
        return violation("a_backfill_leaves_nothing_open", what);
    }
    Ok(())
}
