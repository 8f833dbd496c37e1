//! Circuit breakers of tasks and hosts: which are open, why, and until when.

use axum::Json;
use axum::extract::State;
use chrono::TimeDelta;
use host::Problem;
use model::{Breaker, Instant};
use read::BreakerRecord;
use serde::{Deserialize, Serialize};

use crate::page::{Page, PageQuery, Wanted};
use crate::request::{Path, Query};
use crate::{Api, Caller, error};

/// How long a closed breaker is listed after its last failure.
const LISTED_FOR: TimeDelta = TimeDelta::days(1);

/// The state of a breaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// No attempt or call begins.
    Open,
    /// The pause is over, and one probe decides.
    Probing,
    /// Everything begins; some attempts failed lately.
    Closed,
}

impl BreakerState {
    /// The name used in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Probing => "probing",
            Self::Closed => "closed",
        }
    }
}

/// A circuit breaker, shared by all processes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SharedBreakerView {
    /// The id by which it is reset.
    pub id: i64,
    /// The kind of target that it protects: `task` or `host`.
    pub kind: String,
    /// Its name: `WORKFLOW/TASK`, or `HOST:PORT`.
    pub name: String,
    /// Whether it lets anything through.
    pub state: BreakerState,
    /// How many failures count.
    pub failures: u32,
    /// Since when it is open.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub since: Option<Instant>,
    /// When the pause ends.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub until: Option<Instant>,
    /// When the last failure happened that counts.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub last_failed_at: Option<Instant>,
    /// The message of the last failure.
    pub message: String,
    /// How many tasks wait for it.
    pub waiting: u32,
}

impl SharedBreakerView {
    fn new(record: BreakerRecord, now: Instant) -> Self {
        let BreakerRecord { breaker: Breaker { id, key, failed_at, open, message }, waiting } = record;
        let state = match open {
            None => BreakerState::Closed,
            Some(open) if open.probing || open.until <= now => BreakerState::Probing,
            Some(_) => BreakerState::Open,
        };
        Self {
            id,
            kind: key.kind.name().into(),
            name: key.name,
            state,
            failures: u32::try_from(failed_at.len()).unwrap_or(u32::MAX),
            since: open.map(|open| open.since),
            until: open.map(|open| open.until).filter(|_| state == BreakerState::Open),
            last_failed_at: failed_at.last().copied(),
            message,
            waiting,
        }
    }
}

/// A page of the breakers that are open, or had a failure within a day.
pub async fn list(api: &Api, caller: &Caller, query: &PageQuery) -> Result<Page<SharedBreakerView>, Problem> {
    let wanted = Wanted::<i64>::read(query.limit, query.cursor.as_deref())?;
    let now = api.app.now();
    let found = api.reader(caller).slots().breakers(now - LISTED_FOR, wanted.after, wanted.limit).await?;
    Ok(Page::of(found).map(|record| SharedBreakerView::new(record, now)))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<SharedBreakerView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

/// Closes a breaker and forgets its failures. Tasks that wait for it begin.
pub(crate) async fn post_reset(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<i64>,
) -> Result<Json<SharedBreakerView>, Problem> {
    let reset = api.app.runtime.slots().breakers().reset(caller.tenant, id).await.map_err(error::runtime)?;
    let Some(before) = reset else {
        let message = format!("there is no breaker {id}: it may have closed by itself; see `ebb breakers`");
        return Err(Problem::not_found(message));
    };
    let record = BreakerRecord { breaker: Breaker::closed(id, before.key), waiting: 0 };
    Ok(Json(SharedBreakerView::new(record, api.app.now())))
}
