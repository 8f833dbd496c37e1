//! A timeout for requests, so that a database that does not respond does not block callers.

use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Problem;

/// Includes the time to read the body. Shorter than the acknowledgement deadline of the bus.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Middleware for requests that only wait for the store and the bus: those that take too long get 503. The caller may
/// retry: if the change was committed after all, the retry finds it.
pub async fn request_timeout(request: Request, next: Next) -> Response {
    within(REQUEST_TIMEOUT, next.run(request)).await
}

async fn within(timeout: Duration, response: impl Future<Output = Response>) -> Response {
    match tokio::time::timeout(timeout, response).await {
        Ok(response) => response,
        Err(_) => {
            let message = format!("the request took longer than {} s; try again", timeout.as_secs());
            Problem::unavailable(message).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::RETRY_AFTER;

    use super::*;

    #[tokio::test]
    async fn a_request_that_times_out_may_be_retried() {
        let response = within(Duration::from_millis(1), std::future::pending()).await;
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
