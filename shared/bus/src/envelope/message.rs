//! A message in its form on the bus, and as Pub/Sub wraps it into a push.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use base64::prelude::{BASE64_STANDARD, Engine};
use chrono::SecondsFormat;
use model::{Instant, Message};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

/// The source of all our events.
const SOURCE: &str = "/ebbflow";

/// A message in its form on the bus: a binary CloudEvent, its attributes prefixed with `ce-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusMessage {
    /// Its id on the bus.
    pub id: String,
    /// When the bus accepted it.
    pub published_at: Instant,
    /// The event's attributes, and whatever else the publisher added.
    pub attributes: BTreeMap<String, String>,
    /// The event's data, as JSON text.
    pub data: Vec<u8>,
}

impl BusMessage {
    /// Puts a message into the form of a CloudEvent.
    pub fn new(message: &Message, id: impl Into<String>, published_at: Instant) -> Self {
        let id = id.into();
        let mut attributes = BTreeMap::from([
            ("Content-Type".into(), "application/json".into()),
            ("ce-id".into(), id.clone()),
            ("ce-source".into(), SOURCE.into()),
            ("ce-specversion".into(), "1.0".into()),
            ("ce-time".into(), rfc3339(published_at)),
            ("ce-type".into(), message.kind().into()),
        ]);
        if let Some(run) = message.run() {
            // The span id is derived from the message's id: a redelivery has the same span in the same trace.
            let span = Uuid::new_v5(&run.0, id.as_bytes()).simple().to_string();
            attributes.insert("ce-subject".into(), run.to_string());
            attributes.insert("ce-traceparent".into(), format!("00-{}-{}-01", run.trace_id(), &span[..16]));
        }
        Self { id, published_at, attributes, data: message.written() }
    }

    /// The body of a push. It has the attempt only if the subscription has a dead-letter policy.
    pub fn push_body(&self, subscription: &str, attempt: Option<u32>) -> Vec<u8> {
        let published_at = rfc3339(self.published_at);
        let message = Wrapped {
            attributes: &self.attributes,
            data: BASE64_STANDARD.encode(&self.data),
            message_id: &self.id,
            message_id_twin: &self.id,
            publish_time: &published_at,
            publish_time_twin: &published_at,
        };
        let body = Wrapper { delivery_attempt: attempt, message, subscription };
        serde_json::to_vec(&body).expect("the keys are strings")
    }
}

/// The message as a structured CloudEvent, which can be opened again.
pub fn structured(message: &Message, id: &str) -> String {
    let event = json!({
        "specversion": "1.0", "id": id, "source": SOURCE, "type": message.kind(),
        "datacontenttype": "application/json", "data": message.data(),
    });
    event.to_string()
}

/// The request with which Pub/Sub pushes the message: headers and body.
pub fn wrap(
    message: &Message,
    id: &str,
    published_at: Instant,
    subscription: &str,
    attempt: Option<u32>,
) -> (HeaderMap, Vec<u8>) {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    (headers, BusMessage::new(message, id, published_at).push_body(subscription, attempt))
}

fn rfc3339(instant: Instant) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrapper<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_attempt: Option<u32>,
    message: Wrapped<'a>,
    subscription: &'a str,
}

/// Production sends id and time under two names each.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrapped<'a> {
    attributes: &'a BTreeMap<String, String>,
    data: String,
    message_id: &'a str,
    #[serde(rename = "message_id")]
    message_id_twin: &'a str,
    publish_time: &'a str,
    #[serde(rename = "publish_time")]
    publish_time_twin: &'a str,
}

/// The parts of a push's body that a receiver reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Push {
    pub(super) message: PushedMessage,
    pub(super) subscription: Option<String>,
    pub(super) delivery_attempt: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushedMessage {
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) data: Option<String>,
    pub(super) message_id: Option<String>,
    #[serde(default)]
    pub(super) publish_time: Option<Instant>,
    // An alias would refuse a body that has both.
    #[serde(rename = "message_id")]
    pub(super) message_id_twin: Option<String>,
}
