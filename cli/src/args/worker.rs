//! Arguments about a worker.

use clap::Subcommand;
use model::WorkerId;

/// How a worker stops. The command reaches it with its next heartbeat, within ten seconds.
#[derive(Subcommand, Clone, Debug)]
pub enum Worker {
    /// Stop the attempts of a worker at once; other workers take over, and no retry is used
    Kill {
        /// Id of the worker, as `ebb workers` lists it
        id: WorkerId,
        /// Reason, shown with the worker
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a worker finish its attempts, and give it no more work
    Drain {
        /// Id of the worker, as `ebb workers` lists it
        id: WorkerId,
        /// Reason, shown with the worker
        #[arg(long)]
        reason: Option<String>,
    },
}
