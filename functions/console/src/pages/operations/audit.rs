//! The audit log: who changed what, or was refused to.

use api::audit::AuditEntryView;
use api::page::Page;
use api::request::Query;
use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use host::Problem;
use serde::Deserialize;

use super::super::Answer;
use crate::ask::query;
use crate::refused::Refused;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// Which entries to show. Days are those of UTC.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    actor: Option<String>,
    action: Option<String>,
    text: Option<String>,
    from: Option<String>,
    to: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    tab: &'static str,
    wanted: AuditQuery,
    page: Page<AuditEntryView>,
}

impl AuditQuery {
    /// Without the fields that a form sends empty.
    fn filled(mut self) -> Self {
        let fields = [&mut self.actor, &mut self.action, &mut self.text, &mut self.from, &mut self.to];
        for field in fields {
            *field = field.take().filter(|text| !text.trim().is_empty());
        }
        self
    }

    fn is_filtered(&self) -> bool {
        [&self.actor, &self.action, &self.text, &self.from, &self.to].iter().any(|field| field.is_some())
    }

    fn to_api(&self) -> String {
        let (from, to) = (self.from.as_deref().map(begin), self.to.as_deref().map(begin));
        query([
            ("limit", Some("50")),
            ("actor", self.actor.as_deref()),
            ("action", self.action.as_deref()),
            ("text", self.text.as_deref()),
            ("from", from.as_deref()),
            ("to", to.as_deref()),
            ("cursor", self.cursor.as_deref()),
        ])
    }

    /// Older entries, with the same filters.
    fn older(&self, cursor: &str) -> String {
        let query = query([
            ("actor", self.actor.as_deref()),
            ("action", self.action.as_deref()),
            ("text", self.text.as_deref()),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("cursor", Some(cursor)),
        ]);
        format!("/operations/audit{query}")
    }

    /// Everything of those days as a file; an export knows no other filters.
    fn export(&self) -> String {
        format!(
            "/operations/audit/export{}",
            query([("from", self.from.as_deref()), ("to", self.to.as_deref())])
        )
    }
}

/// When a day begins.
fn begin(day: &str) -> String {
    if day.len() == "2026-01-31".len() { format!("{day}T00:00:00Z") } else { day.to_owned() }
}

pub(super) async fn page(visitor: Visitor, wanted: Result<Query<AuditQuery>, Problem>) -> Answer {
    let wanted = wanted?.0.filled();
    let page = visitor.ask.get(&format!("/audit{}", wanted.to_api())).await?;
    Ok(show::html(&AuditPage { shell: visitor.shell, tab: "audit", wanted, page }))
}

/// All of the log as a file, a JSON object a line.
pub(super) async fn export(
    visitor: Visitor,
    wanted: Result<Query<AuditQuery>, Problem>,
) -> Result<Response, Refused> {
    let wanted = wanted?.0.filled();
    let (from, to) = (wanted.from.as_deref().map(begin), wanted.to.as_deref().map(begin));
    let query = query([("from", from.as_deref()), ("to", to.as_deref())]);
    let request = Request::get(format!("/api/v1/audit/export{query}")).body(Body::empty());
    let request = request.map_err(|error| Problem::bad_request(error.to_string()))?;
    let mut response = visitor.ask.raw(request).await;
    if response.status().is_success() {
        let file = HeaderValue::from_static("attachment; filename=\"audit.ndjson\"");
        response.headers_mut().insert(header::CONTENT_DISPOSITION, file);
    }
    Ok(response)
}

impl AuditPage {
    /// Whether it was done, by the status of the answer.
    fn mark(&self, entry: &AuditEntryView) -> Markup {
        show::shape_named(if entry.status < 400 { "succeeded" } else { "failed" })
    }
}
