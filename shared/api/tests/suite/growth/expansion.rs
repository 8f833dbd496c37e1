//! Files that are short and share something large: what they would come to is refused before it takes the memory.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::{peak_memory, runs_alone};

use super::Growing;

/// What the process may hold at any time, in bytes, with everything that the test itself needs: about 150 MiB. Written out, each
/// body comes to more than a gigabyte.
const MAX_MEMORY: u64 = 256 << 20;
/// The size of what is shared, in bytes, and how often it is used: together gigabytes.
const SHARED: usize = 400_000;
const USES: usize = 8_000;

fn file(kind: &str, path: &str, text: String) -> Value {
    json!({"kind": kind, "path": path, "text": text})
}

/// A workflow with many tasks.
fn tasks(entry: &dyn Fn(usize) -> String) -> Value {
    let entries: Vec<String> = (0..USES).map(entry).collect();
    file("workflow", "graphs/a.yaml", format!("{{name: a, tasks: [{}]}}", entries.join(", ")))
}

/// Many workflows, each with the same fields.
fn workflows(fields: &str) -> Vec<Value> {
    let one = |n| file("workflow", &format!("graphs/w{n}.yaml"), format!("{{name: w{n}, {fields}}}"));
    (0..USES / 2).map(one).collect()
}

/// The bodies, each with what it shares.
fn shapes() -> Vec<(&'static str, Vec<Value>)> {
    let long = "x".repeat(SHARED);
    let task =
        file("task", "tasks/big.yaml", format!("{{name: big, type: echo, config: {{value: {long}}}}}"));
    // Short values take more memory than their texts do.
    let short = "{a: 1},".repeat(SHARED / 8);
    let dense =
        file("task", "tasks/big.yaml", format!("{{name: big, type: echo, config: {{value: [{short}]}}}}"));
    let script = file("script", "scripts/long.sh", "x".repeat(200_000));
    let template = format!("{{name: base, tasks: [{{name: x, type: echo, config: {{value: {long}}}}}]}}");
    let template = file("template", "templates/base.yaml", template);
    let kind = format!("{{name: t.x, queue: remote, config: {{type: object, description: {long}}}}}");
    let kind = file("type", "types/t.x.yaml", kind);
    let reused = || tasks(&|n| format!("{{task: big, name: t{n}}}"));
    let scripts = tasks(&|n| format!("{{name: t{n}, type: bash, config: {{script: scripts/long.sh}}}}"));
    vec![
        ("a reusable task", vec![task, reused()]),
        ("a dense reusable task", vec![dense, reused()]),
        ("a script", vec![script, scripts]),
        ("a template", [vec![template], workflows("extends: base")].concat()),
        ("a custom type", [vec![kind], workflows("tasks: [{name: x, type: t.x}]")].concat()),
    ]
}

#[tokio::test]
async fn short_files_do_not_take_gigabytes() {
    if !runs_alone("growth::expansion::short_files_do_not_take_gigabytes") {
        return;
    }
    host::limit_arenas();
    let growing = Growing::new().await;
    for (what, files) in shapes() {
        let body = json!({ "files": files }).to_string();
        assert!(body.len() < 1024 * 1024, "{what}: {} bytes", body.len());
        for path in ["/workflows/validate", "/workflows"] {
            let answer = growing.send(&Method::POST, path, body.clone(), what).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{what}: {path}");
            let first = &answer.body["details"][0]["message"];
            let expected = "each use of something shared is written out, and with this one";
            assert!(first.as_str().is_some_and(|first| first.starts_with(expected)), "{what}: {first}");
            let peak = peak_memory("self");
            assert!(peak < MAX_MEMORY, "{what}: {path} took {} MiB", peak >> 20);
        }
    }
}
