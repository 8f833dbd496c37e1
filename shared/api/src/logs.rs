//! Logs of attempts.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId};
use read::LogLine;
use serde::{Deserialize, Serialize};

use crate::page::{Page, Wanted};
use crate::request::{Path, Query};
use crate::{Api, Caller, tasks};

/// Which lines of a task's log to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Of this attempt; without it, of the current one.
    pub attempt: Option<u32>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// One line of a log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LineView {
    /// When it was written.
    #[schemars(with = "crate::openapi::shapes::Time")]
    #[serde(deserialize_with = "model::instant::deserialize")]
    pub at: Instant,
    /// `stdout`, `stderr`, or `system` for our own.
    pub stream: String,
    /// `debug`, `info`, `warning` or `error`.
    pub level: String,
    /// The text, without its end of line.
    pub line: String,
}

impl From<LogLine> for LineView {
    fn from(LogLine { at, stream, level, line }: LogLine) -> Self {
        Self { at, stream, level, line }
    }
}

/// Lines of an attempt's log, oldest first. An attempt that has not begun has none.
pub async fn list(
    api: &Api,
    caller: &Caller,
    id: RunId,
    task: &str,
    query: &LogQuery,
) -> Result<Page<LogLine>, Problem> {
    let wanted = Wanted::<u32>::read(query.limit, query.cursor.as_deref())?;
    let found = tasks::find(api, caller, id, task).await?;
    let current = found.record.task.attempt;
    let attempt = query.attempt.unwrap_or(current);
    if query.attempt.is_some_and(|attempt| !(1..=current).contains(&attempt)) {
        let message = format!("task `{task}` has no attempt {attempt}; its latest is {current}");
        return Err(Problem::not_found(message));
    }
    let from = wanted.after.map_or(0, |last| last.saturating_add(1));
    let lines = found.reader.log(found.record.task.index, attempt, from, wanted.limit).await?;
    Ok(Page::of(lines).map(|(_, line)| line))
}

pub(crate) async fn get_lines(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    Query(query): Query<LogQuery>,
) -> Result<Json<Page<LineView>>, Problem> {
    let page = list(&api, &caller, id, &task, &query).await?;
    Ok(Json(page.map(LineView::from)))
}
