//! What can be said on the command line to an Ebbflow that runs somewhere.

mod answers;
mod care;
mod files;
mod identity;
mod limits;
mod run;
mod schedule;
mod test;
mod triggers;
mod worker;
mod workflows;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::{Instant, RunId, RunState};
use serde_json::Value;

pub use answers::{Approve, Reject, Signal};
pub use care::{Audit, DeadLetters, Doctor, LetterAction, LetterFilter, Letters, ListLetters, Timers};
pub use files::{Apply, Graph, Plan, Schema, Validate};
pub use identity::{Grants, Login, NewToken, Scope, Tokens};
pub use limits::{LimitAction, Limits, TenantAction, Tenants};
pub use run::{Bulk, Mark, OnRun, OnTask, Run};
pub use schedule::{
    Backfill, BackfillAction, NewBackfill, NextInstants, PauseSchedule, ResumeSchedule, Schedule,
};
pub use test::Test;
pub use triggers::{ListTriggers, TriggerAction, TriggerName, Triggers};
pub use worker::Worker;
pub use workflows::{Archive, ListWorkflows, Rollback, Versions, WorkflowAction, Workflows};

/// Which Ebbflow is meant, and how to answer. These go with every command.
#[derive(Args, Clone, Debug)]
pub struct Shared {
    /// Address of Ebbflow [default: that of the `ebb dev` of the data folder]
    #[arg(long, env = "EBB_URL", global = true, value_name = "URL")]
    pub url: Option<String>,
    /// Token to send [default: that of the `ebb dev` of the data folder]
    #[arg(long, env = "EBB_TOKEN", global = true, value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Tenant that is meant, where several could be
    #[arg(long, env = "EBB_TENANT", global = true, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Data folder of `ebb dev`
    #[arg(long, env = "EBB_DATA", global = true, value_name = "DIR", default_value = "./.ebb")]
    pub data: PathBuf,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// A command to an Ebbflow that runs somewhere, or about files here.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Check workflow files, without a server
    #[command(
        after_help = "Examples:\n  ebb validate\n  ebb validate workflows/graphs/hello.yaml\n\nExit code 1 where a file has a problem."
    )]
    Validate(Validate),
    /// Play the tests of workflows under virtual time, without a server
    #[command(
        after_help = "Examples:\n  ebb test\n  ebb test workflows/tests/etl.yaml --filter 'two regions'\n  ebb test --junit results.xml\n\nExit code 1 where a test failed, 2 where a test file cannot be used."
    )]
    Test(Test),
    /// Draw a workflow from its files, without a server
    #[command(
        after_help = "Examples:\n  ebb graph hello\n  ebb graph workflows/graphs/hello.yaml --svg > hello.svg\n\n● starts by itself, ▶ and ▼ wait for what leads to them. Where lines meet, ├ ┼ ┴ join and │ crosses."
    )]
    Graph(Graph),
    /// Print the JSON Schema of a kind of file, for editors
    #[command(
        after_help = "Example:\n  ebb schema workflow > workflow.json\n\nAn editor uses it where a file begins with\n  # yaml-language-server: $schema=workflow.json"
    )]
    Schema(Schema),
    /// Show what `ebb apply` would change, without changing it
    #[command(
        after_help = "Examples:\n  ebb plan\n  ebb plan my-workflows/ --json\n  ebb plan --prune\n\nExit code 1 where a file has a problem."
    )]
    Plan(Plan),
    /// Register a folder of workflows: all of it, or nothing where a file has a problem
    #[command(
        after_help = "Examples:\n  ebb apply\n  ebb apply my-workflows/ --url https://console.example.com\n  ebb apply --prune\n\nWith --prune the folder is all there shall be: whatever else is in use is archived, however it was registered. `ebb plan --prune` shows it first. Unfinished runs go on."
    )]
    Apply(Apply),
    /// List workflows in use, or let one pause
    #[command(
        after_help = "Examples:\n  ebb workflows\n  ebb workflows list --tag nightly --sort=-updated_at\n  ebb workflows pause etl --reason 'the warehouse moves'\n  ebb workflows resume etl --missed latest\n\nWhile one is paused, schedules, triggers and people start no runs of it."
    )]
    Workflows(Workflows),
    /// List the versions of a workflow, newest first
    #[command(after_help = "Example:\n  ebb versions hello")]
    Versions(Versions),
    /// Make an earlier version of a workflow the one that new runs take
    #[command(after_help = "Example:\n  ebb rollback hello 3\n\nUnfinished runs keep their version.")]
    Rollback(Rollback),
    /// Take a workflow out of use; its history stays
    #[command(after_help = "Example:\n  ebb archive hello\n\nUnfinished runs go on.")]
    Archive(Archive),
    /// Start a run
    #[command(
        after_help = "Examples:\n  ebb trigger hello --watch\n  ebb trigger etl --input day=2026-01-31 --input 'regions=[\"us\", \"eu\"]'\n  ebb trigger etl --logical-date 2026-01-31 --key etl-2026-01-31\n\nWith --watch the exit code is 0 if the run succeeded and 1 if it failed or was cancelled."
    )]
    Trigger(Trigger),
    /// List runs, newest first unless said otherwise
    #[command(
        after_help = "Examples:\n  ebb runs\n  ebb runs --workflow hello --state failed --json\n  ebb runs --label team=green --created-after 2026-01-31\n  ebb runs --text timeout --sort=-finished_at\n  ebb runs --parent RUN"
    )]
    Runs(Runs),
    /// Show, watch or steer one run
    #[command(subcommand)]
    Run(Run),
    /// Do one thing to many runs; --dry-run counts them first
    #[command(
        after_help = "Examples:\n  ebb bulk retry --workflow etl --state failed --dry-run\n  ebb bulk retry --workflow etl --state failed --reason 'the disk is larger now'\n\nExit code 1 where a run could not be acted on."
    )]
    Bulk(Bulk),
    /// Send a signal to a run; whoever waits for it goes on with its payload
    #[command(after_help = "Example:\n  ebb signal RUN data-ready --payload '{\"rows\": 12}'")]
    Signal(answers::Signal),
    /// Approve what a task asks for
    #[command(after_help = "Example:\n  ebb approve RUN release --field comment='looks good'")]
    Approve(answers::Approve),
    /// Do not approve what a task asks for: the task fails
    #[command(after_help = "Example:\n  ebb reject RUN release --reason 'numbers look wrong'")]
    Reject(answers::Reject),
    /// Say in plain words why a run or one of its tasks waits, failed or was skipped
    #[command(
        after_help = "Examples:\n  ebb explain RUN\n  ebb explain RUN load\n  ebb explain RUN split__3"
    )]
    Explain(Explain),
    /// Show how many tasks are under way at the same time and who waits, or say how many may be
    #[command(
        after_help = "Examples:\n  ebb limits\n  ebb limits show pool warehouse\n  ebb limits set pool warehouse 4\n  ebb limits set queue heavy 20\n  ebb limits set tenant own none\n\nA workflow says itself how many of its tasks are under way: `max_active_tasks`."
    )]
    Limits(Limits),
    /// Say how much waits in each queue, for how long, and of whom
    #[command(after_help = "Example:\n  ebb queues")]
    Queues,
    /// List tenants, or say what one has coming
    #[command(
        after_help = "Examples:\n  ebb tenants\n  ebb tenants show acme\n  ebb tenants set acme --weight 3 --max-active-tasks 200\n\nTenants that wait for places take turns; one of weight 3 has three of them in each round."
    )]
    Tenants(Tenants),
    /// Show what the tasks of a run wrote
    #[command(
        after_help = "Examples:\n  ebb logs RUN\n  ebb logs RUN load --attempt 1\n  ebb logs RUN split__3\n  ebb logs RUN -f"
    )]
    Logs(Logs),
    /// List workers that hold attempts, and those that went silent
    #[command(after_help = "Example:\n  ebb workers")]
    Workers,
    /// Have a worker end
    #[command(subcommand)]
    Worker(Worker),
    /// Look whether everything is as it should be, and say what to do
    #[command(
        after_help = "Examples:\n  ebb doctor\n  ebb doctor --repair\n\nExit code 1 where something is wrong."
    )]
    Doctor(care::Doctor),
    /// Show who changed what, newest first
    #[command(
        after_help = "Examples:\n  ebb audit\n  ebb audit --actor ada@example.com --text /runs/\n  ebb audit --export > audit.ndjson"
    )]
    Audit(care::Audit),
    /// List pending timers, the next one first
    #[command(after_help = "Examples:\n  ebb timers\n  ebb timers --run RUN --json")]
    Timers(care::Timers),
    /// Show when workflows run by themselves, pause and resume schedules
    #[command(subcommand)]
    Schedule(Schedule),
    /// Make the runs of dates that are past, or show and steer those that are being made
    #[command(
        after_help = "Examples:\n  ebb backfill etl --from 2026-01-01 --to 2026-01-31 --dry-run\n  ebb backfill etl --from 2026-01-01 --to 2026-01-31 --max-parallel 8\n  ebb backfill etl --from 2026-01-01 --to 2026-01-31 --rerun failed\n  ebb backfill list\n  ebb backfill cancel BACKFILL\n\nIts runs yield to all others wherever places are short."
    )]
    Backfill(Backfill),
    /// List what starts runs by itself, show, pause or resume it
    #[command(
        after_help = "Examples:\n  ebb triggers\n  ebb triggers show NAME TRIGGER\n  ebb triggers pause NAME TRIGGER --reason 'moving the bucket'\n  ebb triggers resume NAME TRIGGER"
    )]
    Triggers(Triggers),
    /// List, show, replay or discard messages that could not be taken in
    #[command(
        after_help = "Examples:\n  ebb dead-letters\n  ebb dead-letters show 4711\n  ebb dead-letters replay 4711\n  ebb dead-letters discard --all --text 'no workflow' --dry-run"
    )]
    DeadLetters(care::DeadLetters),
    /// Make, list and revoke tokens for programs
    #[command(subcommand)]
    Tokens(Tokens),
    /// Give people roles, list these and take them back
    #[command(subcommand)]
    Grants(Grants),
    /// Sign in to an Ebbflow, so that the other commands may use it
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

