use super::*;
use crate::WorkerId;
use uuid::Uuid;

fn at(state: TaskState, attempt: u32) -> Task {
    Task { state, attempt, ..Task::pending(TaskIndex(0), Instant::UNIX_EPOCH) }
}

fn errored(attempt: u32, retry: bool) -> TaskEvent {
    TaskEvent::Errored { attempt, failure: Failure::transient("x"), retry }
}

/// Every event, once for the current attempt (2) and, where it carries one, once for the attempt before.
fn events() -> Vec<(&'static str, TaskEvent)> {
    let worker = WorkerId(Uuid::nil());
    vec![
        ("readied", TaskEvent::Readied),
        ("released", TaskEvent::Released),
        ("claimed", TaskEvent::Claimed { attempt: 2, worker }),
        ("claimed by the attempt before", TaskEvent::Claimed { attempt: 1, worker }),
        ("fell asleep", TaskEvent::FellAsleep),
        ("succeeded", TaskEvent::Succeeded { attempt: 2 }),
        ("succeeded in the attempt before", TaskEvent::Succeeded { attempt: 1 }),
        ("succeeded in an attempt to come", TaskEvent::Succeeded { attempt: 3 }),
        ("errored", errored(2, false)),
        ("errored, to be retried", errored(2, true)),
        ("errored in the attempt before", errored(1, true)),
        ("handed back", TaskEvent::HandedBack { attempt: 2 }),
        ("handed back the attempt before", TaskEvent::HandedBack { attempt: 1 }),
        ("given up", TaskEvent::GivenUp { failure: Failure::transient("x") }),
        ("woke up", TaskEvent::WokeUp),
        ("retry due", TaskEvent::RetryDue),
        ("upstream failed", TaskEvent::UpstreamFailed),
        ("skipped", TaskEvent::Skipped),
        ("cancelled", TaskEvent::Cancelled),
        ("cleared", TaskEvent::Cleared),
        ("reopened", TaskEvent::Reopened),
        ("removed", TaskEvent::Removed),
        ("marked succeeded", TaskEvent::MarkedSucceeded),
        ("marked failed", TaskEvent::MarkedFailed { failure: Failure::permanent("x") }),
    ]
}

/// The legal moves, as a person would draw them. Whatever is not here must be refused.
const LEGAL: &[(&str, &str, &str)] = &[
    ("pending", "readied", "queued"),
    ("pending", "fell asleep", "sleeping"),
    ("pending", "upstream failed", "upstream_failed"),
    ("pending", "skipped", "skipped"),
    ("pending", "cancelled", "cancelled"),
    ("pending", "marked succeeded", "succeeded"),
    ("pending", "marked failed", "failed"),
    ("queued", "released", "dispatched"),
    ("queued", "fell asleep", "sleeping"),
    ("queued", "given up", "failed"),
    ("queued", "succeeded", "succeeded"),
    ("queued", "succeeded in the attempt before", "succeeded"),
    ("queued", "cancelled", "cancelled"),
    ("queued", "cleared", "pending"),
    ("queued", "marked succeeded", "succeeded"),
    ("queued", "marked failed", "failed"),
    ("dispatched", "claimed", "running"),
    ("dispatched", "succeeded", "succeeded"),
    ("dispatched", "succeeded in the attempt before", "succeeded"),
    ("dispatched", "errored", "failed"),
    ("dispatched", "errored, to be retried", "up_for_retry"),
    ("dispatched", "given up", "failed"),
    ("dispatched", "cancelled", "cancelled"),
    ("dispatched", "cleared", "pending"),
    ("dispatched", "marked succeeded", "succeeded"),
    ("dispatched", "marked failed", "failed"),
    ("running", "succeeded", "succeeded"),
    ("running", "succeeded in the attempt before", "succeeded"),
    ("running", "errored", "failed"),
    ("running", "errored, to be retried", "up_for_retry"),
    ("dispatched", "handed back", "queued"),
    ("running", "handed back", "queued"),
    ("running", "given up", "failed"),
    ("running", "cancelled", "cancelled"),
    ("running", "cleared", "pending"),
    ("running", "marked succeeded", "succeeded"),
    ("running", "marked failed", "failed"),
    ("sleeping", "succeeded", "succeeded"),
    ("sleeping", "succeeded in the attempt before", "succeeded"),
    ("sleeping", "errored", "failed"),
    ("sleeping", "errored, to be retried", "up_for_retry"),
    ("sleeping", "woke up", "queued"),
    ("sleeping", "skipped", "skipped"),
    ("sleeping", "given up", "failed"),
    ("sleeping", "cancelled", "cancelled"),
    ("sleeping", "cleared", "pending"),
    ("sleeping", "marked succeeded", "succeeded"),
    ("sleeping", "marked failed", "failed"),
    ("up_for_retry", "retry due", "queued"),
    ("up_for_retry", "succeeded", "succeeded"),
    ("up_for_retry", "succeeded in the attempt before", "succeeded"),
    ("up_for_retry", "given up", "failed"),
    ("up_for_retry", "cancelled", "cancelled"),
    ("up_for_retry", "cleared", "pending"),
    ("up_for_retry", "marked succeeded", "succeeded"),
    ("up_for_retry", "marked failed", "failed"),
    ("succeeded", "cleared", "pending"),
    ("failed", "cleared", "pending"),
    ("upstream_failed", "cleared", "pending"),
    ("skipped", "cleared", "pending"),
    ("cancelled", "cleared", "pending"),
];

