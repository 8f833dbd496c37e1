//! The arguments of commands that talk to a server or read files.

mod files;
mod identity;
mod limits;
mod operations;
mod run;
mod schedule;
mod signals;
mod task;
mod test;
mod triggers;
mod worker;
mod workflows;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::{Instant, RunState};
use serde_json::Value;

pub use files::{Apply, Graph, Plan, Schema, Types, Validate};
pub use identity::{Grants, Login, NewToken, Scope, Tokens};
pub use limits::{BreakerAction, Breakers, LimitAction, Limits, TenantAction, Tenants};
pub use operations::{
    Audit, CloudArgs, DeadLetterAction, DeadLetterFilter, DeadLetters, Doctor, ListDeadLetters, LogLevel,
    Restore, SelectedDeadLetters, Timers,
};
pub use run::{Bulk, Explain, Logs, Mark, OnRun, OnTask, Run, RunFilter, Runs};
pub use schedule::{
    Backfill, BackfillAction, NewBackfill, NextInstants, PauseSchedule, ResumeSchedule, Schedule,
};
pub use signals::{Approve, Reject, Signal};
pub use task::{RunTask, Task};
pub use test::Test;
pub use triggers::{ListTriggers, TriggerAction, TriggerName, Triggers};
pub use worker::{RunWorker, StopWorker, Worker};
pub use workflows::{Archive, ListWorkflows, Rollback, Versions, WorkflowAction, Workflows};

/// Options of every command: which server to use, and how to print.
#[derive(Args, Clone, Debug)]
pub struct Shared {
    /// Address of the server [default: the `ebb dev` of the data folder]
    #[arg(long, env = "EBB_URL", global = true, value_name = "URL")]
    pub url: Option<String>,
    /// Token to send [default: the token of the `ebb dev` of the data folder]
    #[arg(long, env = "EBB_TOKEN", global = true, value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Tenant to use, if you have roles in several
    #[arg(long, env = "EBB_TENANT", global = true, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Data folder of `ebb dev`
    #[arg(long, env = "EBB_DATA", global = true, value_name = "DIR", default_value = "./.ebb")]
    pub data: PathBuf,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
}

