//! Workers outside, which lease tasks: what each of them does next, and what the server does for it, as the API does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chrono::TimeDelta;
use engine::Command;
use host::App;
use model::{
    Abilities, Child, Failure, Instant, Labels, RemoteFacts, TaskKey, TenantId, WorkerFacts, WorkerId,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use runtime::{OfferedTask, Result, Settled, Wanted};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::reports::{self, ReportChecks};
use crate::script::{self, Scripted};
use crate::workflows::LEASED_QUEUE;

/// How many attempts a worker runs at the same time.
const SLOTS: u32 = 2;

const HEARTBEAT_INTERVAL: TimeDelta = TimeDelta::seconds(10);

/// How many heartbeats follow the loss of a response.
const DOUBTFUL_HEARTBEATS: u32 = 2;

/// Why attempts are handed back: the first two may be repeated, whatever their task says.
pub(crate) const NEVER_RECEIVED: &str = "its worker never received it";
pub(crate) const SAVED: &str = "its worker drains, and saved a checkpoint";
const UNSAVED: &str = "its worker drains";

/// An attempt as worker and server name it.
pub(crate) type Attempt = (TaskKey, u32);

/// An attempt that a worker was given, and what it will do.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    pub(crate) attempt: Attempt,
    pub(crate) child: Option<Child>,
    takes: TimeDelta,
    pub(crate) result: std::result::Result<Value, Failure>,
    /// How its failure is recorded, if it fails.
    pub(crate) recorded: Option<Failure>,
}

/// What a worker asks the server for.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Lease(u32),
    Heartbeat,
    Report(Leased),
    Release(Attempt, &'static str),
    Checkpoint(Leased),
    Goodbye,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease(limit) => write!(f, "leases up to {limit}"),
            Self::Heartbeat => write!(f, "sends a heartbeat"),
            Self::Report(Leased { attempt: (key, attempt), .. }) => {
                write!(f, "reports attempt {attempt} of task {} of {}", key.task.0, key.run)
            }
            Self::Release((key, attempt), reason) => {
                write!(f, "releases attempt {attempt} of task {} of {}: {reason}", key.task.0, key.run)
            }
            Self::Checkpoint(_) => write!(f, "saves a checkpoint"),
            Self::Goodbye => write!(f, "says goodbye"),
        }
    }
}

/// What the server responds.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Leased(Vec<Leased>),
    Held(Vec<Attempt>),
    Accepted,
    Refused,
}

/// An attempt that a worker runs.
struct Work {
    leased: Leased,
    ends_at: Instant,
    /// When it saves a checkpoint, if it has not.
    saves_at: Option<Instant>,
    /// Whether it tried to save one.
    saved: bool,
}

/// Who a worker is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) number: u64,
    pub(crate) tenant: TenantId,
}

impl Identity {
    pub(crate) fn worker(self) -> WorkerId {
        WorkerId(Uuid::from_u128((1 << 100) + u128::from(self.number)))
    }
}

/// A worker outside. It makes one request at a time.
pub(crate) struct RemoteWorker {
    pub(crate) identity: Identity,
    rng: StdRng,
    works: BTreeMap<Attempt, Work>,
    /// Attempts that only the server knows.
    unknown: Vec<Attempt>,
    /// A report that it sends once more.
    again: Option<Leased>,
    /// The request whose response it waits for, and the attempts that it held when it made it.
    asked: Option<(Request, Vec<Attempt>)>,
    doubtful: u32,
    lease_at: Instant,
    heartbeat_at: Instant,
    /// It does nothing before.
    quiet_until: Instant,
    draining: bool,
    pub(crate) is_gone: bool,
}

impl RemoteWorker {
    pub(crate) fn new(identity: Identity, seed: u64, now: Instant) -> Self {
        Self {
            identity,
            rng: StdRng::seed_from_u64(seed ^ (identity.number << 32)),
            works: BTreeMap::new(),
            unknown: Vec::new(),
            again: None,
            asked: None,
            doubtful: 0,
            lease_at: now,
            heartbeat_at: now,
            quiet_until: now,
            draining: false,
            is_gone: false,
        }
    }

    /// It stands still until then: its process was stopped, and continues.
    pub(crate) fn stand_still(&mut self, until: Instant) {
        self.quiet_until = until;
    }

