//! `bash` and `python`: run a command line, a script or code in a separate process.
//!
//! Values reach it through `env`, `args` and the file `EBB_INPUT`; they are never pasted into code.

use std::ffi::OsString;

use async_trait::async_trait;
use language::config::{Bash as BashConfig, Process as Settings, Program as What, Python as PythonConfig};
use serde_json::Value;

use model::TaskKind;

use super::{TaskRunner, Unfinished, config};
use crate::job::{Context, Job};
use crate::process::{self, Program, Scratch};

/// Runs `command` with `bash -c`, or the file `script`.
pub(super) struct Bash;

#[async_trait]
impl TaskRunner for Bash {
    fn kind(&self) -> TaskKind {
        TaskKind::Bash
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let BashConfig(settings) = config(job)?;
        run(settings, &BASH, job, context).await
    }
}

/// Runs `command` with `bash -c`, or `code` or the file `script` with Python.
pub(super) struct Python;

#[async_trait]
impl TaskRunner for Python {
    fn kind(&self) -> TaskKind {
        TaskKind::Python
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let PythonConfig(settings) = config(job)?;
        run(settings, &PYTHON, job, context).await
    }
}

/// A program that runs scripts.
struct Interpreter {
    name: &'static str,
    options: &'static [&'static str],
    remedy: &'static str,
}

const BASH: Interpreter = Interpreter {
    name: "bash",
    options: &[],
    remedy: "install bash there, or use a queue whose workers have it",
};

const PYTHON: Interpreter = Interpreter {
    name: "python3",
    // Unbuffered, so that people can follow its output live.
    options: &["-u"],
    remedy: "install Python 3 there, or use a queue whose workers have it",
};

async fn run(
    settings: Settings,
    interpreter: &Interpreter,
    job: &Job,
    context: &Context,
) -> Result<Value, Unfinished> {
    let scratch = Scratch::prepare(job, context).await?;
    let mut script = None;
    let (interpreter, program) = match settings.program {
        // The word after the command line is its `$0`; arguments follow.
        What::Command(line) => (&BASH, vec!["-c".into(), line.into(), "bash".into()]),
        What::Script(path) => {
            let path = process::script(&path, &scratch, context).await?;
            script = Some(path.clone());
            (interpreter, vec![path.into()])
        }
        // In a file rather than with `-c`: tracebacks quote the line, and the length is not limited.
        What::Code(code) => (interpreter, vec![scratch.write("code", code).await?.into()]),
    };
    let options = interpreter.options.iter().map(OsString::from);
    let arguments = options.chain(program).chain(settings.args.into_iter().map(OsString::from)).collect();
    let Interpreter { name, remedy, .. } = *interpreter;
    let program = Program { name, remedy, arguments, environment: settings.env, script };
    process::run(program, scratch, job, context).await
}