/// A command that talks to a server or reads files.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Check workflow files, without a server
    #[command(
        after_help = "Examples:\n  ebb validate\n  ebb validate workflows/graphs/hello.yaml\n\nThe exit code is 1 if a file has a problem."
    )]
    Validate(Validate),
    /// Run workflow tests under virtual time, without a server
    #[command(
        after_help = "Examples:\n  ebb test\n  ebb test workflows/tests/etl.yaml --filter 'two regions'\n  ebb test --junit results.xml\n\nThe exit code is 1 if a test failed, 2 if a test file cannot be used."
    )]
    Test(Test),
    /// Draw a workflow from its files, without a server
    #[command(
        after_help = "Examples:\n  ebb graph hello\n  ebb graph workflows/graphs/hello.yaml --svg > hello.svg\n\n● has no dependencies, ▶ and ▼ wait for what leads to them. Where lines meet, ├ ┼ ┴ join and │ crosses."
    )]
    Graph(Graph),
    /// Print a JSON Schema for editors
    #[command(
        after_help = "Examples:\n  ebb schema workflow > workflow.json\n  ebb schema workflow --project workflows > workflow.json\n\nEditors use it if a file begins with\n  # yaml-language-server: $schema=workflow.json"
    )]
    Schema(Schema),
    /// Show what `ebb apply` would change, without changing it
    #[command(
        after_help = "Examples:\n  ebb plan\n  ebb plan my-workflows/ --json\n  ebb plan --prune\n\nThe exit code is 1 if a file has a problem."
    )]
    Plan(Plan),
    /// Register a folder of workflows: all of it or, if a file has a problem, nothing
    #[command(
        after_help = "Examples:\n  ebb apply\n  ebb apply my-workflows/ --url https://console.example.com\n  ebb apply --prune\n\nWith --prune, every active workflow that is not in the folder is archived, however it was registered. `ebb plan --prune` shows what would happen. Unfinished runs continue."
    )]
    Apply(Apply),
    /// List active workflows, pause and resume them
    #[command(
        after_help = "Examples:\n  ebb workflows\n  ebb workflows list --tag nightly --sort=-updated_at\n  ebb workflows pause etl --reason 'the warehouse moves'\n  ebb workflows resume etl --missed latest\n\nWhile a workflow is paused, no new runs of it start."
    )]
    Workflows(Workflows),
    /// List task types: built-in ones, and custom ones with the workflows that use them
    #[command(
        after_help = "Examples:\n  ebb types\n  ebb types --custom\n  ebb types raster.validate\n\nA custom type is listed once an active workflow uses it."
    )]
    Types(Types),
    /// List the versions of a workflow, newest first
    #[command(after_help = "Example:\n  ebb versions hello")]
    Versions(Versions),
    /// Activate an earlier version of a workflow for new runs
    #[command(after_help = "Example:\n  ebb rollback hello 3\n\nUnfinished runs keep their version.")]
    Rollback(Rollback),
    /// Take a workflow out of use; its history stays
    #[command(after_help = "Example:\n  ebb archive hello\n\nUnfinished runs continue.")]
    Archive(Archive),
    /// Start a run of a workflow
    #[command(
        after_help = "Examples:\n  ebb trigger hello --watch\n  ebb trigger etl --input day=2026-01-31 --input 'regions=[\"us\", \"eu\"]'\n  ebb trigger etl --logical-date 2026-01-31 --key etl-2026-01-31\n\nWith --watch the exit code is 0 if the run succeeded and 1 if it failed or was cancelled."
    )]
    Trigger(Trigger),
    /// List runs, newest first by default
    #[command(
        after_help = "Examples:\n  ebb runs\n  ebb runs --workflow hello --state failed --json\n  ebb runs --label team=green --created-after 2026-01-31\n  ebb runs --text timeout --sort=-finished_at\n  ebb runs --parent RUN"
    )]
    Runs(Runs),
    /// Show, watch or control one run
    #[command(subcommand)]
    Run(Run),
    /// Run one task here, without a server
    #[command(subcommand)]
    Task(Task),
    /// Apply an action to many runs; --dry-run counts them first
    #[command(
        after_help = "Examples:\n  ebb bulk retry --workflow etl --state failed --dry-run\n  ebb bulk retry --workflow etl --state failed --reason 'the disk is larger now'\n\nThe exit code is 1 if the action failed for a run."
    )]
    Bulk(Bulk),
    /// Send a signal to a run; a task that waits for it continues with its payload
    #[command(after_help = "Example:\n  ebb signal RUN data-ready --payload '{\"rows\": 12}'")]
    Signal(signals::Signal),
    /// Approve a task that waits for approval
    #[command(after_help = "Example:\n  ebb approve RUN release --field comment='looks good'")]
    Approve(signals::Approve),
    /// Reject a task that waits for approval; the task fails
    #[command(after_help = "Example:\n  ebb reject RUN release --reason 'numbers look wrong'")]
    Reject(signals::Reject),
    /// Explain why a run or a task waits, failed or was skipped
    #[command(
        after_help = "Examples:\n  ebb explain RUN\n  ebb explain RUN load\n  ebb explain RUN split__3"
    )]
    Explain(Explain),
    /// Show or set limits on concurrent tasks
    #[command(
        after_help = "Examples:\n  ebb limits\n  ebb limits show pool warehouse\n  ebb limits set pool warehouse 4\n  ebb limits set queue heavy 20\n  ebb limits set tenant own none\n\nThe limit of a workflow is `max_active_tasks` in its file."
    )]
    Limits(Limits),
    /// List circuit breakers, or reset one
    #[command(
        after_help = "Examples:\n  ebb breakers\n  ebb breakers reset 7\n\nThe breaker of a task is `breaker` in its file; hosts that `http` tasks call have one each."
    )]
    Breakers(Breakers),
    /// Show how many tasks wait in each queue, since when, and of which tenant
    #[command(after_help = "Example:\n  ebb queues")]
    Queues,
    /// List tenants, or set a tenant's weight and limits
    #[command(
        after_help = "Examples:\n  ebb tenants\n  ebb tenants show acme\n  ebb tenants set acme --weight 3 --max-active-tasks 200\n\nTenants that wait for slots take turns; a tenant of weight 3 gets three slots in each round."
    )]
    Tenants(Tenants),
    /// Show the logs of a run's tasks
    #[command(
        after_help = "Examples:\n  ebb logs RUN\n  ebb logs RUN load --attempt 1\n  ebb logs RUN split__3\n  ebb logs RUN -f"
    )]
    Logs(Logs),
    /// List workers: remote ones while they are up, Ebbflow's own while they hold attempts, and those that died within a day
    #[command(after_help = "Example:\n  ebb workers")]
    Workers,
    /// Run a worker that takes tasks of a queue from the server, or stop one
    #[command(
        after_help = "Examples:\n  ebb worker --queue tiles --slots 4\n  ebb worker --queue gpu --label gpu=true --label memory=80\n  ebb worker drain WORKER --reason 'a new machine'\n\nIt needs a token with the role `worker` (EBB_TOKEN), and neither the database nor the bus. SIGTERM lets tasks finish within --grace; then they get TERM and 30 s, and are handed back. The exit code is 0 if it was asked to end, and 1 if it gave up."
    )]
    Worker(Worker),
    /// Check the health of the system, and suggest what to do
    #[command(
        after_help = "Examples:\n  ebb doctor\n  ebb doctor --repair\n  ebb doctor --cloud --project my-project\n\nThe exit code is 1 if something is wrong."
    )]
    Doctor(operations::Doctor),
    /// Show or set what the instances of a function log
    #[command(
        after_help = "Examples:\n  ebb log-level\n  ebb log-level execute info,ebbflow_runtime=debug --minutes 30\n  ebb log-level execute --reset\n\nInstances follow within half a minute of requests."
    )]
    LogLevel(operations::LogLevel),
    /// Restore a database on Cloud SQL to an earlier moment, as a new instance beside the old one
    #[command(
        after_help = "Example:\n  ebb restore --to 2026-03-01T12:00:00Z --project my-project\n\nIt takes minutes, changes nothing that exists, and prints how to move the installation to the new instance."
    )]
    Restore(operations::Restore),
    /// Show who changed what, newest first
    #[command(
        after_help = "Examples:\n  ebb audit\n  ebb audit --actor ada@example.com --text /runs/\n  ebb audit --export > audit.ndjson"
    )]
    Audit(operations::Audit),
    /// List pending timers, the next one first
    #[command(after_help = "Examples:\n  ebb timers\n  ebb timers --run RUN --json")]
    Timers(operations::Timers),
    /// Show, pause and resume schedules
    #[command(subcommand)]
    Schedule(Schedule),
    /// Create runs for past dates, or show and control a backfill
    #[command(
        after_help = "Examples:\n  ebb backfill etl --from 2026-01-01 --to 2026-01-31 --dry-run\n  ebb backfill etl --from 2026-01-01 --to 2026-01-31 --max-parallel 8\n  ebb backfill etl --from 2026-01-01 --to 2026-01-31 --rerun failed\n  ebb backfill list\n  ebb backfill cancel BACKFILL\n\nIts tasks yield to those of live runs where slots are scarce."
    )]
    Backfill(Backfill),
    /// List, show, pause or resume triggers
    #[command(
        after_help = "Examples:\n  ebb triggers\n  ebb triggers show NAME TRIGGER\n  ebb triggers pause NAME TRIGGER --reason 'moving the bucket'\n  ebb triggers resume NAME TRIGGER"
    )]
    Triggers(Triggers),
    /// List, show, replay or discard messages that could not be processed
    #[command(
        after_help = "Examples:\n  ebb dead-letters\n  ebb dead-letters show 4711\n  ebb dead-letters replay 4711\n  ebb dead-letters discard --all --text 'no workflow' --dry-run"
    )]
    DeadLetters(operations::DeadLetters),
    /// Create, list and revoke service tokens
    #[command(subcommand)]
    Tokens(Tokens),
    /// Grant roles, list and remove grants
    #[command(subcommand)]
    Grants(Grants),
    /// Sign in to a server, for use by the other commands
    #[command(
        after_help = "Examples:\n  ebb login --url https://console.example.com\n  ebb login --url https://console.example.com --with-token < token.txt"
    )]
    Login(Login),
    /// Print the token of the `ebb dev` of the data folder
    #[command(
        after_help = "Example:\n  curl -H \"Authorization: Bearer $(ebb token)\" http://localhost:8480/api/v1/runs"
    )]
    Token,
}

