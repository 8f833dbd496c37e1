//! Tests of tests: what stubs, signals and times do, and that each expectation fails where it should, and says why.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "suite/claims.rs"]
mod claims;
#[path = "suite/custom_types.rs"]
mod custom_types;
#[path = "suite/expectations.rs"]
mod expectations;
#[path = "suite/fans.rs"]
mod fans;
#[path = "suite/files.rs"]
mod files;
#[path = "suite/runs.rs"]
mod runs;
#[path = "suite/unending.rs"]
mod unending;

use ebbflow_workflow_test::{Refusal, Suite, TestFile};
use language::{Compilation, FileKind, SourceFile};

/// A workflow whose run others start: it naps, works and delivers what `work` does.
const CHILD: &str = "name: child
inputs: {n: {type: integer}}
tasks:
  - {name: nap, type: sleep, config: {duration: 1s}}
  - name: work
    type: bash
    depends_on: [nap]
    config: {command: 'true', env: {N: '{{ inputs.n }}'}}
    retry_policy: {max_retries: 1, initial_delay_seconds: 1, jitter: 0}
";
const ASKING: &str = "name: asking\ntasks: [{name: ask, type: approval}]\n";
const ONCE: &str = "name: once\ntype: bash\nglobal: true\nconfig: {command: 'true'}\n";

const CHECK: &str = "name: raster.check
config: {properties: {source: {type: integer, minimum: 1}}, required: [source]}
output: {type: object, properties: {width: {type: integer}}, required: [width]}
";

/// Compiles one workflow, `flow`, with these tasks, beside others that it may start.
fn workflow(tasks: &str) -> Compilation {
    let flow = format!("name: flow\ninputs: {{n: {{type: integer, default: 1}}}}\ntasks:\n{tasks}");
    let file = |path: &str, kind, text: &str| SourceFile { path: path.into(), kind, text: text.into() };
    language::compile(&[
        file("graphs/flow.yaml", FileKind::Workflow, &flow),
        file("graphs/child.yaml", FileKind::Workflow, CHILD),
        file("graphs/asking.yaml", FileKind::Workflow, ASKING),
        file("tasks/once.yaml", FileKind::Task, ONCE),
        file("types/raster.check.yaml", FileKind::Type, CHECK),
        file("queues/gpu.yaml", FileKind::Queue, "name: gpu\nkind: pool\n"),
    ])
}

/// Reads a file with these tests of `flow`.
fn read(tasks: &str, tests: &str) -> Result<Suite, Refusal> {
    let file = TestFile { path: "tests/flow.yaml".into(), text: format!("workflow: flow\ntests:\n{tests}") };
    let compiled = workflow(tasks);
    assert_eq!(compiled.diagnostics, [], "the workflow itself is sound");
    Suite::read(&file, &compiled)
}

/// Runs one test of `flow`, written without its name; returns every failed expectation.
async fn run_test(tasks: &str, test: &str) -> Vec<String> {
    let suite =
        read(tasks, &format!("  - name: it\n{test}")).unwrap_or_else(|refusal| panic!("{refusal:#?}"));
    let problems = suite.run(&suite.tests[0]).await;
    problems
        .iter()
        .map(|problem| {
            format!("{}:{} {}: {}", problem.line, problem.column, problem.path, message_of(problem))
        })
        .collect()
}

fn message_of(problem: &language::Diagnostic) -> String {
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}{hint}", problem.message)
}

async fn passes(tasks: &str, test: &str) {
    let problems = run_test(tasks, test).await;
    assert!(problems.is_empty(), "{problems:#?}\nin\n{test}");
}

/// The test fails with exactly these messages.
async fn fails(tasks: &str, test: &str, expected: &[&str]) {
    assert_eq!(run_test(tasks, test).await, expected, "in\n{test}");
}

/// The file is refused, with this among its problems.
fn refused(tasks: &str, tests: &str, expected: &str) {
    let Err(Refusal::File(problems)) = read(tasks, tests) else { panic!("it is not refused:\n{tests}") };
    let message: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(message.iter().any(|problem| problem == expected), "`{expected}` is not among {message:#?}");
}
