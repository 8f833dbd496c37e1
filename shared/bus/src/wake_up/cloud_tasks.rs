//! A Cloud Tasks queue: one task for each tenth of a second in which something is due, named after it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::header::AUTHORIZATION;
use chrono::{SecondsFormat, TimeDelta};
use google_cloud_auth::credentials::{AccessTokenCredentials, Builder};
use model::{Clock, Instant};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{WakeUps, whole_tenth};
use crate::Error;

const GOOGLE: &str = "https://cloudtasks.googleapis.com";

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-tasks";

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Cloud Tasks accepts tasks up to 30 days ahead. A sweep that is called earlier requests the rest.
const MAX_AHEAD: TimeDelta = TimeDelta::days(29);

/// A task for the next tenths of a second may have run: the clocks of the queue and of this process differ.
const MIN_AHEAD: TimeDelta = TimeDelta::seconds(1);

/// How long a sweep may take to respond before the queue calls again.
const DISPATCH_DEADLINE: &str = "300s";

/// What the tasks of a queue call, and as whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The name of the queue: `projects/PROJECT/locations/REGION/queues/QUEUE`.
    pub queue: String,
    /// The address of the sweep.
    pub url: String,
    /// The service account that signs the calls.
    pub account: String,
    /// The audience of its tokens.
    pub audience: String,
}

/// Creates tasks in a queue.
pub struct CloudTasks {
    target: Target,
    /// Another server with the same API, called without credentials.
    endpoint: Option<String>,
    clock: Arc<dyn Clock>,
    client: Client,
    credentials: OnceCell<AccessTokenCredentials>,
}

impl CloudTasks {
    /// A client of Google's servers, or of another server with the same API.
    pub fn new(target: Target, endpoint: Option<String>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let client = Client::builder().timeout(REQUEST_TIMEOUT).build().map_err(Error::unavailable)?;
        Ok(Self { target, endpoint, clock, client, credentials: OnceCell::new() })
    }

    async fn authorization(&self) -> Result<Option<String>, Error> {
        if self.endpoint.is_some() {
            return Ok(None);
        }
        let build = async || Builder::default().with_scopes([SCOPE]).build_access_token_credentials();
        let credentials = self.credentials.get_or_try_init(build).await.map_err(Error::unavailable)?;
        let token = credentials.access_token().await.map_err(Error::unavailable)?;
        Ok(Some(format!("Bearer {}", token.token)))
    }

    fn task(&self, due_at: Instant) -> Value {
        let Target { queue, url, account, audience } = &self.target;
        json!({"task": {
            "name": format!("{queue}/tasks/{}", name(due_at)),
            "scheduleTime": due_at.to_rfc3339_opts(SecondsFormat::Millis, true),
            "dispatchDeadline": DISPATCH_DEADLINE,
            "httpRequest": {
                "url": url,
                "httpMethod": "POST",
                "oidcToken": {"serviceAccountEmail": account, "audience": audience},
            },
        }})
    }
}

/// The name of the task for an instant. It begins with a hash: names in sequence would slow the queue down.
fn name(due_at: Instant) -> String {
    let tenth = due_at.timestamp_millis() / 100;
    let hash = tenth.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    format!("{hash:08x}-{tenth}")
}

#[async_trait]
impl WakeUps for CloudTasks {
    /// A name is taken while its task waits, and for up to a day after it ran. So what is due already is requested for an
    /// instant to come.
    async fn request(&self, due_at: Instant) -> Result<(), Error> {
        let now = self.clock.now();
        let due_at = whole_tenth(due_at.clamp(now + MIN_AHEAD, now + MAX_AHEAD));
        let server = self.endpoint.as_deref().unwrap_or(GOOGLE).trim_end_matches('/');
        let mut request =
            self.client.post(format!("{server}/v2/{}/tasks", self.target.queue)).json(&self.task(due_at));
        if let Some(authorization) = self.authorization().await? {
            request = request.header(AUTHORIZATION, authorization);
        }
        let response = request.send().await.map_err(Error::unavailable)?;
        match response.status() {
            // The wake-up is requested already.
            StatusCode::CONFLICT => Ok(()),
            status if status.is_success() => Ok(()),
            status => {
                let reason = response.text().await.unwrap_or_default();
                Err(Error::Unavailable(format!("Cloud Tasks returned {status}: {reason}")))
            }
        }
    }

    fn are_exact(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_after_their_tenth_of_a_second_and_names_are_spread() {
        let at = |text: &str| text.parse::<Instant>().unwrap();
        assert_eq!(whole_tenth(at("2026-01-01T00:00:00.000001Z")), at("2026-01-01T00:00:00.1Z"));
        assert_eq!(whole_tenth(at("2026-01-01T00:00:00.1Z")), at("2026-01-01T00:00:00.1Z"));
        let (first, second) = (name(at("2026-01-01T00:00:01Z")), name(at("2026-01-01T00:00:01.1Z")));
        assert!(first.ends_with("-17672256010") && second.ends_with("-17672256011"), "{first} {second}");
        assert_ne!(first[..2], second[..2]);
    }
}
