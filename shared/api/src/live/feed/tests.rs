use async_trait::async_trait;
use bus::{Bus, SystemClock};
use model::Message;
use store::Memory;

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
async fn the_news_are_read_only_while_somebody_listens() {
    let runtime = Arc::new(Runtime::new(Arc::new(Memory::default()), Arc::new(Mute), Arc::new(SystemClock)));
    let feed = Feed::default();
    let is_read = async || feed.0.reader.lock().await.is_some();
    assert!(!is_read().await, "nobody listens yet");
    let one = feed.subscribe(&runtime, TenantId::DEFAULT).await.unwrap();
    let other = feed.subscribe(&runtime, TenantId::DEFAULT).await.unwrap();
    drop(one);
    assert!(is_read().await);
    drop(other);
    let reader = feed.0.reader.lock().await.take().unwrap();
    reader.task.await.unwrap();
    assert_eq!(feed.listeners(), 0);
    let again = feed.subscribe(&runtime, TenantId::DEFAULT).await.unwrap();
    assert!(is_read().await, "it begins anew");
    drop(again);
}
