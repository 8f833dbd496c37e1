//! Signing in with a browser, and what a session may do.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use api::access::Sessions;
use auth::{Issuer, Provider, Seal, SignIn};
use axum::extract::{Form, State};
use axum::routing::post;
use futures::StreamExt;
use model::Clock;

use super::*;

const CONSOLE: &str = "http://localhost:8480";

/// Making a key takes a while: all tests share one.
static ISSUER: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate("https://issuer.test"));

/// What the provider is to say next: the nonce, the challenge that the code was asked with, and who it is.
type Next = Arc<Mutex<(String, String, &'static str)>>;

async fn exchange(
    State(next): State<Next>,
    Form(sent): Form<BTreeMap<String, String>>,
) -> (StatusCode, String) {
    let (nonce, challenge, email) = next.lock().unwrap().clone();
    if auth::challenge(&sent["code_verifier"]) != challenge || sent["code"] != "good" {
        return (StatusCode::BAD_REQUEST, "{}".into());
    }
    let token = ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "1", "aud": "client", "nonce": nonce, "email": email,
        "email_verified": true, "exp": SystemClock.now().timestamp() + 60,
    }));
    (StatusCode::OK, json!({"id_token": token}).to_string())
}

struct Browser {
    api: Api,
    next: Next,
    cookies: BTreeMap<String, String>,
    _world: TestWorld,
}

struct Seen {
    status: StatusCode,
    headers: HeaderMap,
    page: String,
}

impl Seen {
    fn location(&self) -> &str {
        self.headers[header::LOCATION].to_str().unwrap()
    }
}

