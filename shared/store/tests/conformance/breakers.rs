//! Claims about circuit breakers.

use std::collections::BTreeMap;

use engine::Allocator;
use model::{
    Admission, Breaker, BreakerGate, BreakerKey, BreakerRead, Needed, Opening, SlotRequest, TenantId,
};
use store::Store;

use crate::Subject;
use crate::admission::{admit, allocate};
use crate::example::{TENANT, at, key, run_id};

fn of_task() -> BreakerKey {
    BreakerKey::of_task(TENANT, "etl", "load")
}

fn of_host() -> BreakerKey {
    BreakerKey::of_host(TENANT, "api.example", 443)
}

/// Reads breakers in a transaction, changes them, and writes them.
async fn change(store: &dyn Store, read: BreakerRead, decide: impl Fn(&mut Breaker)) -> Vec<Breaker> {
    let mut transaction = store.begin().await.unwrap();
    let mut found = transaction.lock_breakers(&read).await.unwrap();
    found.iter_mut().for_each(decide);
    transaction.save_breakers(&found).await.unwrap();
    transaction.commit().await.unwrap();
    found
}

fn happened(key: BreakerKey, failed: bool) -> BreakerRead {
    BreakerRead::Happened(vec![(key, failed)])
}

fn paused(until: i64) -> Option<Opening> {
    Some(Opening { since: at(1), until: at(until), pause_seconds: 60, probing: false })
}

async fn open(store: &dyn Store, key: BreakerKey, until: i64) -> Breaker {
    change(store, happened(key, true), |breaker| breaker.open = paused(until)).await.remove(0)
}

pub(crate) async fn a_breaker_is_created_by_its_first_failure(store: Subject) {
    assert_eq!(change(&*store, happened(of_task(), false), |_| ()).await, []);
    assert_eq!(store.breakers(&[of_task()]).await.unwrap(), []);
    let made = change(&*store, happened(of_task(), true), |breaker| breaker.failed_at.push(at(3))).await;
    assert_eq!(store.breakers(&[of_host(), of_task()]).await.unwrap(), made);
    assert_eq!((&made[0].key, made[0].failed_at.as_slice()), (&of_task(), &[at(3)][..]));
}

pub(crate) async fn a_breaker_comes_back_as_it_was_saved(store: Subject) {
    let saved = change(&*store, happened(of_host(), true), |breaker| {
        breaker.failed_at = vec![at(1), at(2)];
        breaker.open = paused(61).map(|open| Opening { probing: true, ..open });
        breaker.message = "connection refused".into();
    });
    let saved = saved.await;
    assert_eq!(store.breakers(&[of_host()]).await.unwrap(), saved);
    let mut dropped = store.begin().await.unwrap();
    dropped.lock_breakers(&happened(of_task(), true)).await.unwrap();
    dropped.save_breakers(&[Breaker::closed(saved[0].id, of_host())]).await.unwrap();
    drop(dropped);
    assert_eq!(store.breakers(&[of_host(), of_task()]).await.unwrap(), saved, "it leaves no trace");
    let nul = |breaker: &mut Breaker| breaker.message = "a \0 b".into();
    change(&*store, happened(of_host(), true), nul).await;
    assert_eq!(store.breakers(&[of_host()]).await.unwrap().len(), 1);
}

pub(crate) async fn what_saw_no_failure_matters_only_while_it_is_open(store: Subject) {
    change(&*store, happened(of_task(), true), |breaker| breaker.failed_at.push(at(1))).await;
    open(&*store, of_host(), 60).await;
    let both = BreakerRead::Happened(vec![(of_host(), false), (of_task(), false)]);
    let found = change(&*store, both, |_| ()).await;
    assert_eq!(found.iter().map(|breaker| &breaker.key).collect::<Vec<_>>(), [&of_host()]);
}

pub(crate) async fn a_breaker_that_remembers_nothing_is_gone(store: Subject) {
    open(&*store, of_task(), 60).await;
    let close = |breaker: &mut Breaker| *breaker = Breaker::closed(breaker.id, breaker.key.clone());
    change(&*store, happened(of_task(), false), close).await;
    assert_eq!(store.breakers(&[of_task()]).await.unwrap(), []);
    assert_eq!((store.agenda(at(0)).await.unwrap().breaker, store.load().await.unwrap().breakers), (None, 0));
}

pub(crate) async fn a_breaker_that_nobody_needs_is_forgotten(store: Subject) {
    let fail = |at_second: i64| move |breaker: &mut Breaker| breaker.failed_at.push(at(at_second));
    let host = |name: &str| BreakerKey::of_host(TENANT, name, 443);
    let task = |name: &str| BreakerKey::of_task(TENANT, "etl", name);
    let probing = |until: i64| paused(until).map(|open| Opening { probing: true, ..open });
    change(&*store, happened(host("failed"), true), fail(50)).await;
    change(&*store, happened(task("failed"), true), fail(50)).await;
    change(&*store, happened(host("failed-since"), true), fail(51)).await;
    change(&*store, happened(task("failed-since"), true), fail(51)).await;
    open(&*store, host("open"), 50).await;
    open(&*store, task("open"), 50).await;
    open(&*store, host("still-open"), 51).await;
    change(&*store, happened(host("probing"), true), |breaker| breaker.open = probing(50)).await;
    change(&*store, happened(host("open-and-failed-since"), true), |breaker| {
        (breaker.open, breaker.failed_at) = (paused(50), vec![at(2), at(51)]);
    })
    .await;
    assert_eq!(store.load().await.unwrap().breakers, 4);
    assert_eq!(store.forget_breakers(at(50)).await.unwrap(), 4);
    assert_eq!(store.forget_breakers(at(50)).await.unwrap(), 0);
    let gone = [host("failed"), task("failed"), host("open"), host("probing")];
    assert_eq!(store.breakers(&gone).await.unwrap(), []);
    let kept = [
        host("failed-since"),
        task("failed-since"),
        task("open"),
        host("still-open"),
        host("open-and-failed-since"),
    ];
    assert_eq!(store.breakers(&kept).await.unwrap().len(), kept.len());
    assert_eq!(store.load().await.unwrap().breakers, 3, "what nobody calls any more is not counted as open");
}

