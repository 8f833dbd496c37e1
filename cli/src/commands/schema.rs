//! `ebb schema`: prints a JSON Schema, without a server.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Schema;
use crate::output;

pub(super) fn run(arguments: &Schema) -> Result<ExitCode> {
    // The argument parser accepts no other name.
    let schema = language::Schema::ALL.into_iter().find(|schema| schema.name() == arguments.kind);
    if let Some(schema) = schema {
        output::json(&schema.to_json())?;
    }
    Ok(ExitCode::SUCCESS)
}