/// The run to start.
#[derive(Args, Clone, Debug)]
pub struct Trigger {
    /// Name of the workflow
    pub name: String,
    /// Input: JSON, or plain text if the workflow declares a string
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub inputs: Vec<(String, String)>,
    /// JSON file with inputs; --input takes precedence
    #[arg(long, value_name = "FILE")]
    pub inputs_file: Option<PathBuf>,
    /// Label of the run
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    pub labels: Vec<(String, String)>,
    /// Logical date: 2026-01-31 or 2026-01-31T06:00:00Z; a workflow has one run for each
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub logical_date: Option<Instant>,
    /// Cancel an unfinished run of the same date first
    #[arg(long, requires = "logical_date")]
    pub replace_existing: bool,
    /// Idempotency key: the same key returns the same run
    #[arg(long)]
    pub key: Option<String>,
    /// Number added to the priority of each task, from -100 to 100: while slots are scarce, higher goes first
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub priority: i32,
    /// Show progress until the run has ended
    #[arg(short, long)]
    pub watch: bool,
}

impl Trigger {
    /// Starts a run with the workflow's own defaults and shows its progress.
    pub fn watched(name: &str) -> Self {
        let (inputs, labels) = (Vec::new(), Vec::new());
        Self {
            name: name.into(),
            inputs,
            inputs_file: None,
            labels,
            logical_date: None,
            replace_existing: false,
            key: None,
            priority: 0,
            watch: true,
        }
    }
}

