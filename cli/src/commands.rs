//! The commands that talk to a server or read files, one module each.
//!
//! Exit codes: 0 success, 1 the run or the check failed, 2 wrong usage or settings, 3 the server cannot be reached or
//! rejected the request.

mod apply;
mod audit;
mod backfill;
mod breakers;
mod bulk;
mod dead_letters;
mod doctor;
mod explain;
mod graph;
mod identity;
mod limits;
mod log_level;
mod login;
mod logs;
mod operate;
mod plan;
mod progress;
mod queues;
mod restore;
mod run;
mod runs;
mod schedule;
mod schema;
mod signals;
mod task;
mod tenants;
mod test;
mod timers;
mod token;
mod trigger;
mod triggers;
mod types;
mod validate;
mod versions;
mod watch;
mod workers;
mod workflows;

use std::io;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Command, Shared, Task};
use crate::client::{self, Client, Server};

/// The run or the check failed.
const FAILED: u8 = 1;
/// Wrong usage or settings.
const USAGE: u8 = 2;
/// The server cannot be reached, or rejected the request.
const REJECTED: u8 = 3;

/// Runs one command and returns the exit code.
pub async fn run(shared: &Shared, command: Command) -> Result<ExitCode> {
    match command {
        Command::Validate(arguments) => validate::run(shared, &arguments),
        Command::Test(arguments) => test::run(shared, &arguments).await,
        Command::Graph(arguments) => graph::run(shared, &arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Plan(arguments) => plan::run(shared, &arguments).await,
        Command::Apply(arguments) => apply::run(shared, &arguments).await,
        Command::Workflows(arguments) => workflows::run(shared, arguments).await,
        Command::Types(arguments) => types::run(shared, &arguments).await,
        Command::Versions(arguments) => versions::list(shared, &arguments).await,
        Command::Rollback(arguments) => versions::rollback(shared, &arguments).await,
        Command::Archive(arguments) => versions::archive(shared, &arguments).await,
        Command::Trigger(arguments) => trigger::run(shared, arguments).await,
        Command::Runs(arguments) => runs::run(shared, &arguments).await,
        Command::Run(arguments) => run::run(shared, arguments).await,
        Command::Task(Task::Run(arguments)) => task::run(shared, &arguments).await,
        Command::Bulk(arguments) => bulk::run(shared, arguments).await,
        Command::Signal(arguments) => signals::signal(shared, arguments).await,
        Command::Approve(arguments) => signals::approve(shared, arguments).await,
        Command::Reject(arguments) => signals::reject(shared, arguments).await,
        Command::Explain(arguments) => explain::run(shared, &arguments).await,
        Command::Limits(arguments) => limits::run(shared, arguments).await,
        Command::Breakers(arguments) => breakers::run(shared, arguments).await,
        Command::Queues => queues::run(shared).await,
        Command::Tenants(arguments) => tenants::run(shared, arguments).await,
        Command::Logs(arguments) => logs::run(shared, arguments).await,
        Command::Workers => workers::list(shared).await,
        Command::Worker(arguments) => workers::worker(shared, arguments).await,
        Command::Doctor(arguments) => doctor::run(shared, &arguments).await,
        Command::LogLevel(arguments) => log_level::run(shared, arguments).await,
        Command::Restore(arguments) => restore::run(shared, &arguments).await,
        Command::Audit(arguments) => audit::run(shared, arguments).await,
        Command::Timers(arguments) => timers::run(shared, arguments).await,
        Command::Schedule(arguments) => schedule::run(shared, arguments).await,
        Command::Backfill(arguments) => backfill::run(shared, arguments).await,
        Command::Triggers(arguments) => triggers::run(shared, arguments).await,
        Command::DeadLetters(arguments) => dead_letters::run(shared, arguments).await,
        Command::Tokens(arguments) => identity::tokens(shared, arguments).await,
        Command::Grants(arguments) => identity::grants(shared, arguments).await,
        Command::Login(arguments) => login::run(shared, &arguments).await,
        Command::Token => token::run(shared),
    }
}

/// Prints why a command failed, and returns the exit code.
pub fn failure(error: &anyhow::Error) -> ExitCode {
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(is_closed) {
        // The reader of our output has closed the pipe.
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {error:#}");
    ExitCode::from(code_of(error))
}

fn code_of(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<client::Error>() {
        Some(client::Error::Settings(_)) | None => USAGE,
        Some(_) => REJECTED,
    }
}

fn connect(shared: &Shared) -> Result<Client> {
    Ok(Client::new(Server::find(shared)?)?)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn exit_codes_distinguish_wrong_settings_from_an_unreachable_server() {
        let settings = client::Error::Settings("no token".into());
        let away = client::Error::Unreachable { url: "http://x".into(), why: "refused".into() };
        let rejected = client::Error::Rejected {
            status: 404,
            code: "not_found".into(),
            message: "no".into(),
            details: Value::Null,
        };
        let codes = [settings.into(), away.into(), rejected.into(), anyhow::anyhow!("cannot read it")];
        assert_eq!(codes.map(|error| code_of(&error)), [USAGE, REJECTED, REJECTED, USAGE]);
    }
}
