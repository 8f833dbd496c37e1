//! The real binary, and an `ebb dev` to talk to.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to work in, with workflows of one's own.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("workflows/graphs")).unwrap();
        Self { folder }
    }

    /// Writes a workflow file.
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.graph(name), text).unwrap();
        self
    }

    pub(crate) fn graph(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("workflows/graphs/{name}.yaml"))
    }

    /// Writes a test file.
    pub(crate) fn with_test(self, name: &str, text: &str) -> Self {
        let path = self.folder.path().join(format!("workflows/tests/{name}.yaml"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command with these arguments, in this place and with nothing from the environment of the test.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        for variable in ["EBB_URL", "EBB_TOKEN", "EBB_TENANT", "EBB_DATA", "DATABASE_URL"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts `ebb dev` here and returns once it is up.
    pub(crate) fn dev(&self) -> Dev {
        self.up(self.command(&["dev", "--port", "0"]).stderr(Stdio::null()))
    }

    /// Where `ebb dev` leaves its log, if it is asked to.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("dev.log")
    }

    /// Starts `ebb dev` with these settings and a log that can be read.
    pub(crate) fn dev_with(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Dev {
        let log = std::fs::File::create(self.log()).unwrap();
        let arguments = [&["dev", "--port", "0"], arguments].concat();
        self.up(self.command(&arguments).envs(settings.iter().copied()).stderr(log))
    }

    /// Starts an `ebb dev` and returns once it is up.
    fn up(&self, command: &mut Command) -> Dev {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let up =
            lines.find(|line| line.as_ref().unwrap().starts_with("Ebbflow is up at ")).expect("it comes up");
        drop(up);
        let here: Value =
            serde_json::from_slice(&std::fs::read(self.path().join(".ebb/dev.json")).unwrap()).unwrap();
        let text = |name: &str| here[name].as_str().unwrap().to_owned();
        Dev { process, url: text("url"), token: text("token"), client: reqwest::Client::new() }
    }
}

/// A running `ebb dev`, killed with its place.
pub(crate) struct Dev {
    process: Child,
    pub(crate) url: String,
    pub(crate) token: String,
    client: reqwest::Client,
}

impl Dev {
    /// Kills it as a power cut would.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Asks it to stop, and waits. Answers whether it ended well.
    pub(crate) fn stops_when_asked(&mut self) -> bool {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        asked.success() && self.process.wait().unwrap().success()
    }

    /// The most memory that it has had so far, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.request(reqwest::Method::GET, path).send().await.unwrap().json().await.unwrap()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a command printed, both ways.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
