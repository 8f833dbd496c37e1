//! Limits, the tasks that hold or wait for their slots, and the tenants that share a queue.

use auth::Permission::{Read, Work};
use model::{Limit, TenantId};
use read::Contender;
use store::{Slots, Tenants};

use crate::reader::is_forbidden;
use crate::world::World;

fn dock(tenant: TenantId) -> Limit {
    Limit::Pool(tenant, "dock".into())
}

fn light() -> Limit {
    Limit::Queue("light".into())
}

fn tasks(contenders: Vec<Contender>) -> Vec<(String, u32)> {
    contenders.into_iter().map(|contender| (contender.workflow, contender.task.0)).collect()
}

#[tokio::test]
async fn holders_and_waiters_of_a_limit_are_listed_as_far_as_the_grants_cover() {
    let world = World::new().await;
    world.runtime.slots().resize(&dock(TenantId::DEFAULT), Some(1)).await.unwrap();
    let first = world.start(TenantId::DEFAULT, "etl", 1).await;
    world.start(TenantId::DEFAULT, "orders", 2).await;
    let of = |workflow: &str, task| (workflow.to_owned(), task);
    for (grant, holders, waiters) in [
        ("viewer:default", vec![of("etl", 0)], vec![of("etl", 1), of("orders", 0), of("orders", 1)]),
        ("viewer:default/orders", vec![], vec![of("orders", 0), of("orders", 1)]),
    ] {
        let reader = world.reader(grant);
        assert_eq!(tasks(reader.slots().holders(Read, 9, 9).await.unwrap()), holders, "{grant}");
        let found = reader.slots().waiters(&dock(TenantId::DEFAULT), 9).await.unwrap();
        assert_eq!(tasks(found), waiters, "{grant}");
    }
    let worker = world.reader("worker:default");
    assert_eq!(tasks(worker.slots().holders(Work, 9, 9).await.unwrap()), [of("etl", 0)]);
    assert!(is_forbidden(worker.slots().waiters(&dock(TenantId::DEFAULT), 9).await));
    assert_eq!(
        tasks(world.reader("viewer:default").slots().holders(Read, 0, 9).await.unwrap()),
        [],
        "of no run"
    );
    let run = world.reader("viewer:default").run(first).await.unwrap();
    assert_eq!(run.slot_wait(model::TaskIndex(0)).await.unwrap(), None);
    let wait = run.slot_wait(model::TaskIndex(1)).await.unwrap().unwrap();
    assert_eq!((wait.limit, wait.slots, wait.used, wait.ahead), (dock(TenantId::DEFAULT), Some(1), 1, 0));
}

#[tokio::test]
async fn a_limit_of_another_tenant_is_not_seen_but_the_queue_that_both_share_is() {
    let world = World::new().await;
    world.runtime.slots().resize(&light(), Some(1)).await.unwrap();
    for (number, tenant) in [(1, TenantId::DEFAULT), (2, world.other)] {
        world.start(tenant, "etl", number).await;
    }
    for tenant in [TenantId::DEFAULT, world.other] {
        let reader = world.admin_of(tenant);
        let limits = reader.slots().limits(&model::Limit::KINDS, None, 99).await.unwrap().items;
        assert!(limits.iter().any(|row| row.limit == light()), "{limits:?}");
        assert!(limits.iter().all(|row| row.limit.tenant().is_none_or(|of| of == tenant)), "{limits:?}");
        let queue = limits.iter().find(|row| row.limit == light()).unwrap();
        assert_eq!((queue.used, queue.waiting, queue.oldest.is_some()), (1, 3, true), "of both tenants");
        let foreign = if tenant == world.other { TenantId::DEFAULT } else { world.other };
        assert_eq!(reader.slots().waiters(&dock(foreign), 9).await.unwrap(), []);
        let own = reader.slots().waiters(&light(), 9).await.unwrap();
        assert!(own.iter().all(|waiter| waiter.workflow == "etl") && !own.is_empty());
    }
    // How many tasks come before one's own counts those of all tenants.
    let run = world.admin_of(world.other).run("018f0000-0000-7000-8000-000000000002".parse().unwrap()).await;
    let last = run.unwrap().slot_wait(model::TaskIndex(1)).await.unwrap().unwrap();
    assert_eq!(last.ahead, 2);
}

#[tokio::test]
async fn fairness_groups_have_a_name_only_for_those_who_may_know_it() {
    let world = World::new().await;
    world.runtime.slots().resize(&light(), Some(1)).await.unwrap();
    world.postgres().set_weight(world.other, 7).await.unwrap();
    world.start(TenantId::DEFAULT, "etl", 1).await;
    world.start(world.other, "etl", 2).await;
    for (grant, named) in [("viewer:default", false), ("viewer:*", true)] {
        let groups = world.reader(grant).slots().fairness_groups(&light()).await.unwrap().shown;
        let shown: Vec<_> =
            groups.iter().map(|group| (group.tenant.as_deref(), group.own, group.weight.tenant)).collect();
        assert_eq!(shown, [(Some("default"), true, 1), (named.then_some("other"), false, 7)], "{grant}");
        assert_eq!(groups.iter().map(|group| group.waiting).sum::<u32>(), 3);
    }
    assert!(is_forbidden(world.reader("viewer:default/etl").slots().fairness_groups(&light()).await));
}

#[tokio::test]
async fn of_many_fairness_groups_those_that_wait_and_the_latest_are_listed_and_all_are_counted() {
    let world = World::new().await;
    world.runtime.slots().resize(&light(), Some(1)).await.unwrap();
    world.start(TenantId::DEFAULT, "etl", 1).await;
    for number in 0..120 {
        world.postgres().tenant(&format!("tenant-{number}"), model::Instant::UNIX_EPOCH).await.unwrap();
    }
    sqlx::query(
        "insert into fairness_groups (lim, tenant, position, received, pace)
         select limits.id, tenants.id, 0, 10, array[tenants.id, 1, 0]
           from limits, tenants where limits.kind = 'queue' and limits.name = 'light' and tenants.name like 'tenant-%'",
    )
    .execute(world.postgres().pool())
    .await
    .unwrap();
    let groups = world.reader("viewer:*").slots().fairness_groups(&light()).await.unwrap();
    let names: Vec<&str> = groups.shown.iter().filter_map(|group| group.tenant.as_deref()).collect();
    assert_eq!((names.len(), groups.received, groups.turns), (100, 1_200, 1.0), "only one of them waits");
    assert!(
        names.contains(&"default") && names.contains(&"tenant-119") && !names.contains(&"tenant-0"),
        "{names:?}"
    );
}
