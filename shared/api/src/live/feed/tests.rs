use auth::Caller;
use bus::SystemClock;
use read::Database;
use testkit::{SilentBus, World};

use super::*;

#[tokio::test]
async fn a_tenant_is_read_once_and_only_while_somebody_listens_in_it() {
    let world = World::on_postgres(SilentBus, SystemClock).await;
    let source = |tenant| {
        let caller = Caller { tenant, ..Caller::local() };
        Database::new(world.postgres()).reader(&caller).change_feed(None).unwrap()
    };
    let (here, elsewhere) = (source(TenantId::DEFAULT), source(TenantId(2)));
    let feed = Feed::default();
    let readers = async || feed.0.readers.lock().await.keys().copied().collect::<Vec<_>>();
    assert_eq!(readers().await, [], "nobody listens yet");
    let one = feed.subscribe(&world.runtime, &here).await.unwrap();
    let other = feed.subscribe(&world.runtime, &here).await.unwrap();
    let foreign = feed.subscribe(&world.runtime, &elsewhere).await.unwrap();
    drop(one);
    assert_eq!(readers().await, [TenantId::DEFAULT, TenantId(2)], "one reader for each tenant");
    let reading = std::mem::take(&mut *feed.0.readers.lock().await);
    drop((other, foreign));
    for reader in reading.into_values() {
        reader.task.await.unwrap();
    }
    assert_eq!(feed.listeners(), 0);
    let again = feed.subscribe(&world.runtime, &here).await.unwrap();
    assert_eq!(readers().await, [TenantId::DEFAULT], "it starts again");
    drop(again);
}

#[test]
fn listeners_and_waiting_leases_leave_connections_for_other_requests() {
    let reserve = 100;
    assert!(MAX_LISTENERS + runtime::MAX_WAITING_LEASES + reserve <= host::MAX_CONNECTIONS);
    let feed = Feed::default();
    let enter = |tenant| feed.admit(TenantId(tenant));
    let own: Vec<_> = std::iter::from_fn(|| enter(1).ok()).collect();
    let others: Vec<_> = std::iter::from_fn(|| enter(2).ok()).collect();
    assert_eq!(own.len(), MAX_OF_A_TENANT);
    assert_eq!(own.len() + others.len(), MAX_LISTENERS, "one tenant leaves room for others");
    assert!(!others.is_empty() && enter(3).is_err());
}
