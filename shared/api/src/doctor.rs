//! How Ebbflow is: what works, what should not be, and what to do about it.

use axum::Json;
use axum::extract::State;
use chrono::TimeDelta;
use host::Problem;
use model::{Instant, RunId};
use serde::{Deserialize, Serialize};
use store::{Fault, Finding, Health};

use crate::{Api, Caller, error};

/// So many pages of unfinished runs are looked through for one answer: some 100,000 runs.
const LOOKS: u32 = 2_000;

/// The oldest Postgres that will do.
const OLDEST_VERSION: u32 = 150_000;

/// Clocks that differ by more are wrong.
const SKEW: TimeDelta = TimeDelta::seconds(5);

/// A transaction that is open for longer keeps the database from cleaning up.
const LONG_TRANSACTION: TimeDelta = TimeDelta::minutes(5);

/// How something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckView {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen, in words.
    pub says: String,
    /// What to do about it, where it is not as it should be.
    pub advice: Option<String>,
    /// The run that it is about, where it is about one.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
}

/// How Ebbflow is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportView {
    /// Whether everything is as it should be.
    pub ok: bool,
    /// What time it is here.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub now: Instant,
    /// What was looked at.
    pub checks: Vec<CheckView>,
    /// Whether every unfinished run was inspected.
    pub complete: bool,
    /// What was put right just now, if that was asked for.
    #[serde(default)]
    pub repaired: Vec<CheckView>,
}

impl CheckView {
    /// Something that is as it should be, or not: then with what to do.
    pub fn new(name: &str, ok: bool, says: String, advice: &str) -> Self {
        let (verdict, advice) = if ok { (Verdict::Ok, None) } else { (Verdict::Wrong, Some(advice.into())) };
        Self { name: name.into(), verdict, says, advice, run: None }
    }

    fn found(finding: &Finding) -> Self {
        let (says, advice) = words(finding);
        let run = finding.run;
        Self { run, ..Self::new(finding.fault.name(), false, says, advice) }
    }
}

/// What a finding means, and what to do about it.
fn words(finding: &Finding) -> (String, &'static str) {
    let (count, of) = (finding.count, finding.run.map(|run| format!(" of run {run}")).unwrap_or_default());
    let since = finding.since.map(|since| format!(", since {}", since.format("%Y-%m-%d %H:%M:%SZ")));
    let since = since.unwrap_or_default();
    const SWEEP: &str =
        "see whether the scheduler calls the sweep every minute; `ebb doctor --repair` does it once";
    const REPAIR: &str = "`ebb doctor --repair` puts it right; the sweep does so by itself within minutes";
    match finding.fault {
        Fault::OverdueTimers => (format!("{count} timers are overdue{since}"), SWEEP),
        Fault::UnsentMessages => (
            format!("{count} messages are committed but not published{since}"),
            "see whether the bus is there and the sweep runs; `ebb doctor --repair` publishes them",
        ),
        Fault::OverdueRechecks => (format!("{count} runs are overdue for a recheck{since}"), SWEEP),
        Fault::DeadWorkers => (
            format!("{count} attempts are held by dead workers{since}"),
            "see whether the scheduler calls the sweep every minute: it gives each a last chance, then takes them over",
        ),
        Fault::DeadLetters => (
            format!("{count} messages could not be processed{since}"),
            "`ebb dead-letters` lists them; replay or discard each",
        ),
        Fault::OrphanedTimers => (format!("{count} timers{of} wait for nothing{since}"), REPAIR),
        Fault::WrongCounts => (format!("the task counts{of} are wrong{since}"), REPAIR),
        Fault::NotEnded => (format!("all tasks{of} have ended but the run has not{since}"), REPAIR),
        Fault::UnheardTasks => {
            (format!("{count} tasks{of} are dispatched but no worker took them{since}"), UNHEARD)
        }
        Fault::AtRest => {
            (format!("{count} tasks{of} are not started and nothing will start them{since}"), REPAIR)
        }
        Fault::NoRecheck => (format!("no recheck is scheduled{of}{since}"), REPAIR),
        Fault::Stalled => (
            format!("the run{of} cannot continue{since}"),
            "`ebb explain RUN` says where it is; cancel it, or repair with `ebb doctor --repair`",
        ),
        Fault::Unusable => (
            format!("this release cannot use the version{of}, so the run cannot continue"),
            "deploy the program that knows its definition (the log says what is wrong with it): the run goes on by \
             itself within ten minutes",
        ),
    }
}

