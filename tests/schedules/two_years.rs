//! Two years of hourly and daily schedules in three zones, with three concurrent sweeps and downtimes. `drift.rs` tests how
//! late the sweep itself is.

use std::collections::BTreeSet;
use std::sync::Arc;

use calendar::{Calendar, GRACE};
use chrono::TimeDelta;
use model::{Catchup, Instant, Schedule};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use runtime::Runtime;

use crate::world::{TENANT, World};

const ZONES: [&str; 3] = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe"];
const PATTERNS: [(&str, &str); 2] = [("hourly", "0 * * * *"), ("daily", "30 2 * * *")];
const START: &str = "2026-01-01T00:00:00Z";

/// A time in which no sweep is up. The first sweep is at `until`.
struct Downtime {
    from: Instant,
    until: Instant,
}

/// About forty downtimes from a minute to ten days long, in order.
fn downtimes(random: &mut StdRng, start: Instant, end: Instant) -> Vec<Downtime> {
    let mut found = Vec::new();
    let mut from = start;
    loop {
        from += TimeDelta::minutes(random.random_range(1..40 * 1_440));
        let minutes = if random.random_bool(0.4) {
            random.random_range(1..180)
        } else {
            random.random_range(1..14_400)
        };
        let until = from + TimeDelta::minutes(minutes) + TimeDelta::seconds(random.random_range(0..60));
        if until >= end {
            return found;
        }
        found.push(Downtime { from, until });
        from = until;
    }
}

/// The dates that must have a run, derived from when a sweep was up.
fn expected(schedule: &Schedule, downtimes: &[Downtime], start: Instant, end: Instant) -> BTreeSet<Instant> {
    let calendar = Calendar::of(schedule).unwrap();
    let all: Vec<Instant> = calendar.following(start).take_while(|at| *at <= end).collect();
    let downtime = |at: &Instant| downtimes.iter().find(|down| down.from <= *at && *at < down.until);
    let latest = |down: &Downtime| all.iter().rfind(|at| **at <= down.until).copied();
    let has_run = |at: &Instant| match (downtime(at), schedule.catchup) {
        (None, _) | (_, Catchup::All) => true,
        (Some(down), _) if *at + GRACE >= down.until => true,
        (Some(down), Catchup::Latest) => latest(down) == Some(*at),
        (Some(_), Catchup::None) => false,
    };
    all.iter().copied().filter(has_run).collect()
}

/// Lets two years pass: whenever a schedule is due outside a downtime, three sweeps fire at once.
async fn pass_two_years(
    world: &World,
    sweeps: &[Arc<Runtime>; 3],
    downtimes: &[Downtime],
    end: Instant,
    random: &mut StdRng,
) {
    let mut restarts = downtimes.iter().peekable();
    loop {
        let rows = world.store().schedules(TENANT, None, None, 100).await.unwrap();
        let due = rows.iter().filter_map(|row| row.due_at).min().unwrap_or(end).max(world.now());
        let tick = due + TimeDelta::milliseconds(random.random_range(0..1_500));
        let now = match restarts.peek() {
            Some(down) if due >= down.from => restarts.next().unwrap().until,
            _ => tick,
        };
        if now > end {
            return;
        }
        world.clock.set(now);
        let [one, two, three] = sweeps.each_ref().map(|sweep| sweep.schedules().fire(now, 100));
        let (one, two, three) = tokio::join!(one, two, three);
        one.and(two).and(three).unwrap();
    }
}

async fn two_years(seed: u64, catchup: &str) {
    let mut random = StdRng::seed_from_u64(seed);
    let world = World::at(START);
    world.set_slots(None).await;
    for zone in ZONES {
        for (name, cron) in PATTERNS {
            let workflow =
                format!("{name}-{}", zone.split('/').next_back().unwrap().to_lowercase().replace('_', "-"));
            let schedule = format!("{{cron: '{cron}', timezone: {zone}, catchup: {catchup}, cap: 1000}}");
            world
                .write(&format!("name: {workflow}\nschedule: {schedule}\ntasks: [{{name: a, type: noop}}]\n"))
                .await;
        }
    }
    let (start, end): (Instant, Instant) = (world.now(), "2028-01-01T00:10:00Z".parse().unwrap());
    let downtimes = downtimes(&mut random, start, end);
    let process = || world.process(world.clock.clone());
    let sweeps = [process().await, process().await, process().await];
    pass_two_years(&world, &sweeps, &downtimes, end, &mut random).await;
    let rows = world.store().schedules(TENANT, None, None, 100).await.unwrap();
    assert_eq!(rows.len(), ZONES.len() * PATTERNS.len(), "each pattern in each zone");
    for row in rows {
        let (workflow, name) = (row.workflow.as_str(), row.schedule.name.as_str());
        let made = world.store().runs_of_dates(TENANT, workflow, name, start, end).await.unwrap();
        let expected = expected(&row.schedule, &downtimes, start, end);
        let runs = world.runs(workflow).await;
        let made: BTreeSet<Instant> = made.into_keys().collect();
        assert_eq!(runs.len(), made.len(), "{workflow}, {catchup}, seed {seed}: a date has two runs");
        let wrong: Vec<&Instant> = made.symmetric_difference(&expected).collect();
        assert!(wrong.is_empty(), "{workflow}, {catchup}, seed {seed}: {wrong:?}");
        assert!(!made.is_empty());
    }
}

#[tokio::test]
async fn with_catchup_all_every_instant_has_one_run() {
    two_years(1, "all").await;
}

#[tokio::test]
async fn with_catchup_latest_one_run_makes_up_for_each_downtime() {
    two_years(2, "latest").await;
}

#[tokio::test]
async fn with_catchup_none_missed_instants_have_no_run() {
    two_years(3, "none").await;
}
