//! The command line as a whole: the options every command takes, and the commands.

use clap::{Parser, Subcommand};

use crate::args::{Command, Shared};
use crate::bench::BenchArgs;
use crate::dev::DevArgs;
use crate::fairness::Fairness;
use crate::serve::Serve;

/// Workflows that cost nothing while nothing runs.
#[derive(Parser)]
#[command(name = "ebb", version, after_help = "Start with:\n  ebb dev --run hello")]
pub struct Cli {
    #[command(flatten)]
    /// Options that every command takes.
    pub shared: Shared,
    #[command(subcommand)]
    /// What to do.
    pub command: Top,
}

/// The commands.
#[derive(Subcommand)]
pub enum Top {
    /// Run all of Ebbflow in this process, on embedded parts
    #[command(
        after_help = "Examples:\n  ebb dev\n  ebb dev --run hello\n  ebb dev --workflows my-workflows --port 9000\n  ebb dev --bus pubsub-emulator"
    )]
    Dev(DevArgs),
    /// Bring a database up to date; safe to repeat, and while functions serve
    #[command(after_help = "Example:\n  ebb migrate --database-url postgres://user@host/ebbflow")]
    Migrate {
        /// The database.
        #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
        database_url: String,
        /// Users of the database, separated by commas, that may do what the migrating one may.
        #[arg(long, env = "EBB_GRANT_TO", value_name = "USERS", value_delimiter = ',')]
        grant_to: Vec<String>,
    },
    /// Measure this machine with all of Ebbflow on it, in a database of its own
    #[command(
        after_help = "Examples:\n  ebb bench --quick\n  ebb bench chain latency --json\n  ebb bench statements"
    )]
    Bench(BenchArgs),
    /// Look at how places are shared between tenants, without a server
    #[command(subcommand)]
    Fairness(Fairness),
    /// Serve one function on $PORT, with settings from the environment
    #[command(after_help = "Examples:\n  ebb serve sweep\n  ebb serve trigger --check")]
    Serve(Serve),
    /// The commands that work on files or talk to a server.
    #[command(flatten)]
    Other(Command),
}
