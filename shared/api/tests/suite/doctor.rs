//! The doctor: what it inspects, what it finds, and what it repairs.

use axum::http::{Method, StatusCode};
use engine::Command;
use model::{TaskIndex, WorkerId};
use serde_json::{Value, json};
use store::DeadLetter;
use uuid::Uuid;

use crate::world::{HELLO, World, now};

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn an_idle_system_is_in_order() {
    let world = World::on_machine_time().await;
    let report = world.get("/doctor").await;
    assert_eq!((report.status, &report.body["ok"]), (StatusCode::OK, &json!(true)), "{}", report.body);
    for name in ["migrations", "bus", "identity", "permissions", "transactions", "runs"] {
        assert_eq!(check(&report.body, name)["verdict"], "ok", "{name}: {}", report.body);
    }
    assert!(check(&report.body, "identity")["message"].as_str().unwrap().contains("ada@example.com"));
}

#[tokio::test]
async fn a_worker_whose_token_is_about_to_expire_is_found() {
    let world = World::new().await;
    for (name, role, days) in
        [("soon", "worker", 14), ("later", "worker", 15), ("ci", "viewer", 1), ("gone", "worker", 1)]
    {
        let token = json!({"name": name, "role": role, "days": days}).to_string();
        let created = world.post("/tokens", token).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        if name == "gone" {
            let path = format!("/tokens/{}", created.body["id"].as_str().unwrap());
            assert_eq!(world.send(Method::DELETE, &path, &[], "").await.status, StatusCode::OK);
        }
    }
    let report = world.get("/doctor").await.body;
    let checks = report["checks"].as_array().unwrap().iter();
    let tokens: Vec<&Value> = checks.filter(|check| check["name"] == "worker token").collect();
    assert_eq!(tokens.len(), 1, "{report}");
    assert_eq!((&tokens[0]["verdict"], &report["ok"]), (&json!("wrong"), &json!(false)));
    let message = tokens[0]["message"].as_str().unwrap();
    assert!(message.starts_with("`soon` expires on 2027-01-29"), "{message}");
    assert!(tokens[0]["advice"].as_str().unwrap().contains("--days 366"), "{}", tokens[0]);
}

#[tokio::test]
async fn a_dead_letter_is_for_people_to_decide() {
    let world = World::new().await;
    let (source, reason, body) = ("s".into(), "r".into(), "b".into());
    let letter = DeadLetter { id: "1".into(), source, reason, body, at: now() };
    world.runtime.store().insert_dead_letter(&letter).await.unwrap();
    let report = world.post("/doctor/repair", "").await.body;
    assert_eq!((&report["ok"], &report["repaired"]), (&json!(false), &json!([])));
    let letters = check(&report, "dead_letters");
    assert!(letters["advice"].as_str().unwrap().contains("ebb dead-letters"), "{letters}");
}

#[tokio::test]
async fn what_a_dead_worker_held_is_taken_from_it_once() {
    let world = World::on_machine_time().await;
    let run = world.play(HELLO, json!({})).await;
    let worker = WorkerId(Uuid::from_u128(1));
    world.runtime.settle(run, Command::Claim { task: TaskIndex(0), attempt: 1, worker }).await.unwrap();
    let report = world.get("/doctor").await.body;
    assert_eq!(check(&report, "dead_workers")["message"].as_str().unwrap()[..10], *"1 attempts");
    let repaired = world.post("/doctor/repair", "").await.body;
    assert_eq!(repaired["repaired"][0]["name"], "dead_workers", "{repaired}");
    assert_eq!(repaired["ok"], true, "{repaired}");
    assert_eq!(world.post("/doctor/repair", "").await.body["repaired"], json!([]));
}
