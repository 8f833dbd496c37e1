//! Arguments of `ebb test`.

use std::path::PathBuf;

use clap::Args;

/// Which tests to run, and where to write the results.
#[derive(Args, Clone, Debug)]
pub struct Test {
    /// A folder with graphs/ and tests/, or test files
    #[arg(value_name = "DIR|FILE", default_value = "workflows")]
    pub paths: Vec<PathBuf>,
    /// Only tests with this text in their name or their workflow's name
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Also write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
