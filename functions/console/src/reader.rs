//! Who reads a page.

use api::{Api, Caller};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use model::TenantId;
use service::Problem;

use crate::Console;
use crate::ask::Ask;
use crate::refused::Refused;
use crate::shell::Shell;

/// Someone who reads a page: whoever has a token, and where pages are open, whoever sits at this machine.
pub(crate) struct Reader {
    /// Who they are.
    pub(crate) caller: Caller,
    /// What is around the page.
    pub(crate) shell: Shell,
    /// The API, as them.
    pub(crate) ask: Ask,
}

impl FromRequestParts<Console> for Reader {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Refused> {
        let caller = caller(parts, &console.api).await?;
        let shell = Shell::new(parts, caller.name.clone(), console.api.app.now());
        let ask = Ask::new(console.asked.clone(), caller.clone());
        Ok(Self { caller, shell, ask })
    }
}

async fn caller(parts: &mut Parts, api: &Api) -> Result<Caller, Problem> {
    if parts.headers.contains_key(header::AUTHORIZATION) || !api.pages_open {
        return Caller::from_request_parts(parts, api).await;
    }
    // A web site can make its own name point here and then read what its visitor can read.
    if !is_local(parts) {
        let message = "open pages are read at localhost only: use that name, or send a token";
        return Err(Problem::unauthorized(message));
    }
    Ok(Caller { tenant: TenantId::DEFAULT, name: "local".into() })
}

/// Whether the request names this machine itself.
fn is_local(parts: &Parts) -> bool {
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority =
        named.and_then(|host| host.parse::<Authority>().ok()).or_else(|| parts.uri.authority().cloned());
    authority.is_some_and(|authority| matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]"))
}
