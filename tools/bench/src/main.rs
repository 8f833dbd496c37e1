//! `cargo bench-ebb`: how fast Ebbflow is on this machine, compared with what the machine itself can do, and how
//! tenants would share slots.

mod database;
mod load;
mod machine;
mod percentiles;
mod processes;
mod report;
mod scenarios;
mod simulate;
mod soak;
mod usage;
mod workflows;
mod world;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use ebb::args::{RunWorker, Shared};
use ebb::output;
use ebb::serve::Serve;
use scenarios::BenchArgs;
use simulate::Simulate;
use soak::Soak;

/// Measure this machine with all of Ebbflow on it, in a temporary database
#[derive(Parser)]
#[command(
    name = "cargo bench-ebb",
    bin_name = "cargo bench-ebb",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  cargo bench-ebb --quick\n  cargo bench-ebb chain latency --json\n  cargo bench-ebb statements\n\nIt fails if a goal is missed, but not with --quick."
)]
struct Cli {
    #[command(flatten)]
    bench: BenchArgs,
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the report as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate which tenant gets a slot when, without a server
    #[command(
        after_help = "Examples:\n  cargo bench-ebb simulate --tenant a:tasks=10000 --tenant b:tasks=1,at=500\n  cargo bench-ebb simulate --tenant a:weight=3,tasks=300 --tenant b:tasks=300 --slots 8\n\nAll tasks take equally long. Time and waits are counted in releases: slots that were given."
    )]
    Simulate(Simulate),
    /// Keep a mixed load running for as long as you like, kill processes, and draw the curves of memory, connections, dead
    /// rows and latency
    #[command(
        after_help = "Examples:\n  cargo bench-ebb soak --minutes 20 --out soak\n  cargo bench-ebb soak --minutes 0.2 --runs 10\n\nIt writes soak.csv, soak.svg and soak.md, and fails if a run is lost or a curve of at least five minutes is not flat."
    )]
    Soak(Soak),
    /// Serve one function: the processes that `start` and `instances` measure
    #[command(hide = true)]
    Serve(Serve),
    /// Run a worker: the process that `leases` measures while it is idle
    #[command(hide = true)]
    Worker(IdleWorker),
}

/// The worker that is measured while it is idle.
#[derive(clap::Args)]
struct IdleWorker {
    #[arg(long, env = "EBB_URL")]
    url: String,
    #[arg(long, env = "EBB_TOKEN", hide_env_values = true)]
    token: String,
    #[command(flatten)]
    worker: RunWorker,
}

fn main() -> Result<ExitCode> {
    // As `ebb` does: the supervisors of programs come from the executable that starts them.
    containment::serve().map_or_else(run, Ok)
}

#[tokio::main]
async fn work(IdleWorker { url, token, worker }: IdleWorker) -> Result<ExitCode> {
    let shared = Shared { url: Some(url), token: Some(token), tenant: None, data: ".".into(), json: false };
    ebb::worker::run(&shared, worker).await
}

fn run() -> Result<ExitCode> {
    let Cli { bench, command, json } = Cli::parse();
    match command {
        // A function has its own async runtime.
        Some(Command::Serve(serve)) => return Ok(serve.function.main()),
        Some(Command::Worker(worker)) => return work(worker),
        Some(Command::Simulate(args)) => {
            let shares = simulate::shares(&args)?;
            if json { output::json(&shares)? } else { output::line(shares.table())? }
        }
        Some(Command::Soak(args)) => {
            let soaked = soak::run(&args)?;
            if json {
                output::json(&soaked)?
            } else {
                output::line(&soaked)?
            }
            return Ok(if soaked.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        None => {
            let report = scenarios::measure(&bench)?;
            if json {
                output::json(&report)?
            } else {
                output::line(&report)?
            }
            return Ok(if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Ok(ExitCode::SUCCESS)
}
