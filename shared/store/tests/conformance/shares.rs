//! Claims about tasks that several runs share.

use model::{Changes, RunId, TaskIndex, TaskKey, TaskState, TenantId};
use serde_json::{Value, json};
use store::{Error, Result, Share, ShareAsk};

use crate::Subject;
use crate::example::{TENANT, at, changes, create, example, key, new_run, run_id, step, version};

/// Asks for `rates` of a day, with successes from the 100th second on being fresh enough.
fn ask(by: TaskKey, day: &str) -> ShareAsk {
    ShareAsk {
        tenant: TENANT,
        name: "rates".to_owned(),
        key: day.to_owned(),
        by,
        attempt: 1,
        fresh_since: at(100),
    }
}

async fn share(store: &Subject, ask: &ShareAsk) -> Result<Share> {
    let mut unit = store.begin().await?;
    let share = unit.share(ask).await?;
    unit.commit().await?;
    Ok(share)
}

/// A run whose first task carries out `rates` of monday.
async fn owner(store: &Subject) -> RunId {
    let id = example(&**store, 1).await;
    assert_eq!(share(store, &ask(key(id, 0), "monday")).await.unwrap(), Share::Own);
    id
}

/// The first task of a run ends at that second, and with it what it carried out for all.
async fn end(store: &Subject, run: RunId, second: i64, output: Option<Value>) {
    step(&**store, run, |changes| {
        changes.tasks[0].state = TaskState::Succeeded;
        changes.tasks[0].finished_at = Some(at(second));
        changes.shares_ended = vec![(TaskIndex(0), true)];
        changes.outputs = output.map(|output| (TaskIndex(0), output)).into_iter().collect();
    })
    .await
    .unwrap();
}

async fn fail(store: &Subject, run: RunId) {
    let forget = |changes: &mut Changes| changes.shares_ended = vec![(TaskIndex(0), false)];
    step(&**store, run, forget).await.unwrap();
}

pub(crate) async fn the_first_task_that_asks_executes_it_and_the_others_wait(store: Subject) {
    let id = owner(&store).await;
    let (second, third) = (key(run_id(2), 4), key(run_id(3), 0));
    assert_eq!(share(&store, &ask(third, "monday")).await.unwrap(), Share::Wait(key(id, 0)));
    let later = ShareAsk { attempt: 3, ..ask(second, "monday") };
    assert_eq!(share(&store, &later).await.unwrap(), Share::Wait(key(id, 0)));
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), [(second, 3), (third, 1)]);
    assert_eq!(store.waiters(key(id, 0), 1).await.unwrap(), [(second, 3)]);
    assert_eq!(store.waiters(key(id, 1), 9).await.unwrap(), []);
}

pub(crate) async fn a_task_that_waits_says_for_whom(store: Subject) {
    let (id, other) = (owner(&store).await, example(&*store, 2).await);
    share(&store, &ask(key(other, 1), "monday")).await.unwrap();
    let waits = store.run_tasks(other, None, None, 9).await.unwrap();
    let waits: Vec<_> = waits.into_iter().map(|record| record.shared_with).collect();
    assert_eq!(waits, [None, Some(key(id, 0)), None]);
}

pub(crate) async fn the_owner_that_asks_again_still_owns_it(store: Subject) {
    let id = owner(&store).await;
    let again = ShareAsk { attempt: 2, ..ask(key(id, 0), "monday") };
    assert_eq!(share(&store, &again).await.unwrap(), Share::Own);
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), []);
}

pub(crate) async fn other_keys_names_and_tenants_are_other_work(store: Subject) {
    owner(&store).await;
    let by = key(run_id(2), 0);
    let others = [ask(by, "tuesday"), ShareAsk { name: "prices".to_owned(), ..ask(by, "monday") }];
    for other in others {
        assert_eq!(share(&store, &other).await.unwrap(), Share::Own);
    }
    let mut unit = store.begin().await.unwrap();
    let elsewhere = unit.share(&ShareAsk { tenant: TenantId(2), ..ask(by, "monday") }).await;
    assert!(!matches!(elsewhere, Ok(Share::Wait(_))), "{elsewhere:?}");
}

pub(crate) async fn keys_may_be_empty_long_or_hold_anything(store: Subject) {
    let long = "key ".repeat(5_000);
    let keys = ["", "a\0b", &format!("{long}1"), &format!("{long}2")];
    for (number, key_text) in (1..).zip(keys) {
        let (first, second) = (key(run_id(number), 0), key(run_id(number + 10), 0));
        assert_eq!(share(&store, &ask(first, key_text)).await.unwrap(), Share::Own);
        assert_eq!(share(&store, &ask(second, key_text)).await.unwrap(), Share::Wait(first));
    }
}

pub(crate) async fn a_fresh_success_is_reused_by_tasks_that_ask_later(store: Subject) {
    let id = owner(&store).await;
    end(&store, id, 100, Some(json!({"eur": 1}))).await;
    let reuse = Share::Reuse(key(id, 0), json!({"eur": 1}));
    assert_eq!(share(&store, &ask(key(run_id(2), 0), "monday")).await.unwrap(), reuse);
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), []);
}

