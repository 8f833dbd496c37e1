//! The fast path for opening a request: a push that wraps an Ebbflow message, as nearly all do. Anything else takes the
//! slow path, which also explains errors.

use std::borrow::Cow;

use axum::http::{HeaderMap, header::CONTENT_TYPE};
use base64::prelude::{BASE64_STANDARD, Engine};
use cloudevents::binding::http::SPEC_VERSION_HEADER;
use model::{Instant, Message};
use serde::Deserialize;

use super::{Delivery, is_traceparent};

const JSON: &str = "application/json";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Push<'a> {
    #[serde(borrow)]
    message: Pushed<'a>,
    subscription: Option<String>,
    delivery_attempt: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pushed<'a> {
    #[serde(borrow)]
    attributes: Attributes<'a>,
    #[serde(borrow)]
    data: Cow<'a, str>,
    message_id: String,
}

/// The fields of our own events.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    #[serde(borrow, rename = "Content-Type")]
    content_type: Cow<'a, str>,
    #[serde(borrow)]
    ce_specversion: Cow<'a, str>,
    #[serde(borrow)]
    ce_type: Cow<'a, str>,
    #[serde(borrow)]
    ce_traceparent: Cow<'a, str>,
    ce_time: Instant,
    #[serde(rename = "ce-id")]
    _id: serde::de::IgnoredAny,
    #[serde(rename = "ce-source")]
    _source: serde::de::IgnoredAny,
}

/// The Ebbflow message in a push, if it wraps one.
pub(super) fn open(headers: &HeaderMap, body: &[u8]) -> Option<Delivery> {
    if headers.get(CONTENT_TYPE)? != JSON || headers.contains_key(SPEC_VERSION_HEADER) {
        return None;
    }
    let Push { message, subscription, delivery_attempt } = serde_json::from_slice(body).ok()?;
    let Pushed { attributes, data, message_id } = message;
    let plain = attributes.content_type == JSON && attributes.ce_specversion == "1.0";
    if !plain || !is_traceparent(&attributes.ce_traceparent) {
        return None;
    }
    let data = BASE64_STANDARD.decode(data.as_bytes()).ok()?;
    Some(Delivery {
        message: Message::read(&attributes.ce_type, &data).ok()?,
        id: message_id,
        attempt: delivery_attempt,
        subscription,
        traceparent: Some(attributes.ce_traceparent.into_owned()),
        created_at: Some(attributes.ce_time),
    })
}
