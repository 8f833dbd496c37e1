//! Tests across crates: see `acceptance/`, `simulation/`, `schedules/`, `chaos/`, `infrastructure/` and `architecture.rs`.
//!
//! The library holds what several of them share: functions as processes of their own, and the load balancer in front of them.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use model::Topic;
use testkit::{Port, eventually};

/// The functions that messages are pushed to, each with its topic.
pub fn functions() -> [(&'static str, Topic); 4] {
    [
        ("trigger", Topic::Triggers),
        ("evaluate", Topic::Evaluations),
        ("execute", Topic::Work("light".into())),
        ("sweep", Topic::Management),
    ]
}

/// Builds `ebb` and the program that can be any of the functions, unless they are current. Returns their folder,
/// `target/debug`.
pub fn build_programs() -> PathBuf {
    // Together and for the whole workspace, so that everything is shared with the build of the tests.
    let arguments = ["build", "--workspace", "--bin", "ebb", "--example", "function"];
    let built = Command::new(env!("CARGO")).args(arguments).status().unwrap();
    assert!(built.success(), "the programs do not build");
    // The test is target/debug/deps/NAME-HASH.
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// Builds the program that can be any of the functions. Returns its path.
pub async fn build() -> PathBuf {
    tokio::task::spawn_blocking(build_programs).await.unwrap().join("examples/function")
}

/// A function as a process, killed when this value is dropped.
pub struct FunctionProcess {
    /// Its name, such as `execute`.
    pub name: &'static str,
    port: Port,
    process: Child,
    start: Arc<dyn Fn() -> Command + Send + Sync>,
}

impl FunctionProcess {
    /// Starts a function with these environment variables on a port of its own.
    pub fn start(
        name: &'static str,
        program: &std::path::Path,
        settings: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        let (port, program) = (Port::reserve(), program.to_owned());
        let mut settings: Vec<(&str, String)> = settings.into_iter().collect();
        settings.push(("PORT", port.number().to_string()));
        // As in `ebb dev`: the workflows of tests run programs.
        settings.push(("EBB_USER_CODE", "allow".to_owned()));
        let start = move || {
            let mut command = Command::new(&program);
            command.arg(name).envs(settings.iter().cloned()).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let process = start().spawn().unwrap();
        Self { name, port, process, start: Arc::new(start) }
    }

    /// Waits until the function answers that it is ready.
    pub async fn wait_until_ready(&self) {
        let (client, ready) = (reqwest::Client::new(), self.url("/readyz"));
        eventually(&format!("{} is ready", self.name), async || {
            let answer = client.get(&ready).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
    }

    /// The URL of a path of the function.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.port.url())
    }

    /// The id of the current process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Whether the process has not ended.
    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Starts the process again on the same port if it has ended.
    pub fn restart_if_dead(&mut self) {
        if !self.is_alive() {
            self.process = (self.start)().spawn().unwrap();
        }
    }

    /// Sends SIGTERM. Returns whether the process exits with success.
    pub fn stops_on_request(&mut self) -> bool {
        signal("-TERM", self.id());
        self.exits_with_success()
    }

    /// Waits for the process to end by itself. Returns whether it exits with success.
    pub fn exits_with_success(&mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for FunctionProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process, which may have ended.
pub fn signal(signal: &str, process: u32) {
    let _ = Command::new("kill").args([signal, &process.to_string()]).stderr(Stdio::null()).status();
}

/// Sends each push to the next process of its function, as the platform's load balancer does.
#[derive(Clone)]
pub struct Balancer {
    processes: Arc<Mutex<BTreeMap<&'static str, VecDeque<String>>>>,
    client: reqwest::Client,
}

impl Balancer {
    /// A balancer that gives up on a process after `timeout`.
    pub fn new(timeout: Duration) -> Self {
        let client = reqwest::Client::builder().timeout(timeout).build().unwrap();
        Self { processes: Arc::default(), client }
    }

    /// Adds a process to those of its function.
    pub fn add(&self, function: &FunctionProcess) {
        let mut processes = self.processes.lock().unwrap();
        processes.entry(function.name).or_default().push_back(function.url("/push"));
    }

    fn next_url(&self, function: &str) -> String {
        let mut processes = self.processes.lock().unwrap();
        let urls = processes.get_mut(function).unwrap();
        urls.rotate_left(1);
        urls[0].clone()
    }

    /// Accepts pushes at `/push/FUNCTION`.
    pub fn router(&self) -> Router {
        Router::new().route("/push/{function}", post(forward)).with_state(self.clone())
    }
}

async fn forward(
    State(balancer): State<Balancer>,
    Path(function): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Body) {
    match balancer.client.post(balancer.next_url(&function)).headers(headers).body(body).send().await {
        Ok(answer) => (answer.status(), Body::empty()),
        Err(_) => (StatusCode::BAD_GATEWAY, Body::empty()),
    }
}
