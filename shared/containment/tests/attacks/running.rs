//! Programs that run under supervisors.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::LazyLock;

use ebbflow_containment::{
    ControlGroup, ControlGroups, Plan, Report, Request, Supervisors, TaskUser, TaskUsers,
};
use tempfile::TempDir;

/// A scratch folder with a user of its own, if this process is root.
pub(crate) struct Attempt {
    pub(crate) scratch: TempDir,
    pub(crate) user: Option<TaskUser>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

/// What starts the supervisors of all attempts.
pub(crate) static SUPERVISORS: LazyLock<Supervisors> = LazyLock::new(Supervisors::default);

/// What gives each program a control group, where the system lets this process create some.
pub(crate) static GROUPS: LazyLock<ControlGroups> = LazyLock::new(ControlGroups::open);

impl Attempt {
    pub(crate) fn new(users: &TaskUsers) -> Self {
        let (scratch, user) = (tempfile::tempdir().unwrap(), users.acquire().unwrap());
        let owner = user.as_ref().map(TaskUser::id);
        chown(scratch.path(), owner, owner).unwrap();
        Self { scratch, user, variables: Vec::new() }
    }

    pub(crate) fn plan(&self) -> Plan {
        let scratch = self.scratch.path().to_owned();
        Plan { user: self.user.as_ref().map(TaskUser::id), scratch, ..Plan::default() }
    }

    pub(crate) fn request(&self, plan: &Plan, script: &str) -> Request {
        let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
        let variables = self.variables.iter().map(|(name, value)| (OsString::from(name), value.into()));
        Request {
            plan: plan.clone(),
            folder: self.scratch.path().to_owned(),
            program: "bash".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: variables.chain([path]).collect(),
        }
    }

    pub(crate) fn start(&self, plan: &Plan, script: &str) -> Running {
        let group = GROUPS.create(&plan.limits).unwrap();
        let folder = group.as_ref().map(|group| group.folder().to_owned());
        let request = self.request(&Plan { group: folder, ..plan.clone() }, script);
        Running { group, ..Running::start(&SUPERVISORS, &request) }
    }

    pub(crate) fn run(&self, plan: &Plan, script: &str) -> (ExitStatus, String) {
        let (report, text) = self.start(plan, script).end();
        (report.unwrap().status().unwrap(), text)
    }
}

/// A program under its supervisor.
pub(crate) struct Running {
    pub(crate) supervisor: UnixStream,
    pub(crate) output: PipeReader,
    pub(crate) errors: PipeReader,
    pub(crate) group: Option<ControlGroup>,
}

impl Running {
    pub(crate) fn start(supervisors: &Supervisors, request: &Request) -> Self {
        let ((output, program_output), (errors, program_errors)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let mut supervisor = supervisors.start(program_output.into(), program_errors.into()).unwrap();
        supervisor.write_all(&request.to_bytes()).unwrap();
        Self { supervisor, output, errors, group: None }
    }

    /// The next line that the program writes.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(&mut self.output).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Waits for the end. Returns the report and all output.
    pub(crate) fn end(mut self) -> (Option<Report>, String) {
        let (mut report, mut text) = (Vec::new(), Vec::new());
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            self.errors.read_to_end(&mut text).unwrap();
            text
        });
        self.output.read_to_end(&mut text).unwrap();
        text.extend(errors.join().unwrap());
        // A supervisor that was killed breaks the connection.
        let _ = self.supervisor.read_to_end(&mut report);
        (Report::parse(&report), String::from_utf8_lossy(&text).into_owned())
    }
}
