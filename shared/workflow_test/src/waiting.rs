//! Why a run has not ended, in plain words.

use model::TaskState;

use crate::compare::span;
use crate::outcome::{Outcome, Played, Rest};

/// So many tasks are named; a fan-out may have thousands.
const NAMED: usize = 20;

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
    let open: Vec<&Played> = outcome.tasks.iter().filter(|task| is_open(task)).collect();
    let mut stand: Vec<String> = open.iter().take(NAMED).map(|task| describe(task, outcome)).collect();
    if open.len() > NAMED {
        stand.push(format!("and {} more", open.len() - NAMED));
    }
    format!("{why}; {}", stand.join(", "))
}

fn describe(task: &Played, outcome: &Outcome<'_>) -> String {
    let (name, spec) = (&task.name, outcome.spec(task));
    match (task.record.task.state, spec.kind.as_str()) {
        (TaskState::Sleeping, "wait_for_signal") => {
            format!("`{name}` waits for the signal {}", spec.config["signal"])
        }
        (TaskState::Sleeping, "approval") => format!("`{name}` waits for somebody's answer"),
        (TaskState::Sleeping, "sensor") => format!("`{name}` waits for what its sensor looks for"),
        (TaskState::Sleeping, "workflow") => format!("`{name}` waits for its run"),
        (TaskState::Sleeping, "fan_out") => format!("`{name}` waits for its children"),
        (TaskState::Pending, _) => format!("`{name}` waits for {}", parents(task, outcome)),
        (state, _) => format!("`{name}` is {}", state.name()),
    }
}

/// The tasks that a pending one waits for.
fn parents(task: &Played, outcome: &Outcome<'_>) -> String {
    if task.record.task.child.is_some() {
        return "its turn".to_owned();
    }
    let parents = outcome.roles[task.role].graph.parents(task.record.task.index);
    let is_parent = |other: &&Played| other.role == task.role && parents.contains(&other.record.task.index);
    let waited = outcome.tasks.iter().filter(is_parent).filter(|other| is_open(other));
    let names: Vec<String> = waited.map(|other| format!("`{}`", other.name)).collect();
    if names.is_empty() { "its turn".to_owned() } else { names.join(" and ") }
}

fn is_open(task: &Played) -> bool {
    !task.record.task.state.is_final()
}
