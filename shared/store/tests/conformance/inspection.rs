//! Claims about the inspection, which finds rows that should not exist.

use model::change::Recheck;
use model::{Counts, TaskEvent, TaskIndex, TaskState, Timer, TimerKind};
use store::{DeadLetter, Fault, Finding, Inspection};

use crate::Subject;
use crate::example::{at, event, example, nudge, record, run, step};

async fn faults(store: &Subject, second: i64) -> Vec<(Fault, u32)> {
    let found = store.inspect(at(second), None).await.unwrap().findings;
    found.into_iter().map(|finding| (finding.fault, finding.count)).collect()
}

pub(crate) async fn an_empty_store_is_in_order(store: Subject) {
    assert_eq!(store.inspect(at(0), None).await.unwrap(), Inspection::default());
}

pub(crate) async fn what_is_overdue_is_found_with_its_age(store: Subject) {
    let id = example(&*store, 1).await;
    step(&*store, id, |changes| {
        changes.recheck = Recheck::At(at(50));
        changes.timers =
            vec![Timer { task: Some(TaskIndex(0)), attempt: 1, kind: TimerKind::Retry, wake_at: at(10) }];
        record(changes, &[event(5)]);
        changes.outbox.push(nudge(changes.run.id));
    })
    .await
    .unwrap();
    assert_eq!(faults(&store, 60).await, []);
    let finding = |fault, second| Finding { fault, run: None, count: 1, since: Some(at(second)) };
    let found = store.inspect(at(1_000), None).await.unwrap().findings;
    assert_eq!(
        found[..3],
        [
            finding(Fault::OverdueTimers, 10),
            finding(Fault::UnsentMessages, 5),
            finding(Fault::OverdueRechecks, 50)
        ]
    );
    let (source, reason, body) = ("s".to_owned(), "r".to_owned(), String::new());
    let letter = DeadLetter { id: "1".to_owned(), source, reason, body, at: at(0) };
    store.insert_dead_letter(&letter).await.unwrap();
    assert!(faults(&store, 60).await.contains(&(Fault::DeadLetters, 1)));
}

pub(crate) async fn a_run_in_which_nothing_moves_is_found(store: Subject) {
    let id = example(&*store, 1).await;
    assert_eq!(faults(&store, 0).await, [(Fault::NoRecheck, 1)]);
    let version = run(&*store, id).await.version;
    assert_eq!(store.inspect(at(0), None).await.unwrap().versions, [(id, version)]);
    step(&*store, id, |changes| changes.recheck = Recheck::At(at(9_999))).await.unwrap();
    assert_eq!(faults(&store, 119).await, []);
    assert_eq!(faults(&store, 120).await, [(Fault::AtRest, 3)]);
    step(&*store, id, |changes| {
        changes.tasks[0].on(TaskEvent::Readied, at(0)).unwrap();
        changes.tasks[0].on(TaskEvent::Released, at(0)).unwrap();
        changes.run.counts.moved(TaskState::Pending, TaskState::Dispatched);
    })
    .await
    .unwrap();
    assert_eq!(faults(&store, 119).await, []);
    assert_eq!(faults(&store, 120).await, [(Fault::UnclaimedTasks, 1)]);
}

pub(crate) async fn counts_that_do_not_fit_are_found_and_audited(store: Subject) {
    let id = example(&*store, 1).await;
    let right = run(&*store, id).await.counts;
    step(&*store, id, |changes| {
        changes.run.counts = Counts::all_pending(7);
        changes.recheck = Recheck::At(at(9_999));
    })
    .await
    .unwrap();
    assert_eq!(faults(&store, 0).await, [(Fault::WrongCounts, 1)]);
    let mut unit = store.begin().await.unwrap();
    unit.lock(&[id]).await.unwrap();
    let audit = unit.audit(id).await.unwrap();
    assert_eq!((audit.counts, audit.ended_badly, audit.orphaned_timers), (right, vec![], vec![]));
}

pub(crate) async fn every_unfinished_run_is_looked_at_page_by_page(store: Subject) {
    for number in 1..=60 {
        example(&*store, number).await;
    }
    let first = store.inspect(at(0), None).await.unwrap();
    let second = store.inspect(at(0), first.next).await.unwrap();
    assert_eq!((first.findings.len(), second.findings.len(), second.next), (50, 10, None));
}
