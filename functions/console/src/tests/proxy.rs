//! People whom Identity-Aware Proxy has signed in.

use std::sync::LazyLock;

use auth::{IAP_HEADER, IAP_ISSUER, Issuer};
use axum::http::Method;
use model::Clock;

use super::*;

static PROXY: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate(IAP_ISSUER));

const AUDIENCE: &str = "/projects/7/locations/europe-west1/services/ebbflow-console";
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

fn assertion(name: &str, value: Value) -> String {
    let now = SystemClock.now().timestamp();
    let mut claims = json!({
        "iss": IAP_ISSUER, "aud": AUDIENCE, "sub": "accounts.google.com:1", "email": "ada@example.com",
        "iat": now, "exp": now + 600,
    });
    claims[name] = value;
    PROXY.sign(&claims)
}

/// A console behind the proxy, where Ada is an admin.
async fn behind_proxy() -> (Api, RunId, TestWorld) {
    let (mut api, run, world) = console().await;
    let verifier = Verifier::new([IAP_ISSUER], AUDIENCE, Keys::fixed(&PROXY.jwks()));
    let policy = Policy::read("ada@example.com=admin:*").unwrap();
    api.access = Access::new(Authenticator::new([verifier.into()]), policy);
    api.pages_open = false;
    (api, run, world)
}

async fn send(api: &Api, method: Method, path: &str, assertion: &str, from: &[(&str, &str)]) -> StatusCode {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "console.example")
        .header(IAP_HEADER, assertion);
    if !path.starts_with("/api/") {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    for (name, value) in from {
        request = request.header(*name, *value);
    }
    router(api.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status()
}

#[tokio::test]
async fn the_person_whom_the_proxy_names_reads_pages_and_the_api() {
    let (api, run, _world) = behind_proxy().await;
    for path in [format!("/runs/{run}"), format!("/api/v1/runs/{run}")] {
        assert_eq!(send(&api, Method::GET, &path, &assertion("hd", json!("x")), &[]).await, StatusCode::OK);
        let now = SystemClock.now().timestamp();
        for (claim, value) in [("aud", json!("other")), ("iss", json!("other")), ("exp", json!(now - 60))] {
            let status = send(&api, Method::GET, &path, &assertion(claim, value), &[]).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{claim} at {path}");
        }
        let stranger = assertion("email", json!("eve@example.com"));
        assert_eq!(send(&api, Method::GET, &path, &stranger, &[]).await, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn another_site_changes_nothing_by_way_of_the_proxy() {
    let (api, run, _world) = behind_proxy().await;
    let ada = assertion("hd", json!("x"));
    let forged: [&[(&str, &str)]; 4] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
    ];
    for path in [format!("/runs/{run}/retry"), format!("/api/v1/runs/{run}/retry")] {
        for from in forged {
            let status = send(&api, Method::POST, &path, &ada, from).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path} from {from:?}");
        }
    }
    let api_path = format!("/api/v1/runs/{run}/retry");
    assert!(send(&api, Method::POST, &api_path, &ada, &[OWN]).await.is_success());
    let form = send(&api, Method::POST, &format!("/runs/{run}/evaluate"), &ada, &[OWN]).await;
    assert_eq!(form, StatusCode::SEE_OTHER);
}