impl Browser {
    /// At a console where nobody is signed in yet.
    async fn open() -> (Self, RunId) {
        let (mut api, run, world) = console().await;
        let next = Next::default();
        let router = Router::new().route("/token", post(exchange)).with_state(next.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let verifier = ISSUER.verifier("client");
        let sign_in = SignIn::new(Provider {
            authorize_url: "https://issuer.test/authorize".into(),
            token_url: format!("{provider}/token"),
            client_id: "client".into(),
            client_secret: None,
            redirect_url: format!("{CONSOLE}/sign-in/callback"),
            trusted: verifier.into(),
        });
        let policy = Policy::read("ada@example.com=operator, eve@example.com=viewer").unwrap();
        let sessions = Sessions::new(sign_in.unwrap(), Seal::random());
        api.access = Access::new(Authenticator::default(), policy).with_sessions(sessions);
        api.pages_open = false;
        (Self { api, next, cookies: BTreeMap::new(), _world: world }, run)
    }

    async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Seen {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8480");
        if method == "POST" {
            request = request.header("origin", CONSOLE);
        }
        let kept: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request = request.header("cookie", kept.join("; "));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let (parts, body) = router(self.api.clone()).oneshot(request).await.unwrap().into_parts();
        for cookie in parts.headers.get_all(header::SET_COOKIE) {
            let (pair, rules) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            assert!(rules.contains("SameSite=Lax") && rules.contains("HttpOnly"), "{rules}");
            match rules.contains("Max-Age=0") {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.into(), value.into())),
            }
        }
        let page = to_bytes(body, usize::MAX).await.unwrap();
        let page = String::from_utf8(page.into()).unwrap();
        Seen { status: parts.status, headers: parts.headers, page }
    }

    /// What the command line sends once `ebb login` is done.
    async fn log_in(&mut self) -> String {
        let path = format!("/sign-in/cli?port=4711&state=abc&challenge={}", auth::challenge("secret"));
        let page = self.get(&path).await.page;
        let (_, rest) = page.split_once("http://127.0.0.1:4711/?state=abc").unwrap();
        let (_, code) = rest.split('"').next().unwrap().split_once("code=").unwrap();
        let fetch = json!({"code": code, "verifier": "secret"}).to_string();
        let given = self.send("POST", "/sign-in/cli/token", &[], &fetch).await;
        let given: Value = serde_json::from_str(&given.page).unwrap();
        format!("Bearer {}", given["token"].as_str().unwrap())
    }

    async fn get(&mut self, path: &str) -> Seen {
        self.send("GET", path, &[], "").await
    }

    async fn post(&mut self, path: &str, form: &str) -> Seen {
        self.send("POST", path, &[("content-type", "application/x-www-form-urlencoded")], form).await
    }

    /// Begins to sign in; answers the state to come back with.
    async fn begin(&mut self, email: &'static str, to: &str) -> String {
        let seen = self.get(&format!("/sign-in/start?to={to}")).await;
        let (_, query) = seen.location().split_once("/authorize?").unwrap();
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
        let asked: BTreeMap<&str, &str> = pairs.collect();
        assert_eq!((asked["response_type"], asked["code_challenge_method"]), ("code", "S256"));
        *self.next.lock().unwrap() = (asked["nonce"].into(), asked["code_challenge"].into(), email);
        asked["state"].to_owned()
    }

    async fn sign_in(&mut self, email: &'static str) {
        let state = self.begin(email, "/runs").await;
        let seen = self.get(&format!("/sign-in/callback?code=good&state={state}")).await;
        assert_eq!((seen.status, seen.location()), (StatusCode::SEE_OTHER, "/runs"), "{}", seen.page);
    }

    /// What a page's form holds.
    async fn csrf(&mut self) -> String {
        let page = self.get("/sign-in").await.page;
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_unknown_reader_is_led_to_sign_in_and_back() {
    let (mut browser, run) = Browser::open().await;
    let seen = browser.get(&format!("/runs/{run}?limit=5")).await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
    assert_eq!(seen.location(), format!("/sign-in?to=%2Fruns%2F{run}%3Flimit%3D5"));
    let page = browser.get(seen.location()).await;
    assert!(page.page.contains("/sign-in/start?to="), "{}", page.page);
    assert_eq!(page.headers[header::CONTENT_SECURITY_POLICY], POLICY);
    browser.sign_in("ada@example.com").await;
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    assert!(browser.get("/sign-in").await.page.contains("You are ada@example.com"));
}

#[tokio::test]
async fn a_session_reads_the_api_and_changes_nothing_without_proof() {
    let (mut browser, run) = Browser::open().await;
    browser.sign_in("ada@example.com").await;
    assert_eq!(browser.get("/api/v1/runs").await.status, StatusCode::OK);
    let cancel = format!("/api/v1/runs/{run}/evaluate");
    assert_eq!(browser.post(&cancel, "").await.status, StatusCode::FORBIDDEN);
    let wrong = browser.send("POST", &cancel, &[("x-ebb-csrf", "guess")], "").await;
    assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    let csrf = browser.csrf().await;
    let right = browser.send("POST", &cancel, &[("x-ebb-csrf", &csrf)], "").await;
    assert!(
        right.status != StatusCode::FORBIDDEN && right.status != StatusCode::UNAUTHORIZED,
        "{}",
        right.page
    );
}

#[tokio::test]
async fn a_form_is_taken_only_with_what_its_page_was_given() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("ada@example.com").await;
    for form in ["", "csrf=", "csrf=guess"] {
        assert_eq!(browser.post("/sign-out", form).await.status, StatusCode::FORBIDDEN, "{form}");
    }
    let (mut other, _) = Browser::open().await;
    other.sign_in("eve@example.com").await;
    let foreign = other.csrf().await;
    assert_eq!(browser.post("/sign-out", &format!("csrf={foreign}")).await.status, StatusCode::FORBIDDEN);
    let csrf = browser.csrf().await;
    assert_eq!(browser.post("/sign-out", &format!("csrf={csrf}")).await.status, StatusCode::SEE_OTHER);
    assert!(browser.cookies.is_empty());
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn signing_out_ends_the_session_and_its_tokens_everywhere() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("ada@example.com").await;
    let (bearer, csrf) = (browser.log_in().await, browser.csrf().await);
    let copied = browser.cookies.clone();
    let auth = [("authorization", bearer.as_str())];
    assert_eq!(browser.send("GET", "/api/v1/runs", &auth, "").await.status, StatusCode::OK);
    assert_eq!(browser.post("/sign-out", &format!("csrf={csrf}")).await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.send("GET", "/api/v1/runs", &auth, "").await.status, StatusCode::UNAUTHORIZED);
    browser.cookies = copied;
    for path in ["/", "/runs", "/api/v1/runs", "/sign-in/cli?port=4711&state=abc&challenge=abc"] {
        let seen = browser.get(path).await;
        assert_eq!(seen.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(seen.page.contains("you have signed out"), "{path}: {}", seen.page);
    }
    let seen = browser.send("POST", "/api/v1/workflows/hello/runs", &[("x-ebb-csrf", &csrf)], "{}").await;
    assert_eq!(seen.status, StatusCode::UNAUTHORIZED);
    browser.sign_in("ada@example.com").await;
    assert_eq!(browser.get("/").await.status, StatusCode::OK, "another session is another one");
}

#[tokio::test]
async fn signing_out_ends_the_streams_of_the_session() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("ada@example.com").await;
    let csrf = browser.csrf().await;
    let cookies: Vec<String> =
        browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut streams = Vec::new();
    for path in ["/live", "/api/v1/events"] {
        let request =
            Request::get(path).header("host", "localhost:8480").header("cookie", cookies.join("; "));
        let request = request.body(Body::empty()).unwrap();
        let response = router(browser.api.clone()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        streams.push(response.into_body().into_data_stream());
    }
    assert_eq!(browser.post("/sign-out", &format!("csrf={csrf}")).await.status, StatusCode::SEE_OTHER);
    for mut stream in streams {
        let end = async { while stream.next().await.is_some() {} };
        testkit::within_deadline("the stream ends with the session", end).await;
    }
}

#[tokio::test]
async fn what_a_request_claims_of_its_way_here_changes_nothing() {
    let (mut browser, _) = Browser::open().await;
    let claims = [
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "gopher"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-prefix", "/evil"),
        ("x-original-url", "/evil"),
        ("x-http-method-override", "DELETE"),
        ("forwarded", "for=127.0.0.1;host=evil.example;proto=gopher"),
    ];
    let led = browser.send("GET", "/sign-in/start", &claims, "").await;
    assert!(led.location().starts_with("https://issuer.test/authorize?"), "{}", led.location());
    let page = browser.send("GET", "/sign-in", &claims, "").await;
    for shown in [led.location(), &page.page] {
        assert!(!shown.contains("evil") && !shown.contains("gopher"), "{shown}");
    }
    let refused = browser.send("GET", "/runs", &claims, "").await;
    assert!(refused.location().starts_with("/sign-in?to="), "{}", refused.location());
}

#[tokio::test]
async fn no_path_leads_out_of_the_pages() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("ada@example.com").await;
    for path in [
        "/assets/..%2f..%2fCargo.toml",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/schemas/..%2fworkflow.json",
        "/runs/..%2f..%2fetc%2fpasswd",
        "/runs/%00",
        "/workflows/%00",
        "/workflows/..;/runs",
        "/workflows/%c0%ae%c0%ae",
        "/runs/;/tasks/%0d%0aset-cookie:x=1",
    ] {
        let seen = browser.get(path).await;
        assert!(seen.status.is_client_error(), "{path}: {}", seen.status);
        assert!(!browser.cookies.contains_key("x"), "{path}");
    }
}

