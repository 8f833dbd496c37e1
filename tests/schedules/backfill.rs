//! Backfills of a year, a few dates at a time, next to a schedule that must not be delayed.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use futures::FutureExt;
use model::{BackfillId, Instant, RunState, Schedule};
use runtime::{BackfillPlan, NewBackfill, Steer};
use store::{BackfillDate, BackfillRecord, BackfillState, Rerun};
use uuid::Uuid;

use crate::world::{TENANT, World};

const DAILY: &str = "name: daily
schedule: {cron: '0 6 * * *', timezone: Europe/Berlin}
tasks: [{name: a, type: bash, config: {command: 'true'}}, {name: b, type: bash, depends_on: [a], config: {command: 'true'}}]
";
const LIVE: &str = "name: live
schedule: {every: 7m}
tasks: [{name: a, type: bash, config: {command: 'true'}}]
";

const SLOTS: u32 = 5;

pub(crate) fn year(number: u128) -> NewBackfill {
    NewBackfill {
        id: BackfillId(Uuid::from_u128(number)),
        tenant: TENANT,
        workflow: "daily".into(),
        schedule: None,
        from: "2025-01-01".into(),
        to: "2025-12-31".into(),
        max_parallel: 8,
        weight: 1,
        rerun: Rerun::Missing,
        version: None,
        by: "ada".into(),
    }
}

pub(crate) async fn world() -> World {
    let world = World::at("2026-01-01T12:00:00Z");
    world.set_slots(Some(8)).await;
    world.write(DAILY).await;
    world
}

pub(crate) async fn begin(world: &mut World, new: &NewBackfill) -> BackfillPlan {
    let plan = world.runtime.backfills().plan(new).await.unwrap();
    world.runtime.backfills().start(&plan).await.unwrap();
    world.deliver().await;
    plan
}

pub(crate) async fn record(world: &World, id: BackfillId) -> BackfillRecord {
    world.store().any_backfill(id).await.unwrap().unwrap()
}

/// More dates than any of these backfills has.
const MAX_DATES: u32 = 10_000;

/// How many dates wait, and how many have a run in which state.
pub(crate) async fn progress(world: &World, id: BackfillId) -> Vec<(String, u32)> {
    let turn = world.store().backfill_turn(id, MAX_DATES).await.unwrap();
    let runs = world.store().backfill_runs(id, &RunState::ALL, MAX_DATES).await.unwrap();
    let mut counts = BTreeMap::new();
    for (_, state) in &runs {
        *counts.entry(state.name().to_owned()).or_default() += 1;
    }
    let has_run = |date: &&BackfillDate| runs.iter().any(|(begun, _)| begun.date == date.date);
    let waiting = turn.waiting.len() + turn.claimed.iter().filter(|date| !has_run(date)).count();
    counts.extend((waiting > 0).then(|| ("waiting".to_owned(), waiting as u32)));
    counts.into_iter().collect()
}

pub(crate) fn counts(pairs: &[(&str, u32)]) -> Vec<(String, u32)> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Lets minutes pass, and checks after each that no more runs are unfinished than may be.
pub(crate) async fn pass_minutes(world: &mut World, minutes: i64, max_unfinished: usize) {
    for _ in 0..minutes {
        world.pass_until(world.now() + TimeDelta::minutes(1)).await;
        let runs = world.runs("daily").await;
        let unfinished = runs.iter().filter(|found| !found.run.state.is_final()).count();
        assert!(unfinished <= max_unfinished, "{unfinished} runs are unfinished at {}", world.now());
    }
}

#[tokio::test]
async fn a_backfill_of_a_year_finishes_and_delays_no_scheduled_run_by_more_than_one_task() {
    let mut world = world().await;
    // Fewer slots than its tasks need, so that some of them always wait for one.
    world.set_slots(Some(SLOTS)).await;
    world.write(LIVE).await;
    world.sweep().await;
    let plan = begin(&mut world, &year(1)).await;
    assert_eq!((plan.in_range, plan.dates.len(), plan.expected), (365, 365, None));
    pass_minutes(&mut world, 42 * 60, 10).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 365)]));
    assert_eq!(record(&world, plan.record.id).await.state, BackfillState::Finished);
    let (backfilled, scheduled): (Vec<_>, Vec<_>) =
        world.runs("daily").await.into_iter().partition(|found| found.facts.trigger_kind == "backfill");
    assert_eq!((backfilled.len(), scheduled.len()), (365, 2), "one for each date");
    assert!(backfilled.iter().all(|found| found.run.priority == -100));
    let waited = waits(&world, "live").await;
    assert!(waited.len() > 300 && waited.iter().any(|waited| *waited > TimeDelta::zero()));
    assert!(waited.iter().all(|waited| *waited <= world.takes), "one waited {:?}", waited.iter().max());
    let again = world.runtime.backfills().plan(&year(2)).await.unwrap();
    assert_eq!((again.dates.len(), again.existing.len()), (0, 365));
}

