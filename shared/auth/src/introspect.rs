//! Token introspection (RFC 7662): the issuer of an opaque token reports whether it is valid. Responses are cached briefly.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::sign_in::form;
use crate::ttl_cache::TtlCache;
use crate::verifier::{Fingerprint, fingerprint};
use crate::{Claims, Error};

/// Google's introspection endpoint for access tokens.
pub const GOOGLE_INTROSPECTION_URL: &str = "https://oauth2.googleapis.com/tokeninfo";

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BODY_BYTES: usize = 64 * 1024;

/// How long a valid token is cached, and so how long a revoked one is still accepted.
const VALID_TTL: TimeDelta = TimeDelta::seconds(5);

/// How long an invalid token is cached, so that its bearer cannot cause a request to the issuer with each of their own.
const INVALID_TTL: TimeDelta = TimeDelta::seconds(10);

const MAX_CACHED: usize = 1024;

const MAX_CONCURRENT_REQUESTS: usize = 8;

/// Introspects opaque tokens at their issuer.
pub struct Introspector {
    client: Client,
    url: String,
    audiences: Vec<String>,
    cache: TtlCache<Fingerprint, Result<Claims, Error>>,
    permits: Semaphore,
}

impl Introspector {
    /// Sends tokens to the endpoint at `url`, and accepts those issued for one of these audiences.
    pub fn new(url: impl Into<String>, audiences: Vec<String>) -> Result<Self, Error> {
        let client =
            Client::builder().timeout(REQUEST_TIMEOUT).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self {
            client: client.map_err(|error| Error::KeysUnavailable(error.to_string()))?,
            url: url.into(),
            audiences,
            cache: TtlCache::new(MAX_CACHED),
            permits: Semaphore::new(MAX_CONCURRENT_REQUESTS),
        })
    }

    /// The claims of a token that is valid at `now`.
    pub(crate) async fn introspect(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Error> {
        let fingerprint = fingerprint(token)?;
        if let Some(cached) = self.cache.get(&fingerprint, now) {
            return cached.and_then(|claims| claims.check_time(now).map(|()| claims));
        }
        let Ok(_permit) = self.permits.try_acquire() else {
            return Err(Error::KeysUnavailable("too many tokens are being introspected".into()));
        };
        let result = self.request(token, now).await;
        match &result {
            Ok(_) => self.cache.put(fingerprint, result.clone(), now, VALID_TTL),
            // An unavailable issuer says nothing about the token.
            Err(Error::KeysUnavailable(_)) => {}
            Err(_) => self.cache.put(fingerprint, result.clone(), now, INVALID_TTL),
        }
        result
    }

    async fn request(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Error> {
        // Google reads the first field, RFC 7662 the second. In the body, since URLs end up in logs.
        let request = form(self.client.post(&self.url), &[("access_token", token), ("token", token)]);
        let response = request.send().await.map_err(interrupted)?;
        let status = response.status();
        if status.is_server_error() || status.as_u16() == 429 {
            return Err(unavailable(&format!("it returned {status}")));
        }
        if !status.is_success() {
            return Err(Error::Malformed("its issuer does not know it"));
        }
        let claims = parse(&read_body(response).await?)?;
        if !claims.aud.iter().any(|audience| self.audiences.contains(audience)) {
            return Err(Error::WrongAudience { expected: self.audiences.join(" or ") });
        }
        claims.check_time(now)?;
        Ok(claims)
    }
}

fn unavailable(reason: &str) -> Error {
    Error::KeysUnavailable(format!("token introspection failed: {reason}"))
}

fn interrupted(error: reqwest::Error) -> Error {
    unavailable(&error.without_url().to_string())
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(interrupted)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY_BYTES {
            return Err(unavailable("the response is too long"));
        }
    }
    Ok(body)
}

/// Parses a response. Google returns numbers and booleans as strings, other issuers do not.
fn parse(body: &[u8]) -> Result<Claims, Error> {
    let mut response: Value =
        serde_json::from_slice(body).map_err(|_| unavailable("the response is not JSON"))?;
    let Some(fields) = response.as_object_mut() else {
        return Err(unavailable("the response is not an object"));
    };
    if fields.get("active") == Some(&Value::Bool(false)) {
        return Err(Error::Malformed("its issuer does not know it"));
    }
    for field in ["exp", "nbf"] {
        if let Some(number) =
            fields.get(field).and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok())
        {
            fields.insert(field.into(), number.into());
        }
    }
    if let Some(text) = fields.get("email_verified").and_then(Value::as_str) {
        let verified = text == "true";
        fields.insert("email_verified".into(), verified.into());
    }
    for field in ["iss", "sub"] {
        fields.entry(field).or_insert_with(|| Value::String(String::new()));
    }
    serde_json::from_value(response)
        .map_err(|_| Error::Malformed("its issuer's response lacks required claims"))
}