const UNHEARD: &str =
    "see whether an executor serves their queue; `ebb doctor --repair` sends their messages again";

/// Looks at everything.
pub async fn look(api: &Api, caller: &Caller) -> Result<ReportView, Problem> {
    let (runtime, now) = (&api.app.runtime, api.app.now());
    let health = runtime.store().health().await.map_err(error::store)?;
    let mut checks = of_database(&health, now);
    checks.push(match runtime.bus().ping().await {
        Ok(()) => CheckView::new("bus", true, "it answers".into(), ""),
        Err(problem) => {
            CheckView::new("bus", false, problem.to_string(), "see whether it is there and reachable")
        }
    });
    let who = format!("you are {} in tenant {}", caller.name, caller.tenant.0);
    checks.push(CheckView::new("identity", true, who, ""));
    let (findings, next) = runtime.repairs().inspect(None, LOOKS).await.map_err(error::runtime)?;
    checks.extend(findings.iter().map(CheckView::found));
    if findings.is_empty() {
        checks.push(CheckView::new("runs", true, "nothing is stuck, lost or overdue".into(), ""));
    }
    let ok = checks.iter().all(|check| check.verdict == Verdict::Ok);
    Ok(ReportView { ok, now, checks, complete: next.is_none(), repaired: Vec::new() })
}

fn of_database(health: &Health, now: Instant) -> Vec<CheckView> {
    let version = health.version.map(|version| {
        let says = format!("Postgres {}.{}", version / 10_000, version % 10_000);
        CheckView::new("database", version >= OLDEST_VERSION, says, "Ebbflow needs Postgres 15 or later")
    });
    let says =
        if health.schema_is_current { "the schema is current" } else { "the schema is another version's" };
    let advice = "bring the database up to date, or deploy the newest program everywhere";
    let schema = CheckView::new("migrations", health.schema_is_current, says.into(), advice);
    let clock = health.clock.map(|clock| {
        let skew = (clock - now).abs();
        let says = format!("the database's clock differs from ours by {} ms", skew.num_milliseconds());
        CheckView::new("clock", skew <= SKEW, says, "let both machines keep time by NTP")
    });
    let connections = health.connections.map(|(used, limit)| {
        let says = format!("{used} of {limit} in use");
        let advice = "lower EBB_DATABASE_CONNECTIONS or the number of instances, or raise max_connections";
        CheckView::new("connections", used * 10 < limit * 9, says, advice)
    });
    let oldest = health.oldest_transaction.map(|since| now - since);
    let says =
        oldest.map_or("none is open".into(), |age| format!("the oldest is open for {} s", age.num_seconds()));
    let advice = "find it in pg_stat_activity and end it: the database cannot clean up behind it";
    let transactions =
        CheckView::new("transactions", oldest.is_none_or(|age| age <= LONG_TRANSACTION), says, advice);
    let says = match health.forbidden.as_slice() {
        [] => "every table can be read and written".to_owned(),
        forbidden => format!("no access to {}", forbidden.join(", ")),
    };
    let advice = "grant select, insert, update and delete on them to the database user";
    let permissions = CheckView::new("permissions", health.forbidden.is_empty(), says, advice);
    version
        .into_iter()
        .chain([schema])
        .chain(clock)
        .chain(connections)
        .chain([transactions, permissions])
        .collect()
}

pub(crate) async fn get_report(State(api): State<Api>, caller: Caller) -> Result<Json<ReportView>, Problem> {
    look(&api, &caller).await.map(Json)
}

/// Puts right what can be put right without a person, and looks again. Asking again changes nothing.
pub(crate) async fn post_repair(State(api): State<Api>, caller: Caller) -> Result<Json<ReportView>, Problem> {
    let runtime = &api.app.runtime;
    let (findings, _) = runtime.repairs().inspect(None, LOOKS).await.map_err(error::runtime)?;
    let repaired = runtime.repairs().repair(&findings).await.map_err(error::runtime)?;
    tracing::info!("{} asked for repairs: {} of {} done", caller.name, repaired.len(), findings.len());
    let report = look(&api, &caller).await?;
    Ok(Json(ReportView { repaired: repaired.iter().map(CheckView::found).collect(), ..report }))
}
