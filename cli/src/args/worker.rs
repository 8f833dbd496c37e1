//! What can be said to a worker.

use clap::Subcommand;
use model::WorkerId;

/// How a worker shall end. It hears of it when it next says that it lives, within ten seconds.
#[derive(Subcommand, Clone, Debug)]
pub enum Worker {
    /// Stop all that the worker holds at once; others carry it out, and no retry is used up
    Kill {
        /// The worker, as `ebb workers` lists it
        id: WorkerId,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let the worker finish what it holds, but give it no more work
    Drain {
        /// The worker, as `ebb workers` lists it
        id: WorkerId,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
}
