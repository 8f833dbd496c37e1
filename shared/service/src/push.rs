//! A pushed message as a handler's argument: authenticated, unwrapped, decoded.

use axum::body::{Body, Bytes};
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bus::envelope::{self, Delivery, Rejected};
use store::DeadLetter;
use uuid::Uuid;

use crate::{App, Problem, Reply, read_body};

/// No pushed request is larger: a message of 1 MiB, wrapped.
pub const PUSH_BODY_LIMIT: usize = 2 * 1024 * 1024;

/// A pushed message. What can never be a message of ours is buried and acknowledged before any handler sees it.
pub struct Push(pub Delivery);

impl<S> FromRequest<S> for Push
where
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Response> {
        let app = App::from_ref(state);
        let authorization =
            request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        app.push
            .check(authorization, app.now())
            .await
            .map_err(|error| Problem::from(error).into_response())?;
        let (parts, body) = request.into_parts();
        let body = read_body(body, PUSH_BODY_LIMIT).await.map_err(IntoResponse::into_response)?;
        match envelope::open(&parts.headers, &body) {
            Ok(delivery) => Ok(Self(delivery)),
            Err(rejected) => Err(app.bury(&body, rejected).await.into_response()),
        }
    }
}

impl App {
    /// Keeps a body that can never be a message of ours, so that it need not come again.
    async fn bury(&self, body: &Bytes, rejected: Rejected) -> Reply {
        let id = rejected.id.unwrap_or_else(|| Uuid::new_v5(&Uuid::NAMESPACE_OID, body).to_string());
        let body = String::from_utf8_lossy(body).into_owned();
        let source = rejected.source.unwrap_or_else(|| "unknown".into());
        let letter = DeadLetter { id, source, reason: rejected.reason, body, at: self.now() };
        self.keep(letter).await
    }

    /// Keeps a message that can never succeed, so that it need not come again.
    pub(crate) async fn discard(&self, delivery: &Delivery, reason: String) -> Reply {
        let source = delivery.subscription.clone().unwrap_or_else(|| delivery.message.kind().to_owned());
        let body = delivery.message.data().to_string();
        self.keep(DeadLetter { id: delivery.id.clone(), source, reason, body, at: self.now() }).await
    }

    async fn keep(&self, letter: DeadLetter) -> Reply {
        match self.runtime.store().bury(&letter).await {
            Ok(()) => {
                tracing::error!("Message {} can never succeed and was buried: {}", letter.id, letter.reason);
                Reply::Ack
            }
            Err(error) => Reply::Retry(error.to_string()),
        }
    }
}
