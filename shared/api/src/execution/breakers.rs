//! The circuit breakers of hosts that the tasks of remote workers call: with these requests, workers share them with each other
//! and with all functions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Breaker, BreakerKey, BreakerKind, Instant, Opening};
use serde::{Deserialize, Serialize};

use super::worker_id;
use crate::{Api, Caller, error, request};

/// The maximum number of hosts in one request.
const MAX_HOSTS: usize = 100;

/// The maximum length of `HOST:PORT`: a name of 253 characters, and a port.
const MAX_HOST: usize = 259;

/// What a worker asks about breakers, or found out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostBreakersBody {
    /// The name of the worker.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// What it asks, or found out.
    pub step: BreakerStep,
    /// The hosts that it is about, each as `HOST:PORT`. At most 100; one, unless the step is `read`.
    #[schemars(length(min = 1, max = 100))]
    pub hosts: Vec<String>,
    /// Why the last call failed, if the step is `open`.
    #[serde(default)]
    #[schemars(length(max = 10_000))]
    pub message: Option<String>,
}

/// What a worker asks about breakers, or found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerStep {
    /// Which of them are open.
    Read,
    /// Calls to the host failed repeatedly: open its breaker.
    Open,
    /// The pause is over: the worker wants to probe the host. It may if the response does not list the host.
    Probe,
    /// The probe succeeded: close the breaker.
    ProbePassed,
    /// The probe failed: block calls again.
    ProbeFailed,
}

/// The breakers among those that are open now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostBreakersView {
    /// One entry for each host to which no call, or only a probe, may go.
    pub items: Vec<HostBreakerView>,
}

/// An open breaker of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostBreakerView {
    /// The host, as `HOST:PORT`.
    pub host: String,
    /// When it opened first.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub since: Instant,
    /// When the pause ends; during a probe, when another one may begin.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub until: Instant,
    /// The length of the pause.
    pub pause_seconds: u32,
    /// Whether the pause is over, and a probe decides what follows.
    pub probing: bool,
}

impl HostBreakerView {
    fn new(host: String, open: Opening) -> Self {
        let Opening { since, until, pause_seconds, probing } = open;
        Self { host, since, until, pause_seconds, probing }
    }

    /// The breaker, as workers know it.
    pub fn opening(&self) -> Opening {
        let Self { since, until, pause_seconds, probing, .. } = *self;
        Opening { since, until, pause_seconds, probing }
    }
}

/// Reads or changes breakers of hosts that the caller's tenant calls.
pub(crate) async fn post_breakers(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<HostBreakersBody>,
) -> Result<Json<HostBreakersView>, Problem> {
    worker_id(&caller, &body.worker)?;
    let keys = keys(&caller, &body)?;
    let breakers = api.app.runtime.slots().breakers();
    let mut items = Vec::new();
    if body.step == BreakerStep::Read {
        let found = breakers.read(&keys).await.map_err(error::runtime)?;
        let open = |Breaker { key, open, .. }| Some(HostBreakerView::new(key.name, open?));
        items.extend(found.into_iter().filter_map(open));
        return Ok(Json(HostBreakersView { items }));
    }
    for key in keys {
        let open = match body.step {
            BreakerStep::Open => {
                breakers.open_host(&key, body.message.as_deref().unwrap_or_default()).await.map(Some)
            }
            BreakerStep::Probe => breakers.take_probe(&key).await.map(Result::err),
            BreakerStep::ProbePassed => breakers.end_probe(&key, false).await,
            BreakerStep::Read | BreakerStep::ProbeFailed => breakers.end_probe(&key, true).await,
        };
        let open = open.map_err(error::runtime)?;
        items.extend(open.map(|open| HostBreakerView::new(key.name, open)));
    }
    Ok(Json(HostBreakersView { items }))
}

/// The breakers of the caller's tenant that a request is about.
fn keys(caller: &Caller, body: &HostBreakersBody) -> Result<Vec<BreakerKey>, Problem> {
    let refuse = |words: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_hosts", words);
    let maximum = if body.step == BreakerStep::Read { MAX_HOSTS } else { 1 };
    if body.hosts.is_empty() || body.hosts.len() > maximum {
        return Err(refuse(format!("`hosts` must have 1 to {maximum} entries for this `step`")));
    }
    if let Some(wrong) = body.hosts.iter().find(|host| !is_host_and_port(host)) {
        let wrong: String = wrong.chars().take(MAX_HOST).collect();
        return Err(refuse(format!("`{wrong}` in `hosts` is not of the form HOST:PORT")));
    }
    let key =
        |name: &String| BreakerKey { tenant: caller.tenant, kind: BreakerKind::Host, name: name.clone() };
    Ok(body.hosts.iter().map(key).collect())
}

/// Whether the text is the name of a host's breaker: what URLs have as host, and a port.
fn is_host_and_port(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && byte != b'/';
    text.len() <= MAX_HOST
        && text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && host.bytes().all(is_part) && port.parse::<u16>().is_ok()
        })
}
