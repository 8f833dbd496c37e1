//! What came of a run, held against what is expected of it.

use chrono::TimeDelta;
use language::document::{Place, Report};
use model::{Instant, RunState};
use serde_json::Value;

use crate::cast::stands_for;
use crate::compare::{Extent, compare, span};
use crate::expect::{Expect, ExpectTask, Range};
use crate::outcome::{Outcome, Played, Rest};
use crate::stub::Stubs;
use crate::suite::Test;
use crate::waiting;

/// Reports everything that is not as expected.
pub(crate) fn judge(test: &Test, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    judge_run(&test.expect, outcome, report);
    for expected in &test.expect.tasks {
        match outcome.task(&expected.name) {
            Some(found) => judge_task(expected, found, outcome, report),
            None => report.add(&expected.at, "there was no such task in the run", None),
        }
    }
    judge_order(&test.expect, outcome, report);
    if let Some(callbacks) = &test.expect.callbacks {
        compare(callbacks, &Value::Array(outcome.callbacks.clone()), Extent::Named, report);
    }
    test.stubs.iter().for_each(|stubs| judge_stubs(stubs, outcome, report));
    judge_lines(outcome, report);
}

fn judge_run(expect: &Expect, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let (at, state) = &expect.state;
    let run = &outcome.run;
    // A run that waits for ever may be what is expected.
    let rests = outcome.rest == Rest::Waiting && run.state == *state;
    if outcome.rest != Rest::Ended && !rests {
        let hint = "say under `meanwhile` what it waits for, or expect `state: running`".to_owned();
        report.add(at, waiting::explain(outcome), Some(hint).filter(|_| outcome.rest == Rest::Waiting));
    } else if run.state != *state {
        let why = run.error.clone().filter(|_| run.state == RunState::Failed);
        report.add(at, format!("expected the run {}, found it {}", state.name(), run.state.name()), why);
    }
    judge_time(expect.took.as_ref(), run.finished_at, "the run has not ended", outcome, report);
    judge_error(expect.error.as_ref(), run.error.as_deref(), report);
}

fn judge_task(expected: &ExpectTask, found: &Played, outcome: &Outcome<'_>, report: &mut Report<'_>) {
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
            report.add(&config.at, "no attempt was given a config", failure.map(str::to_owned));
        }
        (None, _) => {}
    }
    if let Some((at, attempts)) = expected.attempts.as_ref().filter(|(_, count)| *count != task.attempt) {
        let message = format!("expected {attempts} attempts, found {}", task.attempt);
        report.add(at, message, failure.map(str::to_owned));
    }
    let began = outcome.began(found);
    judge_time(expected.started.as_ref(), began, "the task never began", outcome, report);
    judge_time(expected.finished.as_ref(), task.finished_at, "the task has not ended", outcome, report);
    for (at, earlier) in &expected.after {
        judge_after(at, earlier, began, outcome, report);
    }
    judge_error(expected.error.as_ref(), failure, report);
}

fn judge_time(
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

fn judge_error(expected: Option<&(Place, String)>, found: Option<&str>, report: &mut Report<'_>) {
    let Some((at, part)) = expected else { return };
    match found {
        Some(found) if found.contains(part.as_str()) => {}
        Some(found) => {
            report.add(at, format!("expected an error with `{part}` in it, found `{found}`"), None)
        }
        None => report.add(at, format!("expected an error with `{part}` in it, found none"), None),
    }
}

/// A task began once an earlier one had ended.
fn judge_after(
    at: &Place,
    earlier: &str,
    began: Option<Instant>,
    outcome: &Outcome<'_>,
    report: &mut Report<'_>,
) {
    let ended = outcome.task(earlier).and_then(|found| found.record.task.finished_at);
    match (began, ended) {
        (None, _) => report.add(at, "the task never began", None),
        (_, None) => report.add(at, format!("`{earlier}` has not ended"), None),
        (Some(began), Some(ended)) if began < ended => {
            let (began, ended) = (span(outcome.since_start(began)), span(outcome.since_start(ended)));
            report.add(at, format!("it began at {began}, before `{earlier}` ended at {ended}"), None);
        }
        _ => {}
    }
}

fn judge_order(expect: &Expect, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let order = outcome.order();
    let mut last: Option<(usize, &str)> = None;
    for (at, name) in &expect.order {
        let Some(place) = order.iter().position(|began| began == name) else {
            report.add(at, format!("`{name}` never began"), None);
            continue;
        };
        if let Some((_, before)) = last.filter(|(before, _)| *before > place) {
            let hint = format!("they began as {}", order.join(", "));
            report.add(at, format!("`{name}` began before `{before}`"), Some(hint));
        }
        last = Some((place, name));
    }
}

/// What a stub was written for must have come.
fn judge_stubs(stubs: &Stubs, outcome: &Outcome<'_>, report: &mut Report<'_>) {
    let meant = outcome.tasks.iter().filter(|task| stands_for(&stubs.task, &task.name));
    let attempts = meant.map(|task| task.record.task.attempt).max().unwrap_or(0);
    if attempts == 0 {
        let state = outcome.task(&stubs.task).map(|task| task.record.task.state.name());
        let state = state.map(|state| format!("it is {state}"));
        return report.add(&stubs.at, format!("`{}` has a stub, but it never began", stubs.task), state);
    }
    if let Some(unused) = stubs.attempts.get(attempts as usize) {
        let message = format!("there was no attempt {} at `{}`", attempts + 1, stubs.task);
        report.add(&unused.at, message, None);
    }
}

/// What people do must have come to somebody.
fn judge_lines(outcome: &Outcome<'_>, report: &mut Report<'_>) {
    for (line, at) in &outcome.unheard {
        let at = span(outcome.since_start(*at));
        let message = format!("nobody waited for {} at {at}", line.describe(&outcome.roles[0].graph));
        report.add(&line.at, message, None);
    }
    for line in outcome.unsaid.iter().filter(|_| outcome.rest == Rest::Ended) {
        let ended = span(outcome.since_start(outcome.now));
        let message =
            format!("{} never came: the run had ended at {ended}", line.describe(&outcome.roles[0].graph));
        report.add(&line.at, message, None);
    }
}
