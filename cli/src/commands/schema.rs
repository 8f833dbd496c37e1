//! `ebb schema`: prints the JSON Schema of a kind of file, without a server.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Schema;
use crate::output;

pub(super) fn run(arguments: &Schema) -> Result<ExitCode> {
    // The command line takes no other name than these.
    let asked = language::Schema::ALL.into_iter().find(|schema| schema.name() == arguments.kind);
    if let Some(schema) = asked {
        output::json(&schema.to_json())?;
    }
    Ok(ExitCode::SUCCESS)
}
