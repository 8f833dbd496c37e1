use axum::http::{Method, StatusCode};
use model::InstalledQueue;
use serde_json::json;

use crate::world::{HELLO, World};

#[tokio::test]
async fn a_workflow_is_registered_once_per_content() {
    let world = World::new().await;
    let first = world.post("/workflows", HELLO).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let registered = |new: bool, changed: bool| {
        let hello = json!({"name": "hello", "version": 1, "new": new, "changed": changed});
        json!({ "registered": [hello] })
    };
    assert_eq!(first.body, registered(true, true));
    let again = world.post("/workflows", HELLO).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.body, registered(false, false));
    let other = world.post("/workflows", HELLO.replace("Greets.", "Greets politely.")).await;
    assert_eq!(other.body["registered"][0]["version"], 2);
    assert_eq!(world.post("/workflows", HELLO).await.body, registered(false, true), "it is active again");
}

#[tokio::test]
async fn json_is_as_good_as_yaml() {
    let world = World::new().await;
    let body = json!({"name": "one", "tasks": [{"name": "a", "type": "noop"}]}).to_string();
    let headers = [("content-type", "application/json")];
    let answer = world.send(Method::POST, "/workflows", &headers, body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
}

#[tokio::test]
async fn files_are_registered_together_with_the_tasks_that_they_reuse() {
    let body = json!({"files": [
        {"path": "graphs/two.yaml", "text": "name: two\ntasks:\n  - task: shout\n"},
        {"path": "tasks/shout.yaml", "kind": "task", "text": "name: shout\ntype: echo\nconfig: {value: hey}\n"},
    ]});
    let answer = World::new().await.post("/workflows", body.to_string()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    assert_eq!(answer.body["registered"][0]["name"], "two");
}

#[tokio::test]
async fn one_bad_file_and_nothing_is_registered() {
    let world = World::new().await;
    let bad = "name: bad\ntasks:\n  - {name: a, type: nop}\n  - {name: b, type: noop, depends_on: [c]}\n";
    let body = json!({"files": [
        {"path": "graphs/hello.yaml", "text": HELLO},
        {"path": "graphs/bad.yaml", "text": bad},
    ]});
    let answer = world.post("/workflows", body.to_string()).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.body["error_code"], "invalid_definition");
    let slots: Vec<_> =
        answer.body["details"].as_array().unwrap().iter().map(|it| (&it["file"], &it["line"])).collect();
    assert_eq!(slots, [(&json!("graphs/bad.yaml"), &json!(3)), (&json!("graphs/bad.yaml"), &json!(4))]);
    assert_eq!(world.get("/workflows").await.body["items"], json!([]));
}

#[tokio::test]
async fn validating_registers_nothing() {
    let world = World::new().await;
    let answer = world.post("/workflows/validate", HELLO).await;
    assert_eq!((answer.status, &answer.body["valid"]), (StatusCode::OK, &json!(true)));
    assert_eq!(answer.body["workflows"][0]["name"], "hello");
    let answer = world.post("/workflows/validate", "name: [").await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.get("/workflows").await.body["items"], json!([]));
}

#[tokio::test]
async fn workflows_are_listed_by_name_in_pages() {
    let world = World::new().await;
    for name in ["b", "a", "c"] {
        world.post("/workflows", format!("name: {name}\ntasks: [{{name: x, type: noop}}]")).await;
    }
    let first = world.get("/workflows?limit=2").await.body;
    assert_eq!((&first["items"][0]["name"], &first["items"][1]["name"]), (&json!("a"), &json!("b")));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/workflows?limit=2&cursor={cursor}")).await.body;
    assert_eq!((&second["items"][0]["name"], &second["next_cursor"]), (&json!("c"), &json!(null)));
}

#[tokio::test]
async fn a_workflow_is_shown_with_definition_source_and_recent_runs() {
    let world = World::with_hello().await;
    world.start().await;
    let answer = world.get("/workflows/hello").await;
    assert_eq!(answer.status, StatusCode::OK);
    insta::assert_json_snapshot!(answer.body, {
        ".definition" => "[definition]", ".hash" => "[hash]", ".source" => "[source]", ".recent_runs[]" => "[run]",
    });
}

#[tokio::test]
async fn a_name_that_nearly_exists_is_suggested() {
    let world = World::with_hello().await;
    let answer = world.get("/workflows/helo").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.body["message"], "there is no workflow `helo` (did you mean `hello`?)");
}

