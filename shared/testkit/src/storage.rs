//! A server that speaks the JSON API of Google Cloud Storage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

type Answer = (StatusCode, Json<Value>);
type Parameters = Query<BTreeMap<String, String>>;

/// Keeps objects in memory, lists one object per page, and rejects what Google rejects.
#[derive(Clone)]
pub struct StorageServer {
    url: String,
    state: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    buckets: BTreeSet<String>,
    /// By bucket and name: the generation and the content.
    objects: BTreeMap<(String, String), (u64, String)>,
    rejects_with: Option<StatusCode>,
}

impl StorageServer {
    /// Starts a server with these buckets.
    pub async fn start(buckets: &[&str]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let buckets = buckets.iter().map(ToString::to_string).collect();
        let server = Self { url, state: Arc::new(Mutex::new(Kept { buckets, ..Kept::default() })) };
        let router = Router::new()
            .route("/storage/v1/b/{bucket}/o", get(list))
            .route("/upload/storage/v1/b/{bucket}/o", post(upload))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// The base URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Rejects every request with this status, or none.
    ///
    /// # Panics
    /// If it is not a status.
    pub fn reject_with(&self, status: Option<u16>) {
        let status = status.map(|status| StatusCode::from_u16(status).expect("a status"));
        self.kept().rejects_with = status;
    }

    /// Writes an object, or a new generation of it.
    pub fn put(&self, bucket: &str, name: &str, content: &str) {
        self.kept().put(bucket, name, content.to_owned());
    }

    /// The content of an object.
    pub fn content(&self, bucket: &str, name: &str) -> Option<String> {
        let key = (bucket.to_owned(), name.to_owned());
        self.kept().objects.get(&key).map(|(_, content)| content.clone())
    }

    /// The names of a bucket's objects.
    pub fn names(&self, bucket: &str) -> Vec<String> {
        self.kept().objects.keys().filter(|(of, _)| of == bucket).map(|(_, name)| name.clone()).collect()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn put(&mut self, bucket: &str, name: &str, content: String) {
        let object = self.objects.entry((bucket.to_owned(), name.to_owned())).or_default();
        *object = (object.0 + 1, content);
    }

    fn check_bucket(&self, bucket: &str) -> Result<(), Answer> {
        if let Some(status) = self.rejects_with {
            return Err(refusal(status, status.canonical_reason().unwrap_or_default()));
        }
        let is_allowed =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_.".contains(letter);
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_allowed) {
            return Err(refusal(StatusCode::BAD_REQUEST, &format!("Invalid bucket name: '{bucket}'")));
        }
        match self.buckets.contains(bucket) {
            true => Ok(()),
            false => Err(refusal(StatusCode::NOT_FOUND, "The specified bucket does not exist.")),
        }
    }
}

fn refusal(status: StatusCode, message: &str) -> Answer {
    (status, Json(json!({"error": {"code": status.as_u16(), "message": message}})))
}

fn invalid(message: &str) -> Answer {
    refusal(StatusCode::BAD_REQUEST, message)
}

async fn list(State(server): State<StorageServer>, Path(bucket): Path<String>, query: Parameters) -> Answer {
    server.kept().list(&bucket, &query).unwrap_or_else(|refusal| refusal)
}

async fn upload(
    State(server): State<StorageServer>,
    Path(bucket): Path<String>,
    query: Parameters,
    headers: HeaderMap,
    body: String,
) -> Answer {
    let written = server.kept().upload(&bucket, &query, &headers, body);
    written.unwrap_or_else(|refusal| refusal)
}

impl Kept {
    fn list(&self, bucket: &str, query: &BTreeMap<String, String>) -> Result<Answer, Answer> {
        self.check_bucket(bucket)?;
        let known = ["prefix", "fields", "pageToken"];
        if let Some(unknown) = query.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(invalid(&format!("Unknown parameter: {unknown}")));
        }
        let prefix = query.get("prefix").map_or("", String::as_str);
        let mut fitting =
            self.objects.iter().filter(|((of, name), _)| of == bucket && name.starts_with(prefix));
        let mut page = json!({});
        if let Some(token) = query.get("pageToken") {
            let last = fitting.find(|((_, name), _)| name == token);
            last.ok_or_else(|| invalid("Invalid pageToken"))?;
        }
        if let Some(((_, name), (generation, content))) = fitting.next() {
            page["items"] = json!([{
                "name": name, "size": content.len().to_string(), "updated": "2027-01-15T09:00:00.123Z",
                "generation": generation.to_string(), "metageneration": "1",
            }]);
            if fitting.next().is_some() {
                page["nextPageToken"] = json!(name);
            }
        }
        Ok((StatusCode::OK, Json(page)))
    }

    fn upload(
        &mut self,
        bucket: &str,
        query: &BTreeMap<String, String>,
        headers: &HeaderMap,
        content: String,
    ) -> Result<Answer, Answer> {
        self.check_bucket(bucket)?;
        if query.get("uploadType").map(String::as_str) != Some("media") {
            return Err(invalid("Upload requests must include an uploadType URL parameter"));
        }
        let name = query.get("name").filter(|name| !name.is_empty()).ok_or_else(|| invalid("Required"))?;
        if name.len() > 1024 || name.contains(['\r', '\n']) {
            return Err(invalid("The specified object name is not valid."));
        }
        if !headers.contains_key(header::CONTENT_TYPE) || !headers.contains_key(header::CONTENT_LENGTH) {
            return Err(invalid("Content-Type and Content-Length are required"));
        }
        let exists = self.objects.contains_key(&(bucket.to_owned(), name.clone()));
        if exists && query.get("ifGenerationMatch").is_some_and(|generation| generation == "0") {
            let message = "At least one of the pre-conditions you specified did not hold.";
            return Err(refusal(StatusCode::PRECONDITION_FAILED, message));
        }
        self.put(bucket, name, content);
        Ok((StatusCode::OK, Json(json!({"kind": "storage#object", "name": name}))))
    }
}
