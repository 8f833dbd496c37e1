//! Real processes, killed and stopped at random: functions, workers among them, and Postgres itself.
//!
//! `EBB_CHAOS_SECONDS=300 cargo test -p ebbflow-tests --test chaos` goes on for longer; `EBB_SEED=N` chooses who is hit.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod cluster;
mod ledger;
mod postgres;

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use cluster::{Cluster, pause};
use model::RunState;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How long it goes on where nobody says otherwise.
const SECONDS: i64 = 15;

/// Whoever needs the database knows that it is away within this: a connection is waited for, for five seconds, twice.
const NOTICED_WITHIN: TimeDelta = TimeDelta::seconds(30);

/// After a return, work goes on by itself within this.
const RESUMES_WITHIN: TimeDelta = TimeDelta::seconds(10);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a whole number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_or_stopped_every_run_ends_and_every_success_is_recorded_once() {
    let seconds = number("EBB_CHAOS_SECONDS").map_or(SECONDS, |seconds| seconds as i64);
    let seed = number("EBB_SEED").unwrap_or(1);
    let mut dice = StdRng::seed_from_u64(seed);
    let mut cluster = Cluster::start().await;
    let end = cluster::now() + TimeDelta::seconds(seconds);
    let mut hits = 0;
    while cluster::now() < end {
        cluster.request().await;
        cluster.tick().await;
        if dice.random_bool(0.4) {
            hits += 1;
            let victim = dice.random_range(0..cluster.functions.len());
            match dice.random_range(0..12) {
                0 => cluster.postgres.kill_and_restart(TimeDelta::milliseconds(300)).await,
                // Whoever is at work is taken for dead, and comes back from there.
                1..3 => ledger::let_two_minutes_pass(&cluster.postgres.url).await,
                3..7 => {
                    cluster.functions[victim].stop_for(TimeDelta::milliseconds(dice.random_range(100..3_000)))
                }
                _ => cluster.functions[victim].kill(),
            }
        }
        cluster.restart_the_dead();
        pause(TimeDelta::milliseconds(dice.random_range(100..700))).await;
    }
    let runs = cluster.calm_down().await;
    assert!(hits > 0 && !runs.is_empty(), "something was hit while runs went on");
    for run in &runs {
        ledger::tells_a_sound_story(&cluster, run).await;
    }
    ledger::nothing_is_left_over(&cluster).await;
    println!("seed {seed}: {} runs, {hits} hits in {seconds} s", runs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_is_away_requests_are_told_to_come_again_and_work_resumes_by_itself() {
    let mut cluster = Cluster::start().await;
    let mut caught = Vec::new();
    for _ in 0..5 {
        caught.push(cluster.request().await);
    }
    cluster.postgres.kill();
    // Sessions that were open take a moment to notice.
    let noticed = cluster::now() + NOTICED_WITHIN;
    loop {
        let answers = cluster.ask_every_function().await;
        if answers.iter().all(|status| *status == 503) {
            break;
        }
        let known = answers.iter().all(|status| [200, 204, 503].contains(status));
        assert!(known && cluster::now() < noticed, "whoever needs the database says 503: {answers:?}");
    }
    cluster.postgres.restart().await;
    let back = cluster::now();
    let later = cluster.request().await;
    cluster.wait_for(&[later], back + RESUMES_WITHIN).await;
    cluster.restart_the_dead();
    let runs = cluster.calm_down().await;
    assert!(caught.iter().all(|run| runs.iter().any(|record| record.run.id == *run)), "none was lost");
    assert!(runs.iter().all(|record| record.run.state == RunState::Succeeded));
    ledger::nothing_is_left_over(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_bus_is_away_nothing_is_lost_and_work_resumes_by_itself() {
    let mut cluster = Cluster::start().await;
    let caught = cluster.request().await;
    cluster.bus_away.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        cluster.tick().await;
        pause(TimeDelta::milliseconds(200)).await;
    }
    cluster.bus_away.store(false, Ordering::SeqCst);
    let back = cluster::now();
    let later = cluster.request().await;
    cluster.wait_for(&[caught, later], back + RESUMES_WITHIN).await;
    let runs = cluster.calm_down().await;
    assert!(runs.iter().any(|record| record.run.id == caught), "it was not lost");
    assert!(runs.iter().all(|record| record.run.state == RunState::Succeeded));
    ledger::nothing_is_left_over(&cluster).await;
}
