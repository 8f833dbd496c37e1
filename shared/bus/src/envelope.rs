//! Opens requests that are pushed to a function, in any of the accepted shapes.
//!
//! A Pub/Sub push wraps a message: its attributes and data are those of a CloudEvent. Unwrapping it gives the same
//! headers and body that a CloudEvent over HTTP has, so that below the wrapper there is one way to read an event.

mod foreign;
mod message;
mod own;
mod undelivered;

use std::collections::BTreeMap;
use std::fmt;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use base64::prelude::{BASE64_STANDARD, Engine};
use cloudevents::{AttributesReader, Event, binding::http as http_binding};
use model::{Instant, Message};
use serde_json::Value;

pub use foreign::{Incoming, Opened, open_any};
use message::Push;
pub use message::{BusMessage, structured, wrap};
pub use undelivered::Undelivered;

/// The type of the event that Eventarc wraps a Pub/Sub message into.
const MESSAGE_PUBLISHED: &str = "google.cloud.pubsub.topic.v1.messagePublished";

/// A message that was pushed to us.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// The message that was published.
    pub message: Message,
    /// The bus's id of it, the same at every delivery; the event's id if it came without a bus.
    pub id: String,
    /// Which delivery this is, from 1, where the bus counts them.
    pub attempt: Option<u32>,
    /// The subscription that pushed it.
    pub subscription: Option<String>,
    /// Its trace (W3C trace context).
    pub traceparent: Option<String>,
    /// When it was created, if known.
    pub created_at: Option<Instant>,
}

/// A request that is not a message, and would not become one if delivered again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The subscription or event source it came from, if known.
    pub source: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [id, source] = [&self.id, &self.source].map(|part| part.as_deref().unwrap_or("unknown"));
        write!(f, "message {id} from {source} can never be handled: {}", self.reason)
    }
}

impl std::error::Error for Rejected {}

/// Opens a request: a wrapped push, an unwrapped push, a CloudEvent in binary or structured mode, or a push wrapped
/// by Eventarc.
pub fn open(headers: &HeaderMap, body: &[u8]) -> Result<Delivery, Rejected> {
    if let Some(delivery) = own::open(headers, body) {
        return Ok(delivery);
    }
    match unwrap(headers, body)? {
        (origin, Content::Event(event)) => origin.deliver(*event),
        (origin, Content::Message(_)) => Err(origin.reject(
            "the message is not a CloudEvent: it has neither `ce-` attributes nor an event as data".into(),
        )),
    }
}

/// The content of a wrapper.
enum Content {
    Event(Box<Event>),
    /// A bus message that is not an event.
    Message(Plain),
}

/// A bus message that is not an event: its attributes and its data.
struct Plain {
    attributes: BTreeMap<String, String>,
    data: Vec<u8>,
    published_at: Option<Instant>,
}

/// Separates a request into its origin and the content that was published.
fn unwrap(headers: &HeaderMap, body: &[u8]) -> Result<(Origin, Content), Rejected> {
    let mut origin = Origin::of(headers);
    match read_event(headers, body) {
        Ok(Some(event)) if event.ty() == MESSAGE_PUBLISHED => {
            origin.note(&event);
            let push = event_data(event).map_err(|reason| origin.reject(reason))?;
            unwrap_push(serde_json::from_value(push), origin)
        }
        Ok(Some(event)) => Ok((origin, Content::Event(Box::new(event)))),
        Ok(None) => unwrap_push(serde_json::from_slice(body), origin),
        Err(reason) => Err(origin.reject(reason)),
    }
}

/// Opens a body that was stored without its headers: a wrapped push, or a structured event.
pub fn reopen(body: &[u8]) -> Result<Delivery, Rejected> {
    open(&HeaderMap::new(), body)
}

