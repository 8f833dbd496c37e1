//! Who may see which page: every route, for every role, in one's own tenant and in another's.
//!
//! The rows are written by hand: a second opinion on what the pages check. A route without a row fails.

mod live;
mod routes;
mod strangers;

use std::sync::LazyLock;

use auth::{Issuer, TrustedIssuer};
use axum::http::Method;
use model::Clock;

use super::*;
use Who::{Admins, Anyone, Authors, Followers, Members, Operators, Readers};

/// Making a key takes a while: all tests share one.
static ISSUER: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate("https://issuer.test"));

const ROLES: [&str; 6] = ["viewer", "operator", "author", "admin", "worker", "partner"];

/// Everything of `orders` and `billing` that only readers may see has this in it.
const HIDDEN: &str = "hidden-";

const ORDERS: &str = "{name: orders, description: hidden-description, tasks: [{name: a, type: echo, config: {value: hidden-value}}]}";
const BILLING: &str =
    "{name: billing, tasks: [{name: hidden-approval, type: approval, config: {message: hidden-question}}]}";

/// Who may see a page, or press its button.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    /// Signing in needs no role.
    Anyone,
    /// Any role in the tenant.
    Members,
    Followers,
    Readers,
    Operators,
    Authors,
    Admins,
}

/// A route, an address that it serves, and who may use it.
struct Row {
    method: &'static str,
    template: &'static str,
    path: &'static str,
    form: &'static str,
    who: Who,
    /// Only for roles in every tenant.
    instance: bool,
    /// The address names something of `acme`.
    names: bool,
}

const fn get(template: &'static str, path: &'static str, who: Who) -> Row {
    Row { method: "GET", template, path, form: "", who, instance: false, names: false }
}

const fn post(template: &'static str, path: &'static str, form: &'static str, who: Who) -> Row {
    Row { method: "POST", template, path, form, who, instance: false, names: false }
}

const fn of(row: Row) -> Row {
    Row { names: true, ..row }
}

const fn instance(row: Row) -> Row {
    Row { instance: true, ..row }
}

const ROWS: &[Row] = &[
    get("/", "/", Followers),
    get("/live", "/live", Readers),
    get("/palette", "/palette", Followers),
    post("/theme", "/theme", "theme=dark", Members),
    get("/runs", "/runs", Followers),
    post("/runs/bulk", "/runs/bulk", "action=pause&workflow=orders", Operators),
    of(get("/runs/{id}", "/runs/RUN", Readers)),
    of(post("/runs/{id}/{action}", "/runs/RUN/evaluate", "", Operators)),
    of(get("/runs/{id}/tasks/{task}", "/runs/RUN/tasks/a", Readers)),
    of(get("/runs/{id}/tasks/{task}/log", "/runs/RUN/tasks/a/log", Readers)),
    of(post("/runs/{id}/tasks/{task}/{action}", "/runs/RUN/tasks/a/clear", "", Operators)),
    get("/workflows", "/workflows", Readers),
    get("/types", "/types", Readers),
    of(get("/workflows/{name}", "/workflows/orders", Readers)),
    of(get("/workflows/{name}/trigger", "/workflows/orders/trigger", Readers)),
    of(post("/workflows/{name}/trigger", "/workflows/orders/trigger", "", Operators)),
    of(get("/workflows/{name}/source", "/workflows/orders/source", Readers)),
    of(get("/workflows/{name}/versions", "/workflows/orders/versions", Readers)),
    of(post(
        "/workflows/{name}/versions/{number}/activate",
        "/workflows/orders/versions/1/activate",
        "",
        Authors,
    )),
    of(get("/workflows/{name}/backfill", "/workflows/orders/backfill", Readers)),
    of(post("/workflows/{name}/backfill", "/workflows/orders/backfill", "from=x", Operators)),
    get("/operations", "/operations", Readers),
    instance(post("/operations/limits/{kind}/{name}", "/operations/limits/queue/light", "slots=4", Admins)),
    get("/operations/workers", "/operations/workers", Readers),
    get("/operations/timers", "/operations/timers", Readers),
    get("/operations/schedules", "/operations/schedules", Readers),
    get("/operations/triggers", "/operations/triggers", Readers),
    of(post(
        "/operations/triggers/{workflow}/{name}/{action}",
        "/operations/triggers/orders/hook/pause",
        "",
        Operators,
    )),
    get("/operations/backfills", "/operations/backfills", Readers),
    instance(get("/operations/dead-letters", "/operations/dead-letters", Readers)),
    get("/operations/breakers", "/operations/breakers", Readers),
    get("/operations/audit", "/operations/audit", Admins),
    get("/operations/audit/export", "/operations/audit/export", Admins),
    instance(get("/operations/health", "/operations/health", Readers)),
    instance(post("/operations/health", "/operations/health", "", Operators)),
    of(post("/operations/{page}/{id}/{action}", "/operations/schedules/orders/pause", "", Operators)),
    get("/sign-in", "/sign-in", Anyone),
    get("/sign-in/start", "/sign-in/start", Anyone),
    get("/sign-in/callback", "/sign-in/callback", Anyone),
    get("/sign-in/cli", "/sign-in/cli", Anyone),
    post("/sign-in/cli/token", "/sign-in/cli/token", "", Anyone),
    post("/sign-out", "/sign-out", "", Anyone),
    post("/tenant", "/tenant", "", Anyone),
];

