//! Signing in and out: by OpenID Connect with a browser, and for `ebb login` by way of a browser.

use api::Api;
use api::access::{LOGIN_PREFIX, LOGIN_TTL, Session, Sessions, TENANT_COOKIE};
use api::request::{Json, Query};
use askama::Template;
use auth::PendingSignIn;
use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use chrono::TimeDelta;
use host::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Console;
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::Shell;
use crate::show;
use crate::visitor::{Visitor, authority};

/// How long the command line may take to fetch its token.
const CODE_TTL: TimeDelta = TimeDelta::minutes(2);

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    shell: Shell,
    to: String,
}

#[derive(Template)]
#[template(path = "allow.html")]
struct AllowPage {
    shell: Shell,
    who: String,
    link: String,
}

/// The page to show after signing in.
#[derive(Deserialize)]
struct To {
    to: Option<String>,
}

#[derive(Deserialize)]
struct Callback {
    code: Option<String>,
    state: String,
    error: Option<String>,
}

/// What `ebb login` asks a browser for.
#[derive(Deserialize)]
struct Asked {
    port: u16,
    state: String,
    challenge: String,
}

/// What the command line is given to fetch a token with, by way of the browser.
#[derive(Serialize, Deserialize)]
struct Code {
    session: Session,
    challenge: String,
}

#[derive(Deserialize)]
struct Fetch {
    code: String,
    verifier: String,
}

/// The pages of signing in.
pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/sign-in", get(page))
        .route("/sign-in/start", get(start))
        .route("/sign-in/callback", get(callback))
        .route("/sign-in/cli", get(allow))
        .route("/sign-in/cli/token", post(fetch))
        .route("/sign-out", post(sign_out))
        .route("/tenant", post(choose_tenant))
}

fn sessions(api: &Api) -> Result<&Sessions, Problem> {
    let missing = || Problem::not_found("signing in is not configured: EBB_SIGN_IN_CLIENT_ID is not set");
    api.access.sessions().ok_or_else(missing)
}

/// Only pages of this console: signing in never redirects to another site.
fn local_path(to: Option<&str>) -> &str {
    let ours = |to: &&str| {
        to.starts_with('/')
            && !to[1..].starts_with(['/', '\\'])
            && to.chars().all(|letter| letter.is_ascii_graphic())
    };
    to.filter(ours).unwrap_or("/")
}

async fn page(
    State(console): State<Console>,
    Query(query): Query<To>,
    parts: Parts,
) -> Result<Html<String>, Refused> {
    sessions(&console.api)?;
    let who = console.api.access.session(&parts, console.api.app.now());
    let shell = console.shell(&parts, who.map(|(session, _)| session.identity.name).unwrap_or_default());
    Ok(show::html(&SignInPage { shell, to: local_path(query.to.as_deref()).to_owned() }))
}

async fn start(State(api): State<Api>, Query(query): Query<To>, parts: Parts) -> Result<Response, Refused> {
    let sessions = sessions(&api)?;
    let base = sessions.sign_in.redirect_url().trim_end_matches("/sign-in/callback").to_owned();
    let (_, host) = base.split_once("://").unwrap_or_default();
    // The cookie must be there when the browser comes back, and it comes back to one name only.
    if authority(&parts).is_some_and(|named| named.as_str() != host) {
        let path = parts.uri.path_and_query().map_or("/sign-in", |path| path.as_str());
        return Ok(Redirect::to(&format!("{base}{path}")).into_response());
    }
    let attempt = PendingSignIn::new(local_path(query.to.as_deref()));
    let url = sessions.sign_in.url(&attempt).map_err(Problem::from)?;
    let cookie = sessions.attempt_cookie(&attempt, api.app.now());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&url)).into_response())
}

async fn callback(
    State(api): State<Api>,
    Query(query): Query<Callback>,
    parts: Parts,
) -> Result<Response, Refused> {
    let (sessions, now) = (sessions(&api)?, api.app.now());
    let attempt =
        sessions.attempt(&parts, now).filter(|attempt| auth::constant_time_eq(&attempt.state, &query.state));
    let refused = |message: &str| Problem::new(StatusCode::FORBIDDEN, "forbidden", message);
    let attempt =
        attempt.ok_or_else(|| refused("this sign-in was not started in this browser; sign in again"))?;
    let (Some(code), None) = (query.code, query.error) else {
        return Err(refused("the provider did not let you in").into());
    };
    let identity = sessions.sign_in.finish(&attempt, &code, now).await.map_err(Problem::from)?;
    let cookie = sessions.session_cookie(&Session::new(identity), now);
    let [no_attempt, _] = sessions.no_cookies();
    let mut headers = HeaderMap::new();
    headers.append(header::SET_COOKIE, no_attempt);
    headers.append(header::SET_COOKIE, cookie);
    Ok((headers, Redirect::to(local_path(Some(&attempt.to)))).into_response())
}

