//! Google's Pub/Sub emulator, if it is installed.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::parent_death::kill_with_parent;

/// A running emulator, killed on drop.
pub struct Emulator {
    process: Child,
    /// The emulator's address.
    pub url: String,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Emulator {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether the emulator is installed on this machine.
    pub fn is_installed() -> bool {
        find().is_some()
    }

    /// Starts the emulator. If it is not installed, prints that and returns none.
    pub async fn start() -> Option<Self> {
        let Some(program) = find() else {
            eprintln!(
                "skipped: Google's Pub/Sub emulator is not installed (Cloud SDK component pubsub-emulator)"
            );
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port is free")
            .port();
        let mut command = Command::new(program);
        command.args(["--host=127.0.0.1", &format!("--port={port}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        kill_with_parent(&mut command);
        let process = command.spawn().expect("the emulator can be started");
        let emulator = Self { process, url: format!("http://127.0.0.1:{port}") };
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..600 {
            if reqwest::get(&emulator.url).await.is_ok_and(|response| response.status().is_success()) {
                return Some(emulator);
            }
            ticks.tick().await;
        }
        panic!("the emulator did not respond within a minute");
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
