//! What is tried, and what must hold.

pub(crate) mod commands;
pub(crate) mod files;
pub(crate) mod inputs;
pub(crate) mod templates;
pub(crate) mod times;

use std::sync::LazyLock;

use ebbflow_language::template::{Item, RunFacts, Scope, TaskFacts};
use serde_json::{Map, Value, json};

/// No rendered value is larger, written as JSON.
const MAX_RENDERED: usize = 1024 * 1024;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Values of every kind and some size.
static SCOPE: LazyLock<Scope> = LazyLock::new(|| Scope {
    inputs: object(json!({
        "n": 21, "day": "2026-01-31", "files": ["a", "b", "a"], "v": "a'b\"c $(x)", "long": "é,x".repeat(20_000),
        "twin": "é,x".repeat(20_000), "many": (0..5_000).collect::<Vec<_>>(), "others": (0..5_000).collect::<Vec<_>>(),
        "deep": deep(), "big": u64::MAX, "least": i64::MIN, "tiny": 1e-308,
    })),
    outputs: object(json!({
        "extract": {"rows": 12, "ok": true, "none": null}, "get-data": [{"id": 1}, {"id": 2}, {}], "deep": deep(),
    })),
    run: Some(RunFacts {
        id: "r1".to_owned(),
        logical_date: "2026-01-31T18:00:00Z".parse().unwrap(),
        trigger: "manual".to_owned(),
        interval: None,
    }),
    task: Some(TaskFacts { name: "load".to_owned(), attempt: 2 }),
    item: Some(Item { value: json!({"a": [1, "x"]}), index: 3 }),
    event: Some(json!({"error": "it failed"})),
    answer: None,
    secrets: object(json!({"key": "hush", "a-b": "hush"})),
});

fn deep() -> Value {
    (0..100).fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
}
