//! Real processes, killed and frozen at random: functions, workers among them, Postgres and the bus.
//!
//! `EBB_CHAOS_SECONDS=300 cargo test --workspace --test chaos` runs for longer; `EBB_SEED=N` chooses the faults.

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

/// How long faults are injected by default.
const SECONDS: i64 = 12;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a whole number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_ends_and_every_success_is_recorded_once_whatever_is_killed_or_frozen() {
    inject_faults(Cluster::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_with_googles_emulator() {
    if let Some(cluster) = Cluster::start_on_google().await {
        inject_faults(cluster).await;
    }
}

/// A fault to inject.
#[derive(Clone, Copy)]
enum Fault {
    FreezePostgres,
    KillPostgres,
    StopBus,
    /// Live workers are declared dead, and come back.
    LetTimePass,
    FreezeFunction,
    KillFunction,
}

/// The faults that every run of the test begins with.
const FIRST: [Fault; 5] =
    [Fault::KillFunction, Fault::FreezePostgres, Fault::FreezeFunction, Fault::KillPostgres, Fault::StopBus];

impl Fault {
    fn any(dice: &mut StdRng) -> Self {
        match dice.random_range(0..14) {
            0 => Self::FreezePostgres,
            1 => Self::KillPostgres,
            2 => Self::StopBus,
            3..5 => Self::LetTimePass,
            5..9 => Self::FreezeFunction,
            _ => Self::KillFunction,
        }
    }
}

async fn inject(cluster: &mut Cluster, fault: Fault, dice: &mut StdRng) {
    let victim = dice.random_range(0..cluster.functions.len());
    let a_while = TimeDelta::milliseconds(dice.random_range(100..3_000));
    match fault {
        Fault::FreezePostgres => cluster.postgres.freeze_for(a_while).await,
        Fault::KillPostgres => cluster.postgres.kill_and_restart(TimeDelta::milliseconds(300)).await,
        Fault::StopBus => {
            cluster.hub.make_unavailable();
            pause(a_while).await;
            cluster.hub.make_available().await;
        }
        Fault::LetTimePass => ledger::let_two_minutes_pass(&cluster.postgres.url).await,
        Fault::FreezeFunction => cluster.freeze(victim, a_while),
        Fault::KillFunction => cluster.functions[victim].kill(),
    }
}

async fn inject_faults(mut cluster: Cluster) {
    let seconds = number("EBB_CHAOS_SECONDS").map_or(SECONDS, |seconds| seconds as i64);
    let seed = number("EBB_SEED").unwrap_or(1);
    let mut dice = StdRng::seed_from_u64(seed);
    let end = cluster::now() + TimeDelta::seconds(seconds);
    let mut faults = 0;
    while cluster::now() < end || faults < FIRST.len() {
        cluster.request().await;
        cluster.tick().await;
        if dice.random_bool(0.5) {
            let fault = FIRST.get(faults).copied().unwrap_or_else(|| Fault::any(&mut dice));
            inject(&mut cluster, fault, &mut dice).await;
            faults += 1;
        }
        cluster.restart_the_dead();
        pause(TimeDelta::milliseconds(dice.random_range(100..700))).await;
    }
    let runs = cluster.finish_all_runs().await;
    assert!(!runs.is_empty(), "some runs were requested");
    for run in &runs {
        ledger::assert_consistent(&cluster, run).await;
    }
    ledger::assert_nothing_is_left_over(&cluster).await;
    println!("seed {seed}: {} runs, {faults} faults in {seconds} s", runs.len());
}
