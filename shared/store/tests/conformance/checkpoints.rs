//! Claims about how far attempts have come.

use serde_json::json;
use store::{Checkpoint, Part};

use crate::Subject;
use crate::example::{at, example, finish, key};

pub(crate) async fn the_last_word_of_the_latest_attempt_stands(store: Subject) {
    let run = example(&*store, 1).await;
    let said = |attempt, second, data| Checkpoint { attempt, at: at(second), data };
    assert_eq!(store.checkpoint(key(run, 0)).await.unwrap(), None);
    for (checkpoint, kept) in [
        (said(1, 1, json!({"rows": 10})), true),
        (said(1, 2, json!({"rows": 20})), true),
        (said(2, 3, json!("a\u{0}b")), true),
        (said(1, 4, json!({"rows": 30})), false),
    ] {
        assert_eq!(store.keep_checkpoint(key(run, 0), &checkpoint).await.unwrap(), kept, "{checkpoint:?}");
    }
    assert_eq!(store.checkpoint(key(run, 0)).await.unwrap(), Some(said(2, 3, json!("a\u{0}b"))));
    assert_eq!(store.checkpoint(key(run, 1)).await.unwrap(), None);
    finish(&*store, run).await;
    store.forget(Part::Whole, &[run]).await.unwrap();
    assert_eq!(store.checkpoint(key(run, 0)).await.unwrap(), None, "it is gone with its run");
}
