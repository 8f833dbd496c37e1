//! Row-level security backs every read: with the grants of an administrator and the ids of another tenant, a reader still
//! finds nothing of it.

use auth::Permission::{Operate, Read, Work};
use model::{BackfillId, BreakerKey, Instant, Limit, TaskIndex, TenantId};
use read::{RunFilter, TimerFilter, WorkflowFilter};
use runtime::{NewBackfill, Rerun};
use uuid::Uuid;

use crate::reader::is_hidden;
use crate::world::World;

const SCHEDULED: &str = "{name: nightly, schedule: {cron: '0 0 * * *'}, triggers: [{name: hook, event: {type: a.b}}], \
                         tasks: [{name: a, type: noop, pool: dock}]}";

/// Gives a tenant one of everything that belongs to a tenant.
async fn one_of_everything(world: &World, tenant: TenantId) -> BackfillId {
    world.register(tenant, SCHEDULED).await;
    let id = BackfillId(Uuid::from_u128(7));
    let new = NewBackfill {
        id,
        tenant,
        workflow: "nightly".into(),
        schedule: None,
        from: "2026-01-01".into(),
        to: "2026-01-02".into(),
        max_parallel: 1,
        weight: 1,
        rerun: Rerun::Missing,
        version: None,
        by: "test".into(),
    };
    let plan = world.runtime.backfills().plan(&new).await.unwrap();
    world.runtime.slots().resize(&Limit::Pool(tenant, "dock".into()), Some(0)).await.unwrap();
    world.runtime.backfills().start(&plan).await.unwrap();
    let host = BreakerKey::of_host(tenant, "api.example", 443);
    world.runtime.slots().breakers().open_host(&host, "refused").await.unwrap();
    id
}

#[tokio::test]
async fn an_administrator_of_everything_reads_in_one_tenant() {
    let world = World::new().await;
    let backfill = one_of_everything(&world, world.other).await;
    let run = world.start(world.other, "nightly", 1).await;
    let (own, stranger) = (world.admin_of(world.other), world.admin_of(TenantId::DEFAULT));
    let found = async |reader: &read::Reader| {
        let nightly = Some("nightly".to_owned());
        let runs = RunFilter { workflow: nightly.clone(), limit: 9, ..RunFilter::default() };
        let timers = TimerFilter { workflow: nightly.clone(), limit: 9, ..TimerFilter::default() };
        let workflows = WorkflowFilter { text: nightly.clone(), limit: 9, ..WorkflowFilter::default() };
        [
            reader.run(run).await.is_ok(),
            reader.runs().for_worker(run).await.unwrap().is_some(),
            !reader.runs().list(Read, &runs).await.unwrap().items.is_empty(),
            !reader.slots().waiters(&Limit::Pool(world.other, "dock".into()), 9).await.unwrap().is_empty(),
            reader
                .slots()
                .limits(&Limit::KINDS, None, 99)
                .await
                .unwrap()
                .items
                .iter()
                .any(|limit| limit.limit.tenant() == Some(world.other)),
            reader.workflows().get("nightly").await.is_ok(),
            reader.workflows().version("nightly", 1).await.unwrap().is_some(),
            !reader.workflows().list(&workflows).await.unwrap().items.is_empty(),
            !reader.workflows().versions("nightly", None, 9).await.unwrap().items.is_empty(),
            !reader.schedules().list(Some("nightly"), None, 9).await.unwrap().items.is_empty(),
            reader.triggers().get("nightly", "hook", 9).await.is_ok(),
            !reader.triggers().list(nightly, None, 9).await.unwrap().items.is_empty(),
            reader.backfills().get(backfill).await.is_ok(),
            !reader.backfills().list(Some("nightly"), None, 9).await.unwrap().items.is_empty(),
            !reader.slots().breakers(Instant::UNIX_EPOCH, None, 9).await.unwrap().items.is_empty(),
            reader.timers().list(&timers).await.unwrap().items.is_empty(),
        ]
    };
    assert_eq!(found(&own).await, [true; 16]);
    let mut nothing = [false; 16];
    nothing[15] = true; // Neither tenant has timers.
    assert_eq!(found(&stranger).await, nothing);
    // A record that was read as another caller leads to nothing either.
    let foreign = own.backfills().get(backfill).await.unwrap();
    assert!(!own.backfills().progress(&foreign).await.unwrap().is_empty());
    assert!(stranger.backfills().progress(&foreign).await.unwrap().is_empty());
    for permission in [Read, Operate, Work] {
        let scoped = world.database.reader(&world.caller(TenantId::DEFAULT, "admin:default/nightly"));
        assert!(is_hidden(scoped.check_run(permission, run).await) || permission == Work);
        assert!(is_hidden(scoped.check_backfill(permission, backfill).await) || permission == Work);
    }
}

#[tokio::test]
async fn a_run_reader_reads_every_part_in_its_tenants_role() {
    let world = World::new().await;
    let run = world.start(world.other, "etl", 1).await;
    let key = model::TaskKey { run, task: TaskIndex(0) };
    world.runtime.workers().keep_checkpoint(key, 1, 5.into()).await.unwrap();
    let own = world.admin_of(world.other).run(run).await.unwrap();
    assert_eq!(own.checkpoint(TaskIndex(0)).await.unwrap(), Some((1, 5.into())));
    assert_eq!(own.outline().await.unwrap().len(), 2);
    assert!(!own.events(0, 9).await.unwrap().items.is_empty());
    assert!(world.admin_of(TenantId::DEFAULT).run(run).await.is_err(), "another tenant has no such reader");
}
