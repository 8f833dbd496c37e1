//! Schedules on a real Postgres: three concurrent sweeps create one run for each instant.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use language::{Definition, FileKind};
use model::{Clock, Instant, RunState, TenantId};
use runtime::NewBackfill;
use store::{BackfillState, NewVersion, Rerun, RunFilter};
use testkit::ManualClock;
use uuid::Uuid;

use crate::world::World;

const HOURS: i64 = 30;

#[tokio::test]
async fn three_concurrent_sweeps_create_one_run_for_each_instant() {
    let world = World::new().await;
    let texts = [
        "name: one\nschedule: {cron: '@hourly', timezone: Asia/Kolkata, catchup: all}\ntasks: [{name: a, type: noop}]",
        "name: two\nschedules: [{name: x, every: 1h, catchup: all}, {name: y, every: 2h, catchup: all}]\ntasks: [{name: a, type: noop}]",
    ];
    let start = world.now();
    let clock = ManualClock::at(&start.to_rfc3339());
    // A schedule begins when it is registered: at the same instant, so that no hour begins in between.
    let new: Vec<NewVersion> = testkit::compile(&texts.map(|text| (FileKind::Workflow, text)))
        .into_iter()
        .map(|Definition { workflow, source, hash }| NewVersion {
            tenant: TenantId::DEFAULT,
            workflow,
            source,
            hash,
            by: "test".into(),
            at: start,
        })
        .collect();
    world.store().register_all(&new).await.unwrap();
    let mut sweeps = Vec::new();
    for _ in 0..3 {
        sweeps.push(world.process(clock.clone()).await);
    }
    for hours in [0, 1, 2, HOURS] {
        clock.set(start + TimeDelta::hours(hours));
        let now = clock.now();
        let fired = sweeps.iter().map(|runtime| runtime.schedules().fire(now, 100));
        futures::future::try_join_all(fired).await.unwrap();
    }
    world.bus.idle().await;
    let filter = RunFilter { limit: 1_000, ..RunFilter::default() };
    let runs = world.store().runs(TenantId::DEFAULT, &filter).await.unwrap();
    let dates: Vec<(String, String, Instant)> = runs
        .iter()
        .map(|found| {
            let schedule = found.facts.planned.as_ref().unwrap().schedule.clone();
            (found.run.workflow.clone(), schedule, found.facts.logical_date.unwrap())
        })
        .collect();
    assert_eq!(dates.iter().collect::<BTreeSet<_>>().len(), dates.len(), "no date has two runs");
    let of = |schedule: &str| dates.iter().filter(|(_, name, _)| name == schedule).count() as i64;
    assert_eq!((of("default"), of("x"), of("y")), (HOURS, HOURS, HOURS / 2));
    assert!(runs.iter().all(|found| found.run.state.is_final()), "each of them has finished");
}

#[tokio::test]
async fn a_backfill_continues_until_every_date_has_its_run() {
    let world = World::new().await;
    let text =
        "name: daily\nschedule: {cron: '@daily'}\ntasks: [{name: a, type: bash, config: {command: 'true'}}]";
    world.write(text).await;
    let new = NewBackfill {
        id: model::BackfillId(Uuid::now_v7()),
        tenant: TenantId::DEFAULT,
        workflow: "daily".into(),
        schedule: None,
        from: "2025-01-01".into(),
        to: "2025-01-20".into(),
        weight: 1,
        max_parallel: 3,
        rerun: Rerun::Missing,
        version: None,
        by: "test".into(),
    };
    let plan = world.runtime.backfills().plan(&new).await.unwrap();
    world.runtime.backfills().start(&plan).await.unwrap();
    world.bus.idle().await;
    let store = world.store();
    assert_eq!(store.any_backfill(new.id).await.unwrap().unwrap().state, BackfillState::Finished);
    let runs = store.backfill_runs(new.id, &RunState::ALL, 100).await.unwrap();
    assert_eq!(runs.len(), 20);
    assert!(runs.iter().all(|(_, state)| *state == RunState::Succeeded), "{runs:?}");
}
