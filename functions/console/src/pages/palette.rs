//! Where one can go from the palette.

use api::page::Page;
use api::views::{RunView, WorkflowView};
use axum::Json;
use serde::Serialize;

use crate::ask::part;
use crate::refused::Refused;
use crate::show;
use crate::visitor::Visitor;

/// The pages that there always are.
const PAGES: [(&str, &str); 15] = [
    ("Home", "/"),
    ("Runs", "/runs"),
    ("Failed runs", "/runs?state=failed"),
    ("Running runs", "/runs?state=running"),
    ("Workflows", "/workflows"),
    ("Queues and limits", "/operations"),
    ("Workers", "/operations/workers"),
    ("Timers", "/operations/timers"),
    ("Schedules", "/operations/schedules"),
    ("Triggers", "/operations/triggers"),
    ("Backfills", "/operations/backfills"),
    ("Dead letters", "/operations/dead-letters"),
    ("Breakers", "/operations/breakers"),
    ("Audit log", "/operations/audit"),
    ("Health", "/operations/health"),
];

/// A place to go to.
#[derive(Serialize)]
pub(crate) struct Entry {
    label: String,
    hint: String,
    href: String,
}

pub(crate) async fn entries(visitor: Visitor) -> Result<Json<Vec<Entry>>, Refused> {
    let entry =
        |label: &str, hint: &str, href: String| Entry { label: label.into(), hint: hint.into(), href };
    let mut all: Vec<Entry> =
        PAGES.iter().map(|(label, href)| entry(label, "page", (*href).to_owned())).collect();
    let workflows: Option<Page<WorkflowView>> = visitor.ask.get_if_allowed("/workflows?limit=100").await?;
    for WorkflowView { name, .. } in workflows.into_iter().flat_map(|page| page.items) {
        all.push(entry(&name, "workflow", format!("/workflows/{}", part(&name))));
        all.push(entry(&format!("Run {name}"), "start a run", format!("/workflows/{}/trigger", part(&name))));
    }
    let runs: Page<RunView> = visitor.ask.get("/runs?limit=30").await?;
    for run in runs.items {
        let label = format!("{} {}", run.workflow, show::short(&run.id));
        let hint = format!("{}, {}", run.state.name(), show::distance(run.created_at, visitor.shell.now));
        all.push(entry(&label, &hint, format!("/runs/{}", run.id)));
    }
    Ok(Json(all))
}