impl Row {
    fn allows(&self, role: &str, everywhere: bool) -> bool {
        let roles: &[&str] = match self.who {
            Anyone | Members => &ROLES,
            Followers => &["viewer", "operator", "author", "admin", "partner"],
            Readers => &["viewer", "operator", "author", "admin"],
            Operators => &["operator", "author", "admin"],
            Authors => &["author", "admin"],
            Admins => &["admin"],
        };
        roles.contains(&role) && (everywhere || !self.instance)
    }
}

/// A console with a succeeded run of `orders` and an approval of `billing`, both of tenant `acme`.
struct Office {
    api: Api,
    run: RunId,
    world: TestWorld,
}

impl Office {
    async fn open() -> Self {
        let (mut api, _, world) = console().await;
        let reaches = ["acme", "other", "*", "acme/orders", "acme/billing", "acme/etl-*"];
        let grants = ROLES.iter().flat_map(|role| reaches.map(|reach| format!("{role}:{reach}")));
        // Anyone's grants are named by their groups: `group:viewer:acme` has `viewer:acme`.
        let entries = grants.map(|grant| (format!("group:{grant}").parse().unwrap(), grant.parse().unwrap()));
        let verifier = ISSUER.verifier("api");
        let trusted = TrustedIssuer { verifier, group_claim: Some("groups".into()) };
        api.access = Access::new(Authenticator::new([trusted]), Policy::new(entries));
        api.pages_open = false;
        let mut office = Self { api, run: RunId(Default::default()), world };
        for text in [ORDERS, BILLING] {
            assert_eq!(office.admin("/api/v1/workflows", text).await.0, StatusCode::CREATED);
        }
        assert_eq!(office.admin("/api/v1/workflows/billing/runs", "{}").await.0, StatusCode::CREATED);
        let (_, _, run) = office.admin("/api/v1/workflows/orders/runs", "{}").await;
        let run: Value = serde_json::from_str(&run).unwrap();
        office.run = run["id"].as_str().unwrap().parse().unwrap();
        office.succeed().await;
        office
    }

    /// The task of `orders` writes a line and delivers something.
    async fn succeed(&self) {
        let (app, task) = (&self.api.app, TaskIndex(0));
        let line = format!("{HIDDEN}line");
        let line = LogLine { at: app.now(), stream: "stdout".into(), level: "info".into(), line };
        let key = TaskKey { run: self.run, task };
        app.runtime
            .store()
            .append_log(&LogChunk { key, attempt: 1, first: 0, lines: vec![line] })
            .await
            .unwrap();
        let result = TaskResult::Succeeded(json!(format!("{HIDDEN}output")));
        self.world.report(self.run, 0, 1, result).await;
    }

