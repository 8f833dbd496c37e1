//! Schedules and backfills.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, now, token};

const TIMED: &str = "
name: timed
schedules:
  - {name: berlin, cron: '30 2 * * *', timezone: Europe/Berlin, catchup: latest}
  - {name: often, every: 15m, catchup: all}
  - {name: resting, every: 1h, paused: true}
tasks:
  - {name: a, type: bash, config: {command: 'true'}}
";

async fn timed() -> World {
    let world = World::new().await;
    assert_eq!(world.post("/workflows", TIMED).await.status, StatusCode::CREATED);
    world
}

#[tokio::test]
async fn schedules_are_listed_with_what_is_due_next() {
    let world = timed().await;
    let all = world.get("/schedules").await;
    assert_eq!(all.status, StatusCode::OK, "{}", all.body);
    let names: Vec<&Value> = all.body["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["berlin", "often", "resting"]);
    let berlin = &all.body["items"][0];
    // It is 15 January 2027, 08:00 UTC.
    let first =
        json!({"schedule": "berlin", "at": "2027-01-16T01:30:00Z", "local": "2027-01-16 02:30:00 CET"});
    assert_eq!((&berlin["next"][0], berlin["next"].as_array().unwrap().len()), (&first, 5));
    assert_eq!(
        (&berlin["cron"], &berlin["timezone"], &berlin["paused"]),
        (&json!("30 2 * * *"), &json!("Europe/Berlin"), &json!(false))
    );
    assert_eq!(berlin["drift"], json!({"runs": 0, "p50_ms": null, "p99_ms": null, "max_ms": null}));
    assert_eq!(all.body["items"][2]["paused"], true);
    let page = world.get("/schedules?limit=1").await.body;
    let rest = world.get(&format!("/schedules?cursor={}", page["next_cursor"].as_str().unwrap())).await.body;
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
    let detail = world.get("/workflows/timed").await.body;
    assert_eq!(detail["next"][0]["at"], "2027-01-15T08:15:00Z");
    assert_eq!(world.get("/schedules/nobody").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_next_instants_are_listed_from_any_time_on() {
    let world = timed().await;
    let next = world.get("/schedules/timed/next?name=berlin&from=2027-03-27&count=2").await;
    let at: Vec<&Value> = next.body["items"].as_array().unwrap().iter().map(|item| &item["at"]).collect();
    assert_eq!(at, ["2027-03-27T01:30:00Z", "2027-03-28T01:30:00Z"], "the second one at 03:30 there");
    for wrong in ["?count=0", "?count=1001", "?from=soon", "?what=5"] {
        assert_eq!(
            world.get(&format!("/schedules/timed/next{wrong}")).await.status,
            StatusCode::BAD_REQUEST,
            "{wrong}"
        );
    }
    assert_eq!(world.get("/schedules/timed/next?name=berlni").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_schedule_is_paused_and_resumed() {
    let world = timed().await;
    let paused = world.post("/schedules/timed/pause", r#"{"name": "often", "reason": "holidays"}"#).await;
    assert_eq!(paused.status, StatusCode::OK, "{}", paused.body);
    assert_eq!(
        paused.body["items"][0]["pause"],
        json!({"at": now(), "by": "ada@example.com", "reason": "holidays"})
    );
    assert_eq!(world.get("/schedules/timed").await.body["items"][1]["paused"], true);
    let resumed = world.post("/schedules/timed/resume", r#"{"name": "often", "missed": "all"}"#).await;
    assert_eq!((resumed.status, &resumed.body["items"][0]["paused"]), (StatusCode::OK, &json!(false)));
    let file = world.post("/schedules/timed/resume", r#"{"name": "resting"}"#).await;
    assert_eq!(
        (file.status, &file.body["error_code"]),
        (StatusCode::CONFLICT, &json!("defined_by_the_workflow"))
    );
    assert_eq!(world.post("/schedules/timed/pause", r#"{"name": "x"}"#).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        world.post("/schedules/timed/resume", r#"{"missed": "some"}"#).await.status,
        StatusCode::BAD_REQUEST
    );
}

/// Puts a schedule back to the state in which nothing was decided about it since then.
async fn decide_since(world: &World, name: &str, since: &str) {
    let store = world.runtime.store();
    let all = store.schedules(model::TenantId::DEFAULT, Some("timed"), None, 9).await.unwrap();
    let record = all.into_iter().find(|record| record.schedule.name == name).unwrap();
    let due_at = record.due_at.map(|_| now());
    let behind = store::ScheduleRecord { decided_until: since.parse().unwrap(), due_at, ..record };
    assert!(store.save_schedule(&behind).await.unwrap());
}

#[tokio::test]
async fn what_was_missed_is_shown_before_anyone_decides_about_it() {
    let world = timed().await;
    let missed = async || world.get("/schedules/timed").await.body["items"][1]["missed"].clone();
    assert_eq!(missed().await, Value::Null, "it is up to date");
    world.post("/schedules/timed/pause", r#"{"name": "often"}"#).await;
    decide_since(&world, "often", "2027-01-15T06:50:00Z").await;
    let seen = missed().await;
    assert_eq!(
        (&seen["count"], &seen["more"], &seen["first"], &seen["latest"]),
        (&json!(5), &json!(false), &json!("2027-01-15T07:00:00Z"), &json!("2027-01-15T08:00:00Z"))
    );
    let first =
        json!({"schedule": "often", "at": "2027-01-15T07:00:00Z", "local": "2027-01-15 07:00:00 UTC"});
    assert_eq!((&seen["dates"][0], seen["dates"].as_array().unwrap().len()), (&first, 5));
    decide_since(&world, "often", "2026-01-01T00:00:00Z").await;
    let seen = missed().await;
    assert_eq!((&seen["count"], &seen["more"]), (&json!(1_000), &json!(true)));
    // The choice is kept until the sweep carries it out.
    decide_since(&world, "often", "2027-01-15T06:50:00Z").await;
    let resumed = world.post("/schedules/timed/resume", r#"{"name": "often", "missed": "latest"}"#).await;
    assert_eq!(resumed.status, StatusCode::OK, "{}", resumed.body);
    world.runtime.schedules().fire(now(), 9).await.unwrap();
    let runs = world.get("/runs?workflow=timed").await.body;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    assert_eq!(runs["items"][0]["logical_date"], "2027-01-15T08:00:00Z");
    assert_eq!(missed().await, Value::Null);
}

#[tokio::test]
async fn a_backfill_is_started_once_for_its_key() {
    let world = timed().await;
    let authorization = format!("Bearer {}", token("api", 48 * 3600));
    let send = async |to: &str| {
        let body = json!({"workflow": "timed", "schedule": "berlin", "from": "2026-12-01", "to": to});
        let headers = [("idempotency-key", "december"), ("authorization", &authorization)];
        world.send(Method::POST, "/backfills", &headers, body.to_string()).await
    };
    let first = send("2026-12-31").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    assert!(!first.headers.contains_key("idempotency-replayed"));
    let again = send("2026-12-31").await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let other = send("2026-12-30").await;
    assert_eq!(
        (other.status, &other.body["error_code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("idempotency_key_reused"))
    );
    // The recorded response is gone after a day, and the backfill is still found.
    world.advance(25 * 3600);
    let later = send("2026-12-31").await;
    assert_eq!((later.status, &later.body["id"]), (StatusCode::OK, &first.body["id"]));
    assert_eq!(later.headers["idempotency-replayed"], "true");
    let listed = world.send(Method::GET, "/backfills", &[("authorization", &authorization)], "").await;
    assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_backfill_is_planned_begun_and_steered() {
    let world = timed().await;
    let body = |more: &str| {
        format!(
            r#"{{"workflow": "timed", "schedule": "berlin", "from": "2026-12-01", "to": "2026-12-31"{more}}}"#
        )
    };
    let plan = world.post("/backfills", body(r#", "dry_run": true"#)).await;
    assert_eq!(plan.status, StatusCode::OK, "{}", plan.body);
    assert_eq!(
        (&plan.body["dates"], &plan.body["to_run"], &plan.body["existing"]),
        (&json!(31), &json!(31), &json!(0))
    );
    assert_eq!(plan.body["first_dates"][0], "2026-12-01T01:30:00Z");
    assert_eq!(world.get("/backfills").await.body["items"], json!([]));

    let begun = world.post("/backfills", body(r#", "max_parallel": 3"#)).await;
    assert_eq!(begun.status, StatusCode::CREATED, "{}", begun.body);
    assert_eq!(begun.body["progress"], json!({"running": 3, "waiting": 28}));
    let id = begun.body["id"].as_str().unwrap();
    let runs = world.get("/runs?workflow=timed").await.body;
    let run = &runs["items"][0];
    assert_eq!(
        (&run["trigger"]["kind"], &run["schedule"], &run["labels"]["backfill"]),
        (&json!("backfill"), &json!("berlin"), &json!(id))
    );
    assert_eq!(run["data_interval_end"], run["logical_date"]);
    assert_eq!(world.post(&format!("/backfills/{id}/pause"), "").await.body["state"], "paused");
    assert_eq!(world.post(&format!("/backfills/{id}/resume"), "").await.body["state"], "running");
    let cancelled = world.post(&format!("/backfills/{id}/cancel"), "").await;
    assert_eq!(
        (&cancelled.body["state"], &cancelled.body["progress"]),
        (&json!("cancelled"), &json!({"cancelled": 3, "waiting": 28}))
    );
    assert_eq!(world.post(&format!("/backfills/{id}/pause"), "").await.status, StatusCode::CONFLICT);
    assert_eq!(world.get(&format!("/backfills/{id}")).await.body["ended"], 3);
    let again = world.post("/backfills", body(r#", "dry_run": true"#)).await.body;
    assert_eq!((&again["to_run"], &again["existing"]), (&json!(28), &json!(3)));

    let missing = format!("/backfills/{}", uuid::Uuid::nil());
    assert_eq!(world.get(&missing).await.status, StatusCode::NOT_FOUND);
    let several =
        world.post("/backfills", r#"{"workflow": "timed", "from": "2026-12-01", "to": "2026-12-31"}"#).await;
    assert_eq!(
        (several.status, &several.body["error_code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("bad_backfill"))
    );
    assert!(several.body["message"].as_str().unwrap().contains("name one of `berlin`, `often`, `resting`"));
    let unknown =
        world.post("/backfills", r#"{"workflow": "timd", "from": "2026-12-01", "to": "2026-12-31"}"#).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn drift_is_listed_for_each_schedule() {
    let world = timed().await;
    let drift = world.get("/schedules/timed/drift").await;
    assert_eq!(drift.status, StatusCode::OK, "{}", drift.body);
    let none =
        json!({"schedule": "berlin", "runs": 0, "p50_ms": null, "p99_ms": null, "max_ms": null, "last": []});
    assert_eq!((&drift.body["items"][0], drift.body["items"].as_array().unwrap().len()), (&none, 3));
    assert_eq!(world.get("/schedules/timed/drift?count=0").await.status, StatusCode::BAD_REQUEST);
    // Of three days nobody looked; today's run is on time, a minute late.
    let text = TIMED.replace("name: often, every: 15m", "name: often, cron: '59 7 * * *'");
    assert_eq!(world.post("/workflows", text).await.status, StatusCode::CREATED);
    decide_since(&world, "often", "2027-01-12T12:00:00Z").await;
    world.runtime.schedules().fire(now(), 9).await.unwrap();
    let often = world.get("/schedules/timed/drift?name=often").await.body["items"][0].clone();
    assert_eq!(
        (&often["runs"], &often["p50_ms"], &often["p99_ms"], &often["max_ms"]),
        (&json!(1), &json!(60_000), &json!(60_000), &json!(60_000))
    );
    let last: Vec<(&Value, &Value)> =
        often["last"].as_array().unwrap().iter().map(|start| (&start["date"], &start["missed"])).collect();
    assert_eq!(
        last,
        [
            (&json!("2027-01-15T07:59:00Z"), &json!(false)),
            (&json!("2027-01-14T07:59:00Z"), &json!(true)),
            (&json!("2027-01-13T07:59:00Z"), &json!(true)),
        ]
    );
    assert_eq!(
        (&often["last"][0]["started_at"], &often["last"][0]["late_ms"]),
        (&json!(now()), &json!(60_000))
    );
    let two = world.get("/schedules/timed/drift?name=often&count=2").await.body;
    assert_eq!(two["items"][0]["last"].as_array().unwrap().len(), 2);
    let counted = world.get("/schedules/timed").await.body["items"][1]["drift"].clone();
    assert_eq!(counted["runs"], 1, "{counted}");
    assert_eq!(world.get("/schedules/timed/drift?name=nobody").await.status, StatusCode::NOT_FOUND);
}
