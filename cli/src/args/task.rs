//! Arguments about one task.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::{Instant, RunId, TypeName};
use serde_json::Value;

use super::worker::implementation;
use super::{date, pair, signals};

/// What to do with one task.
#[derive(Subcommand, Clone, Debug)]
pub enum Task {
    /// Run one task here, without a server, and print its output
    #[command(
        after_help = "Examples:\n  ebb task run etl load --input day=2026-01-31\n  ebb task run etl report --upstream outputs.json\n  ebb task run etl report --outputs-from RUN\n  ebb task run raster validate --exec raster.validate=./validate\n\nLog, progress and checkpoints go to standard error, the output to standard output. The exit code is 1 if the task failed."
    )]
    Run(RunTask),
}

/// The task to run, and what it is given.
#[derive(Args, Clone, Debug)]
pub struct RunTask {
    /// Name of the workflow, or its file
    #[arg(value_name = "WORKFLOW|FILE")]
    pub workflow: PathBuf,
    /// Name of the task
    pub task: String,
    /// Input: JSON, or plain text if the workflow declares a string
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub inputs: Vec<(String, String)>,
    /// Run whose outputs and inputs it is given; needs a server
    #[arg(long, value_name = "RUN", conflicts_with = "upstream")]
    pub outputs_from: Option<RunId>,
    /// JSON file with the outputs of tasks upstream, by name
    #[arg(long, value_name = "FILE")]
    pub upstream: Option<PathBuf>,
    /// Element that a child of a fan-out is about, in JSON
    #[arg(long, value_name = "JSON", value_parser = signals::json)]
    pub item: Option<Value>,
    /// Checkpoint to continue from, in JSON
    #[arg(long, value_name = "JSON", value_parser = signals::json)]
    pub checkpoint: Option<Value>,
    /// Program that implements a custom task type, in any language; repeat it for several
    #[arg(long = "exec", value_name = "TYPE=PROGRAM", value_parser = implementation)]
    pub programs: Vec<(TypeName, PathBuf)>,
    /// Logical date: 2026-01-31 or 2026-01-31T06:00:00Z [default: now]
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub logical_date: Option<Instant>,
    /// Folder that contains the workflow
    #[arg(long, value_name = "DIR", default_value = "workflows")]
    pub workflows: PathBuf,
}
