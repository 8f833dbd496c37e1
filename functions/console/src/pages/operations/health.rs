//! Dead letters, breakers and the doctor's report.

use api::breakers::{BreakerState, SharedBreakerView};
use api::dead_letters::DeadLetterView;
use api::doctor::{ReportView, Verdict};
use api::page::Page;
use api::request::Query;
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
    /// All of a letter, as JSON.
    fn all_of(&self, letter: &DeadLetterView) -> String {
        format!("/api/v1/dead-letters/{}", part(&letter.id))
    }

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

#[derive(Template)]
#[template(path = "breakers.html")]
struct BreakersPage {
    shell: Shell,
    tab: &'static str,
    page: Page<SharedBreakerView>,
}

/// Which page of breakers to read.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BreakersQuery {
    cursor: Option<String>,
}

/// The breakers of tasks and hosts, which all processes share.
pub(super) async fn breakers(visitor: Visitor, wanted: Result<Query<BreakersQuery>, Problem>) -> Answer {
    let query = query([("limit", Some("100")), ("cursor", wanted?.0.cursor.as_deref())]);
    let page = visitor.ask.get(&format!("/breakers{query}")).await?;
    Ok(show::html(&BreakersPage { shell: visitor.shell, tab: "breakers", page }))
}

impl BreakersPage {
    fn reset(&self, breaker: &SharedBreakerView) -> Markup {
        self.shell.post_from(&format!("/operations/breakers/{}/reset", breaker.id), "/operations/breakers")
    }

    /// The state of a task whose sign and colour its state has.
    fn sign(&self, breaker: &SharedBreakerView) -> &'static str {
        match breaker.state {
            BreakerState::Open => "failed",
            BreakerState::Probing => "up_for_retry",
            BreakerState::Closed => "succeeded",
        }
    }
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
    sent.only([])?;
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
