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
            ("tests", "What is claimed of it.", tests),
        ]),
        &["workflow", "tests"],
    );
    schema["title"] = "Ebbflow tests".into();
    schema["description"] = "Tests of a workflow, which `ebb test` plays, a file in `tests/`.".into();
    schema["$defs"] = json!({
        "test": test(), "stub": stub(), "deed": deed(), "expect": expect(), "task": task(), "span": span(),
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
            ("name", "What it claims, unique within the file.", text()),
            ("inputs", "What the run is given, by name.", json!({"type": "object"})),
            ("logical_date", "The date that the run is about; virtual time begins there.", instant()),
            ("now", "When virtual time begins, if not at `logical_date` or on 2026-01-01.", instant()),
            (
                "tasks",
                "What attempts come to, by task: one attempt or a list, whose last holds for all that follow.",
                by_task(of_task),
            ),
            (
                "meanwhile",
                "What people do while the run goes on.",
                json!({"type": "array", "items": refer("deed")}),
            ),
            ("expect", "What comes of it; without more, the run succeeds.", refer("expect")),
        ]),
        &["name", "expect"],
    )
}

/// What one attempt comes to.
fn stub() -> Value {
    let failure = fields([
        ("message", "The error's message.", text()),
        (
            "class",
            "What kind of error it is; `transient` unless said.",
            one_of(&ErrorClass::ALL.map(ErrorClass::name)),
        ),
    ]);
    let failure = json!({"anyOf": [text(), object(failure, &["message"])]});
    let mut stub = object(
        fields([
            ("takes", "How long the attempt takes, in virtual time.", duration()),
            ("output", "What it succeeds with.", json!({})),
            ("fail", "The error that it fails with: a message, or `{message: …, class: …}`.", failure),
            ("run", "How the run ends that the task starts; it is not played then.", one_of(&ENDS)),
            ("outputs", "What the last tasks of that run deliver, by name.", json!({"type": "object"})),
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
fn deed() -> Value {
    let mut deed = object(
        fields([
            ("at", "When, counted from the start of the run.", duration()),
            ("by", "Who does it.", text()),
            ("signal", "The name of a signal that is sent.", text()),
            ("payload", "What the signal brings.", json!({})),
            ("approve", "The name of an approval that is given.", text()),
            ("fields", "What is filled in with the approval.", json!({"type": "object"})),
            ("reject", "The name of an approval that is refused.", text()),
            ("cancel", "The run is cancelled.", json!({"const": true})),
            ("reason", "Why it is refused or cancelled.", text()),
        ]),
        &[],
    );
    let one = |name: &str| json!({"required": [name]});
    deed["oneOf"] = ["signal", "approve", "reject", "cancel"].map(one).to_vec().into();
    deed["dependentSchemas"] = json!({
        "payload": one("signal"),
        "fields": one("approve"),
        "reason": {"anyOf": [one("reject"), one("cancel")]},
    });
    deed
}

fn expect() -> Value {
    let state = one_of(&RunState::ALL.map(RunState::name));
    object(
        fields([
            ("state", "How the run ends; `succeeded` unless said.", state),
            ("took", "How long it takes: `2h`, or `{at_least: 1h, at_most: 3h}`.", refer("span")),
            ("error", "A part of the run's error.", text()),
            ("order", "Tasks that began in this order.", names()),
            ("tasks", "What comes of tasks, by name: a state, or more.", by_task(refer("task"))),
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
            ("state", "How the task ends.", state.clone()),
            ("output", "All of its output.", json!({})),
            ("config", "Its settings as rendered for the last attempt; only what is named.", json!({})),
            ("attempts", "How many attempts there were.", whole(0..=u32::MAX)),
            ("started", "When it began, since the start of the run.", refer("span")),
            ("finished", "When it ended, since the start of the run.", refer("span")),
            ("started_after", "Tasks that had ended when it began.", names()),
            ("error", "A part of the task's error.", text()),
        ]),
        &[],
    );
    json!({"anyOf": [state, more]})
}

/// A duration: exact, or within bounds.
fn span() -> Value {
    let bounds = fields([
        ("at_least", "No less than this.", duration()),
        ("at_most", "No more than this.", duration()),
    ]);
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
