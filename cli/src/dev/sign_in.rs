//! The local OpenID Connect provider: signs the admin in with one click, in the same steps as any other provider.

use std::sync::Arc;

use auth::{Issuer, Provider, Seal, SignIn};
use axum::Router;
use axum::extract::{Form, Query, Request, State};
use axum::http::uri::Authority;
use axum::http::{StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use bus::SystemClock;
use chrono::TimeDelta;
use model::Clock;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::issuer::ADMIN;

/// The console's client id at the local provider.
const CLIENT: &str = "ebbflow-console";

const CODE_TTL: TimeDelta = TimeDelta::minutes(1);

#[derive(Clone)]
struct Local {
    issuer: Arc<Issuer>,
    seal: Seal,
    redirect_url: String,
}

/// The console's authorization request.
#[derive(Deserialize)]
struct AuthorizationRequest {
    client_id: String,
    redirect_uri: String,
    state: String,
    nonce: String,
    code_challenge: String,
    code_challenge_method: String,
}

/// The content of a code.
#[derive(Serialize, Deserialize)]
struct Code {
    nonce: String,
    challenge: String,
}

#[derive(Deserialize)]
struct Exchange {
    code: String,
    code_verifier: String,
    client_id: String,
}

/// Sign-in with the local provider, for the console at an address.
pub(super) fn sign_in(issuer: &Issuer, url: &str) -> Result<SignIn, auth::Error> {
    let verifier = issuer.verifier(CLIENT);
    SignIn::new(Provider {
        authorize_url: format!("{url}/issuer/authorize"),
        token_url: format!("{url}/issuer/token"),
        client_id: CLIENT.into(),
        client_secret: None,
        redirect_url: redirect_url(url),
        trusted: verifier.into(),
    })
}

fn redirect_url(url: &str) -> String {
    format!("{url}/sign-in/callback")
}

/// The provider's endpoints, for the console at an address.
pub(super) fn router(issuer: Arc<Issuer>, url: &str) -> Router {
    let local = Local { issuer, seal: Seal::random(), redirect_url: redirect_url(url) };
    let own = url.parse::<Uri>().ok().and_then(|url| url.authority().cloned());
    Router::new()
        .route("/issuer/authorize", get(authorize))
        .route("/issuer/token", post(exchange))
        .layer(from_fn_with_state(own, check_host))
        .with_state(local)
}

/// Refuses requests that name another host: a web site can make its own name point to this machine.
async fn check_host(State(own): State<Option<Authority>>, request: Request, next: Next) -> Response {
    let sent = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let sent = sent.and_then(|host| host.parse::<Authority>().ok()).or(request.uri().authority().cloned());
    if is_own(own.as_ref(), sent.as_ref()) {
        return next.run(request).await;
    }
    let message = "the local provider serves this machine only: use the address that `ebb dev` printed\n";
    (StatusCode::MISDIRECTED_REQUEST, message).into_response()
}

/// Whether a host is the one that the provider serves, or the same port by another name of this machine.
fn is_own(own: Option<&Authority>, sent: Option<&Authority>) -> bool {
    let is_local = |host: &Authority| matches!(host.host(), "localhost" | "127.0.0.1" | "[::1]");
    match (own, sent) {
        (Some(own), Some(sent)) => sent == own || is_local(sent) && sent.port_u16() == own.port_u16(),
        _ => false,
    }
}

/// Redirects back with a code: the admin, the only user, has just clicked.
async fn authorize(State(local): State<Local>, Query(request): Query<AuthorizationRequest>) -> Response {
    let is_valid = request.client_id == CLIENT
        && request.redirect_uri == local.redirect_url
        && request.code_challenge_method == "S256";
    if !is_valid {
        return (StatusCode::BAD_REQUEST, "the local provider signs in to this console only\n")
            .into_response();
    }
    let code = Code { nonce: request.nonce, challenge: request.code_challenge };
    let code = local.seal.close("code", code, SystemClock.now() + CODE_TTL);
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let state: String = request.state.chars().filter(|letter| is_safe(*letter)).collect();
    Redirect::to(&format!("{}?code={code}&state={state}", local.redirect_url)).into_response()
}

async fn exchange(State(local): State<Local>, Form(exchange): Form<Exchange>) -> Response {
    let now = SystemClock.now();
    let code: Option<Code> = local.seal.open("code", &exchange.code, now);
    let matches =
        |code: &Code| auth::constant_time_eq(&code.challenge, &auth::challenge(&exchange.code_verifier));
    let Some(code) = code.filter(matches).filter(|_| exchange.client_id == CLIENT) else {
        return (StatusCode::BAD_REQUEST, axum::Json(json!({"error": "invalid_grant"}))).into_response();
    };
    let token = local.issuer.sign(&json!({
        "iss": local.issuer.url(),
        "sub": "admin",
        "aud": CLIENT,
        "email": ADMIN,
        "email_verified": true,
        "nonce": code.nonce,
        "iat": now.timestamp(),
        "exp": (now + CODE_TTL).timestamp(),
    }));
    axum::Json(json!({"id_token": token, "token_type": "Bearer"})).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn the_provider_signs_in_for_its_own_host_only() {
        let issuer = Arc::new(Issuer::generate("http://127.0.0.1:8480"));
        let router = router(issuer, "http://127.0.0.1:8480");
        for (host, served) in [
            (Some("127.0.0.1:8480"), true),
            (Some("localhost:8480"), true),
            (Some("127.0.0.1:9999"), false),
            (Some("attacker.example:8480"), false),
            (Some("127.0.0.1.attacker.example"), false),
            (None, false),
        ] {
            for (method, path) in [("GET", "/issuer/authorize"), ("POST", "/issuer/token")] {
                let mut request = Request::builder().method(method).uri(path);
                if let Some(host) = host {
                    request = request.header(header::HOST, host);
                }
                let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
                let misdirected = response.status() == StatusCode::MISDIRECTED_REQUEST;
                assert_eq!(misdirected, !served, "{method} {path} {host:?}: {}", response.status());
            }
        }
    }
}
