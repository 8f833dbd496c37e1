//! Claims about dead letters.

use store::{DeadLetter, DeadLetterFilter};

use crate::Subject;
use crate::example::at;

pub(crate) fn letter(id: &str, second: i64) -> DeadLetter {
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
        store.insert_dead_letter(&letter(id, second)).await.unwrap();
    }
    let all = [letter("c", 2), letter("b", 1), letter("a", 1)];
    assert_eq!(store.dead_letters(&DeadLetterFilter::newest(9)).await.unwrap(), all);
    assert_eq!(store.dead_letters(&DeadLetterFilter::newest(2)).await.unwrap(), all[..2]);
}

pub(crate) async fn the_same_dead_letter_again_changes_nothing(store: Subject) {
    store.insert_dead_letter(&letter("a", 1)).await.unwrap();
    store.insert_dead_letter(&letter("a", 2)).await.unwrap();
    assert_eq!(store.dead_letters(&DeadLetterFilter::newest(9)).await.unwrap(), [letter("a", 1)]);
}

pub(crate) async fn any_message_can_be_dead_lettered(store: Subject) {
    let awkward =
        DeadLetter { body: "a\0b".to_owned(), reason: "\0".to_owned(), ..letter(&"é\0".repeat(9_000), 1) };
    store.insert_dead_letter(&awkward).await.unwrap();
    store.insert_dead_letter(&awkward).await.unwrap();
    let dead_lettered = store.dead_letters(&DeadLetterFilter::newest(9)).await.unwrap();
    assert_eq!(dead_lettered.len(), 1);
    assert_eq!(
        (dead_lettered[0].body.as_str(), dead_lettered[0].reason.as_str()),
        ("a\u{FFFD}b", "\u{FFFD}")
    );
}

pub(crate) async fn pages_of_dead_letters_neither_repeat_nor_leave_out(store: Subject) {
    for (id, second) in [("b", 1), ("c", 2), ("a", 1)] {
        store.insert_dead_letter(&letter(id, second)).await.unwrap();
    }
    let mut filter = DeadLetterFilter::newest(1);
    let mut seen = Vec::new();
    while let Some(next) = store.dead_letters(&filter).await.unwrap().pop() {
        filter.after = Some((next.at, next.id.clone()));
        seen.push(next.id);
    }
    assert_eq!(seen, ["c", "b", "a"]);
}

pub(crate) async fn dead_letters_are_filtered_by_source_and_text(store: Subject) {
    let other =
        DeadLetter { source: "else%where".to_owned(), body: "{\"Run\": 1}".to_owned(), ..letter("b", 2) };
    store.insert_dead_letter(&letter("a", 1)).await.unwrap();
    store.insert_dead_letter(&other).await.unwrap();
    let found = async |source: Option<&str>, text: Option<&str>| {
        let (source, text) = (source.map(str::to_owned), text.map(str::to_owned));
        let filter = DeadLetterFilter { source, text, ..DeadLetterFilter::newest(9) };
        store.dead_letters(&filter).await.unwrap().into_iter().map(|letter| letter.id).collect::<Vec<_>>()
    };
    assert_eq!(found(Some("else%where"), None).await, ["b"]);
    assert_eq!(found(None, Some("Run")).await, ["b"]);
    assert_eq!(found(None, Some("message type")).await, ["b", "a"]);
    assert_eq!(found(Some("ebbflow-triggers"), Some("Run")).await, [""; 0]);
    assert_eq!(found(None, Some("%")).await, [""; 0]);
}

pub(crate) async fn a_dead_letter_is_there_until_it_is_thrown_away(store: Subject) {
    let long = "é\0".repeat(9_000);
    for id in ["a", &long] {
        store.insert_dead_letter(&letter(id, 1)).await.unwrap();
        assert_eq!(store.dead_letter(id).await.unwrap().map(|letter| letter.at), Some(at(1)));
        assert!(store.discard(id).await.unwrap());
        assert_eq!(store.dead_letter(id).await.unwrap(), None);
        assert!(!store.discard(id).await.unwrap());
    }
}

pub(crate) async fn expired_dead_letters_are_deleted(store: Subject) {
    for second in 1..=3 {
        store.insert_dead_letter(&letter(&second.to_string(), second)).await.unwrap();
    }
    assert_eq!(store.delete_dead_letters(at(0)).await.unwrap(), 0);
    assert_eq!(store.delete_dead_letters(at(2)).await.unwrap(), 2);
    assert_eq!(store.dead_letters(&DeadLetterFilter::newest(9)).await.unwrap(), [letter("3", 3)]);
    for second in 0..600 {
        store.insert_dead_letter(&letter(&format!("many {second}"), second)).await.unwrap();
    }
    let first = store.delete_dead_letters(at(599)).await.unwrap();
    assert!(first < 601, "a few at a time: {first}");
    assert_eq!(first + store.delete_dead_letters(at(599)).await.unwrap(), 601);
}
