//! No request takes for ever: a database that is there and does not answer must not hold whoever asks.

use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Problem;

/// No request takes longer, a slowly sent body included: less than the bus waits for an answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Ends what takes too long, for requests that wait for nothing but the store and the bus. Whoever asked shall ask
/// again; what was committed all the same is found to be stale then.
pub async fn in_time(request: Request, next: Next) -> Response {
    within(TIME_LIMIT, next.run(request)).await
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
    async fn whoever_is_not_answered_in_time_is_told_to_come_again() {
        let answer = within(Duration::from_millis(1), std::future::pending()).await;
        assert_eq!(answer.status().as_u16(), 503);
        assert_eq!(answer.headers()[RETRY_AFTER], "1");
    }
}
