//! The fields of test files, which `ebb test` reads. What they mean for a workflow, the runner of tests knows.

use model::{ErrorClass, Failure, Instant, RunState, TaskState};
use serde_json::{Value, json};

use crate::diagnostic::Report;
use crate::duration::Duration;
use crate::node::{Data, Key, Node};
use crate::read::{self, Word};
use crate::shape::{
    Given, Record, Shape, any, choice, custom, defined, duration, entries, flag, given, list, node, nullable,
    record, refer, required, several, signed, text, timestamp, whole,
};

/// How a run can end.
const ENDS: [&str; 3] = ["succeeded", "failed", "cancelled"];

record! {
    /// A file of tests.
    pub struct TestFileFields<'n> as "a test file" {
        /// The name of the workflow that is tested.
        workflow: Word<'n> = required(text()),
        /// The tests, each with a run of its own.
        tests: Vec<&'n Node> = required(list(node(|| refer("test")))),
    }
}

record! {
    /// One run of the workflow, and what is expected of it.
    pub struct TestFields<'n> as "a test" {
        /// The name of the test, unique in the file.
        name: Word<'n> = required(text()),
        /// The inputs of the run, by name.
        inputs: &'n [(Key, Node)] = entries("`inputs`"),
        /// The logical date; virtual time starts there.
        logical_date: Instant = timestamp(),
        /// When virtual time starts; default: at `logical_date`, or on 2026-01-01.
        now: Instant = timestamp(),
        /// Stubs by task: one attempt, or a list whose last item applies to all further attempts.
        tasks: &'n [(Key, Node)] = custom(|node, report| read::entries(node, "`tasks`", report), stubs_schema),
        /// The actions of people during the run.
        meanwhile: Vec<&'n Node> = list(node(|| refer("action"))),
        /// The expectations; by default, the run succeeds.
        expect: &'n Node = required(node(|| refer("expect"))),
    }
}

record! {
    /// The result of one attempt.
    pub struct StubFields<'n> as "a stub" {
        /// How long the attempt takes, in virtual time.
        takes: Duration = duration(),
        /// The output that it succeeds with.
        output: Given<'n, &'n Node> = given(any()),
        /// The error that it fails with: a message, or `{message: …, class: …, exit_code: …}`.
        fail: Given<'n, Failure> = given(custom(read_failure, failure_schema)),
        /// How the run ends that the task starts; it is not executed.
        run: Given<'n, RunState> = given(choice(ENDS)),
        /// The outputs of the final tasks of that run, by name.
        outputs: Given<'n, &'n [(Key, Node)]> = given(entries("`outputs`")),
        /// Why that run failed.
        error: Given<'n, Word<'n>> = given(text()),
    }
    // A stub stands for an attempt or for a run, and only a run that failed has an error.
    where json!({"dependentSchemas": {
        "fail": {"properties": {"output": {"type": "null"}, "run": false, "outputs": false}},
        "output": {"properties": {"run": false, "outputs": false}},
        "error": {"properties": {"run": {"const": "failed"}}, "required": ["run"]},
    }})
}

record! {
    /// An error with its class.
    struct FailureFields<'n> as "a failure" {
        /// The message of the error.
        message: Word<'n> = required(text()),
        /// The error class; default `program_failed`.
        class: ErrorClass = choice(ErrorClass::ALL.map(ErrorClass::name)),
        /// The exit code of its program.
        exit_code: i32 = signed(1..=255),
    }
}

record! {
    /// An action at a certain time.
    pub struct ActionFields<'n> as "an action" {
        /// When, since the start of the run.
        at: Duration = duration(),
        /// Who acts, as recorded in events.
        by: Word<'n> = text(),
        /// The name of a signal that is sent.
        signal: Word<'n> = text(),
        /// The payload of the signal.
        payload: Given<'n, &'n Node> = given(any()),
        /// The name of an approval that is given.
        approve: Word<'n> = text(),
        /// The values of the form.
        fields: Given<'n, &'n [(Key, Node)]> = given(entries("`fields`")),
        /// The name of an approval that is rejected.
        reject: Word<'n> = text(),
        /// The run is cancelled.
        cancel: bool = custom(|node, report| flag().read(node, report), || json!({"const": true})),
        /// Why it is rejected or cancelled.
        reason: Given<'n, Word<'n>> = given(text()),
    }
    where {
        let one = |name: &str| json!({"required": [name]});
        let actions = ["signal", "approve", "reject", "cancel"].map(one);
        json!({
            "oneOf": actions,
            "dependentSchemas": {
                "payload": one("signal"),
                "fields": one("approve"),
                "reason": {"anyOf": [one("reject"), one("cancel")]},
            },
        })
    }
}

