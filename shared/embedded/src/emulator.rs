//! Google's Pub/Sub emulator, if it is installed.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::parent_death::kill_with_parent;

/// How often to start the emulator: another process may take its port first.
const MAX_STARTS: u32 = 5;

/// An emulator that has not answered by then hangs.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// A running emulator. Dropping it ends the process.
pub struct Emulator {
    process: Child,
    /// The address that clients use.
    pub url: String,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Emulator {
    /// The id of the emulator's process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether the emulator is installed on this machine.
    pub fn is_installed() -> bool {
        find().is_some()
    }

    /// Starts one. If it is not installed, prints why the caller goes without.
    ///
    /// # Panics
    /// If an installed emulator does not start.
    pub async fn start() -> Option<Self> {
        let Some(program) = find() else {
            eprintln!(
                "skipped: Google's Pub/Sub emulator is not installed (Cloud SDK component pubsub-emulator)"
            );
            return None;
        };
        for _ in 0..MAX_STARTS {
            let mut emulator = Self::spawn(&program);
            let ready = tokio::time::timeout(START_TIMEOUT, emulator.is_ready()).await;
            if ready.expect("the emulator answers in time") {
                return Some(emulator);
            }
        }
        panic!("the emulator ended {MAX_STARTS} times before it answered");
    }

    /// Starts the program on a port that is free now. The emulator takes only a number, so another process may take the
    /// port first, and the emulator ends.
    fn spawn(program: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a port is free").port();
        let mut command = Command::new(program);
        command.args(["--host=127.0.0.1", &format!("--port={port}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        kill_with_parent(&mut command);
        let process = command.spawn().expect("it can be started");
        Self { process, url: format!("http://127.0.0.1:{port}") }
    }

    /// Waits until it answers. Returns false if it ends before.
    async fn is_ready(&mut self) -> bool {
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        loop {
            ticks.tick().await;
            let answers = reqwest::get(&self.url).await.is_ok_and(|answer| answer.status().is_success());
            // Another process on the same port may be what answers.
            if !matches!(self.process.try_wait(), Ok(None)) {
                return false;
            }
            if answers {
                return true;
            }
        }
    }
}

fn find() -> Option<PathBuf> {
    let usual = ["/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk", "/opt/google-cloud-sdk"];
    let roots = std::env::var("CLOUDSDK_ROOT").into_iter().chain(usual.map(String::from));
    roots
        .chain(std::iter::once_with(sdk_root).flatten())
        .map(|root| program(&root))
        .find(|path| path.exists())
}

fn program(root: &str) -> PathBuf {
    Path::new(root).join("platform/pubsub-emulator/bin/cloud-pubsub-emulator")
}

fn sdk_root() -> Option<String> {
    let output =
        Command::new("gcloud").args(["info", "--format=value(installation.sdk_root)"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
