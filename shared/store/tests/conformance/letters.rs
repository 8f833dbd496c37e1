//! Claims about dead letters.

use store::DeadLetter;

use crate::Subject;
use crate::example::at;

fn letter(id: &str, second: i64) -> DeadLetter {
    DeadLetter {
        id: id.to_owned(),
        source: "ebbflow-triggers".to_owned(),
        reason: "unknown message type".to_owned(),
        body: "{}".to_owned(),
        at: at(second),
    }
}

pub(crate) async fn dead_letters_come_newest_first(store: Subject) {
    for (id, second) in [("b", 1), ("c", 2), ("a", 1)] {
        store.bury(&letter(id, second)).await.unwrap();
    }
    let all = [letter("c", 2), letter("b", 1), letter("a", 1)];
    assert_eq!(store.dead_letters(9).await.unwrap(), all);
    assert_eq!(store.dead_letters(2).await.unwrap(), all[..2]);
}

pub(crate) async fn the_same_dead_letter_again_changes_nothing(store: Subject) {
    store.bury(&letter("a", 1)).await.unwrap();
    store.bury(&letter("a", 2)).await.unwrap();
    assert_eq!(store.dead_letters(9).await.unwrap(), [letter("a", 1)]);
}

pub(crate) async fn any_dead_letter_can_be_buried(store: Subject) {
    let awkward =
        DeadLetter { body: "a\0b".to_owned(), reason: "\0".to_owned(), ..letter(&"é\0".repeat(9_000), 1) };
    store.bury(&awkward).await.unwrap();
    store.bury(&awkward).await.unwrap();
    let buried = store.dead_letters(9).await.unwrap();
    assert_eq!(buried.len(), 1);
    assert_eq!((buried[0].body.as_str(), buried[0].reason.as_str()), ("a\u{FFFD}b", "\u{FFFD}"));
}
