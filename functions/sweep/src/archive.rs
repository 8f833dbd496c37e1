//! Archives for rows that are about to be deleted.

mod bucket;

use std::io::{self, Write};
use std::path::PathBuf;

use model::Instant;
use serde_json::Value;

pub use bucket::Bucket;

/// A permanent store for documents.
#[async_trait::async_trait]
pub trait Archive: Send + Sync {
    /// Stores documents of one kind durably, so that the rows may be deleted. It may be called twice with the same documents.
    async fn store(&self, kind: &str, now: Instant, documents: Vec<Value>) -> io::Result<()>;
}

/// An archive in a folder: one file per kind and day, one document per line.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

#[async_trait::async_trait]
impl Archive for Folder {
    async fn store(&self, kind: &str, now: Instant, documents: Vec<Value>) -> io::Result<()> {
        let path = self.0.join(format!("{kind}-{}.ndjson", now.format("%Y-%m-%d")));
        let folder = self.0.clone();
        let write = move || {
            std::fs::create_dir_all(&folder)?;
            let mut file = std::fs::File::options().create(true).append(true).open(path)?;
            file.write_all(lines(&documents).as_bytes())?;
            file.sync_all()?;
            // Syncs the folder, too: otherwise a new file may be lost.
            std::fs::File::open(folder)?.sync_all()
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

fn lines(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("{document}\n")).collect()
}