/// What to start.
#[derive(Args, Clone, Debug)]
pub struct Trigger {
    /// The workflow's name
    pub name: String,
    /// An input; JSON, or plain text where the workflow declares a text
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub inputs: Vec<(String, String)>,
    /// A JSON file with inputs; --input wins over it
    #[arg(long, value_name = "FILE")]
    pub inputs_file: Option<PathBuf>,
    /// A label to find the run by
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    pub labels: Vec<(String, String)>,
    /// The date that the run is about: 2026-01-31 or 2026-01-31T06:00:00Z; one run per date
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub logical_date: Option<Instant>,
    /// Let a run of the same date make room: it is cancelled, unless it has ended
    #[arg(long, requires = "logical_date")]
    pub replace_existing: bool,
    /// An idempotency key: the same key again starts nothing and gives the same run
    #[arg(long)]
    pub key: Option<String>,
    /// Added to the priority of each task, from -100 to 100: where places are few, higher comes first
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

/// Which runs to list.
#[derive(Args, Clone, Debug)]
pub struct Runs {
    /// Only of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = state)]
    pub state: Option<RunState>,
    /// Only those that tasks of this run started
    #[arg(long, value_name = "RUN")]
    pub parent: Option<RunId>,
    /// Only those with this label
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Option<String>,
    /// Only those created then or later: 2026-01-31 or 2026-01-31T06:00:00Z
    #[arg(long, value_name = "TIME", value_parser = date)]
    pub created_after: Option<Instant>,
    /// Only those created before
    #[arg(long, value_name = "TIME", value_parser = date)]
    pub created_before: Option<Instant>,
    /// Only those with this text in their id, workflow, error, labels or whoever caused them
    #[arg(long)]
    pub text: Option<String>,
    /// By when they were created or ended; a `-` before it: the last one first [default: -created_at]
    #[arg(long, value_parser = api::runs::SORTS, allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// What to explain.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// The run
    pub run: RunId,
    /// One of its tasks, in more detail [default: the run]
    pub task: Option<String>,
}

/// Which log to show.
#[derive(Args, Clone, Debug)]
pub struct Logs {
    /// The run
    pub run: RunId,
    /// One of its tasks [default: all]
    pub task: Option<String>,
    /// Which attempt at the task [default: the current one]
    #[arg(long, value_name = "N", requires = "task")]
    pub attempt: Option<u32>,
    /// Go on until everything has ended
    #[arg(short, long)]
    pub follow: bool,
}

/// `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

/// A day or an instant.
fn date(text: &str) -> Result<Instant, String> {
    let instant = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.into() };
    // The same reading as the server's.
    serde_json::from_value(Value::String(instant))
        .map_err(|_| "write 2026-01-31 or 2026-01-31T06:00:00Z".into())
}

