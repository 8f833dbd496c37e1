//! Claims about workflows and versions.

use model::TenantId;
use store::{Activated, NewVersion, Pause, Paused, Registered};

use crate::Subject;
use crate::example::{TENANT, at, definition};

fn later(name: &str, hash: &str, second: i64) -> NewVersion {
    NewVersion { at: at(second), ..definition(name, hash) }
}

pub(crate) async fn the_same_content_again_changes_nothing(store: Subject) {
    let first = store.register(&later("example", "h1", 1)).await.unwrap();
    assert_eq!((first.number, first.new, first.changed), (1, true, true));
    let before = store.workflow(TENANT, "example").await.unwrap();
    let again = store.register(&later("example", "h1", 2)).await.unwrap();
    assert_eq!(again, Registered { new: false, changed: false, ..first });
    assert_eq!(store.workflow(TENANT, "example").await.unwrap(), before);
}

pub(crate) async fn other_content_becomes_the_next_version(store: Subject) {
    let first = store.register(&later("example", "h1", 1)).await.unwrap();
    let second = store.register(&later("example", "h2", 2)).await.unwrap();
    assert_eq!((second.number, second.new), (2, true));
    assert_ne!(second.version, first.version);
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!(record.version.id, second.version);
    assert_eq!((record.created_at, record.updated_at), (at(1), at(2)));
    let other = store.register(&later("other", "h2", 3)).await.unwrap();
    assert_eq!((other.number, other.new), (1, true));
}

pub(crate) async fn registering_older_content_makes_its_version_active_again(store: Subject) {
    let first = store.register(&later("example", "h1", 1)).await.unwrap();
    store.register(&later("example", "h2", 2)).await.unwrap();
    let back = store.register(&later("example", "h1", 3)).await.unwrap();
    assert_eq!(back, Registered { new: false, ..first });
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!((record.version.id, record.updated_at), (first.version, at(3)));
    let third = store.register(&later("example", "h3", 4)).await.unwrap();
    assert_eq!(third.number, 3);
}

pub(crate) async fn concurrent_registrations_are_numbered_one_by_one(store: Subject) {
    let (one, two, three) =
        (definition("example", "h1"), definition("example", "h2"), definition("example", "h1"));
    let (one, two, three) = tokio::join!(store.register(&one), store.register(&two), store.register(&three));
    let (one, two, three) = (one.unwrap(), two.unwrap(), three.unwrap());
    assert_eq!(one.version, three.version);
    assert!(one.new != three.new);
    assert_eq!(one.number + two.number, 3);
}

pub(crate) async fn an_archived_workflow_is_in_use_again_once_it_is_registered(store: Subject) {
    store.register(&definition("example", "h1")).await.unwrap();
    assert!(store.archive(TENANT, "example", at(1)).await.unwrap());
    assert!(!store.archive(TENANT, "example", at(2)).await.unwrap());
    assert!(!store.archive(TENANT, "unknown", at(2)).await.unwrap());
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!((record.archived, record.updated_at), (true, at(1)));

    let back = store.register(&later("example", "h1", 3)).await.unwrap();
    assert_eq!((back.new, back.changed), (false, true));
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!((record.archived, record.updated_at), (false, at(3)));
}

pub(crate) async fn a_version_is_never_changed(store: Subject) {
    let new = definition("example", "h1");
    let first = store.register(&new).await.unwrap();
    let before = store.version(first.version).await.unwrap().unwrap();
    assert_eq!((&before.workflow, &before.source, &before.hash), (&new.workflow, &new.source, &new.hash));
    assert_eq!((before.tenant, before.number, before.created_at), (TENANT, 1, at(0)));
    assert_eq!(before.created_by, "ada");
    store.register(&definition("example", "h2")).await.unwrap();
    let again = NewVersion { source: "other".to_owned(), by: "bob".to_owned(), ..later("example", "h1", 5) };
    store.register(&again).await.unwrap();
    assert_eq!(store.version(first.version).await.unwrap(), Some(before));
}

pub(crate) async fn a_unit_reads_versions(store: Subject) {
    let registered = store.register(&definition("example", "h1")).await.unwrap();
    let outside = store.version(registered.version).await.unwrap();
    let mut unit = store.begin().await.unwrap();
    assert_eq!(unit.version(registered.version).await.unwrap(), outside);
    assert_eq!(unit.version(model::VersionId(77)).await.unwrap(), None);
}

