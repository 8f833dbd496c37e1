//! `ebb apply`: registers a folder of workflows.

use std::process::ExitCode;

use anyhow::Result;
use api::definitions::{File, Files};
use api::workflows::Registration;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::{FAILED, connect, validate};
use crate::args::{Apply, Shared};
use crate::files;
use crate::output::{self, Colour, Palette};

pub(super) async fn run(shared: &Shared, arguments: &Apply) -> Result<ExitCode> {
    let files = files::read(&arguments.folder)?;
    let compiled = language::compile(&files);
    if !compiled.diagnostics.is_empty() {
        match shared.json {
            true => output::json(&json!({"valid": false, "diagnostics": compiled.diagnostics}))?,
            false => validate::complain(&compiled)?,
        }
        eprintln!("nothing was registered");
        return Ok(ExitCode::from(FAILED));
    }
    let body = Files { files: files.into_iter().map(File::from).collect() };
    let done: Registration = connect(shared)?.post(&["workflows"], HeaderMap::new(), &body).await?;
    if shared.json {
        output::json(&done)?
    } else {
        report(&done)?
    }
    Ok(ExitCode::SUCCESS)
}

fn report(done: &Registration) -> Result<()> {
    let palette = Palette::of_stdout();
    for workflow in &done.registered {
        let (colour, what) = match (workflow.new, workflow.changed) {
            (true, _) => (Colour::Good, "registered"),
            (false, true) => (Colour::Good, "activated "),
            (false, false) => (Colour::Quiet, "unchanged "),
        };
        output::line(format!("{} {} v{}", palette.paint(colour, what), workflow.name, workflow.version))?;
    }
    Ok(())
}