pub(crate) async fn a_success_without_output_is_taken_as_null(store: Subject) {
    let id = owner(&store).await;
    end(&store, id, 120, None).await;
    let reuse = Share::Reuse(key(id, 0), Value::Null);
    assert_eq!(share(&store, &ask(key(run_id(2), 0), "monday")).await.unwrap(), reuse);
}

pub(crate) async fn an_old_success_is_executed_again(store: Subject) {
    let id = owner(&store).await;
    end(&store, id, 99, Some(json!(1))).await;
    let next = key(run_id(2), 0);
    assert_eq!(share(&store, &ask(next, "monday")).await.unwrap(), Share::Own);
    assert_eq!(share(&store, &ask(key(run_id(3), 0), "monday")).await.unwrap(), Share::Wait(next));
}

pub(crate) async fn what_was_executed_in_vain_is_executed_by_the_next(store: Subject) {
    let id = owner(&store).await;
    let next = key(run_id(2), 0);
    share(&store, &ask(next, "monday")).await.unwrap();
    fail(&store, id).await;
    assert_eq!(share(&store, &ask(next, "monday")).await.unwrap(), Share::Own);
    assert_eq!(share(&store, &ask(key(run_id(3), 0), "monday")).await.unwrap(), Share::Wait(next));
}

pub(crate) async fn a_share_ends_once(store: Subject) {
    let id = owner(&store).await;
    end(&store, id, 99, None).await;
    step(&*store, id, |changes| {
        changes.tasks[0].finished_at = Some(at(120));
        changes.shares_ended = vec![(TaskIndex(0), true)];
    })
    .await
    .unwrap();
    assert_eq!(share(&store, &ask(key(run_id(2), 0), "monday")).await.unwrap(), Share::Own);
    fail(&store, id).await;
    let other = share(&store, &ask(key(run_id(3), 0), "monday")).await.unwrap();
    assert_eq!(other, Share::Wait(key(run_id(2), 0)));
}

pub(crate) async fn a_wait_that_is_over_is_forgotten(store: Subject) {
    let id = owner(&store).await;
    let waits = example(&*store, 2).await;
    for task in [0, 1] {
        share(&store, &ask(key(waits, task), "monday")).await.unwrap();
    }
    step(&*store, waits, |changes| changes.waits_over = vec![TaskIndex(0), TaskIndex(2)]).await.unwrap();
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), [(key(waits, 1), 1)]);
}

pub(crate) async fn a_task_waits_for_one_owner_at_its_latest_attempt(store: Subject) {
    let id = owner(&store).await;
    let (waits, next) = (key(run_id(2), 0), key(run_id(3), 0));
    share(&store, &ask(waits, "monday")).await.unwrap();
    fail(&store, id).await;
    share(&store, &ask(next, "monday")).await.unwrap();
    let again = ShareAsk { attempt: 2, ..ask(waits, "monday") };
    assert_eq!(share(&store, &again).await.unwrap(), Share::Wait(next));
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), []);
    assert_eq!(store.waiters(next, 9).await.unwrap(), [(waits, 2)]);
}

pub(crate) async fn a_task_that_owns_or_reuses_an_execution_no_longer_waits(store: Subject) {
    let id = owner(&store).await;
    let (second, third) = (example(&*store, 2).await, key(run_id(3), 0));
    for waits in [key(second, 0), third] {
        share(&store, &ask(waits, "monday")).await.unwrap();
    }
    fail(&store, id).await;
    assert_eq!(share(&store, &ask(key(second, 0), "monday")).await.unwrap(), Share::Own);
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), [(third, 1)]);
    end(&store, second, 120, None).await;
    let reuse = Share::Reuse(key(second, 0), Value::Null);
    assert_eq!(share(&store, &ask(third, "monday")).await.unwrap(), reuse);
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), []);
}

/// A task that waited in vain asks again in the transaction that woke it, and then is in that state.
async fn wake_and_ask_again(store: &Subject, state: TaskState) -> Vec<(TaskKey, u32)> {
    let id = owner(store).await;
    let (waits, next) = (example(&**store, 2).await, key(run_id(3), 0));
    share(store, &ask(key(waits, 0), "monday")).await.unwrap();
    fail(store, id).await;
    share(store, &ask(next, "monday")).await.unwrap();

    let mut unit = store.begin().await.unwrap();
    let mut again = changes(unit.lock(&[waits]).await.unwrap().remove(0));
    again.tasks = vec![unit.tasks(&[key(waits, 0)]).await.unwrap().remove(0).1];
    assert_eq!(unit.share(&ask(key(waits, 0), "monday")).await.unwrap(), Share::Wait(next));
    again.tasks[0].state = state;
    again.tasks[0].finished_at = state.is_final().then(|| at(130));
    again.waits_over = vec![TaskIndex(0)];
    unit.save(&[again]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(store.waiters(key(id, 0), 9).await.unwrap(), []);
    store.waiters(next, 9).await.unwrap()
}

pub(crate) async fn a_task_that_asks_again_when_its_wait_is_over_waits_again(store: Subject) {
    assert_eq!(wake_and_ask_again(&store, TaskState::Sleeping).await, [(key(run_id(2), 0), 1)]);
}

pub(crate) async fn a_task_that_ended_waits_for_nothing(store: Subject) {
    assert_eq!(wake_and_ask_again(&store, TaskState::Cancelled).await, []);
}

pub(crate) async fn a_dropped_unit_shares_nothing(store: Subject) {
    let (first, second) = (key(run_id(1), 0), key(run_id(2), 0));
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.share(&ask(first, "monday")).await.unwrap(), Share::Own);
    drop(unit);
    assert_eq!(share(&store, &ask(second, "monday")).await.unwrap(), Share::Own);
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.share(&ask(first, "monday")).await.unwrap(), Share::Wait(second));
    drop(unit);
    assert_eq!(store.waiters(second, 9).await.unwrap(), []);
}

