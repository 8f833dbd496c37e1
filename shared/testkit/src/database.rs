//! A fresh database for each test, on one server for each test process.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use embedded::{Durability, Options, Preference, Server};
use rustix::process::{Pid, getpid, test_kill_process};
use tokio::runtime;
use tokio::sync::{Mutex, OnceCell};

/// How the folders of test servers are called; the process follows.
const FOLDER: &str = "ebbflow-test-";

/// The database that [`migrated`] copies.
const TEMPLATE: &str = "template_of_tests";

static SERVER: OnceCell<Server> = OnceCell::const_new();

/// An empty database on a real Postgres, dropped with this value.
#[derive(Debug)]
pub struct Database {
    /// Where to connect.
    pub url: String,
    name: String,
    server: &'static Server,
}

/// Creates an empty database; the first of a process starts the server.
///
/// The server ends with the process, and its folder goes when another process starts one.
pub async fn database() -> Database {
    let server = SERVER.get_or_init(start).await;
    let name = next_name();
    server.create_database(&name).await.expect("a test server takes new databases");
    Database { url: server.url(&name), name, server }
}

/// Creates a database with a schema. `migrate` runs once for each process, and every database is a copy of its result,
/// which is much faster than to migrate each of them.
pub async fn migrated<E: Debug>(migrate: impl AsyncFnOnce(&str) -> Result<(), E>) -> Database {
    static MIGRATED: OnceCell<()> = OnceCell::const_new();
    // Postgres copies no database while somebody else copies it.
    static COPYING: Mutex<()> = Mutex::const_new(());

    let server = SERVER.get_or_init(start).await;
    let prepare = async move || {
        server.create_database(TEMPLATE).await.expect("a test server takes new databases");
        migrate(&server.url(TEMPLATE)).await.expect("a new database can be migrated");
    };
    MIGRATED.get_or_init(prepare).await;
    let name = next_name();
    let _turn = COPYING.lock().await;
    server.copy_database(&name, TEMPLATE).await.expect("the template can be copied");
    Database { url: server.url(&name), name, server }
}

fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Drop for Database {
    fn drop(&mut self) {
        // The runtime of the test may be about to end, and dropping is waited for by nobody.
        let (server, name) = (self.server, self.name.clone());
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        thread::spawn(move || runtime.map(|runtime| runtime.block_on(server.drop_database(&name))));
    }
}

async fn start() -> Server {
    let parent = env::temp_dir();
    for folder in stale(&parent) {
        // Another process may be at it as well, or the server may still be on its way out.
        let _ = Server::remove(&folder).await;
    }
    let folder = parent.join(format!("{FOLDER}{}", process::id()));
    let options = Options { preference: Preference::Any, durability: Durability::None, ..Options::default() };
    Server::start_with(&folder, options).await.unwrap_or_else(|e| panic!("no server for tests: {e}"))
}

/// The folders of processes that are gone, one of which may have had our number.
fn stale(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let gone = |pid| pid == getpid() || test_kill_process(pid).is_err();
    entries.filter(|path| owner(path).is_some_and(gone)).collect()
}

fn owner(folder: &Path) -> Option<Pid> {
    Pid::from_raw(folder.file_name()?.to_str()?.strip_prefix(FOLDER)?.parse().ok()?)
}
