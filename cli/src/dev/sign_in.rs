//! The local OpenID Connect provider: signs the admin in with one click, in the same steps as any other provider.

use std::sync::Arc;

use auth::{Issuer, Keys, Provider, Seal, SignIn, Verifier};
use axum::Router;
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
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
    let verifier = Verifier::new([issuer.url()], CLIENT, Keys::fixed(&issuer.jwks()));
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
    Router::new()
        .route("/issuer/authorize", get(authorize))
        .route("/issuer/token", post(exchange))
        .with_state(local)
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
