//! One push: exactly the request that Pub/Sub would send, and the meaning of its response.

use std::sync::{Arc, OnceLock};

use auth::Issuer;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use chrono::TimeDelta;
use model::{Clock, Instant};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::PROJECT;
use super::queue::{PendingDelivery, SubscriptionQueue};
use crate::Endpoint;

/// Tokens last an hour and are renewed well before they expire.
const TOKEN_TTL: TimeDelta = TimeDelta::minutes(50);

/// Sends pushes as an account.
pub(super) struct Pusher {
    clock: Arc<dyn Clock>,
    issuer: Arc<Issuer>,
    service_account: String,
    /// Created on first use: it reads the system's certificates, and most brokers only call routers.
    client: OnceLock<reqwest::Client>,
}

/// A token, as a header, and until when to use it.
pub(super) struct Pass {
    header: HeaderValue,
    until: Instant,
}

impl Pusher {
    pub(super) fn new(clock: Arc<dyn Clock>, issuer: Arc<Issuer>, service_account: String) -> Self {
        Self { clock, issuer, service_account, client: OnceLock::new() }
    }

    /// Pushes once and returns whether the message was acknowledged in time.
    pub(super) async fn push(&self, queue: &SubscriptionQueue, pending: &PendingDelivery) -> bool {
        let deadline = self.clock.now() + queue.subscription.ack_deadline;
        // A separate task: a panic is a response, too, and a late handler continues while the message is redelivered.
        let answer = self.send(queue, pending);
        tokio::select! {
            biased;
            answer = answer => matches!(answer, Ok(Some(status)) if is_ack(status)),
            () = self.clock.wait_until(deadline) => false,
        }
    }

    fn send(&self, queue: &SubscriptionQueue, pending: &PendingDelivery) -> JoinHandle<Option<StatusCode>> {
        let subscription = &queue.subscription;
        let name = format!("projects/{PROJECT}/subscriptions/{}", subscription.name);
        let attempt = queue.dead_letter_topic.as_ref().map(|_| pending.attempts);
        let body = pending.message.push_body(&name, attempt);
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (AUTHORIZATION, self.pass(queue)),
        ]);
        match &subscription.endpoint {
            Endpoint::Router(router, path) => {
                let mut request = Request::post(path).body(Body::from(body)).expect("the path is one");
                *request.headers_mut() = headers;
                let answer = router.clone().oneshot(request);
                tokio::spawn(async { answer.await.ok().map(|response| response.status()) })
            }
            Endpoint::Url(url) => {
                let request =
                    self.client.get_or_init(reqwest::Client::new).post(url).headers(headers).body(body);
                let answer = request.timeout(subscription.ack_deadline).send();
                tokio::spawn(async { answer.await.ok().map(|response| response.status()) })
            }
        }
    }

    /// The queue's token, renewed before it expires.
    fn pass(&self, queue: &SubscriptionQueue) -> HeaderValue {
        let now = self.clock.now();
        let mut pass = queue.pass.lock().expect("no holder panics");
        match &*pass {
            Some(pass) if now < pass.until => pass.header.clone(),
            _ => {
                let token = self.issuer.push_token(&self.service_account, &queue.subscription.audience, now);
                let mut header = HeaderValue::try_from(format!("Bearer {token}")).expect("tokens are ASCII");
                header.set_sensitive(true);
                *pass = Some(Pass { header: header.clone(), until: now + TOKEN_TTL });
                header
            }
        }
    }
}

fn is_ack(status: StatusCode) -> bool {
    matches!(status.as_u16(), 102 | 200 | 201 | 202 | 204)
}
