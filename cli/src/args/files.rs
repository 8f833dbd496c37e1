//! Arguments that name files.

use std::path::PathBuf;

use clap::Args;

/// The files to check.
#[derive(Args, Clone, Debug)]
pub struct Validate {
    /// Folder with graphs/, tasks/ and templates/, or single files
    #[arg(value_name = "DIR|FILE", default_value = "workflows")]
    pub paths: Vec<PathBuf>,
}

/// What to draw, and how.
#[derive(Args, Clone, Debug)]
pub struct Graph {
    /// Name of the workflow, or its file
    #[arg(value_name = "NAME|FILE")]
    pub workflow: PathBuf,
    /// Draw an SVG instead of text
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    /// Folder that contains the workflow
    #[arg(long, value_name = "DIR", default_value = "workflows")]
    pub workflows: PathBuf,
}

/// The kind of file whose schema to print.
#[derive(Args, Clone, Debug)]
pub struct Schema {
    /// Kind of file that the schema describes
    #[arg(value_name = "KIND", default_value = "workflow", value_parser = language::Schema::ALL.map(language::Schema::name))]
    pub kind: String,
}

/// The folder to compare with the server.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// Folder with graphs/, tasks/ and templates/
    #[arg(value_name = "DIR", default_value = "workflows")]
    pub folder: PathBuf,
    /// Plan to archive every active workflow that is not in the folder
    #[arg(long)]
    pub prune: bool,
}

/// The folder to register.
#[derive(Args, Clone, Debug)]
pub struct Apply {
    /// Folder with graphs/, tasks/ and templates/
    #[arg(value_name = "DIR", default_value = "workflows")]
    pub folder: PathBuf,
    /// Archive every active workflow that is not in the folder
    #[arg(long)]
    pub prune: bool,
}
