//! One sample of everything that should stay flat.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::mix::Mix;
use crate::database::Health;
use crate::percentiles::Percentiles;
use crate::usage;
use crate::world::World;

/// What was measured at one instant, or since the sample before.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Sample {
    /// Since the start of the load.
    pub(crate) seconds: f64,
    pub(crate) in_progress: i64,
    /// Runs that ended since the sample before.
    pub(crate) finished: i64,
    /// Processes killed so far.
    pub(crate) kills: u64,
    /// The memory of all functions' processes, in megabytes.
    pub(crate) memory_mb: f64,
    /// The sessions of the database.
    pub(crate) connections: i64,
    /// Sessions that have begun a transaction and do nothing.
    pub(crate) idle_in_transaction: i64,
    /// Rows that were updated or deleted and still take space, in percent of all.
    pub(crate) dead_percent: f64,
    pub(crate) database_mb: f64,
    /// Until a run is accepted, in milliseconds.
    pub(crate) trigger_p50_ms: f64,
    pub(crate) trigger_p99_ms: f64,
    /// From the creation to the end of a run that sleeps for two seconds, in milliseconds.
    pub(crate) run_p50_ms: f64,
}

/// A column of the samples.
type Column = (&'static str, fn(&Sample) -> f64);

impl Sample {
    /// All columns, in the order of the fields.
    pub(super) const COLUMNS: [Column; 12] = [
        ("seconds", |sample| sample.seconds),
        ("in_progress", |sample| sample.in_progress as f64),
        ("finished", |sample| sample.finished as f64),
        ("kills", |sample| sample.kills as f64),
        ("memory_mb", |sample| sample.memory_mb),
        ("connections", |sample| sample.connections as f64),
        ("idle_in_transaction", |sample| sample.idle_in_transaction as f64),
        ("dead_percent", |sample| sample.dead_percent),
        ("database_mb", |sample| sample.database_mb),
        ("trigger_p50_ms", |sample| sample.trigger_p50_ms),
        ("trigger_p99_ms", |sample| sample.trigger_p99_ms),
        ("run_p50_ms", |sample| sample.run_p50_ms),
    ];
}

/// Takes samples of memory, connections and tables.
#[derive(Default)]
pub(super) struct Sampler {
    /// Runs that had ended by the sample before.
    finished: i64,
    latest: Option<chrono::DateTime<chrono::Utc>>,
}

impl Sampler {
    pub(super) async fn take(&mut self, elapsed: Duration, world: &World, mix: &mut Mix) -> Result<Sample> {
        let health: Health = world.database.health().await?;
        let since = self.latest.replace(health.now).unwrap_or(health.now);
        let runs = Percentiles::of(world.database.run_times_since("soak-chain", since).await?);
        let triggers = Percentiles::of(std::mem::take(&mut mix.latencies));
        let functions = world.functions().map(|processes| processes.functions()).unwrap_or_default();
        let memory = functions.iter().filter_map(|it| usage::memory(&it.process_id().to_string())).sum();
        Ok(Sample {
            seconds: elapsed.as_secs_f64(),
            in_progress: health.in_progress,
            finished: health.finished - std::mem::replace(&mut self.finished, health.finished),
            kills: mix.counts.kills,
            memory_mb: memory,
            connections: health.connections,
            idle_in_transaction: health.idle_in_transaction,
            dead_percent: health.dead_percent,
            database_mb: health.database_mb,
            trigger_p50_ms: triggers.at(50),
            trigger_p99_ms: triggers.at(99),
            run_p50_ms: runs.at(50),
        })
    }
}
