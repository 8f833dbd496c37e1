//! Google Cloud Storage, through its JSON API.
//!
//! Ebbflow needs two calls. Google's own client makes one of them over gRPC, which local test servers do not support.

use std::time::Duration;

use axum::http::{Extensions, HeaderMap, header};
use google_cloud_auth::credentials::{Builder, CacheableResource, Credentials};
use model::Instant;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

const GOOGLE: &str = "https://storage.googleapis.com";

const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);

/// The maximum length of a server's message in an error, in characters.
const MAX_MESSAGE_LENGTH: usize = 200;

/// The access of a client to objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// List and read objects.
    Read,
    /// Also create and replace objects.
    Write,
}

impl Access {
    fn scope(self) -> &'static str {
        match self {
            Self::Read => "https://www.googleapis.com/auth/devstorage.read_only",
            Self::Write => "https://www.googleapis.com/auth/devstorage.read_write",
        }
    }
}

/// Why a request to storage failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StorageError {
    message: String,
    /// Whether the same request may succeed later.
    pub is_transient: bool,
}

/// One object. The API returns numbers as strings.
#[derive(Clone, Deserialize, Debug)]
pub struct Object {
    /// The object's name within the bucket.
    pub name: String,
    /// The size in bytes.
    #[serde(default)]
    pub size: String,
    /// When its content or metadata last changed.
    pub updated: Instant,
    /// Changes with the content.
    #[serde(default)]
    pub generation: String,
    /// Changes with the metadata.
    #[serde(default)]
    pub metageneration: String,
}

/// A page of a bucket's objects.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Objects {
    /// The objects, in the order of their names.
    #[serde(default)]
    pub items: Vec<Object>,
    /// The token of the next page, if there is one.
    pub next_page_token: Option<String>,
}

/// A client. It connects and loads credentials with the first request.
#[derive(Debug)]
pub struct Storage {
    access: Access,
    /// Another server with the same API, called without credentials.
    endpoint: Option<String>,
    client: OnceCell<Client>,
    credentials: OnceCell<Credentials>,
}

impl Storage {
    /// A client of Google's servers, or of another server with the same API.
    pub fn new(access: Access, endpoint: Option<String>) -> Self {
        Self { access, endpoint, client: OnceCell::new(), credentials: OnceCell::new() }
    }

    /// A page of the objects whose names start with `prefix`.
    pub async fn list(
        &self,
        bucket: &str,
        prefix: &str,
        page_token: Option<&str>,
    ) -> Result<Objects, StorageError> {
        let fields = "items(name,size,updated,generation,metageneration),nextPageToken";
        let query = [("prefix", prefix), ("fields", fields)];
        let query = query.into_iter().chain(page_token.map(|token| ("pageToken", token)));
        let request = self.client().await.get(self.url("storage/v1/b", bucket, query)?);
        let what = format!("listing `gs://{bucket}/{prefix}…`");
        let response = self.send(request, &what).await?;
        match response.status().is_success() {
            true => response.json().await.map_err(|error| failed(&what, error)),
            false => Err(refused(&what, response).await),
        }
    }

    /// Creates an object. An existing object is not changed.
    pub async fn create(
        &self,
        bucket: &str,
        name: &str,
        content_type: &str,
        body: String,
    ) -> Result<(), StorageError> {
        let query = [("uploadType", "media"), ("name", name), ("ifGenerationMatch", "0")];
        let request = self.client().await.post(self.url("upload/storage/v1/b", bucket, query)?);
        let what = format!("writing `gs://{bucket}/{name}`");
        let response =
            self.send(request.header(header::CONTENT_TYPE, content_type).body(body), &what).await?;
        match response.status() {
            StatusCode::PRECONDITION_FAILED => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(refused(&what, response).await),
        }
    }

    async fn client(&self) -> &Client {
        self.client.get_or_init(|| async { Client::new() }).await
    }

    fn url<'q>(
        &self,
        path: &str,
        bucket: &str,
        query: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Url, StorageError> {
        let base = self.endpoint.as_deref().unwrap_or(GOOGLE).trim_end_matches('/');
        let url = Url::parse(&format!("{base}/{path}")).ok().and_then(|mut url| {
            url.path_segments_mut().ok()?.push(bucket).push("o");
            url.query_pairs_mut().extend_pairs(query);
            Some(url)
        });
        let message = format!("`{base}` is not a valid storage endpoint");
        url.ok_or(StorageError { message, is_transient: false })
    }

