use axum::http::StatusCode;
use model::RunId;
use serde_json::{Value, json};

use crate::world::{HELLO, World};

/// `hello` with another greeting, one task less and one task more.
fn polite_hello() -> String {
    HELLO
        .replace("Greets.", "Greets politely.")
        .replace("hello {{ inputs.who }}", "good day, {{ inputs.who }}")
        .replace("times: {type: integer, default: 1}", "bow: {type: boolean, default: true}")
        .replace("name: leave", "name: bow")
}

/// With two versions of `hello`, the polite one active.
async fn world() -> World {
    let world = World::with_hello().await;
    assert_eq!(world.post("/workflows", polite_hello()).await.status, StatusCode::CREATED);
    world
}

async fn active_versions(world: &World) -> Vec<i64> {
    let listed = world.get("/workflows/hello/versions").await.body;
    let active = listed["items"].as_array().unwrap().iter().filter(|version| version["active"] == true);
    active.map(|version| version["number"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn versions_are_listed_newest_first_with_the_active_one_marked() {
    let answer = world().await.get("/workflows/hello/versions").await;
    assert_eq!(answer.status, StatusCode::OK);
    insta::assert_json_snapshot!(answer.body, { ".items[].hash" => "[hash]" });
}

#[tokio::test]
async fn versions_are_listed_in_pages() {
    let world = world().await;
    let first = world.get("/workflows/hello/versions?limit=1").await.body;
    assert_eq!(first["items"][0]["number"], 2);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/workflows/hello/versions?limit=1&cursor={cursor}")).await.body;
    assert_eq!((&second["items"][0]["number"], &second["next_cursor"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn a_version_is_shown_with_definition_and_source() {
    let answer = world().await.get("/workflows/hello/versions/1").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body["source"], HELLO);
    insta::assert_json_snapshot!(answer.body, {
        ".hash" => "[hash]", ".definition.tasks" => "[tasks]", ".source" => "[source]",
    });
}

#[tokio::test]
async fn two_versions_are_compared_task_by_task_and_edge_by_edge() {
    let world = world().await;
    let answer = world.get("/workflows/hello/versions/1/compare/2").await;
    assert_eq!(answer.status, StatusCode::OK);
    insta::assert_json_snapshot!(answer.body);
    let back = world.get("/workflows/hello/versions/2/compare/1").await.body;
    assert_eq!(back["tasks"]["added"], answer.body["tasks"]["removed"]);
}

#[tokio::test]
async fn a_version_compared_with_itself_has_no_differences() {
    let same = world().await.get("/workflows/hello/versions/2/compare/2").await.body;
    assert_eq!((&same["tasks"]["changed"], &same["edges"]["added"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn rolling_back_makes_new_runs_take_the_older_version() {
    let world = world().await;
    let back = world.post("/workflows/hello/versions/1/activate", "").await;
    assert_eq!(back.status, StatusCode::OK);
    assert_eq!(back.body, json!({"name": "hello", "version": 1, "archived": false, "changed": true}));
    assert_eq!(active_versions(&world).await, [1]);
    assert_eq!(world.post("/workflows/hello/runs", "").await.body["version"], 1);
    let again = world.post("/workflows/hello/versions/1/activate", "").await;
    assert_eq!((again.status, &again.body["changed"]), (StatusCode::OK, &json!(false)));
}

#[tokio::test]
async fn an_archived_workflow_starts_no_run_until_a_version_is_activated() {
    let world = world().await;
    let run = world.start().await;
    let archived = world.post("/workflows/hello/archive", "").await;
    assert_eq!(archived.status, StatusCode::OK);
    assert_eq!(archived.body, json!({"name": "hello", "version": 2, "archived": true, "changed": true}));
    assert_eq!(world.post("/workflows/hello/archive", "").await.body["changed"], false);

    assert_eq!(world.post("/workflows/hello/runs", "").await.body["error_code"], "archived");
    assert_eq!(active_versions(&world).await, [0; 0]);
    assert_eq!(world.get(&format!("/runs/{run}")).await.body["state"], "running", "its history stays");

    world.post("/workflows/hello/versions/2/activate", "").await;
    assert_eq!(world.post("/workflows/hello/runs", "").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_version_that_does_not_exist_is_refused_with_those_that_do() {
    let world = world().await;
    for path in ["/workflows/hello/versions/7", "/workflows/hello/versions/1/compare/7"] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.body["message"], "workflow `hello` has no version 7; it has versions 1 to 2");
    }
    let answer = world.post("/workflows/hello/versions/7/activate", "").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(active_versions(&world).await, [2]);
    let word = world.get("/workflows/hello/versions/newest").await;
    assert_eq!(word.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_workflow_that_does_not_exist_is_refused_with_the_one_that_may_be_meant() {
    let world = world().await;
    for answer in [
        world.get("/workflows/helo/versions").await,
        world.get("/workflows/helo/versions/1").await,
        world.post("/workflows/helo/versions/1/activate", "").await,
        world.post("/workflows/helo/archive", "").await,
    ] {
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.body["message"], "there is no workflow `helo` (did you mean `hello`?)");
    }
}

const CHAIN: &str = "
name: chain
tasks:
  - {name: first, type: noop}
  - {name: second, type: noop, depends_on: [first]}
  - {name: third, type: noop, depends_on: [second]}
";

const OTHER_CHAIN: &str = "
name: chain
tasks:
  - {name: new, type: noop}
  - {name: third, type: noop, depends_on: [new]}
";

#[tokio::test]
async fn a_version_change_in_the_middle_of_a_run_changes_nothing_for_that_run() {
    let world = World::new().await;
    world.post("/workflows", CHAIN).await;
    let started = world.post("/workflows/chain/runs", "").await.body;
    let run: RunId = started["id"].as_str().unwrap().parse().unwrap();
    world.report(run, 0, Ok(json!(null))).await;
    assert_eq!(world.post("/workflows", OTHER_CHAIN).await.body["registered"][0]["version"], 2);
    world.report(run, 1, Ok(json!(null))).await;
    world.post("/workflows/chain/archive", "").await;
    world.report(run, 2, Ok(json!(null))).await;

    let ended = world.get(&format!("/runs/{run}")).await.body;
    assert_eq!((&ended["state"], &ended["version"]), (&json!("succeeded"), &json!(1)));
    let tasks = world.get(&format!("/runs/{run}/tasks")).await.body;
    let names: Vec<&Value> = tasks["items"].as_array().unwrap().iter().map(|task| &task["name"]).collect();
    assert_eq!(names, ["first", "second", "third"]);
}
