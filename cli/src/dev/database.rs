//! The database of `ebb dev`: an existing one, or an embedded one in the data folder.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use embedded::Server;
use tokio::task::JoinHandle;

use super::folder::DataFolder;

pub(super) enum Database {
    External(String),
    /// Restarted if it is killed.
    Embedded {
        server: Arc<Server>,
        url: String,
        keeping: JoinHandle<()>,
    },
}

impl Database {
    pub(super) async fn open(url: Option<&str>, folder: &DataFolder) -> anyhow::Result<Self> {
        if let Some(url) = url {
            return Ok(Self::External(url.to_owned()));
        }
        let server =
            Server::start(&folder.file("postgres")).await.context("cannot start the embedded database")?;
        server.create_database("ebbflow").await?;
        let url = server.url("ebbflow");
        let server = Arc::new(server);
        let kept = server.clone();
        let keeping = tokio::spawn(async move { kept.keep_running().await });
        Ok(Self::Embedded { server, url, keeping })
    }

    pub(super) fn url(&self) -> &str {
        match self {
            Self::External(url) | Self::Embedded { url, .. } => url,
        }
    }

    /// Whether no other process can use it: then all registered workers are dead.
    pub(super) fn is_exclusive(&self) -> bool {
        matches!(self, Self::Embedded { .. })
    }

    pub(super) async fn close(self) {
        if let Self::Embedded { server, keeping, .. } = self {
            keeping.abort();
            // Once the task has ended, nothing restarts the server.
            let _ = keeping.await;
            if let Some(server) = Arc::into_inner(server) {
                server.stop().await;
            }
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External(_) => f.write_str("the database at --database-url"),
            Self::Embedded { server, .. } => server.kind().fmt(f),
        }
    }
}
