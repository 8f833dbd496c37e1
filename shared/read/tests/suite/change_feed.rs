//! The change feed: each change once, in order, and only of the reader's tenant.

use model::{Event, RunId, TenantId};
use read::{ChangeFeed, FeedCursor, FeedPage};
use serde_json::json;
use store::{Runs, Transactions};

use crate::example::{TENANT, changes, event, example, record, step};
use crate::world::World;

fn feed(world: &World) -> ChangeFeed {
    world.reader("viewer:default").change_feed(None).unwrap()
}

async fn read(feed: &ChangeFeed, since: &FeedCursor) -> FeedPage {
    feed.since(since, 100).await.unwrap().unwrap()
}

/// The number of the first event of each item, with its run.
fn firsts(page: &FeedPage) -> Vec<(RunId, i64)> {
    page.items.iter().map(|item| (item.run, item.first)).collect()
}

#[tokio::test]
async fn what_was_committed_since_a_cursor_is_read_once() {
    let world = World::new().await;
    let (store, feed) = (world.postgres(), feed(&world));
    let id = example(store, 1).await;
    let start = feed.end().await.unwrap();
    assert_eq!(firsts(&read(&feed, &start).await), []);
    step(store, id, |changes| record(changes, &[event(0), event(1)])).await.unwrap();
    let page = read(&feed, &start).await;
    assert!(page.complete);
    assert_eq!(firsts(&page), [(id, 0)]);
    let item = &page.items[0];
    assert_eq!((item.workflow.as_str(), item.events.clone()), ("example", vec![event(0), event(1)]));
    let run = store.run(TENANT, id).await.unwrap().unwrap().run;
    assert_eq!((item.version, item.state), (run.version, run.state));
    step(store, id, |changes| record(changes, &[event(2)])).await.unwrap();
    assert_eq!(firsts(&read(&feed, &page.cursor).await), [(id, 2)]);
    assert_eq!(firsts(&read(&feed, &start).await), [(id, 0), (id, 2)], "a cursor can be used again");
}

#[tokio::test]
async fn what_was_not_committed_is_not_read() {
    let world = World::new().await;
    let (store, feed) = (world.postgres(), feed(&world));
    let id = example(store, 1).await;
    let start = feed.end().await.unwrap();
    let failed = step(store, id, |changes| {
        record(changes, &[event(0)]);
        changes.run.revision += 1;
    });
    assert!(failed.await.is_err());
    assert_eq!(firsts(&read(&feed, &start).await), []);
}

#[tokio::test]
async fn a_write_that_was_overtaken_is_read_once_it_is_committed() {
    let world = World::new().await;
    let (store, feed) = (world.postgres(), feed(&world));
    let (slow, quick) = (example(store, 1).await, example(store, 2).await);
    let start = feed.end().await.unwrap();
    let mut unit = store.begin().await.unwrap();
    let run = unit.lock(&[slow]).await.unwrap().remove(0);
    let mut changes = changes(run);
    record(&mut changes, &[event(0)]);
    unit.save(&[changes]).await.unwrap();
    step(store, quick, |changes| record(changes, &[event(1)])).await.unwrap();
    let page = read(&feed, &start).await;
    assert_eq!(firsts(&page), [(quick, 0)]);
    unit.commit().await.unwrap();
    assert_eq!(firsts(&read(&feed, &page.cursor).await), [(slow, 0)], "a read in between does not lose it");
}

#[tokio::test]
async fn changes_of_one_run_come_in_order() {
    let world = World::new().await;
    let (store, feed) = (world.postgres(), feed(&world));
    let (one, other) = (example(store, 1).await, example(store, 2).await);
    let start = feed.end().await.unwrap();
    for number in 0..3 {
        step(store, other, |changes| record(changes, &[event(number)])).await.unwrap();
        step(store, one, |changes| record(changes, &[event(number)])).await.unwrap();
    }
    let page = read(&feed, &start).await;
    let of = |run| firsts(&page).into_iter().filter(move |(id, _)| *id == run).map(|(_, first)| first);
    assert_eq!(of(one).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(of(other).collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test]
async fn a_page_that_leaves_changes_out_says_so() {
    let world = World::new().await;
    let (store, feed) = (world.postgres(), feed(&world));
    let id = example(store, 1).await;
    let start = feed.end().await.unwrap();
    for number in 0..3 {
        step(store, id, |changes| record(changes, &[event(number)])).await.unwrap();
    }
    let page = feed.since(&start, 2).await.unwrap().unwrap();
    assert_eq!((page.items.len(), page.complete), (2, false));
    assert_eq!(firsts(&read(&feed, &page.cursor).await), [], "it goes on with what happens next");
}

#[tokio::test]
async fn a_page_of_large_changes_ends_early_and_says_so() {
    let world = World::new().await;
    let (store, feed) = (world.postgres(), feed(&world));
    let id = example(store, 1).await;
    let start = feed.end().await.unwrap();
    for number in 0..20 {
        let large = Event { data: json!("x".repeat(300_000)), ..event(number) };
        step(store, id, |changes| record(changes, std::slice::from_ref(&large))).await.unwrap();
    }
    let page = read(&feed, &start).await;
    assert!(!page.complete);
    assert!((1..=5).contains(&page.items.len()), "{} items", page.items.len());
    assert_eq!(firsts(&read(&feed, &page.cursor).await), [], "it goes on with what happens next");
}

#[tokio::test]
async fn an_unknown_cursor_is_refused() {
    let world = World::new().await;
    let feed = feed(&world);
    for text in [
        "",
        "x",
        "1:2",
        "9:1:",
        "1:5:9",
        "1:9:7,5",
        "99999999999999999999999:1:",
        "\0",
        "-1",
        "8888888888:8888888888:",
    ] {
        assert_eq!(feed.since(&FeedCursor(text.into()), 2).await.unwrap(), None, "{text:?}");
    }
}

#[tokio::test]
async fn a_feed_has_the_changes_of_its_tenant_only() {
    let world = World::new().await;
    let feeds =
        [TenantId::DEFAULT, world.other].map(|tenant| world.admin_of(tenant).change_feed(None).unwrap());
    let start = feeds[0].end().await.unwrap();
    let own = world.start(TenantId::DEFAULT, "etl", 1).await;
    let foreign = world.start(world.other, "etl", 2).await;
    for (feed, run) in feeds.iter().zip([own, foreign]) {
        let page = read(feed, &start).await;
        assert!(!page.items.is_empty() && page.items.iter().all(|item| item.run == run), "{page:?}");
    }
}

#[tokio::test]
async fn a_feed_is_for_callers_who_may_read_what_they_ask_for() {
    let world = World::new().await;
    let run = world.start(TenantId::DEFAULT, "orders", 1).await;
    for (grant, workflow, allowed) in [
        ("viewer:default", None, true),
        ("viewer:default/etl", None, false),
        ("viewer:default/etl", Some("etl"), true),
        ("viewer:default/etl", Some("orders"), false),
        ("partner:default", Some("etl"), false),
        ("viewer:other", None, false),
    ] {
        assert_eq!(world.reader(grant).change_feed(workflow).is_ok(), allowed, "{grant} {workflow:?}");
    }
    assert!(world.reader("viewer:default/etl").run(run).await.is_err());
    assert_eq!(world.reader("viewer:default").run(run).await.unwrap().change_feed().tenant(), TENANT);
}
