//! How to draw a workflow.

use std::path::PathBuf;

use clap::Args;

/// What to draw, and how.
#[derive(Args, Clone, Debug)]
pub struct Graph {
    /// The workflow's name, or its file
    #[arg(value_name = "NAME|FILE")]
    pub workflow: PathBuf,
    /// Draw an SVG instead of text
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    /// The folder to look for the name in
    #[arg(long, value_name = "DIR", default_value = "workflows")]
    pub workflows: PathBuf,
}
