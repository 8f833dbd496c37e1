//! An embedded server keeps committed data, with any Postgres and however its owner ends.
#![expect(clippy::unwrap_used, reason = "a claim that cannot be tested has failed")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, future};

use ebbflow_embedded::{Durability, Error, Kind, Options, Preference, Server};
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

/// The folder in which a copy of this program runs a server until it is killed.
const OWN: &str = "EBBFLOW_TEST_OWN";

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn start(folder: &Path, preference: Preference) -> Server {
    Server::start_with(folder, preference).await.unwrap()
}

/// For tests that do not depend on durability.
async fn start_quickly(folder: &Path, preference: Preference) -> Server {
    Server::start_with(folder, Options { preference, durability: Durability::None, ..Options::default() })
        .await
        .unwrap()
}

async fn connect(server: &Server) -> PgConnection {
    PgConnection::connect(&server.url("postgres")).await.unwrap()
}

async fn note(server: &Server, text: &str) {
    let mut connection = connect(server).await;
    connection.execute("CREATE TABLE IF NOT EXISTS notes (text TEXT)").await.unwrap();
    sqlx::query("INSERT INTO notes VALUES ($1)").bind(text).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn notes(server: &Server) -> Vec<String> {
    sqlx::query_scalar("SELECT text FROM notes").fetch_all(&mut connect(server).await).await.unwrap()
}

async fn committed_rows_outlive_a_stop(preference: Preference) {
    let folder = folder();
    let server = start(folder.path(), preference).await;
    note(&server, "kept").await;
    server.stop().await;

    let server = start(folder.path(), preference).await;
    assert_eq!(notes(&server).await, ["kept"]);
    server.stop().await;
}

async fn committed_rows_outlive_a_drop(preference: Preference) {
    let folder = folder();
    let server = start(folder.path(), preference).await;
    note(&server, "kept").await;
    let url = server.url("postgres");
    drop(server);
    assert!(PgConnection::connect(&url).await.is_err(), "the server goes with its owner");

    let server = start(folder.path(), preference).await;
    assert_eq!(notes(&server).await, ["kept"]);
    server.stop().await;
}

async fn a_killed_server_is_restarted_with_all_committed_rows(preference: Preference) {
    let folder = folder();
    let server = start(folder.path(), preference).await;
    note(&server, "kept").await;
    let mut session = connect(&server).await;
    let kill_and_wait = async {
        for _ in 0..2 {
            // The session ends with its server; a new one is accepted once the server is back.
            kill_postmaster(&mut session).await;
            session = connected(&server).await;
        }
        // As long as the server is kept running: it may just be restarted again.
        let notes = sqlx::query_scalar("SELECT text FROM notes").fetch_all(&mut session).await;
        let notes: Vec<String> = notes.unwrap();
        assert_eq!(notes, ["kept"]);
        drop(session);
    };
    tokio::select! {
        () = kill_and_wait => {}
        () = server.keep_running() => {}
    }
    server.stop().await;
}

/// Kills the server of a session with SIGKILL, and waits until the session has ended.
async fn kill_postmaster(session: &mut PgConnection) {
    let postmaster = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    let pid: String = sqlx::query_scalar(postmaster).fetch_one(&mut *session).await.unwrap();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    let ended = sqlx::query("SELECT pg_sleep(600)").execute(session).await;
    assert!(ended.is_err(), "a session does not outlive its server");
}

/// Connects as soon as the server accepts.
async fn connected(server: &Server) -> PgConnection {
    let mut tries = tokio::time::interval(std::time::Duration::from_millis(20));
    loop {
        tries.tick().await;
        if let Ok(mut session) = PgConnection::connect(&server.url("postgres")).await
            && session.ping().await.is_ok()
        {
            return session;
        }
    }
}

async fn committed_rows_outlive_the_killing_of_the_owner(preference: Preference) {
    let folder = folder();
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("owner_{preference:?}").to_lowercase(), "--nocapture"])
        .env(OWN, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("noted")), "the owner wrote a row");
    owner.kill().unwrap();
    owner.wait().unwrap();

    let server = start(folder.path(), preference).await;
    assert_eq!(notes(&server).await, ["noted"]);
    server.stop().await;
}

/// The body of the process that is killed; does nothing in an ordinary test run.
async fn own_until_killed(preference: Preference) {
    let Some(folder) = env::var_os(OWN) else { return };
    let server = start(Path::new(&folder), preference).await;
    note(&server, "noted").await;
    println!("noted");
    future::pending::<()>().await;
}

#[tokio::test]
async fn owner_any() {
    own_until_killed(Preference::Any).await;
}

#[tokio::test]
async fn owner_compiled() {
    own_until_killed(Preference::Compiled).await;
}

