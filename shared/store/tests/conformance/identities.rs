//! Service tokens and grants.

use chrono::TimeDelta;
use model::{Instant, TenantId};
use store::{GrantRecord, IdentityFilter, RoleRecord, TokenRecord};
use uuid::Uuid;

use crate::Subject;

fn at(second: i64) -> Instant {
    Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn scope(tenant: Option<TenantId>) -> RoleRecord {
    RoleRecord { role: "viewer".into(), tenant, tenant_name: None, workflows: "etl-*".into() }
}

fn token(number: u8, tenant: Option<TenantId>) -> TokenRecord {
    TokenRecord {
        id: Uuid::from_u128(number.into()),
        hash: [number; 32],
        name: format!("ci {number}"),
        scope: scope(tenant),
        created_at: at(0),
        created_by: "ada".into(),
        expires_at: at(0) + TimeDelta::days(1),
        revoked: None,
    }
}

fn grant(number: u8, who: &str, tenant: Option<TenantId>) -> GrantRecord {
    GrantRecord {
        id: Uuid::from_u128(number.into()),
        who: who.into(),
        scope: scope(tenant),
        created_at: at(0),
        created_by: "ada".into(),
    }
}

fn of(tenant: TenantId) -> IdentityFilter {
    IdentityFilter { tenant, everywhere: false, after: None, limit: 10 }
}

/// A token as it comes back: with the name of its tenant.
fn named(token: TokenRecord, name: &str) -> TokenRecord {
    TokenRecord { scope: RoleRecord { tenant_name: Some(name.into()), ..token.scope }, ..token }
}

pub(crate) async fn a_token_is_found_by_its_hash_until_and_after_it_was_revoked(store: Subject) {
    let acme = store.tenant("acme", at(0)).await.unwrap();
    let made = token(1, Some(acme));
    store.add_token(&made).await.unwrap();
    let found = store.token_by_hash(&made.hash).await.unwrap();
    assert_eq!(found, Some(named(made.clone(), "acme")));
    assert_eq!(store.token_by_hash(&[9; 32]).await.unwrap(), None);
    let others = store.revoke_token(&of(TenantId::DEFAULT), made.id, "eve", at(1)).await.unwrap();
    assert_eq!(others, None, "another tenant's token is not there");
    for (by, second) in [("bob", 2), ("cid", 3)] {
        let revoked = store.revoke_token(&of(acme), made.id, by, at(second)).await.unwrap().unwrap();
        assert_eq!(revoked.revoked, Some((at(2), "bob".into())), "the first to revoke it stands");
    }
    let found = store.token_by_hash(&made.hash).await.unwrap().unwrap();
    assert!(found.revoked.is_some());
}

pub(crate) async fn tokens_are_listed_by_tenant_and_those_of_all_tenants_only_if_asked_for(store: Subject) {
    let acme = store.tenant("acme", at(0)).await.unwrap();
    for made in
        [token(1, Some(acme)), token(2, None), token(3, Some(TenantId::DEFAULT)), token(4, Some(acme))]
    {
        store.add_token(&made).await.unwrap();
    }
    let names = async |filter: IdentityFilter| {
        let found = store.tokens(&filter).await.unwrap();
        found.into_iter().map(|token| token.name).collect::<Vec<_>>()
    };
    assert_eq!(names(of(acme)).await, ["ci 1", "ci 4"]);
    assert_eq!(names(IdentityFilter { everywhere: true, ..of(acme) }).await, ["ci 1", "ci 2", "ci 4"]);
    let next = IdentityFilter { after: Some(Uuid::from_u128(1)), limit: 1, ..of(acme) };
    assert_eq!(names(next).await, ["ci 4"]);
    assert_eq!(names(of(TenantId::DEFAULT)).await, ["ci 3"]);
}

pub(crate) async fn a_grant_is_given_once_and_found_by_whom_it_is_for(store: Subject) {
    let acme = store.tenant("acme", at(0)).await.unwrap();
    let first = store.add_grant(&grant(1, "ada@example.com", Some(acme))).await.unwrap();
    assert_eq!(first.scope.tenant_name.as_deref(), Some("acme"));
    let again = store.add_grant(&grant(2, "ada@example.com", Some(acme))).await.unwrap();
    assert_eq!(again.id, first.id, "the same again is the one that is there");
    let everywhere = store.add_grant(&grant(3, "group:ops", None)).await.unwrap();
    let again = store.add_grant(&grant(4, "group:ops", None)).await.unwrap();
    assert_eq!(again.id, everywhere.id);
    let who = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let found = store.grants_of(&who(&["group:ops", "ada@example.com", "@example.com"])).await.unwrap();
    assert_eq!(found, [first.clone(), everywhere.clone()]);
    assert_eq!(store.grants_of(&who(&["ADA@example.com"])).await.unwrap(), []);
    assert_eq!(store.grants(&of(acme)).await.unwrap(), std::slice::from_ref(&first));
    let all = IdentityFilter { everywhere: true, ..of(acme) };
    assert_eq!(store.grants(&all).await.unwrap(), [first.clone(), everywhere.clone()]);
    assert_eq!(store.remove_grant(&of(acme), everywhere.id).await.unwrap(), None, "it reaches further");
    assert_eq!(store.remove_grant(&of(acme), first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.remove_grant(&of(acme), first.id).await.unwrap(), None);
    assert_eq!(store.grants_of(&who(&["ada@example.com"])).await.unwrap(), []);
}

pub(crate) async fn a_session_that_was_ended_is_known_until_it_would_have_ended_by_itself(store: Subject) {
    store.end_session(&[1; 32], at(100), at(0)).await.unwrap();
    store.end_session(&[1; 32], at(50), at(1)).await.unwrap();
    assert!(store.session_ended(&[1; 32]).await.unwrap());
    assert!(!store.session_ended(&[2; 32]).await.unwrap());
    store.end_session(&[2; 32], at(200), at(99)).await.unwrap();
    assert!(store.session_ended(&[1; 32]).await.unwrap(), "its time is not over");
    store.end_session(&[3; 32], at(300), at(100)).await.unwrap();
    assert!(!store.session_ended(&[1; 32]).await.unwrap(), "it has ended by itself");
    assert!(store.session_ended(&[2; 32]).await.unwrap());
}
