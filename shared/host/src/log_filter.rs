//! Follows the log filter that operators set through the API: internal services cannot be reached by them.

use std::sync::{Arc, Mutex, PoisonError};

use accounts::Accounts;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use bus::SystemClock;
use chrono::TimeDelta;
use model::{Clock, Instant};

use crate::{health, telemetry};

/// How often an instance that serves requests reads the filter of its function.
const CHECK_INTERVAL: TimeDelta = TimeDelta::seconds(30);

/// The routes of a function, whose instances follow the log filter that is set for it.
pub fn follow_log_filter(router: Router, accounts: &Accounts, function: &str) -> Router {
    let follower = Arc::new(LogFilterFollower::new(accounts.clone(), function));
    router.layer(from_fn(move |request, next| follower.clone().before_request(request, next)))
}

/// The filter of one function.
struct LogFilterFollower {
    accounts: Accounts,
    function: String,
    checked_at: Mutex<Option<Instant>>,
}

impl LogFilterFollower {
    fn new(accounts: Accounts, function: &str) -> Self {
        Self { accounts, function: function.to_owned(), checked_at: Mutex::new(None) }
    }

    /// Follows the filter before a request is handled, at most every half a minute. Probes and what operators read do not count as
    /// requests: they would keep an idle database awake. Nor do ticks: the sweep finds its filter in its agenda.
    async fn before_request(self: Arc<Self>, request: Request, next: Next) -> Response {
        let path = request.uri().path();
        let is_idle = health::is_probe(path) || matches!(path, "/sweep" | "/metrics" | "/log-level");
        if !is_idle && self.is_due(SystemClock.now()) {
            self.follow(SystemClock.now()).await;
        }
        next.run(request).await
    }

    fn is_due(&self, now: Instant) -> bool {
        let mut checked_at = self.checked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = checked_at.is_none_or(|checked_at| checked_at + CHECK_INTERVAL <= now);
        if is_due {
            *checked_at = Some(now);
        }
        is_due
    }

    /// A database that is unavailable leaves the filter as it is.
    async fn follow(&self, now: Instant) {
        if let Ok(set) = self.accounts.log_filter(&self.function, now).await {
            telemetry::follow_filter(set.as_deref());
        }
    }
}
