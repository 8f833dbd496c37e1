//! A Postgres that can be killed and comes back with all that was committed.

use std::process::Command;

use chrono::TimeDelta;
use embedded::{Durability, Options, Preference, Server};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

use crate::cluster::pause;

const DATABASE: &str = "chaos";

pub(crate) struct Postgres {
    folder: TempDir,
    server: Option<Server>,
    postmaster: String,
    pub(crate) url: String,
}

impl Postgres {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut postgres = Self { folder, server: None, postmaster: String::new(), url: String::new() };
        postgres.restart().await;
        postgres
    }

    /// SIGKILL, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        let killed = Command::new("kill").args(["-9", &self.postmaster]).status().unwrap();
        assert!(killed.success(), "Postgres was there to be killed");
    }

    /// Serves the same data again at the same address.
    pub(crate) async fn restart(&mut self) {
        self.server.take();
        // Durable, as in production: a commit outlives a kill.
        let options =
            Options { preference: Preference::Any, durability: Durability::Full, ..Options::default() };
        let server = Server::start_with(self.folder.path(), options).await.unwrap();
        server.create_database(DATABASE).await.unwrap();
        self.url = server.url(DATABASE);
        self.postmaster = postmaster(&self.url).await;
        self.server = Some(server);
    }

    pub(crate) async fn kill_and_restart(&mut self, after: TimeDelta) {
        self.kill();
        pause(after).await;
        self.restart().await;
    }
}

/// The process that all sessions are children of.
async fn postmaster(url: &str) -> String {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let session: i32 =
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
    let asked = Command::new("ps").args(["-o", "ppid=", "-p", &session.to_string()]).output().unwrap();
    connection.close().await.unwrap();
    String::from_utf8(asked.stdout).unwrap().trim().to_owned()
}
