//! Places and lines: who has one, who is next.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use engine::Allocator;
use model::{Admission, Granted, Limit, Needed, SlotRelease, SlotRequest, TaskKey, TenantId};
use store::{BackfillRecord, BackfillState, Store};

use crate::Subject;
use crate::admission::{admit, allocate, decide};
use crate::backfills::made;
use crate::example::{TENANT, at, key, run_id};

fn pool() -> Limit {
    Limit::Pool(TENANT, "warehouse".into())
}

pub(crate) fn queue() -> Limit {
    Limit::Queue("light".into())
}

/// The first task of a run of this number asks.
fn ask(number: u128, needs: &[Limit]) -> SlotRequest {
    let needs = needs.iter().map(|limit| Needed { limit: limit.clone(), slots: None }).collect();
    let (tenant, priority, since, waited) = (TENANT, 0, at(0), false);
    SlotRequest {
        key: key(run_id(number), 0),
        attempt: 1,
        tenant,
        backfill: None,
        priority,
        since,
        waited,
        needs,
    }
}

/// It asks again, after it acquired a slot or had to wait.
fn again(ask: &SlotRequest) -> SlotRequest {
    SlotRequest { waited: true, ..ask.clone() }
}

pub(crate) fn leave(ask: &SlotRequest, holds_slots: bool) -> SlotRelease {
    SlotRelease { key: ask.key, holds_slots, needs: ask.needs.clone() }
}

fn granted(ask: &SlotRequest) -> Granted {
    Granted { key: ask.key, attempt: ask.attempt }
}

async fn used(store: &dyn Store, limit: &Limit) -> (u32, u32) {
    let limits = store.limits(TENANT).await.unwrap();
    limits.iter().find(|row| row.limit == *limit).map(|row| (row.used, row.waiting)).unwrap()
}

/// Lets one of those who have a slot leave, and takes over the place that is granted for it, until nobody waits.
/// Answers in which order they came.
pub(crate) async fn drain(
    store: &dyn Store,
    asks: &BTreeMap<TaskKey, SlotRequest>,
    first: &SlotRequest,
    most: usize,
) -> Vec<SlotRequest> {
    let mut order = Vec::new();
    let mut on = first.clone();
    while order.len() < most {
        let (_, granted_now) = admit(store, &[], &[leave(&on, true)]).await;
        let Some(next) = granted_now.first() else { return order };
        assert_eq!(granted_now.len(), 1, "one slot was given back");
        on = asks[&next.key].clone();
        let (admissions, _) = admit(store, &[again(&on)], &[]).await;
        assert_eq!(admissions, [Admission::Acquired]);
        order.push(on.clone());
    }
    order
}

/// Requests of a tenant for slots of the queue, numbered from `from` on.
pub(crate) fn crowd(tenant: TenantId, from: u128, count: u128) -> Vec<SlotRequest> {
    (from..from + count).map(|number| SlotRequest { tenant, ..ask(number, &[queue()]) }).collect()
}

/// One task has the only slot of the queue, and all these wait behind it.
pub(crate) async fn behind_one(
    store: &dyn Store,
    crowds: &[Vec<SlotRequest>],
) -> (SlotRequest, BTreeMap<TaskKey, SlotRequest>) {
    store.set_slots(&queue(), Some(1)).await.unwrap();
    let first = ask(0, &[queue()]);
    assert_eq!(admit(store, std::slice::from_ref(&first), &[]).await.0, [Admission::Acquired]);
    for crowd in crowds {
        let (admissions, _) = admit(store, crowd, &[]).await;
        assert!(admissions.iter().all(|admission| *admission == Admission::Waiting(queue())));
    }
    (first, crowds.iter().flatten().map(|ask| (ask.key, ask.clone())).collect())
}

pub(crate) async fn slots_are_acquired_while_some_are_free_and_then_tasks_wait(store: Subject) {
    store.set_slots(&pool(), Some(2)).await.unwrap();
    let asks = [ask(1, &[pool()]), ask(2, &[pool()]), ask(3, &[pool()])];
    let (admissions, granted_now) = admit(&*store, &asks, &[]).await;
    assert_eq!(admissions, [Admission::Acquired, Admission::Acquired, Admission::Waiting(pool())]);
    assert_eq!(granted_now, []);
    assert_eq!(used(&*store, &pool()).await, (2, 1));
}

