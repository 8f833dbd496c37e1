//! The local provider: signs the admin in with one click, in the same steps as any other provider.

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
struct Asked {
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

/// How the console at that address signs people in with us.
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

/// The provider for the console at that address.
pub(super) fn router(issuer: Arc<Issuer>, url: &str) -> Router {
    let local = Local { issuer, seal: Seal::random(), redirect_url: redirect_url(url) };
    Router::new()
        .route("/issuer/authorize", get(authorize))
        .route("/issuer/token", post(exchange))
        .with_state(local)
}

/// There is only the admin, who has just clicked: redirects back with a code.
async fn authorize(State(local): State<Local>, Query(asked): Query<Asked>) -> Response {
    let ours = asked.client_id == CLIENT
        && asked.redirect_uri == local.redirect_url
        && asked.code_challenge_method == "S256";
    if !ours {
        return (StatusCode::BAD_REQUEST, "the local provider signs in to this console only\n")
            .into_response();
    }
    let code = Code { nonce: asked.nonce, challenge: asked.code_challenge };
    let code = local.seal.close("code", code, SystemClock.now() + CODE_TTL);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let state: String = asked.state.chars().filter(|letter| plain(*letter)).collect();
    Redirect::to(&format!("{}?code={code}&state={state}", local.redirect_url)).into_response()
}

async fn exchange(State(local): State<Local>, Form(exchange): Form<Exchange>) -> Response {
    let now = SystemClock.now();
    let code: Option<Code> = local.seal.open("code", &exchange.code, now);
    let fits =
        |code: &Code| auth::constant_time_eq(&code.challenge, &auth::challenge(&exchange.code_verifier));
    let Some(code) = code.filter(fits).filter(|_| exchange.client_id == CLIENT) else {
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
