//! `ebb schema`: prints a JSON Schema, without a server, on request with the custom task types of a project.

use std::process::ExitCode;

use anyhow::Result;

use super::FAILED;
use crate::args::Schema;
use crate::{files, output};

pub(super) fn run(arguments: &Schema) -> Result<ExitCode> {
    // The argument parser accepts no other name.
    let schema = language::Schema::ALL.into_iter().find(|schema| schema.name() == arguments.kind);
    let Some(schema) = schema else { return Ok(ExitCode::SUCCESS) };
    let Some(project) = &arguments.project else {
        output::json(&schema.to_json())?;
        return Ok(ExitCode::SUCCESS);
    };
    let types = files::read_types(project);
    let schema = match types.unreadable() {
        [] => schema.for_project(&types.files),
        problems => Err(problems.to_vec()),
    };
    match schema {
        Ok(schema) => {
            output::json(&schema)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(diagnostics) => {
            diagnostics.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
            Ok(ExitCode::from(FAILED))
        }
    }
}
