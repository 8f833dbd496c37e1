//! A Postgres that can be killed, and keeps every commit.

use std::process::{Command, Stdio};

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

    /// Kills it with SIGKILL. Its sessions notice, and end.
    pub(crate) fn kill(&mut self) {
        let sessions = self.sessions();
        let killed = Command::new("kill").args(["-9", &self.postmaster]).status().unwrap();
        assert!(killed.success(), "Postgres is running");
        send("-CONT", &sessions);
    }

    /// Stops each of its processes with SIGSTOP: connections stay open and are not answered.
    pub(crate) fn freeze(&self) {
        // First the process that would start others.
        send("-STOP", std::slice::from_ref(&self.postmaster));
        send("-STOP", &self.sessions());
    }

    pub(crate) fn thaw(&self) {
        send("-CONT", &self.sessions());
        send("-CONT", std::slice::from_ref(&self.postmaster));
    }

    fn sessions(&self) -> Vec<String> {
        let asked = Command::new("ps").args(["-o", "pid=", "--ppid", &self.postmaster]).output().unwrap();
        String::from_utf8(asked.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
    }

    /// Serves the same data again at the same address.
    pub(crate) async fn restart(&mut self) {
        self.server.take();
        // Durable, as in production: a commit survives a kill.
        let options =
            || Options { preference: Preference::Any, durability: Durability::Full, ..Options::default() };
        let server = loop {
            match Server::start_with(self.folder.path(), options()).await {
                // A process that is being forked holds a copy of the folder's lock until it executes its program.
                Err(embedded::Error::InUse(_)) => pause(TimeDelta::milliseconds(20)).await,
                started => break started.unwrap(),
            }
        };
        server.create_database(DATABASE).await.unwrap();
        self.url = server.url(DATABASE);
        self.postmaster = postmaster(&self.url).await;
        self.server = Some(server);
    }

    pub(crate) async fn freeze_for(&self, duration: TimeDelta) {
        self.freeze();
        pause(duration).await;
        self.thaw();
    }

    pub(crate) async fn kill_and_restart(&mut self, after: TimeDelta) {
        self.kill();
        pause(after).await;
        self.restart().await;
    }
}

fn send(signal: &str, processes: &[String]) {
    // A process may have ended by itself.
    let _ = Command::new("kill").arg(signal).args(processes).stderr(Stdio::null()).status();
}

/// The parent process of all sessions.
async fn postmaster(url: &str) -> String {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let session: i32 =
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
    let asked = Command::new("ps").args(["-o", "ppid=", "-p", &session.to_string()]).output().unwrap();
    connection.close().await.unwrap();
    String::from_utf8(asked.stdout).unwrap().trim().to_owned()
}
