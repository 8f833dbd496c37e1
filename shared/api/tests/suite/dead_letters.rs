//! Dead letters: listed, shown, replayed, discarded.

use axum::http::StatusCode;
use bus::envelope;
use model::message::RunNudged;
use model::{Message, RunId};
use serde_json::json;
use store::DeadLetter;
use uuid::Uuid;

use crate::world::{World, now};

fn nudge() -> Message {
    Message::RunNudged(RunNudged { run: RunId(Uuid::nil()) })
}

async fn dead_letter(world: &World, id: &str, body: String) {
    let letter = DeadLetter {
        id: id.into(),
        source: "evaluate".into(),
        reason: format!("letter {id} is of no use"),
        body,
        at: now(),
    };
    world.runtime.store().insert_dead_letter(&letter).await.unwrap();
}

/// With a letter that holds a message as an event, one as a push, and one that holds none.
async fn with_dead_letters() -> World {
    let world = World::new().await;
    dead_letter(&world, "event", envelope::structured(&nudge(), "event")).await;
    let push = envelope::BusMessage::new(&nudge(), "push", now()).push_body("evaluate", Some(20));
    dead_letter(&world, "push", String::from_utf8(push).unwrap()).await;
    dead_letter(&world, "scrap", "no message".into()).await;
    world
}

async fn ids(world: &World, query: &str) -> Vec<String> {
    let answer = world.get(&format!("/dead-letters{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let items = answer.body["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn dead_letters_are_listed_with_what_they_hold_and_by_page() {
    let world = with_dead_letters().await;
    let answer = world.get("/dead-letters?limit=2").await;
    assert_eq!(
        answer.body["items"],
        json!([
            {"id": "scrap", "at": now(), "source": "evaluate", "reason": "letter scrap is of no use", "type": null, "run": null},
            {"id": "push", "at": now(), "source": "evaluate", "reason": "letter push is of no use", "type": "dev.ebbflow.run.nudged.v1", "run": Uuid::nil()},
        ])
    );
    let cursor = answer.body["next_cursor"].as_str().unwrap();
    assert_eq!(ids(&world, &format!("?cursor={cursor}")).await, ["event"]);
    assert_eq!(ids(&world, "?text=letter%20push").await, ["push"]);
    assert_eq!(ids(&world, "?source=elsewhere").await, [""; 0]);
    assert_eq!(world.get("/dead-letters?limit=101").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_dead_letter_is_shown_with_its_body_and_the_message_in_it() {
    let world = with_dead_letters().await;
    let push = world.get("/dead-letters/push").await;
    assert_eq!(push.body["data"], json!({"run": Uuid::nil()}));
    assert!(push.body["body"].as_str().unwrap().contains("\"subscription\""));
    let scrap = world.get("/dead-letters/scrap").await;
    assert_eq!((&scrap.body["body"], scrap.body.get("data")), (&json!("no message"), None));
    assert_eq!(world.get("/dead-letters/gone").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_replayed_letter_is_published_again_and_gone() {
    let world = with_dead_letters().await;
    for id in ["event", "push"] {
        let answer = world.post(&format!("/dead-letters/{id}/replay"), "").await;
        assert_eq!((answer.status, &answer.body["id"]), (StatusCode::OK, &json!(id)));
        assert_eq!(world.get(&format!("/dead-letters/{id}")).await.status, StatusCode::NOT_FOUND);
        assert_eq!(world.post(&format!("/dead-letters/{id}/replay"), "").await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(world.bus.published(), [nudge(), nudge()]);
}

#[tokio::test]
async fn what_is_no_message_cannot_be_replayed_and_can_be_discarded() {
    let world = with_dead_letters().await;
    let refused = world.post("/dead-letters/scrap/replay", "").await;
    assert_eq!(
        (refused.status, &refused.body["error_code"]),
        (StatusCode::CONFLICT, &json!("not_a_message"))
    );
    assert!(refused.body["message"].as_str().unwrap().contains("can only be discarded"), "{}", refused.body);
    assert_eq!(world.post("/dead-letters/scrap/discard", "").await.status, StatusCode::OK);
    assert_eq!(ids(&world, "").await, ["push", "event"]);
    assert_eq!(world.bus.published(), []);
}

#[tokio::test]
async fn a_bulk_replay_says_first_what_it_would_do_and_leaves_what_it_cannot() {
    let world = with_dead_letters().await;
    let bulk = async |dry_run: bool, action: &str, filter: serde_json::Value| {
        let body = json!({"action": action, "filter": filter, "dry_run": dry_run});
        world.post("/dead-letters/bulk", body.to_string()).await.body
    };
    let expected = json!({"matched": 3, "done": 2, "left": ["scrap"], "next_cursor": null});
    assert_eq!(bulk(true, "replay", json!({})).await, expected);
    assert_eq!(ids(&world, "").await.len(), 3);
    assert_eq!(world.bus.published(), []);
    assert_eq!(bulk(false, "replay", json!({})).await, expected);
    assert_eq!(world.bus.published(), [nudge(), nudge()]);
    assert_eq!(bulk(false, "discard", json!({"source": "elsewhere"})).await["matched"], 0);
    assert_eq!(bulk(false, "discard", json!({"source": "evaluate"})).await["done"], 1);
    assert_eq!(ids(&world, "").await, [""; 0]);
}

#[tokio::test]
async fn a_bulk_action_sees_to_a_hundred_at_a_time() {
    let world = World::new().await;
    for number in 0..101 {
        dead_letter(&world, &format!("{number:03}"), "no message".into()).await;
    }
    let first = world.post("/dead-letters/bulk", json!({"action": "replay"}).to_string()).await.body;
    assert_eq!((&first["matched"], &first["done"]), (&json!(100), &json!(0)));
    let more = json!({"action": "discard", "cursor": first["next_cursor"]});
    assert_eq!(world.post("/dead-letters/bulk", more.to_string()).await.body["done"], 1);
    assert_eq!(ids(&world, "?limit=100").await.len(), 100);
}
