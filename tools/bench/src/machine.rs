//! The machine and its limits.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::database::Database;
use crate::report::rounded;
use crate::world::Bench;
use ebb::dev::CONNECTIONS;

/// The machine's limits, which figures are compared with.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) postgres: String,
    pub(crate) database: String,
    /// Ebbflow's connections to the database. Commits are measured with as many.
    pub(crate) connections: u32,
    pub(crate) load_before: Option<f64>,
    pub(crate) fdatasync_per_second: Option<f64>,
    pub(crate) commits_alone_per_second: f64,
    pub(crate) commits_per_second: f64,
    pub(crate) rows_in_hundreds_per_second: f64,
    pub(crate) rows_in_thousands_per_second: f64,
}

impl Machine {
    pub(crate) async fn measure(bench: &Bench) -> Result<Self> {
        let span = bench.size(Duration::from_secs(2), Duration::from_millis(500));
        let load_before = load();
        let fdatasync_per_second = bench.is_embedded().then(|| syncs(span / 2).map(rounded).ok()).flatten();
        let scratch = bench.scratch().await?;
        let database = Database::connect(&scratch.url(), CONNECTIONS).await?;
        let (postgres, limits) = (database.version().await?, database.limits(CONNECTIONS, span).await?);
        database.close().await;
        scratch.drop().await?;
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            postgres,
            database: bench.database.clone(),
            connections: CONNECTIONS,
            load_before,
            fdatasync_per_second,
            commits_alone_per_second: rounded(limits.commits_alone),
            commits_per_second: rounded(limits.commits),
            rows_in_hundreds_per_second: rounded(limits.rows_in_hundreds),
            rows_in_thousands_per_second: rounded(limits.rows_in_thousands),
        })
    }
}

/// The load average of the last minute: other programs disturb the measurement.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Flushes of one page per second, on the disk of temporary files.
fn syncs(span: Duration) -> std::io::Result<f64> {
    let mut file: File = tempfile::tempfile()?;
    let (started, mut done) = (Instant::now(), 0);
    while started.elapsed() < span {
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
        done += 1;
    }
    Ok(f64::from(done) / started.elapsed().as_secs_f64())
}
