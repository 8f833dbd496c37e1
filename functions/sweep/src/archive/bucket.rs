//! An archive in Google Cloud Storage.

use std::io;

use host::storage::{Access, Storage};
use model::Instant;
use serde_json::Value;
use uuid::Uuid;

use super::{Archive, lines};

/// An archive in a bucket: one object per batch, below its kind and day, one document per line. The content determines the
/// name, so that a batch that is stored twice is one object.
#[derive(Debug)]
pub struct Bucket {
    name: String,
    storage: Storage,
}

impl Bucket {
    /// A bucket of Google, or of another server with the same API.
    pub fn new(name: impl Into<String>, endpoint: Option<String>) -> Self {
        Self { name: name.into(), storage: Storage::new(Access::Write, endpoint) }
    }
}

#[async_trait::async_trait]
impl Archive for Bucket {
    async fn store(&self, kind: &str, now: Instant, documents: Vec<Value>) -> io::Result<()> {
        // Runs without outputs have no documents.
        if documents.is_empty() {
            return Ok(());
        }
        let body = lines(&documents);
        let batch = Uuid::new_v5(&Uuid::NAMESPACE_OID, body.as_bytes());
        let object = format!("{kind}/{}/{batch}.ndjson", now.format("%Y-%m-%d"));
        let created = self.storage.create(&self.name, &object, "application/x-ndjson", body).await;
        created.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testkit::StorageServer;

    use super::*;

    fn noon() -> Instant {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[tokio::test]
    async fn a_batch_is_one_object_however_often_it_is_stored() {
        let server = StorageServer::start(&["old-runs"]).await;
        let bucket = Bucket::new("old-runs", Some(server.url().to_owned()));
        for documents in [vec![json!({"run": 1}), json!({"run": 2})], vec![json!({"run": 3})], Vec::new()] {
            for _ in 0..2 {
                bucket.store("runs", noon(), documents.clone()).await.unwrap();
            }
        }
        let names = server.names("old-runs");
        assert_eq!(names.len(), 2, "{names:?}");
        for name in &names {
            assert!(name.starts_with("runs/2026-03-01/") && name.ends_with(".ndjson"), "{name}");
        }
        let mut kept: Vec<String> =
            names.iter().filter_map(|name| server.content("old-runs", name)).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["{\"run\":1}\n{\"run\":2}\n", "{\"run\":3}\n"]);
    }

    #[tokio::test]
    async fn a_failed_write_is_an_error() {
        let server = StorageServer::start(&["old-runs"]).await;
        let bucket = Bucket::new("old-runs", Some(server.url().to_owned()));
        server.reject_with(Some(503));
        let refused = bucket.store("runs", noon(), vec![json!({"run": 1})]).await.unwrap_err();
        assert!(refused.to_string().contains("503"), "{refused}");
        assert!(server.names("old-runs").is_empty());
    }
}
