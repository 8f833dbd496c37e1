use model::TaskState;
use serde_json::{Value, json};

use super::*;

const PLAIN: Palette = Palette { on: false };

fn links() -> Value {
    json!({"self": "/x", "console": "http://localhost/runs/1", "logs": "l", "trace": "t"})
}

fn task(name: &str, kind: &str, more: Value) -> TaskView {
    let mut task = json!({
        "name": name, "type": kind, "state": "sleeping", "attempt": 1, "max_attempts": 1, "queue": "light",
        "created_at": "2027-01-15T08:00:00Z", "links": links(),
    });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(task).unwrap()
}

fn run_with(more: Value) -> RunView {
    let mut run = json!({
        "id": RunId(uuid::Uuid::nil()), "workflow": "etl", "version": 1, "tenant": 1, "state": "queued",
        "trigger": {"kind": "api", "by": "ada"}, "inputs": {}, "labels": {},
        "created_at": "2027-01-15T08:00:00Z", "counts": {"pending": 1}, "links": links(),
    });
    run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(run).unwrap()
}

#[test]
fn a_fan_out_is_shown_with_the_number_of_its_children() {
    let children = json!({"count": 10, "begun": 5, "ended": 3, "succeeded": 2, "failed": 1, "skipped": 0});
    let waiting = json!({"reason": "children", "since": "2027-01-15T08:00:00Z"});
    let split = task("split", "fan_out", json!({"children": children, "waiting": waiting}));
    assert_eq!(split.state, TaskState::Sleeping);
    let shown = table(&[split], PLAIN);
    assert!(shown.ends_with("split  fan_out  sleeping  1/1            3/10 children, 1 failed"), "{shown}");
}

#[test]
fn a_task_that_has_to_do_with_another_run_names_it() {
    let id = RunId(uuid::Uuid::nil());
    let waiting = |task: Value| {
        let run = json!({"id": id, "task": task, "link": "/x"});
        json!({"waiting": {"reason": "run", "since": "2027-01-15T08:00:00Z", "run": run}})
    };
    let note = |kind, more| note(&task("call", kind, more));
    assert_eq!(note("workflow", waiting(json!(null))), format!("waits for run {id}"));
    assert_eq!(note("http", waiting(json!("rates"))), format!("waits for rates of run {id}"));
    assert_eq!(note("workflow", json!({"output": {"run_id": "R"}})), "run R");
}

#[test]
fn a_waiting_run_says_what_it_waits_for_and_a_child_who_started_it() {
    let (parent, other) = (RunId(uuid::Uuid::nil()), RunId(uuid::Uuid::max()));
    let shown = head(
        &run_with(json!({
            "parent": {"run": parent, "task": "call", "attempt": 1, "waits": true, "link": "/x"},
            "concurrency_key": "eu",
            "waiting": {"reason": "concurrency", "since": "2027-01-15T08:00:00Z", "runs": [other], "ahead": 2},
        })),
        PLAIN,
    );
    assert!(shown.contains(&format!("parent      run {parent}, task call, which waits for it\n")), "{shown}");
    let waiting =
        format!("waiting     waits for run {other} and 2 that wait before it (concurrency key `eu`)\n");
    assert!(shown.contains(&waiting), "{shown}");
    let plain = head(&run_with(json!({})), PLAIN);
    assert!(!plain.contains("parent") && !plain.contains("waiting"), "{plain}");
}