#[test]
fn exactly_the_drawn_moves_are_legal() {
    for state in TaskState::ALL {
        for (name, event) in events() {
            let expected = LEGAL.iter().find(|(from, by, _)| *from == state.name() && *by == name);
            let mut task = at(state, 2);
            let before = task.clone();
            match (task.on(event, Instant::UNIX_EPOCH), expected) {
                (Ok(()), Some((_, _, to))) => assert_eq!(task.state.name(), *to, "{} + {name}", state.name()),
                (Err(_), None) => assert_eq!(task, before, "a refused move changes nothing"),
                (Ok(()), None) => {
                    panic!("{} + {name} was let through to {}", state.name(), task.state.name())
                }
                (Err(refused), Some(_)) => panic!("{refused}"),
            }
        }
    }
}

#[test]
fn a_final_task_moves_again_only_if_a_person_clears_it() {
    for state in TaskState::ALL.into_iter().filter(|state| state.is_final()) {
        for (_, event) in events().into_iter().filter(|(name, _)| *name != "cleared") {
            assert!(at(state, 2).on(event, Instant::UNIX_EPOCH).is_err());
        }
    }
}

#[test]
fn a_fan_out_that_ended_can_be_reopened_and_its_children_can_be_removed() {
    let fan = Some(Fan { first: TaskIndex(1), total: 1, released: 1, ended: Tally::default() });
    for state in TaskState::ALL {
        let mut fan_out = Task { fan, ..at(state, 1) };
        let reopened = fan_out.on(TaskEvent::Reopened, Instant::UNIX_EPOCH).is_ok();
        let ended = matches!(state, TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled);
        assert_eq!(reopened, ended, "{}", state.name());
        let mut child = Task { child: Some(Child { of: TaskIndex(0), item: 0 }), ..at(state, 1) };
        let removed = child.on(TaskEvent::Removed, Instant::UNIX_EPOCH).is_ok();
        assert_eq!(removed, state != TaskState::Removed, "{}", state.name());
    }
}

#[test]
fn clearing_a_task_takes_no_attempt() {
    for state in TaskState::ALL {
        let mut task = at(state, 2);
        let _ = task.on(TaskEvent::Cleared, Instant::UNIX_EPOCH);
        assert_eq!(task.attempt, 2, "{}", state.name());
    }
}

#[test]
fn attempts_before_a_task_was_cleared_deliver_nothing_any_more() {
    let now = Instant::UNIX_EPOCH;
    let mut task = at(TaskState::Running, 2);
    task.on(TaskEvent::Cleared, now).unwrap();
    task.on(TaskEvent::Readied, now).unwrap();
    assert_eq!((task.attempt, task.voided), (3, 2));
    for attempt in [1, 2] {
        assert!(task.on(TaskEvent::Succeeded { attempt }, now).is_err());
    }
    assert!(task.on(TaskEvent::Succeeded { attempt: 3 }, now).is_ok());
}

#[test]
fn each_try_has_a_number_of_its_own() {
    let mut task = Task::pending(TaskIndex(0), Instant::UNIX_EPOCH);
    for expected in 1..=3 {
        let ready = if expected == 1 { TaskEvent::Readied } else { TaskEvent::RetryDue };
        task.on(ready, Instant::UNIX_EPOCH).unwrap();
        task.on(TaskEvent::Released, Instant::UNIX_EPOCH).unwrap();
        assert_eq!(task.attempt, expected);
        task.on(errored(expected, true), Instant::UNIX_EPOCH).unwrap();
    }
}

#[test]
fn an_attempt_that_is_handed_back_has_a_number_of_its_own_and_is_no_try() {
    let mut task = at(TaskState::Running, 1);
    task.worker = Some(WorkerId(Uuid::nil()));
    task.started_at = Some(Instant::UNIX_EPOCH);
    task.on(TaskEvent::HandedBack { attempt: 1 }, Instant::UNIX_EPOCH).unwrap();
    assert_eq!((task.attempt, task.handed_back, task.tries()), (2, 1, 1));
    assert_eq!((task.worker, task.started_at), (None, None), "nobody has begun the next one");
}