#[tokio::test]
async fn a_definition_that_the_caller_has_is_not_sent_again() {
    let world = World::with_hello().await;
    for path in ["/workflows/hello", "/workflows/hello/versions/1"] {
        let first = world.get(path).await;
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let again = world.request(Method::GET, path, &[("if-none-match", &tag)], "").await;
        assert_eq!(
            (again.status(), again.headers()["etag"].to_str().unwrap()),
            (StatusCode::NOT_MODIFIED, &*tag)
        );
        let other = world.request(Method::GET, path, &[("if-none-match", "\"other\"")], "").await;
        assert_eq!(other.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_definition_that_changed_since_it_was_read_is_not_overwritten() {
    let world = World::with_hello().await;
    let tag = world.get("/workflows/hello").await.headers["etag"].to_str().unwrap().to_owned();
    let changed = HELLO.replace("Greets.", "Greets again.");
    let register = async |tag: &str, text: &str| {
        world.send(Method::POST, "/workflows", &[("if-match", tag)], text.to_owned()).await
    };
    assert_eq!(register(&tag, &changed).await.status, StatusCode::CREATED);
    let refused = register(&tag, &HELLO.replace("Greets.", "Says hello.")).await;
    assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(refused.body["error_code"], "definition_changed");
    assert_eq!(register("*", HELLO).await.status, StatusCode::OK);
    let unknown = HELLO.replace("name: hello", "name: unknown");
    assert_eq!(register("*", &unknown).await.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn a_timeout_that_the_queue_cannot_honour_is_rejected() {
    let world = World::with_queues(&[
        ("gpu", InstalledQueue::Pool),
        ("heavy", InstalledQueue::Service(Some(585))),
        ("light", InstalledQueue::Service(Some(7_200))),
        ("own", InstalledQueue::Service(None)),
    ])
    .await;
    let workflow = |task: &str| format!("{{name: long, tasks: [{{name: load, {task}}}]}}");
    let config = "type: bash, config: {command: 'true'}";
    let child = format!("{{{config}, queue: heavy, timeout_seconds: 586}}");
    for (task, is_accepted) in [
        (format!("{config}, queue: heavy, timeout_seconds: 585"), true),
        (format!("{config}, queue: heavy, timeout_seconds: 586"), false),
        (format!("{config}, queue: heavy"), true),
        (format!("{config}, queue: heavy, timeout_seconds: 3600"), false),
        (format!("{config}, queue: gpu, timeout_seconds: 7200"), true),
        (format!("{config}, queue: own, timeout_seconds: 7200"), true),
        (format!("{config}, queue: light, timeout_seconds: 7200"), true),
        (format!("type: fan_out, for_each: range(2), task: {child}"), false),
    ] {
        let answer = world.post("/workflows", workflow(&task)).await;
        assert_eq!(answer.status.is_success(), is_accepted, "{task}: {}", answer.body);
        if !is_accepted {
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{task}: {}", answer.body);
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains("at most 585") && message.contains("`pool`"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_queue_is_one_of_the_installation_or_declared_beside_its_workflows() {
    let world =
        World::with_queues(&[("gpu", InstalledQueue::Pool), ("light", InstalledQueue::Service(Some(585)))])
            .await;
    let workflow = |queue: &str| format!("name: a\ntasks: [{{name: load, type: noop, queue: {queue}}}]\n");
    let post = async |queue: &str, declared: Option<&str>| {
        let mut files = vec![json!({"path": "graphs/a.yaml", "text": workflow(queue)})];
        let text = declared.map(|kind| format!("name: {queue}\nkind: {kind}\n"));
        files.extend(
            text.map(|text| json!({"path": format!("queues/{queue}.yaml"), "kind": "queue", "text": text})),
        );
        let answer = world.post("/workflows", json!({"files": files}).to_string()).await;
        if answer.status.is_success() { String::new() } else { answer.body.to_string() }
    };
    for (queue, declared, expected) in [
        ("light", None, ""),
        ("gpu", None, ""),
        ("gpu", Some("pool"), ""),
        ("tiles", Some("pool"), ""),
        ("gqu", None, "did you mean `gpu`?"),
        ("heavy", None, "use `gpu` or `light`, or declare it in queues/heavy.yaml"),
        ("gpu", Some("service"), "the installation's queue `gpu` is of the kind `pool`"),
        ("heavy", Some("service"), "no service of the installation executes the tasks of the queue `heavy`"),
        ("light", Some("pool"), "the installation's queue `light` is of the kind `service`"),
    ] {
        let message = post(queue, declared).await;
        assert_eq!(message.is_empty(), expected.is_empty(), "{queue}, {declared:?}: {message}");
        assert!(message.contains(expected), "{queue}, {declared:?}: {message}");
    }
    let lease = async |queue: &str| {
        let body = json!({"worker": "w", "queue": queue}).to_string();
        world.post("/execution/lease", body).await.status
    };
    assert_eq!(lease("light").await, StatusCode::UNPROCESSABLE_ENTITY, "its tasks are pushed");
    for queue in ["gpu", "tiles"] {
        assert_eq!(lease(queue).await, StatusCode::OK, "{queue}");
    }
}

#[tokio::test]
async fn of_many_problems_the_first_are_shown_and_all_are_counted() {
    let world = World::new().await;
    let bad = |name: &str, count: usize| {
        let keys: String = (0..count).map(|key| format!("unknown{key}: 1\n")).collect();
        format!("name: {name}\n{keys}tasks: [{{name: x, type: noop}}]\n")
    };
    let several = json!({"files": [{"path": "a.yaml", "text": bad("a", 150)}, {"path": "b.yaml", "text": bad("b", 3)}]});
    for (body, all, rest) in [
        (bad("a", 4_300), "4300 problems", "and 4,200 more"),
        (several.to_string(), "153 problems", "and 53 more"),
    ] {
        let answer = world.post("/workflows/validate", body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        let shown = answer.body["details"].as_array().unwrap();
        assert_eq!((shown.len(), &shown[100]["message"]), (101, &json!(rest)));
        assert!(answer.body["message"].as_str().unwrap().starts_with(all), "{}", answer.body["message"]);
    }
}
