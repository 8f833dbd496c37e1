//! Key sets published at a URL.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, header};

use crate::Error;
use crate::keys::{Fetched, Source};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BODY_BYTES: usize = 256 * 1024;

const DEFAULT_AGE: Duration = Duration::from_secs(60 * 60);
const MIN_AGE: Duration = Duration::from_secs(60);
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// A URL that publishes a JSON Web Key Set.
pub(crate) struct JwksEndpoint {
    client: Client,
    url: String,
}

impl JwksEndpoint {
    pub(crate) fn new(url: String) -> Result<Self, Error> {
        let client = Client::builder().timeout(REQUEST_TIMEOUT).build();
        let client = client.map_err(|error| unavailable(&url, &error))?;
        Ok(Self { client, url })
    }

    async fn get(&self) -> reqwest::Result<Response> {
        self.client.get(&self.url).send().await?.error_for_status()
    }
}

#[async_trait]
impl Source for JwksEndpoint {
    async fn fetch(&self) -> Result<Fetched, Error> {
        let mut response = self.get().await.map_err(|error| unavailable(&self.url, &error))?;
        let max_age = max_age(&response);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unavailable(&self.url, &error))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY_BYTES {
                let message = format!("{} returned more than {MAX_BODY_BYTES} bytes", self.url);
                return Err(Error::KeysUnavailable(message));
            }
        }
        let jwks = serde_json::from_slice(&body)
            .map_err(|error| Error::KeysUnavailable(format!("{} did not return JSON: {error}", self.url)))?;
        Ok(Fetched { jwks, max_age })
    }
}

/// The error with all its causes, which the client's own message omits.
fn unavailable(url: &str, mut error: &dyn std::error::Error) -> Error {
    let mut text = format!("{url}: {error}");
    while let Some(cause) = error.source() {
        text = format!("{text}: {cause}");
        error = cause;
    }
    Error::KeysUnavailable(text)
}

/// The age that `Cache-Control` allows, within bounds: keys are neither fetched at every request nor kept past a rotation.
fn max_age(response: &Response) -> Duration {
    let control = response.headers().get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    control.map_or(DEFAULT_AGE, parse_max_age).clamp(MIN_AGE, MAX_AGE)
}

fn parse_max_age(control: &str) -> Duration {
    let mut directives = control.split(',').map(str::trim);
    let seconds = directives.find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(DEFAULT_AGE, Duration::from_secs)
}
