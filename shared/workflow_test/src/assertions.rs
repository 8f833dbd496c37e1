//! Compares the outcome of a run with what a test expects.

use chrono::TimeDelta;
use language::document::{Position, Report};
use model::{Instant, RunState};
use serde_json::Value;

use crate::compare::{Extent, compare, span};
use crate::expect::{Expect, ExpectTask, Range};
use crate::fixtures::matches_task;
use crate::outcome::{Finish, Outcome, TaskOutcome};
use crate::stub::Stubs;
use crate::suite::Test;
use crate::waiting;

/// Reports every failed expectation.
pub(crate) fn check(test: &Test, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    check_run(&test.expect, outcome, report);
    for expected in &test.expect.tasks {
        match outcome.task(&expected.name) {
            Some(found) => check_task(expected, found, outcome, report),
            None => report.add(&expected.at, "the run has no such task", None),
        }
    }
    check_order(&test.expect, outcome, report);
    if let Some(callbacks) = &test.expect.callbacks {
        compare(callbacks, &Value::Array(outcome.callbacks.clone()), Extent::Named, report);
    }
    test.stubs.iter().for_each(|stubs| check_stubs(stubs, outcome, report));
    check_actions(outcome, report);
}

fn check_run(expect: &Expect, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let (at, state) = &expect.state;
    let run = &outcome.run;
    // A test may expect a run that waits forever.
    let waits_as_expected = outcome.finish == Finish::Waiting && run.state == *state;
    if outcome.finish != Finish::Ended && !waits_as_expected {
        let hint = "provide what it waits for under `meanwhile`, or expect `state: running`".to_owned();
        report.add(at, waiting::explain(outcome), Some(hint).filter(|_| outcome.finish == Finish::Waiting));
    } else if run.state != *state {
        let why = run.error.clone().filter(|_| run.state == RunState::Failed);
        report.add(at, format!("expected run state {}, found {}", state.name(), run.state.name()), why);
    }
    check_time(expect.took.as_ref(), run.finished_at, "the run has not ended", outcome, report);
    check_error(expect.error.as_ref(), run.error.as_deref(), report);
}

fn check_task(expected: &ExpectTask, found: &TaskOutcome, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let task = &found.record.task;
    let failure = task.failure.as_ref().map(|failure| failure.message.as_str());
    if let Some((at, state)) = expected.state.as_ref().filter(|(_, state)| *state != task.state) {
        let message = format!("expected {}, found {}", state.name(), task.state.name());
        report.add(at, message, failure.map(str::to_owned));
    }
    if let Some(output) = &expected.output {
        compare(output, found.record.output.as_ref().unwrap_or(&Value::Null), Extent::Whole, report);
    }
    match (&expected.config, outcome.config(found)) {
        (Some(config), Some(found)) => compare(config, found, Extent::Named, report),
        (Some(config), None) => {
            report.add(&config.at, "no attempt received a config", failure.map(str::to_owned));
        }
        (None, _) => {}
    }
    if let Some((at, attempts)) = expected.attempts.as_ref().filter(|(_, count)| *count != task.attempt) {
        let message = format!("expected {attempts} attempts, found {}", task.attempt);
        report.add(at, message, failure.map(str::to_owned));
    }
    let started = outcome.started(found);
    check_time(expected.started.as_ref(), started, "the task never started", outcome, report);
    check_time(expected.finished.as_ref(), task.finished_at, "the task has not ended", outcome, report);
    for (at, earlier) in &expected.after {
        check_after(at, earlier, started, outcome, report);
    }
    check_error(expected.error.as_ref(), failure, report);
}

fn check_time(
    expected: Option<&Range>,
    found: Option<Instant>,
    never: &str,
    outcome: &Outcome<'_>,
    report: &mut Report<'_>,
) {
    let Some(Range { at, least, most }) = expected else { return };
    let Some(found) = found.map(|found| outcome.since_start(found)) else {
        return report.add(at, never, None);
    };
    let fits = least.is_none_or(|least| found >= least) && most.is_none_or(|most| found <= most);
    if !fits {
        report.add(at, format!("expected {}, found {}", bounds(*least, *most), span(found)), None);
    }
}

fn bounds(least: Option<TimeDelta>, most: Option<TimeDelta>) -> String {
    match (least, most) {
        (Some(least), Some(most)) if least == most => span(least),
        (Some(least), Some(most)) => format!("{} to {}", span(least), span(most)),
        (Some(least), None) => format!("at least {}", span(least)),
        (None, most) => format!("at most {}", span(most.unwrap_or_default())),
    }
}

fn check_error(expected: Option<&(Position, String)>, found: Option<&str>, report: &mut Report<'_>) {
    let Some((at, part)) = expected else { return };
    match found {
        Some(found) if found.contains(part.as_str()) => {}
        Some(found) => {
            report.add(at, format!("expected an error with `{part}` in it, found `{found}`"), None)
        }
        None => report.add(at, format!("expected an error with `{part}` in it, found none"), None),
    }
}

/// Checks that a task started after another one ended.
fn check_after(
    at: &Position,
    earlier: &str,
    started: Option<Instant>,
    outcome: &Outcome<'_>,
    report: &mut Report<'_>,
) {
    let ended = outcome.task(earlier).and_then(|found| found.record.task.finished_at);
    match (started, ended) {
        (None, _) => report.add(at, "the task never started", None),
        (_, None) => report.add(at, format!("`{earlier}` has not ended"), None),
        (Some(started), Some(ended)) if started < ended => {
            let (started, ended) = (span(outcome.since_start(started)), span(outcome.since_start(ended)));
            report.add(at, format!("it started at {started}, before `{earlier}` ended at {ended}"), None);
        }
        _ => {}
    }
}

fn check_order(expect: &Expect, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let order = outcome.order();
    let mut last: Option<(usize, &str)> = None;
    for (at, name) in &expect.order {
        let Some(place) = order.iter().position(|started| started == name) else {
            report.add(at, format!("`{name}` never started"), None);
            continue;
        };
        if let Some((_, before)) = last.filter(|(before, _)| *before > place) {
            let hint = format!("they started as {}", order.join(", "));
            report.add(at, format!("`{name}` started before `{before}`"), Some(hint));
        }
        last = Some((place, name));
    }
}

/// Checks that every stub was used.
fn check_stubs(stubs: &Stubs, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let matching = outcome.tasks.iter().filter(|task| matches_task(&stubs.task, &task.name));
    let attempts = matching.map(|task| task.record.task.attempt).max().unwrap_or(0);
    if attempts == 0 {
        let state = outcome.task(&stubs.task).map(|task| task.record.task.state.name());
        let state = state.map(|state| format!("it is {state}"));
        return report.add(&stubs.at, format!("`{}` has a stub, but never started", stubs.task), state);
    }
    if let Some(unused) = stubs.attempts.get(attempts as usize) {
        let message = format!("there was no attempt {} of `{}`", attempts + 1, stubs.task);
        report.add(&unused.at, message, None);
    }
}

/// Checks that every action was used.
fn check_actions(outcome: &Outcome<'_>, report: &mut Report<'_>) {
    for (action, at) in &outcome.unused {
        let at = span(outcome.since_start(*at));
        let message = format!("nothing waited for {} at {at}", action.describe(&outcome.runs[0].graph));
        report.add(&action.at, message, None);
    }
    for action in outcome.pending.iter().filter(|_| outcome.finish == Finish::Ended) {
        let ended = span(outcome.since_start(outcome.now));
        let message =
            format!("{} was never sent: the run ended at {ended}", action.describe(&outcome.runs[0].graph));
        report.add(&action.at, message, None);
    }
}
