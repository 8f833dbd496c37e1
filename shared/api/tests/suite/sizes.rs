//! How much a response has, whatever is listed.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

const LARGE: &str = "
name: large
inputs: {text: {type: string, default: ''}}
tasks:
  - {name: a, type: echo, config: {value: 1}}
  - {name: b, type: echo, config: {value: 1}}
";

/// No page of a list is longer, in bytes.
const MAX_PAGE: usize = 1024 * 1024;

/// The pages of a list, with the size of each.
async fn pages(world: &World, path: &str) -> Vec<(Value, usize)> {
    let mut pages: Vec<(Value, usize)> = Vec::new();
    loop {
        let cursor = pages.last().and_then(|(page, _)| page["next_cursor"].as_str().map(str::to_owned));
        if !pages.is_empty() && cursor.is_none() {
            return pages;
        }
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let answer = world.get(&format!("{path}?limit=100{cursor}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let size = answer.body.to_string().len();
        assert!(size <= MAX_PAGE, "{path}: {size} bytes");
        pages.push((answer.body, size));
    }
}

fn items(pages: &[(Value, usize)]) -> Vec<&Value> {
    pages.iter().flat_map(|(page, _)| page["items"].as_array().unwrap()).collect()
}

#[tokio::test]
async fn a_list_of_runs_shows_long_inputs_in_part_and_leads_to_all_of_them() {
    let world = World::new().await;
    let text = "x\"é".repeat(200_000);
    let long = world.play(LARGE, json!({"text": text})).await;
    let short = world.start_of("large", json!({"text": "y".repeat(4_000)})).await;
    let pages = pages(&world, "/runs").await;
    let items = items(&pages);
    let find = |id: &str| items.iter().find(|run| run["id"] == id).unwrap();
    let listed = find(&short.to_string());
    assert_eq!(listed["inputs"]["text"].as_str().map(str::len), Some(4_000), "short ones are complete");
    assert!(listed.get("inputs_preview").is_none());
    let listed = find(&long.to_string());
    assert_eq!(listed["inputs"], json!({}));
    let preview = &listed["inputs_preview"];
    let whole = json!({"text": text}).to_string();
    assert_eq!(preview["bytes"], whole.len());
    assert!(whole.starts_with(preview["text"].as_str().unwrap()));
    let link = preview["link"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(world.get(link).await.body["inputs"]["text"], text);
}

#[tokio::test]
async fn a_list_of_tasks_shows_long_outputs_in_part_and_leads_to_all_of_them() {
    let world = World::new().await;
    let run = world.play(LARGE, json!({})).await;
    let text = "z".repeat(900_000);
    world.report(run, 0, Ok(json!(text))).await;
    world.report(run, 1, Ok(json!("short"))).await;
    let pages = pages(&world, &format!("/runs/{run}/tasks")).await;
    let items = items(&pages);
    assert_eq!((&items[0]["output"], &items[1]["output"]), (&Value::Null, &json!("short")));
    let preview = &items[0]["output_preview"];
    assert_eq!(preview["bytes"], text.len() + 2);
    let link = preview["link"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(world.get(link).await.body["output"], text);
    assert_eq!(
        world.get(&format!("/runs/{run}/tasks/a")).await.body["output"],
        text,
        "alone, it is complete"
    );
}

#[tokio::test]
async fn a_page_of_large_items_ends_early_and_leads_on() {
    let world = World::new().await;
    world.post("/workflows", LARGE).await;
    let labels = json!({"labels": {"note": "l".repeat(300_000)}}).to_string();
    for _ in 0..5 {
        let started = world.post("/workflows/large/runs", labels.clone()).await;
        assert_eq!(started.status, StatusCode::CREATED, "{}", started.body);
    }
    // Each version is about 250 KB of YAML and as much of JSON.
    let large = |name: &str, letter: &str| {
        let text = LARGE.replace("name: large", &format!("name: {name}"));
        text.replace("config: {value: 1}", &format!("config: {{value: {}}}", letter.repeat(125_000)))
    };
    for letter in ["c", "d", "e", "f", "g"] {
        let answer = world.post("/workflows", large("large", letter)).await;
        assert!(answer.status.is_success(), "{}", answer.body);
    }
    for number in 0..5 {
        let answer = world.post("/workflows", large(&format!("large-{number}"), "h")).await;
        assert!(answer.status.is_success(), "{}", answer.body);
    }
    for (path, count) in [("/runs", 5), ("/workflows/large/versions", 6), ("/workflows", 6)] {
        let pages = pages(&world, path).await;
        assert_eq!(items(&pages).len(), count, "{path}: every item is on one of the pages");
    }
}

#[tokio::test]
async fn a_log_of_long_lines_is_read_in_parts() {
    let world = World::new().await;
    let remote = "{name: far, tasks: [{name: x, type: echo, queue: remote, config: {value: 1}}]}";
    let run = world.play(remote, json!({})).await;
    world.post("/execution/lease", r#"{"worker": "w", "queue": "remote"}"#).await;
    let line =
        json!({"at": "2026-01-01T00:00:00Z", "stream": "stdout", "level": "info", "line": "x".repeat(9_000)});
    for first in [0, 90] {
        let body = json!({"worker": "w", "first": first, "lines": vec![line.clone(); 90]}).to_string();
        let answer = world.send(Method::POST, &format!("/execution/{run}/x/1/log"), &[], body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
    let pages = pages(&world, &format!("/runs/{run}/tasks/x/logs")).await;
    assert_eq!(items(&pages).len(), 180);
}

#[tokio::test]
async fn a_name_of_a_megabyte_is_neither_compared_with_others_nor_repeated() {
    let world = World::with_hello().await;
    let long = "x".repeat(1_000_000);
    let workflow =
        json!({"workflow": long, "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}).to_string();
    let schedule = json!({ "name": long }).to_string();
    for (path, body) in [("/backfills", workflow), ("/schedules/hello/pause", schedule)] {
        let answer = world.post(path, body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        let length = answer.body["message"].as_str().unwrap().chars().count();
        assert!(length <= 10_001, "{path}: {length} characters");
    }
}

const RETRIED: &str = "
name: far
tasks:
  - {name: x, type: echo, queue: remote, config: {value: 1}, retry_policy: {max_retries: 50, initial_delay_seconds: 1, jitter: 0}}
";

/// Fails this many attempts, as their worker reports it.
async fn fail(world: &World, run: model::RunId, times: u32, body: &Value) {
    for attempt in 1..=times {
        let leased = world.post("/execution/lease", r#"{"worker": "w", "queue": "remote"}"#).await;
        assert_eq!(leased.body["items"][0]["attempt"], attempt, "{}", leased.body);
        let answer = world.post(&format!("/execution/{run}/x/{attempt}/fail"), body.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        world.post(&format!("/runs/{run}/tasks/x/wake"), "").await;
    }
}

#[tokio::test]
async fn attempts_are_listed_in_pages_and_the_detail_of_a_failure_is_limited() {
    let world = World::new().await;
    let run = world.play(RETRIED, json!({})).await;
    let detail = json!({"trace": "é\"".repeat(200_000)});
    fail(&world, run, 25, &json!({"worker": "w", "message": "no", "detail": detail})).await;
    let path = format!("/runs/{run}/tasks/x/attempts");
    let all = pages(&world, &path).await;
    let numbers: Vec<u64> = items(&all).iter().map(|item| item["attempt"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=26).collect::<Vec<_>>(), "each is on one of the pages, the current one last");
    assert!(all.len() > 1, "a page ends early");
    let shown = items(&all)[0]["error"]["detail"].as_str().unwrap().to_owned();
    assert!(shown.len() <= 64 * 1024 && detail.to_string().starts_with(shown.trim_end_matches('…')));
    let page = world.get(&format!("{path}?limit=2")).await.body;
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let next = page["next_cursor"].as_str().unwrap();
    let page = world.get(&format!("{path}?limit=2&cursor={next}")).await.body;
    assert_eq!((&page["items"][0]["attempt"], &page["items"][1]["attempt"]), (&json!(3), &json!(4)));
}

#[tokio::test]
async fn an_outline_of_tasks_has_the_beginnings_of_long_messages() {
    let world = World::new().await;
    let cut = format!("{}\\\\", "x".repeat(1_998));
    let messages = ["\\".repeat(9_000), "\u{1}".repeat(9_000), cut, "é\0".repeat(4_000), "é".repeat(1_500)];
    for (number, message) in messages.into_iter().enumerate() {
        let text = RETRIED.replace("max_retries: 50", "max_retries: 0");
        let run = world.play(&text.replace("far", &format!("far-{number}")), json!({})).await;
        let body = json!({"worker": "w", "message": message, "detail": {"a": 1}});
        fail(&world, run, 1, &body).await;
        let answer = world.get(&format!("/runs/{run}/explain")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert!(answer.body.to_string().len() < 120_000, "{number}");
        let task = world.get(&format!("/runs/{run}/tasks/x")).await.body;
        assert_eq!(task["error"]["detail"], json!({"a": 1}), "the task has all of it");
    }
}

#[tokio::test]
async fn the_log_of_a_remote_worker_is_cut_where_it_becomes_too_long() {
    let world = World::new().await;
    let run = world.play(RETRIED, json!({})).await;
    world.post("/execution/lease", r#"{"worker": "w", "queue": "remote"}"#).await;
    let line =
        json!({"at": "2026-01-01T00:00:00Z", "stream": "stdout", "level": "info", "line": "x".repeat(9_999)});
    let lines = vec![line; 100];
    for first in (0..15).map(|number| number * 100) {
        let body = json!({"worker": "w", "first": first, "lines": lines}).to_string();
        let answer = world.send(Method::POST, &format!("/execution/{run}/x/1/log"), &[], body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
    let pages = pages(&world, &format!("/runs/{run}/tasks/x/logs")).await;
    let shown = items(&pages);
    assert_eq!(shown.len(), 1_049, "10 MiB and a line");
    assert_eq!(
        shown[1_048]["line"],
        "the log was cut here: an attempt may write at most 10 MiB and 100000 lines"
    );
}
