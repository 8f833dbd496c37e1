//! Circuit breakers, one for each server that a tenant calls: after repeated failures a breaker opens and blocks calls for a
//! while, then lets one probe at a time through until one succeeds. A server that is only busy is called less often instead.
//!
//! Failures are counted in each process. An open breaker is a row in the database, which functions reach themselves and
//! `ebb worker` through the API ([`SharedBreakers`]): the processes that call the server see it within a second, one of them
//! probes, and a person can reset it. While the database does not respond, each process has its own: no call waits for it
//! longer than two seconds. While all breakers are closed, a process that calls servers reads once a second, and an idle one
//! never.
//!
//! Invariant: the calls of one tenant never open a breaker of another, nor the failures of one port that of another.

mod shared;
mod state;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use engine::breaker::{self, HOST_FAILURES};
use model::{Breaker, BreakerKey, Clock, Instant, OpenBreaker, Opening, TenantId};
use reqwest::Url;
use tracing::warn;

use crate::log::{Level, Log, Stream};
pub use shared::SharedBreakers;
use state::{Admitted, Blocked, Server};

/// How long what the database said is believed.
const REFRESH_INTERVAL: TimeDelta = TimeDelta::seconds(1);

/// A read or write that takes longer is abandoned, so that no call waits for it.
const DATABASE_TIMEOUT: TimeDelta = TimeDelta::seconds(2);

/// How often blocked calls check whether a probe has ended or a person has reset the breaker.
const POLL_INTERVAL: TimeDelta = TimeDelta::milliseconds(500);

/// The maximum number of servers. Beyond it, those without an open breaker are forgotten, with the failures that were counted. If
/// most breakers are open, so is the half of them that lets calls through first.
const MAX_SERVERS: usize = 10_000;

/// The breakers of all called servers.
#[derive(Default)]
pub struct Breakers {
    servers: Mutex<BTreeMap<BreakerKey, Server>>,
    shared: Option<Shared>,
}

/// The state that processes share.
struct Shared {
    store: Arc<dyn SharedBreakers>,
    /// When it was read last. Locked while it is read: a call that comes meanwhile goes by what was read before.
    read_at: tokio::sync::Mutex<Option<Instant>>,
}

/// The breaker of the server that a tenant's request goes to.
pub(super) fn target(tenant: TenantId, url: &Url) -> BreakerKey {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    BreakerKey::of_host(tenant, &host, url.port_or_known_default().unwrap_or_default())
}

/// What the result of a call tells about the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It responded, even if with a refusal.
    Responded,
    /// It responded that it is busy, and perhaps when to call again.
    Busy(Option<TimeDelta>),
    /// It is unreachable or failing, for this reason.
    Failed(String),
    /// Nothing: the call was dropped.
    Unknown,
}

/// An admitted call. If it is dropped without an outcome, it was abandoned.
pub(super) struct Call<'b> {
    breakers: &'b Breakers,
    target: BreakerKey,
    clock: &'b dyn Clock,
    is_probe: bool,
}

impl Breakers {
    /// Breakers whose state is shared with all processes that have the same database.
    pub fn shared(store: Arc<dyn SharedBreakers>) -> Self {
        let shared = Shared { store, read_at: tokio::sync::Mutex::default() };
        Self { shared: Some(shared), ..Self::default() }
    }

    /// Waits until the breaker of a server admits a call. The attempt's log tells about the wait.
    pub(super) async fn admit<'b>(&'b self, target: BreakerKey, clock: &'b dyn Clock, log: &Log) -> Call<'b> {
        let mut logged = false;
        loop {
            self.refresh(&target, clock).await;
            let admitted = self.with(&target, |server| server.admit(clock.now()));
            let blocked = match admitted {
                Ok(Admitted::Call) => return Call { breakers: self, target, clock, is_probe: false },
                Ok(Admitted::Probe) => match self.take_probe(&target, clock).await {
                    Ok(()) => return Call { breakers: self, target, clock, is_probe: true },
                    Err(until) => Blocked::Open(until),
                },
                Err(blocked) => blocked,
            };
            if !logged {
                let line = format!("waiting: {}", blocked.reason(&target.name));
                log.line(Stream::System, Level::Warning, &line).await;
                logged = true;
            }
            // A probe may end before, or a person may reset the breaker.
            clock.wait_until(blocked.until().min(clock.now() + POLL_INTERVAL)).await;
        }
    }

    /// The open breakers, by tenant, host and port.
    pub(crate) fn open(&self) -> Vec<OpenBreaker> {
        let open = |(target, server): (&BreakerKey, &Server)| {
            let Opening { since, until, .. } = server.open?;
            Some(OpenBreaker { host: target.name.clone(), since, until })
        };
        self.lock().iter().filter_map(open).collect()
    }

