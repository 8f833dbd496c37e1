//! Key sets published at an address.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, header};

use crate::Error;
use crate::keys::{Fetched, Source};

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BODY: usize = 256 * 1024;

const DEFAULT_AGE: Duration = Duration::from_secs(60 * 60);
const MIN_AGE: Duration = Duration::from_secs(60);
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// An address that publishes keys.
pub(crate) struct Remote {
    client: Client,
    url: String,
}

impl Remote {
    pub(crate) fn new(url: String) -> Result<Self, Error> {
        let client = Client::builder().timeout(TIMEOUT).build().map_err(|error| unavailable(&url, &error))?;
        Ok(Self { client, url })
    }

    async fn get(&self) -> reqwest::Result<Response> {
        self.client.get(&self.url).send().await?.error_for_status()
    }
}

#[async_trait]
impl Source for Remote {
    async fn fetch(&self) -> Result<Fetched, Error> {
        let mut response = self.get().await.map_err(|error| unavailable(&self.url, &error))?;
        let max_age = max_age(&response);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unavailable(&self.url, &error))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY {
                return Err(Error::KeysUnavailable(format!(
                    "{} answered more than {MAX_BODY} bytes",
                    self.url
                )));
            }
        }
        let jwks = serde_json::from_slice(&body)
            .map_err(|error| Error::KeysUnavailable(format!("{} did not return JSON: {error}", self.url)))?;
        Ok(Fetched { jwks, max_age })
    }
}

/// With all that led to it: the client tells the cause only when asked.
fn unavailable(url: &str, mut error: &dyn std::error::Error) -> Error {
    let mut text = format!("{url}: {error}");
    while let Some(cause) = error.source() {
        text = format!("{text}: {cause}");
        error = cause;
    }
    Error::KeysUnavailable(text)
}

/// What `Cache-Control` says, within bounds: neither asked for at every request nor kept past a rotation.
fn max_age(response: &Response) -> Duration {
    let control = response.headers().get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    control.map_or(DEFAULT_AGE, parse_max_age).clamp(MIN_AGE, MAX_AGE)
}

fn parse_max_age(control: &str) -> Duration {
    let mut directives = control.split(',').map(str::trim);
    let seconds = directives.find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(DEFAULT_AGE, Duration::from_secs)
}
