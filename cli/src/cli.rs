//! The command line as a whole: the options every command takes, and the commands.

use clap::{Parser, Subcommand};

use crate::args::{Command, Shared};
use crate::dev::DevArgs;
use crate::serve::Serve;

/// A workflow orchestrator on stateless functions and Postgres
#[derive(Parser)]
#[command(name = "ebb", version, after_help = "Start with:\n  ebb dev --run hello")]
pub struct Cli {
    #[command(flatten)]
    /// Options that every command takes.
    pub shared: Shared,
    #[command(subcommand)]
    /// The command to run.
    pub command: Top,
}

/// All commands of `ebb`.
#[derive(Subcommand)]
pub enum Top {
    /// Run all of Ebbflow in this process, on an embedded database and broker
    #[command(
        after_help = "Examples:\n  ebb dev\n  ebb dev --run hello\n  ebb dev --workflows my-workflows --port 9000\n  ebb dev --bus pubsub-emulator"
    )]
    Dev(DevArgs),
    /// Create or update the database schema; safe to repeat, and while functions serve
    #[command(after_help = "Example:\n  ebb migrate --database-url postgres://user@host/ebbflow")]
    Migrate {
        /// Address of the database
        #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
        database_url: String,
        /// Database users, separated by commas, that may assume the role that owns the tables
        #[arg(long, env = "EBB_GRANT_TO", value_name = "USERS", value_delimiter = ',')]
        grant_to: Vec<String>,
    },
    /// Serve one function on $PORT, with settings from the environment
    #[command(after_help = "Examples:\n  ebb serve sweep\n  ebb serve trigger --check")]
    Serve(Serve),
    /// The commands that work on files or talk to a server.
    #[command(flatten)]
    Other(Command),
}
