//! A year of dates, a few at a time, beside a schedule that must not wait for it.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use futures::FutureExt;
use model::{BackfillId, Instant, RunState, Schedule};
use runtime::{BackfillPlan, NewBackfill, Steer};
use store::{BackfillRecord, BackfillState, Rerun};
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

const PLACES: u32 = 5;

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
    world.places(Some(8)).await;
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

pub(crate) async fn progress(world: &World, id: BackfillId) -> Vec<(String, u32)> {
    world.store().backfill_progress(id).await.unwrap().into_iter().collect()
}

pub(crate) fn counts(pairs: &[(&str, u32)]) -> Vec<(String, u32)> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Lives on by so many minutes, and looks after each that no more runs go on than may.
pub(crate) async fn live(world: &mut World, minutes: i64, most: usize) {
    for _ in 0..minutes {
        world.live_until(world.now() + TimeDelta::minutes(1)).await;
        let going_on = world.runs("daily").await.iter().filter(|found| !found.run.state.is_final()).count();
        assert!(going_on <= most, "{going_on} runs go on at {}", world.now());
    }
}

#[tokio::test]
async fn a_year_is_made_up_for_and_no_scheduled_run_waits_longer_than_for_one_task() {
    let mut world = world().await;
    // Fewer places than its tasks want, so that some of them always stand in line.
    world.places(Some(PLACES)).await;
    world.write(LIVE).await;
    world.sweep().await;
    let plan = begin(&mut world, &year(1)).await;
    assert_eq!((plan.in_range, plan.dates.len(), plan.expected), (365, 365, None));
    live(&mut world, 42 * 60, 10).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 365)]));
    assert_eq!(record(&world, plan.record.id).await.state, BackfillState::Finished);
    let (made, scheduled): (Vec<_>, Vec<_>) =
        world.runs("daily").await.into_iter().partition(|found| found.facts.trigger_kind == "backfill");
    assert_eq!((made.len(), scheduled.len()), (365, 2), "one for each date");
    assert!(made.iter().all(|found| found.run.priority == -100));
    let waited = waits(&world, "live").await;
    assert!(waited.len() > 300 && waited.iter().any(|waited| *waited > TimeDelta::zero()));
    assert!(waited.iter().all(|waited| *waited <= world.takes), "one waited {:?}", waited.iter().max());
    let again = world.runtime.backfills().plan(&year(2)).await.unwrap();
    assert_eq!((again.dates.len(), again.existing.len()), (0, 365));
}

/// How long the first task of each run of a workflow waited for its place.
async fn waits(world: &World, workflow: &str) -> Vec<TimeDelta> {
    let mut waits = Vec::new();
    for found in world.runs(workflow).await {
        let began = world.began(found.run.id).await.unwrap_or(world.now());
        waits.push(began - found.facts.logical_date.unwrap());
    }
    waits
}

#[tokio::test]
async fn runs_that_are_of_no_backfill_do_let_a_scheduled_run_wait_longer() {
    let mut world = world().await;
    world.places(Some(PLACES)).await;
    world.write(LIVE).await;
    world.sweep().await;
    for number in 0..40 {
        world.start("daily", number).await;
    }
    live(&mut world, 3 * 60, 41).await;
    let waited = waits(&world, "live").await;
    assert!(
        waited.iter().any(|waited| *waited > world.takes),
        "the longest wait was {:?}",
        waited.iter().max()
    );
}

