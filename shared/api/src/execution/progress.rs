//! The progress of attempts, as remote workers report it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::progress::{MAX_METRIC_NAME, MAX_METRICS, is_metric};
use model::{Done, ProgressReport};
use serde::{Deserialize, Serialize};

use super::attempts::{Address, Reporter, StepView, TAKEN};
use crate::{Api, Caller, error, request};

/// How far an attempt has come.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The share of the work that is done.
    #[serde(default)]
    pub progress: Option<DoneBody>,
    /// New values of metrics, by name; at most 32 names per attempt, of up to 64 characters.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 32))]
    pub metrics: BTreeMap<String, f64>,
}

/// The share of an attempt's work that is done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoneBody {
    /// From 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub fraction: f64,
    /// A description of the current activity, for people; 200 characters are kept.
    #[serde(default)]
    pub message: Option<String>,
}

/// Records how far an attempt has come.
pub(crate) async fn post_progress(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<ProgressBody>,
) -> Result<Json<StepView>, Problem> {
    check(&body)?;
    let reporter = Reporter::new(&api, &caller, address, &body.worker)?;
    let task = reporter.held_or_ended().await?;
    let done = body.progress.map(|DoneBody { fraction, message }| Done { fraction, message });
    let report = ProgressReport {
        done,
        metrics: body.metrics,
        ..ProgressReport::new(reporter.number(), api.app.now())
    };
    api.app.runtime.workers().report_progress(task, &report).await.map_err(error::runtime)?;
    Ok(TAKEN)
}

fn check(body: &ProgressBody) -> Result<(), Problem> {
    let refused = |words: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_progress", words);
    if body.progress.as_ref().is_some_and(|done| !(0.0..=1.0).contains(&done.fraction)) {
        return Err(refused("`fraction` must be a number from 0 to 1".to_owned()));
    }
    if body.metrics.len() > MAX_METRICS || !body.metrics.iter().all(|(name, value)| is_metric(name, *value)) {
        return Err(refused(format!(
            "`metrics` must be at most {MAX_METRICS} names of 1 to {MAX_METRIC_NAME} characters, each with a number"
        )));
    }
    Ok(())
}
