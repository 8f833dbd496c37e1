//! `ebb validate`: checks files, without a server.

use std::process::ExitCode;

use anyhow::Result;
use language::Compilation;
use serde_json::json;

use super::FAILED;
use crate::args::{Shared, Validate};
use crate::files;
use crate::output::{self, Colour, Palette};

pub(super) fn run(shared: &Shared, arguments: &Validate) -> Result<ExitCode> {
    let compiled = files::read_all(&arguments.paths)?.compile();
    let is_valid = compiled.diagnostics.is_empty();
    if shared.json {
        let names: Vec<&str> =
            compiled.definitions.iter().map(|definition| definition.workflow.name.as_str()).collect();
        output::json(&json!({"valid": is_valid, "workflows": names, "diagnostics": compiled.diagnostics}))?;
    } else if is_valid {
        output::line(format!("{} workflows are valid", compiled.definitions.len()))?;
    } else {
        print_problems(&compiled)?;
    }
    Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Prints every problem with its position in the file.
pub(super) fn print_problems(compiled: &Compilation) -> Result<()> {
    let palette = Palette::of_stdout();
    for problem in &compiled.diagnostics {
        output::line(problem)?;
    }
    let count = compiled.diagnostics.len();
    let summary = format!("{count} {}", if count == 1 { "problem" } else { "problems" });
    Ok(output::line(palette.paint(Colour::Bad, summary))?)
}
