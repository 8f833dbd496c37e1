//! Arguments of `ebb test`.

use std::path::PathBuf;

use clap::Args;

/// Which tests to run, and where to write the results.
#[derive(Args, Clone, Debug)]
pub struct Test {
    /// Folder with graphs/ and tests/, or single test files
    #[arg(value_name = "DIR|FILE", default_value = "workflows")]
    pub paths: Vec<PathBuf>,
    /// Only tests with this text in their name or their workflow's name
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// File to write the results to as well, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
