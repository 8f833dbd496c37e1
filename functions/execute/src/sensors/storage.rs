//! Google Cloud Storage, by its JSON API.

use axum::http::{Extensions, HeaderMap};
use google_cloud_auth::credentials::{Builder, CacheableResource, Credentials};
use model::{Failure, Instant, trigger::matches};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::files::File;

/// Where the API is, unless the environment says otherwise.
const GOOGLE: &str = "https://storage.googleapis.com";

/// What a reader of buckets needs.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";

/// Lists objects in buckets. Its client is created on the first request.
#[derive(Default)]
pub struct Storage {
    /// Another compatible server, without credentials.
    endpoint: Option<String>,
    client: OnceCell<Client>,
    credentials: OnceCell<Credentials>,
}

/// A page of a bucket's objects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    items: Vec<Object>,
    next_page_token: Option<String>,
}

/// One object, as far as it matters. Numbers come as texts.
#[derive(Deserialize)]
struct Object {
    name: String,
    #[serde(default)]
    size: String,
    updated: Instant,
    #[serde(default)]
    generation: String,
    #[serde(default)]
    metageneration: String,
}

impl Storage {
    /// Google's own, or the server that `EBB_STORAGE_ENDPOINT` names.
    pub fn from_env() -> Self {
        let endpoint = std::env::var("EBB_STORAGE_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
        Self { endpoint, ..Self::default() }
    }

    /// Another compatible server.
    pub fn at(endpoint: impl Into<String>) -> Self {
        Self { endpoint: Some(endpoint.into()), ..Self::default() }
    }

    /// The objects whose names fit, one more than `most` at the most.
    pub(super) async fn list(&self, bucket: &str, pattern: &str, most: usize) -> Result<Vec<File>, Failure> {
        let prefix = pattern.split('*').next().unwrap_or_default();
        let (mut found, mut page_token) = (Vec::new(), None::<String>);
        loop {
            let page = self.page(bucket, prefix, page_token.as_deref()).await?;
            let fitting = page.items.into_iter().filter(|object| matches(pattern, &object.name));
            found.extend(fitting.map(|object| File {
                path: format!("gs://{bucket}/{}", object.name),
                size: object.size.parse().unwrap_or_default(),
                changed_at: object.updated,
                version: format!("{}.{}", object.generation, object.metageneration),
            }));
            page_token = page.next_page_token;
            if page_token.is_none() || found.len() > most {
                return Ok(found);
            }
        }
    }

    async fn page(&self, bucket: &str, prefix: &str, token: Option<&str>) -> Result<Page, Failure> {
        let base = self.endpoint.as_deref().unwrap_or(GOOGLE).trim_end_matches('/');
        let url = Url::parse(&format!("{base}/storage/v1/b"))
            .ok()
            .and_then(|mut url| {
                url.path_segments_mut().ok()?.push(bucket).push("o");
                Some(url)
            })
            .ok_or_else(|| Failure::permanent(format!("`{base}` is no address of storage")))?;
        let fields = "items(name,size,updated,generation,metageneration),nextPageToken";
        let mut query = vec![("prefix", prefix), ("fields", fields)];
        query.extend(token.map(|token| ("pageToken", token)));
        let client = self.client.get_or_init(|| async { Client::new() }).await;
        let request = client.get(url).query(&query).headers(self.headers().await?);
        let what = format!("listing `gs://{bucket}/{prefix}…`");
        let answer = request
            .send()
            .await
            .map_err(|error| Failure::transient(format!("{what} failed: {}", error.without_url())))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(refusal(&what, status, &answer.text().await.unwrap_or_default()));
        }
        answer
            .json()
            .await
            .map_err(|error| Failure::transient(format!("{what} failed: {}", error.without_url())))
    }

    async fn headers(&self) -> Result<HeaderMap, Failure> {
        if self.endpoint.is_some() {
            return Ok(HeaderMap::new());
        }
        let failed = |error: String| Failure::transient(format!("no credentials for storage: {error}"));
        let credentials = self
            .credentials
            .get_or_try_init(|| async { Builder::default().with_scopes([SCOPE]).build() })
            .await
            .map_err(|error| failed(error.to_string()))?;
        match credentials.headers(Extensions::new()).await.map_err(|error| failed(error.to_string()))? {
            CacheableResource::New { data, .. } => Ok(data),
            CacheableResource::NotModified => Ok(HeaderMap::new()),
        }
    }
}

/// A failed response. Without permission or without a bucket, there is no point in a retry.
fn refusal(what: &str, status: StatusCode, body: &str) -> Failure {
    let said = serde_json::from_str::<serde_json::Value>(body).ok();
    let said = said.as_ref().and_then(|body| body["error"]["message"].as_str()).unwrap_or(body);
    let message = format!("{what} was answered {status}: {}", said.chars().take(200).collect::<String>());
    let passes = status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || status.is_server_error();
    if passes { Failure::transient(message) } else { Failure::permanent(message) }
}
