//! Claims about workflows and versions.

use model::TenantId;
use store::{NewVersion, Registered};

use crate::Subject;
use crate::example::{TENANT, at, definition};

fn later(name: &str, hash: &str, second: i64) -> NewVersion {
    NewVersion { at: at(second), ..definition(name, hash) }
}

pub(crate) async fn the_same_content_again_changes_nothing(store: Subject) {
    let first = store.register(&later("example", "h1", 1)).await.unwrap();
    assert_eq!((first.number, first.new), (1, true));
    let before = store.workflow(TENANT, "example").await.unwrap();
    let again = store.register(&later("example", "h1", 2)).await.unwrap();
    assert_eq!(again, Registered { new: false, ..first });
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

pub(crate) async fn an_archived_workflow_is_not_listed_until_it_is_registered_again(store: Subject) {
    store.register(&definition("example", "h1")).await.unwrap();
    assert!(store.archive(TENANT, "example", at(1)).await.unwrap());
    assert!(!store.archive(TENANT, "example", at(2)).await.unwrap());
    assert!(!store.archive(TENANT, "unknown", at(2)).await.unwrap());
    assert_eq!(store.workflows(TENANT, None, 9).await.unwrap(), []);
    let record = store.workflow(TENANT, "example").await.unwrap().unwrap();
    assert_eq!((record.archived, record.updated_at), (true, at(1)));

    assert!(!store.register(&later("example", "h1", 3)).await.unwrap().new);
    let listed = store.workflows(TENANT, None, 9).await.unwrap();
    assert_eq!((listed[0].archived, listed[0].updated_at), (false, at(3)));
}

pub(crate) async fn workflows_are_listed_by_name_and_by_page(store: Subject) {
    for name in ["b", "a-b", "B", "a_b", "a"] {
        store.register(&definition(name, "h1")).await.unwrap();
    }
    let names = async |after: Option<&str>, limit| -> Vec<String> {
        let page = store.workflows(TENANT, after, limit).await.unwrap();
        page.into_iter().map(|workflow| workflow.name).collect()
    };
    assert_eq!(names(None, 9).await, ["B", "a", "a-b", "a_b", "b"]);
    assert_eq!(names(None, 2).await, ["B", "a"]);
    assert_eq!(names(Some("a"), 2).await, ["a-b", "a_b"]);
    assert_eq!(names(Some("b"), 2).await, [""; 0]);
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
    assert_eq!(store.workflows(other, None, 9).await.unwrap(), []);
    assert!(!store.archive(other, "example", at(1)).await.unwrap());
    assert!(store.register(&NewVersion { tenant: other, ..definition("example", "h1") }).await.is_err());
}