pub(crate) async fn a_task_that_leaves_lets_the_next_begin(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let (first, second) = (ask(1, &[pool()]), ask(2, &[pool()]));
    admit(&*store, &[first.clone(), second.clone()], &[]).await;
    let (_, granted_now) = admit(&*store, &[], &[leave(&first, true)]).await;
    assert_eq!(granted_now, [granted(&second)]);
    assert_eq!(used(&*store, &pool()).await, (1, 0), "the slot is promised");
    assert!(store.slot_wait(second.key).await.unwrap().unwrap().granted);
}

pub(crate) async fn a_grant_is_taken_over_once(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let (first, second) = (ask(1, &[pool()]), ask(2, &[pool()]));
    admit(&*store, &[first.clone(), second.clone()], &[leave(&first, false)]).await;
    admit(&*store, &[], &[leave(&first, true)]).await;
    assert_eq!(store.untaken(at(1), 10).await.unwrap(), [granted(&second)]);
    assert_eq!(store.agenda(at(1)).await.unwrap().granted, Some(at(1)));
    assert_eq!(admit(&*store, &[again(&second)], &[]).await.0, [Admission::Acquired]);
    assert_eq!(used(&*store, &pool()).await, (1, 0));
    assert_eq!(store.slot_wait(second.key).await.unwrap(), None);
    assert_eq!(store.untaken(at(9), 10).await.unwrap(), []);
}

pub(crate) async fn asking_again_changes_nothing(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let (first, second) = (ask(1, &[pool()]), ask(2, &[pool()]));
    admit(&*store, &[first, second.clone()], &[]).await;
    let before = store.slot_wait(second.key).await.unwrap();
    assert_eq!(admit(&*store, &[again(&second)], &[]).await.0, [Admission::StillWaiting]);
    assert_eq!(store.slot_wait(second.key).await.unwrap(), before);
    assert_eq!(used(&*store, &pool()).await, (1, 1));
}

pub(crate) async fn a_task_that_leaves_the_wait_queue_is_forgotten(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let asks = [ask(1, &[pool()]), ask(2, &[pool()]), ask(3, &[pool()])];
    admit(&*store, &asks, &[]).await;
    admit(&*store, &[], &[leave(&asks[1], false)]).await;
    assert_eq!(used(&*store, &pool()).await, (1, 1));
    let (_, granted_now) = admit(&*store, &[], &[leave(&asks[0], true)]).await;
    assert_eq!(granted_now, [granted(&asks[2])]);
}

pub(crate) async fn a_grant_that_is_not_taken_goes_to_the_next(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let asks = [ask(1, &[pool()]), ask(2, &[pool()]), ask(3, &[pool()])];
    admit(&*store, &asks, &[]).await;
    admit(&*store, &[], &[leave(&asks[0], true)]).await;
    let (_, granted_now) = admit(&*store, &[], &[leave(&asks[1], false)]).await;
    assert_eq!(granted_now, [granted(&asks[2])], "the second was cancelled before it began");
}

pub(crate) async fn what_is_given_back_goes_to_the_next_and_only_at_that_attempt(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let asks = [ask(1, &[pool()]), ask(2, &[pool()]), ask(3, &[pool()])];
    admit(&*store, &asks, &[]).await;
    admit(&*store, &[], &[leave(&asks[0], true)]).await;
    let give_back =
        async |granted: Granted| allocate(&*store, Allocator::give_back(vec![granted], at(1))).await.1;
    assert_eq!(give_back(Granted { attempt: 7, ..granted(&asks[1]) }).await, []);
    assert_eq!(give_back(granted(&asks[2])).await, [], "it still waits");
    assert_eq!(give_back(granted(&asks[1])).await, [granted(&asks[2])]);
    assert_eq!(used(&*store, &pool()).await, (1, 0));
}

pub(crate) async fn a_dropped_transaction_takes_no_slot(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    let requests = vec![ask(1, &[pool()]), ask(2, &[pool()])];
    decide(&mut *unit, Allocator::admit(requests, Vec::new(), at(1))).await;
    drop(unit);
    assert_eq!(admit(&*store, &[ask(3, &[pool()])], &[]).await.0, [Admission::Acquired]);
    assert_eq!(used(&*store, &pool()).await, (1, 0));
}

pub(crate) async fn a_task_needs_a_slot_of_every_limit(store: Subject) {
    store.set_slots(&pool(), Some(1)).await.unwrap();
    store.set_slots(&queue(), Some(1)).await.unwrap();
    let both = [pool(), queue()];
    let (other, first, second) = (ask(1, &[queue()]), ask(2, &both), ask(3, &both));
    let (admissions, _) = admit(&*store, &[other.clone(), first.clone(), second.clone()], &[]).await;
    assert_eq!(admissions, [Admission::Acquired, Admission::Waiting(queue()), Admission::Waiting(pool())]);
    let (_, granted_now) = admit(&*store, &[], &[leave(&other, true)]).await;
    assert_eq!(granted_now, [granted(&first)], "it has the pool's place already");
    assert_eq!(admit(&*store, &[again(&first)], &[]).await.0, [Admission::Acquired]);
    let (_, granted_now) = admit(&*store, &[], &[leave(&first, true)]).await;
    assert_eq!(granted_now, [granted(&second)], "it gets both at once");
    assert_eq!((used(&*store, &pool()).await, used(&*store, &queue()).await), ((1, 0), (1, 0)));
}

