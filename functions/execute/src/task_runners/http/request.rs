//! Builds the request of a task's config.

use host::egress::Redirects;
use language::config::{self, Auth};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
};
use reqwest::{Client, Method, Request, Url};
use serde_json::Value;

use model::Failure;

/// Headers without secrets, and headers that the client removes before it follows a redirect to another host.
const SAFE_HEADERS: [HeaderName; 8] = [
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    AUTHORIZATION,
    CONTENT_TYPE,
    COOKIE,
    PROXY_AUTHORIZATION,
    USER_AGENT,
];

/// Which redirects the request may follow: other hosts may not see confidential headers.
pub(super) fn redirects(config: &config::Http) -> Redirects {
    let known = |name: &String| SAFE_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known.as_str()));
    if config.headers.keys().all(known) { Redirects::AnyHost } else { Redirects::SameHost }
}

/// Builds the request of a config.
pub(super) fn build(client: &Client, config: &config::Http) -> Result<Request, Failure> {
    let url = Url::parse(&config.url).map_err(|error| {
        Failure::permanent(format!("invalid `url`: {error}; expected something like https://host/path"))
    })?;
    let mut request = client.request(method(config), url);
    request = match &config.auth {
        Some(Auth::Bearer(token)) => request.bearer_auth(token),
        Some(Auth::Basic(basic)) => request.basic_auth(&basic.username, Some(&basic.password)),
        None => request,
    };
    request = match &config.body {
        Some(Value::String(text)) => {
            request.header(CONTENT_TYPE, "text/plain; charset=utf-8").body(text.clone())
        }
        Some(json) => request.json(json),
        None => request,
    };
    // The config's own headers come last and replace what was set above.
    request.headers(headers(config)?).build().map_err(|error| {
        Failure::permanent(format!("invalid request: {}", super::reasons(&error.without_url())))
    })
}

fn method(config: &config::Http) -> Method {
    match config.method() {
        config::Method::Get => Method::GET,
        config::Method::Post => Method::POST,
        config::Method::Put => Method::PUT,
        config::Method::Patch => Method::PATCH,
        config::Method::Delete => Method::DELETE,
        config::Method::Head => Method::HEAD,
    }
}

fn headers(config: &config::Http) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let invalid = |part| {
            Failure::permanent(format!(
                "the {part} of header `{name}` contains characters that HTTP does not allow"
            ))
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("name"))?;
        headers.insert(key, HeaderValue::from_str(&value.0).map_err(|_| invalid("value"))?);
    }
    Ok(headers)
}

/// The method and the URL, without credentials and query, which may contain secrets.
pub(super) fn describe(request: &Request) -> String {
    let mut url = request.url().clone();
    let query = if url.query().is_some() { "?…" } else { "" };
    url.set_query(None);
    url.set_fragment(None);
    // Fails for a URL that cannot have credentials, and so has none.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    format!("{} {url}{query}", request.method())
}
