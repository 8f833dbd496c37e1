//! `ebb apply`: registers a folder of workflows.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Result, bail};
use api::definitions::{File, Files};
use api::versions::WorkflowState;
use api::views::WorkflowView;
use api::workflows::Registration;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::{FAILED, connect, validate};
use crate::args::{Apply, Shared};
use crate::client::Client;
use crate::files;
use crate::output::{self, Colour, Palette};

pub(super) async fn run(shared: &Shared, arguments: &Apply) -> Result<ExitCode> {
    let definitions = files::read(&arguments.folder)?;
    let compiled = definitions.compile();
    if !compiled.diagnostics.is_empty() {
        match shared.json {
            true => output::json(&json!({"valid": false, "diagnostics": compiled.diagnostics}))?,
            false => validate::print_problems(&compiled)?,
        }
        eprintln!("nothing was registered");
        return Ok(ExitCode::from(FAILED));
    }
    if arguments.prune {
        reject_empty_folder(compiled.definitions.len())?;
    }
    let body = Files { files: definitions.files.into_iter().map(File::from).collect() };
    let client = connect(shared)?;
    let done: Registration = client.post(&["workflows"], HeaderMap::new(), &body).await?;
    let archived = if arguments.prune { archive_others(&client, &done).await? } else { Vec::new() };
    if shared.json {
        let mut whole = serde_json::to_value(&done)?;
        whole["archived"] = json!(archived);
        output::json(&whole)?
    } else {
        report(&done, &archived)?
    }
    Ok(ExitCode::SUCCESS)
}

/// An empty folder is more likely a mistake than a request to archive everything.
pub(super) fn reject_empty_folder(workflows: usize) -> Result<()> {
    if workflows == 0 {
        bail!("the folder has no workflows: --prune would archive everything");
    }
    Ok(())
}

/// Archives every active workflow that was not just registered.
async fn archive_others(client: &Client, done: &Registration) -> Result<Vec<String>> {
    let registered: BTreeSet<&str> = done.registered.iter().map(|workflow| workflow.name.as_str()).collect();
    let active: Vec<WorkflowView> = client.all(&["workflows"]).await?;
    let mut archived = Vec::new();
    for WorkflowView { name, .. } in active.into_iter().filter(|it| !registered.contains(it.name.as_str())) {
        let state: WorkflowState =
            client.post(&["workflows", &name, "archive"], HeaderMap::new(), &json!({})).await?;
        archived.push(state.name);
    }
    Ok(archived)
}

fn report(done: &Registration, archived: &[String]) -> Result<()> {
    let palette = Palette::of_stdout();
    for workflow in &done.registered {
        let (colour, what) = match (workflow.new, workflow.changed) {
            (true, _) => (Colour::Good, "registered"),
            (false, true) => (Colour::Good, "activated "),
            (false, false) => (Colour::Quiet, "unchanged "),
        };
        output::line(format!("{} {} v{}", palette.paint(colour, what), workflow.name, workflow.version))?;
    }
    for name in archived {
        output::line(format!("{} {name}", palette.paint(Colour::Bad, "archived  ")))?;
    }
    Ok(())
}