    async fn send(&self, request: RequestBuilder, what: &str) -> Result<Response, StorageError> {
        let request = request.headers(self.headers().await?).timeout(REQUEST_TIMEOUT);
        request.send().await.map_err(|error| failed(what, error))
    }

    async fn headers(&self) -> Result<HeaderMap, StorageError> {
        if self.endpoint.is_some() {
            return Ok(HeaderMap::new());
        }
        let failed = |error: String| {
            let message = format!("no credentials for storage: {error}");
            StorageError { message, is_transient: true }
        };
        let build = || async { Builder::default().with_scopes([self.access.scope()]).build() };
        let credentials =
            self.credentials.get_or_try_init(build).await.map_err(|error| failed(error.to_string()))?;
        match credentials.headers(Extensions::new()).await.map_err(|error| failed(error.to_string()))? {
            CacheableResource::New { data, .. } => Ok(data),
            CacheableResource::NotModified => Ok(HeaderMap::new()),
        }
    }
}

fn failed(what: &str, error: reqwest::Error) -> StorageError {
    StorageError { message: format!("{what} failed: {}", error.without_url()), is_transient: true }
}

/// The error of a response. A missing bucket or permission is permanent; an overloaded server is transient.
async fn refused(what: &str, response: Response) -> StorageError {
    let status = response.status();
    let body = response.text().await.unwrap_or_default();
    let json: Option<Value> = serde_json::from_str(&body).ok();
    let message = json.as_ref().and_then(|body| body["error"]["message"].as_str()).unwrap_or(&body);
    let message: String = message.chars().take(MAX_MESSAGE_LENGTH).collect();
    let is_transient = status.is_server_error()
        || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
    StorageError { message: format!("{what} failed with {status}: {message}"), is_transient }
}

#[cfg(test)]
mod tests {
    use testkit::StorageServer;

    use super::*;

    #[tokio::test]
    async fn objects_are_created_once_and_listed_page_by_page() {
        let server = StorageServer::start(&["old-runs"]).await;
        let storage = Storage::new(Access::Write, Some(server.url().to_owned()));
        for (name, body) in [("runs/a b.ndjson", "1\n"), ("runs/c.ndjson", "2\n"), ("runs/c.ndjson", "3\n")] {
            storage.create("old-runs", name, "application/x-ndjson", body.to_owned()).await.unwrap();
        }
        storage.create("old-runs", "other", "text/plain", "x".to_owned()).await.unwrap();
        assert_eq!(server.content("old-runs", "runs/c.ndjson").as_deref(), Some("2\n"));
        let (mut names, mut token) = (Vec::new(), None);
        loop {
            let page = storage.list("old-runs", "runs/", token.as_deref()).await.unwrap();
            names.extend(page.items.into_iter().map(|object| (object.name, object.size, object.generation)));
            token = page.next_page_token;
            if token.is_none() {
                break;
            }
        }
        let named = |name: &str| (name.to_owned(), "2".to_owned(), "1".to_owned());
        assert_eq!(names, [named("runs/a b.ndjson"), named("runs/c.ndjson")]);
    }

    #[tokio::test]
    async fn errors_have_the_servers_message_and_tell_whether_to_retry() {
        let server = StorageServer::start(&["old-runs"]).await;
        let storage = Storage::new(Access::Write, Some(server.url().to_owned()));
        let missing = storage.list("gone", "", None).await.unwrap_err();
        assert_eq!(
            missing.to_string(),
            "listing `gs://gone/…` failed with 404 Not Found: The specified bucket does not exist."
        );
        assert!(!missing.is_transient);
        let invalid = storage.list("Not A Bucket", "", None).await.unwrap_err();
        assert!(invalid.to_string().contains("400 Bad Request: Invalid bucket name"), "{invalid}");
        let unnamed = storage.create("old-runs", "", "text/plain", String::new()).await.unwrap_err();
        assert!(unnamed.to_string().contains("400 Bad Request"), "{unnamed}");
        for (status, is_transient) in [(403, false), (408, true), (429, true), (503, true)] {
            server.reject_with(Some(status));
            let refused = storage.create("old-runs", "a", "text/plain", String::new()).await.unwrap_err();
            assert_eq!(refused.is_transient, is_transient, "{refused}");
        }
        let away = Storage::new(Access::Read, Some("http://127.0.0.1:1".into()));
        assert!(away.list("old-runs", "", None).await.unwrap_err().is_transient);
        let odd = Storage::new(Access::Read, Some("not an address".into()));
        assert!(!odd.list("old-runs", "", None).await.unwrap_err().is_transient);
    }
}