pub(crate) async fn what_a_workflow_says_of_its_slots_stands(store: Subject) {
    let limit = Limit::Workflow(TENANT, "example".into());
    let says = |number, slots| {
        let needs = vec![Needed { limit: limit.clone(), slots: Some(slots) }];
        SlotRequest { needs, ..ask(number, &[]) }
    };
    let (admissions, _) = admit(&*store, &[says(1, 1), says(2, 1)], &[]).await;
    assert_eq!(admissions, [Admission::Acquired, Admission::Waiting(limit.clone())]);
    let (admissions, granted_now) = admit(&*store, &[says(3, 3)], &[]).await;
    assert_eq!(admissions, [Admission::Waiting(limit)], "tasks that wait come first");
    assert_eq!(granted_now.len(), 2, "there are three slots now");
}

pub(crate) async fn a_limit_that_nobody_has_set_has_the_usual_slots(store: Subject) {
    let asks: Vec<SlotRequest> =
        (0..11).map(|number| ask(number, &[pool(), Limit::Tenant(TENANT)])).collect();
    let (admissions, _) = admit(&*store, &asks, &[]).await;
    assert_eq!(admissions.iter().filter(|admission| **admission == Admission::Acquired).count(), 10);
    let limits = store.limits(TENANT).await.unwrap();
    let slots: Vec<_> = limits.iter().map(|row| (row.limit.kind(), row.slots)).collect();
    assert_eq!(slots, [("pool", Some(10)), ("tenant", None)]);
}

pub(crate) async fn raised_slots_are_granted(store: Subject) {
    store.set_slots(&pool(), Some(0)).await.unwrap();
    let asks = [ask(1, &[pool()]), ask(2, &[pool()]), ask(3, &[pool()])];
    admit(&*store, &asks, &[]).await;
    assert!(!store.agenda(at(1)).await.unwrap().room);
    store.set_slots(&pool(), Some(2)).await.unwrap();
    assert!(store.agenda(at(1)).await.unwrap().room, "someone waits for a slot that is free");
    let (_, granted_now) = allocate(&*store, Allocator::grant(at(1))).await;
    assert_eq!(granted_now, [granted(&asks[0]), granted(&asks[1])]);
    assert!(!store.agenda(at(1)).await.unwrap().room);
}

pub(crate) async fn one_task_behind_many_of_another_tenant_comes_in_the_next_round(store: Subject) {
    let other = store.tenant("other", at(0)).await.unwrap();
    let (first, asks) = behind_one(&*store, &[crowd(TENANT, 100, 300), crowd(other, 900, 1)]).await;
    let order = drain(&*store, &asks, &first, 3).await;
    let place = order.iter().position(|ask| ask.tenant == other);
    assert!(place.is_some_and(|place| place <= 1), "it came as number {place:?}");
}

pub(crate) async fn tenants_come_by_their_weights(store: Subject) {
    let heavy = store.tenant("heavy", at(0)).await.unwrap();
    store.set_weight(heavy, 3).await.unwrap();
    let (first, asks) = behind_one(&*store, &[crowd(TENANT, 100, 60), crowd(heavy, 900, 180)]).await;
    let order = drain(&*store, &asks, &first, 200).await;
    let heavies = order.iter().filter(|ask| ask.tenant == heavy).count();
    assert!((148..=152).contains(&heavies), "{heavies} of 200 came from the tenant of weight three");
}

