//! Tests of workflows, as `ebb test` reads them.

use model::{ErrorClass, RunState, TaskState};
use serde_json::{Value, json};

use super::refer;
use super::values::{duration, fields, object, one_of, text, whole};

/// How a run can end.
const ENDS: [&str; 3] = ["succeeded", "failed", "cancelled"];

/// A file of tests.
pub(super) fn file() -> Value {
    let tests = json!({"type": "array", "items": refer("test")});
    let mut schema = object(
        fields([
            ("workflow", "The name of the workflow that is tested.", text()),
            ("tests", "The tests.", tests),
        ]),
        &["workflow", "tests"],
    );
    schema["title"] = "Ebbflow tests".into();
    schema["description"] = "Tests of a workflow for `ebb test`, a file in `tests/`.".into();
    schema["$defs"] = json!({
        "test": test(), "stub": stub(), "action": action(), "expect": expect(), "task": task(), "span": span(),
    });
    schema
}

fn test() -> Value {
    let of_task = json!({"anyOf": [
        refer("stub"),
        {"type": "array", "items": refer("stub"), "minItems": 1},
    ]});
    object(
        fields([
            ("name", "The name of the test, unique in the file.", text()),
            ("inputs", "The inputs of the run, by name.", json!({"type": "object"})),
            ("logical_date", "The logical date; virtual time starts there.", instant()),
            ("now", "When virtual time starts; default: at `logical_date`, or on 2026-01-01.", instant()),
            (
                "tasks",
                "Stubs by task: one attempt, or a list whose last item applies to all further attempts.",
                by_task(of_task),
            ),
            (
                "meanwhile",
                "What people do during the run.",
                json!({"type": "array", "items": refer("action")}),
            ),
            ("expect", "The expectations; by default, the run succeeds.", refer("expect")),
        ]),
        &["name", "expect"],
    )
}

/// What one attempt comes to.
fn stub() -> Value {
    let failure = fields([
        ("message", "The error's message.", text()),
        ("class", "The error class; default `transient`.", one_of(&ErrorClass::ALL.map(ErrorClass::name))),
    ]);
    let failure = json!({"anyOf": [text(), object(failure, &["message"])]});
    let mut stub = object(
        fields([
            ("takes", "How long the attempt takes, in virtual time.", duration()),
            ("output", "The output.", json!({})),
            ("fail", "The error that it fails with: a message, or `{message: …, class: …}`.", failure),
            ("run", "How the run ends that the task starts; it is not executed.", one_of(&ENDS)),
            ("outputs", "The outputs of the final tasks of that run, by name.", json!({"type": "object"})),
            ("error", "Why that run failed.", text()),
        ]),
        &[],
    );
    // What stands for a run is no attempt's, and only a run that failed has an error.
    stub["dependentSchemas"] = json!({
        "fail": {"properties": {"output": {"type": "null"}, "run": false, "outputs": false}},
        "output": {"properties": {"run": false, "outputs": false}},
        "error": {"properties": {"run": {"const": "failed"}}, "required": ["run"]},
    });
    stub
}

/// What somebody does at a certain time.
fn action() -> Value {
    let mut action = object(
        fields([
            ("at", "When, since the start of the run.", duration()),
            ("by", "The actor.", text()),
            ("signal", "The name of a signal that is sent.", text()),
            ("payload", "The payload of the signal.", json!({})),
            ("approve", "The name of an approval that is given.", text()),
            ("fields", "The values of the form.", json!({"type": "object"})),
            ("reject", "The name of an approval that is rejected.", text()),
            ("cancel", "The run is cancelled.", json!({"const": true})),
            ("reason", "Why it is rejected or cancelled.", text()),
        ]),
        &[],
    );
    let one = |name: &str| json!({"required": [name]});
    action["oneOf"] = ["signal", "approve", "reject", "cancel"].map(one).to_vec().into();
    action["dependentSchemas"] = json!({
        "payload": one("signal"),
        "fields": one("approve"),
        "reason": {"anyOf": [one("reject"), one("cancel")]},
    });
    action
}

fn expect() -> Value {
    let state = one_of(&RunState::ALL.map(RunState::name));
    object(
        fields([
            ("state", "The final state of the run; default `succeeded`.", state),
            ("took", "How long it takes: `2h`, or `{at_least: 1h, at_most: 3h}`.", refer("span")),
            ("error", "A part of the run's error.", text()),
            ("order", "Tasks that started in this order.", names()),
            ("tasks", "Expectations of tasks, by name: a state, or more.", by_task(refer("task"))),
            (
                "callbacks",
                "The callbacks, in order: `{on: failure, webhook: …}`; only the fields named are compared.",
                json!({"type": "array"}),
            ),
        ]),
        &[],
    )
}

/// What is expected of one task.
fn task() -> Value {
    let state = one_of(&TaskState::ALL.map(TaskState::name));
    let more = object(
        fields([
            ("state", "The final state of the task.", state.clone()),
            ("output", "All of its output.", json!({})),
            (
                "config",
                "The settings as rendered for the last attempt; only the fields named are compared.",
                json!({}),
            ),
            ("attempts", "How many attempts there were.", whole(0..=u32::MAX)),
            ("started", "When it started, since the start of the run.", refer("span")),
            ("finished", "When it ended, since the start of the run.", refer("span")),
            ("started_after", "Tasks that had ended when it started.", names()),
            ("error", "A part of the task's error.", text()),
        ]),
        &[],
    );
    json!({"anyOf": [state, more]})
}

/// A duration: exact, or within bounds.
fn span() -> Value {
    let bounds = fields([("at_least", "The minimum.", duration()), ("at_most", "The maximum.", duration())]);
    json!({"anyOf": [duration(), object(bounds, &[])]})
}

fn instant() -> Value {
    json!({
        "type": "string",
        "pattern": r"^\s*[+-]?[0-9]+-[0-9]+-[0-9]+\s*[Tt ]",
        "examples": ["2026-01-31T06:00:00Z"],
    })
}

/// The name of a task, or several.
fn names() -> Value {
    json!({"anyOf": [text(), {"type": "array", "items": text()}]})
}

fn by_task(of_task: Value) -> Value {
    json!({"type": "object", "additionalProperties": of_task})
}
