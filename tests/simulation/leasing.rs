//! Workers outside, which lease tasks: what each of them does next, and what the server does for it, as the API does.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use chrono::TimeDelta;
use host::App;
use model::{
    Abilities, Child, Failure, Instant, Labels, RemoteFacts, TaskKey, TenantId, WorkerFacts, WorkerId,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use runtime::{OfferedTask, Result, Wanted};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::reports::{self, ReportChecks, Reporter};
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
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Leased {
    pub(crate) attempt: Attempt,
    pub(crate) child: Option<Child>,
    takes: TimeDelta,
    pub(crate) result: std::result::Result<Value, Failure>,
    /// How its failure is recorded, if it fails.
    pub(crate) recorded: Option<Failure>,
}

/// What a worker asks the server for.
#[derive(Clone, PartialEq, Debug)]
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
    /// What it sends once more although it was accepted, about attempts that it ended.
    again: VecDeque<Request>,
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
            again: VecDeque::new(),
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
        let at_once = self.draining || !self.unknown.is_empty() || !self.again.is_empty();
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
        if let Some(accepted) = self.again.front() {
            return Some(accepted.clone());
        }
        if let Some(ended) = self.works.values().find(|work| work.ends_at <= now) {
            return Some(Request::Report(ended.leased.clone()));
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

    /// Whether it waits for the response to a request that was accepted before.
    pub(crate) fn repeats(&self) -> bool {
        self.asked.as_ref().is_some_and(|(request, _)| self.again.front() == Some(request))
    }

    /// Takes the response to its request; none if it was lost, or the server failed.
    pub(crate) fn answered(&mut self, now: Instant, response: Option<Response>) {
        let repeats = self.repeats();
        let Some((request, before)) = self.asked.take() else { return };
        if response.is_none() {
            self.quiet_until = self.quiet_until.max(now + TimeDelta::seconds(self.rng.random_range(1..10)));
        }
        if repeats {
            if response.is_some() {
                self.again.pop_front();
            }
            return;
        }
        match (request, response) {
            (Request::Lease(_), Some(Response::Leased(all))) => {
                all.into_iter().for_each(|leased| self.begin(leased, now));
            }
            // It may have been given tasks.
            (Request::Lease(_), _) => self.doubt(now),
            (Request::Heartbeat, Some(Response::Held(held))) => self.compare(&before, &held),
            (Request::Report(leased), Some(response)) => {
                let attempt = leased.attempt;
                self.ended(attempt, Request::Report(leased), &response);
            }
            (Request::Release(attempt, reason), Some(response)) => {
                self.unknown.retain(|unknown| *unknown != attempt);
                self.ended(attempt, Request::Release(attempt, reason), &response);
            }
            (Request::Checkpoint(leased), Some(Response::Refused)) => {
                drop(self.works.remove(&leased.attempt))
            }
            (Request::Goodbye, Some(Response::Accepted)) => self.is_gone = true,
            (Request::Goodbye, Some(_)) => self.doubt(now),
            (
                Request::Heartbeat
                | Request::Report(_)
                | Request::Release(..)
                | Request::Checkpoint(_)
                | Request::Goodbye,
                _,
            ) => {}
        }
    }

    /// It reported the end of an attempt, or released it. What was accepted it may send once more, and its checkpoint, too.
    fn ended(&mut self, attempt: Attempt, request: Request, response: &Response) {
        let saved = self.works.remove(&attempt).filter(|work| work.saved);
        if !matches!(response, Response::Accepted) {
            return;
        }
        let checkpoint = saved.map(|work| Request::Checkpoint(work.leased));
        for accepted in [Some(request), checkpoint].into_iter().flatten() {
            if self.rng.random_bool(0.2) {
                self.again.push_back(accepted);
            }
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
    let reporter = Reporter { app: &app, worker, checks };
    match request {
        Request::Lease(limit) => lease(&app, identity, limit).await,
        Request::Heartbeat => {
            let holds = workers.heartbeat(worker, None).await?.holds;
            Ok(Response::Held(holds.into_iter().map(|claim| (claim.key, claim.attempt)).collect()))
        }
        Request::Report(leased) => reporter.report(&leased).await,
        Request::Release(attempt, reason) => reporter.release(attempt, reason).await,
        Request::Checkpoint(leased) => reporter.save(&leased, json!({"phase": "half"})).await,
        Request::Goodbye => {
            if !workers.heartbeat(worker, None).await?.holds.is_empty() {
                return Ok(Response::Refused);
            }
            workers.farewell(worker).await?;
            Ok(Response::Accepted)
        }
    }
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
                let attempt = (offered.key, offered.attempt);
                app.runtime.settle(offered.key.run, reports::never_received(attempt, worker)).await?;
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
