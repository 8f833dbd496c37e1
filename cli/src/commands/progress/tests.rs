use serde_json::json;

use super::*;

const PLAIN: Palette = Palette { on: false };

fn at(second: i64) -> Instant {
    Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn event(kind: EventKind, task: Option<&str>, attempt: u32, data: Value) -> EventView {
    EventView {
        seq: 0,
        at: at(0),
        kind,
        task: task.map(Into::into),
        attempt: Some(attempt),
        actor: None,
        data,
    }
}

fn task(name: &str, more: Value) -> TaskView {
    let mut task = json!({
        "name": name, "type": "bash", "state": "running", "attempt": 1, "max_attempts": 4, "queue": "light",
        "created_at": "2027-01-15T08:00:00Z", "links": {"self": "/x", "console": "c", "logs": "l", "trace": "t"},
    });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(task).unwrap()
}

fn progress(names: &[&str]) -> Progress {
    Progress::new(names.iter().map(|name| task(name, json!({}))).collect())
}

/// A task that has reported how far it has come.
fn reporting(name: &str, percent: u32, phase: &str) -> TaskView {
    let progress = json!({
        "attempt": 1, "at": at(1), "fraction": f64::from(percent) / 100.0, "message": "page 3", "phase": phase,
        "metrics": {"rows": {"value": 120.0, "series": []}},
    });
    let parent = name.rsplit_once("__").map(|(parent, _)| parent);
    task(name, json!({"progress": progress, "parent": parent}))
}

#[test]
fn each_change_of_state_is_one_line() {
    let mut progress = progress(&["load", "transform"]);
    let line = progress.on(&event(EventKind::TaskStarted, Some("load"), 1, json!({"worker": "w"})), PLAIN);
    assert_eq!(line.unwrap(), "08:00:00 load       ▶ running");
}

#[test]
fn a_retry_says_why_and_when_in_one_line() {
    let mut progress = progress(&["load"]);
    let data = json!({"class": "program_failed", "message": "exit code 1\nand more", "reason": "attempt 3 of 4 follows", "delay_ms": 2_000});
    let line = progress.on(&event(EventKind::TaskRetrying, Some("load"), 2, data), PLAIN).unwrap();
    let expected = "load  ↻ up_for_retry (attempt 2 of 4): program_failed: exit code 1; attempt 3 of 4 follows; again in 2.0 s";
    assert_eq!(line, format!("08:00:00 {expected}"));
}

#[test]
fn events_that_change_no_task_have_no_line() {
    let mut progress = progress(&["load"]);
    assert_eq!(progress.on(&event(EventKind::RunStarted, None, 0, Value::Null), PLAIN), None);
    assert_eq!(progress.on(&event(EventKind::TaskRedispatched, Some("load"), 1, Value::Null), PLAIN), None);
    assert_eq!(progress.end, None);
}

#[test]
fn the_end_of_the_run_and_the_tasks_at_fault_are_known() {
    let mut progress = progress(&["load", "report"]);
    let data = json!({"class": "permanent", "message": "no such table"});
    progress.on(&event(EventKind::TaskFailed, Some("load"), 1, data), PLAIN);
    progress.on(&event(EventKind::TaskUpstreamFailed, Some("report"), 0, Value::Null), PLAIN);
    progress.on(&event(EventKind::RunFailed, None, 0, Value::Null), PLAIN);
    assert_eq!(progress.end, Some(RunState::Failed));
    assert_eq!(progress.failed().collect::<Vec<_>>(), [("load", "permanent: no such table", "load")]);
}

#[test]
fn a_small_run_is_drawn_whole_with_the_time_that_running_tasks_have_taken() {
    let mut progress = progress(&["a", "long"]);
    progress.on(&event(EventKind::TaskStarted, Some("a"), 1, Value::Null), PLAIN);
    assert_eq!(progress.picture(at(3), PLAIN), "a     ▶ running  3.0 s\nlong  ○ pending");
}

#[test]
fn a_large_run_is_drawn_by_what_is_of_interest() {
    let mut progress = Progress::new((0..100).map(|number| task(&format!("t{number}"), json!({}))).collect());
    progress.on(&event(EventKind::TaskSucceeded, Some("t1"), 1, Value::Null), PLAIN);
    progress.on(&event(EventKind::TaskFailed, Some("t7"), 1, json!({"message": "no"})), PLAIN);
    assert_eq!(progress.picture(at(0), PLAIN), "t7   ✗ failed: no\n2 of 100 tasks have ended");
}

#[test]
fn children_are_counted_in_the_line_of_their_fan_out() {
    let mut progress = progress(&["split", "join"]);
    let line = progress.on(&event(EventKind::TaskFannedOut, Some("split"), 1, json!({"count": 20})), PLAIN);
    assert_eq!(line.unwrap(), "08:00:00 split  ☾ sleeping  0/20 children");
    let started = event(EventKind::TaskStarted, Some("split__0"), 1, Value::Null);
    assert_eq!(progress.on(&started, PLAIN), None);
    let ended = |number: u32, kind| event(kind, Some(&format!("split__{number}")), 1, Value::Null);
    let lines: Vec<String> =
        (0..8).filter_map(|number| progress.on(&ended(number, EventKind::TaskSucceeded), PLAIN)).collect();
    assert_eq!(lines.len(), 4, "one in ten of the children has a line: {lines:?}");
    let failed = progress.on(&ended(8, EventKind::TaskFailed), PLAIN).unwrap();
    assert_eq!(failed, "08:00:00 split  ☾ sleeping  9/20 children, 1 failed");
    assert_eq!(
        progress.picture(at(0), PLAIN),
        "split  ☾ sleeping  9/20 children, 1 failed\njoin   ○ pending"
    );
}

#[test]
fn of_a_failed_fan_out_the_log_of_the_first_failed_child_is_pointed_to() {
    let mut progress = progress(&["split"]);
    progress.on(&event(EventKind::TaskFannedOut, Some("split"), 1, json!({"count": 2})), PLAIN);
    for child in ["split__1", "split__0"] {
        progress.on(&event(EventKind::TaskFailed, Some(child), 1, Value::Null), PLAIN);
    }
    progress.on(&event(EventKind::TaskFailed, Some("split"), 1, json!({"message": "2 of 2"})), PLAIN);
    assert_eq!(progress.failed().collect::<Vec<_>>(), [("split", "2 of 2", "split__1")]);
}

#[test]
fn a_task_that_waits_for_another_run_names_it() {
    let mut progress = progress(&["call"]);
    let data = json!({"run": "R", "workflow": "child"});
    let line = progress.on(&event(EventKind::TaskWaiting, Some("call"), 1, data), PLAIN);
    assert_eq!(line.unwrap(), "08:00:00 call  ☾ sleeping: waits for run R");
}

#[test]
fn the_attempts_that_a_task_is_allowed_are_read_again_after_each_retry() {
    let mut progress = progress(&["load"]);
    let started = |task, attempt| event(EventKind::TaskStarted, Some(task), attempt, Value::Null);
    assert!(!progress.needs_total(&started("load", 1)), "the first attempt shows no total");
    assert!(!progress.needs_total(&started("load__0", 2)), "a child has no line for it");
    assert!(progress.needs_total(&started("load", 2)));
    progress.set_totals(&[task("load", json!({"max_attempts": 5}))]);
    let line = progress.on(&started("load", 2), PLAIN).unwrap();
    assert_eq!(line, "08:00:00 load  ▶ running (attempt 2 of 5)");
}

#[test]
fn what_a_running_task_reports_is_shown_by_phase_and_tenth() {
    let mut progress = progress(&["load"]);
    assert_eq!(progress.report(reporting("load", 10, "copy"), PLAIN), None, "it has not started");
    progress.on(&event(EventKind::TaskStarted, Some("load"), 1, Value::Null), PLAIN);
    assert_eq!(progress.report(task("load", json!({})), PLAIN), None, "it has reported nothing");
    let line = progress.report(reporting("load", 42, "copy"), PLAIN).unwrap();
    assert_eq!(line, "08:00:01 load  ▶ running  42 % copy: page 3, rows = 120");
    assert_eq!(progress.report(reporting("load", 49, "copy"), PLAIN), None, "the same tenth");
    assert!(progress.report(reporting("load", 50, "copy"), PLAIN).is_some());
    assert!(progress.report(reporting("load", 50, "check"), PLAIN).is_some());
    let line = progress.on(&event(EventKind::TaskSucceeded, Some("load"), 1, Value::Null), PLAIN).unwrap();
    assert!(!line.contains('%'), "{line}");
    assert_eq!(progress.report(reporting("load", 60, "check"), PLAIN), None, "it has ended");
}

#[test]
fn a_running_child_that_reports_has_a_line_of_its_own() {
    let mut progress = progress(&["split", "join"]);
    progress.on(&event(EventKind::TaskFannedOut, Some("split"), 1, json!({"count": 20})), PLAIN);
    progress.on(&event(EventKind::TaskStarted, Some("split__7"), 1, Value::Null), PLAIN);
    let line = progress.report(reporting("split__7", 42, "copy"), PLAIN).unwrap();
    let child = "split__7  ▶ running  42 % copy: page 3, rows = 120";
    assert_eq!(line, format!("08:00:01 {child}"));
    let picture = progress.picture(at(0), PLAIN);
    assert_eq!(picture, format!("split  ☾ sleeping  0/20 children\njoin   ○ pending\n{child}"));
    progress.on(&event(EventKind::TaskSucceeded, Some("split__7"), 1, Value::Null), PLAIN);
    assert!(!progress.picture(at(0), PLAIN).contains("split__7"));
}

#[test]
fn each_running_task_has_its_turn_to_be_read() {
    let mut progress = progress(&["a", "b", "c", "d"]);
    assert!(progress.next_running(3).is_empty());
    for task in ["a", "b", "c", "d", "d__0"] {
        progress.on(&event(EventKind::TaskStarted, Some(task), 1, Value::Null), PLAIN);
    }
    assert_eq!(progress.next_running(3), ["a", "b", "c"]);
    assert_eq!(progress.next_running(3), ["d", "d__0", "a"]);
    progress.on(&event(EventKind::TaskSucceeded, Some("b"), 1, Value::Null), PLAIN);
    assert_eq!(progress.next_running(9), ["c", "d", "d__0", "a"], "each once");
}
