//! The shape of every error response: `{error_code, message, details, request_id, timestamp}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bus::SystemClock;
use model::Clock;
use serde_json::{Value, json};
use uuid::Uuid;

/// The longest message, and the longest text in details, in characters. Messages repeat names that callers sent.
const MAX_MESSAGE: usize = 10_000;

/// An error response: what is wrong, for people and for programs.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Value,
    retry_after: Option<u64>,
}

impl Problem {
    /// A problem with a status, a code for programs and a message for people.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: shortened(message.into()), details: Value::Null, retry_after: None }
    }

    /// Adds details for programs.
    pub fn with(mut self, details: Value) -> Self {
        self.details = with_short_texts(details);
        self
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The code for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 404: the resource does not exist, or the caller may not see it.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 401: the caller has no valid credentials.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 503: the same request may succeed later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// 429: the caller may retry after `seconds`.
    pub fn too_many(message: impl Into<String>, seconds: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message);
        Self { retry_after: Some(seconds), ..problem }
    }

    /// 500: the cause is in the log, not in the response.
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!("Request failed: {error}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error; see the server's log")
    }
}

impl From<auth::Error> for Problem {
    fn from(error: auth::Error) -> Self {
        match error {
            auth::Error::KeysUnavailable(_) => Self::unavailable(error.to_string()),
            auth::Error::WrongAccount => Self::new(StatusCode::FORBIDDEN, "forbidden", error.to_string()),
            _ => Self::unauthorized(error.to_string()),
        }
    }
}

impl From<auth::Denied> for Problem {
    fn from(denied: auth::Denied) -> Self {
        match denied {
            auth::Denied::NotFound(_) => Self::not_found(denied.to_string()),
            auth::Denied::Forbidden(message) => Self::new(StatusCode::FORBIDDEN, "forbidden", message),
        }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(_) | store::Error::NotPrepared(_) | store::Error::Conflict => {
                Self::unavailable(error.to_string())
            }
            store::Error::Database(_) | store::Error::TooLarge | store::Error::Unreadable { .. } => {
                Self::internal(&error)
            }
        }
    }
}

impl From<read::Error> for Problem {
    fn from(error: read::Error) -> Self {
        match error {
            read::Error::Denied(denied) => denied.into(),
            read::Error::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "error_code": self.code,
            "message": self.message,
            "details": self.details,
            "request_id": Uuid::now_v7(),
            "timestamp": SystemClock.now(),
        });
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::PAYLOAD_TOO_LARGE {
            // The rest of the body is unread, so no other request can follow on this connection.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The same details with the middle of long texts left out.
fn with_short_texts(details: Value) -> Value {
    match details {
        Value::String(text) => shortened(text).into(),
        Value::Array(items) => items.into_iter().map(with_short_texts).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_short_texts(value))).collect()
        }
        other => other,
    }
}

/// A message with the middle left out if it is too long: its beginning says what is wrong, its end how to fix it.
fn shortened(message: String) -> String {
    if message.chars().nth(MAX_MESSAGE).is_none() {
        return message;
    }
    let mut places = message.char_indices().map(|(place, _)| place);
    let (before, after) = (places.nth(MAX_MESSAGE / 2), places.nth_back(MAX_MESSAGE / 2 - 1));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or(message.len()));
    format!("{}…{}", &message[..before], &message[after..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let of = |length: usize| Problem::bad_request(format!("a{}z", "é".repeat(length - 2))).message;
        assert_eq!(of(MAX_MESSAGE).chars().count(), MAX_MESSAGE);
        let cut = of(1_000_000);
        assert_eq!(cut.chars().count(), MAX_MESSAGE + 1);
        assert!(cut.starts_with('a') && cut.contains('…') && cut.ends_with('z'));
    }
}
