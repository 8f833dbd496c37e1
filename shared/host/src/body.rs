//! Reading a request's body, up to a limit.

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures::StreamExt;

use crate::Problem;

/// So much of a body that is too large is read and thrown away before it is refused. A caller that is still sending
/// when the connection closes may never see the answer.
const DRAINED: usize = 16 * 1024 * 1024;

/// The whole body, if it is no larger than `limit` bytes.
pub async fn read_body(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut chunks = body.into_data_stream();
    let (mut read, mut size) = (Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Problem::bad_request("the body broke off, or did not come in time"))?;
        size += chunk.len();
        if size > DRAINED {
            break;
        }
        if size <= limit {
            read.extend_from_slice(&chunk);
        }
    }
    if size > limit { Err(too_large(limit)) } else { Ok(read.into()) }
}

fn too_large(limit: usize) -> Problem {
    let message = format!("the body is larger than the {limit} bytes allowed");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}
