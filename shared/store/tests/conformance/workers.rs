//! Claims about workers and what they hold.

use model::{Instant, TaskState};
use store::Held;

use crate::Subject;
use crate::example::{at, example, hold, key, run_id, step, worker};

fn held(run: u128, task: u32, attempt: u32, by: u128) -> Held {
    Held { key: key(run_id(run), task), attempt, worker: worker(by) }
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
    assert_eq!(store.beat(worker(1), at(1)).await.unwrap(), [held(1, 0, 1, 1)]);
    assert_eq!(store.beat(worker(3), at(2)).await.unwrap(), []);
}

pub(crate) async fn attempts_of_a_silent_worker_are_lost(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(2, 1), (0, 1), (1, 2)] {
        store.beat(worker(by), at(10)).await.unwrap();
        hold(&*store, id, task, worker(by)).await;
    }
    store.beat(worker(2), at(20)).await.unwrap();
    assert_eq!(store.lost(at(10), 9).await.unwrap(), []);
    assert_eq!(store.lost(at(11), 9).await.unwrap(), [held(1, 0, 1, 1), held(1, 2, 1, 1)]);
    assert_eq!(store.lost(at(21), 2).await.unwrap(), [held(1, 0, 1, 1), held(1, 1, 1, 2)]);
}

pub(crate) async fn attempts_of_a_worker_that_never_registered_are_lost(store: Subject) {
    let id = example(&*store, 1).await;
    hold(&*store, id, 0, worker(1)).await;
    assert_eq!(store.lost(at(0), 9).await.unwrap(), [held(1, 0, 1, 1)]);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(Instant::UNIX_EPOCH));
}

pub(crate) async fn attempts_of_a_worker_that_left_are_lost_at_once(store: Subject) {
    let id = example(&*store, 1).await;
    store.beat(worker(1), at(10)).await.unwrap();
    hold(&*store, id, 0, worker(1)).await;
    store.farewell(worker(1)).await.unwrap();
    store.farewell(worker(1)).await.unwrap();
    assert_eq!(store.lost(at(0), 9).await.unwrap(), [held(1, 0, 1, 1)]);
}

pub(crate) async fn a_beat_that_was_overtaken_does_not_turn_time_back(store: Subject) {
    store.beat(worker(1), at(20)).await.unwrap();
    store.beat(worker(1), at(10)).await.unwrap();
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(at(20)));
}

pub(crate) async fn silent_workers_are_forgotten(store: Subject) {
    for (by, second) in [(1, 10), (2, 20), (3, 30)] {
        store.beat(worker(by), at(second)).await.unwrap();
    }
    assert_eq!(store.forget_workers(at(30)).await.unwrap(), 2);
    assert_eq!(store.forget_workers(at(30)).await.unwrap(), 0);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(at(30)));
}
