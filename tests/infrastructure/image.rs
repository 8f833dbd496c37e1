//! The contents of the image and how the program behaves there, as far as that can be tested without Docker.
//!
//! A release build must fit into 25 MB of memory and an image of 60 MB. Building one takes minutes, so this test uses the
//! debug build, whose private memory alone must fit, unless a newer release build exists. How soon a function is ready is
//! not tested here: it depends on the machine. `cargo bench-ebb start` measures it, and cloudbuild.yaml checks the size of
//! the image.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::{Port, eventually_blocking};

/// The current program, and whether it is a release build.
fn program() -> (PathBuf, bool) {
    let folder = ebbflow_tests::build_programs();
    let (release, debug) = (folder.with_file_name("release").join("ebb"), folder.join("ebb"));
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    if modified(&release) > modified(&debug) { (release, true) } else { (debug, false) }
}

/// A function that serves, killed when this value is dropped.
struct Serving {
    process: Child,
    port: Port,
}

impl Serving {
    fn start(program: &Path, database: &str) -> Self {
        Self::by(Command::new(program).arg0("ebb"), database)
    }

    /// Starts it with a command, and returns once it answers. Then it is connected to the database.
    fn by(command: &mut Command, database: &str) -> Self {
        let port = Port::reserve();
        command.args(["serve", "sweep"]).env_clear().current_dir("/").stdin(Stdio::null());
        let settings =
            [("EBB_BROKER_URL", "http://127.0.0.1:1"), ("EBB_PUSH_AUTH", "none"), ("RUST_LOG", "error")];
        command.envs(settings).env("DATABASE_URL", database).env("PORT", port.number().to_string());
        let mut serving = Self { process: command.spawn().unwrap(), port };
        eventually_blocking("the function answers", || {
            assert!(serving.process.try_wait().unwrap().is_none(), "it has ended");
            serving.answers().then_some(())
        });
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

    /// The private and the resident memory, in kilobytes.
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
    let (program, release) = program();
    let database = testkit::migrated(store::Postgres::migrate).await;
    let (private, resident) = Serving::start(&program, &database.url).memory();
    println!("{}: {private} kB private, {resident} kB resident", program.display());
    assert!(
        if release { resident } else { private } <= 25 * 1024,
        "{private} kB private, {resident} kB resident"
    );
}

#[tokio::test]
async fn a_function_serves_on_a_read_only_file_system() {
    let (program, _) = program();
    let lock = "mount --make-rprivate / && mount -o remount,bind,ro / && ! touch /tmp/x /x 2>/dev/null";
    let alone = |by: &str| {
        let mut command = Command::new("unshare");
        command.args([by, "sh", "-c"]);
        command
    };
    // Root stays root: as root of a namespace only, it could not reach the database of another user.
    let may = |by: &&str| alone(by).arg(lock).output().is_ok_and(|output| output.status.success());
    let Some(by) = ["-m", "-rm"].into_iter().find(may) else {
        return eprintln!("skipped: this user may not remount a file system (unshare -rm)");
    };
    let database = testkit::migrated(store::Postgres::migrate).await;
    let mut command = alone(by);
    command.arg(format!("{lock}; exec \"$0\" \"$@\"")).arg(program);
    let serving = Serving::by(&mut command, &database.url);
    let mounts = serving.file("mounts");
    let root = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some("/")).unwrap();
    assert!(root.split(' ').nth(3).unwrap().split(',').any(|word| word == "ro"), "{root}");
    assert!(serving.answers(), "it still answers");
}

#[tokio::test]
async fn a_function_stops_on_sigterm() {
    let (program, _) = program();
    let database = testkit::migrated(store::Postgres::migrate).await;
    let mut serving = Serving::start(&program, &database.url);
    assert!(TcpStream::connect(("127.0.0.1", serving.port.number())).is_ok(), "it listens on $PORT");
    assert!(Command::new("kill").arg(serving.process.id().to_string()).status().unwrap().success());
    assert!(serving.process.wait().unwrap().success(), "it exits with success");
}

#[test]
fn the_program_runs_with_the_files_of_the_image_alone_and_they_are_small() {
    let (program, release) = program();
    let folder = tempfile::tempdir().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut assemble = Command::new(repository.join("deploy/image/assemble"));
    // In place of the bill of materials, which a build makes.
    assemble.arg(&program).arg(repository.join("Cargo.lock")).arg(folder.path());
    assert!(assemble.status().unwrap().success());
    assert!(folder.path().join("usr/local/share/ebb/sbom.cdx.json").is_file());
    let size = size(folder.path()) / 1_000_000;
    println!("with {}, the image has {size} MB", program.display());
    assert!(!release || size < 60, "{size} MB are too many");
    // Root may change its root; other users are root in a namespace of their own.
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "chroot"]).arg(folder.path()).args([
        "/usr/local/bin/ebb",
        "serve",
        "sweep",
    ]);
    let Ok(output) = inside.env_clear().output() else { return eprintln!("skipped: unshare is not there") };
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("unshare") {
        return eprintln!("skipped: this user may not create a namespace: {error}");
    }
    assert!(error.contains("DATABASE_URL is not set"), "{error}");
}

/// The total size of the files in a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(
            |entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() },
        )
        .sum()
}
