//! A database cluster on disk: created once, served many times.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;

use crate::directories::Directories;
use crate::postmaster::Postmaster;
use crate::{Durability, Error, Options, orphan};

/// The superuser of every cluster. Every process that can access the socket's folder can log in.
pub(crate) const USER: &str = "postgres";

/// How long a server may take to replay its log at start, and an old server to stop.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of every server: small, and without a network port.
const SETTINGS: [&str; 6] = [
    "listen_addresses=",
    "port=5432",
    "max_connections=100",
    "shared_buffers=64MB",
    "timezone=UTC",
    "log_timezone=UTC",
];

/// Settings of a server whose data need not survive a crash of the machine.
const NOT_DURABLE: [&str; 3] = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/// The data of one server, and the programs that serve it.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) data: PathBuf,
    pub(crate) programs: PathBuf,
    pub(crate) directories: Directories,
}

impl Cluster {
    /// Creates the cluster, unless it exists.
    pub(crate) async fn create(&self, durability: Durability) -> Result<(), Error> {
        if self.data.exists() {
            return Ok(());
        }
        // A temporary folder, renamed when done: `initdb` may be killed half-way.
        let partial = self.data.with_extension("new");
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(Error::at(&partial))?;
        }
        self.initdb(&partial, durability).await?;
        fs::rename(&partial, &self.data).map_err(Error::at(&self.data))
    }

    async fn initdb(&self, folder: &Path, durability: Durability) -> Result<(), Error> {
        let mut command = self.command("initdb");
        command.args(["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"]);
        command.arg("--pgdata").arg(folder).env("TZ", "UTC");
        if durability == Durability::None {
            command.arg("--no-sync");
        }
        let mut command = tokio::process::Command::from(command);
        let output = command.kill_on_drop(true).output().await.map_err(Error::at(&self.programs))?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Initdb { folder: folder.to_owned(), output })
    }

    /// Starts a server and waits until it accepts connections.
    pub(crate) async fn serve(&self, options: Options) -> Result<Postmaster, Error> {
        orphan::stop(&self.data, START_TIMEOUT).await?;
        let log = self.log();
        let file = File::create(&log).map_err(Error::at(&log))?;
        let command = self.server_command(options, file);
        let postmaster = Postmaster::spawn(command).await.map_err(Error::at(&self.programs))?;
        match timeout(START_TIMEOUT, postmaster.ready(&self.data)).await {
            Ok(true) => Ok(postmaster),
            _ => Err(Error::NotStarted { tail: tail(&log), log }),
        }
    }

    /// The last lines of the server's log.
    pub(crate) fn last_words(&self) -> String {
        format!("The last lines of {}:\n{}", self.log().display(), tail(&self.log()))
    }

    fn log(&self) -> PathBuf {
        self.directories.home.join("postgres.log")
    }

    fn server_command(&self, options: Options, log: File) -> Command {
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.data).arg("-k").arg(&self.directories.socket);
        let durability = if options.durability == Durability::None { NOT_DURABLE.as_slice() } else { &[] };
        for setting in SETTINGS.iter().chain(durability).chain(options.settings) {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// One of the programs, run by the right account in its own process group: Ctrl-C reaches only the owning process, which
    /// then stops the server.
    fn command(&self, program: &str) -> Command {
        use std::os::unix::process::CommandExt;

        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.directories.home).process_group(0);
        self.directories.account.run(&mut command);
        command
    }
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