#[tokio::test]
async fn a_dry_run_says_how_many_which_exist_and_how_long_it_takes() {
    let mut world = world().await;
    let week = NewBackfill { from: "2025-03-28".into(), to: "2025-04-01".into(), ..year(1) };
    begin(&mut world, &week).await;
    live(&mut world, 60, 8).await;
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
    assert_eq!(world.store().backfills(TENANT, None, None, 9).await.unwrap().len(), 1, "nothing was begun");
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
async fn one_that_is_paused_begins_nothing_and_one_that_is_cancelled_ends_its_runs_until_it_is_resumed() {
    let mut world = world().await;
    let id = begin(&mut world, &year(1)).await.record.id;
    live(&mut world, 45, 8).await;
    assert_eq!(world.runtime.backfills().steer(id, Steer::Pause, "ada").await.unwrap(), Some(true));
    live(&mut world, 60, 8).await;
    let done = counts(&[("succeeded", 24), ("waiting", 341)]);
    assert_eq!(progress(&world, id).await, done, "those under way went on");
    assert_eq!(world.runtime.backfills().steer(id, Steer::Pause, "ada").await.unwrap(), Some(true));
    assert_eq!(world.runtime.backfills().steer(id, Steer::Resume, "ada").await.unwrap(), Some(true));
    live(&mut world, 5, 8).await;
    assert_eq!(world.runtime.backfills().steer(id, Steer::Cancel, "ada").await.unwrap(), Some(true));
    live(&mut world, 60, 0).await;
    assert_eq!(progress(&world, id).await, counts(&[("cancelled", 8), ("succeeded", 24), ("waiting", 333)]));
    assert_eq!(record(&world, id).await.state, BackfillState::Cancelled);
    assert_eq!(world.runtime.backfills().steer(id, Steer::Resume, "ada").await.unwrap(), Some(true));
    live(&mut world, 16 * 60, 9).await;
    assert_eq!(progress(&world, id).await, counts(&[("succeeded", 365)]));
    assert_eq!(record(&world, id).await.state, BackfillState::Finished);
    assert_eq!(world.runs("daily").await.len(), 365 + 1, "what was cancelled was done anew");
}

#[tokio::test]
async fn a_cancellation_is_completed_by_the_sweep_if_whoever_asked_for_it_dies() {
    let mut world = world().await;
    let id = begin(&mut world, &year(1)).await.record.id;
    live(&mut world, 5, 8).await;
    // It is marked, one of its runs is cancelled, and then the process is no more.
    let dying = world.dying_twin();
    assert!(dying.backfills().steer(id, Steer::Cancel, "eve").now_or_never().is_none());
    assert_eq!(progress(&world, id).await, counts(&[("cancelled", 1), ("running", 7), ("waiting", 357)]));
    assert!(record(&world, id).await.due_at.is_some());
    live(&mut world, 2, 7).await;
    assert_eq!(progress(&world, id).await, counts(&[("cancelled", 8), ("waiting", 357)]));
    let record = record(&world, id).await;
    assert_eq!((record.state, record.due_at), (BackfillState::Cancelled, None), "there is no more to do");
    assert_eq!(record.cancelled_by.as_deref(), Some("eve"));
}

#[tokio::test]
async fn of_two_backfills_the_heavier_one_is_done_sooner_and_neither_starves() {
    let mut world = world().await;
    world.places(Some(2)).await;
    let (light, heavy) =
        (year(1), NewBackfill { weight: 9, from: "2024-01-01".into(), to: "2024-12-31".into(), ..year(2) });
    let (light, heavy) =
        (begin(&mut world, &light).await.record.id, begin(&mut world, &heavy).await.record.id);
    live(&mut world, 10 * 60, 17).await;
    let done = async |id| world.store().backfill_progress(id).await.unwrap()["succeeded"];
    let (light, heavy) = (done(light).await, done(heavy).await);
    // Each has eight tasks in line at most, so the light one gets a turn whenever all of the heavy one's had theirs.
    assert!(light > 0 && heavy >= 3 * light, "{light} of one, {heavy} of the other");
}

#[tokio::test]
async fn what_failed_is_done_anew_and_nothing_else_is_touched() {
    let mut world = world().await;
    let january = NewBackfill { to: "2025-01-31".into(), ..year(1) };
    world.fails = Box::new(|date, _| date.is_some_and(|date| date.format("%d").to_string().ends_with('7')));
    let id = begin(&mut world, &january).await.record.id;
    live(&mut world, 120, 8).await;
    assert_eq!(progress(&world, id).await, counts(&[("failed", 3), ("succeeded", 28)]));
    let before: BTreeMap<_, _> =
        world.runs("daily").await.into_iter().map(|found| (found.run.id, found.run)).collect();
    world.fails = Box::new(|_, _| false);
    let redo =
        NewBackfill { rerun: Rerun::Failed, max_parallel: 2, id: BackfillId(Uuid::from_u128(2)), ..january };
    let plan = begin(&mut world, &redo).await;
    assert_eq!(plan.dates.len(), 3);
    live(&mut world, 120, 2).await;
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
    live(&mut world, 120, 2).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 4)]));
    let again = world
        .runs("daily")
        .await
        .into_iter()
        .filter(|found| found.run.started_at.unwrap() >= plan.record.created_at);
    assert_eq!(again.count(), 4);
}

#[tokio::test]
async fn if_nobody_hears_that_a_run_ended_the_sweep_finds_it() {
    let mut world = world().await;
    let week = NewBackfill { to: "2025-01-07".into(), max_parallel: 1, ..year(1) };
    let plan = world.runtime.backfills().plan(&week).await.unwrap();
    // The process dies before anything of it begins.
    world.store().create_backfill(&plan.record, &plan.dates).await.unwrap();
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("waiting", 7)]));
    world.live_until(world.now() + TimeDelta::minutes(2)).await;
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
