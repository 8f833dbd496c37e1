//! Turns a response into an output or a failure.

use chrono::{DateTime, TimeDelta};
use language::config;
use reqwest::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use model::{Failure, Instant};

use super::super::MAX_OUTPUT_BYTES;
use super::breaker::Outcome;
use super::{Redact, failed};

/// The maximum length of a response's excerpt in the message of a failure, in characters.
const MAX_EXCERPT_LENGTH: usize = 200;

/// A day: no server is left alone for longer, in seconds.
const MAX_RETRY_AFTER: i64 = 86_400;

/// The output of a response with an expected status, or the failure of another one.
pub(super) async fn interpret(
    response: Response,
    config: &config::Http,
    request: &str,
    redact: Redact<'_>,
) -> Result<Value, Failure> {
    if config.expects(response.status().as_u16()) {
        output(response, request).await
    } else {
        Err(failure(response, request, redact).await)
    }
}

async fn output(mut response: Response, request: &str) -> Result<Value, Failure> {
    let body = read(&mut response).await.map_err(|error| failed(request, error))?;
    if body.len() > MAX_OUTPUT_BYTES {
        return Err(Failure::permanent(format!(
            "{request} returned more than {MAX_OUTPUT_BYTES} bytes (1 MiB), too much for an output: store the \
             response elsewhere and pass a reference to it"
        )));
    }
    let content_type = header(&response, CONTENT_TYPE);
    Ok(json!({
        "status": response.status().as_u16(),
        "body": parse(&body, content_type.as_deref().unwrap_or_default()),
        "headers": content_type.map_or_else(|| json!({}), |value| json!({ "content-type": value })),
    }))
}

async fn failure(mut response: Response, request: &str, redact: Redact<'_>) -> Failure {
    let status = response.status();
    let mut message = format!("{request} returned {status}");
    if let Some(seconds) = header(&response, RETRY_AFTER).and_then(|value| value.trim().parse::<u64>().ok()) {
        message.push_str(&format!(" (Retry-After: {seconds} s)"));
    }
    // The status suffices if the body cannot be read.
    let body = read(&mut response).await.unwrap_or_default();
    // Redacted before it is shortened: half a secret would not be recognized.
    let text = redact(&String::from_utf8_lossy(&body));
    if !text.trim().is_empty() {
        message.push_str(": ");
        message.extend(text.trim().chars().take(MAX_EXCERPT_LENGTH));
    }
    if is_transient(status) { Failure::transient(message) } else { Failure::permanent(message) }
}

/// What a response tells about the server: one that limits its callers is busy, not broken.
pub(super) fn outcome(response: &Response, now: Instant) -> Outcome {
    let asked = retry_after(response, now);
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS => Outcome::Busy(asked),
        StatusCode::SERVICE_UNAVAILABLE if asked.is_some() => Outcome::Busy(asked),
        status if status.is_server_error() => Outcome::Failed(format!("it returned {status}")),
        _ => Outcome::Responded,
    }
}

/// How long the server asks to be left alone: a number of seconds or a date, at most a day.
fn retry_after(response: &Response, now: Instant) -> Option<TimeDelta> {
    let value = header(response, RETRY_AFTER)?;
    let seconds = match value.trim().parse::<u64>() {
        Ok(seconds) => i64::try_from(seconds).unwrap_or(i64::MAX),
        Err(_) => (DateTime::parse_from_rfc2822(value.trim()).ok()?.to_utc() - now).num_seconds().max(0),
    };
    Some(TimeDelta::seconds(seconds.min(MAX_RETRY_AFTER)))
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// The body, or as much of it as is needed to see that it is too large.
async fn read(response: &mut Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() <= MAX_OUTPUT_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn header(response: &Response, name: HeaderName) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

/// JSON if the content type says so and it is valid; else text; null for an empty body.
fn parse(body: &[u8], content_type: &str) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    let parsed = is_json.then(|| serde_json::from_slice(body).ok()).flatten();
    parsed.unwrap_or_else(|| Value::String(String::from_utf8_lossy(body).into_owned()))
}
