//! Why a run has not ended, in plain words.

use model::{Task, TaskState};

use crate::compare::span;
use crate::outcome::{Outcome, Rest};

/// Why a run has not ended, and what each of its tasks waits for.
pub(crate) fn explain(outcome: &Outcome<'_>) -> String {
    let after = span(outcome.since_start(outcome.now));
    let why = match outcome.rest {
        Rest::Ended => "the run ended".to_owned(),
        Rest::Waiting => format!("the run does not end: from {after} on nothing more happens"),
        Rest::TooLong(longest) => format!("the run does not end within {}", span(longest)),
        Rest::Endless(steps) => {
            format!("the run goes round in circles: it had not ended after {steps} steps")
        }
    };
    let open = outcome.tasks.iter().map(|record| &record.task).filter(|task| !task.state.is_final());
    let stand: Vec<String> = open.map(|task| describe(task, outcome)).collect();
    format!("{why}; {}", stand.join(", "))
}

fn describe(task: &Task, outcome: &Outcome<'_>) -> String {
    let spec = outcome.graph.spec(task.index);
    let name = &spec.name;
    match (task.state, spec.kind.as_str()) {
        (TaskState::Sleeping, "wait_for_signal") => {
            format!("`{name}` waits for the signal {}", spec.config["signal"])
        }
        (TaskState::Sleeping, "approval") => format!("`{name}` waits for somebody's answer"),
        (TaskState::Pending, _) => format!("`{name}` waits for {}", parents(task, outcome)),
        (state, _) => format!("`{name}` is {}", state.name()),
    }
}

/// The tasks that a pending one waits for.
fn parents(task: &Task, outcome: &Outcome<'_>) -> String {
    let open = |record: &&store::TaskRecord| !record.task.state.is_final();
    let parents = outcome.graph.parents(task.index);
    let waited = outcome.tasks.iter().filter(|record| parents.contains(&record.task.index)).filter(open);
    let names: Vec<String> = waited.map(|record| format!("`{}`", outcome.name(record.task.index))).collect();
    if names.is_empty() { "its turn".to_owned() } else { names.join(" and ") }
}
