//! What goes into the image, and how it behaves there: as far as that can be seen without Docker.
//!
//! If there is a release build, it is held to what is promised: 25 MB of memory, below 60 MB in the image. Building one takes
//! minutes, so the gate checks the build that tests use, which is larger, and holds it to a little less. `cargo bench-ebb start`
//! measures how soon a release is ready, and cloudbuild.yaml weighs the image before it is deployed.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::Port;

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
    port: Port,
}

impl Serving {
    fn start(program: &Path, database: &str) -> Self {
        Self::by(Command::new(program).arg0("ebb"), database)
    }

    /// Starts it with that command, and returns once it is ready.
    fn by(command: &mut Command, database: &str) -> Self {
        let port = Port::reserve();
        command.args(["serve", "sweep"]).env_clear().current_dir("/").stdin(Stdio::null());
        let settings =
            [("EBB_BROKER_URL", "http://127.0.0.1:1"), ("EBB_PUSH_AUTH", "none"), ("RUST_LOG", "error")];
        command.envs(settings).env("DATABASE_URL", database).env("PORT", port.number().to_string());
        let mut serving = Self { process: command.spawn().unwrap(), port };
        // Whoever answers has its connection to the database.
        while !serving.answers() {
            assert!(serving.process.try_wait().unwrap().is_none(), "it has ended");
            std::thread::yield_now();
        }
        serving
    }

    fn answers(&self) -> bool {
        let Ok(mut connection) = TcpStream::connect(("127.0.0.1", self.port.number())) else { return false };
        let asked =
            connection.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        asked.is_ok() && connection.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.process.id())).unwrap()
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
async fn a_function_takes_little_memory() {
    let Some((program, release)) = program() else { return };
    let database = testkit::database().await;
    store::Postgres::migrate(&database.url).await.unwrap();
    let (own, resident) = Serving::start(&program, &database.url).memory();
    println!("{}: {own} kB of its own, {resident} kB in all", program.display());
    assert!(if release { resident } else { own } <= 25 * 1024, "{own} kB of its own, {resident} kB in all");
}

#[tokio::test]
async fn a_function_serves_where_nothing_can_be_written() {
    let Some((program, _)) = program() else { return };
    let lock = "mount --make-rprivate / && mount -o remount,bind,ro / && ! touch /tmp/x /x 2>/dev/null";
    let alone = |by: &str| {
        let mut command = Command::new("unshare");
        command.args([by, "sh", "-c"]);
        command
    };
    // Whoever is root stays it: as the root of a namespace alone, it could not reach the database of another user.
    let may = |by: &&str| alone(by).arg(lock).output().is_ok_and(|output| output.status.success());
    let Some(by) = ["-m", "-rm"].into_iter().find(may) else {
        return eprintln!("skipped: whoever runs this may not make a file system read-only (unshare -rm)");
    };
    let database = testkit::database().await;
    store::Postgres::migrate(&database.url).await.unwrap();
    let mut command = alone(by);
    command.arg(format!("{lock}; exec \"$0\" \"$@\"")).arg(program);
    let serving = Serving::by(&mut command, &database.url);
    let mounts = serving.file("mounts");
    let root = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some("/")).unwrap();
    assert!(root.split(' ').nth(3).unwrap().split(',').any(|word| word == "ro"), "{root}");
    assert!(serving.answers(), "and goes on to");
}

#[tokio::test]
async fn a_function_ends_when_it_is_asked_to() {
    let Some((program, _)) = program() else { return };
    let database = testkit::database().await;
    store::Postgres::migrate(&database.url).await.unwrap();
    let mut serving = Serving::start(&program, &database.url);
    assert!(TcpStream::connect(("127.0.0.1", serving.port.number())).is_ok(), "it listens on $PORT");
    assert!(Command::new("kill").arg(serving.process.id().to_string()).status().unwrap().success());
    assert!(serving.process.wait().unwrap().success(), "SIGTERM is a good end");
}

#[test]
fn the_program_runs_among_the_files_of_the_image_alone_and_they_are_small() {
    let Some((program, release)) = program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let assemble =
        Command::new(repository.join("deploy/image/assemble")).arg(&program).arg(folder.path()).status();
    assert!(assemble.unwrap().success());
    let size = size(folder.path()) / 1_000_000;
    println!("with {}, the image has {size} MB", program.display());
    assert!(!release || size < 60, "{size} MB are too many");
    // Root may change its root; anybody else is root in a namespace of its own.
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "chroot"]).arg(folder.path()).args([
        "/usr/local/bin/ebb",
        "serve",
        "sweep",
    ]);
    let Ok(output) = inside.env_clear().output() else { return eprintln!("skipped: unshare is not there") };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare") {
        return eprintln!("skipped: whoever runs this may make no namespace: {said}");
    }
    assert!(said.contains("DATABASE_URL is not set"), "{said}");
}

/// How many bytes the files in a folder have.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(
            |entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() },
        )
        .sum()
}
