//! Arguments that name files.

use std::path::PathBuf;

use clap::Args;

/// The files to check.
#[derive(Args, Clone, Debug)]
pub struct Validate {
    /// Folder with graphs/, tasks/, templates/, types/ and queues/, or single files
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
    /// Folder whose types/ the schema includes: it then accepts no other custom types
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Which task types to show.
#[derive(Args, Clone, Debug)]
pub struct Types {
    /// Task type to show with the schemas of its settings and output
    #[arg(value_name = "TYPE", conflicts_with = "custom")]
    pub name: Option<String>,
    /// List only the custom types of the project
    #[arg(long)]
    pub custom: bool,
}

/// The folder to compare with the server.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// Folder with graphs/, tasks/, templates/, types/ and queues/
    #[arg(value_name = "DIR", default_value = "workflows")]
    pub folder: PathBuf,
    /// Plan to archive every active workflow that is not in the folder
    #[arg(long)]
    pub prune: bool,
}

/// The folder to register.
#[derive(Args, Clone, Debug)]
pub struct Apply {
    /// Folder with graphs/, tasks/, templates/, types/ and queues/
    #[arg(value_name = "DIR", default_value = "workflows")]
    pub folder: PathBuf,
    /// Archive every active workflow that is not in the folder
    #[arg(long)]
    pub prune: bool,
}
