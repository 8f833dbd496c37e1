//! A pushed message as a handler's argument: authenticated, unwrapped, decoded.

use axum::body::Bytes;
use axum::extract::{FromRef, FromRequest, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bus::envelope::{self, Delivery, Incoming, Opened, Rejected, Undelivered};
use store::DeadLetter;
use uuid::Uuid;

use crate::observe::note_delivery;
use crate::{App, Problem, Reply, read_body};

/// No pushed request is larger: a message of 1 MiB, wrapped.
pub const PUSH_BODY_LIMIT: usize = 2 * 1024 * 1024;

/// What the bus gave up on may be larger, since that may be why: the largest message of Pub/Sub, wrapped.
const UNDELIVERED_BODY_LIMIT: usize = 14 * 1024 * 1024;

/// A pushed message. What can never be a message of ours is buried and acknowledged before any handler sees it.
pub struct Push(pub Delivery);

impl<S> FromRequest<S> for Push
where
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let app = App::from_ref(state);
        let (headers, body) = take_in(&app, request, PUSH_BODY_LIMIT).await?;
        match envelope::open(&headers, &body) {
            Ok(delivery) => {
                note_delivery(&delivery, app.now());
                Ok(Self(delivery))
            }
            Err(rejected) => Err(app.bury(&body, rejected).await.into_response()),
        }
    }
}

/// A pushed message of ours, or an event from elsewhere. What is neither is buried and acknowledged.
pub struct AnyPush(pub Opened);

impl<S> FromRequest<S> for AnyPush
where
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let app = App::from_ref(state);
        let (headers, body) = take_in(&app, request, PUSH_BODY_LIMIT).await?;
        match envelope::open_any(&headers, &body) {
            Ok(opened) => {
                if let Opened::Ours(delivery) = &opened {
                    note_delivery(delivery, app.now());
                }
                Ok(Self(opened))
            }
            Err(rejected) => Err(app.bury(&body, rejected).await.into_response()),
        }
    }
}

/// `POST /dead-letters`: keeps what the bus gave up on. Whatever comes from a dead-letter topic is kept, also what can
/// be no message of ours: nobody else would.
pub async fn keep_undelivered(State(app): State<App>, request: Request) -> Response {
    match take_in(&app, request, UNDELIVERED_BODY_LIMIT).await {
        Ok((_, body)) => app.keep_undelivered(&body).await.into_response(),
        Err(refused) => refused,
    }
}

/// The headers and the body of a push, once it is known that whoever sends it may.
async fn take_in(app: &App, request: Request, limit: usize) -> Result<(HeaderMap, Bytes), Response> {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    app.push.check(authorization, app.now()).await.map_err(|error| Problem::from(error).into_response())?;
    let (parts, body) = request.into_parts();
    let body = read_body(body, limit).await.map_err(IntoResponse::into_response)?;
    Ok((parts.headers, body))
}

impl App {
    /// Keeps a body that can never be a message of ours, so that it need not come again.
    async fn bury(&self, body: &Bytes, rejected: Rejected) -> Reply {
        let id = rejected.id.unwrap_or_else(|| id_of(body));
        let body = String::from_utf8_lossy(body).into_owned();
        let source = rejected.source.unwrap_or_else(|| "unknown".into());
        let letter = DeadLetter { id, source, reason: rejected.reason, body, at: self.now() };
        self.keep(letter).await
    }

    /// Keeps a message that can never succeed, so that it need not come again.
    pub(crate) async fn discard(&self, delivery: &Delivery, reason: String) -> Reply {
        let source = delivery.subscription.clone().unwrap_or_else(|| delivery.message.kind().to_owned());
        // As an event, so that it can be opened and published again.
        let body = envelope::structured(&delivery.message, &delivery.id);
        self.keep(DeadLetter { id: delivery.id.clone(), source, reason, body, at: self.now() }).await
    }

    /// Keeps an event that nobody can make anything of, so that it need not come again.
    pub async fn discard_event(&self, incoming: &Incoming, reason: String) -> Reply {
        let event = &incoming.event;
        let source = incoming.subscription.clone().unwrap_or_else(|| event.source.clone());
        let body = serde_json::to_string(event).expect("an event has string keys only");
        self.keep(DeadLetter { id: event.id.clone(), source, reason, body, at: self.now() }).await
    }

    async fn keep_undelivered(&self, body: &Bytes) -> Reply {
        let undelivered = Undelivered::read(body);
        let reason = undelivered.reason();
        let id = undelivered.id.unwrap_or_else(|| id_of(body));
        let source = undelivered.subscription.unwrap_or_else(|| "unknown".into());
        let body = String::from_utf8_lossy(body).into_owned();
        self.keep(DeadLetter { id, source, reason, body, at: self.now() }).await
    }

    async fn keep(&self, letter: DeadLetter) -> Reply {
        match self.runtime.store().bury(&letter).await {
            Ok(()) => {
                crate::metrics::buried();
                tracing::error!("Message {} can never succeed and was buried: {}", letter.id, letter.reason);
                Reply::Ack
            }
            Err(error) => Reply::Retry(error.to_string()),
        }
    }
}

/// An id for a message that came without one: the same body, the same id.
fn id_of(body: &Bytes) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, body).to_string()
}
