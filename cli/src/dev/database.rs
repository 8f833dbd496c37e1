//! The database of `ebb dev`: the one named, or one of its own in the data folder.

use std::fmt;

use anyhow::Context;
use embedded::Server;

use super::folder::DataFolder;

pub(super) enum Database {
    Named(String),
    Own { server: Server, url: String },
}

impl Database {
    pub(super) async fn open(url: Option<&str>, folder: &DataFolder) -> anyhow::Result<Self> {
        if let Some(url) = url {
            return Ok(Self::Named(url.to_owned()));
        }
        let server =
            Server::start(&folder.file("postgres")).await.context("the embedded database does not start")?;
        server.create_database("ebbflow").await?;
        let url = server.url("ebbflow");
        Ok(Self::Own { server, url })
    }

    pub(super) fn url(&self) -> &str {
        match self {
            Self::Named(url) | Self::Own { url, .. } => url,
        }
    }

    /// Whether no other process can use it: then the workers of earlier processes are gone.
    pub(super) fn is_ours_alone(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    pub(super) async fn close(self) {
        if let Self::Own { server, .. } = self {
            server.stop().await;
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(_) => f.write_str("the database named by --database-url"),
            Self::Own { server, .. } => server.kind().fmt(f),
        }
    }
}