/// Ends the session on the server, too, so that a copied cookie is worthless.
async fn sign_out(State(api): State<Api>, parts: Parts, sent: Sent) -> Result<Response, Refused> {
    sent.only([])?;
    if let Some((session, _)) = api.access.session(&parts, api.app.now()) {
        api.access.end_session(&api, &session).await?;
    }
    let headers = sessions(&api)?.no_cookies().map(|cookie| (header::SET_COOKIE, cookie));
    Ok((HeaderMap::from_iter(headers), Redirect::to("/sign-in")).into_response())
}

/// Stores the chosen tenant, if the visitor has a role in it.
async fn choose_tenant(visitor: Visitor, sent: Sent) -> Result<Response, Refused> {
    sent.only(["tenant"])?;
    let tenant = sent.field("tenant").unwrap_or_default();
    let known = auth::TenantScope::named(tenant).is_ok_and(|reach| reach.tenant().is_some());
    let theirs = visitor.caller.grants.iter().any(|grant| grant.tenant.covers(Some(tenant)));
    let value = format!("{TENANT_COOKIE}={tenant}; Path=/; HttpOnly; SameSite=Lax");
    let cookie = HeaderValue::try_from(value).ok().filter(|_| known && theirs && !tenant.contains(';'));
    let refused = || Problem::new(StatusCode::FORBIDDEN, "forbidden", "you have no role in that tenant");
    let cookie = cookie.ok_or_else(refused)?;
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(local_path(Some(sent.back())))).into_response())
}

/// Asks the person who is signed in whether the command line of this machine may act for them.
async fn allow(
    State(console): State<Console>,
    Query(asked): Query<Asked>,
    parts: Parts,
) -> Result<Response, Refused> {
    let (sessions, now) = (sessions(&console.api)?, console.api.app.now());
    let Some((session, _)) = console.api.access.session(&parts, now) else {
        let to = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        return Err(Refused::sign_in(to));
    };
    // Only a live session with a role gets a token.
    console.api.access.visitor(&console.api, &parts, session.clone()).await?;
    let plain =
        |text: &str| text.len() <= 100 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if !plain(&asked.state) || !plain(&asked.challenge) {
        return Err(Problem::bad_request("this link was not created by `ebb login`").into());
    }
    let who = session.identity.name.clone();
    let code = sessions.seal.close("code", Code { session, challenge: asked.challenge }, now + CODE_TTL);
    let link = format!("http://127.0.0.1:{}/?state={}&code={code}", asked.port, asked.state);
    let shell = console.shell(&parts, who.clone());
    Ok(show::html(&AllowPage { shell, who, link }).into_response())
}

/// Gives the command line its token, for a code that came by way of the browser and the secret that asked for it.
async fn fetch(State(api): State<Api>, Json(fetch): Json<Fetch>) -> Result<axum::Json<Value>, Problem> {
    let (sessions, now) = (sessions(&api)?, api.app.now());
    let code: Option<Code> = sessions.seal.open("code", &fetch.code, now);
    let code = code.filter(|code| auth::constant_time_eq(&code.challenge, &auth::challenge(&fetch.verifier)));
    let code = code
        .ok_or_else(|| Problem::unauthorized("the code is invalid or has expired; run `ebb login` again"))?;
    let token = sessions.seal.close("login", code.session, now + LOGIN_TTL);
    Ok(axum::Json(json!({"token": format!("{LOGIN_PREFIX}{token}"), "expires_at": now + LOGIN_TTL})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_elsewhere_after_signing_in() {
        for (to, led) in [
            (Some("/runs?state=failed"), "/runs?state=failed"),
            (Some("//evil.example"), "/"),
            (Some("/\\evil.example"), "/"),
            (Some("https://evil.example"), "/"),
            (Some("/a\nb"), "/"),
            (Some(""), "/"),
            (None, "/"),
        ] {
            assert_eq!(local_path(to), led, "{to:?}");
        }
    }
}
