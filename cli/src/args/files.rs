//! Arguments that name files.

use std::path::PathBuf;

use clap::Args;

/// What to check.
#[derive(Args, Clone, Debug)]
pub struct Validate {
    /// A folder with graphs/, tasks/ and templates/, or files
    #[arg(value_name = "DIR|FILE", default_value = "workflows")]
    pub paths: Vec<PathBuf>,
}

/// What to draw, and how.
#[derive(Args, Clone, Debug)]
pub struct Graph {
    /// The workflow's name, or its file
    #[arg(value_name = "NAME|FILE")]
    pub workflow: PathBuf,
    /// Draw an SVG instead of text
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    /// The folder that contains the workflow
    #[arg(long, value_name = "DIR", default_value = "workflows")]
    pub workflows: PathBuf,
}

/// Whose schema to print.
#[derive(Args, Clone, Debug)]
pub struct Schema {
    /// The kind of file
    #[arg(value_name = "KIND", default_value = "workflow", value_parser = language::Schema::ALL.map(language::Schema::name))]
    pub kind: String,
}

/// What to compare with the server.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// A folder with graphs/, tasks/ and templates/
    #[arg(value_name = "DIR", default_value = "workflows")]
    pub folder: PathBuf,
    /// Plan to archive every active workflow that is not in the folder
    #[arg(long)]
    pub prune: bool,
}

/// What to register.
#[derive(Args, Clone, Debug)]
pub struct Apply {
    /// A folder with graphs/, tasks/ and templates/
    #[arg(value_name = "DIR", default_value = "workflows")]
    pub folder: PathBuf,
    /// Archive every active workflow that is not in the folder
    #[arg(long)]
    pub prune: bool,
}
