//! One action on many runs: counted first, then applied in batches.

use auth::Permission::Operate;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Instant, Run, RunId};
use read::{ListedRun, Listing, RunFilter};
use runtime::{By, Command, Operation, Settled};
use serde::{Deserialize, Serialize};

use crate::page::{MAX_LIMIT, Page, Wanted};
use crate::request;
use crate::{Api, Caller, runs};

/// The actions that can be applied to many runs.
pub const ACTIONS: [&str; 5] = ["cancel", "pause", "resume", "retry", "evaluate"];

/// The maximum number of runs that a dry run counts.
const MAX_COUNTED: usize = 10_000;

/// How many runs are read at once.
const PAGE_SIZE: u32 = 1_000;

/// An action and the runs to apply it to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkBody {
    /// The runs to act on.
    pub filter: BulkFilter,
    /// The action to apply: one of [`ACTIONS`].
    #[schemars(extend("enum" = ACTIONS))]
    pub action: String,
    /// Whether to count the runs only.
    #[serde(default)]
    pub dry_run: bool,
    /// The reason, for the timelines.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
    /// The `next_cursor` of an earlier batch.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Which runs to act on: at least one field is required.
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
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub created_after: Option<Instant>,
    /// Only those created before.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub created_before: Option<Instant>,
}

/// The result of a dry run, or of one batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum BulkView {
    /// The action was applied to one batch.
    Batch(BatchView),
    /// The runs were only counted.
    Count(CountView),
}

/// The runs that would be acted on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CountView {
    /// The number of runs.
    pub count: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// The newest of them.
    #[schemars(with = "Vec<crate::openapi::shapes::Id>")]
    pub sample: Vec<RunId>,
}

/// The result of one batch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BatchView {
    /// How many runs there were.
    pub count: usize,
    /// Of these, how many were changed.
    pub applied: usize,
    /// How many were in a state in which there was nothing to do.
    pub stale: usize,
    /// For how many the action failed.
    pub failed: usize,
    /// The errors of these.
    pub errors: Vec<BulkError>,
    /// The `cursor` of the next batch; null when all runs are done.
    pub next_cursor: Option<String>,
}

/// Why the action failed for one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BulkError {
    /// The run for which it failed.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The error message for people.
    pub message: String,
}

/// Applies an action to one batch of the runs that pass the filter, or only counts them.
pub(crate) async fn post_bulk(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<BulkBody>,
) -> Result<Json<BulkView>, Problem> {
    let action = Action::named(&body.action)?;
    let filter = filter(&body.filter)?;
    caller.check_filter(Operate, filter.workflow.as_deref())?;
    if body.dry_run {
        return count(&api, &caller, filter).await.map(|view| Json(BulkView::Count(view)));
    }
    let wanted = Wanted::<(Instant, RunId)>::read(Some(MAX_LIMIT), body.cursor.as_deref())?;
    let filter = RunFilter { after: wanted.after, limit: wanted.limit, ..filter };
    let Page { items, next_cursor } = Page::of(api.reader(&caller).runs().list(Operate, &filter).await?);
    let mut batch = BatchView { count: items.len(), next_cursor, ..BatchView::default() };
    for run in items.iter().map(|listed| &listed.record.run) {
        match action.apply(&api, &caller, run, body.reason.clone()).await {
            Ok(Settled::Applied) => batch.applied += 1,
            Ok(Settled::Stale | Settled::NoSuchRun) => batch.stale += 1,
            Err(error) => {
                batch.failed += 1;
                batch.errors.push(BulkError { run: run.id, message: error.to_string() });
            }
        }
    }
    Ok(Json(BulkView::Batch(batch)))
}

async fn count(api: &Api, caller: &Caller, filter: RunFilter) -> Result<CountView, Problem> {
    let (mut filter, mut found) = (RunFilter { limit: PAGE_SIZE, ..filter }, CountView::default());
    loop {
        let Listing { items, next } = api.reader(caller).runs().list(Operate, &filter).await?;
        let room = (MAX_LIMIT as usize).saturating_sub(found.sample.len());
        found.count += items.len();
        found.sample.extend(items.iter().take(room).map(|listed: &ListedRun| listed.record.run.id));
        match next {
            None => return Ok(found),
            Some(_) if found.count >= MAX_COUNTED => return Ok(CountView { more: true, ..found }),
            Some(_) => filter.after = next,
        }
    }
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

/// What is done to each run.
enum Action {
    Cancel,
    Operate(Operation),
}

impl Action {
    fn named(name: &str) -> Result<Self, Problem> {
        Ok(match name {
            "cancel" => Self::Cancel,
            "pause" => Self::Operate(Operation::Pause),
            "resume" => Self::Operate(Operation::Resume),
            "retry" => Self::Operate(Operation::Retry),
            "evaluate" => Self::Operate(Operation::Evaluate),
            other => {
                let message = format!("unknown action `{other}`; expected one of {}", ACTIONS.join(", "));
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_action", message));
            }
        })
    }

    async fn apply(
        &self,
        api: &Api,
        caller: &Caller,
        run: &Run,
        reason: Option<String>,
    ) -> runtime::Result<Settled> {
        let (runtime, actor) = (&api.app.runtime, caller.name.clone());
        match self {
            Self::Cancel => runtime.settle(run.id, Command::Cancel { actor, reason }).await,
            Self::Operate(operation) => runtime.operate(run, operation.clone(), By { actor, reason }).await,
        }
    }
}