record! {
    /// The expectations of a run.
    pub struct ExpectFields<'n> as "`expect`" {
        /// The final state of the run; default `succeeded`.
        state: Given<'n, RunState> = given(choice(RunState::ALL.map(RunState::name))),
        /// How long it takes: `2h`, or `{at_least: 1h, at_most: 3h}`.
        took: Given<'n, Span> = span(),
        /// A part of the run's error.
        error: Word<'n> = text(),
        /// Tasks that started in this order.
        order: Vec<Word<'n>> = several(text()),
        /// Expectations of tasks, by name: a state, or more.
        tasks: &'n [(Key, Node)] =
            custom(|node, report| read::entries(node, "`tasks`", report), || by_task(refer("task"))),
        /// The callbacks, in order: `{on: failure, webhook: …}`; only the fields named are compared.
        callbacks: &'n Node = custom(read_callbacks, || json!({"type": "array"})),
    }
}

record! {
    /// The expectations of one task.
    pub struct TaskFields<'n> as "an expectation of a task" {
        /// The final state of the task.
        state: Given<'n, TaskState> = given(choice(TaskState::ALL.map(TaskState::name))),
        /// All of its output.
        output: &'n Node = nullable(any()),
        /// The settings as rendered for the last attempt; only the fields named are compared.
        config: &'n Node = any(),
        /// How many attempts there were.
        attempts: Given<'n, u32> = given(whole(0..=u32::MAX)),
        /// When it started, since the start of the run.
        started: Given<'n, Span> = span(),
        /// When it ended, since the start of the run.
        finished: Given<'n, Span> = span(),
        /// Tasks that had ended when it started.
        started_after: Vec<Word<'n>> = several(text()),
        /// A part of the task's error.
        error: Word<'n> = text(),
    }
}

record! {
    /// A length of time: exact if both bounds are the same.
    #[derive(Clone, Copy, Debug)]
    pub struct Span as "a duration" {
        /// The lower bound, inclusive.
        at_least: Duration = duration(),
        /// The upper bound, inclusive.
        at_most: Duration = duration(),
    }
}

impl<'n> TaskFields<'n> {
    /// Reads a state, or a mapping.
    pub fn read_or_state(node: &'n Node, report: &mut Report<'_>) -> Option<Self> {
        if !matches!(node.data, Data::Text(_)) {
            return Self::read(node, report);
        }
        let state = given(choice(TaskState::ALL.map(TaskState::name))).read(node, report);
        let (output, config, attempts, started, finished, started_after, error) = Default::default();
        Some(Self { state, output, config, attempts, started, finished, started_after, error })
    }
}

/// The JSON Schema of a file of tests.
pub(crate) fn schema() -> Value {
    let mut schema = TestFileFields::schema();
    schema["title"] = "Ebbflow tests".into();
    schema["description"] = "Tests of a workflow for `ebb test`, a file in `tests/`.".into();
    let state = choice::<TaskState>(TaskState::ALL.map(TaskState::name)).schema();
    schema["$defs"] = json!({
        "test": TestFields::schema(),
        "stub": StubFields::schema(),
        "action": ActionFields::schema(),
        "expect": ExpectFields::schema(),
        "task": {"anyOf": [state, TaskFields::schema()]},
        "span": {"anyOf": [duration().schema(), Span::schema()]},
    });
    schema
}

fn by_task(of_task: Value) -> Value {
    json!({"type": "object", "additionalProperties": of_task})
}

fn stubs_schema() -> Value {
    by_task(json!({"anyOf": [refer("stub"), {"type": "array", "items": refer("stub"), "minItems": 1}]}))
}

/// A duration: exact, or within bounds.
fn span<'n>() -> impl Shape<'n, Value = Given<'n, Span>> {
    let read = |node: &'n Node, report: &mut Report<'_>| match node.data {
        Data::Map(_) => Span::read(node, report),
        _ => duration().read(node, report).map(|exact| Span { at_least: Some(exact), at_most: Some(exact) }),
    };
    given(defined("span", custom(read, || json!({}))))
}

/// `"connection reset"`, the failure of a program, or `{message: …, class: permanent}`.
fn read_failure(node: &Node, report: &mut Report<'_>) -> Option<Failure> {
    if !matches!(node.data, Data::Map(_)) {
        return read::text(node, report).map(|word| Failure::of_program(word.text));
    }
    let fields = FailureFields::read(node, report)?;
    let class = fields.class.unwrap_or(ErrorClass::ProgramFailed);
    Some(Failure { exit_code: fields.exit_code, ..Failure::new(class, fields.message?.text) })
}

fn failure_schema() -> Value {
    json!({"anyOf": [text().schema(), FailureFields::schema()]})
}

fn read_callbacks<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<&'n Node> {
    read::list(node, report).map(|_| node)
}
