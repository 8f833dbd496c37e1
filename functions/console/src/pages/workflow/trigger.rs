//! The form that starts a run of a workflow.

use api::request::Query;
use api::views::RunView;
use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use host::Problem;
use model::RunId;
use read::WorkflowRecord;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::Answer;
use super::super::fields::{Field, values};
use super::{Named, Title};
use crate::ask::part;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::{Shell, back};
use crate::show;

#[derive(Template)]
#[template(path = "trigger.html")]
struct TriggerPage {
    shell: Shell,
    title: Title,
    fields: Vec<Field>,
    date: String,
    wrong: Option<String>,
    /// The run that already has the logical date, if there is one.
    other: Option<RunId>,
}

/// A form that is filled in as another run was.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TriggerQuery {
    like: Option<RunId>,
}

impl TriggerPage {
    fn new(shell: Shell, record: &WorkflowRecord, field: impl Fn(Field) -> Field) -> Self {
        let inputs = &record.version.workflow.inputs;
        let fields = inputs.iter().map(Field::of_input).map(field).collect();
        let title = Title::new(record, "trigger");
        Self { shell, title, fields, date: String::new(), wrong: None, other: None }
    }
}

pub(crate) async fn form(named: Named, wanted: Result<Query<TriggerQuery>, Problem>) -> Answer {
    let Named { visitor, record, .. } = named;
    let like = match wanted?.0.like {
        Some(run) => visitor.ask.get::<RunView>(&format!("/runs/{run}")).await?.inputs,
        None => Map::new(),
    };
    let filled_in = |field: Field| {
        let value = like.get(&field.label).map(|value| match value {
            Value::Array(_) | Value::Object(_) => show::editable(value),
            other => show::value(other),
        });
        Field { value: value.unwrap_or(field.value), ..field }
    };
    Ok(show::html(&TriggerPage::new(visitor.shell, &record, filled_in)))
}

/// Starts a run, or shows at each field what is wrong with it.
pub(crate) async fn start(named: Named, sent: Sent) -> Result<Response, Refused> {
    let Named { visitor, record, .. } = named;
    let inputs = &record.version.workflow.inputs;
    let kinds = inputs.iter().map(|input| (input.name.clone(), input.kind)).collect();
    let given = values(kinds, &["logical_date"], &sent)?;
    let date = sent.field("logical_date");
    let body = json!({"inputs": given, "logical_date": date.map(instant)});
    match visitor.ask.post::<RunView>(&format!("/workflows/{}/runs", part(&record.name)), &body).await {
        Ok(run) => Ok(back(&format!("/runs/{}", run.id), true, "The run was started.")),
        Err(no) if no.status == StatusCode::UNAUTHORIZED => Err(no),
        Err(no) => {
            let with_error = |field: Field| at_field(field.with_sent(&sent), &no.details);
            let mut page = TriggerPage::new(visitor.shell, &record, with_error);
            page.date = date.unwrap_or_default().to_owned();
            page.other = no.details.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
            let at_fields = page.fields.iter().any(|field| field.wrong.is_some());
            page.wrong = Some(if at_fields { "Some inputs are invalid.".into() } else { no.message });
            Ok((StatusCode::UNPROCESSABLE_ENTITY, show::html(&page)).into_response())
        }
    }
}

/// A field of a browser has neither seconds nor a zone; times here are UTC.
fn instant(text: &str) -> String {
    if text.len() == "2026-01-31T18:00".len() { format!("{text}:00Z") } else { text.to_owned() }
}

/// Adds the API's message about an input to its field.
fn at_field(mut field: Field, details: &Value) -> Field {
    let of = |problem: &&Value| problem["input"] == field.label.as_str();
    let found = details.as_array().and_then(|problems| problems.iter().find(of));
    field.wrong = found.map(|problem| {
        let hint = problem["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", problem["message"].as_str().unwrap_or("does not fit"))
    });
    field
}