pub(crate) async fn a_workflow_of_another_tenant_is_not_found(store: Subject) {
    store.register(&definition("example", "h1")).await.unwrap();
    let other = TenantId(2);
    assert_eq!(store.workflow(other, "example").await.unwrap(), None);
    assert!(!store.archive(other, "example", at(1)).await.unwrap());
    assert!(store.register(&NewVersion { tenant: other, ..definition("example", "h1") }).await.is_err());
}

pub(crate) async fn a_version_is_found_by_its_number(store: Subject) {
    store.register(&later("example", "h1", 1)).await.unwrap();
    let second = store.register(&later("example", "h2", 2)).await.unwrap();
    let found = store.numbered_version(TENANT, "example", 2).await.unwrap();
    assert!(found.is_some());
    assert_eq!(found, store.version(second.version).await.unwrap());
    for (tenant, name, number) in
        [(TENANT, "example", 3), (TENANT, "example", 0), (TENANT, "unknown", 1), (TenantId(2), "example", 1)]
    {
        assert_eq!(store.numbered_version(tenant, name, number).await.unwrap(), None);
    }
}

pub(crate) async fn an_older_version_is_made_active_again_once(store: Subject) {
    let first = store.register(&later("example", "h1", 1)).await.unwrap();
    store.register(&later("example", "h2", 2)).await.unwrap();
    assert_eq!(store.activate(TENANT, "example", 1, at(3)).await.unwrap(), Activated::Changed);
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!((record.version.id, record.updated_at), (first.version, at(3)));
    assert_eq!(store.activate(TENANT, "example", 1, at(4)).await.unwrap(), Activated::Already);
    assert_eq!(store.workflow(TENANT, "example").await.unwrap(), Some(record));
    assert_eq!(store.register(&later("example", "h3", 5)).await.unwrap().number, 3);
}

pub(crate) async fn a_version_that_does_not_exist_is_not_made_active(store: Subject) {
    store.register(&later("example", "h1", 1)).await.unwrap();
    let before = store.workflow(TENANT, "example").await.unwrap();
    for (tenant, name, number) in
        [(TENANT, "example", 2), (TENANT, "example", 0), (TENANT, "unknown", 1), (TenantId(2), "example", 1)]
    {
        assert_eq!(store.activate(tenant, name, number, at(2)).await.unwrap(), Activated::Unknown);
    }
    assert_eq!(store.workflow(TENANT, "example").await.unwrap(), before);
    assert_eq!(store.workflow(TENANT, "unknown").await.unwrap(), None);
}

pub(crate) async fn activating_a_version_brings_an_archived_workflow_back(store: Subject) {
    store.register(&later("example", "h1", 1)).await.unwrap();
    store.archive(TENANT, "example", at(2)).await.unwrap();
    assert_eq!(store.activate(TENANT, "example", 1, at(3)).await.unwrap(), Activated::Changed);
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!((record.archived, record.updated_at), (false, at(3)));
}

fn pause() -> Pause {
    Pause { at: at(5), by: "ada".into(), reason: Some("the warehouse moves".into()) }
}

pub(crate) async fn a_workflow_pauses_once_and_goes_on_once(store: Subject) {
    store.register(&later("example", "h1", 1)).await.unwrap();
    let stands = async || {
        let found = store.workflow(TENANT, "example").await.unwrap().unwrap();
        let active = store.active(TENANT, "example").await.unwrap().unwrap();
        assert_eq!(active.paused, found.pause.is_some());
        found.pause
    };
    let change =
        async |pause: Option<&Pause>| store.pause_workflow(TENANT, "example", pause, at(6)).await.unwrap();
    assert_eq!(change(None).await, Paused::Already);
    assert_eq!(change(Some(&pause())).await, Paused::Changed);
    assert_eq!(change(Some(&Pause { by: "bob".into(), ..pause() })).await, Paused::Already);
    assert_eq!(stands().await, Some(pause()), "who paused it first is remembered");
    store.register(&later("example", "h2", 7)).await.unwrap();
    assert_eq!(stands().await, Some(pause()), "a new version changes nothing about it");
    assert_eq!(change(None).await, Paused::Changed);
    assert_eq!(stands().await, None);
}

pub(crate) async fn what_is_archived_or_unknown_neither_pauses_nor_goes_on(store: Subject) {
    store.register(&later("example", "h1", 1)).await.unwrap();
    store.archive(TENANT, "example", at(2)).await.unwrap();
    for (tenant, name) in [(TENANT, "example"), (TENANT, "unknown"), (TenantId(77), "example")] {
        let paused = store.pause_workflow(tenant, name, Some(&pause()), at(6)).await.unwrap();
        assert_eq!(paused, Paused::Unknown, "{name}");
    }
}
