//! External events.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderValue};
use base64::prelude::{BASE64_STANDARD, Engine};
use ebbflow_bus::envelope::{Opened, Rejected, open, open_any};
use ebbflow_bus::local::Faults;
use ebbflow_bus::{Bus, Subscription};
use model::{CloudEvent, Topic};
use serde_json::{Value, json};

use crate::messages::{nudge, one_of_each};
use crate::receiver::{Receiver, broker};

fn any(body: &Value) -> Result<Opened, Rejected> {
    let json = HeaderValue::from_static("application/json");
    open_any(&HeaderMap::from_iter([(axum::http::header::CONTENT_TYPE, json)]), body.to_string().as_bytes())
}

fn foreign(body: &Value) -> CloudEvent {
    match any(body) {
        Ok(Opened::Foreign(incoming)) => incoming.event,
        other => panic!("{other:?}"),
    }
}

#[test]
fn our_own_messages_are_opened() {
    for message in
        one_of_each("light").into_iter().filter(|message| message.kind() != "dev.ebbflow.notice.v1")
    {
        let body = ebbflow_bus::envelope::structured(&message, "7");
        let ours = any(&serde_json::from_str(&body).unwrap()).unwrap();
        assert_eq!(ours, Opened::Ours(open(&HeaderMap::new(), body.as_bytes()).unwrap()));
    }
}

#[test]
fn an_external_event_keeps_its_attributes_and_data() {
    let event = foreign(&json!({
        "specversion": "1.0", "id": "7", "source": "//storage/b", "type": "storage.finalized", "subject": "a.csv",
        "time": "2027-01-15T08:00:00Z", "bucket": "b", "datacontenttype": "application/json", "data": {"size": 3},
    }));
    let expected = CloudEvent {
        id: "7".into(),
        source: "//storage/b".into(),
        kind: "storage.finalized".into(),
        subject: Some("a.csv".into()),
        time: Some("2027-01-15T08:00:00Z".parse().unwrap()),
        data: json!({"size": 3}),
        attributes: BTreeMap::from([("bucket".to_owned(), "b".to_owned())]),
    };
    assert_eq!(event, expected);
}

#[test]
fn a_plain_message_gets_its_subscription_and_id() {
    let push = |data: &str| {
        json!({
            "message": {"attributes": {"objectId": "a.csv", "bucketId": "b"}, "data": BASE64_STANDARD.encode(data), "messageId": "9"},
            "subscription": "projects/p/subscriptions/uploads",
        })
    };
    let event = foreign(&push(r#"{"n": 1}"#));
    assert_eq!((event.id.as_str(), event.kind.as_str()), ("9", CloudEvent::MESSAGE));
    assert_eq!(event.source, "//pubsub.googleapis.com/projects/p/subscriptions/uploads");
    assert_eq!((event.subject.as_deref(), event.data), (Some("a.csv"), json!({"n": 1})));
    assert_eq!(event.attributes["bucketId"], "b");
    assert_eq!(foreign(&push("plain words")).data, json!("plain words"));
    assert_eq!(foreign(&push("")).data, Value::Null);
}

#[test]
fn other_requests_are_rejected() {
    for body in
        [json!({}), json!([1]), json!({"message": {"data": "§"}}), json!({"message": {"data": "e30="}})]
    {
        assert!(any(&body).is_err(), "{body}");
    }
    let broken = json!({"specversion": "1.0", "id": "1", "source": "/x", "type": "dev.ebbflow.run.nudged.v1", "data": {}});
    assert!(any(&broken).is_err(), "an Ebbflow message that cannot be read is no event from elsewhere");
}

#[tokio::test]
async fn a_filtered_subscription_receives_only_its_type() {
    let (broker, mut receiver) = (broker(Faults::default()), Receiver::content());
    let only = |kind: &str| Some(kind.to_owned());
    let picky = Subscription { only: only("dev.ebbflow.run.finished.v1"), ..receiver.subscription("picky") };
    broker.subscribe(&Topic::Evaluations, picky);
    broker.publish(&[nudge(1)]).await.unwrap();
    broker.idle().await;
    assert_eq!(receiver.so_far().len(), 0);
    let fond = Subscription { only: only("dev.ebbflow.run.nudged.v1"), ..receiver.subscription("fond") };
    broker.subscribe(&Topic::Evaluations, fond);
    broker.publish(&[nudge(1)]).await.unwrap();
    broker.idle().await;
    assert_eq!(receiver.so_far().len(), 1);
}
