//! Dead letters, breakers and the doctor's report.

use api::dead_letters::DeadLetterView;
use api::doctor::{ReportView, Verdict};
use api::page::Page;
use api::request::Query;
use api::views::{BreakerView, WorkerView};
use askama::Template;
use axum::response::Response;
use host::Problem;
use serde::Deserialize;
use serde_json::json;

use super::super::Answer;
use super::super::steer::outcome;
use crate::ask::{part, query};
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// Which dead letters to show.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLettersQuery {
    source: Option<String>,
    text: Option<String>,
    cursor: Option<String>,
    /// The dead letter to show in full.
    id: Option<String>,
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    shell: Shell,
    tab: &'static str,
    wanted: DeadLettersQuery,
    page: Page<DeadLetterView>,
    open: Option<DeadLetterView>,
}

pub(super) async fn dead_letters(
    visitor: Visitor,
    wanted: Result<Query<DeadLettersQuery>, Problem>,
) -> Answer {
    let mut wanted = wanted?.0;
    for field in [&mut wanted.source, &mut wanted.text] {
        *field = field.take().filter(|text| !text.is_empty());
    }
    let query = query([
        ("limit", Some("50")),
        ("source", wanted.source.as_deref()),
        ("text", wanted.text.as_deref()),
        ("cursor", wanted.cursor.as_deref()),
    ]);
    let page = visitor.ask.get(&format!("/dead-letters{query}")).await?;
    let open = match &wanted.id {
        Some(id) => Some(visitor.ask.get(&format!("/dead-letters/{}", part(id))).await?),
        None => None,
    };
    Ok(show::html(&DeadLettersPage { shell: visitor.shell, tab: "dead-letters", wanted, page, open }))
}

impl DeadLettersPage {
    fn steer(&self, letter: &DeadLetterView, action: &str) -> Markup {
        let action = format!("/operations/dead-letters/{}/{action}", part(&letter.id));
        self.shell.post_from(&action, "/operations/dead-letters")
    }

    fn more(&self, cursor: &str) -> String {
        let query = query([
            ("source", self.wanted.source.as_deref()),
            ("text", self.wanted.text.as_deref()),
            ("cursor", Some(cursor)),
        ]);
        format!("/operations/dead-letters{query}")
    }
}

/// An open breaker and its worker.
struct Breaker {
    breaker: BreakerView,
    worker: WorkerView,
}

#[derive(Template)]
#[template(path = "breakers.html")]
struct BreakersPage {
    shell: Shell,
    tab: &'static str,
    rows: Vec<Breaker>,
    cursor: Option<String>,
}

/// Which page of workers to read.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BreakersQuery {
    cursor: Option<String>,
}

/// The breakers of a page of workers: each worker has its own.
pub(super) async fn breakers(visitor: Visitor, wanted: Result<Query<BreakersQuery>, Problem>) -> Answer {
    let query = query([("limit", Some("100")), ("cursor", wanted?.0.cursor.as_deref())]);
    let page: Page<WorkerView> = visitor.ask.get(&format!("/workers{query}")).await?;
    let of = |worker: WorkerView| {
        let each = worker.breakers.clone().into_iter();
        each.map(move |breaker| Breaker { breaker, worker: worker.clone() })
    };
    let mut rows: Vec<Breaker> = page.items.into_iter().flat_map(of).collect();
    rows.sort_by(|one, other| one.breaker.host.cmp(&other.breaker.host));
    Ok(show::html(&BreakersPage { shell: visitor.shell, tab: "breakers", rows, cursor: page.next_cursor }))
}

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage {
    shell: Shell,
    tab: &'static str,
    report: ReportView,
}

pub(super) async fn health(visitor: Visitor) -> Answer {
    let report = visitor.ask.get("/doctor").await?;
    Ok(show::html(&HealthPage { shell: visitor.shell, tab: "health", report }))
}

/// Repairs what can be repaired without a person.
pub(super) async fn repair(visitor: Visitor, sent: Sent) -> Result<Response, Refused> {
    let answer = visitor.ask.post::<ReportView>("/doctor/repair", &json!({})).await;
    let words = answer.as_ref().map(|report| format!("{} findings were repaired.", report.repaired.len()));
    let words = words.unwrap_or_default();
    outcome(&sent, answer.map(|_| ()), &words)
}

impl HealthPage {
    fn repair(&self) -> Markup {
        self.shell.post("/operations/health")
    }

    fn mark(&self, verdict: &Verdict) -> Markup {
        show::shape_named(if *verdict == Verdict::Ok { "succeeded" } else { "failed" })
    }
}