    /// It takes no more tasks, hands back those that it runs, and leaves.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// When it acts next; none while it waits for a response.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.asked.is_some() {
            return None;
        }
        let at_once = self.draining || !self.unknown.is_empty() || self.again.is_some();
        let mut due: Vec<Instant> = at_once.then_some(self.quiet_until).into_iter().collect();
        due.extend(self.works.values().flat_map(|work| [Some(work.ends_at), work.saves_at]).flatten());
        due.extend(self.sends_heartbeats().then_some(self.heartbeat_at));
        due.extend(self.has_room().then_some(self.lease_at));
        due.into_iter().min().map(|at| at.max(self.quiet_until))
    }

    fn sends_heartbeats(&self) -> bool {
        !self.works.is_empty() || self.doubtful > 0
    }

    fn has_room(&self) -> bool {
        (self.works.len() as u32) < SLOTS && !self.draining
    }

    /// Makes its next request.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Request> {
        let request = self.wanted(now)?;
        match &request {
            Request::Lease(_) => self.lease_at = now + TimeDelta::seconds(self.rng.random_range(2..30)),
            Request::Heartbeat => self.heartbeat_at = now + HEARTBEAT_INTERVAL,
            Request::Checkpoint(leased) => {
                if let Some(work) = self.works.get_mut(&leased.attempt) {
                    (work.saved, work.saves_at) = (true, None);
                }
            }
            Request::Report(_) | Request::Release(..) | Request::Goodbye => {}
        }
        self.asked = Some((request.clone(), self.works.keys().copied().collect()));
        Some(request)
    }

    fn wanted(&self, now: Instant) -> Option<Request> {
        if self.next_at().is_none_or(|at| at > now) {
            return None;
        }
        if let Some(unknown) = self.unknown.first() {
            return Some(Request::Release(*unknown, NEVER_RECEIVED));
        }
        let ended = self.works.values().find(|work| work.ends_at <= now).map(|work| &work.leased);
        if let Some(leased) = self.again.as_ref().or(ended) {
            return Some(Request::Report(leased.clone()));
        }
        if self.sends_heartbeats() && self.heartbeat_at <= now {
            return Some(Request::Heartbeat);
        }
        if let Some(work) = self.works.values().find(|work| work.saves_at.is_some_and(|at| at <= now)) {
            return Some(Request::Checkpoint(work.leased.clone()));
        }
        match self.works.first_key_value() {
            Some((attempt, work)) if self.draining => {
                Some(Request::Release(*attempt, if work.saved { SAVED } else { UNSAVED }))
            }
            None if self.draining => Some(Request::Goodbye),
            _ => Some(Request::Lease(SLOTS - self.works.len() as u32)),
        }
    }

    /// Whether it waits for the response to a report that was accepted before.
    pub(crate) fn repeats_a_report(&self) -> bool {
        let again = self.again.as_ref().map(|leased| leased.attempt);
        matches!(&self.asked, Some((Request::Report(leased), _)) if again == Some(leased.attempt))
    }

    /// Takes the response to its request; none if it was lost, or the server failed.
    pub(crate) fn answered(&mut self, now: Instant, response: Option<Response>) {
        let Some((request, before)) = self.asked.take() else { return };
        if response.is_none() {
            self.quiet_until = self.quiet_until.max(now + TimeDelta::seconds(self.rng.random_range(1..10)));
        }
        match (request, response) {
            (Request::Lease(_), Some(Response::Leased(all))) => {
                all.into_iter().for_each(|leased| self.begin(leased, now));
            }
            // It may have been given tasks.
            (Request::Lease(_), _) => self.doubt(now),
            (Request::Heartbeat, Some(Response::Held(held))) => self.compare(&before, &held),
            (Request::Report(leased), Some(response)) => {
                let accepted = matches!(response, Response::Accepted);
                let repeats =
                    accepted && self.works.contains_key(&leased.attempt) && self.rng.random_bool(0.2);
                self.works.remove(&leased.attempt);
                self.again = repeats.then_some(leased);
            }
            (Request::Report(_), None) => {}
            (Request::Release(attempt, _), Some(_)) => {
                self.works.remove(&attempt);
                self.unknown.retain(|unknown| *unknown != attempt);
            }
            (Request::Checkpoint(leased), Some(Response::Refused)) => {
                drop(self.works.remove(&leased.attempt))
            }
            (Request::Goodbye, Some(Response::Accepted)) => self.is_gone = true,
            (Request::Goodbye, Some(_)) => self.doubt(now),
            (Request::Heartbeat | Request::Release(..) | Request::Checkpoint(_) | Request::Goodbye, _) => {}
        }
    }

    fn begin(&mut self, leased: Leased, now: Instant) {
        let saves_at = self.rng.random_bool(0.3).then(|| now + leased.takes / 2);
        let work = Work { ends_at: now + leased.takes, saves_at, saved: false, leased };
        self.works.insert(work.leased.attempt, work);
    }

    fn doubt(&mut self, now: Instant) {
        (self.doubtful, self.heartbeat_at) = (DOUBTFUL_HEARTBEATS, now);
    }

    /// Stops what was taken away, and releases what it does not know.
    fn compare(&mut self, before: &[Attempt], held: &[Attempt]) {
        self.doubtful = self.doubtful.saturating_sub(1);
        for lost in before.iter().filter(|attempt| !held.contains(attempt)) {
            self.works.remove(lost);
        }
        let unknown = held.iter().filter(|attempt| !self.works.contains_key(attempt));
        self.unknown = unknown.copied().collect();
    }
}

