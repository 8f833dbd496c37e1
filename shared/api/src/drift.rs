//! Drift: when runs of schedules were planned, and when they began.
//!
//! A run begins when it is made, or when a limit on runs lets it go on. How long its tasks then wait for a place is not in
//! it. What `GET /schedules` says of drift is counted for all runs since the schedule is there; here it is of the last ones.

use axum::Json;
use axum::extract::State;
use calendar::GRACE;
use host::Problem;
use model::{Instant, RunId};
use serde::{Deserialize, Serialize};
use store::StartRecord;

use crate::request::{Path, Query};
use crate::{Api, Caller, error, schedules};

/// So many of the last runs are looked at unless the caller says otherwise.
pub const RUNS: u32 = 100;

/// No more are.
const MOST: u32 = 1_000;

/// Of which runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriftQuery {
    /// Only of this schedule.
    pub name: Option<String>,
    /// The number of runs; by default 100.
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<u32>,
}

/// The drift of a workflow's schedules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftList {
    /// Each of them, by name.
    pub items: Vec<LastDrift>,
}

/// How late the last runs of a schedule began. Those that made up for what was missed do not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastDrift {
    /// The schedule's name.
    pub schedule: String,
    /// How many runs were counted.
    pub runs: usize,
    /// Half of them began within so many milliseconds.
    pub p50_ms: Option<i64>,
    /// 99 of a hundred did.
    pub p99_ms: Option<i64>,
    /// All of them did.
    pub max_ms: Option<i64>,
    /// Each of the last runs, the latest date first.
    pub last: Vec<StartView>,
}

/// A run that a schedule made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StartView {
    /// The run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// For when it was planned.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub date: Instant,
    /// When it began: when it was made, or when a limit on runs let it go on. None if it has not.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub started_at: Option<Instant>,
    /// By how many milliseconds that is later.
    pub late_ms: Option<i64>,
    /// Whether it was made long after its date, to make up for what was missed.
    pub missed: bool,
}

impl From<StartRecord> for StartView {
    fn from(StartRecord { run, date, created_at, started_at }: StartRecord) -> Self {
        let late_ms = started_at.map(|at| (at - date).num_milliseconds());
        Self { run, date, started_at, late_ms, missed: created_at > date + GRACE }
    }
}

impl LastDrift {
    fn new(schedule: String, starts: Vec<StartRecord>) -> Self {
        let last: Vec<StartView> = starts.into_iter().map(StartView::from).collect();
        let on_time = last.iter().filter(|start| !start.missed);
        let mut late: Vec<i64> = on_time.filter_map(|start| start.late_ms).collect();
        late.sort_unstable();
        let share = |share: usize| late.get((late.len() * share).div_ceil(100).checked_sub(1)?).copied();
        let (runs, p50_ms, p99_ms, max_ms) = (late.len(), share(50), share(99), share(100));
        Self { schedule, runs, p50_ms, p99_ms, max_ms, last }
    }
}

pub(crate) async fn get_drift(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    Query(query): Query<DriftQuery>,
) -> Result<Json<DriftList>, Problem> {
    let count = query.count.unwrap_or(RUNS);
    if !(1..=MOST).contains(&count) {
        return Err(Problem::bad_request(format!("`count` must be between 1 and {MOST}, not {count}")));
    }
    let (mut items, store) = (Vec::new(), api.app.runtime.store());
    for record in schedules::find(&api, &caller, &workflow, query.name.as_deref()).await? {
        let name = record.schedule.name;
        let starts = store.last_starts(caller.tenant, &workflow, &name, count).await.map_err(error::store)?;
        items.push(LastDrift::new(name, starts));
    }
    Ok(Json(DriftList { items }))
}
