//! Pages call the API for what they show and for what people do, as the reader of the page.

use auth::Caller;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use host::Problem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt;

use crate::refused::Refused;

/// All but what RFC 3986 leaves unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The maximum size of an API response that a page is made from.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// The API, as the one who reads a page.
pub(crate) struct Ask {
    router: Router,
    caller: Caller,
}

#[derive(Deserialize)]
struct No {
    message: String,
    #[serde(default)]
    details: Value,
}

impl Ask {
    pub(crate) fn new(router: Router, caller: Caller) -> Self {
        Self { router, caller }
    }

    /// What is at that path below `/api/v1`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refused> {
        self.send(Method::GET, path, None).await
    }

    /// The resource at that path, if the reader may see it: an optional part of a page.
    pub(crate) async fn get_if_allowed<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Refused> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(refused) if refused.status == StatusCode::FORBIDDEN => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    /// Sends a request that changes something.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Refused> {
        self.send(Method::POST, path, Some(body)).await
    }

    /// The response as it is, of any length.
    pub(crate) async fn raw(&self, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(self.caller.clone());
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Refused> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())));
        let request = request.map_err(|error| Problem::bad_request(error.to_string()))?;
        let (parts, body) = self.raw(request).await.into_parts();
        let bytes = to_bytes(body, MAX_RESPONSE_BYTES).await.map_err(|error| Problem::internal(&error))?;
        if parts.status.is_success() {
            return serde_json::from_slice(&bytes).map_err(|error| Problem::internal(&error).into());
        }
        let no = serde_json::from_slice(&bytes).unwrap_or_else(|_| unclear(parts.status));
        Err(Refused { status: parts.status, message: no.message, details: no.details, instead: None })
    }
}

fn unclear(status: StatusCode) -> No {
    No { message: format!("The answer was {status}."), details: Value::Null }
}

/// A part of a path.
pub(crate) fn part(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A query of the parameters that are there, with its question mark; nothing where none is.
pub(crate) fn query<'a>(parameters: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let pairs: Vec<String> = given.map(|(name, value)| format!("{name}={}", part(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_only_what_is_there() {
        assert_eq!(query([("a", Some("x y&z")), ("b", None)]), "?a=x%20y%26z");
        assert_eq!(query([("a", None)]), "");
    }
}
