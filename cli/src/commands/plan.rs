//! `ebb plan`: what `ebb apply` would change, without changing it.

mod fields;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Result;
use api::compare::{self, Difference};
use api::page::{MAX_LIMIT, Page};
use api::schedules::{self, NextView};
use api::versions::VersionView;
use api::views::{RunView, WorkflowDetail, WorkflowView};
use bus::SystemClock;
use language::{Compilation, Definition};
use model::{Clock, RunState};
use serde::Serialize;
use serde_json::json;

use super::{FAILED, connect, validate};
use crate::args::{Plan as Arguments, Shared};
use crate::client::{Client, Error};
use crate::files;
use crate::output::{self, Palette};

/// What applying a folder would do.
#[derive(Serialize)]
struct Plan {
    /// What would happen to each workflow of the folder, by name.
    workflows: Vec<Planned>,
    /// Active workflows that are not in the folder and would be archived with --prune.
    archive: Vec<String>,
    /// Without --prune they are listed here and left alone.
    only_on_server: Vec<String>,
}

/// What would happen to one workflow.
#[derive(Serialize)]
struct Planned {
    name: String,
    change: Change,
    tasks: usize,
    /// The active version on the server.
    before: Option<i32>,
    /// The version that would be active.
    after: i32,
    /// What differs between the two.
    difference: Difference,
    /// Unfinished runs, which would keep their version.
    unfinished: Unfinished,
    /// The next instants of its schedules, if they would change.
    next: Vec<NextView>,
}

/// What kind of change it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    /// The server does not know it.
    New,
    /// Another version would become the active one.
    Changed,
    /// It is archived on the server and would be active again.
    Archived,
    Unchanged,
}

/// How many runs of each version have not ended.
#[derive(Default, Serialize)]
struct Unfinished {
    versions: BTreeMap<i32, usize>,
    /// Whether there are more than were counted.
    more: bool,
}

pub(super) async fn run(shared: &Shared, arguments: &Arguments) -> Result<ExitCode> {
    let compiled = files::read(&arguments.folder)?.compile();
    if !compiled.diagnostics.is_empty() {
        return report_problems(shared, &compiled);
    }
    let mut plan = make(&connect(shared)?, compiled.definitions).await?;
    if arguments.prune {
        super::apply::reject_empty_folder(plan.workflows.len())?;
        plan.archive = std::mem::take(&mut plan.only_on_server);
    }
    if shared.json {
        let mut whole = serde_json::to_value(&plan)?;
        whole["valid"] = true.into();
        output::json(&whole)?;
    } else {
        output::line(text::plan(&plan, &command(arguments), Palette::of_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report_problems(shared: &Shared, compiled: &Compilation) -> Result<ExitCode> {
    match shared.json {
        true => output::json(&json!({"valid": false, "diagnostics": compiled.diagnostics}))?,
        false => validate::print_problems(compiled)?,
    }
    eprintln!("`ebb apply` would register nothing");
    Ok(ExitCode::from(FAILED))
}

/// The command that applies the plan.
fn command(arguments: &Arguments) -> String {
    let folder = match arguments.folder.to_str() {
        Some("workflows") => String::new(),
        _ => format!(" {}", arguments.folder.display()),
    };
    format!("ebb apply{folder}{}", if arguments.prune { " --prune" } else { "" })
}

async fn make(client: &Client, definitions: Vec<Definition>) -> Result<Plan> {
    let registered: Vec<WorkflowView> = client.all(&["workflows"]).await?;
    let active: BTreeMap<&str, &WorkflowView> =
        registered.iter().map(|workflow| (workflow.name.as_str(), workflow)).collect();
    let here: BTreeSet<String> =
        definitions.iter().map(|definition| definition.workflow.name.clone()).collect();
    let mut workflows = Vec::with_capacity(definitions.len());
    for definition in definitions {
        workflows.push(match active.get(definition.workflow.name.as_str()) {
            Some(active) if active.hash == definition.hash => unchanged(active),
            _ => planned(client, &definition).await?,
        });
    }
    workflows.sort_by(|one, other| one.name.cmp(&other.name));
    let others = registered.into_iter().map(|workflow| workflow.name).filter(|name| !here.contains(name));
    Ok(Plan { workflows, archive: Vec::new(), only_on_server: others.collect() })
}

fn unchanged(active: &WorkflowView) -> Planned {
    Planned {
        name: active.name.clone(),
        change: Change::Unchanged,
        tasks: active.tasks,
        before: Some(active.version),
        after: active.version,
        difference: Difference::default(),
        unfinished: Unfinished::default(),
        next: Vec::new(),
    }
}

/// What would happen to a workflow that differs from the active version.
async fn planned(client: &Client, definition: &Definition) -> Result<Planned> {
    let (name, tasks) = (definition.workflow.name.clone(), definition.workflow.tasks.len());
    let Some(active) = detail(client, &name).await? else {
        let (difference, unfinished) = (Difference::default(), Unfinished::default());
        return Ok(Planned {
            name,
            change: Change::New,
            tasks,
            before: None,
            after: 1,
            difference,
            unfinished,
            next: schedules::next_of(&definition.workflow, SystemClock.now()),
        });
    };
    let difference = compare::compare(&active.definition, &definition.workflow);
    let moved = active.summary.archived
        || difference.fields.iter().any(|change| change.field.split('.').next() == Some("schedule"));
    let now = moved.then(|| SystemClock.now());
    Ok(Planned {
        next: now.map(|now| schedules::next_of(&definition.workflow, now)).unwrap_or_default(),
        change: if active.summary.archived { Change::Archived } else { Change::Changed },
        tasks,
        before: Some(active.summary.version),
        after: number_of(client, definition).await?,
        difference,
        unfinished: unfinished(client, &name).await?,
        name,
    })
}

async fn detail(client: &Client, name: &str) -> Result<Option<WorkflowDetail>> {
    match client.get(&["workflows", name], &[]).await {
        Ok(found) => Ok(Some(found)),
        Err(Error::Rejected { status: 404, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The number that a definition has, or would get.
async fn number_of(client: &Client, definition: &Definition) -> Result<i32> {
    let versions: Vec<VersionView> =
        client.all(&["workflows", &definition.workflow.name, "versions"]).await?;
    let known = versions.iter().find(|version| version.hash == definition.hash);
    let next = versions.first().map_or(1, |newest| newest.number + 1);
    Ok(known.map_or(next, |version| version.number))
}

/// The unfinished runs of a workflow, at most one page for each state.
async fn unfinished(client: &Client, workflow: &str) -> Result<Unfinished> {
    let mut found = Unfinished::default();
    for state in RunState::ALL.into_iter().filter(|state| !state.is_final()) {
        let query = [
            ("workflow", workflow.to_owned()),
            ("state", state.name().to_owned()),
            ("limit", MAX_LIMIT.to_string()),
        ];
        let page: Page<RunView> = client.get(&["runs"], &query).await?;
        for run in &page.items {
            *found.versions.entry(run.version).or_default() += 1;
        }
        found.more |= page.next_cursor.is_some();
    }
    Ok(found)
}