pub(crate) async fn a_backfill_takes_turns_by_its_weight_and_lets_live_tasks_go_first(store: Subject) {
    let backfill = made(&store, 1).await;
    let behind = |from: u128, count: u128| -> Vec<SlotRequest> {
        let of_backfill = |ask| SlotRequest { backfill: Some(backfill.id), priority: -100, ..ask };
        crowd(TENANT, from, count).into_iter().map(of_backfill).collect()
    };
    let crowds = [behind(100, 20), crowd(TENANT, 1, 40)];
    let (first, asks) = behind_one(&*store, &crowds).await;
    let order = drain(&*store, &asks, &first, 40).await;
    let place = |one: &SlotRequest| one.backfill.is_none();
    assert!(order[..1].iter().all(place), "a live task goes first, even if it comes later");
    let of_backfill = order[..26].iter().filter(|one| one.backfill.is_some()).count();
    assert_eq!(of_backfill, 6, "three for each ten of the others");
    // Its turns are forgotten with it.
    let (state, finished_at) = (BackfillState::Finished, Some(at(1)));
    store.save_backfill(&BackfillRecord { state, finished_at, due_at: None, ..backfill }).await.unwrap();
    assert_eq!(store.forget_backfills(at(2)).await.unwrap(), 1);
}

pub(crate) async fn higher_priority_comes_first_within_a_tenant(store: Subject) {
    let urgent = SlotRequest { priority: 10, ..ask(500, &[queue()]) };
    let lines = [crowd(TENANT, 100, 20), vec![urgent.clone()]];
    let (first, asks) = behind_one(&*store, &lines).await;
    let order = drain(&*store, &asks, &first, 30).await;
    assert_eq!(order[0].key, urgent.key);
    assert_eq!(order.len(), 21, "and nobody was left out");
}

pub(crate) async fn low_priority_does_not_starve(store: Subject) {
    let patient = SlotRequest { priority: -5, ..ask(500, &[queue()]) };
    let urgent = |number: u128, minute: i64| SlotRequest {
        priority: 5,
        since: at(0) + TimeDelta::minutes(minute),
        ..ask(number, &[queue()])
    };
    let soon: Vec<SlotRequest> = (0..5).map(|minute| urgent(600 + minute as u128, minute)).collect();
    let late: Vec<SlotRequest> = (11..16).map(|minute| urgent(700 + minute as u128, minute)).collect();
    let (first, asks) = behind_one(&*store, &[late.clone(), vec![patient.clone()], soon]).await;
    let order = drain(&*store, &asks, &first, 30).await;
    let place = order.iter().position(|ask| ask.key == patient.key);
    assert_eq!(place, Some(5), "ten steps of priority are worth ten minutes, and no more");
}

pub(crate) async fn of_many_that_ask_at_once_no_more_are_given_than_there_are(store: Subject) {
    store.set_slots(&pool(), Some(5)).await.unwrap();
    let asks = (0..20).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { admit(&*store, &[ask(number, &[pool(), queue()])], &[]).await.0.remove(0) })
    });
    let mut given = 0;
    for asked in asks.collect::<Vec<_>>() {
        given += usize::from(asked.await.unwrap() == Admission::Acquired);
    }
    assert_eq!(given, 5);
    assert_eq!(used(&*store, &pool()).await, (5, 15));
}

pub(crate) async fn when_many_leave_at_once_every_waiter_gets_a_turn(store: Subject) {
    store.set_slots(&queue(), Some(10)).await.unwrap();
    let under_way: Vec<SlotRequest> = (0..10).map(|number| ask(number, &[queue()])).collect();
    admit(&*store, &under_way, &[]).await;
    let waiting: Vec<SlotRequest> = (10..20).map(|number| ask(number, &[pool(), queue()])).collect();
    admit(&*store, &waiting, &[]).await;
    let leaving = under_way.into_iter().map(|ask| {
        let store = store.clone();
        tokio::spawn(async move { admit(&*store, &[], &[leave(&ask, true)]).await.1 })
    });
    let mut received = Vec::new();
    for left in leaving.collect::<Vec<_>>() {
        received.extend(left.await.unwrap());
    }
    while store.agenda(at(1)).await.unwrap().room {
        received.extend(allocate(&*store, Allocator::grant(at(1))).await.1);
    }
    received.sort_unstable();
    assert_eq!(received, waiting.iter().map(granted).collect::<Vec<_>>());
}

pub(crate) async fn readers_see_limits_and_wait_queues(store: Subject) {
    let (_, _) = behind_one(&*store, &[crowd(TENANT, 100, 3)]).await;
    let limits = store.limits(TENANT).await.unwrap();
    let seen: Vec<_> = limits.iter().map(|row| (&row.limit, row.slots, row.used, row.waiting)).collect();
    assert_eq!(seen, [(&queue(), Some(1), 1, 3)]);
    assert_eq!(limits[0].oldest, Some(at(0)));
    let last = store.slot_wait(key(run_id(102), 0)).await.unwrap().unwrap();
    assert_eq!((last.limit, last.ahead, last.used, last.granted), (queue(), 2, 1, false));
    assert_eq!(store.slot_wait(key(run_id(999), 0)).await.unwrap(), None);
}
