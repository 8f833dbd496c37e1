//! Tenants: who is there, and what each has coming.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|tenant| tenant["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tenant_is_created_with_its_weight_and_limit() {
    let world = World::new().await;
    let made = world.post("/tenants/acme", r#"{"weight": 3, "max_active_tasks": 5}"#).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(
        made.body,
        json!({"name": "acme", "weight": 3, "max_active_tasks": 5, "active_tasks": 0, "waiting_tasks": 0,
               "created_at": "2027-01-15T08:00:00Z"})
    );
    assert_eq!(world.get("/tenants/acme").await.body, made.body);
    assert_eq!(names(&world.get("/tenants").await.body), ["default", "acme"]);
}

#[tokio::test]
async fn what_is_not_named_stays_and_null_is_no_bound() {
    let world = World::new().await;
    world.post("/tenants/acme", r#"{"weight": 3, "max_active_tasks": 5}"#).await;
    let set = async |body: &'static str| {
        let answer = world.post("/tenants/acme", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        (answer.body["weight"].clone(), answer.body["max_active_tasks"].clone())
    };
    assert_eq!(set("{}").await, (json!(3), json!(5)));
    assert_eq!(set(r#"{"weight": 9}"#).await, (json!(9), json!(5)));
    assert_eq!(set(r#"{"max_active_tasks": null}"#).await, (json!(9), json!(null)));
}

#[tokio::test]
async fn a_bound_keeps_tasks_waiting_and_more_slots_let_them_begin() {
    let world = World::new().await;
    world.post("/tenants/default", r#"{"max_active_tasks": 1}"#).await;
    let pair = "name: pair\ntasks: [{name: a, type: noop}, {name: b, type: noop}]";
    let run = world.play(pair, json!({})).await;
    let counts = async || world.get(&format!("/runs/{run}")).await.body["counts"].clone();
    assert_eq!(counts().await, json!({"queued": 1, "dispatched": 1}));
    let shown = world.get("/tenants/default").await.body;
    assert_eq!((&shown["active_tasks"], &shown["waiting_tasks"]), (&json!(1), &json!(1)));
    world.post("/tenants/default", r#"{"max_active_tasks": 2}"#).await;
    assert_eq!(counts().await, json!({"dispatched": 2}));
}

#[tokio::test]
async fn tenants_come_in_pages() {
    let world = World::new().await;
    for name in ["one", "two"] {
        world.post(&format!("/tenants/{name}"), "{}").await;
    }
    let first = world.get("/tenants?limit=2").await.body;
    assert_eq!(names(&first), ["default", "one"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/tenants?limit=2&cursor={cursor}")).await.body;
    assert_eq!((names(&second), &second["next_cursor"]), (vec!["two"], &Value::Null));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_words() {
    let world = World::new().await;
    for (path, body, code) in [
        ("/tenants/acme", r#"{"weight": 0}"#, "bad_weight"),
        ("/tenants/acme", r#"{"weight": 1001}"#, "bad_weight"),
        ("/tenants/acme", r#"{"max_active_tasks": 1000001}"#, "bad_slots"),
        ("/tenants/*", "{}", "bad_name"),
        ("/tenants/a%20b", "{}", "bad_name"),
        ("/tenants/..%2Facme", "{}", "bad_name"),
        ("/tenants/Acme", "{}", "bad_name"),
        ("/tenants/acme--north", "{}", "bad_name"),
    ] {
        let answer = world.post(path, body).await;
        assert_eq!(
            (answer.status, answer.body["error_code"].as_str()),
            (StatusCode::UNPROCESSABLE_ENTITY, Some(code)),
            "{path} {body}"
        );
    }
    assert_eq!(world.post("/tenants/acme", r#"{"wight": 1}"#).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get("/tenants/acme").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_audit_log_tells_what_a_tenant_had_and_has() {
    let world = World::new().await;
    world.post("/tenants/acme", r#"{"weight": 3}"#).await;
    world.post("/tenants/acme", r#"{"weight": 4}"#).await;
    let log = world.get("/audit?action=tenants_post_one").await.body;
    let last = &log["items"][0];
    assert_eq!(last["before"], json!({"weight": 3, "max_active_tasks": null}));
    assert_eq!(last["after"], json!({"name": "acme", "weight": 4, "max_active_tasks": null}));
}

#[tokio::test]
async fn a_key_lets_a_tenant_be_changed_once() {
    let world = World::new().await;
    let keyed = [("idempotency-key", "k")];
    let send = async |body: &'static str| world.send(Method::POST, "/tenants/acme", &keyed, body).await;
    assert_eq!(send(r#"{"weight": 3}"#).await.status, StatusCode::CREATED);
    assert_eq!(send(r#"{"weight": 3}"#).await.status, StatusCode::CREATED, "answered alike");
    assert_eq!(send(r#"{"weight": 4}"#).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.get("/tenants/acme").await.body["weight"], 3);
}
