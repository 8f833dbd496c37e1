//! A pushed message as a handler's argument: authenticated, unwrapped, decoded.

use axum::body::Bytes;
use axum::extract::{FromRef, FromRequest, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bus::envelope::{self, Delivery, Incoming, Opened, Rejected, Undelivered};
use store::DeadLetter;
use uuid::Uuid;

use crate::observe::label_delivery;
use crate::{App, Problem, Reply, read_body};

/// The maximum size of a push request, in bytes: a wrapped message of 1 MiB.
pub const MAX_PUSH_BYTES: usize = 2 * 1024 * 1024;

/// The maximum size of a dead letter, in bytes: Pub/Sub's largest message, wrapped. Its size may be why it was undeliverable.
const MAX_DEAD_LETTER_BYTES: usize = 14 * 1024 * 1024;

/// A pushed message. Anything else is dead-lettered and acknowledged before a handler sees it.
pub struct Push(pub Delivery);

impl<S> FromRequest<S> for Push
where
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let app = App::from_ref(state);
        let delivery = open(&app, request, envelope::open).await?;
        label_delivery(&delivery, app.now());
        Ok(Self(delivery))
    }
}

/// A pushed message, or an external event. Anything else is dead-lettered and acknowledged.
pub struct AnyPush(pub Opened);

impl<S> FromRequest<S> for AnyPush
where
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let app = App::from_ref(state);
        let opened = open(&app, request, envelope::open_any).await?;
        if let Opened::Ours(delivery) = &opened {
            label_delivery(delivery, app.now());
        }
        Ok(Self(opened))
    }
}

/// Authenticates a push and opens its body. A body that cannot be opened is dead-lettered and acknowledged.
async fn open<T>(
    app: &App,
    request: Request,
    open: impl FnOnce(&HeaderMap, &[u8]) -> Result<T, Rejected>,
) -> Result<T, Response> {
    let (headers, body) = accept(app, request, MAX_PUSH_BYTES).await?;
    match open(&headers, &body) {
        Ok(opened) => Ok(opened),
        Err(rejected) => Err(app.dead_letter_body(&body, rejected).await.into_response()),
    }
}

/// `POST /dead-letters`: stores messages that the bus could not deliver, readable or not.
pub async fn receive_dead_letter(State(app): State<App>, request: Request) -> Response {
    match accept(&app, request, MAX_DEAD_LETTER_BYTES).await {
        Ok((_, body)) => app.store_undelivered(&body).await.into_response(),
        Err(rejection) => rejection,
    }
}

/// The headers and body of a push, once its sender is authenticated.
async fn accept(app: &App, request: Request, limit: usize) -> Result<(HeaderMap, Bytes), Response> {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    app.push.check(authorization, app.now()).await.map_err(|error| Problem::from(error).into_response())?;
    let (parts, body) = request.into_parts();
    let body = read_body(body, limit).await.map_err(IntoResponse::into_response)?;
    Ok((parts.headers, body))
}

impl App {
    /// Dead-letters a request that is not a message.
    async fn dead_letter_body(&self, body: &Bytes, rejected: Rejected) -> Reply {
        let id = rejected.id.unwrap_or_else(|| id_of(body));
        let body = String::from_utf8_lossy(body).into_owned();
        let source = rejected.source.unwrap_or_else(|| "unknown".into());
        let letter = DeadLetter { id, source, reason: rejected.reason, body, at: self.now() };
        self.store_dead_letter(letter).await
    }

    /// Dead-letters a message that can never succeed, as an event, so that it can be published again.
    pub(crate) async fn dead_letter(&self, delivery: &Delivery, reason: String) -> Reply {
        let source = delivery.subscription.clone().unwrap_or_else(|| delivery.message.kind().to_owned());
        let body = envelope::structured(&delivery.message, &delivery.id);
        self.store_dead_letter(DeadLetter { id: delivery.id.clone(), source, reason, body, at: self.now() })
            .await
    }

    /// Dead-letters an event that cannot be handled.
    pub async fn dead_letter_event(&self, incoming: &Incoming, reason: String) -> Reply {
        let event = &incoming.event;
        let source = incoming.subscription.clone().unwrap_or_else(|| event.source.clone());
        let body = serde_json::to_string(event).expect("an event has string keys only");
        self.store_dead_letter(DeadLetter { id: event.id.clone(), source, reason, body, at: self.now() })
            .await
    }

    async fn store_undelivered(&self, body: &Bytes) -> Reply {
        let undelivered = Undelivered::read(body);
        let reason = undelivered.reason();
        let id = undelivered.id.unwrap_or_else(|| id_of(body));
        let source = undelivered.subscription.unwrap_or_else(|| "unknown".into());
        let body = String::from_utf8_lossy(body).into_owned();
        self.store_dead_letter(DeadLetter { id, source, reason, body, at: self.now() }).await
    }

    async fn store_dead_letter(&self, letter: DeadLetter) -> Reply {
        match self.runtime.store().insert_dead_letter(&letter).await {
            Ok(()) => {
                crate::metrics::dead_lettered();
                let (id, reason) = (&letter.id, &letter.reason);
                tracing::error!(event = "dead_lettered", "Dead-lettered message {id}: {reason}");
                Reply::Ack
            }
            Err(error) => Reply::Retry(error.to_string()),
        }
    }
}

/// An id for a message without one: equal bodies get equal ids.
fn id_of(body: &Bytes) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, body).to_string()
}
