//! The facts that a worker reports about itself when it asks for work.

use std::sync::Arc;

use auth::Permission::Work;
use axum::http::StatusCode;
use host::Problem;
use model::{Label, Labels, QueueKind, RemoteFacts, WorkerFacts, WorkerId};
use runtime::Wanted;

use super::{LeaseBody, UsageView, worker_id};
use crate::{Api, Caller};

/// The maximum number of attempts in one lease.
const MAX_LEASED: u32 = 32;

/// The maximum number of attempts that a worker executes at the same time.
const MAX_SLOTS: u32 = 10_000;

/// The maximum number of labels, and of characters of a label's name or value.
const MAX_LABELS: usize = 32;
const MAX_LABEL: usize = 100;

/// The maximum number of task types.
const MAX_TYPES: usize = 100;

/// The longest wait: proxies commonly end a request after a minute.
const MAX_WAIT_SECONDS: u32 = 55;

/// A request for work that makes sense.
pub(super) struct Registration {
    pub(super) worker: WorkerId,
    pub(super) wanted: Wanted,
    pub(super) facts: WorkerFacts,
    pub(super) limit: u32,
    pub(super) wait_seconds: u32,
}

impl Registration {
    /// Reads a request, or says what is wrong with it.
    pub(super) fn read(api: &Api, caller: &Caller, body: LeaseBody) -> Result<Self, Problem> {
        let refuse = |code, words: String| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, words));
        let worker = worker_id(caller, &body.worker)?;
        let limit = body.limit.unwrap_or(1);
        if !(1..=MAX_LEASED).contains(&limit) {
            return refuse("bad_limit", format!("`limit` must be between 1 and {MAX_LEASED}"));
        }
        let slots = body.slots.unwrap_or(limit);
        if !(1..=MAX_SLOTS).contains(&slots) {
            return refuse("bad_slots", format!("`slots` must be between 1 and {MAX_SLOTS}"));
        }
        let wait_seconds = body.wait_seconds.unwrap_or(0);
        if wait_seconds > MAX_WAIT_SECONDS {
            return refuse("bad_wait", format!("`wait_seconds` must be between 0 and {MAX_WAIT_SECONDS}"));
        }
        if body.queue.is_empty() || body.queue.chars().count() > MAX_LABEL {
            return refuse("bad_queue", format!("`queue` has 1 to {MAX_LABEL} characters"));
        }
        if api.access.queues().fixed_kind(&body.queue) == Some(QueueKind::Service) {
            let words = format!(
                "workers do not lease from the queue `{}`, whose tasks a service executes: name a queue of the kind `pool`",
                body.queue
            );
            return refuse("bad_queue", words);
        }
        if body.labels.len() > MAX_LABELS || !body.labels.iter().all(is_short) {
            let words = format!(
                "`labels` has at most {MAX_LABELS} entries, with names and values of at most {MAX_LABEL} characters"
            );
            return refuse("bad_labels", words);
        }
        if [&body.host, &body.version].into_iter().flatten().any(|text| text.chars().count() > MAX_LABEL) {
            let words = format!("`host` and `version` have at most {MAX_LABEL} characters");
            return refuse("bad_worker", words);
        }
        let types = body.types.as_deref().unwrap_or_default();
        if types.len() > MAX_TYPES || types.iter().any(|name| name.chars().count() > MAX_LABEL) {
            let words =
                format!("`types` has at most {MAX_TYPES} names of at most {MAX_LABEL} characters each");
            return refuse("bad_types", words);
        }
        let remote = remote(caller, &body, slots)?;
        let (wanted, facts) = (wanted(caller, &body, &remote), facts(api, &body, remote));
        Ok(Self { worker, wanted, facts, limit, wait_seconds })
    }
}

fn is_short((name, value): (&String, &Label)) -> bool {
    let short = |text: &str| text.chars().count() <= MAX_LABEL;
    short(name) && !matches!(value, Label::Text(text) if !short(text))
}

fn wanted(caller: &Caller, body: &LeaseBody, remote: &RemoteFacts) -> Wanted {
    let grants = caller.clone();
    Wanted {
        tenant: remote.tenant,
        queue: body.queue.clone(),
        abilities: remote.abilities(),
        may_execute: Arc::new(move |workflow| grants.may(Work, workflow)),
    }
}

fn remote(caller: &Caller, body: &LeaseBody, slots: u32) -> Result<RemoteFacts, Problem> {
    Ok(RemoteFacts {
        tenant: caller.tenant,
        name: body.worker.clone(),
        slots,
        labels: Labels(body.labels.clone()),
        types: body.types.clone(),
        usage: body.usage.map(UsageView::recorded).transpose()?,
    })
}

fn facts(api: &Api, body: &LeaseBody, remote: RemoteFacts) -> WorkerFacts {
    WorkerFacts {
        function: "remote".into(),
        queue: Some(body.queue.clone()),
        host: body.host.clone().unwrap_or_else(|| body.worker.clone()),
        version: body.version.clone().unwrap_or_default(),
        since: api.app.now(),
        breakers: Vec::new(),
        remote: Some(remote),
    }
}
