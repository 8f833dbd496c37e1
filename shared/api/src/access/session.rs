//! Browser sessions: the identity in a sealed cookie, and the token that protects forms against CSRF.

use auth::{Identity, PendingSignIn, Seal, SignIn};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use chrono::TimeDelta;
use host::Problem;
use model::Instant;
use serde::{Deserialize, Serialize};

use super::{Access, forbidden};
use crate::Api;

/// How long a session lasts. People who are still signed in with the provider do not enter credentials again.
pub const SESSION_TTL: TimeDelta = TimeDelta::hours(1);

/// How long signing in may take.
const SIGN_IN_TIMEOUT: TimeDelta = TimeDelta::minutes(10);

/// How long a token lasts that `ebb login` was given.
pub const LOGIN_TTL: TimeDelta = TimeDelta::hours(12);

/// How tokens begin that `ebb login` was given.
pub const LOGIN_PREFIX: &str = "ebs_";

/// The cookie in which a page keeps which tenant was chosen.
pub const TENANT_COOKIE: &str = "ebb_tenant";

/// The header in which scripts of our pages send what proves that they are.
pub const CSRF_HEADER: &str = "x-ebb-csrf";

/// How people sign in, and how their sessions are kept.
pub struct Sessions {
    /// The identity provider that they sign in with.
    pub sign_in: SignIn,
    /// The seal on session cookies.
    pub seal: Seal,
    /// Whether browsers send cookies by HTTPS only: off only on this machine itself.
    secure: bool,
}

/// A person who is signed in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// A random id, by which a session can be ended.
    id: String,
    /// The identity that the provider confirmed.
    pub identity: Identity,
}

impl Session {
    /// Creates a session with a random id.
    pub fn new(identity: Identity) -> Self {
        Self { id: auth::random(), identity }
    }

    /// What is kept of a session that was ended.
    fn hash(&self) -> auth::service_token::Hash {
        auth::service_token::hash_of(&self.id)
    }
}

impl Sessions {
    /// People sign in so, and their sessions are sealed with that.
    pub fn new(sign_in: SignIn, seal: Seal) -> Self {
        let here = ["http://localhost:", "http://127.0.0.1:"];
        let secure = !here.iter().any(|here| sign_in.redirect_url().starts_with(here));
        Self { sign_in, seal, secure }
    }

    fn name(&self, what: &str) -> String {
        // A cookie of such a name comes from this very host, by HTTPS.
        if self.secure { format!("__Host-ebb_{what}") } else { format!("ebb_{what}") }
    }

    fn cookie(&self, what: &str, value: &str, lasts: TimeDelta) -> HeaderValue {
        let (name, secure) = (self.name(what), if self.secure { "; Secure" } else { "" });
        let seconds = lasts.num_seconds();
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(text).expect("what is sealed is visible ASCII")
    }

    /// The cookie that keeps who is about to sign in.
    pub fn attempt_cookie(&self, attempt: &PendingSignIn, now: Instant) -> HeaderValue {
        self.cookie("sign_in", &self.seal.close("attempt", attempt, now + SIGN_IN_TIMEOUT), SIGN_IN_TIMEOUT)
    }

    /// The cookie that keeps a session.
    pub fn session_cookie(&self, session: &Session, now: Instant) -> HeaderValue {
        self.cookie("session", &self.seal.close("session", session, now + SESSION_TTL), SESSION_TTL)
    }

    /// The cookies that end either.
    pub fn no_cookies(&self) -> [HeaderValue; 2] {
        ["sign_in", "session"].map(|what| self.cookie(what, "", TimeDelta::zero()))
    }

    /// The sign-in in progress of this browser.
    pub fn attempt(&self, parts: &Parts, now: Instant) -> Option<PendingSignIn> {
        self.seal.open("attempt", cookie(parts, &self.name("sign_in"))?, now)
    }

    /// The person who is signed in with this browser.
    pub fn session(&self, parts: &Parts, now: Instant) -> Option<Session> {
        self.seal.open("session", cookie(parts, &self.name("session"))?, now)
    }

    /// What every form of a session holds in its field `csrf`: no other site can know it.
    pub fn csrf(&self, session: &Session) -> String {
        self.seal.sign("csrf", &session.id)
    }
}

pub(super) fn cookie<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let sent = parts.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        sent.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(key, value)| (key == name).then_some(value))
}

impl Access {
    /// The same with sign-in for people.
    pub fn with_sessions(self, sessions: Sessions) -> Self {
        let inner = std::sync::Arc::into_inner(self.0).expect("it was made a moment ago");
        Self(super::Inner { sessions: Some(sessions), ..inner }.into())
    }

    /// How people sign in, if they can.
    pub fn sessions(&self) -> Option<&Sessions> {
        self.0.sessions.as_ref()
    }

    /// The person who is signed in with this browser, and the token that proves that a form is theirs.
    pub fn session(&self, parts: &Parts, now: Instant) -> Option<(Session, String)> {
        let sessions = self.0.sessions.as_ref()?;
        let session = sessions.session(parts, now)?;
        let csrf = sessions.csrf(&session);
        Some((session, csrf))
    }

    /// The person behind a token of `ebb login`, and the session that it belongs to.
    pub(super) fn logged_in(&self, token: &str, now: Instant) -> Option<Session> {
        let sessions = self.0.sessions.as_ref()?;
        sessions.seal.open("login", token.strip_prefix(LOGIN_PREFIX)?, now)
    }

    /// Ends a session before its time, everywhere, with the tokens that `ebb login` was given in it.
    pub async fn end_session(&self, api: &Api, session: &Session) -> Result<(), Problem> {
        let (hash, now) = (session.hash(), api.app.now());
        // No such token lasts longer, if it was made a moment ago.
        let until = now + LOGIN_TTL.max(SESSION_TTL);
        Ok(api.accounts.end_session(&hash, until, now).await?)
    }

    /// Refuses sessions that were signed out.
    pub(super) async fn check_not_ended(&self, api: &Api, session: &Session) -> Result<(), Problem> {
        let ended = api.accounts.session_ended(&session.hash(), api.app.now()).await?;
        if ended { Err(Problem::unauthorized("you have signed out; sign in again")) } else { Ok(()) }
    }

    /// Refuses a change that no page of this console sent.
    pub(super) fn check_sent_by_us(&self, parts: &Parts, csrf: &str) -> Result<(), Problem> {
        let sent = parts.headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
        match parts.method.is_safe() || sent.is_some_and(|sent| auth::constant_time_eq(sent, csrf)) {
            true => Ok(()),
            false => Err(forbidden(format!(
                "a session needs a CSRF token for changes; send it in `{CSRF_HEADER}`"
            ))),
        }
    }
}
