//! Reading a request's body, up to a limit.

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures::StreamExt;

use crate::Problem;

/// How much of a body that is too large is read and discarded before it is refused, in bytes. A caller that is still
/// sending when the connection closes may never see the response.
const MAX_DRAINED_BYTES: usize = 16 * 1024 * 1024;

/// Reads the whole body, if it has at most `limit` bytes.
pub async fn read_body(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut chunks = body.into_data_stream();
    let (mut read, mut size) = (Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Problem::bad_request("the body ended early or timed out"))?;
        size += chunk.len();
        if size > MAX_DRAINED_BYTES {
            break;
        }
        if size <= limit {
            read.extend_from_slice(&chunk);
        }
    }
    if size > limit { Err(too_large(limit)) } else { Ok(read.into()) }
}

fn too_large(limit: usize) -> Problem {
    let message = format!("the body exceeds the limit of {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}