    /// Reads what the database says about the servers that were called since the last time, at most once a second. While it
    /// does not respond, what was read last stays.
    async fn refresh(&self, target: &BreakerKey, clock: &dyn Clock) {
        let Some(shared) = &self.shared else { return };
        self.with(target, |server| server.wanted = true);
        let Ok(mut read_at) = shared.read_at.try_lock() else { return };
        let now = clock.now();
        if read_at.is_some_and(|at| now < at + REFRESH_INTERVAL) {
            return;
        }
        *read_at = Some(now);
        let is_wanted = |(key, server): (&BreakerKey, &mut Server)| {
            std::mem::take(&mut server.wanted).then(|| key.clone())
        };
        let wanted: Vec<BreakerKey> = self.lock().iter_mut().filter_map(is_wanted).collect();
        match in_time(clock, shared.store.read(&wanted)).await {
            Ok(found) => {
                let open: BTreeMap<BreakerKey, Opening> = found.into_iter().collect();
                for key in &wanted {
                    self.with(key, |server| server.refresh(open.get(key).copied()));
                }
            }
            Err(error) => {
                warn!("Circuit breakers stay as they are until the database responds: {error}");
            }
        }
    }

    /// Takes the probe of a server, unless another process has it: then it returns when to try again. While the database does not
    /// respond, every process probes by itself.
    async fn take_probe(&self, target: &BreakerKey, clock: &dyn Clock) -> Result<(), Instant> {
        let Some(shared) = &self.shared else { return Ok(()) };
        match in_time(clock, shared.store.take_probe(target)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(open)) => {
                self.with(target, |server| server.learn(Some(open)));
                Err(open.until)
            }
            Err(error) => {
                warn!("Other processes may probe {}, too: the database says: {error}", target.name);
                Ok(())
            }
        }
    }

    /// Opens the breaker of a server. While the database does not respond, it is open here alone.
    async fn trip(&self, target: &BreakerKey, message: &str, clock: &dyn Clock) {
        let message = format!("{HOST_FAILURES} calls in a row failed; the last one: {message}");
        let opened = match &self.shared {
            Some(shared) => in_time(clock, shared.store.open(target, &message)).await.ok(),
            None => None,
        };
        if let Some(open) = opened {
            return self.with(target, |server| server.learn(Some(open)));
        }
        let mut breaker = Breaker::closed(0, target.clone());
        let open = breaker::open_host(&mut breaker, &message, clock.now());
        runtime::log_breaker(&breaker, None);
        self.with(target, |server| server.decide_alone(Some(open)));
    }

    /// Records the result of a probe.
    async fn end_probe(&self, target: &BreakerKey, failed: bool, clock: &dyn Clock) {
        let ended = match &self.shared {
            Some(shared) => in_time(clock, shared.store.end_probe(target, failed)).await.ok(),
            None => None,
        };
        let now = clock.now();
        self.with(target, |server| match ended {
            Some(open) => server.learn(open),
            None => {
                let mut open = server.open.filter(|_| failed);
                open.iter_mut().for_each(|open| breaker::fail_probe(open, now));
                server.decide_alone(open);
            }
        });
    }

    /// Reads or changes what is known of a server. One of which nothing is known is forgotten.
    fn with<T>(&self, target: &BreakerKey, change: impl FnOnce(&mut Server) -> T) -> T {
        let mut servers = self.lock();
        if servers.len() >= MAX_SERVERS && !servers.contains_key(target) {
            make_room(&mut servers);
        }
        let server = servers.entry(target.clone()).or_default();
        let changed = change(server);
        if *server == Server::default() {
            servers.remove(target);
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<BreakerKey, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets at least half of the servers, so that it is long until it has to be done again.
fn make_room(servers: &mut BTreeMap<BreakerKey, Server>) {
    servers.retain(|_, server| server.open.is_some());
    if servers.len() > MAX_SERVERS / 2 {
        let mut by_end: Vec<_> = std::mem::take(servers).into_iter().collect();
        by_end.sort_by_key(|(_, server)| server.open.map(|open| open.until));
        servers.extend(by_end.split_off(by_end.len() - MAX_SERVERS / 2));
    }
}

/// What the database says, if it says it in time.
async fn in_time<T>(clock: &dyn Clock, asked: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::select! {
        biased;
        answer = asked => answer,
        () = clock.wait_until(clock.now() + DATABASE_TIMEOUT) => Err("it does not respond".to_owned()),
    }
}

impl Call<'_> {
    /// Records the outcome of the call. Returns how long to leave the server alone, if it is busy.
    pub(super) async fn finish(mut self, outcome: Outcome) -> Option<TimeDelta> {
        let is_probe = std::mem::take(&mut self.is_probe);
        let (breakers, target, clock) = (self.breakers, &self.target, self.clock);
        if is_probe && outcome != Outcome::Unknown {
            breakers.end_probe(target, matches!(outcome, Outcome::Failed(_)), clock).await;
        }
        match outcome {
            Outcome::Responded => {
                breakers.with(target, Server::responded);
                None
            }
            Outcome::Busy(asked) => {
                Some(breakers.with(target, |server| server.slow_down(asked, clock.now())))
            }
            Outcome::Failed(message) => {
                if !is_probe && breakers.with(target, Server::failed) {
                    breakers.trip(target, &message, clock).await;
                }
                None
            }
            Outcome::Unknown => {
                self.is_probe = is_probe;
                None
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // Another probe may begin at once; where other processes see this one, when its time is over.
        if self.is_probe && self.breakers.shared.is_none() {
            self.breakers.with(&self.target, |server| server.give_up_probe(self.clock.now()));
        }
    }
}

#[cfg(test)]
mod tests;
