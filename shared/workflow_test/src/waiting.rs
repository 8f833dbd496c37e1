//! Why a run has not ended, in plain words.

use model::{TaskState, WaitsFor};

use crate::compare::span;
use crate::outcome::{Finish, Outcome, TaskOutcome};

/// The maximum number of tasks to name; a fan-out may have thousands.
const MAX_NAMED_TASKS: usize = 20;

/// Why a run has not ended, and what each of its tasks waits for.
pub(crate) fn explain(outcome: &Outcome<'_>) -> String {
    let after = span(outcome.since_start(outcome.now));
    let why = match outcome.finish {
        Finish::Ended => "the run ended".to_owned(),
        Finish::Waiting => format!("the run does not end: nothing happens after {after}"),
        Finish::TooLong(longest) => format!("the run does not end within {}", span(longest)),
        Finish::Endless(steps) => {
            format!("the run had not ended after {steps} steps")
        }
    };
    let open: Vec<&TaskOutcome> = outcome.tasks.iter().filter(|task| is_open(task)).collect();
    let mut stand: Vec<String> =
        open.iter().take(MAX_NAMED_TASKS).map(|task| describe(task, outcome)).collect();
    if open.len() > MAX_NAMED_TASKS {
        stand.push(format!("and {} more", open.len() - MAX_NAMED_TASKS));
    }
    format!("{why}; {}", stand.join(", "))
}

fn describe(task: &TaskOutcome, outcome: &Outcome<'_>) -> String {
    let (name, spec) = (&task.name, outcome.spec(task));
    match (task.record.task.state, spec.kind.waits_for()) {
        (TaskState::Sleeping, Some(WaitsFor::Signal)) => {
            format!("`{name}` waits for the signal {}", spec.config["signal"])
        }
        (TaskState::Sleeping, Some(WaitsFor::Approval)) => format!("`{name}` waits for approval"),
        (TaskState::Sleeping, Some(WaitsFor::Sensor)) => format!("`{name}` waits for its sensor"),
        (TaskState::Sleeping, Some(WaitsFor::Run)) => format!("`{name}` waits for its run"),
        (TaskState::Sleeping, Some(WaitsFor::Children)) => format!("`{name}` waits for its children"),
        (TaskState::Pending, _) => format!("`{name}` waits for {}", parents(task, outcome)),
        (state, _) => format!("`{name}` is {}", state.name()),
    }
}

/// The tasks that a pending one waits for.
fn parents(task: &TaskOutcome, outcome: &Outcome<'_>) -> String {
    if task.record.task.child.is_some() {
        return "its turn".to_owned();
    }
    let parents = outcome.runs[task.run].graph.parents(task.record.task.index);
    let is_parent =
        |other: &&TaskOutcome| other.run == task.run && parents.contains(&other.record.task.index);
    let waited = outcome.tasks.iter().filter(is_parent).filter(|other| is_open(other));
    let names: Vec<String> = waited.map(|other| format!("`{}`", other.name)).collect();
    if names.is_empty() { "its turn".to_owned() } else { names.join(" and ") }
}

fn is_open(task: &TaskOutcome) -> bool {
    !task.record.task.state.is_final()
}
