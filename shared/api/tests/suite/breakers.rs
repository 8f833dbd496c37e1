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

/// What a worker of a tenant learns about the breaker of a host, or which error it gets.
async fn ask(world: &World, tenant: &str, worker: &str, step: &str) -> Value {
    let body = json!({"worker": worker, "step": step, "hosts": ["api.example:443"], "message": "refused"});
    let headers = [("x-ebb-tenant", tenant)];
    let answer = world.send(Method::POST, "/execution/breakers", &headers, body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer.body["items"].clone()
}

#[tokio::test]
async fn a_host_that_one_worker_cannot_reach_is_listed_and_held_back_for_all_until_a_person_resets_it() {
    let world = World::new().await;
    let ask = async |worker, step| ask(&world, "default", worker, step).await;
    let open = ask("one", "open").await;
    assert_eq!(
        (&open[0]["host"], &open[0]["until"]),
        (&json!("api.example:443"), &json!("2027-01-15T08:00:05Z"))
    );
    assert_eq!(ask("one", "open").await, open, "the same report again changes nothing");
    assert_eq!(ask("other", "read").await, open);
    let row = listed(&world).await[0].clone();
    assert_eq!(
        (&row["kind"], &row["name"], &row["message"]),
        (&json!("host"), &json!("api.example:443"), &json!("refused"))
    );
    assert_eq!(ask("other", "probe").await, open, "the pause is not over");
    world.advance(5);
    assert_eq!(ask("other", "probe").await, json!([]));
    assert_eq!(ask("one", "probe").await[0]["probing"], true, "another worker probes");
    let failed = ask("other", "probe_failed").await;
    assert_eq!(failed[0]["until"], "2027-01-15T08:00:15Z", "twice as long");
    assert_eq!(ask("other", "probe_failed").await, failed, "the same report again changes nothing");
    assert_eq!(world.post(&format!("/breakers/{}/reset", row["id"]), "").await.status, StatusCode::OK);
    assert_eq!(ask("one", "read").await, json!([]));
    ask("one", "open").await;
    assert_eq!(ask("one", "probe_passed").await, json!([]));
    assert_eq!(ask("other", "read").await, json!([]));
}

#[tokio::test]
async fn a_worker_touches_only_breakers_of_hosts_that_its_own_tenant_calls() {
    let (world, _) = held().await;
    world.store().tenant("other", world.now()).await.unwrap();
    let open = ask(&world, "default", "w", "open").await;
    for step in ["read", "probe_failed", "probe_passed"] {
        assert_eq!(ask(&world, "other", "w", step).await, json!([]), "{step}");
    }
    assert_eq!(ask(&world, "default", "w", "read").await, open);
    let long = format!("{}:443", "x".repeat(300));
    for (hosts, step) in [
        (json!([]), "read"),
        (json!(["fragile/load"]), "probe_passed"),
        (json!(["fragile/load:1"]), "probe_passed"),
        (json!(["api.example"]), "read"),
        (json!(["api.example:70000"]), "open"),
        (json!([long]), "open"),
        (json!(["a.example:1", "b.example:1"]), "open"),
    ] {
        let body = json!({"worker": "w", "step": step, "hosts": hosts});
        let refused = world.post("/execution/breakers", body.to_string()).await;
        assert_eq!(
            (refused.status, &refused.body["error_code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("bad_hosts")),
            "{body}"
        );
    }
    assert_eq!(listed(&world).await.len(), 2, "that of the task is open as before");
}
