//! The doctor: checks of the database, the bus and all unfinished runs, with advice.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use chrono::TimeDelta;
use host::Problem;
use model::{Instant, RunId};
use read::Health;
use runtime::{Diagnostic, Fault, Finding};
use serde::{Deserialize, Serialize};

use crate::{Api, Caller, error};

/// The maximum number of pages of unfinished runs that one request inspects: some 100,000 runs.
const MAX_PAGES: u32 = 2_000;

/// The oldest supported version of Postgres.
const OLDEST_VERSION: u32 = 150_000;

/// The largest difference between clocks that is not a fault.
const MAX_SKEW: TimeDelta = TimeDelta::seconds(5);

/// A transaction that is open for longer keeps the database from removing old rows.
const MAX_TRANSACTION: TimeDelta = TimeDelta::minutes(5);

/// How long before its end a worker's token is a finding: a pool whose token has expired leases nothing and raises no alert.
const TOKEN_NOTICE: TimeDelta = TimeDelta::days(14);

/// The maximum number of expiring tokens that are listed.
const MAX_TOKENS: u32 = 20;

/// The result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The check found no problem.
    Ok,
    /// The check found a problem.
    Wrong,
}

/// One check and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckView {
    /// The name of the check.
    pub name: String,
    /// Whether something is wrong.
    pub verdict: Verdict,
    /// The result for people.
    pub message: String,
    /// Advice, if something is wrong.
    pub advice: Option<String>,
    /// The run it is about, if it is about one.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
}

/// The results of all checks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportView {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// The time of the checks.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub now: Instant,
    /// Every check that was made.
    pub checks: Vec<CheckView>,
    /// Whether every unfinished run was inspected.
    pub complete: bool,
    /// The repairs that this request made, if it asked for repairs.
    #[serde(default)]
    pub repaired: Vec<CheckView>,
}

impl CheckView {
    /// A check with its result, and with advice if something is wrong.
    pub fn new(name: &str, ok: bool, message: String, advice: &str) -> Self {
        let (verdict, advice) = if ok { (Verdict::Ok, None) } else { (Verdict::Wrong, Some(advice.into())) };
        Self { name: name.into(), verdict, message, advice, run: None }
    }

    fn found(finding: &Finding) -> Self {
        let (message, advice) = words(finding);
        let run = finding.run;
        Self { run, ..Self::new(finding.fault.name(), false, message, advice) }
    }
}

/// The meaning of a finding, and advice.
fn words(finding: &Finding) -> (String, &'static str) {
    let (count, of) = (finding.count, finding.run.map(|run| format!(" of run {run}")).unwrap_or_default());
    let since = finding.since.map(|since| format!(", since {}", since.format("%Y-%m-%d %H:%M:%SZ")));
    let since = since.unwrap_or_default();
    const SWEEP: &str =
        "check that the scheduler calls the sweep every minute; `ebb doctor --repair` does its work once";
    const REPAIR: &str = "`ebb doctor --repair` repairs it; the sweep does so by itself within minutes";
    match finding.fault {
        Fault::OverdueTimers => (format!("{count} timers are overdue{since}"), SWEEP),
        Fault::UnsentMessages => (
            format!("{count} messages are committed but not published{since}"),
            "check that the bus is reachable and the sweep runs; `ebb doctor --repair` publishes them",
        ),
        Fault::OverdueRechecks => (format!("{count} runs are overdue for a recheck{since}"), SWEEP),
        Fault::DeadWorkers => (
            format!("{count} attempts are held by dead workers{since}"),
            "check that the scheduler calls the sweep every minute; it takes over the attempts of dead workers",
        ),
        Fault::DeadLetters => (
            format!("{count} messages could not be processed{since}"),
            "`ebb dead-letters` lists them; replay or discard each",
        ),
        Fault::OrphanedTimers => (format!("{count} timers{of} wait for nothing{since}"), REPAIR),
        Fault::WrongCounts => (format!("the task counts{of} are wrong{since}"), REPAIR),
        Fault::NotEnded => (format!("all tasks{of} have ended but the run has not{since}"), REPAIR),
        Fault::UnclaimedTasks => {
            (format!("{count} tasks{of} are dispatched but no worker took them{since}"), NO_WORKER)
        }
        Fault::AtRest => {
            (format!("{count} tasks{of} are not started and nothing will start them{since}"), REPAIR)
        }
        Fault::NoRecheck => (format!("no recheck is scheduled{of}{since}"), REPAIR),
        Fault::Stalled => (
            format!("the run{of} cannot continue{since}"),
            "`ebb explain RUN` shows why; cancel it, or repair it with `ebb doctor --repair`",
        ),
        Fault::Unusable => (
            format!("this release cannot use the version{of}, so the run cannot continue"),
            "deploy a release that knows its definition (the log has the error); the run then continues by itself within \
             ten minutes",
        ),
    }
}

const NO_WORKER: &str =
    "check that a worker serves their queue; `ebb doctor --repair` publishes their messages again";

