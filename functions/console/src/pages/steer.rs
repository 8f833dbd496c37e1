//! What people do to runs and tasks: the buttons.

use api::approvals::ApprovalForm;
use api::request::Path;
use api::views::RunView;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use host::Problem;
use model::RunId;
use serde_json::{Value, json};

use super::At;
use super::fields::values;
use crate::Console;
use crate::ask::part;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::back;
use crate::visitor::Visitor;

/// A button of a run.
pub(crate) async fn run(
    visitor: Visitor,
    path: Result<Path<(RunId, String)>, Problem>,
    sent: Sent,
) -> Result<Response, Refused> {
    let Path((id, action)) = path?;
    let done = match action.as_str() {
        "pause" => "The run is paused: no more tasks start.",
        "resume" => "The run is resumed.",
        "cancel" => "The run is being cancelled.",
        "retry" => "Failed tasks are re-run.",
        "evaluate" => "The run was re-evaluated.",
        other => return Err(no_such(other)),
    };
    sent.only(["reason"])?;
    let body = json!({"reason": sent.field("reason")});
    let answer = visitor.ask.post::<RunView>(&format!("/runs/{id}/{action}"), &body).await;
    outcome(&sent, answer.map(|_| ()), done)
}

/// A button of a task.
pub(crate) async fn task(
    State(console): At,
    visitor: Visitor,
    path: Result<Path<(RunId, String, String)>, Problem>,
    sent: Sent,
) -> Result<Response, Refused> {
    let Path((id, task, action)) = path?;
    if action != "approve" {
        sent.only(["reason", "output"].into_iter().take(if action == "succeed" { 2 } else { 1 }))?;
    }
    let reason = sent.field("reason");
    let (body, done) = match action.as_str() {
        "clear" => (json!({"reason": reason}), format!("{task} and everything downstream is re-run.")),
        "succeed" => {
            let output = sent.field("output").map(serde_json::from_str::<Value>).transpose();
            let output = output
                .map_err(|error| Problem::bad_request(format!("the output is not valid JSON: {error}")))?;
            (json!({"reason": reason, "output": output}), format!("{task} was marked as succeeded."))
        }
        "fail" => (json!({"reason": reason}), format!("{task} was marked as failed.")),
        "wake" => (json!({"reason": reason}), format!("{task} no longer waits.")),
        "approve" => {
            let form = form(&console, &visitor, id, &task).await?;
            let kinds = form.fields().into_iter().map(|field| (field.name, field.kind));
            (json!({"fields": values(kinds.collect(), &[], &sent)?}), format!("{task} was approved."))
        }
        "reject" => (json!({"reason": reason}), format!("{task} was rejected.")),
        other => return Err(no_such(other)),
    };
    let path = format!("/runs/{id}/tasks/{}/{action}", part(&task));
    let answer = visitor.ask.post::<RunView>(&path, &body).await;
    outcome(&sent, answer.map(|_| ()), &done)
}

/// The form of an approval.
async fn form(console: &Console, visitor: &Visitor, id: RunId, task: &str) -> Result<ApprovalForm, Refused> {
    let (_, graph) = console.run(visitor, id).await?;
    let index =
        graph.index_of(task).ok_or_else(|| Problem::not_found(format!("there is no task `{task}`")))?;
    let form = ApprovalForm::of(graph.spec(index))?;
    Ok(form.ok_or_else(|| Problem::bad_request(format!("`{task}` is not an approval")))?)
}

/// Leads back to the page of the button, with the outcome.
pub(crate) fn outcome(sent: &Sent, answer: Result<(), Refused>, done: &str) -> Result<Response, Refused> {
    match answer {
        Ok(()) => Ok(back(sent.back(), true, done)),
        // A reader who is not signed in is led to the sign-in page.
        Err(no) if no.status == StatusCode::UNAUTHORIZED => Err(no),
        Err(no) => Ok(back(sent.back(), false, &format!("Failed: {}", no.message))),
    }
}

pub(crate) fn no_such(action: &str) -> Refused {
    Problem::not_found(format!("there is no button `{action}` here")).into()
}
