//! What belongs to no tenant, and who may read it.

use auth::Permission::{Operate, Read};
use bus::SystemClock;
use chrono::TimeDelta;
use model::{
    Child, Clock, Labels, Limit, RemoteFacts, TaskIndex, TaskState, TenantId, WorkerCommand,
    WorkerCommandKind, WorkerFacts,
};
use read::{ClaimedTask, DeadLetter, DeadLetterFilter};
use store::{Claim, DeadLetters, Heartbeat, Slots, Tenants, Workers};

use crate::example::{TENANT, at, example, hold, key, run, step, worker};
use crate::reader::{is_forbidden, is_hidden};
use crate::world::World;

#[tokio::test]
async fn the_platform_is_for_callers_with_a_permission_in_every_tenant() {
    let world = World::new().await;
    for (grant, reads, operates) in [
        ("admin:*", true, true),
        ("operator:*", true, true),
        ("viewer:*", true, false),
        ("viewer:*/etl", false, false),
        ("admin:default", false, false),
        ("partner:*", false, false),
        ("worker:*", false, false),
    ] {
        assert_eq!(world.reader(grant).platform(Read).is_ok(), reads, "{grant}");
        assert_eq!(world.reader(grant).platform(Operate).is_ok(), operates, "{grant}");
    }
    assert!(is_forbidden(world.reader("admin:default").platform(Read)));
}

#[tokio::test]
async fn the_database_shows_its_health() {
    let world = World::new().await;
    let health = world.reader("viewer:*").platform(Read).unwrap().health().await.unwrap();
    assert!(health.schema_is_current && health.forbidden.is_empty(), "{health:?}");
    assert!(health.version >= 150_000);
    assert!((health.clock - SystemClock.now()).abs() < TimeDelta::minutes(1));
    assert!(0 < health.connections && health.connections < health.max_connections, "{health:?}");
}

#[tokio::test]
async fn dead_letters_are_listed_newest_first_and_by_page() {
    let world = World::new().await;
    for (id, second) in [("a", 1), ("b", 2), ("c", 3)] {
        let letter = DeadLetter {
            id: id.into(),
            source: "push".into(),
            reason: "unreadable".into(),
            body: id.into(),
            at: at(second),
        };
        world.postgres().insert_dead_letter(&letter).await.unwrap();
    }
    let platform = world.reader("viewer:*").platform(Read).unwrap();
    let page = platform.dead_letters(&DeadLetterFilter::newest(2)).await.unwrap();
    assert_eq!(page.items.iter().map(|letter| letter.id.as_str()).collect::<Vec<_>>(), ["c", "b"]);
    assert_eq!(page.next, Some((at(2), "b".to_owned())));
    let on = DeadLetterFilter { after: page.next, ..DeadLetterFilter::newest(2) };
    let page = platform.dead_letters(&on).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
    assert_eq!(platform.dead_letter("a").await.unwrap().body, "a");
    assert!(is_hidden(platform.dead_letter("d").await));
}

fn facts(host: &str) -> WorkerFacts {
    WorkerFacts {
        function: "execute".into(),
        queue: Some("light".into()),
        host: host.into(),
        version: "1".into(),
        since: at(1),
        breakers: Vec::new(),
        remote: None,
    }
}

#[tokio::test]
async fn workers_are_listed_with_the_attempts_that_they_hold_of_the_callers_tenant() {
    let world = World::new().await;
    let (store, id) = (world.postgres(), example(world.postgres(), 1).await);
    for (by, host, second) in [(1, Some("a \0"), 10), (2, Some("b"), 10), (2, None, 20), (3, None, 30)] {
        let heartbeat = Heartbeat { worker: worker(by), facts: host.map(facts), at: at(second) };
        store.beat(&heartbeat).await.unwrap();
    }
    let child = Some(Child { of: TaskIndex(0), item: 3 });
    step(store, id, |changes| {
        let task = &mut changes.tasks[1];
        (task.state, task.attempt, task.worker) = (TaskState::Running, 4, Some(worker(2)));
        (task.started_at, task.child) = (Some(at(15)), child);
    })
    .await
    .unwrap();
    hold(store, id, 2, worker(2)).await;
    let kill = WorkerCommand { kind: WorkerCommandKind::Kill, actor: "ada".into(), reason: None, at: at(21) };
    store.command_worker(worker(2), &kill).await.unwrap();
    let workers = world.reader("viewer:*").workers(Read).unwrap();
    let all = workers.list(at(0), None, 9).await.unwrap().items;
    assert_eq!(all.iter().map(|found| found.id).collect::<Vec<_>>(), [worker(1), worker(2), worker(3)]);
    assert_eq!(all[0].facts, Some(facts("a \u{FFFD}")));
    assert_eq!((&all[1].facts, all[1].heartbeat_at), (&Some(facts("b")), at(20)));
    assert_eq!(all[1].command, Some(kill));
    assert_eq!((&all[2].facts, all[2].heartbeat_at), (&None, at(30)));
    let version = run(store, id).await.version;
    let held = |task, attempt| Claim { key: key(id, task), attempt, worker: worker(2) };
    let holds = [
        ClaimedTask { held: held(1, 4), version, child, started_at: Some(at(15)) },
        ClaimedTask { held: held(2, 1), version, child: None, started_at: None },
    ];
    assert_eq!(all[1].holds, holds);
    let page = workers.list(at(0), Some(worker(1)), 1).await.unwrap();
    assert_eq!((page.items, page.next), (all[1..2].to_vec(), Some(worker(2))));
    assert_eq!(workers.find(at(0), worker(2)).await.unwrap().as_ref(), Some(&all[1]));
    assert_eq!(workers.find(at(0), worker(4)).await.unwrap(), None);
    let elsewhere = world.admin_of(world.other);
    let others = elsewhere.workers(Read).unwrap().list(at(0), None, 9).await.unwrap().items;
    assert!(others.iter().all(|found| found.holds.is_empty()), "another tenant's attempts are not shown");
    assert_eq!(world.reader("worker:default").slots().held_by(worker(2)).await.unwrap(), holds);
    assert_eq!(elsewhere.slots().held_by(worker(2)).await.unwrap(), []);
    assert!(is_forbidden(world.reader("viewer:default").slots().held_by(worker(2)).await));
}

