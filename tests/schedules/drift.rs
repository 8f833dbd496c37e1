//! The sweep over hours of virtual time: ticks arrive late, and runs are still created on time.

use std::sync::Arc;

use chrono::{DurationRound, TimeDelta};
use model::Instant;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::RunRecord;
use sweep::Sweep;
use testkit::run_others;
use tokio::task::JoinHandle;

use crate::world::World;

const WORKFLOWS: [(&str, &str); 3] = [
    ("minutely", "{cron: '* * * * *', timezone: America/New_York}"),
    ("often", "{cron: '*/5 * * * *', timezone: Australia/Lord_Howe}"),
    ("hourly", "{cron: '@hourly', timezone: Europe/Berlin}"),
];

/// The maximum delay of a scheduler tick, in milliseconds.
const MAX_TICK_DELAY: i64 = 5_000;

/// Lets time pass until `end`: each minute one of the instances is ticked, a little late, and those that stay up wake when
/// something is due. Returns how long the longest tick took.
async fn pass_until(world: &World, sweeps: &[Arc<Sweep>], end: Instant, random: &mut StdRng) -> TimeDelta {
    let minute = TimeDelta::minutes(1);
    let mut full = world.now().duration_trunc(minute).unwrap();
    let mut ticks: Vec<(Instant, JoinHandle<()>)> = Vec::new();
    let mut longest = TimeDelta::zero();
    while full < end {
        let tick = full + TimeDelta::milliseconds(random.random_range(0..=MAX_TICK_DELAY));
        while let Some(due) =
            world.store().agenda(world.now()).await.unwrap().next_timer.filter(|due| *due < tick)
        {
            world.clock.set(due);
            run_others().await;
        }
        world.clock.set(tick);
        let sweep = sweeps[random.random_range(0..sweeps.len())].clone();
        ticks.push((tick, tokio::spawn(async move { sweep.tick().await.unwrap() })));
        run_others().await;
        ticks.retain(|(since, sweeping)| {
            longest = longest.max(world.now() - *since);
            !sweeping.is_finished()
        });
        full += minute;
    }
    longest
}

#[tokio::test]
async fn scheduled_runs_are_created_within_two_seconds_although_ticks_arrive_late() {
    for instances in [1, 3] {
        let (world, mut random) = (World::at("2026-03-08T05:00:00Z"), StdRng::seed_from_u64(instances));
        for (name, schedule) in WORKFLOWS {
            world
                .write(&format!("name: {name}\nschedule: {schedule}\ntasks: [{{name: a, type: noop}}]\n"))
                .await;
        }
        let mut sweeps = Vec::new();
        for _ in 0..instances {
            sweeps.push(Arc::new(Sweep::new(world.process(world.clock.clone()).await)));
        }
        let hours = 3;
        let end = world.now() + TimeDelta::hours(hours);
        let longest = pass_until(&world, &sweeps, end, &mut random).await;
        assert!(longest < TimeDelta::seconds(90), "a tick took {longest}");
        for ((name, _), expected) in WORKFLOWS.iter().zip([60 * hours, 12 * hours, hours]) {
            let runs = world.runs(name).await;
            let late = |found: &RunRecord| found.run.created_at - found.facts.logical_date.unwrap();
            let mut lates: Vec<TimeDelta> = runs.iter().map(late).collect();
            lates.sort();
            assert!(
                (expected - 1..=expected).contains(&(lates.len() as i64)),
                "{name}: {} runs",
                lates.len()
            );
            assert!(lates[0] >= TimeDelta::zero(), "{name}: a run was created too early");
            let p99 = lates[(lates.len() * 99).div_ceil(100) - 1];
            assert!(p99 < TimeDelta::seconds(2), "{name}, {instances} instances: p99 is {p99}");
        }
    }
}