/// Checks the database, the bus and every unfinished run.
pub async fn inspect(api: &Api, caller: &Caller) -> Result<ReportView, Problem> {
    let (runtime, asked) = (&api.app.runtime, api.app.now());
    let health = api.reader(caller).platform(Read)?.health().await?;
    let now = api.app.now();
    let mut checks = of_database(&health, asked, now);
    checks.push(match runtime.bus().ping().await {
        Ok(()) => CheckView::new("bus", true, "it is reachable".into(), ""),
        Err(problem) => {
            CheckView::new("bus", false, problem.to_string(), "check that it runs and is reachable")
        }
    });
    let who = format!("you are {} in tenant {}", caller.name, caller.tenant.0);
    checks.push(CheckView::new("identity", true, who, ""));
    checks.extend(of_files(api, caller, error::MAX_PROBLEMS));
    let expiring = api.accounts.expiring_worker_tokens(now, TOKEN_NOTICE, MAX_TOKENS).await?;
    checks.extend(expiring.iter().map(of_token));
    let (findings, next) = runtime.repairs().inspect(None, MAX_PAGES).await.map_err(error::runtime)?;
    checks.extend(findings.iter().map(CheckView::found));
    if findings.is_empty() {
        checks.push(CheckView::new("runs", true, "nothing is stuck, lost or overdue".into(), ""));
    }
    let ok = checks.iter().all(|check| check.verdict == Verdict::Ok);
    Ok(ReportView { ok, now, checks, complete: next.is_none(), repaired: Vec::new() })
}

/// What is wrong with the files that `ebb dev` loads, for callers who may read everything: at most `limit` problems, and how
/// many more there are.
pub fn of_files(api: &Api, caller: &Caller, limit: usize) -> Vec<CheckView> {
    if api.reader(caller).platform(Read).is_err() {
        return Vec::new();
    }
    let advice = "correct the file; until then, active versions of workflows stay in place";
    let shown = Diagnostic::first(api.app.file_problems.current(), limit);
    let check = |problem: &Diagnostic| CheckView::new("definitions", false, problem.to_string(), advice);
    shown.iter().map(check).collect()
}

/// A worker's token that is about to expire.
fn of_token((name, expires_at): &(String, Instant)) -> CheckView {
    let message = format!("`{name}` expires on {}", expires_at.format("%Y-%m-%d %H:%M:%SZ"));
    let advice = "create its successor with `ebb tokens create NAME --role worker --days 366` and give it to the workers; their \
                  guide has the steps";
    CheckView::new("worker token", false, message, advice)
}

/// Checks the database, which was asked and answered at these times by the clock of this process.
fn of_database(health: &Health, asked: Instant, now: Instant) -> Vec<CheckView> {
    let Health { version, connections, max_connections, .. } = *health;
    let message = format!("Postgres {}.{}", version / 10_000, version % 10_000);
    let server =
        CheckView::new("database", version >= OLDEST_VERSION, message, "Ebbflow needs Postgres 15 or later");
    let current = health.schema_is_current;
    let message = if current { "the schema is current" } else { "the schema is that of another version" };
    let advice = "bring the database up to date, or deploy the newest program everywhere";
    let schema = CheckView::new("migrations", current, message.into(), advice);
    let skew = model::clock::difference(health.clock, asked..=now);
    let message =
        format!("the database's clock differs from this server's by {} ms", skew.num_milliseconds());
    let clock =
        CheckView::new("clock", skew <= MAX_SKEW, message, "synchronize the clocks of both machines by NTP");
    let message = format!("{connections} of {max_connections} in use");
    let advice = "lower EBB_DATABASE_CONNECTIONS or the number of instances, or raise max_connections";
    let connections = CheckView::new("connections", connections * 10 < max_connections * 9, message, advice);
    let oldest = health.oldest_transaction.map(|since| now - since);
    let message =
        oldest.map_or("none is open".into(), |age| format!("the oldest is open for {} s", age.num_seconds()));
    let advice = "find it in pg_stat_activity and end it; it keeps the database from removing old rows";
    let is_short = oldest.is_none_or(|age| age <= MAX_TRANSACTION);
    let transactions = CheckView::new("transactions", is_short, message, advice);
    let message = match health.forbidden.as_slice() {
        [] => "every table can be read and written".to_owned(),
        forbidden => format!("no access to {}", forbidden.join(", ")),
    };
    let advice = "grant select, insert, update and delete on them to the database user";
    let permissions = CheckView::new("permissions", health.forbidden.is_empty(), message, advice);
    vec![server, schema, clock, connections, transactions, permissions]
}

pub(crate) async fn get_report(State(api): State<Api>, caller: Caller) -> Result<Json<ReportView>, Problem> {
    inspect(&api, &caller).await.map(Json)
}

/// Repairs what can be repaired without a person, and checks again. Doing it again changes nothing.
pub(crate) async fn post_repair(State(api): State<Api>, caller: Caller) -> Result<Json<ReportView>, Problem> {
    let runtime = &api.app.runtime;
    let (findings, _) = runtime.repairs().inspect(None, MAX_PAGES).await.map_err(error::runtime)?;
    let repaired = runtime.repairs().repair(&findings).await.map_err(error::runtime)?;
    tracing::info!("{} asked for repairs: {} of {} done", caller.name, repaired.len(), findings.len());
    let report = inspect(&api, &caller).await?;
    Ok(Json(ReportView { repaired: repaired.iter().map(CheckView::found).collect(), ..report }))
}
