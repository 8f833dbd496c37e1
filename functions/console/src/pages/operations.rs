//! Operations: what the machinery is about, and what people can do about it.

mod tables;
mod told;

use api::backfills::BackfillView;
use api::limits::LimitList;
use api::triggers::TriggerView;
use api::views::WorkerView;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use service::Problem;

use super::steer::{no_such, told};
use crate::Console;
use crate::ask::part;
use crate::reader::Reader;
use crate::refused::Refused;
use crate::sent::Sent;

type Path<T> = Result<api::request::Path<T>, Problem>;

/// All pages of operations.
pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/operations", get(tables::limits))
        .route("/operations/limits/{kind}/{name}", post(set_limit))
        .route("/operations/workers", get(tables::workers))
        .route("/operations/workers/{id}/{action}", post(order))
        .route("/operations/timers", get(tables::timers))
        .route("/operations/schedules", get(tables::schedules))
        .route("/operations/schedules/{workflow}/{action}", post(steer_schedule))
        .route("/operations/triggers", get(tables::triggers))
        .route("/operations/triggers/{workflow}/{name}/{action}", post(steer_trigger))
        .route("/operations/backfills", get(tables::backfills))
        .route("/operations/backfills/{id}/{action}", post(steer_backfill))
        .route("/operations/letters", get(told::letters))
        .route("/operations/letters/{id}/{action}", post(steer_letter))
        .route("/operations/health", get(told::health).post(told::repair))
}

async fn set_limit(reader: Reader, place: Path<(String, String)>, sent: Sent) -> Result<Response, Refused> {
    let api::request::Path((kind, name)) = place?;
    let places = sent.field("places").map(str::parse::<u32>).transpose();
    let places = places.map_err(|_| Problem::bad_request("the number of places is no whole number"))?;
    let path = format!("/limits/{}/{}", part(&kind), part(&name));
    let answer = reader.ask.post::<LimitList>(&path, &json!({ "places": places })).await;
    let words = places.map_or_else(|| "no bound".into(), |places| format!("{places} places"));
    told(&sent, answer.map(|_| ()), &format!("The {kind} {name} has {words} now."))
}

async fn order(reader: Reader, place: Path<(String, String)>, sent: Sent) -> Result<Response, Refused> {
    let api::request::Path((id, action)) = place?;
    let done = match action.as_str() {
        "drain" => "The worker finishes what it holds and ends.",
        "kill" => "The worker hands back what it holds and ends.",
        other => return Err(no_such(other)),
    };
    let path = format!("/workers/{}/{action}", part(&id));
    let answer = reader.ask.post::<WorkerView>(&path, &json!({"reason": sent.field("reason")})).await;
    told(&sent, answer.map(|_| ()), done)
}

async fn steer_schedule(
    reader: Reader,
    place: Path<(String, String)>,
    sent: Sent,
) -> Result<Response, Refused> {
    let api::request::Path((workflow, action)) = place?;
    let name = sent.field("name");
    let (body, done) = match action.as_str() {
        "pause" => (json!({"name": name, "reason": sent.field("reason")}), "The schedule is paused."),
        "resume" => (json!({"name": name, "missed": sent.field("missed")}), "The schedule goes on."),
        other => return Err(no_such(other)),
    };
    let path = format!("/schedules/{}/{action}", part(&workflow));
    told(&sent, reader.ask.post::<Value>(&path, &body).await.map(|_| ()), done)
}

async fn steer_trigger(
    reader: Reader,
    place: Path<(String, String, String)>,
    sent: Sent,
) -> Result<Response, Refused> {
    let api::request::Path((workflow, name, action)) = place?;
    let done = match action.as_str() {
        "pause" => "The trigger is paused: what it hears of starts nothing.",
        "resume" => "The trigger goes on.",
        other => return Err(no_such(other)),
    };
    let path = format!("/triggers/{}/{}/{action}", part(&workflow), part(&name));
    told(&sent, reader.ask.post::<TriggerView>(&path, &json!({})).await.map(|_| ()), done)
}

async fn steer_backfill(
    reader: Reader,
    place: Path<(String, String)>,
    sent: Sent,
) -> Result<Response, Refused> {
    let api::request::Path((id, action)) = place?;
    let done = match action.as_str() {
        "pause" => "The backfill is paused.",
        "resume" => "The backfill goes on.",
        "cancel" => "The backfill and its runs end.",
        other => return Err(no_such(other)),
    };
    let path = format!("/backfills/{}/{action}", part(&id));
    told(&sent, reader.ask.post::<BackfillView>(&path, &json!({})).await.map(|_| ()), done)
}

async fn steer_letter(
    reader: Reader,
    place: Path<(String, String)>,
    sent: Sent,
) -> Result<Response, Refused> {
    let api::request::Path((id, action)) = place?;
    let done = match action.as_str() {
        "replay" => "The message was published again.",
        "discard" => "The message was thrown away.",
        other => return Err(no_such(other)),
    };
    let path = format!("/dead-letters/{}/{action}", part(&id));
    told(&sent, reader.ask.post::<Value>(&path, &json!({})).await.map(|_| ()), done)
}