/// `3` or `v3`.
fn version(text: &str) -> Result<i32, String> {
    let number = text.strip_prefix('v').unwrap_or(text).parse().ok();
    number.filter(|number| *number > 0).ok_or_else(|| "write a number from 1, as in 3 or v3".into())
}

fn state(text: &str) -> Result<RunState, String> {
    RunState::named(text)
        .ok_or_else(|| format!("choose from {}", RunState::ALL.map(RunState::name).join(", ")))
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
            other => panic!("{other:?} is no trigger"),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        use clap::CommandFactory;
        Line::command().debug_assert();
    }

    #[test]
    fn a_value_may_hold_equals_signs_and_be_empty() {
        let inputs = trigger(&["--input", "query=a=b", "-i", "empty="]).unwrap().inputs;
        assert_eq!(inputs, [("query".into(), "a=b".into()), ("empty".into(), String::new())]);
    }

    #[test]
    fn an_input_without_a_name_is_refused() {
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
    fn shared_options_may_follow_the_command() {
        let line = Line::try_parse_from(["ebb", "runs", "--state", "failed", "--json", "--url", "http://x"])
            .unwrap();
        assert!(line.shared.json && line.shared.url.as_deref() == Some("http://x"));
        assert!(Line::try_parse_from(["ebb", "runs", "--state", "odd"]).is_err());
    }
}
