//! `ebb versions`, `ebb rollback`, `ebb archive`: the versions of a workflow.

use std::process::ExitCode;

use anyhow::Result;
use api::versions::{VersionView, WorkflowState};
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{Archive, Rollback, Shared, Versions};
use crate::output::{self, Colour, Palette};

/// This many characters of a hash distinguish versions.
const SHORT_HASH: usize = 12;

pub(super) async fn list(shared: &Shared, arguments: &Versions) -> Result<ExitCode> {
    let versions: Vec<VersionView> =
        connect(shared)?.all(&["workflows", &arguments.name, "versions"]).await?;
    output::print(shared, &json!({ "items": versions }), || {
        let archived = versions.iter().all(|version| !version.active);
        let note = format!("\n{} is archived: no version is active", arguments.name);
        table(&versions, Palette::of_stdout()) + if archived { &note } else { "" }
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn rollback(shared: &Shared, arguments: &Rollback) -> Result<ExitCode> {
    let path = ["workflows", &arguments.name, "versions", &arguments.version.to_string(), "activate"];
    let state: WorkflowState = connect(shared)?.post(&path, HeaderMap::new(), &json!({})).await?;
    report(shared, &state, rolled_back(&state))
}

pub(super) async fn archive(shared: &Shared, arguments: &Archive) -> Result<ExitCode> {
    let path = ["workflows", &arguments.name, "archive"];
    let state: WorkflowState = connect(shared)?.post(&path, HeaderMap::new(), &json!({})).await?;
    report(shared, &state, archived(&state))
}

fn report(shared: &Shared, state: &WorkflowState, message: String) -> Result<ExitCode> {
    output::print(shared, state, || message)?;
    Ok(ExitCode::SUCCESS)
}

fn rolled_back(state: &WorkflowState) -> String {
    let WorkflowState { name, version, .. } = state;
    match state.changed {
        true => format!("{name} is back at v{version}: new runs use it, unfinished runs keep their version"),
        false => format!("{name} is already at v{version}: nothing changed"),
    }
}

fn archived(state: &WorkflowState) -> String {
    let WorkflowState { name, version, .. } = state;
    match state.changed {
        true => format!(
            "{name} is archived: no new runs start, unfinished runs continue\n\
             restore it: ebb rollback {name} {version}"
        ),
        false => format!("{name} is already archived: nothing changed"),
    }
}

fn table(versions: &[VersionView], palette: Palette) -> String {
    let head = ["VERSION", "", "CREATED", "BY", "TASKS", "HASH"];
    let rows = versions.iter().map(|version| {
        vec![
            format!("v{}", version.number),
            if version.active { "active".into() } else { String::new() },
            output::time(version.created_at),
            version.created_by.clone(),
            version.tasks.to_string(),
            version.hash.chars().take(SHORT_HASH).collect(),
        ]
    });
    output::painted_table(head, rows, |version, _, cell| match versions[version].active {
        true => palette.paint(Colour::Good, cell),
        false => cell,
    })
}

#[cfg(test)]
mod tests {
    use model::Instant;

    use super::*;

    fn version(number: i32, active: bool) -> VersionView {
        VersionView {
            number,
            hash: "0123456789abcdef".into(),
            created_at: Instant::from_timestamp(1_800_000_000, 0).unwrap(),
            created_by: "ada".into(),
            active,
            tasks: 3,
        }
    }

    #[test]
    fn the_active_version_is_marked() {
        let text = table(&[version(2, false), version(1, true)], Palette { on: false });
        assert_eq!(
            text,
            "VERSION          CREATED               BY   TASKS  HASH\n\
             v2               2027-01-15 08:00:00Z  ada  3      0123456789ab\n\
             v1       active  2027-01-15 08:00:00Z  ada  3      0123456789ab"
        );
    }

    #[test]
    fn a_command_that_changes_nothing_reports_it() {
        let state = |changed| WorkflowState { name: "etl".into(), version: 1, archived: false, changed };
        assert!(rolled_back(&state(true)).starts_with("etl is back at v1"));
        assert!(rolled_back(&state(false)).ends_with("nothing changed"));
        assert!(archived(&state(true)).contains("ebb rollback etl 1"));
        assert!(archived(&state(false)).ends_with("nothing changed"));
    }
}
