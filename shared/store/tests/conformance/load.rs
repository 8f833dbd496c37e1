//! Claims about how much of everything there is.

use std::collections::BTreeMap;

use model::change::Recheck;
use model::{RunState, TaskIndex, TaskState, TenantId, Timer, TimerKind, WorkerFacts, WorkerId};
use store::{Heartbeat, Usage};
use uuid::Uuid;

use crate::Subject;
use crate::dead_letters;
use crate::example::{at, event, example, finish, nudge, record, step};

pub(crate) async fn an_empty_store_carries_nothing(store: Subject) {
    let load = store.load().await.unwrap();
    assert!(load.runs.iter().all(|(_, runs)| *runs == 0) && load.runs.len() == 4, "{load:?}");
    let [tenant] = &load.tenants[..] else { panic!("there is the default tenant: {load:?}") };
    assert_eq!((tenant.name.as_str(), tenant.depth(), tenant.waits_since), ("default", 0, None));
    assert!(tenant.tasks.iter().all(|(state, tasks)| *tasks == 0 && !state.is_final()), "{load:?}");
    assert_eq!((load.unsent, load.timer, load.dead_letters), (None, None, 0));
    assert!(load.workers.is_empty(), "{load:?}");
}

pub(crate) async fn what_is_unfinished_is_counted_by_state_and_tenant(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    store.tenant("other", at(0)).await.unwrap();
    let timer = Timer { task: Some(TaskIndex(0)), attempt: 1, kind: TimerKind::Retry, wake_at: at(50) };
    let change = step(&*store, one, |changes| {
        record(changes, &[event(5)]);
        changes.timers = vec![timer];
        changes.recheck = Recheck::At(at(60));
        changes.outbox.push(nudge(changes.run.id));
    });
    change.await.unwrap();
    finish(&*store, two).await;
    store.insert_dead_letter(&dead_letters::letter("a", 1)).await.unwrap();
    let load = store.load().await.unwrap();
    let unfinished: u32 = load.runs.iter().map(|(_, runs)| runs).sum();
    assert_eq!(unfinished, 1, "what has ended is not counted: {load:?}");
    assert!(load.runs.iter().all(|(state, _)| *state != RunState::Succeeded), "{load:?}");
    assert_eq!(load.tenants.iter().map(|tenant| &*tenant.name).collect::<Vec<_>>(), ["default", "other"]);
    let pending = load.tenants[0].tasks.iter().find(|(state, _)| *state == TaskState::Pending);
    assert_eq!(pending, Some(&(TaskState::Pending, 3)));
    assert_eq!(load.tenants[1].depth(), 0);
    assert_eq!((load.unsent, load.timer, load.dead_letters), (Some(at(5)), Some(at(50)), 1));
}

pub(crate) async fn workers_are_counted_by_queue(store: Subject) {
    for (worker, queue) in [(1, Some("heavy")), (2, Some("heavy")), (3, None)] {
        let facts = WorkerFacts {
            function: "execute".into(),
            queue: queue.map(str::to_owned),
            host: "host".into(),
            version: "1".into(),
            since: at(0),
            breakers: Vec::new(),
            remote: None,
        };
        let worker = WorkerId(Uuid::from_u128(worker));
        store.beat(&Heartbeat { worker, facts: Some(facts), at: at(1) }).await.unwrap();
    }
    let load = store.load().await.unwrap();
    assert_eq!(load.workers, BTreeMap::from([("any".to_owned(), 1), ("heavy".to_owned(), 2)]));
}

pub(crate) async fn what_a_tenant_has_is_counted_up_to_a_bound(store: Subject) {
    let other = store.tenant("other", at(0)).await.unwrap();
    let (_, two, _) = (example(&*store, 1).await, example(&*store, 2).await, example(&*store, 3).await);
    finish(&*store, two).await;
    let usage = store.usage(TenantId::DEFAULT, 100).await.unwrap();
    assert_eq!((usage.runs, usage.workflows > 0), (2, true), "{usage:?}");
    assert_eq!(store.usage(TenantId::DEFAULT, 1).await.unwrap(), Usage { runs: 1, workflows: 1 });
    assert_eq!(store.usage(other, 100).await.unwrap(), Usage::default());
}

pub(crate) async fn a_tenant_is_known_by_its_number_and_its_name(store: Subject) {
    let other = store.tenant("other", at(0)).await.unwrap();
    for (tenant, name) in [(TenantId::DEFAULT, "default"), (other, "other")] {
        assert_eq!(store.tenant_named(name).await.unwrap(), Some(tenant));
        assert_eq!(store.tenant_name(tenant).await.unwrap().as_deref(), Some(name));
    }
    assert_eq!(store.tenant_named("nowhere").await.unwrap(), None);
    assert_eq!(store.tenant_name(TenantId(other.0 + 1)).await.unwrap(), None);
}
