//! ETags of definitions: their content hashes. A client that has a definition is not sent it again, and a client that
//! changes one can say which content it means to change.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use host::Problem;
use serde::Serialize;

use crate::{Api, Caller};

/// A response with a definition, unless the client has it already.
pub(crate) struct Tagged<T> {
    hash: String,
    body: Option<T>,
}

impl<T> Tagged<T> {
    /// A response with the definition of that hash to a request with these headers.
    pub(crate) fn new(headers: &HeaderMap, hash: String, body: T) -> Self {
        let known = matches(headers, &header::IF_NONE_MATCH, Some(&hash)) == Some(true);
        Self { hash, body: (!known).then_some(body) }
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let tag = HeaderValue::try_from(format!("\"{}\"", self.hash)).ok();
        let tag = HeaderMap::from_iter(tag.map(|tag| (header::ETAG, tag)));
        match self.body {
            Some(body) => (tag, Json(body)).into_response(),
            None => (StatusCode::NOT_MODIFIED, tag).into_response(),
        }
    }
}

/// Whether a hash is among those that a header names; none if there is no such header.
fn matches(headers: &HeaderMap, name: &HeaderName, hash: Option<&str>) -> Option<bool> {
    let sent = headers.get(name)?.to_str().unwrap_or_default();
    let tags = sent.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    Some(hash.is_some_and(|hash| tags.into_iter().any(|tag| tag == hash || tag == "*")))
}

/// Refuses to change definitions of which one is no longer what the caller read.
pub(crate) async fn check_match(
    api: &Api,
    caller: &Caller,
    headers: &HeaderMap,
    names: &[String],
) -> Result<(), Problem> {
    let Some(sent) = headers.get(header::IF_MATCH) else { return Ok(()) };
    if sent.to_str().is_err() {
        return Err(Problem::bad_request("`If-Match` contains characters that an ETag cannot have"));
    }
    for name in names {
        check_one(api, caller, headers, name).await?;
    }
    Ok(())
}

async fn check_one(api: &Api, caller: &Caller, headers: &HeaderMap, name: &str) -> Result<(), Problem> {
    let active = match api.reader(caller).workflows().get(name).await {
        Err(read::Error::Denied(_)) => None,
        found => Some(found?),
    };
    let hash = active.as_ref().map(|active| active.version.hash.as_str());
    if matches(headers, &header::IF_MATCH, hash) == Some(true) {
        return Ok(());
    }
    let message = format!("`{name}` has changed since `If-Match`; read it again before changing it");
    Err(Problem::new(StatusCode::PRECONDITION_FAILED, "definition_changed", message))
}
