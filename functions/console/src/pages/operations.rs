//! Operations: what the machinery is about, and what people can do about it.

mod audit;
mod health;
mod tables;

use api::limits::LimitView;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use host::Problem;
use serde_json::{Map, Value, json};

use super::steer::{no_such, outcome};
use crate::Console;
use crate::ask::part;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::visitor::Visitor;

type Path<T> = Result<api::request::Path<T>, Problem>;

/// All pages of operations.
pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/operations", get(tables::limits))
        .route("/operations/limits/{kind}/{name}", post(set_limit))
        .route("/operations/workers", get(tables::workers))
        .route("/operations/timers", get(tables::timers))
        .route("/operations/schedules", get(tables::schedules))
        .route("/operations/triggers", get(tables::triggers))
        .route("/operations/triggers/{workflow}/{name}/{action}", post(steer_trigger))
        .route("/operations/backfills", get(tables::backfills))
        .route("/operations/dead-letters", get(health::dead_letters))
        .route("/operations/breakers", get(health::breakers))
        .route("/operations/audit", get(audit::page))
        .route("/operations/audit/export", get(audit::export))
        .route("/operations/health", get(health::health).post(health::repair))
        .route("/operations/{page}/{id}/{action}", post(steer))
}

/// A button of a page: the API's endpoint, the fields that it sends, and the message afterwards.
struct Button {
    page: &'static str,
    things: &'static str,
    action: &'static str,
    fields: &'static [&'static str],
    done: &'static str,
}

const fn button(
    [page, things, action]: [&'static str; 3],
    fields: &'static [&'static str],
    done: &'static str,
) -> Button {
    Button { page, things, action, fields, done }
}

const BUTTONS: [Button; 12] = [
    button(["workers", "workers", "drain"], &["reason"], "The worker finishes its attempts and ends."),
    button(["workers", "workers", "kill"], &["reason"], "The worker hands back its attempts and ends."),
    button(["schedules", "schedules", "pause"], &["name", "reason"], "The schedule is paused."),
    button(["schedules", "schedules", "resume"], &["name", "missed"], "The schedule is resumed."),
    button(["triggers", "triggers", "pause"], &[], "The trigger is paused: events start no runs."),
    button(["triggers", "triggers", "resume"], &[], "The trigger is resumed."),
    button(["backfills", "backfills", "pause"], &[], "The backfill is paused."),
    button(["backfills", "backfills", "resume"], &[], "The backfill is resumed."),
    button(["backfills", "backfills", "cancel"], &[], "The backfill and its runs are being cancelled."),
    button(["breakers", "breakers", "reset"], &[], "The breaker is closed, and its tasks and calls begin."),
    button(["dead-letters", "dead-letters", "replay"], &[], "The message was published again."),
    button(["dead-letters", "dead-letters", "discard"], &[], "The message was discarded."),
];

async fn steer(
    visitor: Visitor,
    path: Path<(String, String, String)>,
    sent: Sent,
) -> Result<Response, Refused> {
    let api::request::Path((page, id, action)) = path?;
    press(&visitor, &sent, &page, &part(&id), &action).await
}

async fn steer_trigger(
    visitor: Visitor,
    path: Path<(String, String, String)>,
    sent: Sent,
) -> Result<Response, Refused> {
    let api::request::Path((workflow, name, action)) = path?;
    let thing = format!("{}/{}", part(&workflow), part(&name));
    press(&visitor, &sent, "triggers", &thing, &action).await
}

/// Calls the API for a button of a page.
async fn press(
    visitor: &Visitor,
    sent: &Sent,
    page: &str,
    thing: &str,
    action: &str,
) -> Result<Response, Refused> {
    let pressed = BUTTONS.iter().find(|button| button.page == page && button.action == action);
    let Button { things, fields, done, .. } = pressed.ok_or_else(|| no_such(action))?;
    sent.only(fields.iter().copied())?;
    let body: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!(sent.field(field)))).collect();
    let answer = visitor.ask.post::<Value>(&format!("/{things}/{thing}/{action}"), &body.into()).await;
    outcome(sent, answer.map(|_| ()), done)
}

async fn set_limit(visitor: Visitor, path: Path<(String, String)>, sent: Sent) -> Result<Response, Refused> {
    let api::request::Path((kind, name)) = path?;
    sent.only(["slots"])?;
    let slots = sent.field("slots").map(str::parse::<u32>).transpose();
    let slots = slots.map_err(|_| Problem::bad_request("the number of slots must be a whole number"))?;
    let path = format!("/limits/{}/{}", part(&kind), part(&name));
    let answer = visitor.ask.post::<LimitView>(&path, &json!({ "slots": slots })).await;
    let words = slots.map_or_else(|| "no limit".into(), |slots| format!("{slots} slots"));
    outcome(&sent, answer.map(|_| ()), &format!("The {kind} {name} now has {words}."))
}
