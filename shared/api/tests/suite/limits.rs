//! Limits: who has a slot, who waits, and saying how many there are.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::World;

const CROWD: &str = "
name: crowd
tasks:
  - {name: first, type: noop, pool: dock}
  - {name: second, type: noop, pool: dock}
  - {name: third, type: noop, pool: dock, priority: 5}
";

async fn crowded() -> (World, model::RunId) {
    let world = World::new().await;
    assert_eq!(world.post("/limits/pool/dock", r#"{"slots": 1}"#).await.status, StatusCode::OK);
    let run = world.play(CROWD, json!({})).await;
    (world, run)
}

#[tokio::test]
async fn a_task_that_waits_for_a_slot_says_which_and_who_comes_before() {
    let (world, run) = crowded().await;
    let explained = world.get(&format!("/runs/{run}/explain?task=second")).await.body;
    assert_eq!(
        explained["tasks"][0]["because"],
        "It has been ready since 2027-01-15 08:00:00Z (now) and waits for a slot: the pool `dock` has 1 of 1 taken, \
         and 1 other comes before it. `ebb limits show pool dock` lists the tasks that have them."
    );
    let details = &explained["tasks"][0]["details"];
    assert_eq!(
        (&details["limit"], &details["name"], &details["ahead"]),
        (&json!("pool"), &json!("dock"), &json!(1))
    );
}

#[tokio::test]
async fn a_limit_names_who_has_its_slots_and_who_comes_next() {
    let (world, run) = crowded().await;
    let pool = world.get("/limits/pool/dock").await.body;
    let names = |list: &serde_json::Value| {
        let of = |task: &serde_json::Value| {
            assert_eq!((&task["run"], &task["workflow"]), (&json!(run), &json!("crowd")));
            task["task"].as_str().unwrap().to_owned()
        };
        list.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!((pool["used"].as_u64(), pool["waiting"].as_u64()), (Some(1), Some(2)));
    assert_eq!(
        (names(&pool["holders"]), names(&pool["next"])),
        (vec!["third".into()], vec!["first".into(), "second".into()])
    );
    let own = world.get("/limits/tenant/own").await.body;
    assert_eq!((names(&own["holders"]), names(&own["next"])), (vec!["third".into()], vec![]));
    assert_eq!(world.get("/limits/pool/quay").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn of_tasks_that_come_together_the_one_of_higher_priority_begins() {
    let (world, run) = crowded().await;
    let tasks = world.get(&format!("/runs/{run}/tasks")).await.body;
    let states: Vec<&str> =
        tasks["items"].as_array().unwrap().iter().map(|task| task["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["queued", "queued", "dispatched"]);
}

#[tokio::test]
async fn more_slots_let_those_begin_who_wait() {
    let (world, run) = crowded().await;
    let pool = world.post("/limits/pool/dock", r#"{"slots": null}"#).await.body;
    assert_eq!((&pool["kind"], &pool["used"], &pool["waiting"]), (&json!("pool"), &json!(3), &json!(0)));
    let counts = world.get(&format!("/runs/{run}")).await.body["counts"].clone();
    assert_eq!(counts, json!({"dispatched": 3}));
}

#[tokio::test]
async fn limits_are_listed_with_who_waits() {
    let (world, _) = crowded().await;
    let limits = world.get("/limits").await.body;
    let seen: Vec<_> = limits["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| {
            (limit["kind"].as_str().unwrap(), limit["name"].as_str().unwrap(), limit["waiting"].clone())
        })
        .collect();
    let expected = [("pool", "dock", json!(2)), ("queue", "light", json!(0)), ("tenant", "own", json!(0))];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn limits_and_queues_come_in_pages() {
    let world = World::new().await;
    for number in 0..3 {
        for kind in ["pool", "queue"] {
            let set = world.post(&format!("/limits/{kind}/x{number}"), r#"{"slots": 7}"#).await;
            assert_eq!((set.status, &set.body["name"]), (StatusCode::OK, &json!(format!("x{number}"))));
        }
    }
    let all = async |path: &str| {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("{path}limit=2{cursor}")).await.body;
            let items = page["items"].as_array().unwrap();
            assert!((1..=2).contains(&items.len()), "{page}");
            let kind = |item: &Value| item["kind"].as_str().unwrap_or("queue").to_owned();
            names.extend(items.iter().map(|item| kind(item) + "/" + item["name"].as_str().unwrap()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return names,
            }
        }
    };
    let queues = ["queue/x0", "queue/x1", "queue/x2"];
    assert_eq!(all("/queues?").await, queues);
    assert_eq!(all("/limits?kind=queue&").await, queues);
    assert_eq!(all("/limits?").await, [["pool/x0", "pool/x1", "pool/x2"], queues].concat());
    let refused = world.get("/limits?kind=room").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    for path in ["/limits?limit=101", "/queues?limit=0", "/queues?cursor=x"] {
        assert_eq!(world.get(path).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
}

#[tokio::test]
async fn what_cannot_be_set_is_refused_with_what_can() {
    let world = World::new().await;
    let refused = |path: &'static str, body: &'static str| {
        let world = &world;
        async move {
            let answer = world.post(path, body).await;
            (answer.status, answer.body["message"].as_str().unwrap().to_owned())
        }
    };
    let (status, message) = refused("/limits/workflow/x", r#"{"slots": 1}"#).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(message.contains("max_active_tasks"), "{message}");
    let (status, message) = refused("/limits/room/x", r#"{"slots": 1}"#).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(message.contains("pool, queue, tenant or workflow"), "{message}");
    let (status, _) = refused("/limits/pool/x", r#"{"slots": 1000001}"#).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, _) = refused("/limits/pool/x", r#"{"slots": -1}"#).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