/// How long the first task of each run of a workflow waited for a slot.
async fn waits(world: &World, workflow: &str) -> Vec<TimeDelta> {
    let mut waits = Vec::new();
    for found in world.runs(workflow).await {
        let began = world.began(found.run.id).await.unwrap_or(world.now());
        waits.push(began - found.facts.logical_date.unwrap());
    }
    waits
}

#[tokio::test]
async fn runs_without_a_backfill_do_delay_a_scheduled_run() {
    let mut world = world().await;
    world.set_slots(Some(SLOTS)).await;
    world.write(LIVE).await;
    world.sweep().await;
    for _ in 0..40 {
        world.start_and_deliver("daily").await;
    }
    pass_minutes(&mut world, 3 * 60, 41).await;
    let waited = waits(&world, "live").await;
    assert!(
        waited.iter().any(|waited| *waited > world.takes),
        "the longest wait was {:?}",
        waited.iter().max()
    );
}

#[tokio::test]
async fn a_dry_run_counts_the_dates_and_the_existing_runs_and_estimates_the_duration() {
    let mut world = world().await;
    let week = NewBackfill { from: "2025-03-28".into(), to: "2025-04-01".into(), ..year(1) };
    begin(&mut world, &week).await;
    pass_minutes(&mut world, 60, 8).await;
    let plan = world
        .runtime
        .backfills()
        .plan(&NewBackfill { to: "2025-04-20".into(), ..week.clone() })
        .await
        .unwrap();
    assert_eq!((plan.in_range, plan.existing.len(), plan.dates.len()), (24, 5, 19));
    assert_eq!(plan.expected, Some(TimeDelta::minutes(60)), "three rounds of twenty minutes");
    let at = |text: &str| text.parse::<Instant>().unwrap();
    // Clocks were set forward on the thirtieth.
    assert_eq!(
        plan.existing.keys().copied().take(3).collect::<Vec<_>>(),
        [at("2025-03-28T05:00:00Z"), at("2025-03-29T05:00:00Z"), at("2025-03-30T04:00:00Z")]
    );
    assert_eq!(
        world.store().backfills(TENANT, None, None, 9).await.unwrap().len(),
        1,
        "a dry run starts nothing"
    );
    for wrong in [
        NewBackfill { from: "2025-04-02".into(), ..week.clone() },
        NewBackfill { from: "yesterday".into(), ..week.clone() },
        NewBackfill { max_parallel: 0, ..week.clone() },
        NewBackfill { weight: 0, ..week.clone() },
        NewBackfill { weight: 10, ..week.clone() },
        NewBackfill { version: Some(7), ..week.clone() },
        NewBackfill { schedule: Some("nightly".into()), ..week.clone() },
        NewBackfill { workflow: "nobody".into(), ..week },
    ] {
        assert!(world.runtime.backfills().plan(&wrong).await.is_err(), "{wrong:?}");
    }
}

#[tokio::test]
async fn a_paused_backfill_starts_nothing_and_a_cancelled_one_cancels_its_runs_until_it_is_resumed() {
    let mut world = world().await;
    let id = begin(&mut world, &year(1)).await.record.id;
    pass_minutes(&mut world, 45, 8).await;
    assert_eq!(world.runtime.backfills().steer(id, Steer::Pause, "ada").await.unwrap(), Some(true));
    pass_minutes(&mut world, 60, 8).await;
    let done = counts(&[("succeeded", 24), ("waiting", 341)]);
    assert_eq!(progress(&world, id).await, done, "runs in progress continue");
    assert_eq!(world.runtime.backfills().steer(id, Steer::Pause, "ada").await.unwrap(), Some(true));
    assert_eq!(world.runtime.backfills().steer(id, Steer::Resume, "ada").await.unwrap(), Some(true));
    pass_minutes(&mut world, 5, 8).await;
    assert_eq!(world.runtime.backfills().steer(id, Steer::Cancel, "ada").await.unwrap(), Some(true));
    pass_minutes(&mut world, 60, 0).await;
    assert_eq!(progress(&world, id).await, counts(&[("cancelled", 8), ("succeeded", 24), ("waiting", 333)]));
    assert_eq!(record(&world, id).await.state, BackfillState::Cancelled);
    assert_eq!(world.runtime.backfills().steer(id, Steer::Resume, "ada").await.unwrap(), Some(true));
    pass_minutes(&mut world, 16 * 60, 9).await;
    assert_eq!(progress(&world, id).await, counts(&[("succeeded", 365)]));
    assert_eq!(record(&world, id).await.state, BackfillState::Finished);
    assert_eq!(world.runs("daily").await.len(), 365 + 1, "cancelled runs are re-run");
}

