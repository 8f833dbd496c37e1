//! Claims about the audit log, and about answers that are kept for a while.

use chrono::TimeDelta;
use model::TenantId;
use serde_json::json;
use store::{Deed, DeedFilter, Known, Receipt, ReceiptKey};

use crate::Subject;
use crate::example::{TENANT, at};

fn deed(second: i64, actor: &str, target: &str) -> Deed {
    Deed {
        tenant: TENANT,
        at: at(second),
        actor: actor.into(),
        origin: Some("192.0.2.7".into()),
        forwarded: None,
        agent: Some("ebb".into()),
        action: "runs_post_cancel".into(),
        target: target.into(),
        key: None,
        status: 200,
        before: Some(json!({"state": "running"})),
        after: Some(json!({"state": "cancelled"})),
    }
}

async fn read(store: &Subject, filter: DeedFilter) -> Vec<Deed> {
    let found = store.deeds(TENANT, &DeedFilter { limit: 100, ..filter }).await.unwrap();
    found.into_iter().map(|(_, deed)| deed).collect()
}

pub(crate) async fn deeds_come_newest_first_and_by_page(store: Subject) {
    let all: Vec<Deed> = (0..5).map(|second| deed(second, "ada", "/runs/1/cancel")).collect();
    for deed in &all {
        store.note_deed(deed).await.unwrap();
    }
    let newest_first: Vec<Deed> = all.iter().rev().cloned().collect();
    assert_eq!(read(&store, DeedFilter::default()).await, newest_first);
    let first = store.deeds(TENANT, &DeedFilter { limit: 2, ..DeedFilter::default() }).await.unwrap();
    let rest = read(&store, DeedFilter { after: Some(first[1].0), ..DeedFilter::default() }).await;
    assert_eq!(rest, newest_first[2..]);
    assert_eq!(
        store.deeds(TenantId(77), &DeedFilter { limit: 9, ..DeedFilter::default() }).await.unwrap(),
        []
    );
}

pub(crate) async fn deeds_are_filtered(store: Subject) {
    let (one, other) = (deed(0, "ada", "/runs/1/cancel"), deed(9, "bob \0", "/workflows/etl%_/archive"));
    store.note_deed(&one).await.unwrap();
    store.note_deed(&other).await.unwrap();
    let none = DeedFilter::default();
    let ada = DeedFilter { actor: Some("ada".into()), ..none.clone() };
    let text = DeedFilter { text: Some("etl%_".into()), ..none.clone() };
    let late = DeedFilter { from: Some(at(5)), ..none.clone() };
    let early = DeedFilter { to: Some(at(9)), ..none.clone() };
    let unknown = DeedFilter { action: Some("x".into()), ..none };
    assert_eq!(read(&store, ada).await, std::slice::from_ref(&one));
    assert_eq!(read(&store, text).await.len(), 1);
    assert_eq!(read(&store, late).await.len(), 1);
    assert_eq!(read(&store, early).await, [one]);
    assert_eq!(read(&store, unknown).await, []);
}

pub(crate) async fn deeds_that_were_kept_long_enough_are_forgotten(store: Subject) {
    for second in 0..4 {
        store.note_deed(&deed(second, "ada", "/x")).await.unwrap();
    }
    assert_eq!(store.forget_deeds(at(2)).await.unwrap(), 2);
    assert_eq!(store.forget_deeds(at(2)).await.unwrap(), 0);
    assert_eq!(read(&store, DeedFilter::default()).await.len(), 2);
}

fn key(key: &str) -> ReceiptKey {
    ReceiptKey { tenant: TENANT, actor: "ada".into(), key: key.into() }
}

fn receipt() -> Receipt {
    Receipt { status: 201, headers: vec![("location".into(), "/x".into())], body: b"\0\xff{}".to_vec() }
}

async fn take(store: &Subject, key: &ReceiptKey, fingerprint: &str, second: i64) -> Known {
    let (minute, day) = (TimeDelta::minutes(1), TimeDelta::days(1));
    store.take_key(key, fingerprint, at(second), at(second) - minute, at(second) - day).await.unwrap()
}

pub(crate) async fn a_key_is_taken_once_and_answered_alike(store: Subject) {
    assert_eq!(take(&store, &key("a"), "one", 0).await, Known::New);
    assert_eq!(take(&store, &key("a"), "one", 1).await, Known::UnderWay);
    store.keep_receipt(&key("a"), Some(&receipt())).await.unwrap();
    assert_eq!(take(&store, &key("a"), "one", 2).await, Known::Answered(receipt()));
    assert_eq!(take(&store, &key("a"), "two", 2).await, Known::Other);
    let another = ReceiptKey { actor: "bob".into(), ..key("a") };
    assert_eq!(take(&store, &another, "two", 2).await, Known::New, "everybody has keys of their own");
}

pub(crate) async fn a_key_is_free_again_once_it_is_let_go_or_its_taker_is_dead(store: Subject) {
    assert_eq!(take(&store, &key("a"), "one", 0).await, Known::New);
    store.keep_receipt(&key("a"), None).await.unwrap();
    assert_eq!(take(&store, &key("a"), "two", 1).await, Known::New);
    assert_eq!(take(&store, &key("a"), "one", 99).await, Known::Other, "it may be under way still");
    assert_eq!(take(&store, &key("a"), "two", 99).await, Known::New);
    assert_eq!(take(&store, &key("a"), "two", 100).await, Known::UnderWay);
}

pub(crate) async fn an_answer_counts_for_a_while_and_is_then_forgotten(store: Subject) {
    assert_eq!(take(&store, &key("a"), "one", 0).await, Known::New);
    store.keep_receipt(&key("a"), Some(&receipt())).await.unwrap();
    assert_eq!(take(&store, &key("a"), "two", 86_401).await, Known::New);
    assert_eq!(store.forget_receipts(at(86_401)).await.unwrap(), 0);
    assert_eq!(store.forget_receipts(at(86_402)).await.unwrap(), 1);
}