    async fn admin(&self, path: &str, body: &str) -> (StatusCode, HeaderMap, String) {
        self.send(Method::POST, path, body, &["admin:acme"], Some("acme")).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: &str,
        grants: &[&str],
        tenant: Option<&str>,
    ) -> (StatusCode, HeaderMap, String) {
        let response = self.request(method, path, body, &token(grants), tenant).await;
        let (parts, body) = response.into_parts();
        // An event stream has no end.
        if path.starts_with("/live") && parts.status.is_success() {
            return (parts.status, parts.headers, String::new());
        }
        let body = to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(body.into()).unwrap())
    }

    /// Sends a request and leaves the response to be read.
    async fn request(
        &self,
        method: Method,
        path: &str,
        body: &str,
        token: &str,
        tenant: Option<&str>,
    ) -> axum::response::Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"));
        if !path.starts_with("/api/") {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        if let Some(tenant) = tenant {
            request = request.header("x-ebb-tenant", tenant);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        router(self.api.clone()).oneshot(request).await.unwrap()
    }

    async fn ask(&self, row: &Row, grants: &[&str], tenant: Option<&str>) -> (StatusCode, HeaderMap, String) {
        let path = row.path.replace("RUN", &self.run.to_string());
        self.send(row.method.parse().unwrap(), &path, row.form, grants, tenant).await
    }

    async fn page(&self, path: &str, grant: &str) -> (StatusCode, String) {
        let path = path.replace("RUN", &self.run.to_string());
        let (status, _, page) = self.send(Method::GET, &path, "", &[grant], Some("acme")).await;
        (status, page)
    }
}

/// A token of somebody with these grants.
fn token(grants: &[&str]) -> String {
    ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "somebody", "aud": "api", "groups": grants,
        "exp": SystemClock.now().timestamp() + 3600,
    }))
}

/// Whether a change was refused: a button leads back with a message, and a form is shown again with one.
fn is_refused(row: &Row, status: StatusCode, headers: &HeaderMap) -> bool {
    let notice = headers.get(header::SET_COOKIE).and_then(|cookie| cookie.to_str().ok()).unwrap_or_default();
    let led_back = status == StatusCode::SEE_OTHER && notice.starts_with("ebb_notice=failed");
    let shown_again = status == StatusCode::UNPROCESSABLE_ENTITY;
    status == StatusCode::FORBIDDEN || row.method == "POST" && (led_back || shown_again)
}

/// The rows that a role decides about, pages before buttons: these change what pages show.
fn decided() -> impl Iterator<Item = &'static Row> {
    let of = |method: &'static str| ROWS.iter().filter(move |row| row.method == method && row.who != Anyone);
    of("GET").chain(of("POST"))
}

#[tokio::test]
async fn each_role_sees_what_its_row_says_and_nothing_else() {
    let office = Office::open().await;
    for row in decided() {
        for (role, everywhere) in ROLES.into_iter().flat_map(|role| [(role, false), (role, true)]) {
            let grant = format!("{role}:{}", if everywhere { "*" } else { "acme" });
            let (status, headers, page) = office.ask(row, &[&grant], Some("acme")).await;
            let case = format!("{} {} as {grant}: {status}", row.method, row.template);
            if row.allows(role, everywhere) {
                assert!(status != StatusCode::FORBIDDEN && !status.is_server_error(), "{case}");
                assert!(row.method == "POST" || status == StatusCode::OK, "{case} {page}");
            } else {
                assert!(is_refused(row, status, &headers), "{case} {page}");
                // Somebody who may read is shown the form again, with what it is about.
                let reads = role != "worker" && role != "partner";
                assert!(reads || !page.contains(HIDDEN), "{case} {page}");
            }
        }
    }
}

