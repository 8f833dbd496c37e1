//! Log filters: what the instances of a function log, for a while.

use accounts::LogFilter;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::TimeDelta;
use host::{Problem, telemetry};
use model::Instant;
use serde::{Deserialize, Serialize};

use crate::request::{self, Path};
use crate::{Api, Caller};

/// The functions, each of which has a filter.
pub const FUNCTIONS: [&str; 5] = ["trigger", "evaluate", "execute", "sweep", "console"];

/// The maximum time for which a filter is set: what it logs costs money.
const MAX_MINUTES: u32 = 24 * 60;

/// The maximum length of a filter, in bytes.
const MAX_FILTER_BYTES: usize = 1024;

/// The log filter of a function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogFilterView {
    /// The function whose instances follow it: trigger, evaluate, execute, sweep or console.
    pub function: String,
    /// The filter, in the syntax of `RUST_LOG`; null for the configured one.
    pub filter: Option<String>,
    /// From then on the configured filter applies again.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub until: Option<Instant>,
    /// The actor who set it.
    pub set_by: Option<String>,
}

/// The log filters of all functions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogFiltersView {
    /// One for each function.
    pub items: Vec<LogFilterView>,
}

/// Which filter to set, and for how long.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogFilterBody {
    /// A level (`debug`) or levels by target (`info,ebbflow_runtime=debug`); null for the configured filter.
    pub filter: Option<String>,
    /// For how many minutes, from 1 to 1,440.
    #[serde(default = "an_hour")]
    #[schemars(range(min = 1, max = 1_440))]
    pub minutes: u32,
}

fn an_hour() -> u32 {
    60
}

fn view(function: &str, set: &[LogFilter]) -> LogFilterView {
    let set = set.iter().find(|set| set.function == function);
    LogFilterView {
        function: function.to_owned(),
        filter: set.map(|set| set.filter.clone()),
        until: set.map(|set| set.until),
        set_by: set.map(|set| set.set_by.clone()),
    }
}

pub(crate) async fn get_list(State(api): State<Api>, _: Caller) -> Result<Json<LogFiltersView>, Problem> {
    let set = api.accounts.log_filters(api.app.now()).await?;
    Ok(Json(LogFiltersView { items: FUNCTIONS.iter().map(|function| view(function, &set)).collect() }))
}

pub(crate) async fn post_one(
    State(api): State<Api>,
    caller: Caller,
    Path(function): Path<String>,
    request::Json(body): request::Json<LogFilterBody>,
) -> Result<Json<LogFilterView>, Problem> {
    check(&function, &body)?;
    let now = api.app.now();
    match body.filter {
        None => api.accounts.reset_log_filter(&function).await?,
        Some(filter) => {
            let until = now + TimeDelta::minutes(body.minutes.into());
            let set_by = caller.name.clone();
            api.accounts
                .set_log_filter(&LogFilter { function: function.clone(), filter, until, set_by }, now)
                .await?;
        }
    }
    Ok(Json(view(&function, &api.accounts.log_filters(now).await?)))
}

fn check(function: &str, body: &LogFilterBody) -> Result<(), Problem> {
    let rejected = |code, words| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, words));
    if !FUNCTIONS.contains(&function) {
        let words = format!("unknown function `{function}`; expected one of {}", FUNCTIONS.join(", "));
        return rejected("bad_function", words);
    }
    if !(1..=MAX_MINUTES).contains(&body.minutes) {
        return rejected("bad_minutes", format!("`minutes` must be between 1 and {MAX_MINUTES}"));
    }
    let Some(filter) = &body.filter else { return Ok(()) };
    if filter.len() > MAX_FILTER_BYTES {
        return rejected("bad_filter", format!("`filter` must have at most {MAX_FILTER_BYTES} bytes"));
    }
    telemetry::check_filter(filter).or_else(|error| {
        let words = format!("{error}; give a level (debug) or levels by target (info,ebbflow_runtime=debug)");
        rejected("bad_filter", words)
    })
}
