use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::prelude::{BASE64_STANDARD, Engine};
use ebbflow_bus::envelope::{BusMessage, Delivery, Rejected, open, wrap};
use model::Message;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::messages::{noon, nudge, one_of_each};

const SUBSCRIPTION: &str = "projects/local/subscriptions/evaluate";
const JSON: (&str, &str) = ("content-type", "application/json");

/// The push body as production sends it, the span of this message filled in.
fn wrapped() -> Value {
    let message = BusMessage::new(&nudge(1), "7001", noon());
    let span = &message.attributes["ce-traceparent"][36..52];
    serde_json::from_str(&include_str!("../shapes/wrapped.json").replace("SPAN", span)).unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
    };
    pairs.iter().map(header).collect()
}

/// The message as an event in one JSON.
fn structured(message: &Message) -> Value {
    json!({
        "specversion": "1.0", "id": "e1", "source": "/test", "type": message.kind(),
        "datacontenttype": "application/json", "data": message.data(),
    })
}

/// The headers of the message as a binary event.
fn binary(message: &Message) -> Vec<(&'static str, &'static str)> {
    vec![
        ("ce-specversion", "1.0"),
        ("ce-id", "e1"),
        ("ce-source", "/test"),
        ("ce-type", message.kind()),
        JSON,
    ]
}

fn opened(pairs: &[(&str, &str)], body: &Value) -> Result<Delivery, Rejected> {
    open(&headers(pairs), body.to_string().as_bytes())
}

#[test]
fn a_push_has_the_shape_that_production_gives_it() {
    let (headers, body) = wrap(&nudge(1), "7001", noon(), SUBSCRIPTION, Some(3));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), wrapped());
}

#[test]
fn without_a_dead_letter_policy_a_push_has_no_attempt() {
    let (_, body) = wrap(&nudge(1), "7001", noon(), SUBSCRIPTION, None);
    assert!(serde_json::from_slice::<Value>(&body).unwrap().get("deliveryAttempt").is_none());
}

#[test]
fn every_type_of_message_survives_the_wrapping() {
    for message in one_of_each("light") {
        let (headers, body) = wrap(&message, "7001", noon(), SUBSCRIPTION, Some(3));
        let delivery = open(&headers, &body).unwrap();
        assert_eq!(delivery.message, message);
        assert_eq!((delivery.id.as_str(), delivery.attempt), ("7001", Some(3)));
        assert_eq!(delivery.subscription.as_deref(), Some(SUBSCRIPTION));
        let trace = delivery.traceparent.map(|parent| parent[3..35].to_owned());
        assert_eq!(trace, message.run().map(|run| run.trace_id()));
    }
}

#[test]
fn a_push_with_one_name_of_the_id_or_with_unknown_keys_is_opened() {
    for name in ["messageId", "message_id"] {
        let mut body = wrapped();
        body["message"].as_object_mut().unwrap().remove(name);
        body["message"]["orderingKey"] = json!("k");
        body["novelty"] = json!([1]);
        assert_eq!(opened(&[JSON], &body).unwrap().id, "7001");
    }
}

#[test]
fn a_push_may_contain_a_structured_event() {
    let data = BASE64_STANDARD.encode(structured(&nudge(1)).to_string());
    for attributes in [json!({}), json!({ "Content-Type": "application/cloudevents+json; charset=utf-8" })] {
        let push = json!({ "message": { "data": data, "messageId": "9", "attributes": attributes } });
        let delivery = opened(&[JSON], &push).unwrap();
        assert_eq!((delivery.message, delivery.id.as_str()), (nudge(1), "9"));
    }
}

#[test]
fn an_unwrapped_push_with_metadata_is_a_binary_event_with_its_subscription() {
    let message = BusMessage::new(&nudge(1), "e1", noon());
    let mut pairs: Vec<_> = message.attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
    pairs.push(("x-goog-pubsub-message-id", "7001"));
    pairs.push(("x-goog-pubsub-subscription-name", SUBSCRIPTION));
    let delivery = open(&headers(&pairs), &message.data).unwrap();
    assert_eq!((delivery.message, delivery.id.as_str(), delivery.attempt), (nudge(1), "7001", None));
    assert_eq!(delivery.subscription.as_deref(), Some(SUBSCRIPTION));
    assert_eq!(delivery.traceparent.as_ref(), message.attributes.get("ce-traceparent"));
}

#[test]
fn an_unwrapped_push_without_metadata_is_recognized_by_its_body() {
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(opened(&form, &structured(&nudge(1))).unwrap().id, "e1");
    assert!(opened(&form, &nudge(1).data()).is_err());
}

