//! `ebb schema`: prints the JSON Schema of a kind of file, without a server.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Schema;
use crate::output;

pub(super) fn run(arguments: &Schema) -> Result<ExitCode> {
    // The command line takes no other name than these.
    let asked = language::SCHEMAS.into_iter().find(|(name, _)| *name == arguments.kind);
    if let Some((_, kind)) = asked {
        output::json(&language::json_schema(kind))?;
    }
    Ok(ExitCode::SUCCESS)
}
