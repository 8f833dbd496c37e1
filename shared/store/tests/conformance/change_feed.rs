//! Claims about what listeners are told.

use model::RunId;
use store::{FeedCursor, FeedPage};

use crate::Subject;
use crate::example::{changes, event, example, record, step};

async fn begin(store: &Subject) -> FeedCursor {
    store.news(None, 100).await.unwrap().unwrap().cursor
}

async fn read(store: &Subject, since: &FeedCursor) -> FeedPage {
    store.news(Some(since), 100).await.unwrap().unwrap()
}

/// The number of the first event of each item, with its run.
fn firsts(news: &FeedPage) -> Vec<(RunId, i64)> {
    news.items.iter().map(|item| (item.run, item.first)).collect()
}

pub(crate) async fn what_was_committed_since_a_bookmark_is_told_once(store: Subject) {
    let id = example(&*store, 1).await;
    let start = begin(&store).await;
    assert_eq!(firsts(&read(&store, &start).await), []);
    step(&*store, id, |changes| record(changes, &[event(0), event(1)])).await.unwrap();
    let news = read(&store, &start).await;
    assert!(news.complete);
    assert_eq!(firsts(&news), [(id, 0)]);
    let item = &news.items[0];
    assert_eq!((item.workflow.as_str(), item.events.clone()), ("example", vec![event(0), event(1)]));
    let run = store.run(item.tenant, id).await.unwrap().unwrap().run;
    assert_eq!((item.version, item.state), (run.version, run.state));
    step(&*store, id, |changes| record(changes, &[event(2)])).await.unwrap();
    assert_eq!(firsts(&read(&store, &news.cursor).await), [(id, 2)]);
    assert_eq!(firsts(&read(&store, &start).await), [(id, 0), (id, 2)], "a cursor can be used again");
}

pub(crate) async fn what_was_not_committed_is_no_news(store: Subject) {
    let id = example(&*store, 1).await;
    let start = begin(&store).await;
    let failed = step(&*store, id, |changes| {
        record(changes, &[event(0)]);
        changes.run.revision += 1;
    });
    assert!(failed.await.is_err());
    assert_eq!(firsts(&read(&store, &start).await), []);
}

/// A reading in between must not lose what began before it and is committed after it.
pub(crate) async fn a_write_that_was_overtaken_is_told_when_it_is_committed(store: Subject) {
    let (slow, quick) = (example(&*store, 1).await, example(&*store, 2).await);
    let start = begin(&store).await;
    let mut unit = store.begin().await.unwrap();
    let run = unit.lock(&[slow]).await.unwrap().remove(0);
    let mut changes = changes(run);
    record(&mut changes, &[event(0)]);
    unit.save(&[changes]).await.unwrap();
    let overtakes = async {
        step(&*store, quick, |changes| record(changes, &[event(1)])).await.unwrap();
        read(&store, &start).await
    };
    // Where units take turns, nobody overtakes.
    let news = match tokio::time::timeout(std::time::Duration::from_millis(300), overtakes).await {
        Ok(news) => {
            assert_eq!(firsts(&news), [(quick, 0)]);
            news.cursor
        }
        Err(_) => start,
    };
    unit.commit().await.unwrap();
    assert!(firsts(&read(&store, &news).await).contains(&(slow, 0)));
}

pub(crate) async fn news_of_one_run_come_in_order(store: Subject) {
    let (one, other) = (example(&*store, 1).await, example(&*store, 2).await);
    let start = begin(&store).await;
    for number in 0..3 {
        step(&*store, other, |changes| record(changes, &[event(number)])).await.unwrap();
        step(&*store, one, |changes| record(changes, &[event(number)])).await.unwrap();
    }
    let news = read(&store, &start).await;
    let of = |run| firsts(&news).into_iter().filter(move |(id, _)| *id == run).map(|(_, first)| first);
    assert_eq!(of(one).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(of(other).collect::<Vec<_>>(), [0, 1, 2]);
}

pub(crate) async fn whoever_missed_too_much_is_told_so(store: Subject) {
    let id = example(&*store, 1).await;
    let start = begin(&store).await;
    for number in 0..3 {
        step(&*store, id, |changes| record(changes, &[event(number)])).await.unwrap();
    }
    let news = store.news(Some(&start), 2).await.unwrap().unwrap();
    assert_eq!((news.items.len(), news.complete), (2, false));
    assert_eq!(firsts(&read(&store, &news.cursor).await), [], "it goes on with what happens next");
}

pub(crate) async fn a_bookmark_of_nobody_is_refused(store: Subject) {
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
        assert_eq!(store.news(Some(&FeedCursor(text.into())), 2).await.unwrap(), None, "{text:?}");
    }
}