pub(crate) async fn a_pause_is_on_the_agenda_until_it_ends(store: Subject) {
    open(&*store, of_task(), 60).await;
    open(&*store, of_host(), 30).await;
    assert_eq!(store.agenda(at(0)).await.unwrap().breaker, Some(at(30)));
    assert_eq!(store.load().await.unwrap().breakers, 2);
    let due = |now| BreakerRead::Due { now: at(now), limit: 9 };
    assert_eq!(change(&*store, due(29), |_| ()).await, []);
    let probe = |breaker: &mut Breaker| breaker.open.as_mut().unwrap().probing = true;
    assert_eq!(change(&*store, due(30), probe).await.len(), 1);
    assert_eq!(change(&*store, due(30), probe).await, [], "once");
    assert_eq!(store.agenda(at(0)).await.unwrap().breaker, Some(at(60)));
    assert_eq!(store.load().await.unwrap().breakers, 1);
}

pub(crate) async fn a_breaker_is_found_by_its_tenant_alone(store: Subject) {
    let id = open(&*store, of_task(), 60).await.id;
    let other = store.tenant("other", at(0)).await.unwrap();
    assert_eq!(change(&*store, BreakerRead::Id(other, id), |_| ()).await, []);
    assert_eq!(change(&*store, BreakerRead::Id(TenantId::DEFAULT, id + 1), |_| ()).await, []);
    assert_eq!(change(&*store, BreakerRead::Id(TenantId::DEFAULT, id), |_| ()).await.len(), 1);
}

pub(crate) async fn of_many_failures_at_once_every_one_counts(store: Subject) {
    let failures = (0..8).map(|second| {
        let store = store.clone();
        tokio::spawn(async move {
            change(&*store, happened(of_task(), true), |breaker| breaker.failed_at.push(at(second))).await;
        })
    });
    for failure in futures::future::join_all(failures).await {
        failure.unwrap();
    }
    assert_eq!(store.breakers(&[of_task()]).await.unwrap()[0].failed_at.len(), 8);
}

pub(crate) async fn a_task_behind_a_breaker_knows_when_the_pause_ends(store: Subject) {
    open(&*store, of_task(), 60).await;
    let limit = of_task().limit().unwrap();
    let ask = SlotRequest {
        key: key(run_id(1), 0),
        attempt: 1,
        tenant: TENANT,
        backfill: None,
        priority: 0,
        since: at(0),
        waited: false,
        needs: vec![Needed { limit: limit.clone(), slots: None }],
    };
    let resized =
        |slots| Allocator::admit_and_resize(vec![], vec![], BTreeMap::from([(limit.clone(), slots)]), at(1));
    allocate(&*store, resized(Some(0))).await;
    let (admitted, _) = admit(&*store, std::slice::from_ref(&ask), &[]).await;
    assert_eq!(admitted, [Admission::Waiting(limit.clone())]);
    let wait = store.slot_wait(ask.key).await.unwrap().unwrap();
    assert_eq!((wait.limit, wait.until), (limit.clone(), Some(at(60))));
    let (_, granted) = allocate(&*store, resized(Some(1))).await;
    assert_eq!(granted.iter().map(|granted| granted.key).collect::<Vec<_>>(), [ask.key], "a probe");
}

pub(crate) async fn a_claim_finds_the_breakers_that_are_not_closed_and_who_has_their_slots(store: Subject) {
    let other = BreakerKey::of_task(TENANT, "etl", "other");
    let gates = async || {
        let keys = [of_task(), other.clone(), BreakerKey { tenant: TenantId(TENANT.0 + 1), ..of_task() }];
        store.begin().await.unwrap().breaker_gates(&keys).await.unwrap()
    };
    change(&*store, happened(of_task(), true), |breaker| breaker.failed_at.push(at(1))).await;
    assert_eq!(gates().await, [], "it is closed");
    let request = SlotRequest {
        key: key(run_id(1), 0),
        attempt: 1,
        tenant: TENANT,
        backfill: None,
        priority: 0,
        since: at(0),
        waited: false,
        needs: vec![Needed { limit: of_task().limit().unwrap(), slots: None }],
    };
    assert_eq!(admit(&*store, &[request], &[]).await.0, [Admission::Acquired]);
    open(&*store, of_task(), 60).await;
    let gate = BreakerGate { key: of_task(), probing: false, used: 1 };
    assert_eq!(gates().await, std::slice::from_ref(&gate));
    let probe =
        |breaker: &mut Breaker| breaker.open = breaker.open.map(|open| Opening { probing: true, ..open });
    change(&*store, happened(of_task(), false), probe).await;
    assert_eq!(gates().await, [BreakerGate { probing: true, ..gate }]);
}
