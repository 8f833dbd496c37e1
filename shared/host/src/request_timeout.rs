//! A timeout for requests, so that a database that does not respond does not block callers.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::Problem;

/// Includes the time to read the body. Shorter than the acknowledgement deadline of the bus.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// When a request times out. A handler that waits for something on purpose extends it.
#[derive(Clone, Debug)]
pub struct RequestDeadline(watch::Sender<Instant>);

impl RequestDeadline {
    /// Ends a request that takes longer than this from now on.
    pub fn after(timeout: Duration) -> Self {
        Self::at(Instant::now() + timeout)
    }

    /// Ends a request at that instant.
    pub fn at(deadline: Instant) -> Self {
        Self(watch::Sender::new(deadline))
    }

    /// A deadline of its own that is that much later.
    pub fn later(&self, by: Duration) -> Self {
        Self::at(*self.0.borrow() + by)
    }

    /// Gives the request that much more time.
    pub fn extend(&self, by: Duration) {
        self.0.send_modify(|deadline| *deadline += by);
    }

    /// The response if it comes in time, or else 503. What was still being done then is dropped.
    pub async fn limit(&self, response: impl Future<Output = Response>) -> Response {
        let began = Instant::now();
        match self.wait(response).await {
            Some(response) => response,
            None => {
                let seconds = self.0.borrow().saturating_duration_since(began).as_secs();
                let message = format!("the request took longer than {seconds} s; try again");
                Problem::unavailable(message).into_response()
            }
        }
    }

    /// The response if it comes in time. What was still being done otherwise is dropped.
    pub async fn wait(&self, response: impl Future<Output = Response>) -> Option<Response> {
        let mut response = std::pin::pin!(response);
        loop {
            let until = *self.0.borrow();
            match timeout_at(until, &mut response).await {
                Ok(response) => return Some(response),
                // It was extended meanwhile.
                Err(_) if *self.0.borrow() > until => {}
                Err(_) => return None,
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestDeadline {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // Without the middleware there is no deadline, and extending this one changes nothing.
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self::after(REQUEST_TIMEOUT)))
    }
}

/// Middleware for requests that only wait for the store and the bus: those that take too long get 503. The caller may
/// retry: a change with an idempotency key goes on for a while, and the retry finds it.
pub async fn request_timeout(mut request: Request, next: Next) -> Response {
    if request.extensions().get::<RequestDeadline>().is_some() {
        // The same middleware further out ends the request.
        return next.run(request).await;
    }
    let deadline = RequestDeadline::after(REQUEST_TIMEOUT);
    request.extensions_mut().insert(deadline.clone());
    deadline.limit(next.run(request)).await
}

#[cfg(test)]
mod tests {
    use axum::http::header::RETRY_AFTER;

    use super::*;

    #[tokio::test]
    async fn a_request_that_times_out_may_be_retried() {
        let deadline = RequestDeadline::after(Duration::from_millis(1));
        let response = deadline.limit(std::future::pending()).await;
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }

    #[tokio::test]
    async fn a_request_that_waits_on_purpose_has_more_time() {
        let first = Duration::from_millis(1);
        let deadline = RequestDeadline::after(first);
        let waiting = deadline.clone();
        let response = deadline.limit(async move {
            waiting.extend(Duration::from_secs(600));
            let _ = tokio::time::timeout(2 * first, std::future::pending::<()>()).await;
            "done".into_response()
        });
        assert_eq!(response.await.status().as_u16(), 200);
    }
}
