//! What can be said about tests of workflows.

use std::path::PathBuf;

use clap::Args;

/// Which tests to play, and where to write what came of them.
#[derive(Args, Clone, Debug)]
pub struct Test {
    /// A folder with graphs/ and tests/, or test files
    #[arg(value_name = "DIR|FILE", default_value = "workflows")]
    pub paths: Vec<PathBuf>,
    /// Only tests with this text in the name of their workflow or in their own
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Also write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
