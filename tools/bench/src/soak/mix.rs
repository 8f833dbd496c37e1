//! The mixed load: chains, fan-outs, retries, sensors, programs, schedules, and runs that are cancelled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use api::runs::StartBody;
use api::views::RunView;
use ebb::client::{Client, Error};
use model::RunId;
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::workflows::{Written, items};
use crate::world::World;

/// The workflow that only its schedule starts.
pub(super) const SCHEDULED: &str = "soak-scheduled";

/// The workflow whose runs are cancelled.
const CANCELLED: &str = "soak-cancelled";

/// How long a run may be in progress before it is cancelled.
const CANCEL_AFTER: Duration = Duration::from_secs(2);

/// How long a request is repeated while the processes that should respond are being replaced.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// The pause before a request is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The workflows that are started in turn, as often as they are named.
const ROTATION: [&str; 8] = [
    "soak-chain",
    "soak-fan-out",
    "soak-chain",
    "soak-sensor",
    CANCELLED,
    "soak-chain",
    "soak-retry",
    "soak-program",
];

/// What was done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// Runs that the API accepted.
    pub(crate) started: u64,
    /// Runs whose cancellation the API accepted.
    pub(crate) cancelled: u64,
    /// How many processes were killed.
    pub(crate) kills: u64,
    /// Requests repeated, since a process was gone.
    pub(crate) repeated: u64,
}

/// The load, and its requests in progress.
pub(super) struct Mix {
    pub(super) counts: Counts,
    /// How long accepted requests for runs took, since the last sample, in milliseconds.
    pub(super) latencies: Vec<f64>,
    turns: Vec<&'static str>,
    turn: usize,
    starting: JoinSet<Result<Accepted>>,
    cancelling: JoinSet<Result<u64>>,
    to_cancel: VecDeque<(Instant, RunId)>,
    _file: tempfile::NamedTempFile,
}

/// A run that the API accepted.
struct Accepted {
    run: RunView,
    milliseconds: f64,
    repeated: u64,
}

impl Mix {
    /// Registers the workflows; those with programs only for a long soak, since an attempt that dies with its worker takes a
    /// minute.
    pub(super) async fn register(world: &World, with_programs: bool) -> Result<Self> {
        let file = tempfile::NamedTempFile::new()?;
        let path = file.path().to_str().context("the folder for temporary files has a plain name")?;
        world.register(&workflows(path)).await?;
        let is_wanted = |workflow: &&str| with_programs || *workflow != "soak-program";
        Ok(Self {
            counts: Counts::default(),
            latencies: Vec::new(),
            turns: ROTATION.into_iter().filter(is_wanted).collect(),
            turn: 0,
            starting: JoinSet::new(),
            cancelling: JoinSet::new(),
            to_cancel: VecDeque::new(),
            _file: file,
        })
    }

    /// Whether no request is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.starting.is_empty() && self.cancelling.is_empty() && self.to_cancel.is_empty()
    }

    /// Starts the runs that are missing, and cancels those whose time has come.
    pub(super) async fn top_up(&mut self, world: &World, runs: usize) -> Result<()> {
        while let Some(accepted) = self.starting.try_join_next() {
            let Accepted { run, milliseconds, repeated } = accepted??;
            self.counts.started += 1;
            self.counts.repeated += repeated;
            self.latencies.push(milliseconds);
            if run.workflow == CANCELLED {
                self.to_cancel.push_back((Instant::now() + CANCEL_AFTER, run.id));
            }
        }
        while let Some(cancelled) = self.cancelling.try_join_next() {
            self.counts.repeated += cancelled??;
            self.counts.cancelled += 1;
        }
        while let Some((due, run)) = self.to_cancel.front().copied()
            && due <= Instant::now()
        {
            self.to_cancel.pop_front();
            self.cancelling.spawn(cancel(clients(world), run));
        }
        if runs == 0 {
            return Ok(());
        }
        let in_progress = usize::try_from(world.database.unfinished_runs().await?)? + self.starting.len();
        for _ in in_progress..runs {
            let workflow = self.turns[self.turn % self.turns.len()];
            self.turn += 1;
            self.starting.spawn(start(clients(world), workflow));
        }
        Ok(())
    }
}