#[tokio::test]
async fn the_sweep_completes_a_cancellation_whose_process_has_died() {
    let mut world = world().await;
    let id = begin(&mut world, &year(1)).await.record.id;
    pass_minutes(&mut world, 5, 8).await;
    // It is marked and one of its runs is cancelled, then the process dies.
    let dying = world.hanging_process().await;
    assert!(dying.backfills().steer(id, Steer::Cancel, "eve").now_or_never().is_none());
    assert_eq!(progress(&world, id).await, counts(&[("cancelled", 1), ("running", 7), ("waiting", 357)]));
    assert!(record(&world, id).await.due_at.is_some());
    pass_minutes(&mut world, 2, 7).await;
    assert_eq!(progress(&world, id).await, counts(&[("cancelled", 8), ("waiting", 357)]));
    let record = record(&world, id).await;
    assert_eq!((record.state, record.due_at), (BackfillState::Cancelled, None), "nothing is left to do");
    assert_eq!(record.cancelled_by.as_deref(), Some("eve"));
}

#[tokio::test]
async fn of_two_backfills_the_heavier_one_is_faster_and_neither_starves() {
    let mut world = world().await;
    world.set_slots(Some(2)).await;
    let (light, heavy) =
        (year(1), NewBackfill { weight: 9, from: "2024-01-01".into(), to: "2024-12-31".into(), ..year(2) });
    let (light, heavy) =
        (begin(&mut world, &light).await.record.id, begin(&mut world, &heavy).await.record.id);
    pass_minutes(&mut world, 10 * 60, 17).await;
    let done =
        async |id| world.store().backfill_runs(id, &[RunState::Succeeded], MAX_DATES).await.unwrap().len();
    let (light, heavy) = (done(light).await, done(heavy).await);
    // Each has at most eight waiting tasks, so the light one gets a slot whenever all of the heavy one's tasks had one.
    assert!(light > 0 && heavy >= 3 * light, "{light} of one, {heavy} of the other");
}

#[tokio::test]
async fn failed_runs_are_re_run_and_no_other_is_touched() {
    let mut world = world().await;
    let january = NewBackfill { to: "2025-01-31".into(), ..year(1) };
    world.fails = Box::new(|date, _| date.is_some_and(|date| date.format("%d").to_string().ends_with('7')));
    let id = begin(&mut world, &january).await.record.id;
    pass_minutes(&mut world, 120, 8).await;
    assert_eq!(progress(&world, id).await, counts(&[("failed", 3), ("succeeded", 28)]));
    let before: BTreeMap<_, _> =
        world.runs("daily").await.into_iter().map(|found| (found.run.id, found.run)).collect();
    world.fails = Box::new(|_, _| false);
    let redo =
        NewBackfill { rerun: Rerun::Failed, max_parallel: 2, id: BackfillId(Uuid::from_u128(2)), ..january };
    let plan = begin(&mut world, &redo).await;
    assert_eq!(plan.dates.len(), 3);
    pass_minutes(&mut world, 120, 2).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 3)]));
    assert_eq!(record(&world, plan.record.id).await.state, BackfillState::Finished);
    for found in world.runs("daily").await {
        let earlier = &before[&found.run.id];
        match earlier.state {
            RunState::Failed => assert_eq!(found.run.state, RunState::Succeeded),
            _ => assert_eq!(&found.run, earlier),
        }
    }
    let all = NewBackfill {
        rerun: Rerun::All,
        to: "2025-01-04".into(),
        id: BackfillId(Uuid::from_u128(3)),
        ..redo
    };
    let plan = begin(&mut world, &all).await;
    pass_minutes(&mut world, 120, 2).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 4)]));
    let again = world
        .runs("daily")
        .await
        .into_iter()
        .filter(|found| found.run.started_at.unwrap() >= plan.record.created_at);
    assert_eq!(again.count(), 4);
}

#[tokio::test]
async fn the_sweep_starts_a_backfill_whose_process_died_before_its_first_run() {
    let mut world = world().await;
    let week = NewBackfill { to: "2025-01-07".into(), max_parallel: 1, ..year(1) };
    let plan = world.runtime.backfills().plan(&week).await.unwrap();
    // The process dies before it starts a run.
    world.store().create_backfill(&plan.record, &plan.dates).await.unwrap();
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("waiting", 7)]));
    world.pass_until(world.now() + TimeDelta::minutes(2)).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("running", 1), ("waiting", 6)]));
}

#[tokio::test]
async fn a_workflow_without_a_schedule_has_a_date_each_day() {
    let mut world = World::at("2026-01-10T12:00:00Z");
    world.write("name: daily\ntasks: [{name: a, type: bash, config: {command: 'true'}}]\n").await;
    let new = NewBackfill { from: "2026-01-01".into(), to: "2026-02-01".into(), ..year(1) };
    let plan = begin(&mut world, &new).await;
    assert_eq!(
        (plan.record.schedule.as_str(), plan.dates.len()),
        (Schedule::ONLY, 10),
        "none of them in the future"
    );
}