#[tokio::test]
async fn tenants_are_listed_as_far_as_the_grants_reach() {
    let world = World::new().await;
    for (second, name) in ["zeta", "alpha", "zeta", "mid"].into_iter().enumerate() {
        world.postgres().tenant(name, at(second as i64)).await.unwrap();
    }
    world.postgres().set_weight(world.other, 7).await.unwrap();
    world.postgres().set_slots(&Limit::Tenant(world.other), Some(4)).await.unwrap();
    let names = async |grant: &str, after, limit| {
        let page = world.reader(grant).tenants().list(after, limit).await.unwrap();
        (page.items.into_iter().map(|tenant| tenant.name).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(names("viewer:*", None, 9).await.0, ["default", "other", "zeta", "alpha", "mid"]);
    let page = names("viewer:*", Some(TenantId(2)), 2).await;
    assert_eq!(page, (vec!["zeta".into(), "alpha".into()], Some(TenantId(4))));
    assert_eq!(names("viewer:mid", None, 9).await.0, ["mid"]);
    assert_eq!(names("partner:*", None, 9).await.0, [""; 0]);
    let other = world.reader("viewer:*").tenants().named("other").await.unwrap();
    assert_eq!((other.weight, other.slots, other.used, other.waiting), (7, Some(4), 0, 0));
    assert!(is_hidden(world.reader("viewer:mid").tenants().named("other").await));
    assert!(is_hidden(world.reader("viewer:*").tenants().named("no\0body").await));
    assert_eq!(world.reader("viewer:default").tenants().named("default").await.unwrap().id, TENANT);
}

#[tokio::test]
async fn of_a_worker_that_holds_many_attempts_a_hundred_are_listed_and_all_are_counted() {
    let world = World::new().await;
    let store = world.postgres();
    for by in [1, 2] {
        let heartbeat = Heartbeat { worker: worker(by), facts: Some(facts("a")), at: at(10) };
        store.beat(&heartbeat).await.unwrap();
    }
    for number in 1..=35 {
        let id = example(store, number).await;
        for task in 0..3 {
            hold(store, id, task, worker(1)).await;
        }
    }
    let workers = world.reader("viewer:*").workers(Read).unwrap();
    let all = workers.list(at(0), None, 9).await.unwrap().items;
    assert_eq!(
        all.iter().map(|found| (found.holds.len(), found.holding)).collect::<Vec<_>>(),
        [(100, 105), (0, 0)]
    );
}

#[tokio::test]
async fn a_page_of_workers_with_much_to_say_ends_early_and_leads_on() {
    let world = World::new().await;
    let types = (0..100).map(|number| format!("{number:0>100}")).collect();
    let remote = RemoteFacts {
        tenant: TENANT,
        name: "w".into(),
        slots: 1,
        labels: Labels::default(),
        types: Some(types),
        usage: None,
    };
    for by in 1..=90 {
        let facts = Some(WorkerFacts { remote: Some(remote.clone()), ..facts("a") });
        world.postgres().beat(&Heartbeat { worker: worker(by), facts, at: at(10) }).await.unwrap();
    }
    let workers = world.reader("viewer:*").workers(Read).unwrap();
    let first = workers.list(at(0), None, 100).await.unwrap();
    assert!((10..90).contains(&first.items.len()), "{}", first.items.len());
    let rest = workers.list(at(0), first.next, 100).await.unwrap();
    assert_eq!((first.items.len() + rest.items.len(), rest.next), (90, None));
}
