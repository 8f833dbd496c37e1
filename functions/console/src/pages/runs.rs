//! Runs: filters in the address, pages by key, and one action for all that the filters let pass.

use api::bulk::{BatchView, CountView};
use api::page::Page;
use api::request::Query;
use api::views::RunView;
use askama::Template;
use axum::response::{IntoResponse, Response};
use host::Problem;
use model::RunState;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Answer;
use crate::ask::query;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::{Shell, back};
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// The number of batches of a hundred runs that one form acts on.
const MAX_BATCHES: usize = 20;

/// Which runs to show.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    workflow: Option<String>,
    state: Option<String>,
    parent: Option<String>,
    cursor: Option<String>,
    limit: Option<u32>,
    /// Where the list went on from, so that the way back is known.
    page: Option<u32>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    shell: Shell,
    wanted: RunsQuery,
    page: Page<RunView>,
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    shell: Shell,
    action: String,
    filter: Filter,
    count: CountView,
    back: String,
}

struct Filter {
    workflow: Option<String>,
    state: Option<String>,
    parent: Option<String>,
}

impl RunsQuery {
    /// Without the fields that a form sends empty.
    fn filled(mut self) -> Self {
        for field in [&mut self.workflow, &mut self.state, &mut self.parent, &mut self.cursor] {
            *field = field.take().filter(|text| !text.is_empty());
        }
        self
    }

    fn is_filtered(&self) -> bool {
        self.workflow.is_some() || self.state.is_some() || self.parent.is_some()
    }

    /// The same list with another state.
    fn with_state(&self, state: &str) -> String {
        let state = Some(state).filter(|state| !state.is_empty());
        let (workflow, parent) = (self.workflow.as_deref(), self.parent.as_deref());
        format!("/runs{}", query([("workflow", workflow), ("state", state), ("parent", parent)]))
    }

    /// The address of the next page, which begins at this cursor.
    fn from(&self, cursor: &str) -> String {
        let page = (self.page.unwrap_or(1) + 1).to_string();
        let query = query([
            ("workflow", self.workflow.as_deref()),
            ("state", self.state.as_deref()),
            ("parent", self.parent.as_deref()),
            ("cursor", Some(cursor)),
            ("page", Some(page.as_str())),
        ]);
        format!("/runs{query}")
    }
}

pub(crate) async fn page(visitor: Visitor, wanted: Result<Query<RunsQuery>, Problem>) -> Answer {
    let wanted = wanted?.0.filled();
    let limit = wanted.limit.unwrap_or(50).to_string();
    let query = query([
        ("workflow", wanted.workflow.as_deref()),
        ("state", wanted.state.as_deref()),
        ("parent", wanted.parent.as_deref()),
        ("cursor", wanted.cursor.as_deref()),
        ("limit", Some(limit.as_str())),
    ]);
    let page = visitor.ask.get(&format!("/runs{query}")).await?;
    Ok(show::html(&RunsPage { shell: visitor.shell, wanted, page }))
}

/// Counts what an action would be about, and once that is confirmed, carries it out.
pub(crate) async fn bulk(visitor: Visitor, sent: Sent) -> Result<Response, Refused> {
    sent.only(["workflow", "state", "parent", "action", "sure", "reason"])?;
    let field = |name: &str| sent.field(name).map(str::to_owned);
    let filter = Filter { workflow: field("workflow"), state: field("state"), parent: field("parent") };
    let action = field("action").unwrap_or_default();
    let of = json!({"workflow": filter.workflow, "state": filter.state, "parent": filter.parent});
    if sent.field("sure").is_none() {
        let body = json!({"filter": of, "action": action, "dry_run": true});
        let count: CountView = visitor.ask.post("/runs/bulk", &body).await?;
        let back = sent.back().to_owned();
        return Ok(
            show::html(&BulkPage { shell: visitor.shell, action, filter, count, back }).into_response()
        );
    }
    let done = act_on_all(&visitor, &of, &action, sent.field("reason")).await?;
    let more = if done.next_cursor.is_some() { " More runs match; repeat the action." } else { "" };
    let (applied, stale, failed) = (done.applied, done.stale, done.failed);
    let words = format!("{applied} runs changed, {stale} skipped, {failed} failed.{more}");
    Ok(back(sent.back(), failed == 0, &words))
}

async fn act_on_all(
    visitor: &Visitor,
    filter: &Value,
    action: &str,
    reason: Option<&str>,
) -> Result<BatchView, Refused> {
    let mut all = BatchView::default();
    for _ in 0..MAX_BATCHES {
        let body = json!({"filter": filter, "action": action, "reason": reason, "cursor": all.next_cursor});
        let batch: BatchView = visitor.ask.post("/runs/bulk", &body).await?;
        all.count += batch.count;
        all.applied += batch.applied;
        all.stale += batch.stale;
        all.failed += batch.failed;
        all.next_cursor = batch.next_cursor;
        if all.next_cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

impl RunsPage {
    fn bulk(&self) -> Markup {
        self.shell.post("/runs/bulk")
    }
}
