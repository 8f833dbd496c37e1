//! Forms that pages of this console send, protected against forged requests.

use api::BODY_LIMIT;
use api::access::is_same_origin;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Form, RequestExt};
use host::{Problem, read_body};

use crate::Console;
use crate::refused::Refused;

/// The fields of a form of this console. A page of another site can make a browser send forms here with the user's cookies
/// (CSRF). So a form is accepted only if the browser reports the same origin and, within a session, if the form holds
/// the session's CSRF token.
pub(crate) struct Sent(Vec<(String, String)>);

impl FromRequest<Console> for Sent {
    type Rejection = Refused;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let own = is_own(&parts.headers);
        let access = &console.api.access;
        let session = access
            .session(&parts, console.api.app.now())
            .filter(|_| !parts.headers.contains_key(header::AUTHORIZATION));
        let body = Body::from(read_body(body, BODY_LIMIT).await?);
        let sent = Request::from_parts(parts, body).extract::<Form<Vec<(String, String)>>, _>().await;
        let Form(fields) = sent.map_err(|_| {
            let message = "unsupported form: its type must be application/x-www-form-urlencoded, and its fields of the \
                           form name=value&…";
            Problem::bad_request(message)
        })?;
        let sent = Self(fields);
        let proves =
            |csrf: String| sent.raw("csrf").is_some_and(|proof| auth::constant_time_eq(proof, &csrf));
        if own && session.is_none_or(|(_, csrf)| proves(csrf)) {
            return Ok(sent);
        }
        let message = "this form was not sent by a page of this console: load the page again";
        Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", message).into())
    }
}

/// Whether the browser reports a page of this console as the origin. A request with a token does not come from a misled
/// browser.
fn is_own(headers: &HeaderMap) -> bool {
    is_same_origin(headers).unwrap_or_else(|| headers.contains_key(header::AUTHORIZATION))
}

impl Sent {
    /// The value of a field, unless it is blank.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The value of a field as it was sent, even if empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Refuses a form with other fields than these, so that a typo is not a silent default.
    pub(crate) fn only<'f>(&self, known: impl IntoIterator<Item = &'f str>) -> Result<(), Problem> {
        let known: Vec<&str> = known.into_iter().collect();
        let is_known = |name: &str| known.contains(&name) || name == "csrf" || name == "back";
        let Some((name, _)) = self.0.iter().find(|(name, _)| !is_known(name)) else { return Ok(()) };
        let expected = match known.as_slice() {
            [] => "this form takes none".to_owned(),
            known => format!("expected one of {}", known.join(", ")),
        };
        let hint = host::did_you_mean(name, known.iter().copied());
        Err(Problem::bad_request(format!("unknown form field `{name}`{hint}; {expected}")))
    }

    /// The page that the form was on.
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
