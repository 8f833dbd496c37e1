use async_trait::async_trait;
use auth::Caller;
use bus::{Bus, SystemClock};
use model::Message;
use read::Database;
use store::Postgres;

use super::*;

struct Mute;

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_tenant_is_read_once_and_only_while_somebody_listens_in_it() {
    let database = testkit::migrated(Postgres::migrate).await;
    let store = Postgres::connect(&database.url, 2).await.unwrap();
    let source = |tenant| {
        let caller = Caller { tenant, ..Caller::local() };
        Database::new(&store).reader(&caller).change_feed(None).unwrap()
    };
    let (here, elsewhere) = (source(TenantId::DEFAULT), source(TenantId(2)));
    let runtime = Arc::new(Runtime::new(Arc::new(store.clone()), Arc::new(Mute), Arc::new(SystemClock)));
    let feed = Feed::default();
    let readers = async || feed.0.readers.lock().await.keys().copied().collect::<Vec<_>>();
    assert_eq!(readers().await, [], "nobody listens yet");
    let one = feed.subscribe(&runtime, &here).await.unwrap();
    let other = feed.subscribe(&runtime, &here).await.unwrap();
    let foreign = feed.subscribe(&runtime, &elsewhere).await.unwrap();
    drop(one);
    assert_eq!(readers().await, [TenantId::DEFAULT, TenantId(2)], "one reader for each tenant");
    let reading = std::mem::take(&mut *feed.0.readers.lock().await);
    drop((other, foreign));
    for reader in reading.into_values() {
        reader.task.await.unwrap();
    }
    assert_eq!(feed.listeners(), 0);
    let again = feed.subscribe(&runtime, &here).await.unwrap();
    assert_eq!(readers().await, [TenantId::DEFAULT], "it starts again");
    drop(again);
}