/// Parses `NAME=VALUE`, without the spaces around the name.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

/// Parses a day or an instant.
fn date(text: &str) -> Result<Instant, String> {
    let instant = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.into() };
    // Parsed in the same way as by the server.
    serde_json::from_value(Value::String(instant))
        .map_err(|_| "expected 2026-01-31 or 2026-01-31T06:00:00Z".into())
}

/// Parses `3` or `v3`.
fn version(text: &str) -> Result<i32, String> {
    let number = text.strip_prefix('v').unwrap_or(text).parse().ok();
    number.filter(|number| *number > 0).ok_or_else(|| "expected a number from 1, such as 3 or v3".into())
}

fn state(text: &str) -> Result<RunState, String> {
    RunState::named(text)
        .ok_or_else(|| format!("expected one of {}", RunState::ALL.map(RunState::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        shared: Shared,
        #[command(subcommand)]
        command: Command,
    }

    fn trigger(arguments: &[&str]) -> Result<Trigger, clap::Error> {
        let line = Line::try_parse_from(["ebb", "trigger", "etl"].iter().chain(arguments))?;
        match line.command {
            Command::Trigger(trigger) => Ok(trigger),
            other => panic!("{other:?} is not a trigger"),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_valid() {
        use clap::CommandFactory;
        Line::command().debug_assert();
    }

    #[test]
    fn a_value_may_contain_equals_signs_and_may_be_empty() {
        let inputs = trigger(&["--input", "query=a=b", "-i", "empty="]).unwrap().inputs;
        assert_eq!(inputs, [("query".into(), "a=b".into()), ("empty".into(), String::new())]);
    }

    #[test]
    fn an_input_without_a_name_is_rejected() {
        assert!(trigger(&["--input", "=x"]).is_err());
        assert!(trigger(&["--input", "x"]).is_err());
    }

    #[test]
    fn a_logical_date_is_a_day_or_an_instant() {
        let day = trigger(&["--logical-date", "2026-01-31"]).unwrap().logical_date;
        assert_eq!(day, trigger(&["--logical-date", "2026-01-31T01:00:00+01:00"]).unwrap().logical_date);
        assert!(trigger(&["--logical-date", "31.1.2026"]).is_err());
    }

    #[test]
    fn a_version_is_a_number_from_one() {
        assert_eq!((version("3"), version("v3")), (Ok(3), Ok(3)));
        assert!(["0", "-1", "", "v", "latest"].iter().all(|text| version(text).is_err()));
    }

    #[test]
    fn a_bulk_action_needs_one_filter_of_any_kind() {
        let parse = |filter: &[&str]| Line::try_parse_from(["ebb", "bulk", "retry"].iter().chain(filter));
        let error = parse(&[]).err().unwrap().to_string();
        for filter in ["--workflow", "--state", "--parent", "--label", "--created-after", "--created-before"]
        {
            assert!(error.contains(filter), "{filter} is missing in:\n{error}");
        }
        assert!(parse(&["--created-before", "2026-01-31"]).is_ok());
        assert!(parse(&["--label", "team=green", "--state", "failed"]).is_ok());
    }

    #[test]
    fn shared_options_may_follow_the_command() {
        let line = Line::try_parse_from(["ebb", "runs", "--state", "failed", "--json", "--url", "http://x"])
            .unwrap();
        assert!(line.shared.json && line.shared.url.as_deref() == Some("http://x"));
        assert!(Line::try_parse_from(["ebb", "runs", "--state", "odd"]).is_err());
    }
}