#[tokio::test]
async fn a_sign_in_that_did_not_begin_here_ends_nowhere() {
    let (mut browser, _) = Browser::open().await;
    // Somebody else's code, slipped to this browser.
    let seen = browser.get("/sign-in/callback?code=good&state=theirs").await;
    assert_eq!(seen.status, StatusCode::FORBIDDEN);
    let state = browser.begin("ada@example.com", "/").await;
    for query in ["code=good&state=other", "error=access_denied&state=STATE", "code=bad&state=STATE"] {
        let seen = browser.get(&format!("/sign-in/callback?{}", query.replace("STATE", &state))).await;
        assert!(seen.status.is_client_error(), "{query}: {}", seen.status);
        assert!(!browser.cookies.contains_key("ebb_session"), "{query}");
    }
    browser.next.lock().unwrap().0 = "another nonce".into();
    let seen = browser.get(&format!("/sign-in/callback?code=good&state={state}")).await;
    assert_eq!(seen.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_session_that_was_made_up_or_changed_is_none() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("eve@example.com").await;
    let session = browser.cookies["ebb_session"].clone();
    let (text, mark) = session.split_once('.').unwrap();
    for forged in [format!("{text}."), format!("{text}.{}", mark.to_lowercase()), "nonsense".into()] {
        browser.cookies.insert("ebb_session".into(), forged);
        assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
        assert_eq!(browser.get("/api/v1/runs").await.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn only_a_tenant_where_one_has_a_role_can_be_chosen() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("ada@example.com").await;
    let csrf = browser.csrf().await;
    for tenant in ["other", "*", "a;b", ""] {
        let seen = browser.post("/tenant", &format!("csrf={csrf}&tenant={tenant}")).await;
        assert_eq!(seen.status, StatusCode::FORBIDDEN, "{tenant}");
    }
    assert_eq!(browser.post("/tenant", "tenant=default").await.status, StatusCode::FORBIDDEN);
    let seen = browser.post("/tenant", &format!("csrf={csrf}&tenant=default&back=/runs")).await;
    assert_eq!((seen.status, seen.location()), (StatusCode::SEE_OTHER, "/runs"));
}

#[tokio::test]
async fn somebody_without_a_role_is_signed_in_and_sees_nothing() {
    let (mut browser, _) = Browser::open().await;
    browser.sign_in("mallory@example.com").await;
    assert_eq!(browser.get("/").await.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.get("/api/v1/runs").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_command_line_gets_a_token_for_the_code_and_its_own_secret_only() {
    let (mut browser, _) = Browser::open().await;
    let path = format!("/sign-in/cli?port=4711&state=abc&challenge={}", auth::challenge("secret"));
    assert_eq!(browser.get(&path).await.status, StatusCode::SEE_OTHER, "sign in first");
    browser.sign_in("ada@example.com").await;
    let page = browser.get(&path).await.page;
    let (_, rest) = page.split_once("http://127.0.0.1:4711/?state=abc").unwrap();
    let (_, code) = rest.split('"').next().unwrap().split_once("code=").unwrap();
    let fetch = |verifier: &str| json!({"code": code, "verifier": verifier}).to_string();
    let stolen = browser.send("POST", "/sign-in/cli/token", &[], &fetch("guess")).await;
    assert_eq!(stolen.status, StatusCode::UNAUTHORIZED);
    let given = browser.send("POST", "/sign-in/cli/token", &[], &fetch("secret")).await;
    let given: Value = serde_json::from_str(&given.page).unwrap();
    let bearer = format!("Bearer {}", given["token"].as_str().unwrap());
    browser.cookies.clear();
    let read = browser.send("GET", "/api/v1/runs", &[("authorization", &bearer)], "").await;
    assert_eq!(read.status, StatusCode::OK);
    let session =
        Request::get("/").header("cookie", format!("ebb_session={}", &bearer["Bearer ebs_".len()..]));
    let answer = router(browser.api).oneshot(session.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER, "a token is no session");
}

#[tokio::test]
async fn cookies_go_by_https_only_wherever_it_is_not_this_machine() {
    for (console, secure) in [
        ("https://console.example.com", true),
        ("http://console.example.com", true),
        ("http://localhost.evil.example", true),
        ("http://localhost:8480", false),
        ("http://127.0.0.1:8480", false),
    ] {
        let verifier = Verifier::new(["i"], "client", Keys::fixed(&json!({"keys": []})));
        let sign_in = SignIn::new(Provider {
            authorize_url: "https://issuer.test/authorize".into(),
            token_url: "https://issuer.test/token".into(),
            client_id: "client".into(),
            client_secret: None,
            redirect_url: format!("{console}/sign-in/callback"),
            trusted: verifier.into(),
        });
        let sessions = Sessions::new(sign_in.unwrap(), Seal::random());
        let cookie = sessions.attempt_cookie(&auth::PendingSignIn::new("/"), SystemClock.now());
        let cookie = cookie.to_str().unwrap();
        assert_eq!(
            cookie.contains("; Secure") && cookie.starts_with("__Host-"),
            secure,
            "{console}: {cookie}"
        );
    }
}
