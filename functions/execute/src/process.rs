//! Runs a program as a process of its own, in a group and a scratch directory of its own.
//!
//! What must hold: nothing that the program started in its group outlives the attempt, however the
//! attempt ends; nothing of the worker's environment reaches it but an allow-list.

mod capture;
mod environment;
mod group;
mod scratch;
mod verdict;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::process::{Child, Command};

use model::Failure;

use crate::job::{Context, Job};
use crate::log::{Level, Stream};
use crate::performers::Unfinished;
use capture::Capture;
use group::Group;
pub(crate) use scratch::Scratch;

/// How long the children of a program may still write after it has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// What to run.
pub(crate) struct Program {
    /// Its name, looked up on `PATH`.
    pub(crate) name: &'static str,
    /// What to install where it is missing.
    pub(crate) remedy: &'static str,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// What the config adds to its environment.
    pub(crate) environment: BTreeMap<String, String>,
}

/// Runs the program to its end. Returns the JSON that it wrote to the file named by `EBB_OUTPUT`,
/// or null where it wrote none.
pub(crate) async fn run(
    program: Program,
    scratch: Scratch,
    job: &Job,
    context: &Context,
) -> Result<Value, Unfinished> {
    let mut process = Process::spawn(&program, &scratch, job, context)?;
    let status = process.end(context).await?;
    verdict::judge(status, process.capture.last_error())?;
    let output = scratch.output().await;
    // The group must be gone before its directory is.
    drop(process);
    scratch.remove().await;
    Ok(output?)
}

/// The script that a config names, found from the folder for scripts.
pub(crate) fn script(path: &str, context: &Context) -> Result<PathBuf, Failure> {
    let path = context.scripts.join(path);
    let found = std::path::absolute(&path).ok().filter(|path| path.is_file());
    found.ok_or_else(|| Failure::permanent(format!("there is no script {} on this worker", path.display())))
}

/// A process under way. Dropped, it takes its whole group with it.
struct Process {
    child: Child,
    group: Group,
    capture: Capture,
}

impl Process {
    fn spawn(program: &Program, scratch: &Scratch, job: &Job, context: &Context) -> Result<Self, Failure> {
        let mut child = Command::new(program.name)
            .args(&program.arguments)
            .current_dir(scratch.work())
            .env_clear()
            .envs(environment::of(program, scratch, job))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| verdict::not_started(program, &error))?;
        let group = Group::led_by(&child);
        let capture = Capture::of(&mut child, &context.log);
        Ok(Self { child, group, capture })
    }

    /// Waits for the program to end, or ends it when the attempt is told to stop.
    async fn end(&mut self, context: &Context) -> Result<ExitStatus, Unfinished> {
        tokio::select! {
            biased;
            status = self.child.wait() => {
                self.settle(context).await;
                Ok(status.map_err(|error| Failure::transient(format!("lost sight of the process: {error}")))?)
            }
            () = context.cancel.cancelled() => {
                self.stop(context).await;
                Err(Unfinished::Stopped)
            }
        }
    }

    /// The program has ended, but what it started may have last words (a `tee` behind it, say).
    async fn settle(&mut self, context: &Context) {
        within(context, OUTPUT_TIMEOUT, self.capture.end()).await;
        self.group.signal(Signal::KILL);
        within(context, OUTPUT_TIMEOUT, self.capture.end()).await;
    }

    /// Asks the whole group to end, and kills what has not after the grace.
    async fn stop(&mut self, context: &Context) {
        let notice =
            format!("told to stop: sent TERM, KILL follows within {} s", context.grace.as_secs_f64());
        self.group.signal(Signal::TERM);
        context.log.line(Stream::System, Level::Warning, &notice).await;
        // The program may go first and leave children that are still cleaning up. They hold the
        // pipes, so the end of the output is the end of the group; those without it have no grace.
        let all_gone = async {
            let _ = self.child.wait().await;
            self.capture.end().await;
        };
        tokio::select! {
            biased;
            () = all_gone => {}
            () = context.kill.cancelled() => {}
            () = context.pass(context.grace) => {}
        }
        self.group.signal(Signal::KILL);
        let _ = self.child.wait().await;
        within(context, OUTPUT_TIMEOUT, self.capture.end()).await;
    }
}

/// Waits for `work`, but no longer than `limit`.
async fn within(context: &Context, limit: Duration, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = work => {}
        () = context.pass(limit) => {}
    }
}

#[cfg(test)]
mod tests;
