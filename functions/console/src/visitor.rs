//! Who reads a page.

use auth::Caller;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use host::Problem;
use read::Reader;

use crate::Console;
use crate::ask::Ask;
use crate::refused::Refused;
use crate::shell::Shell;

/// The visitor of a page: signed in by a token, a session or a proxy, or, where pages are open, the person at this machine.
/// [`Sent`](crate::sent::Sent) checks that a visitor really sent a form.
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    pub(crate) data: Reader,
    /// The frame around the page.
    pub(crate) shell: Shell,
    /// A client of the API with the rights of the visitor.
    pub(crate) ask: Ask,
}

impl FromRequestParts<Console> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Refused> {
        let caller = caller(parts, console).await?;
        let shell = console.shell(parts, caller.name.clone());
        let ask = Ask::new(console.asked.clone(), caller.clone());
        let data = console.api.database.reader(&caller);
        Ok(Self { caller, data, shell, ask })
    }
}

async fn caller(parts: &mut Parts, console: &Console) -> Result<Caller, Refused> {
    let api = &console.api;
    if let Some(person) = api.access.proxied(api, parts).await? {
        return Ok(person);
    }
    let token = parts.headers.contains_key(header::AUTHORIZATION);
    match api.access.session(parts, api.app.now()) {
        Some((session, _)) if !token => return Ok(api.access.visitor(api, parts, session).await?),
        None if !token && api.pages_open => {}
        None if !token => return Err(console.unknown(parts).await),
        _ => return Ok(Caller::from_request_parts(parts, api).await?),
    }
    // A web site can make its own name point here and then read what its visitor can read.
    if !is_local(parts) {
        let message = "open pages are read at localhost only: use that name, or send a token";
        return Err(Problem::unauthorized(message).into());
    }
    Ok(Caller::local())
}

impl Console {
    /// The frame of a page for a person of this name.
    pub(crate) fn shell(&self, parts: &Parts, who: String) -> Shell {
        let session = self.api.access.session(parts, self.api.app.now());
        let shell = Shell::new(parts, who, self.api.app.now());
        Shell { csrf: session.map(|(_, csrf)| csrf), ..shell }
    }

    /// Leads unknown readers to the sign-in page.
    async fn unknown(&self, parts: &mut Parts) -> Refused {
        let problem = match self.api.access.caller(&self.api, parts).await {
            Err(problem) => problem,
            Ok(_) => Problem::unauthorized("say who you are"),
        };
        match self.api.access.sessions().filter(|_| parts.method.is_safe()) {
            Some(_) => Refused::sign_in(parts.uri.path_and_query().map_or("/", |path| path.as_str())),
            None => problem.into(),
        }
    }
}

/// Whether the request names this machine itself.
fn is_local(parts: &Parts) -> bool {
    authority(parts).is_some_and(|authority| matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]"))
}

/// The host that the request names.
pub(crate) fn authority(parts: &Parts) -> Option<Authority> {
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    named.and_then(|host| host.parse::<Authority>().ok()).or_else(|| parts.uri.authority().cloned())
}
