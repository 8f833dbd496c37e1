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
