//! Circuit breakers: which are open, who waits for them, and who may reset them.

use axum::http::{Method, StatusCode};
use model::{BreakerKey, Failure, RunId, TenantId};
use serde_json::{Value, json};

use crate::world::World;

const FRAGILE: &str = "
name: fragile
tasks:
  - {name: load, type: noop, breaker: {failures: 1, window: 1m, pause: 5m}}
";

/// A run that waits for the breaker that another one opened.
async fn held() -> (World, RunId) {
    let world = World::new().await;
    let first = world.play(FRAGILE, json!({})).await;
    world.report(first, 0, Err(Failure::transient("the warehouse is closed"))).await;
    let second = world.start_of("fragile", json!({})).await;
    (world, second)
}

async fn listed(world: &World) -> Vec<Value> {
    world.get("/breakers").await.body["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_open_breaker_is_listed_with_who_waits_and_what_the_last_failure_said() {
    let (world, _) = held().await;
    let key = BreakerKey::of_host(TenantId::DEFAULT, "api.example", 443);
    world.runtime.slots().breakers().open_host(&key, "connection refused").await.unwrap();
    let found = listed(&world).await;
    let short: Vec<_> = found.iter().map(|row| (&row["kind"], &row["name"], &row["state"])).collect();
    let (task, host, open) = (json!("task"), json!("host"), json!("open"));
    let (load, api) = (json!("fragile/load"), json!("api.example:443"));
    assert_eq!(short, [(&task, &load, &open), (&host, &api, &open)]);
    assert_eq!((&found[0]["waiting"], &found[0]["failures"]), (&json!(1), &json!(1)));
    assert_eq!(found[0]["message"], "the warehouse is closed");
    assert_eq!(found[0]["until"], "2027-01-15T08:05:00Z");
    let page = world.get("/breakers?limit=1").await.body;
    let next = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/breakers?limit=1&cursor={next}")).await.body;
    assert_eq!((&rest["items"][0]["name"], &rest["next_cursor"]), (&api, &Value::Null));
    world.advance(300);
    assert_eq!(listed(&world).await[0]["state"], "probing", "the pause is over");
}

#[tokio::test]
async fn a_task_behind_a_breaker_says_so_and_until_when() {
    let (world, run) = held().await;
    let explained = world.get(&format!("/runs/{run}/explain?task=load")).await.body;
    assert_eq!(
        explained["tasks"][0]["because"],
        "It has been ready since 2027-01-15 08:00:00Z (now), but the circuit breaker of `fragile/load` is open until \
         2027-01-15 08:05:00Z (in 5 min), since attempts failed repeatedly; it is next. `ebb breakers` says why."
    );
    let waiting = world.get(&format!("/runs/{run}/tasks/load")).await.body["waiting"].clone();
    assert_eq!((&waiting["reason"], &waiting["until"]), (&json!("breaker"), &json!("2027-01-15T08:05:00Z")));
    let limits = world.get("/limits").await.body;
    assert!(limits["items"].as_array().unwrap().iter().all(|limit| limit["kind"] != "breaker"), "{limits}");
    let set = world.post("/limits/breaker/fragile", r#"{"slots": 9}"#).await;
    assert_eq!(set.status, StatusCode::NOT_FOUND, "nobody sets its slots");
}

#[tokio::test]
async fn a_reset_lets_the_waiting_task_begin_and_is_audited() {
    let (world, run) = held().await;
    let id = listed(&world).await[0]["id"].clone();
    let reset =
        world.send(Method::POST, &format!("/breakers/{id}/reset"), &[("idempotency-key", "a")], "").await;
    assert_eq!((reset.status, &reset.body["state"]), (StatusCode::OK, &json!("closed")));
    assert_eq!(world.states(run).await, ["dispatched"]);
    assert_eq!(listed(&world).await, [] as [Value; 0]);
    let again =
        world.send(Method::POST, &format!("/breakers/{id}/reset"), &[("idempotency-key", "a")], "").await;
    assert_eq!((again.status, again.body), (StatusCode::OK, reset.body), "the same request, the same answer");
    assert_eq!(world.post(&format!("/breakers/{id}/reset"), "").await.status, StatusCode::NOT_FOUND);
    let entries = world.get("/audit?action=breakers_post_reset").await.body;
    assert!(entries["items"].as_array().unwrap().iter().any(|entry| entry["status"] == 200), "{entries}");
}

#[tokio::test]
async fn the_breakers_of_another_tenant_are_neither_seen_nor_reset() {
    let (world, _) = held().await;
    let id = listed(&world).await[0]["id"].clone();
    world.store().tenant("other", world.now()).await.unwrap();
    let other = [("x-ebb-tenant", "other")];
    let seen = world.send(Method::GET, "/breakers", &other, "").await;
    assert_eq!((seen.status, &seen.body["items"]), (StatusCode::OK, &json!([])));
    let reset = world.send(Method::POST, &format!("/breakers/{id}/reset"), &other, "").await;
    assert_eq!(reset.status, StatusCode::NOT_FOUND);
    assert_eq!(listed(&world).await.len(), 1);
}