#[tokio::test]
async fn what_a_role_sees_in_one_tenant_it_does_not_see_in_another() {
    let office = Office::open().await;
    for row in decided() {
        for role in ROLES {
            let grant = format!("{role}:other");
            let (status, ..) = office.ask(row, &[&grant], Some("acme")).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{} {} as {grant}", row.method, row.template);
            let (status, headers, page) = office.ask(row, &[&grant], None).await;
            let case = format!("{} {} as {grant}: {status} {page}", row.method, row.template);
            assert!(!page.contains(HIDDEN), "{case}");
            if row.names && row.allows(role, false) {
                assert!(status == StatusCode::NOT_FOUND || is_refused(row, status, &headers), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_without_a_role_sees_anything() {
    let office = Office::open().await;
    for row in decided() {
        let (status, ..) = office.ask(row, &[], None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{} {}", row.method, row.template);
    }
}

#[tokio::test]
async fn a_partner_is_shown_no_part_of_a_run_that_succeeded() {
    let office = Office::open().await;
    let parts = ["", "?tab=events", "?tab=data", "?tab=try", "?tab=try&expression=tasks.a.output"];
    for path in parts.iter().map(|part| format!("/runs/RUN{part}")) {
        let (status, page) = office.page(&path, "viewer:acme").await;
        assert_eq!(status, StatusCode::OK, "{path}: {page}");
        let (status, page) = office.page(&path, "partner:acme").await;
        assert!(status == StatusCode::FORBIDDEN && !page.contains(HIDDEN), "{path}: {status} {page}");
        let (status, page) = office.page(&path, "viewer:acme/etl-*").await;
        assert!(status == StatusCode::NOT_FOUND && !page.contains(HIDDEN), "{path}: {status} {page}");
    }
    let (_, data) = office.page("/runs/RUN?tab=data", "viewer:acme").await;
    assert!(data.contains("hidden-output"), "{data}");
    assert!(office.page("/runs", "partner:acme").await.1.contains(&office.run.to_string()));
}

#[tokio::test]
async fn home_has_only_what_the_visitor_may_see() {
    let office = Office::open().await;
    let home = async |grant: &str| office.page("/", grant).await.1;
    for (grant, approvals, runs) in [
        ("viewer:acme", true, 2),
        ("viewer:acme/billing", true, 1),
        ("viewer:acme/orders", false, 1),
        ("viewer:acme/etl-*", false, 0),
        ("partner:acme", false, 2),
    ] {
        let page = home(grant).await;
        assert_eq!(page.contains("hidden-approval"), approvals, "{grant}: {page}");
        assert!(page.contains(&format!("failed of {runs} in the last")), "{grant}: {page}");
    }
}

#[tokio::test]
async fn only_those_who_may_read_every_tenant_see_the_problems_of_files() {
    let office = Office::open().await;
    let problem = Diagnostic::of_file(format!("graphs/{HIDDEN}file.yaml"), "cannot be read".to_owned());
    office.api.app.file_problems.replace(vec![problem]);
    for (grant, shown) in [("viewer:*", true), ("author:acme", false), ("admin:acme", false)] {
        for path in ["/", "/operations/health", "/api/v1/doctor"] {
            let page = office.page(path, grant).await.1;
            assert_eq!(page.contains("hidden-file"), shown, "{path} for {grant}: {page}");
        }
    }
}

#[tokio::test]
async fn the_catalogue_shows_custom_types_to_those_who_may_read_a_workflow_that_uses_them() {
    let office = Office::open().await;
    let files = json!({"files": [
        {"path": "graphs/rasters.yaml", "text": "name: rasters\ntasks: [{name: a, type: hidden-raster.check, config: {source: x}}]\n"},
        {"path": "types/hidden-raster.check.yaml", "kind": "type",
         "text": "name: hidden-raster.check\ndescription: '<b>Checks</b> rasters.'\nicon: R\nqueue: gpu\nconfig: {properties: {source: {type: string}}, required: [source]}\n"},
        {"path": "queues/gpu.yaml", "kind": "queue", "text": "name: gpu\nkind: pool\n"},
    ]});
    let (status, _, body) = office.admin("/api/v1/workflows", &files.to_string()).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    let (status, page) = office.page("/types", "viewer:acme").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    for shown in [
        "hidden-raster.check",
        "<span aria-hidden=\"true\">R</span>",
        "href=\"/workflows/rasters\"",
        "<code>source</code>",
        "queue <code>gpu</code>",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.contains("fan_out") && !page.contains("<b>Checks"), "descriptions are text: {page}");
    let (status, page) = office.page("/types", "viewer:acme/orders").await;
    assert!(status == StatusCode::OK && page.contains("http") && !page.contains(HIDDEN), "{page}");
    assert_eq!(office.page("/types", "partner:acme").await.0, StatusCode::FORBIDDEN);
}
