//! Runs a program as a process, in its own scratch directory and contained as its worker says.
//!
//! Invariants: no process that the program started outlives the attempt, however the attempt ends (without containment, none
//! in its process group); of the worker's environment, the program sees only an allow list.

mod containment;
mod environment;
mod exit_status;
mod group;
mod output;
mod scratch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ::containment::supervisor_environment;
use serde_json::Value;
use tokio::process::{Child, Command};

use model::Failure;

use crate::job::{Context, Job};
use crate::log::{Level, Stream};
use crate::task_runners::Unfinished;
pub use containment::Containment;
use group::Group;
use output::OutputCapture;
pub(crate) use scratch::Scratch;

/// How long the children of a program may still write after it has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The program to run.
pub(crate) struct Program {
    /// The executable's name, looked up on `PATH`.
    pub(crate) name: &'static str,
    /// What to do if it is not installed.
    pub(crate) remedy: &'static str,
    /// Its arguments, not interpreted by a shell.
    pub(crate) arguments: Vec<OsString>,
    /// The variables that the config adds to its environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// The script file among its arguments, which it must be able to read.
    pub(crate) script: Option<PathBuf>,
}

/// Runs the program to its end. Returns the JSON that it wrote to the file `EBB_OUTPUT`, or null if it wrote none.
pub(crate) async fn run(
    program: Program,
    scratch: Scratch,
    job: &Job,
    context: &Context,
) -> Result<Value, Unfinished> {
    let mut process = Process::spawn(&program, &scratch, job, context)?;
    let status = process.wait(context).await?;
    exit_status::check(status, process.output.last_error())?;
    let output = scratch.output().await;
    // The group must end before its directory is removed.
    drop(process);
    scratch.remove().await;
    Ok(output?)
}

/// The path of a script, relative to the folder of scripts. A script that only its owner can read is copied for the program.
pub(crate) async fn script(path: &str, scratch: &Scratch, context: &Context) -> Result<PathBuf, Failure> {
    let path = context.scripts.join(path);
    let missing = || Failure::permanent(format!("this worker has no script {}", path.display()));
    let found = std::path::absolute(&path).ok().filter(|path| path.is_file()).ok_or_else(missing)?;
    if context.containment.is_none() || containment::is_readable_by_all(&found) {
        return Ok(found);
    }
    let text = tokio::fs::read(&found).await.map_err(|_| missing())?;
    scratch.write("script", text).await
}

/// A running process. Dropping it kills its whole group.
struct Process {
    child: Child,
    group: Group,
    output: OutputCapture,
}

impl Process {
    fn spawn(program: &Program, scratch: &Scratch, job: &Job, context: &Context) -> Result<Self, Failure> {
        let (mut command, user) = match &context.containment {
            Some(containment) => containment.command(program, scratch, job)?,
            None => (Command::new(program.name), None),
        };
        command.current_dir(scratch.work()).env_clear().stdout(Stdio::piped()).stderr(Stdio::piped());
        let environment = environment::of(program, scratch, job, context.containment.is_some());
        match &context.containment {
            Some(_) => command.envs(supervisor_environment(environment)).stdin(Stdio::piped()),
            None => command.args(&program.arguments).envs(environment).stdin(Stdio::null()).process_group(0),
        };
        let failed = |error| exit_status::not_started(program, &error);
        let mut child = command.spawn().map_err(failed)?;
        let group = match &context.containment {
            Some(_) => Group::supervised_by(&mut child, user).map_err(failed)?,
            None => Group::led_by(&child),
        };
        let output = OutputCapture::of(&mut child, &context.log);
        Ok(Self { child, group, output })
    }

    /// Waits for the program to end, or stops it when the attempt is cancelled.
    async fn wait(&mut self, context: &Context) -> Result<ExitStatus, Unfinished> {
        tokio::select! {
            biased;
            status = self.child.wait() => {
                self.drain_output(context).await;
                Ok(status.map_err(|error| Failure::transient(format!("cannot wait for the process: {error}")))?)
            }
            () = context.cancel.cancelled() => {
                self.stop(context).await;
                Err(Unfinished::Stopped)
            }
        }
    }

    /// The program has ended, but its children may still write, such as a `tee` behind it.
    async fn drain_output(&mut self, context: &Context) {
        within(context, OUTPUT_TIMEOUT, self.output.end()).await;
        self.group.kill();
        within(context, OUTPUT_TIMEOUT, self.output.end()).await;
    }

    /// Terminates the whole group, and kills it after the grace period.
    async fn stop(&mut self, context: &Context) {
        let notice = format!("stopping: sent TERM, KILL follows within {} s", context.grace.as_secs_f64());
        self.group.terminate();
        context.log.line(Stream::System, Level::Warning, &notice).await;
        // The program may end before children that are still cleaning up. They hold the pipes, so the end of the output is
        // the end of the group; children that have closed them get no grace period.
        let all_gone = async {
            let _ = self.child.wait().await;
            self.output.end().await;
        };
        tokio::select! {
            biased;
            () = all_gone => {}
            () = context.kill.cancelled() => {}
            () = context.wait(context.grace) => {}
        }
        self.group.kill();
        let _ = self.child.wait().await;
        within(context, OUTPUT_TIMEOUT, self.output.end()).await;
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