async fn sessions_share_work_with_skip_locked(preference: Preference) {
    const TAKE: &str = "SELECT id FROM jobs ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1";
    let folder = folder();
    let server = start_quickly(folder.path(), preference).await;
    let [mut first, mut second] = [connect(&server).await, connect(&server).await];
    first.execute("CREATE TABLE jobs AS SELECT generate_series(1, 2) AS id").await.unwrap();

    let mut one = first.begin().await.unwrap();
    let mut other = second.begin().await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i32>(TAKE).fetch_one(&mut *one).await.unwrap(), 1);
    assert_eq!(sqlx::query_scalar::<_, i32>(TAKE).fetch_one(&mut *other).await.unwrap(), 2);
    drop((one, other));
    server.stop().await;
}

async fn ninety_sessions_are_accepted(preference: Preference) {
    let folder = folder();
    let server = start_quickly(folder.path(), preference).await;
    let mut sessions = Vec::new();
    for _ in 0..90 {
        sessions.push(connect(&server).await);
    }
    for session in &mut sessions {
        session.ping().await.unwrap();
    }
    server.stop().await;
}

async fn databases_come_and_go_by_any_name(preference: Preference) {
    let folder = folder();
    let server = start_quickly(folder.path(), preference).await;
    let name = "a \"b\" /c";
    server.create_database(name).await.unwrap();
    server.create_database(name).await.unwrap();
    let session = PgConnection::connect(&server.url(name)).await.unwrap();
    server.drop_database(name).await.unwrap();
    assert!(PgConnection::connect(&server.url(name)).await.is_err());
    drop(session);
    server.stop().await;
}

async fn it_reports_its_postgres(preference: Preference) {
    let folder = folder();
    let server = start_quickly(folder.path(), preference).await;
    let (Kind::Installed { version, .. } | Kind::Compiled { version }) = server.kind();
    let query = sqlx::query_scalar("SHOW server_version");
    let reported: String = query.fetch_one(&mut connect(&server).await).await.unwrap();
    assert!(reported.starts_with(version), "{reported} is not {version}");
    assert!(server.kind().to_string().contains(version));
    server.stop().await;
}

async fn a_folder_in_use_is_rejected(preference: Preference) {
    let folder = folder();
    let server = start_quickly(folder.path(), preference).await;
    let second = Server::start_with(folder.path(), preference).await;
    assert!(matches!(second, Err(Error::InUse(_))), "{second:?}");
    assert!(matches!(Server::remove(folder.path()).await, Err(Error::InUse(_))));
    server.stop().await;
}

async fn the_pid_of_an_unrelated_process_does_not_prevent_a_start(preference: Preference) {
    let folder = folder();
    let server = start_quickly(folder.path(), preference).await;
    server.stop().await;
    for cluster in fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if cluster.join("PG_VERSION").exists() {
            let stale = format!("{}\n{}\n", std::process::id(), cluster.display());
            fs::write(cluster.join("postmaster.pid"), stale).unwrap();
        }
    }
    start_quickly(folder.path(), preference).await.stop().await;
}

async fn a_private_folder_works(preference: Preference) {
    let private = fs::Permissions::from_mode(0o700);
    let parent = tempfile::Builder::new().permissions(private).tempdir().unwrap();
    let folder = parent.path().join("ebb");
    let server = start_quickly(&folder, preference).await;
    note(&server, "kept").await;
    server.stop().await;

    let server = start_quickly(&folder, preference).await;
    assert_eq!(notes(&server).await, ["kept"]);
    server.stop().await;
    Server::remove(&folder).await.unwrap();
}

async fn a_removed_folder_leaves_nothing(preference: Preference) {
    let parent = folder();
    let folder = parent.path().join("l".repeat(100));
    start_quickly(&folder, preference).await.stop().await;
    Server::remove(&folder).await.unwrap();
    assert!(!folder.exists());
}

macro_rules! claims {
    ($name:ident, $preference:expr, [$($claim:ident),+ $(,)?]) => {
        mod $name {
            use super::*;

            $(#[tokio::test]
            async fn $claim() {
                super::$claim($preference).await;
            })+
        }
    };
}

claims!(
    any,
    Preference::Any,
    [
        committed_rows_outlive_a_stop,
        committed_rows_outlive_a_drop,
        committed_rows_outlive_the_killing_of_the_owner,
        a_killed_server_is_restarted_with_all_committed_rows,
        sessions_share_work_with_skip_locked,
        ninety_sessions_are_accepted,
        databases_come_and_go_by_any_name,
        it_reports_its_postgres,
        a_folder_in_use_is_rejected,
        the_pid_of_an_unrelated_process_does_not_prevent_a_start,
        a_private_folder_works,
        a_removed_folder_leaves_nothing,
    ]
);

// Only what could be otherwise: the rest is the same code.
#[cfg(feature = "pglite")]
claims!(
    compiled,
    Preference::Compiled,
    [
        committed_rows_outlive_the_killing_of_the_owner,
        a_killed_server_is_restarted_with_all_committed_rows,
        sessions_share_work_with_skip_locked,
        ninety_sessions_are_accepted,
        it_reports_its_postgres,
        the_pid_of_an_unrelated_process_does_not_prevent_a_start,
    ]
);
