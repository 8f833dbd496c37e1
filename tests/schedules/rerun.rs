//! Backfills whose outputs or version are deleted, and the intervals of their runs.

use chrono::TimeDelta;
use model::{BackfillId, Instant, RunState, TaskIndex};
use runtime::NewBackfill;
use serde_json::json;
use store::{BackfillRecord, BackfillState, Part, Rerun, RunRecord};
use uuid::Uuid;

use crate::backfill::{begin, counts, pass_minutes, progress, record, world, year};
use crate::world::World;

/// Deletes the outputs of the runs of `daily`, as the sweep does after a week.
async fn delete_outputs(world: &mut World) {
    world.clock.advance(TimeDelta::days(8));
    for state in [RunState::Succeeded, RunState::Failed] {
        let runs = world.store().expired(Part::Outputs, state, world.now()).await.unwrap();
        world.store().forget(Part::Outputs, &runs).await.unwrap();
    }
}

#[tokio::test]
async fn runs_whose_outputs_are_deleted_are_re_run_as_a_whole() {
    for (rerun, redone) in [(Rerun::Failed, 3), (Rerun::All, 31)] {
        let mut world = world().await;
        let january = NewBackfill { to: "2025-01-31".into(), ..year(1) };
        let second = TaskIndex(1);
        let sevens = |date: Instant| date.format("%d").to_string().ends_with('7');
        world.fails = Box::new(move |date, task| task == second && date.is_some_and(sevens));
        let id = begin(&mut world, &january).await.record.id;
        pass_minutes(&mut world, 120, 8).await;
        assert_eq!(progress(&world, id).await, counts(&[("failed", 3), ("succeeded", 28)]));
        delete_outputs(&mut world).await;
        world.fails = Box::new(|_, _| false);
        let again = NewBackfill { rerun, id: BackfillId(Uuid::from_u128(2)), ..january };
        let plan = begin(&mut world, &again).await;
        assert_eq!(plan.dates.len(), redone);
        pass_minutes(&mut world, 180, 40).await;
        assert_eq!(
            progress(&world, plan.record.id).await,
            counts(&[("succeeded", redone as u32)]),
            "{rerun:?}"
        );
        let ended = record(&world, plan.record.id).await;
        assert_eq!((ended.state, ended.problem), (BackfillState::Finished, None));
        let of_january = |found: &RunRecord| found.facts.trigger_kind == "backfill";
        for found in world.runs("daily").await.into_iter().filter(of_january) {
            let first = world.began(found.run.id).await.unwrap();
            let is_rerun = rerun == Rerun::All || found.facts.logical_date.is_some_and(sevens);
            assert_eq!(
                first >= plan.record.created_at,
                is_rerun,
                "{rerun:?}: {:?}",
                found.facts.logical_date
            );
        }
    }
}

#[tokio::test]
async fn a_backfill_whose_version_is_missing_pauses_with_the_reason_and_can_be_resumed() {
    let mut world = world().await;
    let plan =
        world.runtime.backfills().plan(&NewBackfill { to: "2025-01-04".into(), ..year(1) }).await.unwrap();
    let id = plan.record.id;
    let of_a_version = BackfillRecord { version: Some(2), ..plan.record.clone() };
    world.store().create_backfill(&of_a_version, &plan.dates).await.unwrap();
    pass_minutes(&mut world, 3, 0).await;
    let stumbled = record(&world, id).await;
    assert_eq!((stumbled.state, stumbled.due_at), (BackfillState::Paused, None));
    assert!(stumbled.problem.is_some_and(|problem| problem.contains("no version 2")));
    assert_eq!(progress(&world, id).await, counts(&[("waiting", 4)]), "no date is claimed");
    world.write("name: daily\nschedule: {cron: '0 6 * * *', timezone: Europe/Berlin}\ntasks: [{name: a, type: bash, config: {command: echo}}]\n").await;
    world.runtime.backfills().steer(id, runtime::Steer::Resume, "ada").await.unwrap();
    pass_minutes(&mut world, 60, 8).await;
    assert_eq!(progress(&world, id).await, counts(&[("succeeded", 4)]));
}

const GIVEN: &str = "name: daily
schedule: {cron: '0 6 * * *', timezone: Europe/Berlin}
tasks:
  - name: a
    type: bash
    config:
      command: 'true'
      env:
        FROM: '{{ run.data_interval_start }}'
        TO: '{{ run.data_interval_end }}'
        DATE: '{{ run.logical_date }}'
";

#[tokio::test]
async fn the_runs_of_a_backfill_have_the_chosen_version_and_their_data_interval() {
    let mut world = world().await;
    world.write(GIVEN).await;
    let four = NewBackfill { to: "2025-04-01".into(), from: "2025-03-29".into(), ..year(1) };
    for (number, version) in [(1, Some(1)), (2, Some(2))] {
        let later = TimeDelta::days(10 * (number - 1));
        let day = |text: &str| (text.parse::<chrono::NaiveDate>().unwrap() - later).to_string();
        let id = BackfillId(Uuid::from_u128(number as u128));
        begin(
            &mut world,
            &NewBackfill { id, version, from: day(&four.from), to: day(&four.to), ..four.clone() },
        )
        .await;
        pass_minutes(&mut world, 60, 9).await;
        let label = json!(id.to_string());
        let mut runs = world.runs("daily").await;
        runs.retain(|found| found.facts.labels.get("backfill") == Some(&label));
        assert_eq!(runs.len(), 4);
        assert!(runs.iter().all(|found| Some(found.version_number) == version), "{version:?}");
    }
    // Clocks were set forward on the thirtieth of March: that day has 23 hours.
    let at = |text: &str| Some(text.parse::<Instant>().unwrap());
    let again = NewBackfill { id: BackfillId(Uuid::from_u128(3)), rerun: Rerun::All, ..four.clone() };
    assert_eq!(world.runtime.backfills().plan(&again).await.unwrap().dates.len(), 4);
    let again = NewBackfill { from: "2026-03-29".into(), to: "2026-03-29".into(), ..again };
    world.clock.set("2026-04-01T00:00:00Z".parse().unwrap());
    begin(&mut world, &again).await;
    let all = world.runs("daily").await;
    let of = |date: Option<Instant>| all.iter().find(|found| found.facts.logical_date == date).unwrap();
    let given = world.config(of(at("2026-03-29T04:00:00Z"))).await;
    assert_eq!(
        given["env"],
        json!({"FROM": "2026-03-28T05:00:00Z", "TO": "2026-03-29T04:00:00Z", "DATE": "2026-03-29T04:00:00Z"})
    );
}

#[tokio::test]
async fn a_scheduled_run_has_its_data_interval() {
    let mut world = World::at("2026-03-28T12:00:00Z");
    world.write(GIVEN).await;
    world.sweep_at("2026-03-29T04:00:01Z").await;
    let run = world.runs("daily").await.remove(0);
    assert_eq!(
        world.config(&run).await["env"],
        json!({"FROM": "2026-03-28T05:00:00Z", "TO": "2026-03-29T04:00:00Z", "DATE": "2026-03-29T04:00:00Z"})
    );
}
