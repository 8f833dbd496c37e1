//! What a form sends, if it is a form of ours.

use axum::extract::{FromRequest, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Form, RequestExt};
use service::Problem;

use crate::refused::Refused;

/// What a form of ours sends. A page of another site can make a browser send forms here, with whatever lets its user
/// in; so a form counts only if the browser says that it stood on a page of this very address.
pub(crate) struct Sent(Vec<(String, String)>);

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        if !is_own(request.headers()) {
            let message = "this form was not sent by a page of this console: load the page again";
            return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", message).into());
        }
        let Form(fields) = request
            .extract::<Form<Vec<(String, String)>>, _>()
            .await
            .map_err(|error| Problem::bad_request(error.body_text()))?;
        Ok(Self(fields))
    }
}

/// Whether the browser says that the request comes from a page of ours. Who sends a token is no browser that is misled.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let host = text("host").and_then(|host| host.parse::<Authority>().ok());
    let origin = text("origin").and_then(|origin| origin.split_once("://"));
    match origin.and_then(|(_, origin)| origin.parse::<Authority>().ok()) {
        Some(origin) => host.is_some_and(|host| host == origin),
        None => headers.contains_key(header::AUTHORIZATION),
    }
}

impl Sent {
    /// A field that is filled in.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// A field as it was sent, be it empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Where the form stood.
    pub(crate) fn back(&self) -> &str {
        self.field("back").unwrap_or("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&'static str, &'static str)]) -> bool {
        is_own(&pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect())
    }

    #[test]
    fn only_a_page_of_this_address_may_send_forms() {
        assert!(from(&[("sec-fetch-site", "same-origin")]));
        assert!(from(&[("host", "localhost:8480"), ("origin", "http://localhost:8480")]));
        assert!(from(&[("authorization", "Bearer x")]));
        assert!(!from(&[("sec-fetch-site", "cross-site"), ("authorization", "Bearer x")]));
        assert!(!from(&[("sec-fetch-site", "same-site")]));
        assert!(!from(&[("host", "localhost:8480"), ("origin", "http://localhost:9999")]));
        assert!(!from(&[("host", "localhost:8480"), ("origin", "null")]));
        assert!(!from(&[("host", "localhost:8480")]));
    }
}
