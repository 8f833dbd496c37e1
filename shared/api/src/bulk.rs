//! One action on many runs: counted first, then carried out in bounded batches.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::{By, Command, Operation};
use host::Problem;
use model::{Instant, RunId};
use runtime::Settled;
use serde::{Deserialize, Serialize};
use store::{RunFilter, RunRecord};

use crate::page::{MAX_LIMIT, Page, Wanted};
use crate::request;
use crate::{Api, Caller, error, runs};

/// What can be done to many runs.
pub const ACTIONS: [&str; 5] = ["cancel", "pause", "resume", "retry", "evaluate"];

/// No dry run counts further.
const MAX_COUNTED: usize = 10_000;

/// So many runs are counted at once.
const PAGE_SIZE: u32 = 1_000;

/// What to do, and to which runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkBody {
    /// Which runs.
    pub filter: BulkFilter,
    /// One of [`ACTIONS`].
    #[schemars(extend("enum" = ACTIONS))]
    pub action: String,
    /// Whether only to count them.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the timelines.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
    /// From an earlier batch: where to go on.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Which runs are meant: at least one of these must be given.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BulkFilter {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only in this state.
    #[schemars(with = "Option<crate::openapi::shapes::RunStates>")]
    pub state: Option<String>,
    /// Only those that tasks of this run started.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub parent: Option<RunId>,
    /// Only those with this label: `name=value`.
    pub label: Option<String>,
    /// Only those created then or later.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub created_after: Option<Instant>,
    /// Only those created before.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub created_before: Option<Instant>,
}

/// What a dry run found, or what became of one batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum BulkView {
    /// One batch was carried out.
    Batch(BatchView),
    /// Nothing was touched.
    Count(CountView),
}

/// The runs that would be acted on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CountView {
    /// How many.
    pub count: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// The newest of them.
    #[schemars(with = "Vec<crate::openapi::shapes::Id>")]
    pub sample: Vec<RunId>,
}

/// What became of one batch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BatchView {
    /// How many runs there were.
    pub count: usize,
    /// Of these, how many were changed.
    pub applied: usize,
    /// How many stood so that there was nothing to do.
    pub stale: usize,
    /// How many could not be acted on.
    pub failed: usize,
    /// Why not, each.
    pub errors: Vec<BulkError>,
    /// What to go on with; none where all is done.
    pub next_cursor: Option<String>,
}

/// Why a run could not be acted on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BulkError {
    /// The run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// In words.
    pub message: String,
}

/// Acts on one batch of the runs that the filter lets pass, or only counts them.
pub(crate) async fn post_bulk(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<BulkBody>,
) -> Result<Json<BulkView>, Problem> {
    let command = command(&body, &caller)?;
    let filter = filter(&body.filter)?;
    caller.check_filter(auth::Permission::Operate, filter.workflow.as_deref())?;
    if body.dry_run {
        return count(&api, &caller, filter).await.map(|view| Json(BulkView::Count(view)));
    }
    let wanted = Wanted::<(Instant, RunId)>::read(Some(MAX_LIMIT), body.cursor.as_deref())?;
    let filter = RunFilter { after: wanted.after, limit: wanted.rows(), ..filter };
    let Page { items, next_cursor } = wanted.page(read(&api, &caller, &filter).await?, place);
    let mut batch = BatchView { count: items.len(), next_cursor, ..BatchView::default() };
    for run in items.into_iter().map(|record| record.run.id) {
        match api.app.runtime.settle(run, command.clone()).await {
            Ok(Settled::Applied) => batch.applied += 1,
            Ok(Settled::Stale | Settled::NoSuchRun) => batch.stale += 1,
            Err(error) => {
                batch.failed += 1;
                batch.errors.push(BulkError { run, message: error.to_string() });
            }
        }
    }
    Ok(Json(BulkView::Batch(batch)))
}

async fn count(api: &Api, caller: &Caller, filter: RunFilter) -> Result<CountView, Problem> {
    let (mut filter, mut found) = (RunFilter { limit: PAGE_SIZE, ..filter }, CountView::default());
    loop {
        let rows = read(api, caller, &filter).await?;
        let room = (MAX_LIMIT as usize).saturating_sub(found.sample.len());
        found.count += rows.len();
        found.sample.extend(rows.iter().take(room).map(|record| record.run.id));
        filter.after = rows.last().map(place);
        if rows.len() < PAGE_SIZE as usize {
            return Ok(found);
        }
        if found.count >= MAX_COUNTED {
            return Ok(CountView { more: true, ..found });
        }
    }
}

async fn read(api: &Api, caller: &Caller, filter: &RunFilter) -> Result<Vec<RunRecord>, Problem> {
    api.app.runtime.store().runs(caller.tenant, filter).await.map_err(error::store)
}

fn place(record: &RunRecord) -> (Instant, RunId) {
    (record.run.created_at, record.run.id)
}

fn filter(given: &BulkFilter) -> Result<RunFilter, Problem> {
    if *given == BulkFilter::default() {
        let message = "`filter` is empty; give at least one of workflow, state, parent, label, created_after, \
                       created_before";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "filter_missing", message));
    }
    runs::check_label(given.label.as_deref())?;
    Ok(RunFilter {
        workflow: given.workflow.clone(),
        state: given.state.as_deref().map(runs::state_named).transpose()?,
        parent: given.parent,
        label: given.label.clone(),
        created_after: given.created_after,
        created_before: given.created_before,
        ..RunFilter::default()
    })
}

fn command(body: &BulkBody, caller: &Caller) -> Result<Command, Problem> {
    let (actor, reason) = (caller.name.clone(), body.reason.clone());
    let operation = match body.action.as_str() {
        "cancel" => return Ok(Command::Cancel { actor, reason }),
        "pause" => Operation::Pause,
        "resume" => Operation::Resume,
        "retry" => Operation::Retry,
        "evaluate" => Operation::Evaluate,
        other => {
            let message = format!("unknown action `{other}`; expected one of {}", ACTIONS.join(", "));
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_action", message));
        }
    };
    Ok(Command::Operate { operation, by: By { actor, reason } })
}
