//! Accounts on a real Postgres.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use auth::Identity;
use chrono::TimeDelta;
use ebbflow_accounts::{
    Accounts, AuditEntry, AuditFilter, Bearer, Claim, GrantRecord, IdempotencyKey, IdentityFilter, NewToken,
    RecordedResponse, Scope,
};
use futures::future::join_all;
use model::{Instant, TenantId};
use serde_json::json;
use store::{Connections, Postgres};
use uuid::Uuid;

const TENANT: TenantId = TenantId::DEFAULT;

struct World {
    accounts: Accounts,
    url: String,
    _database: testkit::Database,
}

async fn world() -> World {
    let database = testkit::migrated(Postgres::migrate).await;
    let url = database.url.clone();
    World { accounts: connect(&url).await, url, _database: database }
}

/// Another instance, which remembers nothing yet.
async fn connect(url: &str) -> Accounts {
    let connections = Connections { acquire_timeout: testkit::DEADLINE, ..Connections::at_most(5) };
    Accounts::new(&Postgres::open(url, None, connections).await.unwrap())
}

fn at(second: i64) -> Instant {
    Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn scope(tenant: Option<TenantId>) -> Scope {
    Scope { role: "viewer".into(), tenant, tenant_name: None, workflows: "etl-*".into() }
}

fn new_token(name: &str, tenant: Option<TenantId>) -> NewToken {
    let expires_at = at(0) + TimeDelta::days(1);
    NewToken { name: name.into(), scope: scope(tenant), created_by: "ada".into(), expires_at }
}

fn grant(number: u8, who: &str, tenant: Option<TenantId>) -> GrantRecord {
    let id = Uuid::from_u128(number.into());
    GrantRecord { id, who: who.into(), scope: scope(tenant), created_at: at(0), created_by: "ada".into() }
}

fn of(tenant: TenantId) -> IdentityFilter {
    IdentityFilter { tenant, everywhere: false, after: None, limit: 10 }
}

fn person(name: &str, groups: &[&str]) -> Identity {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Identity { name: name.into(), email: Some(name.into()), groups }
}

#[tokio::test]
async fn a_token_is_good_until_it_expires_or_is_revoked() {
    let World { accounts, _database, .. } = world().await;
    let acme = accounts.tenant("acme", true, at(0)).await.unwrap().unwrap();
    let (token, record) = accounts.create_token(new_token("ci", Some(acme)), at(0)).await.unwrap();
    let Bearer::Known(identity, grants) = accounts.bearer(&token, at(1)).await.unwrap() else {
        panic!("the token is good");
    };
    assert_eq!(identity.name, format!("token:ci:{}", record.id), "names need not be unique");
    assert_eq!(grants[0].to_string(), "viewer:acme/etl-*");
    let kept = accounts.tokens(&of(acme)).await.unwrap();
    assert!(!format!("{kept:?}").contains(&token["ebb_".len()..]), "only the hash is stored");
    assert_eq!(accounts.bearer(&token, at(86_400)).await.unwrap(), Bearer::Expired);
    assert_eq!(accounts.bearer(&token.to_uppercase(), at(1)).await.unwrap(), Bearer::Unknown);
    let others = accounts.revoke_token(&of(TENANT), record.id, "eve", at(2)).await.unwrap();
    assert_eq!(others, None, "it belongs to another tenant");
    for (by, second) in [("bob", 3), ("eve", 4)] {
        let revoked = accounts.revoke_token(&of(acme), record.id, by, at(second)).await.unwrap().unwrap();
        assert_eq!(revoked.revoked, Some((at(3), "bob".into())), "the first revocation stands");
    }
    assert_eq!(accounts.bearer(&token, at(5)).await.unwrap(), Bearer::Unknown);
}

#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

impl tracing::Subscriber for Statements {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn thousands_of_invented_tokens_cost_few_statements_and_nobody_who_has_one_is_forgotten() {
    let World { accounts, _database, .. } = world().await;
    let (token, _) = accounts.create_token(new_token("ci", None), at(0)).await.unwrap();
    let is_known = |bearer| matches!(bearer, Bearer::Known(..));
    assert!(is_known(accounts.bearer(&token, at(1)).await.unwrap()));
    let (other, _) = accounts.create_token(new_token("other", None), at(0)).await.unwrap();
    let statements = Statements::default();
    let _subscribed = testkit::subscribe(statements.clone());
    let mut invented: Vec<String> = (0..3_000).map(|_| auth::service_token::generate().0).collect();
    invented.insert(1_500, other);
    let bearers = join_all(invented.iter().map(|token| accounts.bearer(token, at(1)))).await;
    let known: Vec<usize> = bearers
        .into_iter()
        .enumerate()
        .filter_map(|(number, bearer)| is_known(bearer.unwrap()).then_some(number))
        .collect();
    assert_eq!(known, [1_500], "a good token among them is found");
    let used = statements.0.swap(0, Ordering::Relaxed);
    assert!((1..=3).contains(&used), "{used} statements");
    assert!(is_known(accounts.bearer(&token, at(1)).await.unwrap()));
    assert_eq!(statements.0.load(Ordering::Relaxed), 0, "it is still remembered");
}

#[tokio::test]
async fn a_database_that_is_gone_fails_every_lookup_at_once() {
    let world = world().await;
    let database = Postgres::connect(&world.url, 5).await.unwrap();
    let accounts = Accounts::new(&database);
    database.pool().close().await;
    let invented: Vec<String> = (0..200).map(|_| auth::service_token::generate().0).collect();
    let lookups = join_all(invented.iter().map(|token| accounts.bearer(token, at(1))));
    let bearers = testkit::within_deadline("they fail together", lookups).await;
    assert!(bearers.iter().all(Result::is_err));
}

#[tokio::test]
async fn tokens_are_listed_by_tenant_and_page() {
    let World { accounts, _database, .. } = world().await;
    let acme = accounts.tenant("acme", true, at(0)).await.unwrap().unwrap();
    for (name, tenant) in [("a", Some(acme)), ("b", None), ("c", Some(TENANT)), ("d", Some(acme))] {
        accounts.create_token(new_token(name, tenant), at(0)).await.unwrap();
    }
    let names = async |filter: IdentityFilter| {
        let found = accounts.tokens(&filter).await.unwrap();
        found.into_iter().map(|token| token.name).collect::<Vec<_>>()
    };
    assert_eq!(names(of(acme)).await, ["a", "d"]);
    assert_eq!(names(IdentityFilter { everywhere: true, ..of(acme) }).await, ["a", "b", "d"]);
    let first = accounts.tokens(&IdentityFilter { limit: 1, ..of(acme) }).await.unwrap();
    assert_eq!(names(IdentityFilter { after: Some(first[0].id), ..of(acme) }).await, ["d"]);
}

#[tokio::test]
async fn a_grant_is_made_once_and_taken_back_within_its_reach() {
    let World { accounts, url, _database } = world().await;
    let acme = accounts.tenant("acme", true, at(0)).await.unwrap().unwrap();
    let first = accounts.add_grant(&grant(1, "ada@example.com", Some(acme))).await.unwrap();
    assert_eq!(first.scope.tenant_name.as_deref(), Some("acme"));
    let again = accounts.add_grant(&grant(2, "ada@example.com", Some(acme))).await.unwrap();
    assert_eq!(again, first, "the grant that exists stays");
    let everywhere = accounts.add_grant(&grant(3, "group:ops", None)).await.unwrap();
    let held = async |identity: &Identity| {
        let grants = accounts.grants_of(identity, at(0)).await.unwrap();
        grants.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(held(&person("ada@example.com", &["ops"])).await, ["viewer:acme/etl-*", "viewer:*/etl-*"]);
    assert_eq!(held(&person("eve@example.com", &[])).await, [""; 0]);
    let all = IdentityFilter { everywhere: true, ..of(acme) };
    assert_eq!(accounts.grants(&of(acme)).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(accounts.grants(&all).await.unwrap(), [first.clone(), everywhere.clone()]);
    let (other, ada) = (connect(&url).await, person("ada@example.com", &[]));
    assert_eq!(accounts.grants_of(&ada, at(0)).await.unwrap().len(), 1);
    assert_eq!(other.remove_grant(&of(acme), everywhere.id).await.unwrap(), None, "it reaches further");
    assert_eq!(other.remove_grant(&of(acme), first.id).await.unwrap(), Some(first));
    assert_eq!(other.grants_of(&ada, at(0)).await.unwrap(), []);
    assert_eq!(accounts.grants_of(&ada, at(6)).await.unwrap(), [], "other instances follow within seconds");
}

#[tokio::test]
async fn a_session_that_was_ended_is_remembered_until_it_would_have_expired() {
    let World { accounts, url, _database } = world().await;
    accounts.end_session(&[1; 32], at(100), at(0)).await.unwrap();
    accounts.end_session(&[1; 32], at(50), at(1)).await.unwrap();
    let ended = async |hash: u8| connect(&url).await.session_ended(&[hash; 32], at(0)).await.unwrap();
    assert!(ended(1).await && !ended(2).await);
    accounts.end_session(&[2; 32], at(200), at(99)).await.unwrap();
    assert!(ended(1).await, "it has not expired");
    accounts.end_session(&[3; 32], at(300), at(100)).await.unwrap();
    assert!(!ended(1).await, "it has expired");
    assert!(ended(2).await);
}

#[tokio::test]
async fn a_tenant_is_created_only_on_demand() {
    let World { accounts, _database, .. } = world().await;
    assert_eq!(accounts.tenant("default", false, at(0)).await.unwrap(), Some(TENANT));
    assert_eq!(accounts.tenant("acme", false, at(0)).await.unwrap(), None);
    let created = accounts.tenant("acme", true, at(0)).await.unwrap();
    assert!(created.is_some());
    assert_eq!(accounts.tenant("acme", false, at(0)).await.unwrap(), created);
}

fn entry(second: i64, actor: &str, target: &str) -> AuditEntry {
    AuditEntry {
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

async fn entries(accounts: &Accounts, filter: AuditFilter) -> Vec<AuditEntry> {
    let found = accounts.audit_entries(TENANT, &AuditFilter { limit: 100, ..filter }).await.unwrap();
    found.items.into_iter().map(|(_, entry)| entry).collect()
}

#[tokio::test]
async fn audit_entries_are_listed_newest_first_by_tenant_and_page() {
    let World { accounts, _database, .. } = world().await;
    let all: Vec<AuditEntry> = (0..5).map(|second| entry(second, "ada", "/runs/1/cancel")).collect();
    for entry in &all {
        accounts.record(entry).await.unwrap();
    }
    let newest_first: Vec<AuditEntry> = all.iter().rev().cloned().collect();
    assert_eq!(entries(&accounts, AuditFilter::default()).await, newest_first);
    let two = AuditFilter { limit: 2, ..AuditFilter::default() };
    let first = accounts.audit_entries(TENANT, &two).await.unwrap().items;
    let after = AuditFilter { after: Some(first[1].0), ..AuditFilter::default() };
    assert_eq!(entries(&accounts, after).await, newest_first[2..]);
    assert_eq!(accounts.audit_entries(TenantId(77), &two).await.unwrap().items, []);
}

#[tokio::test]
async fn audit_entries_are_filtered() {
    let World { accounts, _database, .. } = world().await;
    let (one, other) = (entry(0, "ada", "/runs/1/cancel"), entry(9, "bob \0", "/workflows/etl%_/archive"));
    accounts.record(&one).await.unwrap();
    accounts.record(&other).await.unwrap();
    let none = AuditFilter::default();
    let ada = AuditFilter { actor: Some("ada".into()), ..none.clone() };
    let text = AuditFilter { text: Some("etl%_".into()), ..none.clone() };
    let late = AuditFilter { from: Some(at(5)), ..none.clone() };
    let early = AuditFilter { to: Some(at(9)), ..none.clone() };
    let unknown = AuditFilter { action: Some("x".into()), ..none };
    assert_eq!(entries(&accounts, ada).await, std::slice::from_ref(&one));
    assert_eq!(entries(&accounts, text).await.len(), 1);
    assert_eq!(entries(&accounts, late).await.len(), 1);
    assert_eq!(entries(&accounts, early).await, [one]);
    assert_eq!(entries(&accounts, unknown).await, []);
}

#[tokio::test]
async fn entries_that_arrive_together_are_all_written() {
    let World { accounts, _database, .. } = world().await;
    let all: Vec<AuditEntry> = (0..20).map(|second| entry(second, "ada", "/x")).collect();
    let mut writing = tokio::task::JoinSet::new();
    for entry in all {
        let accounts = accounts.clone();
        writing.spawn(async move { accounts.record(&entry).await });
    }
    for written in writing.join_all().await {
        written.unwrap();
    }
    assert_eq!(entries(&accounts, AuditFilter::default()).await.len(), 20);
}

#[tokio::test]
async fn old_audit_entries_and_idempotency_records_are_pruned() {
    let World { accounts, _database, .. } = world().await;
    for second in 0..4 {
        accounts.record(&entry(second, "ada", "/x")).await.unwrap();
    }
    assert_eq!(claim(&accounts, &key("a"), "one", 0).await, Claim::New);
    assert_eq!(accounts.prune(at(2), at(0)).await.unwrap(), 2);
    assert_eq!(accounts.prune(at(2), at(1)).await.unwrap(), 1);
    assert_eq!(entries(&accounts, AuditFilter::default()).await.len(), 2);
}

fn key(key: &str) -> IdempotencyKey {
    IdempotencyKey { tenant: TENANT, actor: "ada".into(), key: key.into() }
}

fn response() -> RecordedResponse {
    let headers = vec![("location".into(), "/x".into())];
    RecordedResponse { status: 201, headers, body: b"\0\xff{}".to_vec() }
}

async fn claim(accounts: &Accounts, key: &IdempotencyKey, fingerprint: &str, second: i64) -> Claim {
    let (minute, day) = (TimeDelta::minutes(1), TimeDelta::days(1));
    accounts.claim_key(key, fingerprint, at(second), at(second) - minute, at(second) - day).await.unwrap()
}

#[tokio::test]
async fn a_key_is_claimed_once_and_answered_alike() {
    let World { accounts, _database, .. } = world().await;
    assert_eq!(claim(&accounts, &key("a"), "one", 0).await, Claim::New);
    assert_eq!(claim(&accounts, &key("a"), "one", 1).await, Claim::InProgress);
    accounts.record_response(&key("a"), Some(&response())).await.unwrap();
    assert_eq!(claim(&accounts, &key("a"), "one", 2).await, Claim::Answered(response()));
    assert_eq!(claim(&accounts, &key("a"), "two", 2).await, Claim::Mismatch);
    let another = IdempotencyKey { actor: "bob".into(), ..key("a") };
    assert_eq!(claim(&accounts, &another, "two", 2).await, Claim::New, "callers do not share keys");
}

#[tokio::test]
async fn a_key_is_free_again_once_it_is_released_or_its_claimant_is_dead() {
    let World { accounts, _database, .. } = world().await;
    assert_eq!(claim(&accounts, &key("a"), "one", 0).await, Claim::New);
    accounts.record_response(&key("a"), None).await.unwrap();
    assert_eq!(claim(&accounts, &key("a"), "two", 1).await, Claim::New);
    assert_eq!(claim(&accounts, &key("a"), "one", 99).await, Claim::Mismatch, "it may be in progress still");
    assert_eq!(claim(&accounts, &key("a"), "two", 99).await, Claim::New);
    assert_eq!(claim(&accounts, &key("a"), "two", 100).await, Claim::InProgress);
}

#[tokio::test]
async fn a_recorded_response_expires() {
    let World { accounts, _database, .. } = world().await;
    assert_eq!(claim(&accounts, &key("a"), "one", 0).await, Claim::New);
    accounts.record_response(&key("a"), Some(&response())).await.unwrap();
    assert_eq!(claim(&accounts, &key("a"), "two", 86_401).await, Claim::New);
}
