//! Runs a program as a process, in its own scratch directory and contained as its worker says.
//!
//! Invariants: no process that the program started outlives the attempt, however the attempt ends (without containment, none
//! in its process group); of the worker's environment, the program sees only an allow list.

mod containment;
mod description;
mod environment;
pub(crate) mod environments;
mod exit_status;
mod group;
mod level;
mod messages;
mod output;
mod scratch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use model::Failure;
use model::progress::{CPU_SECONDS, PEAK_MEMORY_BYTES};

use crate::job::{Context, Job};
use crate::log::{Level, Stream};
use crate::task_runners::Unfinished;
pub use containment::Containment;
use containment::Supervised;
pub(crate) use containment::is_readable_by_all;
use description::Description;
use group::Group;
use messages::Messages;
use output::OutputCapture;
pub(crate) use scratch::Scratch;

/// How long the children of a program may still write after it has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The program to run.
pub(crate) struct Program {
    /// The executable: a path, or a name that is looked up on `PATH`.
    pub(crate) name: String,
    /// What to do if it is not installed.
    pub(crate) remedy: &'static str,
    /// Its arguments, not interpreted by a shell.
    pub(crate) arguments: Vec<OsString>,
    /// The variables that the config adds to its environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// The script file among its arguments, which it must be able to read.
    pub(crate) script: Option<PathBuf>,
    /// Further folders that it may read.
    pub(crate) readable: Vec<PathBuf>,
    /// Further folders that it may change, which are given to it.
    pub(crate) writable: Vec<PathBuf>,
}

impl Program {
    /// A program without arguments.
    pub(crate) fn new(name: &str, remedy: &'static str) -> Self {
        let (arguments, environment, readable, writable) = Default::default();
        Self { name: name.to_owned(), remedy, arguments, environment, script: None, readable, writable }
    }

    /// Uses a Python environment: commands find its programs first, and Python itself is called directly, without `activate`.
    pub(crate) fn use_environment(&mut self, folder: PathBuf, is_python: bool) {
        let programs = folder.join("bin");
        if is_python {
            self.name = programs.join("python").display().to_string();
        }
        let path = format!("{}:{}", programs.display(), environment::search_path().display());
        self.environment.entry("PATH".to_owned()).or_insert(path);
        self.environment.entry("VIRTUAL_ENV".to_owned()).or_insert(folder.display().to_string());
        self.readable.push(folder);
    }
}

/// Runs the program to its end. Returns the JSON that it wrote to the file `EBB_OUTPUT`, or null if it wrote none.
pub(crate) async fn run(
    program: Program,
    scratch: Scratch,
    job: &Job,
    context: &Context,
) -> Result<Value, Unfinished> {
    let mut process = Process::spawn(&program, &scratch, job, context).await?;
    let ended = process.wait(context).await;
    process.report_usage(context);
    let status = ended?;
    let described = describe(status, &scratch, context).await;
    if let Some(excess) = process.group.excess() {
        return Err(exit_status::exceeded(excess, &job.resources).into());
    }
    exit_status::check(status, &job.kind, process.output.last_error(), described)?;
    let output = scratch.output().await;
    // The group must end before its directory is removed.
    drop(process);
    scratch.remove().await;
    Ok(output?)
}

/// How a program that failed describes its failure. What is wrong with the description goes to the attempt's log.
async fn describe(status: ExitStatus, scratch: &Scratch, context: &Context) -> Option<Description> {
    if status.success() {
        return None;
    }
    let described = match scratch.failure().await {
        Ok(bytes) => Description::parse(&bytes?),
        Err(error) => Err(format!("the file EBB_FAILURE is ignored: {error}")),
    };
    match described {
        Ok(described) => Some(described),
        Err(problem) => {
            context.log.line(Stream::System, Level::Warning, &problem).await;
            None
        }
    }
}

/// The path of a script, relative to the folder of scripts. A script that only its owner can read is copied for the program.
pub(crate) async fn script(path: &str, scratch: &Scratch, context: &Context) -> Result<PathBuf, Failure> {
    let path = context.scripts.join(path);
    let missing = || Failure::permanent(format!("this worker has no script {}", path.display()));
    let found = std::path::absolute(&path).ok().filter(|path| path.is_file()).ok_or_else(missing)?;
    if context.containment.is_none() || is_readable_by_all(&found) {
        return Ok(found);
    }
    let text = tokio::fs::read(&found).await.map_err(|_| missing())?;
    scratch.write("script", text).await
}

