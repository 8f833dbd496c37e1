//! A run is due while an earlier one of its schedule is active.

use chrono::TimeDelta;
use model::RunState;

use crate::world::World;

const TASKS: &str = "tasks: [{name: a, type: bash, config: {command: 'true'}}]";

/// The runs of an hourly schedule after three hours. Each takes an hour and a half.
async fn three_hours(schedule: &str) -> Vec<(String, RunState)> {
    let mut world = World::at("2026-01-01T00:30:00Z");
    world.takes = TimeDelta::minutes(90);
    world.write(&format!("name: w\n{schedule}\n{TASKS}\n")).await;
    world.sweep().await;
    world.pass_until("2026-01-01T03:15:00Z".parse().unwrap()).await;
    let dates = world.dates("w").await.into_iter();
    dates.zip(world.runs("w").await.into_iter().map(|found| found.run.state)).collect()
}

fn lines(found: &[(String, RunState)]) -> Vec<String> {
    found.iter().map(|(date, state)| format!("{} {}", &date[6..], state.name())).collect()
}

#[tokio::test]
async fn by_default_runs_overlap() {
    let found = three_hours("schedule: {cron: '@hourly'}").await;
    assert_eq!(lines(&found), ["01:00 succeeded", "02:00 running", "03:00 running"]);
}

#[tokio::test]
async fn a_run_beyond_the_limit_waits_is_skipped_or_cancels_the_previous_one() {
    for (overlap, expected) in [
        ("queue", vec!["01:00 succeeded", "02:00 running", "03:00 queued"]),
        ("skip", vec!["01:00 succeeded", "03:00 running"]),
        ("cancel_previous", vec!["01:00 cancelled", "02:00 cancelled", "03:00 running"]),
    ] {
        let one = format!("schedule: {{cron: '@hourly', max_active_runs: 1, overlap: {overlap}}}");
        assert_eq!(lines(&three_hours(&one).await), expected);
        // With several schedules, each has its own limit.
        let many = format!(
            "schedules: [{{name: x, cron: '@hourly', overlap: {overlap}}}, {{name: y, at: '2030-01-01'}}]"
        );
        assert_eq!(lines(&three_hours(&many).await), expected);
    }
}
