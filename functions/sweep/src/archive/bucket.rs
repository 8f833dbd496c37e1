//! An archive in Google Cloud Storage, by its JSON API.

use std::io;
use std::time::Duration;

use axum::http::{Extensions, HeaderMap, header};
use google_cloud_auth::credentials::{Builder, CacheableResource, Credentials};
use model::Instant;
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{Archive, lines};

/// Where the API is, unless the configuration says otherwise.
const GOOGLE: &str = "https://storage.googleapis.com";

/// The scope for writing objects.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_write";

/// Shorter than a retention pass; the next one tries again.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);

/// An archive in a bucket: an object per batch, below its kind and day, one document per line. An object's name is derived
/// from its content, so that a batch that comes twice is stored once.
#[derive(Debug)]
pub struct Bucket {
    name: String,
    /// Another compatible server, without credentials.
    endpoint: Option<String>,
    client: OnceCell<Client>,
    credentials: OnceCell<Credentials>,
}

impl Bucket {
    /// That bucket, on Google or another compatible server. Sends no request yet.
    pub fn new(name: impl Into<String>, endpoint: Option<String>) -> Self {
        Self { name: name.into(), endpoint, client: OnceCell::new(), credentials: OnceCell::new() }
    }

    fn address(&self, object: &str) -> io::Result<Url> {
        let base = self.endpoint.as_deref().unwrap_or(GOOGLE).trim_end_matches('/');
        let url = Url::parse(&format!("{base}/upload/storage/v1/b")).ok().and_then(|mut url| {
            url.path_segments_mut().ok()?.push(&self.name).push("o");
            // Only if there is no object of that name: archived objects are never overwritten.
            let query = [("uploadType", "media"), ("name", object), ("ifGenerationMatch", "0")];
            url.query_pairs_mut().extend_pairs(query);
            Some(url)
        });
        url.ok_or_else(|| io::Error::other(format!("`{base}` is no address of storage")))
    }

    async fn headers(&self) -> io::Result<HeaderMap> {
        if self.endpoint.is_some() {
            return Ok(HeaderMap::new());
        }
        let failed = |error: String| io::Error::other(format!("no credentials for storage: {error}"));
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

#[async_trait::async_trait]
impl Archive for Bucket {
    async fn keep(&self, kind: &str, now: Instant, documents: Vec<Value>) -> io::Result<()> {
        // A run without outputs leaves nothing to keep.
        if documents.is_empty() {
            return Ok(());
        }
        let body = lines(&documents);
        let batch = Uuid::new_v5(&Uuid::NAMESPACE_OID, body.as_bytes());
        let object = format!("{kind}/{}/{batch}.ndjson", now.format("%Y-%m-%d"));
        let client = self.client.get_or_init(|| async { Client::new() }).await;
        let request =
            client.post(self.address(&object)?).headers(self.headers().await?).timeout(REQUEST_TIMEOUT);
        let sent = request.header(header::CONTENT_TYPE, "application/x-ndjson").body(body).send().await;
        let what = format!("writing `gs://{}/{object}`", self.name);
        let answer =
            sent.map_err(|error| io::Error::other(format!("{what} failed: {}", error.without_url())))?;
        match answer.status() {
            // It exists already.
            StatusCode::PRECONDITION_FAILED => Ok(()),
            status if status.is_success() => Ok(()),
            status => {
                let said: String = answer.text().await.unwrap_or_default().chars().take(200).collect();
                Err(io::Error::other(format!("{what} was answered {status}: {said}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::extract::{Path, Query, State};
    use axum::routing::post;
    use serde_json::json;

    use super::*;

    /// A server that speaks the JSON API, as far as an archive needs it: it keeps objects, and refuses when told to.
    #[derive(Clone, Default)]
    struct Server {
        objects: Arc<Mutex<BTreeMap<String, String>>>,
        refuses: Arc<Mutex<Option<StatusCode>>>,
    }

    impl Server {
        async fn start(&self) -> String {
            let upload = |State(server): State<Self>,
                          Path(bucket): Path<String>,
                          Query(query): Query<BTreeMap<String, String>>,
                          body: String| async move {
                if let Some(status) = *server.refuses.lock().unwrap() {
                    return status;
                }
                assert_eq!(
                    (query["uploadType"].as_str(), query["ifGenerationMatch"].as_str()),
                    ("media", "0")
                );
                let mut objects = server.objects.lock().unwrap();
                let name = format!("{bucket}/{}", query["name"]);
                if objects.contains_key(&name) {
                    return StatusCode::PRECONDITION_FAILED;
                }
                objects.insert(name, body);
                StatusCode::OK
            };
            let router =
                Router::new().route("/upload/storage/v1/b/{bucket}/o", post(upload)).with_state(self.clone());
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(async move { axum::serve(listener, router).await });
            url
        }

        fn objects(&self) -> Vec<(String, String)> {
            self.objects.lock().unwrap().clone().into_iter().collect()
        }
    }

    fn noon() -> Instant {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[tokio::test]
    async fn a_batch_is_an_object_below_its_kind_and_day_and_is_there_once_however_often_it_comes() {
        let server = Server::default();
        let bucket = Bucket::new("old runs", Some(server.start().await));
        for documents in [vec![json!({"run": 1}), json!({"run": 2})], vec![json!({"run": 3})], Vec::new()] {
            for _ in 0..2 {
                bucket.keep("runs", noon(), documents.clone()).await.unwrap();
            }
        }
        let objects = server.objects();
        assert_eq!(objects.len(), 2, "{objects:?}");
        for (name, _) in &objects {
            assert!(name.starts_with("old runs/runs/2026-03-01/") && name.ends_with(".ndjson"), "{name}");
        }
        let mut kept: Vec<&str> = objects.iter().map(|(_, body)| body.as_str()).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["{\"run\":1}\n{\"run\":2}\n", "{\"run\":3}\n"]);
    }

    #[tokio::test]
    async fn what_the_bucket_does_not_take_is_not_said_to_be_kept() {
        let server = Server::default();
        let bucket = Bucket::new("b", Some(server.start().await));
        for status in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE] {
            *server.refuses.lock().unwrap() = Some(status);
            let refused = bucket.keep("runs", noon(), vec![json!({"run": 1})]).await.unwrap_err();
            assert!(refused.to_string().contains(status.as_str()), "{refused}");
        }
        *server.refuses.lock().unwrap() = None;
        bucket.keep("runs", noon(), vec![json!({"run": 1})]).await.unwrap();
        assert_eq!(server.objects().len(), 1);
        let nobody = Bucket::new("b", Some("http://127.0.0.1:1".into()));
        assert!(nobody.keep("runs", noon(), vec![json!({"run": 1})]).await.is_err());
    }
}
