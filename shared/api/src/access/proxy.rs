//! People who signed in with a proxy in front of the function: its cookie lets their browser in, so that other sites can make
//! the browser send requests.

use auth::{Caller, IAP_HEADER};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use host::Problem;

use super::{Access, forbidden};
use crate::Api;

/// Whether the browser says that a page of this very address sends the request; none if it says nothing.
pub fn is_same_origin(headers: &HeaderMap) -> Option<bool> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return Some(site == "same-origin");
    }
    let origin = text("origin")?.split_once("://").and_then(|(_, origin)| origin.parse::<Authority>().ok());
    let host = text("host").and_then(|host| host.parse::<Authority>().ok());
    Some(origin.is_some() && origin == host)
}

impl Access {
    /// The person who signed in with the proxy, in the tenant that they choose; none if no trusted proxy says who they are, or
    /// if the request has a token of its own. The caller checks that they sent the request.
    pub async fn proxied(&self, api: &Api, parts: &Parts) -> Result<Option<Caller>, Problem> {
        let Some(assertion) = self.assertion(parts) else { return Ok(None) };
        let identity = self.0.gate.identify_by_proxy(assertion, api.app.now()).await?;
        self.person(api, parts, identity).await.map(Some)
    }

    /// Refuses a change that arrives through the proxy from a page of another origin.
    pub(super) fn check_not_forged(&self, parts: &Parts) -> Result<(), Problem> {
        let is_harmless = parts.method.is_safe() || is_same_origin(&parts.headers) == Some(true);
        if is_harmless || self.assertion(parts).is_none() {
            return Ok(());
        }
        Err(forbidden(
            "only pages of this address may change something as the person who is signed in; send a token",
        ))
    }

    fn assertion<'a>(&self, parts: &'a Parts) -> Option<&'a str> {
        let has_token = parts.headers.contains_key(header::AUTHORIZATION);
        let assertion = parts.headers.get(IAP_HEADER).filter(|_| !has_token && self.0.gate.trusts_proxy())?;
        // What is not text is no token either, and is rejected as such.
        Some(assertion.to_str().unwrap_or_default())
    }
}
