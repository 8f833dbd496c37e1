//! A Postgres that can be killed and comes back with all that was committed.

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

    /// SIGKILL, in the middle of whatever it does. Its sessions find that it is gone, and end.
    pub(crate) fn kill(&mut self) {
        let sessions = self.sessions();
        let killed = Command::new("kill").args(["-9", &self.postmaster]).status().unwrap();
        assert!(killed.success(), "Postgres was there to be killed");
        tell("-CONT", &sessions);
    }

    /// SIGSTOP to each of its processes: whoever has a connection keeps it and hears nothing.
    pub(crate) fn freeze(&self) {
        // First the one that would start others.
        tell("-STOP", std::slice::from_ref(&self.postmaster));
        tell("-STOP", &self.sessions());
    }

    pub(crate) fn thaw(&self) {
        tell("-CONT", &self.sessions());
        tell("-CONT", std::slice::from_ref(&self.postmaster));
    }

    fn sessions(&self) -> Vec<String> {
        let asked = Command::new("ps").args(["-o", "pid=", "--ppid", &self.postmaster]).output().unwrap();
        String::from_utf8(asked.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
    }

    /// Serves the same data again at the same address.
    pub(crate) async fn restart(&mut self) {
        self.server.take();
        // Durable, as in production: a commit outlives a kill.
        let options =
            || Options { preference: Preference::Any, durability: Durability::Full, ..Options::default() };
        let server = loop {
            match Server::start_with(self.folder.path(), options()).await {
                // A function that is being started has a copy of the folder's lock until its program begins.
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

fn tell(signal: &str, processes: &[String]) {
    // One may end by itself meanwhile.
    let _ = Command::new("kill").arg(signal).args(processes).stderr(Stdio::null()).status();
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
