//! Publishing to a local broker from other processes, in the form of Pub/Sub's REST interface.

use std::collections::BTreeMap;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::local::Broker;

/// Pub/Sub's own limits of one request.
pub(crate) const MAX_MESSAGES: usize = 1000;
const MAX_BODY: usize = 10_000_000;

/// A publish request: `{"messages": [{"data": "<base64>", "attributes": {}}]}`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Publish {
    pub(crate) messages: Vec<Posted>,
}

/// One message of a request.
#[derive(Serialize, Deserialize)]
pub(crate) struct Posted {
    #[serde(default)]
    pub(crate) data: String,
    #[serde(default)]
    pub(crate) attributes: Attributes,
}

type Attributes = BTreeMap<String, String>;

type Rejection = (StatusCode, Json<Value>);

/// The routes of a broker: `POST /v1/projects/{project}/topics/{topic}:publish`, and `GET /` as a health check.
///
/// They require no token: bind them where only processes on this machine can reach them.
pub fn router(broker: Broker) -> Router {
    Router::new()
        .route("/", get(async || "Ok"))
        .route("/v1/projects/{project}/topics/{topic}", post(publish))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(broker)
}

async fn publish(
    State(broker): State<Broker>,
    Path((_project, topic)): Path<(String, String)>,
    Json(request): Json<Publish>,
) -> Result<Json<Value>, Rejection> {
    let topic = topic.strip_suffix(":publish").ok_or_else(|| {
        rejection(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            "topics can only be published to: end the path with `:publish`",
        )
    })?;
    let unavailable =
        |error: Error| rejection(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", &error.to_string());
    // All are checked before the first is published.
    let messages = decode(request.messages)?;
    let ids = messages.into_iter().map(|(attributes, data)| broker.post(topic, attributes, data));
    let ids = ids.collect::<Result<Vec<_>, _>>().map_err(unavailable)?;
    Ok(Json(json!({ "messageIds": ids })))
}

fn decode(messages: Vec<Posted>) -> Result<Vec<(Attributes, Vec<u8>)>, Rejection> {
    let bad = |reason: &str| rejection(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", reason);
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return Err(bad("a request has 1 to 1000 messages"));
    }
    let decode = |Posted { data, attributes }| {
        let data =
            BASE64_STANDARD.decode(data).map_err(|error| bad(&format!("`data` is not base64: {error}")))?;
        match data.is_empty() && attributes.is_empty() {
            true => Err(bad("a message needs data or attributes")),
            false => Ok((attributes, data)),
        }
    };
    messages.into_iter().map(decode).collect()
}

fn rejection(status: StatusCode, name: &str, reason: &str) -> Rejection {
    (status, Json(json!({ "error": { "code": status.as_u16(), "status": name, "message": reason } })))
}
