//! Versions of a workflow, what differs between two of them, and going back to one.

use api::page::Page;
use api::request::{Path, Query};
use api::versions::{Comparison, VersionView, WorkflowState};
use askama::Template;
use axum::response::Response;
use host::Problem;
use serde::Deserialize;
use serde_json::Value;

use super::Answer;
use super::steer::outcome;
use super::workflow::{Named, Title};
use crate::ask::{part, query};
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;
use crate::yaml;

/// Which version to show, and what to compare it with.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionsQuery {
    number: Option<i32>,
    with: Option<i32>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "versions.html")]
struct VersionsPage {
    shell: Shell,
    title: Title,
    page: Page<VersionView>,
    number: i32,
    comparison: Option<Comparison>,
    source: Markup,
}

pub(crate) async fn page(named: Named, wanted: Result<Query<VersionsQuery>, Problem>) -> Answer {
    let (Named { console, visitor, record }, Query(wanted)) = (named, wanted?);
    let path = format!("/workflows/{}/versions", part(&record.name));
    let page = visitor.ask.get(&format!("{path}{}", query([("cursor", wanted.cursor.as_deref())]))).await?;
    let number = wanted.number.unwrap_or(record.version.number);
    let shown = api::versions::find(&console.api, &visitor.caller, &record, number).await?;
    let before = wanted.with.or_else(|| Some(number - 1).filter(|before| *before >= 1));
    let comparison = match before.filter(|before| *before != number) {
        Some(before) => Some(visitor.ask.get(&format!("{path}/{before}/compare/{number}")).await?),
        None => None,
    };
    let title = Title::new(&record, "versions");
    let source = yaml::highlighted(&shown.source);
    Ok(show::html(&VersionsPage { shell: visitor.shell, title, page, number, comparison, source }))
}

pub(crate) async fn activate(
    visitor: Visitor,
    path: Result<Path<(String, i32)>, Problem>,
    sent: Sent,
) -> Result<Response, Refused> {
    let Path((name, number)) = path?;
    sent.only([])?;
    let path = format!("/workflows/{}/versions/{number}/activate", part(&name));
    let answer = visitor.ask.post::<WorkflowState>(&path, &Value::Null).await;
    outcome(&sent, answer.map(|_| ()), &format!("New runs of {name} use version {number}."))
}

impl VersionsPage {
    fn activation(&self, number: impl std::fmt::Display) -> Markup {
        self.shell.post(self.title.link(&format!("/versions/{number}/activate")))
    }

    /// A value of a field that differs, as text.
    fn written(&self, value: &Option<Value>) -> String {
        match value {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => show::json(other),
        }
    }
}
