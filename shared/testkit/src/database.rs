//! A fresh database for each test, on one server for each test process.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use embedded::{Durability, Options, Preference, Server};
use rustix::process::{Pid, getpid, test_kill_process};
use tokio::runtime;
use tokio::sync::{Mutex, OnceCell};

/// The prefix of the folders of test servers. The process id follows.
const FOLDER: &str = "ebbflow-test-";

/// The name of the database that [`migrated`] copies.
const TEMPLATE: &str = "template_of_tests";

static SERVER: OnceCell<Server> = OnceCell::const_new();

/// An empty database on a real Postgres, dropped with this value.
#[derive(Debug)]
pub struct Database {
    /// The URL to connect to.
    pub url: String,
    name: String,
    server: &'static Server,
}

/// Creates an empty database. The first call in a process starts the server.
///
/// The server ends with the process. Its folder is removed when another process starts a server.
pub async fn database() -> Database {
    let server = SERVER.get_or_init(start).await;
    let name = next_name();
    server.create_database(&name).await.expect("a test server takes new databases");
    Database { url: server.url(&name), name, server }
}

/// Creates a database with a schema. `migrate` runs once for each process and every database is a copy of its result, which
/// is much faster.
pub async fn migrated<E: Debug>(migrate: impl AsyncFnOnce(&str) -> Result<(), E>) -> Database {
    static MIGRATED: OnceCell<()> = OnceCell::const_new();
    // Postgres copies a template for one session at a time.
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
        // In a thread of its own: the runtime of the test may be about to end.
        let (server, name) = (self.server, self.name.clone());
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        thread::spawn(move || runtime.map(|runtime| runtime.block_on(server.drop_database(&name))));
    }
}

async fn start() -> Server {
    let parent = env::temp_dir();
    for folder in stale(&parent) {
        // Another process may be removing it, or the server may still be stopping.
        let _ = Server::remove(&folder).await;
    }
    let folder = parent.join(format!("{FOLDER}{}", process::id()));
    let options = Options { preference: Preference::Any, durability: Durability::None, ..Options::default() };
    Server::start_with(&folder, options).await.unwrap_or_else(|e| panic!("no server for tests: {e}"))
}

/// The folders of processes that have ended, one of which may have had our process id.
fn stale(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let gone = |pid| pid == getpid() || test_kill_process(pid).is_err();
    entries.filter(|path| owner(path).is_some_and(gone)).collect()
}

fn owner(folder: &Path) -> Option<Pid> {
    Pid::from_raw(folder.file_name()?.to_str()?.strip_prefix(FOLDER)?.parse().ok()?)
}
