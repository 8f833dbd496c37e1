//! Arguments about a worker.

use clap::Subcommand;
use model::WorkerId;

/// How a worker stops. It learns of it with its next heartbeat, within ten seconds.
#[derive(Subcommand, Clone, Debug)]
pub enum Worker {
    /// Stop its attempts at once; other workers take over, and no retry is used
    Kill {
        /// The worker, as `ebb workers` lists it
        id: WorkerId,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let it finish its attempts, but give it no more work
    Drain {
        /// The worker, as `ebb workers` lists it
        id: WorkerId,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
}
