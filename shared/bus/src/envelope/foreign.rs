//! External events, which may start runs.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use cloudevents::{AttributesReader, Data, Event};
use model::CloudEvent;
use serde_json::Value;

use super::{Content, Delivery, Origin, Plain, Rejected, own, unwrap};

/// The prefix of our own message types.
const OURS: &str = "dev.ebbflow.";

/// A callback published as a message: pushed back to us, it is an external event.
const NOTICE: &str = "dev.ebbflow.notice.v1";

/// An external event, and its subscription.
#[derive(Clone, PartialEq, Debug)]
pub struct Incoming {
    /// The event that was pushed.
    pub event: CloudEvent,
    /// The subscription that pushed it.
    pub subscription: Option<String>,
}

/// The content of a request.
#[derive(Clone, PartialEq, Debug)]
pub enum Opened {
    /// A message of Ebbflow.
    Ours(Delivery),
    /// An event of another system.
    Foreign(Incoming),
}

/// Opens a request as [`open`](super::open) does, and accepts external events and bus messages that are not events.
pub fn open_any(headers: &HeaderMap, body: &[u8]) -> Result<Opened, Rejected> {
    if let Some(delivery) = own::open(headers, body).filter(|it| it.message.kind() != NOTICE) {
        return Ok(Opened::Ours(delivery));
    }
    match unwrap(headers, body)? {
        (origin, Content::Event(event)) if event.ty().starts_with(OURS) && event.ty() != NOTICE => {
            origin.deliver(*event).map(Opened::Ours)
        }
        (origin, Content::Event(event)) => {
            let subscription = origin.subscription.clone();
            Ok(Opened::Foreign(Incoming { event: cloud_event(*event), subscription }))
        }
        (origin, Content::Message(message)) => origin.plain(message).map(Opened::Foreign),
    }
}

impl Origin {
    /// A message without an event gets the attributes that Eventarc would give it.
    fn plain(self, message: Plain) -> Result<Incoming, Rejected> {
        let Some(id) = self.id.clone() else {
            return Err(self.reject("neither a push nor a CloudEvent: it has no id".into()));
        };
        let subscription = self.subscription.clone();
        let event = CloudEvent {
            id,
            source: format!("//pubsub.googleapis.com/{}", subscription.as_deref().unwrap_or("unknown")),
            kind: CloudEvent::MESSAGE.into(),
            subject: message.attributes.get("objectId").cloned(),
            time: message.published_at,
            data: json_or_text(message.data),
            attributes: message.attributes,
        };
        Ok(Incoming { event, subscription })
    }
}

/// The event as our own type.
fn cloud_event(mut event: Event) -> CloudEvent {
    let attributes: BTreeMap<String, String> =
        event.iter_extensions().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    let (_, _, data) = event.take_data();
    CloudEvent {
        id: event.id().to_owned(),
        source: event.source().to_string(),
        kind: event.ty().to_owned(),
        subject: event.subject().map(str::to_owned),
        time: event.time().copied(),
        data: match data {
            None => Value::Null,
            Some(Data::Json(value)) => value,
            Some(Data::String(text)) => json_or_text(text.into_bytes()),
            Some(Data::Binary(bytes)) => json_or_text(bytes),
        },
        attributes,
    }
}

/// JSON if it is valid JSON; else text.
fn json_or_text(data: Vec<u8>) -> Value {
    if data.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(&data).unwrap_or_else(|_| String::from_utf8_lossy(&data).into_owned().into())
}
