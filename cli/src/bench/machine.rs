//! The machine, and what it can do at most.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use gauge::Gauge;
use serde::Serialize;

use super::report::rounded;
use super::world::Bench;
use crate::dev::CONNECTIONS;

/// What figures are compared with.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) postgres: String,
    pub(super) database: String,
    /// How many connections Ebbflow has to the database; commits are measured with as many.
    pub(super) connections: u32,
    pub(super) load_before: Option<f64>,
    pub(super) fdatasync_per_second: Option<f64>,
    pub(super) commits_alone_per_second: f64,
    pub(super) commits_per_second: f64,
    pub(super) rows_in_hundreds_per_second: f64,
    pub(super) rows_in_thousands_per_second: f64,
}

impl Machine {
    pub(super) async fn measure(bench: &Bench) -> Result<Self> {
        let span = bench.size(Duration::from_secs(2), Duration::from_millis(500));
        let load_before = load();
        let fdatasync_per_second = bench.folder.as_deref().and_then(|_| syncs(span / 2).map(rounded).ok());
        let scratch = bench.scratch().await?;
        let gauge = Gauge::connect(&scratch.url(), CONNECTIONS).await?;
        let (postgres, limits) = (gauge.version().await?, gauge.limits(CONNECTIONS, span).await?);
        gauge.close().await;
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

/// How many processes wanted a processor in the last minute: others disturb.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// How often in a second a page can be written through to the disk that temporary files lie on.
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
