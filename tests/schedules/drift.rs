//! The sweep itself over hours of virtual time: ticks come late, and what is due at the full minute is not.

use std::sync::Arc;

use chrono::{DurationRound, TimeDelta};
use model::Instant;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::RunRecord;
use sweep::Sweep;
use tokio::task::{JoinHandle, yield_now};

use crate::world::World;

const WORKFLOWS: [(&str, &str); 3] = [
    ("minutely", "{cron: '* * * * *', timezone: America/New_York}"),
    ("often", "{cron: '*/5 * * * *', timezone: Australia/Lord_Howe}"),
    ("hourly", "{cron: '@hourly', timezone: Europe/Berlin}"),
];

/// No tick of the scheduler is later, in milliseconds.
const LATEST_TICK: i64 = 5_000;

/// Whether a sweep that was asked has more to do before time moves on cannot be seen from outside: it gets so many turns.
const TURNS: u32 = 200;

/// Lets every sweep do what there is to do now.
async fn settle_down() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

/// Lives until then: a tick each minute, a little late, at any instance; and whoever stayed wakes when something is due.
async fn live(world: &World, sweeps: &[Arc<Sweep>], end: Instant, random: &mut StdRng) -> TimeDelta {
    let minute = TimeDelta::minutes(1);
    let mut full = world.now().duration_trunc(minute).unwrap();
    let mut asked: Vec<(Instant, JoinHandle<()>)> = Vec::new();
    let mut longest = TimeDelta::zero();
    while full < end {
        let tick = full + TimeDelta::milliseconds(random.random_range(0..=LATEST_TICK));
        while let Some(due) =
            world.store().agenda(world.now()).await.unwrap().next_timer.filter(|due| *due < tick)
        {
            world.clock.set(due);
            settle_down().await;
        }
        world.clock.set(tick);
        let sweep = sweeps[random.random_range(0..sweeps.len())].clone();
        asked.push((tick, tokio::spawn(async move { sweep.tick().await.unwrap() })));
        settle_down().await;
        asked.retain(|(since, sweeping)| {
            longest = longest.max(world.now() - *since);
            !sweeping.is_finished()
        });
        full += minute;
    }
    longest
}

#[tokio::test]
async fn what_is_due_at_the_full_minute_is_made_within_two_seconds_though_ticks_come_late() {
    for instances in [1, 3] {
        let (world, mut random) = (World::at("2026-03-08T05:00:00Z"), StdRng::seed_from_u64(instances));
        for (name, schedule) in WORKFLOWS {
            world
                .write(&format!("name: {name}\nschedule: {schedule}\ntasks: [{{name: a, type: noop}}]\n"))
                .await;
        }
        let sweeps: Vec<Arc<Sweep>> =
            (0..instances).map(|_| Arc::new(Sweep::new(Arc::new(world.twin())))).collect();
        let hours = 3;
        let end = world.now() + TimeDelta::hours(hours);
        let longest = live(&world, &sweeps, end, &mut random).await;
        assert!(longest < TimeDelta::seconds(90), "a request of the scheduler lasted {longest}");
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
            assert!(lates[0] >= TimeDelta::zero(), "{name}: a run was made before its time");
            let most = lates[(lates.len() * 99).div_ceil(100) - 1];
            assert!(most < TimeDelta::seconds(2), "{name}, {instances} instances: 99 of 100 within {most}");
        }
    }
}
