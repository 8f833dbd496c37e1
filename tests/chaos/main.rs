//! Real processes, killed and stopped at random: functions, workers among them, Postgres itself and the bus.
//!
//! `EBB_CHAOS_SECONDS=300 cargo test --workspace --test chaos` goes on for longer; `EBB_SEED=N` chooses who is hit.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod cluster;
mod hub;
mod ledger;
mod outages;
mod postgres;

use chrono::TimeDelta;
use cluster::{Cluster, pause};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How long it goes on where nobody says otherwise.
const SECONDS: i64 = 12;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a whole number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_or_stopped_every_run_ends_and_every_success_is_recorded_once() {
    wreak_havoc(Cluster::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_when_google_s_emulator_pushes() {
    if let Some(cluster) = Cluster::start_on_google().await {
        wreak_havoc(cluster).await;
    }
}

/// What can happen to somebody.
#[derive(Clone, Copy)]
enum Hit {
    FreezePostgres,
    KillPostgres,
    StopBus,
    /// Whoever is at work is taken for dead, and comes back from there.
    LetTimePass,
    StopFunction,
    KillFunction,
}

/// However short it is, this happens first.
const AT_LEAST: [Hit; 5] =
    [Hit::KillFunction, Hit::FreezePostgres, Hit::StopFunction, Hit::KillPostgres, Hit::StopBus];

impl Hit {
    fn any(dice: &mut StdRng) -> Self {
        match dice.random_range(0..14) {
            0 => Self::FreezePostgres,
            1 => Self::KillPostgres,
            2 => Self::StopBus,
            3..5 => Self::LetTimePass,
            5..9 => Self::StopFunction,
            _ => Self::KillFunction,
        }
    }
}

async fn strike(cluster: &mut Cluster, hit: Hit, dice: &mut StdRng) {
    let victim = dice.random_range(0..cluster.functions.len());
    let a_while = TimeDelta::milliseconds(dice.random_range(100..3_000));
    match hit {
        Hit::FreezePostgres => cluster.postgres.freeze_for(a_while).await,
        Hit::KillPostgres => cluster.postgres.kill_and_restart(TimeDelta::milliseconds(300)).await,
        Hit::StopBus => {
            cluster.hub.leave();
            pause(a_while).await;
            cluster.hub.come_back().await;
        }
        Hit::LetTimePass => ledger::let_two_minutes_pass(&cluster.postgres.url).await,
        Hit::StopFunction => cluster.functions[victim].stop_for(a_while),
        Hit::KillFunction => cluster.functions[victim].kill(),
    }
}

async fn wreak_havoc(mut cluster: Cluster) {
    let seconds = number("EBB_CHAOS_SECONDS").map_or(SECONDS, |seconds| seconds as i64);
    let seed = number("EBB_SEED").unwrap_or(1);
    let mut dice = StdRng::seed_from_u64(seed);
    let end = cluster::now() + TimeDelta::seconds(seconds);
    let mut hits = 0;
    while cluster::now() < end || hits < AT_LEAST.len() {
        cluster.request().await;
        cluster.tick().await;
        if dice.random_bool(0.5) {
            let hit = AT_LEAST.get(hits).copied().unwrap_or_else(|| Hit::any(&mut dice));
            strike(&mut cluster, hit, &mut dice).await;
            hits += 1;
        }
        cluster.restart_the_dead();
        pause(TimeDelta::milliseconds(dice.random_range(100..700))).await;
    }
    let runs = cluster.calm_down().await;
    assert!(!runs.is_empty(), "something went on meanwhile");
    for run in &runs {
        ledger::tells_a_sound_story(&cluster, run).await;
    }
    ledger::nothing_is_left_over(&cluster).await;
    println!("seed {seed}: {} runs, {hits} hits in {seconds} s", runs.len());
}
