//! The one shape of every error answer: `{error_code, message, details, request_id, timestamp}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use clock::{Clock, SystemClock};
use serde_json::{Value, json};
use uuid::Uuid;

/// An error answer.
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
        Self { status, code, message: message.into(), details: Value::Null, retry_after: None }
    }

    /// The same with details for programs.
    pub fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// What the answer's status is.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The code for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What the answer says to people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The caller did not say who they are, or not credibly.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// The same request may succeed later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// The caller asks too often; there is room again after so many seconds.
    pub fn too_many(message: impl Into<String>, seconds: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message);
        Self { retry_after: Some(seconds), ..problem }
    }

    /// A defect of ours; what it was is in the log, not in the answer.
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
            // What is left of the body was not read, so no other request can follow on this connection.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
