//! Schedules and backfills of a tenant with as many unfinished runs as it may have: they wait, and no date is lost.

use chrono::TimeDelta;
use model::BackfillId;
use runtime::NewBackfill;
use store::{BackfillState, Rerun};
use uuid::Uuid;

use crate::backfill::{begin, counts, pass_minutes, progress, record, world, year};
use crate::world::World;

const LONG: &str = "{name: long, tasks: [{name: a, type: bash, config: {command: 'true'}}]}";

fn every_ten_minutes(catchup: &str) -> String {
    format!(
        "{{name: often, schedule: {{cron: '*/10 * * * *', timezone: UTC, catchup: {catchup}}}, \
         tasks: [{{name: a, type: bash, config: {{command: 'true'}}}}]}}"
    )
}

#[tokio::test]
async fn a_schedule_waits_for_room_and_then_makes_every_run_it_owes_whatever_its_policy() {
    for catchup in ["all", "latest", "none"] {
        let mut world = World::at("2026-01-01T12:05:00Z").limited(1);
        world.write(&every_ten_minutes(catchup)).await;
        world.write(LONG).await;
        let long = world.start("long").await;
        for minute in 6..=45 {
            world.sweep_at(&format!("2026-01-01T12:{minute:02}:00Z")).await;
        }
        assert_eq!(world.dates("often").await, [""; 0], "{catchup}: there is no room");
        let problem = world.schedule("often", "default").await.problem.unwrap();
        assert!(problem.contains("2026-01-01T12:10") && problem.contains("EBB_QUOTA_RUNS"), "{problem}");
        world.cancel(long).await;
        world.takes = TimeDelta::seconds(10);
        world.pass_until("2026-01-01T13:05:00Z".parse().unwrap()).await;
        let expected = ["10", "20", "30", "40", "50"].map(|minute| format!("01-01T12:{minute}"));
        let expected: Vec<String> = expected.into_iter().chain(["01-01T13:00".to_owned()]).collect();
        assert_eq!(world.dates("often").await, expected, "{catchup}: each date once");
        assert_eq!(world.schedule("often", "default").await.problem, None);
    }
}

#[tokio::test]
async fn a_backfill_slows_down_where_its_tenant_has_no_room() {
    let mut world = world().await.limited(2);
    let short = NewBackfill { to: "2025-01-10".into(), ..year(1) };
    let plan = begin(&mut world, &short).await;
    let waiting = record(&world, plan.record.id).await;
    assert_eq!(waiting.state, BackfillState::Running, "{:?}", waiting.problem);
    assert!(waiting.problem.is_some_and(|problem| problem.contains("EBB_QUOTA_RUNS")));
    pass_minutes(&mut world, 3 * 60, 2).await;
    assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 10)]));
    let ended = record(&world, plan.record.id).await;
    assert_eq!((ended.state, ended.problem), (BackfillState::Finished, None));
}

#[tokio::test]
async fn reruns_of_a_backfill_wait_for_room_like_new_runs() {
    for rerun in [Rerun::All, Rerun::Failed] {
        let mut world = world().await;
        let short = NewBackfill { to: "2025-01-10".into(), ..year(1) };
        world.fails = Box::new(|date, _| date.is_some());
        begin(&mut world, &short).await;
        pass_minutes(&mut world, 60, 8).await;
        world.fails = Box::new(|_, _| false);
        let mut world = world.limited(2);
        let again = NewBackfill { rerun, id: BackfillId(Uuid::from_u128(2)), ..short };
        let plan = begin(&mut world, &again).await;
        assert_eq!(plan.dates.len(), 10);
        let waiting = record(&world, plan.record.id).await;
        assert_eq!(waiting.state, BackfillState::Running, "{:?}", waiting.problem);
        assert!(waiting.problem.is_some_and(|problem| problem.contains("EBB_QUOTA_RUNS")), "{rerun:?}");
        pass_minutes(&mut world, 3 * 60, 2).await;
        assert_eq!(progress(&world, plan.record.id).await, counts(&[("succeeded", 10)]));
        let ended = record(&world, plan.record.id).await;
        assert_eq!((ended.state, ended.problem), (BackfillState::Finished, None));
    }
}