fn unwrap_push(push: serde_json::Result<Push>, mut origin: Origin) -> Result<(Origin, Content), Rejected> {
    let push = push.map_err(|error| origin.reject(format!("neither a push nor a CloudEvent: {error}")))?;
    origin.id = push.message.message_id.or(push.message.message_id_twin).or(origin.id);
    origin.subscription = push.subscription.or(origin.subscription);
    origin.attempt = push.delivery_attempt;

    let headers = attribute_headers(push.message.attributes.clone());
    origin.traceparent = traceparent(&headers).or(origin.traceparent);
    let data = BASE64_STANDARD.decode(push.message.data.unwrap_or_default());
    let data = data.map_err(|error| origin.reject(format!("the data is not base64: {error}")))?;
    match read_event(&headers, &data) {
        Ok(Some(event)) => Ok((origin, Content::Event(Box::new(event)))),
        Ok(None) => {
            let (attributes, published_at) = (push.message.attributes, push.message.publish_time);
            Ok((origin, Content::Message(Plain { attributes, data, published_at })))
        }
        Err(reason) => Err(origin.reject(reason)),
    }
}

/// The event, if these are the headers and the body of one.
fn read_event(headers: &HeaderMap, body: &[u8]) -> Result<Option<Event>, String> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content_type.starts_with("application/cloudevents+json") {
        return serde_json::from_slice(body)
            .map(Some)
            .map_err(|error| format!("not a structured CloudEvent: {error}"));
    }
    if headers.contains_key(http_binding::SPEC_VERSION_HEADER) {
        let event = http_binding::to_event(headers, body.to_vec());
        return event.map(Some).map_err(|error| format!("not a binary CloudEvent: {error}"));
    }
    // A push unwrapped without its metadata has no content type, so the body decides.
    Ok(serde_json::from_slice(body).ok())
}

/// Attributes as headers of the same name. Those that cannot be headers are ignored.
fn attribute_headers(attributes: impl IntoIterator<Item = (String, String)>) -> HeaderMap {
    let header = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    attributes.into_iter().filter_map(header).collect()
}

fn event_data(mut event: Event) -> Result<Value, String> {
    let (_, _, data) = event.take_data();
    let data = data.ok_or("the event has no data")?;
    data.try_into().map_err(|error: serde_json::Error| format!("the event's data is not JSON: {error}"))
}

/// A message's origin, gathered from the outermost wrapper inwards.
#[derive(Default)]
struct Origin {
    id: Option<String>,
    source: Option<String>,
    subscription: Option<String>,
    attempt: Option<u32>,
    traceparent: Option<String>,
}

impl Origin {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
        Self {
            id: text("x-goog-pubsub-message-id"),
            subscription: text("x-goog-pubsub-subscription-name"),
            traceparent: traceparent(headers),
            ..Self::default()
        }
    }

    /// The event's own fields apply where the bus gives none.
    fn note(&mut self, event: &Event) {
        self.id.get_or_insert_with(|| event.id().to_owned());
        self.source = Some(event.source().to_string());
        if let Some(parent) =
            event.extension("traceparent").map(ToString::to_string).filter(|text| is_traceparent(text))
        {
            self.traceparent = Some(parent);
        }
    }

    fn deliver(mut self, event: Event) -> Result<Delivery, Rejected> {
        self.note(&event);
        let (kind, created_at) = (event.ty().to_owned(), event.time().copied());
        let message = event_data(event)
            .and_then(|data| Message::decode(&kind, data).map_err(|error| error.to_string()))
            .map_err(|reason| self.reject(reason))?;
        let Self { id, subscription, attempt, traceparent, .. } = self;
        Ok(Delivery { message, id: id.unwrap_or_default(), attempt, subscription, traceparent, created_at })
    }

    fn reject(&self, reason: String) -> Rejected {
        let source = self.subscription.clone().or(self.source.clone());
        Rejected { id: self.id.clone(), source, reason }
    }
}

/// The trace context in the headers; the message's own before that of the request which carries it.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let found = ["ce-traceparent", "traceparent"].into_iter().find_map(|name| headers.get(name))?;
    Some(found.to_str().ok()?.to_owned()).filter(|text| is_traceparent(text))
}

/// Whether the text is a W3C trace context: version, trace (32 hex digits), span (16) and flags.
pub fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.split('-').map(str::len).eq([2, 32, 16, 2]) && text.split('-').all(is_hex)
}
