//! An API with the work of tenant `acme`, and people with any grants.

use auth::{Authenticator, Policy, TrustedIssuer};
use axum::http::{Method, StatusCode};
use ebbflow_api::Access;
use serde_json::{Value, json};

use super::rows::Row;
use crate::world::{ISSUER, World, now, sign};

pub(super) const ROLES: [&str; 6] = ["viewer", "operator", "author", "admin", "worker", "partner"];

/// Work of every kind that an address can name.
const ORDERS: &str = "
name: orders
schedules: [{name: nightly, cron: '0 3 * * *'}]
triggers: [{name: hook, webhook: {secret: '{{ secrets.KEY }}'}}]
tasks:
  - {name: a, type: sleep, config: {duration: 1h}}
  - {name: b, type: noop, depends_on: [a]}
";

pub(super) struct Office {
    world: World,
    run: String,
    backfill: String,
    before: String,
}

impl Office {
    /// With one workflow, run and backfill of `acme`, and one of the same name of `default`.
    pub(super) async fn open() -> Self {
        let mut entries = Vec::new();
        // Anyone's grants are named by their groups: `group:viewer:acme` has `viewer:acme`.
        let reaches = ["acme", "other", "*", "acme/orders", "acme/billing", "acme/ord*"];
        for grant in ROLES.iter().flat_map(|role| reaches.map(|reach| format!("{role}:{reach}"))) {
            entries.push((format!("group:{grant}").parse().unwrap(), grant.parse().unwrap()));
        }
        let verifier = ISSUER.verifier("api");
        let trusted = TrustedIssuer { verifier, group_claim: Some("groups".into()) };
        let policy = Policy::read("ada@example.com=admin:*").unwrap().and(Policy::new(entries));
        let world = World::with_access(Access::new(Authenticator::new([trusted]), policy)).await;
        let mut office = Self { world, run: String::new(), backfill: String::new(), before: String::new() };
        // The first caller with a role in it creates the tenant.
        assert_eq!(office.grant_and_get("/workflows", &["admin:acme"]).await.0, StatusCode::OK);
        office.post("/workflows", ORDERS).await;
        let run = office.post("/workflows/orders/runs", "{}").await;
        office.run = run["id"].as_str().unwrap().to_owned();
        let backfill =
            r#"{"workflow": "orders", "from": "2026-01-01T00:00:00Z", "to": "2026-01-09T00:00:00Z"}"#;
        let backfill = office.post("/backfills", backfill).await;
        office.backfill = backfill["id"].as_str().unwrap().to_owned();
        office.before = office.state().await;
        office
    }

    async fn grant_and_get(&self, path: &str, grants: &[&str]) -> (StatusCode, String) {
        self.request(&Method::GET, path, Some(&self.token(grants)), Some("acme"), "").await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Value {
        let token = self.token(&["admin:acme"]);
        let (status, body) = self.request(&Method::POST, path, Some(&token), Some("acme"), body).await;
        assert!(status.is_success(), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// How the work of `acme` stands.
    async fn state(&self) -> String {
        let mut said = String::new();
        for path in ["/workflows", "/runs", "/backfills", "/schedules", "/triggers", "/tokens", "/grants"] {
            said.push_str(&self.grant_and_get(path, &["admin:acme"]).await.1);
        }
        said
    }

    /// What has become of the work of `acme`, if it is not as it was.
    pub(super) async fn changed(&self) -> String {
        let now = self.state().await;
        if now == self.before { String::new() } else { now }
    }

    /// A token of somebody with these grants.
    pub(super) fn token(&self, grants: &[&str]) -> String {
        self.token_of("somebody", grants)
    }

    /// A token of that person with these grants.
    pub(super) fn token_of(&self, who: &str, grants: &[&str]) -> String {
        self.token_with(&json!({"sub": who, "groups": grants}))
    }

    /// A token with these claims, and the usual ones.
    pub(super) fn token_with(&self, claims: &Value) -> String {
        let mut all =
            json!({"iss": ISSUER.url(), "sub": "somebody", "aud": "api", "exp": now().timestamp() + 3600});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        sign(&all)
    }

    /// Deletes something, as an admin.
    pub(super) async fn delete(&self, path: &str) {
        let token = self.token(&["admin:acme"]);
        let (status, body) = self.request(&Method::DELETE, path, Some(&token), Some("acme"), "").await;
        assert!(status.is_success(), "{path}: {status} {body}");
    }

    /// The state of a run.
    pub(super) async fn state_of(&self, run: &str) -> String {
        let (_, body) = self.grant_and_get(&format!("/runs/{run}"), &["admin:acme"]).await;
        serde_json::from_str::<Value>(&body).unwrap()["state"].as_str().unwrap().to_owned()
    }

    /// The number of a workflow's newest version.
    pub(super) async fn newest_version(&self, workflow: &str) -> i64 {
        let (_, body) = self.grant_and_get(&format!("/workflows/{workflow}/versions"), &["admin:acme"]).await;
        serde_json::from_str::<Value>(&body).unwrap()["items"][0]["version"].as_i64().unwrap_or(1)
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    pub(super) async fn ask(&self, row: &Row, grants: &[&str], tenant: Option<&str>) -> StatusCode {
        self.tell(row, grants, tenant).await.0
    }

    pub(super) async fn tell(
        &self,
        row: &Row,
        grants: &[&str],
        tenant: Option<&str>,
    ) -> (StatusCode, String) {
        self.send(row, Some(&self.token(grants)), tenant).await
    }

    pub(super) async fn send(
        &self,
        row: &Row,
        token: Option<&str>,
        tenant: Option<&str>,
    ) -> (StatusCode, String) {
        let nobody = "018f0000-0000-7000-8000-000000000001";
        let path = row.path.replace("RUN", &self.run).replace("BACKFILL", &self.backfill);
        let path = path.replace("NOBODY", nobody);
        let method: Method = row.method.parse().unwrap();
        self.request(&method, &path, token, tenant, row.body).await
    }

    pub(super) async fn request(
        &self,
        method: &Method,
        path: &str,
        token: Option<&str>,
        tenant: Option<&str>,
        body: &str,
    ) -> (StatusCode, String) {
        let authorization = token.map_or(String::new(), |token| format!("Bearer {token}"));
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend(tenant.map(|tenant| ("x-ebb-tenant", tenant)));
        if path.starts_with("/events") || path.ends_with("/follow") {
            // An event stream has no end.
            return (self.world.open(path, &headers).await.status(), String::new());
        }
        let answer = self.world.send(method.clone(), path, &headers, body.to_owned()).await;
        (answer.status, answer.body.to_string())
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }
}
