//! The real binary, in a folder with workflows, and an `ebb dev` to talk to.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;

use embedded::{Durability, Options, Server};
use serde_json::Value;
use store::Postgres;
use tempfile::TempDir;
use testkit::{Port, eventually};

/// A folder with workflows, in which `ebb` is run.
pub(crate) struct Project {
    folder: TempDir,
}

impl Project {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The account of the database passes through.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        std::fs::create_dir_all(folder.path().join("workflows/graphs")).unwrap();
        Self { folder }
    }

    /// Writes a workflow file.
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        self.write(&format!("workflows/graphs/{name}.yaml"), text);
        self
    }

    /// Declares a queue that workers lease from.
    pub(crate) fn with_pool(self, name: &str) -> Self {
        self.write(&format!("workflows/queues/{name}.yaml"), &format!("name: {name}\nkind: pool\n"));
        self
    }

    /// Writes a test file.
    pub(crate) fn with_test(self, name: &str, text: &str) -> Self {
        self.write(&format!("workflows/tests/{name}.yaml"), text);
        self
    }

    /// Writes a secret of the default tenant into the folder that `ebb dev` reads them from.
    pub(crate) fn with_secret(self, name: &str, value: &str) -> Self {
        self.write(&format!(".ebb/secrets/default/{name}"), value);
        self
    }

    /// Writes a file, with the folders that it is in.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An `ebb` command in this folder, without the test's own settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.path().join("config"));
        for variable in ["EBB_URL", "EBB_TOKEN", "EBB_TENANT", "EBB_DATA", "EBB_PROJECT", "DATABASE_URL"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command that must succeed prints to its standard output.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a command that must succeed prints with `--json`.
    pub(crate) fn ask_json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ask(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Checks that a command fails with an exit code and prints certain words.
    pub(crate) fn assert_fails(&self, arguments: &[&str], code: i32, words: &str) {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
        assert!(printed(&output).contains(words), "`{words}` is not in: {}", printed(&output));
    }

    /// Starts a run. Returns its id.
    pub(crate) fn trigger(&self, workflow: &str) -> String {
        self.ask_json(&["trigger", workflow])["id"].as_str().unwrap().to_owned()
    }

    /// The id of the newest run.
    pub(crate) fn latest_run(&self) -> String {
        self.ask_json(&["runs", "--limit", "1"])["items"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Starts `ebb dev`, and returns once it is up.
    pub(crate) fn dev(&self) -> Dev {
        self.start(self.command(&["dev", "--port", "0"]).stderr(Stdio::null()))
    }

    /// Starts `ebb dev` on a reserved port, on which it can be started again.
    pub(crate) fn dev_at(&self, port: &Port) -> Dev {
        self.start(self.command(&["dev", "--port", &port.number().to_string()]).stderr(Stdio::null()))
    }

    /// The log of an `ebb dev` that was started by [`Project::dev_with`].
    pub(crate) fn log(&self) -> PathBuf {
        self.path().join("dev.log")
    }

    /// Starts `ebb dev` with arguments, settings and a log file.
    pub(crate) fn dev_with(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Dev {
        let log = std::fs::File::create(self.log()).unwrap();
        let arguments = [&["dev", "--port", "0"], arguments].concat();
        self.start(self.command(&arguments).envs(settings.iter().copied()).stderr(log))
    }

    fn start(&self, command: &mut Command) -> Dev {
        let database = self.path().join(".ebb/postgres");
        if !database.exists() {
            // To create one takes most of the time that the first `ebb dev` in a folder needs.
            std::fs::create_dir_all(self.path().join(".ebb")).unwrap();
            let copied = Command::new("cp").arg("-a").arg(migrated_database()).arg(&database).status();
            assert!(copied.unwrap().success());
        }
        let mut process = Process::spawn(command.stdout(Stdio::piped()));
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("Ebbflow is up at ")), "`ebb dev` ended before it was up");
        // It prints more later, and must not find its standard output closed.
        std::thread::spawn(move || lines.for_each(drop));
        let published = std::fs::read(self.path().join(".ebb/dev.json")).unwrap();
        let published: Value = serde_json::from_slice(&published).unwrap();
        let text = |name: &str| published[name].as_str().unwrap().to_owned();
        Dev { process, url: text("url"), token: text("token"), client: reqwest::Client::new() }
    }
}

/// The prefix of the folders of migrated databases. The process id follows.
const DATABASE: &str = "ebbflow-dev-";

/// A database as `ebb dev` creates and migrates it, whose server has stopped. It is made once for each process, and removed when
/// another process makes its own.
fn migrated_database() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let parent = std::env::temp_dir();
        for entry in std::fs::read_dir(&parent).unwrap().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(DATABASE));
            if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let folder = parent.join(format!("{DATABASE}{}", std::process::id()));
        // In a thread of its own: the caller may be in a runtime.
        std::thread::scope(|scope| scope.spawn(|| make_database(&folder)).join()).unwrap();
        folder
    });
    &FOLDER
}

#[tokio::main(flavor = "current_thread")]
async fn make_database(folder: &Path) {
    let options = Options { durability: Durability::None, ..Options::default() };
    let server = Server::start_with(folder, options).await.unwrap();
    server.create_database("ebbflow").await.unwrap();
    Postgres::migrate(&server.url("ebbflow")).await.unwrap();
    server.stop().await;
}

/// A folder that tasks may use, if the settings of `ebb dev` name it: their programs run as users of their own.
pub(crate) fn shared_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// A child process that is killed when this value is dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// How it ended, once it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.ended().is_none()
    }

    /// Sends SIGTERM and waits. Returns whether it exits with success.
    pub(crate) fn stops_on_request(mut self) -> bool {
        let sent = Command::new("kill").arg(self.id().to_string()).status().unwrap();
        sent.success() && self.0.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `ebb dev`.
pub(crate) struct Dev {
    process: Process,
    pub(crate) url: String,
    pub(crate) token: String,
    client: reqwest::Client,
}

impl Dev {
    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Sends SIGTERM and waits. Returns whether it exits with success.
    pub(crate) fn stops_on_request(self) -> bool {
        self.process.stops_on_request()
    }

    /// A request to the API.
    pub(crate) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token)
    }

    /// The JSON that the API answers. A busy server asks to try again.
    pub(crate) async fn get(&self, path: &str) -> Value {
        eventually(&format!("{path} is read"), async || {
            let answer = self.request(reqwest::Method::GET, path).send().await.unwrap();
            let is_busy = answer.status() == reqwest::StatusCode::SERVICE_UNAVAILABLE;
            (!is_busy).then_some(answer)
        })
        .await
        .json()
        .await
        .unwrap()
    }
}

/// What a command printed to standard output and standard error.
pub(crate) fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
