//! Custom task types over the API: registered with their workflows, listed, leased, and their outputs checked.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::World;

const TYPE: &str = "\
name: raster.validate
description: Checks a raster.
icon: R
queue: remote
config:
  properties: {source: {type: string, pattern: \"^gs://\"}}
  required: [source]
output:
  type: object
  properties: {width: {type: integer}}
  required: [width]
";

fn workflow(name: &str) -> String {
    format!(
        "name: {name}
inputs: {{source: {{type: string, default: 'gs://a'}}}}
tasks:
  - name: check
    type: raster.validate
    config: {{source: '{{{{ inputs.source }}}}'}}
    retry_policy: {{max_retries: 3}}
"
    )
}

async fn register(world: &World, name: &str, declared: &str) -> Value {
    let body = json!({"files": [
        {"path": format!("graphs/{name}.yaml"), "text": workflow(name)},
        {"path": "types/raster.validate.yaml", "kind": "type", "text": declared},
    ]});
    let answer = world.post("/workflows", body.to_string()).await;
    assert!(answer.status.is_success(), "{}", answer.body);
    answer.body["registered"][0].clone()
}

async fn start(world: &World, inputs: Value) -> String {
    let answer = world.post("/workflows/a/runs", json!({"inputs": inputs}).to_string()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    answer.body["id"].as_str().unwrap().to_owned()
}

async fn lease(world: &World) -> Value {
    let answer = world.post("/execution/lease", r#"{"worker": "w", "queue": "remote", "limit": 5}"#).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer.body["items"].clone()
}

async fn task(world: &World, run: &str) -> Value {
    world.get(&format!("/runs/{run}/tasks/check")).await.body
}

async fn custom(world: &World) -> Vec<Value> {
    let listed = world.get("/task-types").await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.body);
    listed.body["items"].as_array().unwrap().iter().filter(|task| task["custom"] == true).cloned().collect()
}

#[tokio::test]
async fn a_changed_type_makes_a_new_version() {
    let world = World::new().await;
    assert_eq!(register(&world, "a", TYPE).await["version"], 1);
    assert_eq!(register(&world, "a", TYPE).await["new"], false);
    assert_eq!(register(&world, "a", &TYPE.replace("width", "height")).await["version"], 2);
    let alone = world.post("/workflows", workflow("b")).await;
    assert_eq!(alone.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(alone.body["details"][0]["line"], 5, "{}", alone.body);
}

#[tokio::test]
async fn a_catalogue_that_is_not_complete_says_so() {
    let world = World::new().await;
    let large = TYPE.replace("Checks a raster.", &"x".repeat(100_000));
    for name in ["a", "b", "c", "d"] {
        register(&world, name, &large).await;
    }
    assert_eq!(world.get("/task-types").await.body["truncated"], false);
    for name in ["e", "f", "g", "h"] {
        register(&world, name, &large).await;
    }
    let listed = world.get("/task-types").await.body;
    assert_eq!(listed["truncated"], true);
    let raster = listed["items"].as_array().unwrap().iter().find(|task| task["name"] == "raster.validate");
    assert!(
        raster.unwrap()["workflows"].as_array().unwrap().len() < 8,
        "the workflows of older versions are left out"
    );
}

#[tokio::test]
async fn the_catalogue_lists_built_in_types_and_those_that_workflows_use() {
    let world = World::new().await;
    assert_eq!(custom(&world).await, [Value::Null; 0]);
    let built_in = world.get("/task-types").await.body["items"].clone();
    let http = built_in.as_array().unwrap().iter().find(|task| task["name"] == "http").unwrap();
    assert_eq!(http["config"]["required"], json!(["url"]));
    register(&world, "b", TYPE).await;
    register(&world, "a", TYPE).await;
    let [listed] = &custom(&world).await[..] else { panic!("there is one custom type") };
    let shown = ["name", "icon", "queue", "description"].map(|field| listed[field].as_str().unwrap());
    assert_eq!(shown, ["raster.validate", "R", "remote", "Checks a raster."]);
    assert_eq!(listed["output"]["required"], json!(["width"]));
    let used = |name: &str, outdated: bool| json!({"workflow": name, "outdated": outdated});
    assert_eq!(listed["workflows"], json!([used("a", false), used("b", false)]));
    register(&world, "a", &TYPE.replace("width", "height")).await;
    let [listed] = &custom(&world).await[..] else { panic!("there is one custom type") };
    assert_eq!(listed["output"]["required"], json!(["height"]), "the newest is shown");
    assert_eq!(listed["workflows"], json!([used("a", false), used("b", true)]));
    for name in ["a", "b"] {
        world.post(&format!("/workflows/{name}/archive"), "").await;
    }
    assert_eq!(custom(&world).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_worker_is_given_the_type_and_its_output_counts_if_it_fits() {
    let world = World::new().await;
    register(&world, "a", TYPE).await;
    let run = start(&world, json!({})).await;
    let items = lease(&world).await;
    assert_eq!(
        (&items[0]["type"], &items[0]["config"]),
        (&json!("raster.validate"), &json!({"source": "gs://a"}))
    );
    let done = json!({"worker": "w", "output": {"width": 5}}).to_string();
    assert_eq!(world.post(&format!("/execution/{run}/check/1/complete"), done).await.status, StatusCode::OK);
    let task = task(&world, &run).await;
    assert_eq!((&task["state"], &task["type"]), (&json!("succeeded"), &json!("raster.validate")));
}

#[tokio::test]
async fn an_output_that_does_not_fit_fails_the_attempt_for_good() {
    let world = World::new().await;
    register(&world, "a", TYPE).await;
    let run = start(&world, json!({})).await;
    lease(&world).await;
    let done = json!({"worker": "w", "output": {"width": "wide"}}).to_string();
    world.post(&format!("/execution/{run}/check/1/complete"), done).await;
    let task = task(&world, &run).await;
    assert_eq!((&task["state"], &task["attempt"]), (&json!("failed"), &json!(1)), "no retry is of use");
    assert_eq!(task["error"]["class"], "permanent");
    assert_eq!(
        task["error"]["message"],
        "the output does not fit the task type `raster.validate`: width: the value is not of type \"integer\""
    );
    assert_eq!(task["output"], Value::Null, "nobody downstream sees it");
}

#[tokio::test]
async fn settings_that_do_not_fit_once_rendered_reach_no_worker() {
    let world = World::new().await;
    register(&world, "a", TYPE).await;
    let run = start(&world, json!({"source": "/etc/passwd"})).await;
    assert_eq!(lease(&world).await, json!([]));
    let task = task(&world, &run).await;
    assert_eq!((&task["state"], &task["error"]["class"]), (&json!("failed"), &json!("permanent")));
    let message = task["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the config does not fit the task type `raster.validate`: source: "),
        "{message}"
    );
}
