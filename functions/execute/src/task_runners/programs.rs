//! `bash` and `python`: run a command line, a script, code or a function in a separate process.
//!
//! Values reach it through `env`, `args`, `kwargs` and the file `EBB_INPUT`; they are never pasted into code.

use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;
use language::config::{
    Bash as BashConfig, Process as Settings, Program as What, Python as PythonConfig, PythonEnvironment,
};
use serde_json::Value;
use tokio::fs;

use model::{Failure, TaskKind};

use super::{TaskRunner, Unfinished, config};
use crate::job::{Context, Job};
use crate::process::{self, Program, Scratch, environments};

/// The program that calls a function.
const FUNCTION: &str = include_str!("function.py");

/// Runs `command` with `bash -c`, or the file `script`.
pub(super) struct Bash;

#[async_trait]
impl TaskRunner for Bash {
    fn kind(&self) -> TaskKind {
        TaskKind::Bash
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let BashConfig(settings) = config(job)?;
        run(settings, &PythonEnvironment::default(), &BASH, job, context).await
    }
}

/// Runs `command` with `bash -c`, or `code`, `function` or the file `script` with Python.
pub(super) struct Python;

#[async_trait]
impl TaskRunner for Python {
    fn kind(&self) -> TaskKind {
        TaskKind::Python
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let PythonConfig { process, environment } = config(job)?;
        run(process, &environment, &PYTHON, job, context).await
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
    environment: &PythonEnvironment,
    interpreter: &Interpreter,
    job: &Job,
    context: &Context,
) -> Result<Value, Unfinished> {
    let scratch = Scratch::prepare(job, context).await?;
    scratch.add_files(&settings.files).await?;
    let python = python(environment, &scratch, job, context).await?;
    let (interpreter, arguments): (&Interpreter, Vec<OsString>) = match settings.program {
        // The word after the command line is its `$0`; arguments follow.
        What::Command(line) => (&BASH, vec!["-c".into(), line.into(), "bash".into()]),
        What::Script(path) => (interpreter, vec![file(&path, &scratch, context).await?.into()]),
        // In a file rather than with `-c`: tracebacks quote the line, and the length is not limited.
        What::Code(code) => (interpreter, vec![scratch.write("code", code).await?.into()]),
        What::Function(function, kwargs) => {
            let caller = scratch.write("function.py", FUNCTION).await?;
            let kwargs = scratch.write("kwargs.json", Value::Object(kwargs).to_string()).await?;
            (interpreter, vec![caller.into(), scratch.files().into(), function.into(), kwargs.into()])
        }
    };
    let options = interpreter.options.iter().map(OsString::from);
    let script = arguments.first().map(PathBuf::from).filter(|path| path.is_absolute());
    let mut program = Program {
        arguments: options.chain(arguments).chain(settings.args.into_iter().map(OsString::from)).collect(),
        environment: settings.env,
        script,
        ..Program::new(interpreter.name, interpreter.remedy)
    };
    if let Some(python) = python {
        program.use_environment(python, interpreter.name == PYTHON.name);
    }
    process::run(program, scratch, job, context).await
}

/// The environment with the packages that a program needs, if it needs any.
async fn python(
    wanted: &PythonEnvironment,
    scratch: &Scratch,
    job: &Job,
    context: &Context,
) -> Result<Option<PathBuf>, Unfinished> {
    if *wanted == PythonEnvironment::default() {
        return Ok(None);
    }
    let listed = match &wanted.requirements_file {
        Some(path) => {
            let found = file(path, scratch, context).await?;
            let unreadable =
                |error| Failure::permanent(format!("cannot read the requirements file {path}: {error}"));
            Some(fs::read_to_string(found).await.map_err(unreadable)?)
        }
        None => None,
    };
    environments::prepare(wanted, listed, job, context).await.map(Some)
}

/// A file of the version, or one that the worker has.
async fn file(path: &str, scratch: &Scratch, context: &Context) -> Result<PathBuf, Failure> {
    match scratch.file(path) {
        Some(file) => Ok(file),
        None => process::script(path, scratch, context).await,
    }
}