#[test]
fn events_over_http_are_opened_in_binary_and_in_structured_mode() {
    for message in one_of_each("light") {
        let delivery = opened(&binary(&message), &message.data()).unwrap();
        assert_eq!((delivery.message, delivery.id.as_str()), (message.clone(), "e1"));
        let mode = [("content-type", "application/cloudevents+json")];
        let delivery = opened(&mode, &structured(&message)).unwrap();
        assert_eq!((delivery.message, delivery.id.as_str()), (message, "e1"));
    }
}

#[test]
fn eventarc_wraps_a_push_into_an_event() {
    let pairs = [
        ("ce-specversion", "1.0"),
        ("ce-type", "google.cloud.pubsub.topic.v1.messagePublished"),
        ("ce-source", "//pubsub.googleapis.com/projects/p/topics/t"),
        ("ce-id", "7001"),
        JSON,
    ];
    let delivery = opened(&pairs, &wrapped()).unwrap();
    assert_eq!((delivery.message, delivery.id.as_str(), delivery.attempt), (nudge(1), "7001", Some(3)));

    let rejected = opened(&pairs, &json!({ "no": "message" })).unwrap_err();
    assert_eq!(rejected.id.as_deref(), Some("7001"));
    assert_eq!(rejected.source.as_deref(), Some("//pubsub.googleapis.com/projects/p/topics/t"));
}

#[test]
fn the_messages_trace_takes_precedence_over_the_requests() {
    let [ours, theirs] = ["a", "b"].map(|digit| format!("00-{}-{}-01", digit.repeat(32), digit.repeat(16)));
    let trace = |pairs: &[(&str, &str)]| {
        opened(&[binary(&nudge(1)).as_slice(), pairs].concat(), &nudge(1).data()).unwrap().traceparent
    };
    assert_eq!(trace(&[("traceparent", &theirs)]).as_ref(), Some(&theirs));
    assert_eq!(trace(&[("traceparent", &theirs), ("ce-traceparent", &ours)]).as_ref(), Some(&ours));
    assert_eq!(trace(&[("traceparent", "00-zz-01")]), None);
}

#[test]
fn rejections_have_the_id_and_the_reason() {
    let check = |change: &dyn Fn(&mut Value), reason: &str| {
        let mut body = wrapped();
        change(&mut body);
        let rejected = opened(&[JSON], &body).unwrap_err();
        assert_eq!((rejected.id.as_deref(), rejected.source.as_deref()), (Some("7001"), Some(SUBSCRIPTION)));
        assert!(rejected.reason.contains(reason), "{}", rejected.reason);
    };
    check(&|body| body["message"]["data"] = json!("%%%"), "not base64");
    check(&|body| body["message"]["data"] = json!("bm90IGpzb24="), "not JSON");
    check(&|body| body["message"]["data"] = json!("e30="), "does not fit its type");
    check(&|body| body["message"]["data"] = Value::Null, "no data");
    check(&|body| body["message"]["attributes"] = json!({}), "not a CloudEvent");
    check(&|body| body["message"]["attributes"]["ce-type"] = json!("dev.other.v1"), "unknown message type");
    check(&|body| body["message"]["attributes"]["ce-specversion"] = json!("7"), "not a binary CloudEvent");
}

#[test]
fn other_requests_are_rejected() {
    for body in ["", "null", "[]", "{}", "{\"message\":1}", "\u{0}", "not json"] {
        let rejected = open(&HeaderMap::new(), body.as_bytes()).unwrap_err();
        assert_eq!((rejected.id, rejected.source), (None, None), "{body}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        body in prop::collection::vec(any::<u8>(), 0..300),
        kind in "[ -~]{0,40}",
        version in prop::option::of("[ -~]{0,5}"),
    ) {
        let mut pairs = vec![("content-type", kind.as_str()), ("ce-id", "x"), ("ce-time", kind.as_str())];
        pairs.extend(version.as_deref().map(|version| ("ce-specversion", version)));
        open(&headers(&pairs), &body).ok();
    }

    #[test]
    fn no_push_makes_it_panic(
        data in "[A-Za-z0-9+/=]{0,60}",
        names in prop::collection::btree_map("(ce-)?[a-zA-Z ]{0,12}|ce-time|ce-dataschema|ce-specversion", "\\PC{0,30}|1.0", 0..8),
        attempt in any::<i64>(),
    ) {
        let push = json!({ "message": { "data": data, "attributes": names }, "deliveryAttempt": attempt });
        opened(&[JSON], &push).ok();
    }

    #[test]
    fn no_change_of_a_good_push_makes_it_panic(at in 0..600usize, byte in any::<u8>()) {
        let mut body = wrapped().to_string().into_bytes();
        let at = at % body.len();
        body[at] = byte;
        open(&headers(&[JSON]), &body).ok();
    }
}
