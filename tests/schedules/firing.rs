//! One schedule at a time: catching up, pausing, changing, several on one workflow.

use model::{Catchup, Instant};
use store::Pause;

use crate::world::{TENANT, World};

const TASKS: &str = "tasks: [{name: a, type: bash, config: {command: 'true'}}]";

async fn hourly(catchup: &str, more: &str) -> World {
    let world = World::at("2026-01-01T00:30:00Z");
    world
        .write(&format!("name: w\nschedule: {{cron: '@hourly', catchup: {catchup}{more}}}\n{TASKS}\n"))
        .await;
    world
}

#[tokio::test]
async fn a_scheduled_run_has_its_instant_and_the_interval_since_the_previous_one() {
    let mut world = hourly("none", "").await;
    world.sweep_at("2026-01-01T00:30:00Z").await;
    assert_eq!(world.dates("w").await, [""; 0], "instants before the registration are not made up for");
    world.sweep_at("2026-01-01T01:00:00.4Z").await;
    let run = world.runs("w").await.remove(0);
    let interval = run.facts.planned.clone().unwrap().interval;
    let at = |text: &str| text.parse::<Instant>().unwrap();
    assert_eq!(run.facts.logical_date, Some(at("2026-01-01T01:00:00Z")));
    assert_eq!((interval.start, interval.end), (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z")));
    assert_eq!(run.run.created_at, at("2026-01-01T01:00:00.4Z"));
    assert_eq!(
        (run.facts.trigger_kind.as_str(), run.facts.trigger_by.as_str()),
        ("schedule", "schedule default")
    );
    let schedule = world.schedule("w", "default").await;
    assert_eq!(schedule.due_at, Some(at("2026-01-01T02:00:00Z")));
    assert_eq!(calendar::Drift::from_counts(&schedule.drift).percentile(99), Some(500));
}

#[tokio::test]
async fn missed_instants_are_caught_up_as_the_schedule_says() {
    for (catchup, expected) in [
        ("all", &["01-01T01:00", "01-01T02:00", "01-01T03:00", "01-01T04:00"][..]),
        ("latest", &["01-01T01:00", "01-01T04:00"]),
        ("none", &["01-01T01:00"]),
    ] {
        let mut world = hourly(catchup, "").await;
        world.sweep_at("2026-01-01T01:00:00Z").await;
        world.sweep_at("2026-01-01T04:30:00Z").await;
        assert_eq!(world.dates("w").await, expected, "{catchup}");
        // A run that is only a minute late is not missed.
        world.sweep_at("2026-01-01T05:01:00Z").await;
        assert_eq!(world.dates("w").await.last().unwrap(), "01-01T05:00", "{catchup}");
    }
}

#[tokio::test]
async fn catchup_creates_at_most_cap_runs_at_once() {
    let mut world = hourly("all", ", cap: 2").await;
    world.sweep_at("2026-01-01T05:30:00Z").await;
    assert_eq!(world.dates("w").await, ["01-01T01:00", "01-01T02:00"]);
    world.sweep_at("2026-01-01T05:30:59Z").await;
    assert_eq!(world.dates("w").await.len(), 2, "the others follow a minute later");
    world.sweep_at("2026-01-01T05:31:00Z").await;
    world.sweep_at("2026-01-01T05:32:00Z").await;
    assert_eq!(world.dates("w").await.len(), 5);
    let due_at = world.schedule("w", "default").await.due_at;
    assert_eq!(due_at, Some("2026-01-01T06:00:00Z".parse().unwrap()));
}

#[tokio::test]
async fn resuming_a_schedule_chooses_what_happens_to_missed_instants() {
    for (missed, expected) in [
        (Some(Catchup::All), &["01-01T01:00", "01-01T02:00", "01-01T03:00"][..]),
        (Some(Catchup::Latest), &["01-01T03:00"]),
        (Some(Catchup::None), &[]),
        (None, &["01-01T03:00"]),
    ] {
        let mut world = hourly("latest", "").await;
        let pause = Pause { at: world.now(), by: "ada".into(), reason: None };
        world.runtime.schedules().pause(TENANT, "w", "default", pause).await.unwrap().unwrap();
        world.sweep_at("2026-01-01T03:00:30Z").await;
        assert_eq!(world.dates("w").await, [""; 0], "a paused schedule creates no runs");
        world.runtime.schedules().resume(TENANT, "w", "default", missed).await.unwrap().unwrap();
        world.sweep_at("2026-01-01T03:00:31Z").await;
        assert_eq!(world.dates("w").await, expected, "{missed:?}");
        world.sweep_at("2026-01-01T04:00:00Z").await;
        assert_eq!(world.dates("w").await.len(), expected.len() + 1, "it continues");
    }
}

#[tokio::test]
async fn instants_missed_while_no_sweep_was_up_are_chosen_by_a_resume_before_the_next_sweep() {
    for (catchup, missed, expected) in [
        ("none", Some(Catchup::All), &["01-01T01:00", "01-01T02:00", "01-01T03:00", "01-01T04:00"][..]),
        ("all", Some(Catchup::Latest), &["01-01T01:00", "01-01T03:00", "01-01T04:00"]),
        ("all", Some(Catchup::None), &["01-01T01:00", "01-01T04:00"]),
        ("latest", None, &["01-01T01:00", "01-01T04:00"]),
    ] {
        let mut world = hourly(catchup, "").await;
        world.sweep_at("2026-01-01T01:00:00Z").await;
        // The fourth is on time and always created.
        world.clock.set("2026-01-01T04:00:30Z".parse().unwrap());
        world.runtime.schedules().resume(TENANT, "w", "default", missed).await.unwrap().unwrap();
        world.sweep_at("2026-01-01T04:00:31Z").await;
        assert_eq!(world.dates("w").await, expected, "{catchup}, {missed:?}");
        world.runtime.schedules().resume(TENANT, "w", "default", Some(Catchup::All)).await.unwrap().unwrap();
        world.sweep_at("2026-01-01T05:00:00Z").await;
        assert_eq!(world.dates("w").await.len(), expected.len() + 1, "the choice is final");
    }
}

#[tokio::test]
async fn a_changed_schedule_takes_effect_at_once() {
    let mut world = hourly("all", "").await;
    world.sweep_at("2026-01-01T01:00:00Z").await;
    world.clock.set("2026-01-01T01:10:00Z".parse().unwrap());
    world.write(&format!("name: w\nschedule: {{cron: '15 * * * *', catchup: all}}\n{TASKS}\n")).await;
    world.sweep_at("2026-01-01T01:10:00Z").await;
    world.sweep_at("2026-01-01T02:15:00Z").await;
    assert_eq!(world.dates("w").await, ["01-01T01:00", "01-01T01:15", "01-01T02:15"]);
    world.write(&format!("name: w\n{TASKS}\n")).await;
    world.sweep_at("2026-01-01T09:00:00Z").await;
    assert_eq!(world.dates("w").await.len(), 3, "without a schedule nothing runs by itself");
}

#[tokio::test]
async fn several_schedules_have_their_own_dates_and_inputs() {
    let mut world = World::at("2026-01-01T00:30:00Z");
    let text = "name: w
inputs:
  region: {type: string}
  day: {type: date, default: '{{ run.data_interval_start }}'}
schedules:
  - {name: us, cron: '0 1 * * *', inputs: {region: us}}
  - {name: eu, cron: '0 1 * * *', inputs: {region: '{{ run.trigger }}'}}
  - {name: often, every: 30m, inputs: {region: x}}
  - {name: once, at: '2026-01-01T01:00:00Z', inputs: {region: y}}
  - {name: resting, every: 1m, paused: true, inputs: {region: z}}";
    world.write(&format!("{text}\n{TASKS}\n")).await;
    world.sweep_at("2026-01-01T00:30:00Z").await;
    world.sweep_at("2026-01-01T01:00:00Z").await;
    let given = |run: &store::RunRecord| {
        let text = |name: &str| run.facts.inputs[name].as_str().unwrap().to_owned();
        (run.facts.planned.as_ref().unwrap().schedule.clone(), text("region"), text("day"))
    };
    let mut given: Vec<_> = world.runs("w").await.iter().map(given).collect();
    given.sort();
    let row =
        |schedule: &str, region: &str, day: &str| (schedule.to_owned(), region.to_owned(), day.to_owned());
    assert_eq!(
        given,
        [
            row("eu", "schedule", "2025-12-31"),
            row("often", "x", "2026-01-01"),
            row("once", "y", "2026-01-01"),
            row("us", "us", "2025-12-31"),
        ]
    );
    assert_eq!(world.schedule("w", "once").await.due_at, None, "once is once");
}

#[tokio::test]
async fn a_schedule_with_invalid_inputs_reports_the_problem_and_continues() {
    let mut world = World::at("2026-01-01T00:30:00Z");
    let text = "name: w\ninputs: {n: {type: integer}}\nschedule: {every: 1h, inputs: {n: '{{ run.id }}'}}";
    world.write(&format!("{text}\n{TASKS}\n")).await;
    world.sweep_at("2026-01-01T01:00:00Z").await;
    let schedule = world.schedule("w", "default").await;
    assert!(schedule.problem.as_ref().unwrap().starts_with("no run for 2026-01-01T01:00:00"), "{schedule:?}");
    assert_eq!(schedule.due_at, Some("2026-01-01T02:00:00Z".parse().unwrap()));
}