pub(crate) async fn a_run_may_share_before_it_is_created(store: Subject) {
    let id = run_id(1);
    let mut new_run = new_run(id, version(&*store).await, 1);
    new_run.changes.tasks[0].state = TaskState::Succeeded;
    new_run.changes.tasks[0].finished_at = Some(at(120));
    new_run.changes.shares_ended = vec![(TaskIndex(0), true)];
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.share(&ask(key(id, 0), "monday")).await.unwrap(), Share::Own);
    unit.create(&[new_run]).await.unwrap();
    let reuse = Share::Reuse(key(id, 0), Value::Null);
    assert_eq!(unit.share(&ask(key(run_id(2), 0), "monday")).await.unwrap(), reuse);
    unit.commit().await.unwrap();
    assert_eq!(share(&store, &ask(key(run_id(3), 0), "monday")).await.unwrap(), reuse);
}

pub(crate) async fn of_many_that_ask_at_once_one_carries_it_out(store: Subject) {
    let asked = |number| {
        let store = store.clone();
        async move { share(&store, &ask(key(run_id(number), 0), "monday")).await.unwrap() }
    };
    let (a, b, c, d) = tokio::join!(asked(1), asked(2), asked(3), asked(4));
    let all = [a, b, c, d];
    let owner = 1 + all.iter().position(|share| *share == Share::Own).unwrap() as u128;
    let waits = all.iter().filter(|share| **share == Share::Wait(key(run_id(owner), 0))).count();
    assert_eq!((waits, store.waiters(key(run_id(owner), 0), 9).await.unwrap().len()), (3, 3));
}

/// A second task asks while the transaction of the first one is open; then that transaction ends.
async fn second_of_two(store: &Subject, commit: bool) -> Share {
    let mut first = store.begin().await.unwrap();
    first.share(&ask(key(run_id(1), 0), "monday")).await.unwrap();
    let second = tokio::spawn({
        let store = store.clone();
        async move { share(&store, &ask(key(run_id(2), 0), "monday")).await.unwrap() }
    });
    // However far the second one comes meanwhile, it must find what is true once the first one's unit has ended.
    tokio::task::yield_now().await;
    store.ping().await.unwrap();
    if commit {
        first.commit().await.unwrap();
    } else {
        drop(first);
    }
    second.await.unwrap()
}

pub(crate) async fn a_task_that_asks_meanwhile_finds_what_was_committed(store: Subject) {
    assert_eq!(second_of_two(&store, true).await, Share::Wait(key(run_id(1), 0)));
}

pub(crate) async fn a_task_that_asks_meanwhile_replaces_an_owner_that_gave_up(store: Subject) {
    assert_eq!(second_of_two(&store, false).await, Share::Own);
}

async fn ask_both(store: &Subject, number: u128, days: [&str; 2]) -> Result<()> {
    let mut unit = store.begin().await?;
    for (task, day) in (0..).zip(days) {
        unit.share(&ask(key(run_id(number), task), day)).await?;
    }
    unit.commit().await.map(drop)
}

pub(crate) async fn units_that_ask_in_opposite_order_at_worst_decide_again(store: Subject) {
    for round in 0..5 {
        let days = [format!("monday {round}"), format!("tuesday {round}")];
        let (one, two) = ([&*days[0], &*days[1]], [&*days[1], &*days[0]]);
        let (a, b) = tokio::join!(ask_both(&store, 1, one), ask_both(&store, 2, two));
        for asked in [&a, &b] {
            assert!(matches!(asked, Ok(()) | Err(Error::Conflict)), "{asked:?}");
        }
        assert!(a.is_ok() || b.is_ok());
    }
}

pub(crate) async fn shares_of_runs_that_exist_end_with_them(store: Subject) {
    let id = run_id(7);
    create(&*store, &new_run(id, version(&*store).await, 3)).await.unwrap();
    for day in ["monday", "tuesday"] {
        share(&store, &ask(key(id, 0), day)).await.unwrap();
    }
    end(&store, id, 130, Some(json!(1))).await;
    for day in ["monday", "tuesday"] {
        let reuse = Share::Reuse(key(id, 0), json!(1));
        assert_eq!(share(&store, &ask(key(run_id(2), 0), day)).await.unwrap(), reuse);
    }
}
