//! Claims about workers, the attempts they hold and the commands they receive.

use model::{Instant, TaskState, WorkerCommand, WorkerCommandKind};
use store::{Claim, Heartbeat, HeartbeatReply, Silence, Store};

use crate::Subject;
use crate::example::{at, example, hold, key, run_id, step, worker};

fn held(run: u128, task: u32, attempt: u32, by: u128) -> Claim {
    Claim { key: key(run_id(run), task), attempt, worker: worker(by) }
}

fn silence(by: u128, second: i64) -> Silence {
    Silence { worker: worker(by), heartbeat_at: at(second) }
}

fn command(kind: WorkerCommandKind, second: i64) -> WorkerCommand {
    WorkerCommand { kind, actor: "ada".into(), reason: Some("it \0 hangs".into()), at: at(second) }
}

pub(crate) async fn beat(store: &dyn Store, by: u128, second: i64) -> HeartbeatReply {
    store.beat(&Heartbeat { worker: worker(by), facts: None, at: at(second) }).await.unwrap()
}

pub(crate) async fn a_beat_names_what_the_worker_holds(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(0, 1), (1, 2), (2, 1)] {
        hold(&*store, id, task, worker(by)).await;
    }
    step(&*store, id, |changes| {
        changes.tasks[2].state = TaskState::Cancelled;
        changes.tasks[2].worker = None;
        changes.tasks[2].finished_at = Some(at(1));
    })
    .await
    .unwrap();
    assert_eq!(beat(&*store, 1, 1).await, HeartbeatReply { holds: vec![held(1, 0, 1, 1)], command: None });
    assert_eq!(beat(&*store, 3, 2).await, HeartbeatReply { holds: vec![], command: None });
}

pub(crate) async fn attempts_of_a_silent_worker_are_lost(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(2, 1), (0, 1), (1, 2)] {
        beat(&*store, by, 10).await;
        hold(&*store, id, task, worker(by)).await;
    }
    beat(&*store, 2, 20).await;
    assert_eq!(store.silent(at(10), 9).await.unwrap(), []);
    let silent = store.silent(at(11), 9).await.unwrap();
    assert_eq!(silent, [silence(1, 10)]);
    assert_eq!(store.lost(&silent, 9).await.unwrap(), [held(1, 0, 1, 1), held(1, 2, 1, 1)]);
    let silent = store.silent(at(21), 9).await.unwrap();
    assert_eq!(silent, [silence(1, 10), silence(2, 20)]);
    assert_eq!(store.silent(at(21), 1).await.unwrap(), [silence(1, 10)]);
    assert_eq!(store.lost(&silent, 2).await.unwrap(), [held(1, 0, 1, 1), held(1, 1, 1, 2)]);
}

pub(crate) async fn a_worker_that_sends_a_heartbeat_again_loses_nothing_and_is_not_forgotten(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(0, 1), (1, 2)] {
        beat(&*store, by, 10).await;
        hold(&*store, id, task, worker(by)).await;
    }
    let silent = store.silent(at(11), 9).await.unwrap();
    // Its clock may be far behind: any other instant is a sign of life.
    beat(&*store, 1, 11).await;
    assert_eq!(store.lost(&silent, 9).await.unwrap(), [held(1, 1, 1, 2)]);
    assert_eq!(store.forget_workers(&silent).await.unwrap(), 1);
    assert_eq!(store.silent(at(99), 9).await.unwrap(), [silence(1, 11)]);
}

pub(crate) async fn attempts_of_a_worker_that_never_registered_are_lost(store: Subject) {
    let id = example(&*store, 1).await;
    hold(&*store, id, 0, worker(1)).await;
    assert_eq!(store.lost(&[], 9).await.unwrap(), [held(1, 0, 1, 1)]);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(Instant::UNIX_EPOCH));
}

pub(crate) async fn attempts_of_a_worker_that_left_are_lost_at_once(store: Subject) {
    let id = example(&*store, 1).await;
    beat(&*store, 1, 10).await;
    hold(&*store, id, 0, worker(1)).await;
    assert_eq!(store.farewell(worker(1)).await.unwrap(), None);
    assert_eq!(store.farewell(worker(1)).await.unwrap(), None);
    assert_eq!(store.lost(&[], 9).await.unwrap(), [held(1, 0, 1, 1)]);
}

pub(crate) async fn a_beat_that_was_overtaken_does_not_turn_time_back(store: Subject) {
    beat(&*store, 1, 20).await;
    beat(&*store, 1, 10).await;
    let heartbeat_at = store.agenda(at(0)).await.unwrap().worker.unwrap();
    assert!(
        heartbeat_at > at(20) && heartbeat_at < at(21),
        "it counts as a sign of life all the same: {heartbeat_at}"
    );
}

pub(crate) async fn silent_workers_are_forgotten(store: Subject) {
    for (by, second) in [(1, 10), (2, 20), (3, 30)] {
        beat(&*store, by, second).await;
    }
    let silent = store.silent(at(30), 9).await.unwrap();
    assert_eq!(store.forget_workers(&silent).await.unwrap(), 2);
    assert_eq!(store.forget_workers(&silent).await.unwrap(), 0);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(at(30)));
}

pub(crate) async fn a_worker_receives_its_command_with_its_next_heartbeat_or_when_it_leaves(store: Subject) {
    beat(&*store, 1, 10).await;
    let told =
        WorkerCommand { reason: Some("it \u{FFFD} hangs".into()), ..command(WorkerCommandKind::Drain, 11) };
    let stands = store.command_worker(worker(1), &command(WorkerCommandKind::Drain, 11)).await.unwrap();
    assert_eq!(stands.as_ref(), Some(&told));
    assert_eq!(beat(&*store, 1, 12).await.command.as_ref(), Some(&told));
    assert_eq!(store.farewell(worker(1)).await.unwrap(), Some(told));
}

pub(crate) async fn of_several_orders_the_first_stands_unless_it_is_to_be_killed(store: Subject) {
    let (drain, kill) = (WorkerCommandKind::Drain, WorkerCommandKind::Kill);
    beat(&*store, 1, 10).await;
    for (given, second, stands) in
        [(drain, 11, 11), (drain, 12, 11), (kill, 13, 13), (drain, 14, 13), (kill, 15, 13)]
    {
        let standing = store.command_worker(worker(1), &command(given, second)).await.unwrap().unwrap();
        assert_eq!(standing.at, at(stands), "{given:?} at {second}");
    }
}

pub(crate) async fn nobody_can_be_told_anything_who_is_not_known(store: Subject) {
    assert_eq!(store.command_worker(worker(1), &command(WorkerCommandKind::Kill, 1)).await.unwrap(), None);
    assert_eq!(beat(&*store, 1, 2).await.command, None);
}
