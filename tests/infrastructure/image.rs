//! What goes into the image, and how it behaves there: as far as that can be seen without Docker.
//!
//! The program of a release is looked at where there is one; else the one that tests are built with, which is larger and
//! slower, and is held to a little less.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program, and whether it is that of a release.
fn program() -> Option<(PathBuf, bool)> {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let places = [(target.join("release/ebb"), true), (target.join("debug/ebb"), false)];
    let found = places.into_iter().find(|(path, _)| path.is_file());
    if found.is_none() {
        eprintln!("skipped: there is no program yet (`cargo build --release` makes one)");
    }
    found
}

/// A function that serves; it ends with the value.
struct Serving {
    process: Child,
    port: u16,
}

impl Serving {
    fn start(program: &Path, database: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["serve", "sweep"]).env_clear().current_dir("/").stdin(Stdio::null());
        let settings =
            [("EBB_BROKER_URL", "http://127.0.0.1:1"), ("EBB_PUSH_AUTH", "none"), ("RUST_LOG", "error")];
        command.envs(settings).env("DATABASE_URL", database).env("PORT", port.to_string());
        let serving = Self { process: command.arg0("ebb").spawn().unwrap(), port };
        // Whoever listens has its connection to the database.
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        serving
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.process.id())).unwrap()
    }

    /// How long it has been computing, in milliseconds: what a busy machine lets it wait is not its own time.
    fn computed(&self) -> u64 {
        let stat = self.file("schedstat");
        stat.split(' ').next().unwrap().parse::<u64>().unwrap() / 1_000_000
    }

    /// How much memory is its own, and how much it is with what it shares with its file, in kilobytes.
    fn memory(&self) -> (u64, u64) {
        let status = self.file("status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        (field("RssAnon:"), field("VmRSS:"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_function_is_ready_at_once_and_takes_little_memory() {
    let Some((program, release)) = program() else { return };
    let database = testkit::database().await;
    store::Postgres::migrate(&database.url).await.unwrap();
    let starts: Vec<(u64, (u64, u64))> = (0..5)
        .map(|_| Serving::start(&program, &database.url))
        .map(|serving| (serving.computed(), serving.memory()))
        .collect();
    println!("milliseconds and kilobytes, release: {release}: {starts:?}");
    let (computed, (own, resident)) = starts.into_iter().min().unwrap();
    assert!(computed <= if release { 50 } else { 100 }, "ready after {computed} ms");
    assert!(if release { resident } else { own } <= 25 * 1024, "{own} kB of its own, {resident} kB in all");
}

#[tokio::test]
async fn a_function_ends_when_it_is_asked_to() {
    let Some((program, _)) = program() else { return };
    let database = testkit::database().await;
    store::Postgres::migrate(&database.url).await.unwrap();
    let mut serving = Serving::start(&program, &database.url);
    assert!(TcpStream::connect(("127.0.0.1", serving.port)).is_ok(), "it listens on $PORT");
    assert!(Command::new("kill").arg(serving.process.id().to_string()).status().unwrap().success());
    assert!(serving.process.wait().unwrap().success(), "SIGTERM is a good end");
}

#[test]
fn the_image_holds_one_program_that_needs_nothing_but_libc() {
    let Some((program, release)) = program() else { return };
    let size = fs::metadata(&program).unwrap().len() / 1_000_000;
    println!("{} has {size} MB", program.display());
    assert!(!release || size < 40, "with 20 MB for what the image begins with, {size} MB are too many");
    let Ok(needs) = Command::new("ldd").arg(&program).output() else {
        return eprintln!("skipped: ldd is not there");
    };
    // What gcr.io/distroless/cc has.
    let there =
        ["linux-vdso", "libc.so", "libm.so", "libgcc_s.so", "ld-linux", "libdl", "libpthread", "librt"];
    for line in String::from_utf8_lossy(&needs.stdout).lines() {
        assert!(there.iter().any(|name| line.contains(name)), "the image has no {line}");
    }
}