/// A running process. Dropping it kills its whole group.
struct Process<'p> {
    program: &'p Program,
    group: Group,
    output: OutputCapture,
    messages: Messages,
}

impl<'p> Process<'p> {
    async fn spawn(
        program: &'p Program,
        scratch: &Scratch,
        job: &Job,
        context: &Context,
    ) -> Result<Self, Failure> {
        let environment = environment::of(program, scratch, job, context.containment.is_some());
        let failed = |error| exit_status::not_started(program, &error);
        let follow = |user| Messages::follow(&scratch.messages_file(), user, context);
        let Some(containment) = &context.containment else {
            let messages = follow(None)?;
            let mut command = Command::new(&program.name);
            command.args(&program.arguments).current_dir(scratch.work()).env_clear().envs(environment);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
            let mut child = command.spawn().map_err(failed)?;
            let stdout = child.stdout.take().expect("the standard output is a pipe");
            let stderr = child.stderr.take().expect("the standard error is a pipe");
            let output = OutputCapture::of(stdout, stderr, &context.log);
            return Ok(Self { program, group: Group::led_by(child), output, messages });
        };
        let (request, reserved) = containment.request(program, environment, scratch, job)?;
        let messages = follow(reserved.user_id())?;
        let Supervised { socket, output, errors } = containment.start().map_err(failed)?;
        let output = OutputCapture::of(output, errors, &context.log);
        let group = Group::supervised(socket, &request, reserved).await;
        Ok(Self { program, group, output, messages })
    }

    /// Waits for the program to end, or stops it when the attempt is cancelled.
    async fn wait(&mut self, context: &Context) -> Result<ExitStatus, Unfinished> {
        tokio::select! {
            biased;
            status = self.group.wait(self.program) => {
                self.drain_output(context).await;
                Ok(status?)
            }
            () = context.cancel.cancelled() => {
                self.stop(context).await;
                Err(Unfinished::Stopped)
            }
        }
    }

    /// Reports what the program used as metrics of its attempt.
    fn report_usage(&self, context: &Context) {
        if let Some(usage) = self.group.usage() {
            context.reports.metric(CPU_SECONDS, usage.cpu_seconds);
            // Exact up to 8 PiB.
            context.reports.metric(PEAK_MEMORY_BYTES, usage.peak_memory_bytes as f64);
        }
    }

    /// The program has ended, but its children may still write, such as a `tee` behind it.
    async fn drain_output(&mut self, context: &Context) {
        within(context, OUTPUT_TIMEOUT, self.output.end()).await;
        self.group.kill();
        within(context, OUTPUT_TIMEOUT, self.output.end()).await;
        within(context, OUTPUT_TIMEOUT, self.messages.end()).await;
    }

    /// Terminates the whole group, and kills it after the grace period.
    async fn stop(&mut self, context: &Context) {
        let notice = format!("stopping: sent TERM, KILL follows within {} s", context.grace.as_secs_f64());
        self.group.terminate();
        context.log.line(Stream::System, Level::Warning, &notice).await;
        // The program may end before children that are still cleaning up. They hold the pipes, so the end of the output is
        // the end of the group; children that have closed them get no grace period.
        let all_gone = async {
            let _ = self.group.wait(self.program).await;
            self.output.end().await;
        };
        tokio::select! {
            biased;
            () = all_gone => {}
            () = context.kill.cancelled() => {}
            () = context.wait(context.grace) => {}
        }
        self.group.kill();
        let _ = self.group.wait(self.program).await;
        within(context, OUTPUT_TIMEOUT, self.output.end()).await;
        within(context, OUTPUT_TIMEOUT, self.messages.end()).await;
    }
}

/// Waits for `work`, up to a timeout.
async fn within(context: &Context, timeout: Duration, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = work => {}
        () = context.wait(timeout) => {}
    }
}

#[cfg(test)]
mod tests;
