//! Errors of the runtime, as responses.

use axum::http::StatusCode;
use host::Problem;
pub use host::did_you_mean;
use runtime::Error;
use serde_json::json;

/// The `Retry-After` of a request beyond a quota, in seconds.
pub(crate) const RETRY_AFTER: u64 = 10;

/// The response to an error of the runtime.
pub fn runtime(error: Error) -> Problem {
    let message = error.to_string();
    let refused = |status, code| Problem::new(status, code, message.clone());
    match error {
        Error::NoSuchWorkflow(_) | Error::NoSuchTenant(_) => Problem::not_found(message),
        Error::Archived(_) => refused(StatusCode::CONFLICT, "archived"),
        Error::Paused(_) => refused(StatusCode::CONFLICT, "workflow_paused"),
        Error::BadInputs(problems) => {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let message = format!("{message}: {}", listed(&all));
            let shown = &problems[..problems.len().min(MAX_PROBLEMS)];
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_inputs", message).with(json!(shown))
        }
        Error::DateTaken(run) => {
            refused(StatusCode::CONFLICT, "logical_date_taken").with(json!({ "id": run }))
        }
        Error::KeyReused(run) => {
            refused(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused").with(json!({ "id": run }))
        }
        Error::ConcurrencyGroupTaken(run) => {
            let message = format!("{message}; wait until it ends or cancel it, then start the run again");
            Problem::new(StatusCode::CONFLICT, "concurrency_key_taken", message).with(json!({ "id": run }))
        }
        Error::BadKey(_) => refused(StatusCode::UNPROCESSABLE_ENTITY, "invalid_concurrency_key"),
        Error::BadPriority(_) => refused(StatusCode::UNPROCESSABLE_ENTITY, "bad_priority"),
        Error::OutputsForgotten(_) => {
            let message = format!("{message}; start a new run with the same inputs instead");
            Problem::new(StatusCode::CONFLICT, "outputs_deleted", message)
        }
        Error::BadBackfill(_) => refused(StatusCode::UNPROCESSABLE_ENTITY, "bad_backfill"),
        Error::TooManyRuns(_) => Problem::too_many(message, RETRY_AFTER),
        Error::Unwanted => refused(StatusCode::CONFLICT, "unwanted"),
        Error::BadTrigger(_) => refused(StatusCode::UNPROCESSABLE_ENTITY, "bad_event"),
        Error::Bus(_) | Error::Together(_) => Problem::unavailable(message),
        Error::Store(error) => error.into(),
        Error::Unusable { .. } => {
            let message = format!("{message}; register the workflow again, or use the release that wrote it");
            Problem::new(StatusCode::CONFLICT, "unusable_version", message)
        }
        Error::Defect => Problem::internal(&error),
    }
}

/// The maximum number of problems in a response; the others are counted.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// Problems in a row, as far as they are shown.
pub(crate) fn listed(problems: &[String]) -> String {
    let shown = problems.iter().take(MAX_PROBLEMS).map(String::as_str).collect::<Vec<_>>().join("; ");
    match problems.len().saturating_sub(MAX_PROBLEMS) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
