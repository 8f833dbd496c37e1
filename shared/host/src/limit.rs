//! A time limit for requests: a database that does not answer must not block callers.

use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Problem;

/// Includes a slowly sent body. Shorter than the bus waits for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Ends requests that take too long, for those that only wait for the store and the bus. The caller may retry: if the change
/// was committed after all, the retry finds it.
pub async fn in_time(request: Request, next: Next) -> Response {
    within(REQUEST_TIMEOUT, next.run(request)).await
}

async fn within(limit: Duration, answer: impl Future<Output = Response>) -> Response {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let message = format!("the request took longer than {} s; try again", limit.as_secs());
            Problem::unavailable(message).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::RETRY_AFTER;

    use super::*;

    #[tokio::test]
    async fn a_request_that_takes_too_long_may_be_retried() {
        let answer = within(Duration::from_millis(1), std::future::pending()).await;
        assert_eq!(answer.status().as_u16(), 503);
        assert_eq!(answer.headers()[RETRY_AFTER], "1");
    }
}