/// A client of each instance, the next one first.
fn clients(world: &World) -> Vec<Arc<Client>> {
    vec![world.client(), world.client()]
}

/// Starts a run: once, however often the request is repeated.
async fn start(clients: Vec<Arc<Client>>, workflow: &'static str) -> Result<Accepted> {
    let inputs = if workflow == "soak-fan-out" { items(20) } else { Map::new() };
    let body = json!(StartBody { inputs, ..StartBody::default() });
    let key = HeaderValue::from_str(&uuid::Uuid::now_v7().to_string())?;
    let headers = HeaderMap::from_iter([("idempotency-key".parse()?, key)]);
    let (run, milliseconds, repeated) =
        repeat(&clients, &["workflows", workflow, "runs"], &headers, &body).await?;
    Ok(Accepted { run: serde_json::from_value(run)?, milliseconds, repeated })
}

/// Cancels a run. Returns how often the request was repeated.
async fn cancel(clients: Vec<Arc<Client>>, run: RunId) -> Result<u64> {
    let run = run.to_string();
    Ok(repeat(&clients, &["runs", &run, "cancel"], &HeaderMap::new(), &json!({})).await?.2)
}

/// Sends a request to one instance after the other until one accepts it. Returns the response, how long the accepted request
/// took in milliseconds, and how often it was repeated.
async fn repeat(
    clients: &[Arc<Client>],
    path: &[&str],
    headers: &HeaderMap,
    body: &Value,
) -> Result<(Value, f64, u64)> {
    let begun = Instant::now();
    let mut pauses = tokio::time::interval(RETRY_INTERVAL);
    for repeated in 0.. {
        pauses.tick().await;
        let (client, sent) = (&clients[repeated % clients.len()], Instant::now());
        match client.post(path, headers.clone(), body).await {
            Ok(response) => return Ok((response, sent.elapsed().as_secs_f64() * 1e3, repeated as u64)),
            Err(Error::Rejected { status, message, .. }) if status < 500 && status != 429 => {
                anyhow::bail!("{path:?} was rejected with {status}: {message}")
            }
            Err(error) if begun.elapsed() > REQUEST_TIMEOUT => return Err(error.into()),
            Err(_) => {}
        }
    }
    unreachable!("the range has no end")
}

/// The workflows of the load. `path` is a file that exists.
fn workflows(path: &str) -> Vec<Written> {
    let workflow =
        |name: &str, rest: &str| Written { name: name.into(), text: format!("name: {name}\n{rest}") };
    vec![
        workflow(
            "soak-chain",
            "tasks:
  - {name: first, type: noop}
  - {name: say, type: echo, depends_on: [first], config: {text: hello}}
  - {name: nap, type: sleep, depends_on: [say], config: {duration: 2s}}
  - {name: last, type: noop, depends_on: [nap]}
",
        ),
        workflow(
            "soak-fan-out",
            "inputs:
  items: {type: list}
tasks:
  - {name: spread, type: fan_out, for_each: inputs.items, task: {type: echo, config: {text: '{{ item }}'}}}
  - {name: nap, type: sleep, depends_on: [spread], config: {duration: 1s}}
",
        ),
        workflow(
            "soak-sensor",
            &format!(
                "tasks:
  - {{name: there, type: sensor, config: {{interval_seconds: 1, file: {{path: '{path}'}}}}}}
  - {{name: nap, type: sleep, depends_on: [there], config: {{duration: 1s}}}}
"
            ),
        ),
        workflow(CANCELLED, "tasks: [{name: long, type: sleep, config: {duration: 1h}}]\n"),
        workflow(
            "soak-retry",
            "tasks:
  - name: often
    type: flaky
    retry_policy: {max_retries: 20, backoff: constant, initial_delay_seconds: 1}
    config: {probability: 0.3}
",
        ),
        workflow(
            "soak-program",
            "tasks: [{name: run, type: bash, retry_policy: {max_retries: 5}, config: {command: 'echo done'}}]\n",
        ),
        workflow(
            SCHEDULED,
            "schedules: [{name: often, every: 5s, catchup: none}]\ntasks: [{name: only, type: noop}]\n",
        ),
    ]
}
