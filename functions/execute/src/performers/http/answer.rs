//! What an answer means, and what of it becomes the output.

use language::config;
use reqwest::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use model::Failure;

use super::super::MAX_OUTPUT_BYTES;
use super::{Hush, broken};

/// How much of an answer goes into the message of a failure, in characters.
const MAX_EXCERPT_LENGTH: usize = 200;

/// The output of an expected answer, or the failure that another one is.
pub(super) async fn judge(
    response: Response,
    config: &config::Http,
    asked: &str,
    hush: Hush<'_>,
) -> Result<Value, Failure> {
    if config.expects(response.status().as_u16()) {
        accept(response, asked).await
    } else {
        Err(refuse(response, asked, hush).await)
    }
}

async fn accept(mut response: Response, asked: &str) -> Result<Value, Failure> {
    let body = read(&mut response).await.map_err(|error| broken(asked, error))?;
    if body.len() > MAX_OUTPUT_BYTES {
        return Err(Failure::permanent(format!(
            "{asked} answered with more than {MAX_OUTPUT_BYTES} bytes (1 MiB), too much for an output: have the answer \
             stored elsewhere and pass a reference to it"
        )));
    }
    let content_type = header(&response, CONTENT_TYPE);
    Ok(json!({
        "status": response.status().as_u16(),
        "body": parse(&body, content_type.as_deref().unwrap_or_default()),
        "headers": content_type.map_or_else(|| json!({}), |value| json!({ "content-type": value })),
    }))
}

async fn refuse(mut response: Response, asked: &str, hush: Hush<'_>) -> Failure {
    let status = response.status();
    let mut message = format!("{asked} answered {status}");
    if let Some(seconds) = header(&response, RETRY_AFTER).and_then(|value| value.parse::<u64>().ok()) {
        message.push_str(&format!(" (Retry-After: {seconds} s)"));
    }
    // An answer that breaks off is a refusal all the same.
    let body = read(&mut response).await.unwrap_or_default();
    // A secret of which half is cut off would not be known for one.
    let text = hush(&String::from_utf8_lossy(&body));
    if !text.trim().is_empty() {
        message.push_str(": ");
        message.extend(text.trim().chars().take(MAX_EXCERPT_LENGTH));
    }
    if may_pass(status) { Failure::transient(message) } else { Failure::permanent(message) }
}

fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// The body, or as much of it as shows that it is too large.
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

/// JSON where the answer says that it is and it is; else text; null where there is nothing.
fn parse(body: &[u8], content_type: &str) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let says_json = media_type == "application/json" || media_type.ends_with("+json");
    let parsed = says_json.then(|| serde_json::from_slice(body).ok()).flatten();
    parsed.unwrap_or_else(|| Value::String(String::from_utf8_lossy(body).into_owned()))
}