/// Serves a request, as the API does.
pub(crate) async fn serve(
    app: App,
    identity: Identity,
    request: Request,
    checks: ReportChecks,
) -> Result<Response> {
    let (workers, worker) = (app.runtime.workers(), identity.worker());
    match request {
        Request::Lease(limit) => lease(&app, identity, limit).await,
        Request::Heartbeat => {
            let holds = workers.heartbeat(worker, None).await?.holds;
            Ok(Response::Held(holds.into_iter().map(|claim| (claim.key, claim.attempt)).collect()))
        }
        Request::Report(leased) => reports::serve(&app, worker, leased, checks).await,
        Request::Release((key, attempt), reason) => {
            let hand_back = match reason {
                NEVER_RECEIVED => never_received(key, attempt, worker),
                _ => workers.hand_back(key, attempt, worker, reason.to_owned()).await?,
            };
            Ok(accepted(app.runtime.settle(key.run, hand_back).await?))
        }
        Request::Checkpoint(leased) => {
            if !reports::is_held(&app, worker, &leased).await? {
                return Ok(Response::Refused);
            }
            let (key, attempt) = leased.attempt;
            workers.keep_checkpoint(key, attempt, json!({"phase": "half"})).await?;
            Ok(Response::Accepted)
        }
        Request::Goodbye => {
            if !workers.heartbeat(worker, None).await?.holds.is_empty() {
                return Ok(Response::Refused);
            }
            workers.farewell(worker).await?;
            Ok(Response::Accepted)
        }
    }
}

fn accepted(settled: Settled) -> Response {
    if settled == Settled::Applied { Response::Accepted } else { Response::Refused }
}

fn never_received(TaskKey { task, .. }: TaskKey, attempt: u32, worker: WorkerId) -> Command {
    Command::HandBack { task, attempt, worker, reason: NEVER_RECEIVED.to_owned(), saved: true }
}

async fn lease(app: &App, identity: Identity, limit: u32) -> Result<Response> {
    let (workers, worker) = (app.runtime.workers(), identity.worker());
    workers.check_in(worker, facts(identity, app.now())).await?;
    let wanted = Wanted {
        tenant: identity.tenant,
        queue: LEASED_QUEUE.to_owned(),
        abilities: Abilities::default(),
        may_execute: Arc::new(|_| true),
    };
    let offered = workers.leases().reserve(&wanted, worker, limit).await?;
    let attempts: Vec<Attempt> = offered.iter().map(|offered| (offered.key, offered.attempt)).collect();
    let claimed = workers.leases().claim(worker, &attempts).await;
    let mut all = Vec::new();
    for (offered, claimed) in offered.into_iter().zip(claimed) {
        match claimed {
            Ok(true) => all.extend(leased(app, offered).await?),
            Ok(false) => {}
            Err(_) => {
                let (key, attempt) = (offered.key, offered.attempt);
                app.runtime.settle(key.run, never_received(key, attempt, worker)).await?;
            }
        }
    }
    Ok(Response::Leased(all))
}

async fn leased(app: &App, offered: OfferedTask) -> Result<Option<Leased>> {
    let OfferedTask { key, attempt, version, child, .. } = offered;
    let Some(graph) = app.runtime.graph(version).await? else { return Ok(None) };
    let (spec, name) = (graph.spec_at(key.task, child), graph.name_at(key.task, child));
    let Scripted { takes, result, .. } = script::scripted(&spec.config, &name, attempt);
    let recorded = result.clone().err().map(|failure| runtime::classify(spec, failure));
    Ok(Some(Leased { attempt: (key, attempt), child, takes, result, recorded }))
}

fn facts(Identity { number, tenant }: Identity, since: Instant) -> WorkerFacts {
    let name = format!("outside-{number}");
    let remote =
        RemoteFacts { tenant, name, slots: SLOTS, labels: Labels::default(), types: None, usage: None };
    WorkerFacts {
        function: "remote".into(),
        queue: Some(LEASED_QUEUE.into()),
        host: "outside".into(),
        version: "1".into(),
        since,
        breakers: Vec::new(),
        remote: Some(remote),
    }
}
