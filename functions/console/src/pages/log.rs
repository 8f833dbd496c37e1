//! Logs: a part of one on a page, and all of one as text.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io;

use api::request::{Path, Query};
use api::views::TaskView;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, TryStreamExt};
use host::Problem;
use model::{RunId, TaskIndex};
use read::{Listing, LogLine, RunReader};
use serde::Deserialize;

use super::At;
use super::task::{self, TaskQuery};
use crate::ask::part;
use crate::refused::Refused;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// The number of lines on a page.
const LINES_PER_PAGE: u32 = 500;

/// The maximum number of lines that are searched for a text.
const MAX_SEARCHED: u32 = 20_000;

/// How many lines are read at once.
const BATCH_SIZE: u32 = 1_000;

/// The levels, from the least to the worst.
pub(crate) const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];

/// A part of a log.
#[derive(Default)]
pub(crate) struct Lines {
    /// The lines that are shown, with their numbers from 0.
    pub(crate) items: Vec<(u32, LogLine)>,
    /// How many lines there are.
    pub(crate) total: u32,
    /// The first line that was examined.
    pub(crate) from: u32,
    /// The first line after those that were examined.
    pub(crate) to: u32,
    search: String,
}

impl Lines {
    /// The start of the page before.
    pub(crate) fn earlier(&self) -> Option<u32> {
        (self.from > 0).then(|| self.from.saturating_sub(LINES_PER_PAGE))
    }

    /// The start of the next page.
    pub(crate) fn later(&self) -> Option<u32> {
        (self.to < self.total).then_some(self.to)
    }

    /// A line with what was searched for marked.
    pub(crate) fn marked(&self, line: &str) -> Markup {
        let shown = plain(line);
        let shown = show::brief(shown.as_str());
        if self.search.is_empty() {
            return Markup(show::escaped(&shown));
        }
        let parts: Vec<String> = shown.split(&self.search).map(show::escaped).collect();
        Markup(parts.join(&format!("<mark>{}</mark>", show::escaped(&self.search))))
    }
}

/// A line without the codes that colour it in a terminal.
pub(crate) fn plain(line: &str) -> String {
    let (mut out, mut letters) = (String::with_capacity(line.len()), line.chars().peekable());
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' || letters.peek() != Some(&'[') {
            out.push(letter);
            continue;
        }
        letters.next();
        for code in letters.by_ref() {
            if ('\u{40}'..='\u{7e}').contains(&code) {
                break;
            }
        }
    }
    out
}

/// The part of a log that a page shows; by default its end, where errors are.
pub(crate) async fn lines(
    run: &RunReader,
    task: TaskIndex,
    attempt: u32,
    wanted: &TaskQuery,
) -> Result<Lines, Refused> {
    let total = length(run, task, attempt).await?;
    let search = wanted.q.clone().unwrap_or_default();
    let least = wanted.level.as_deref().and_then(|level| LEVELS.iter().position(|known| *known == level));
    let filtered = !search.is_empty() || least.is_some();
    let size = if filtered { MAX_SEARCHED } else { LINES_PER_PAGE };
    let from = wanted.from.unwrap_or_else(|| total.saturating_sub(size));
    let worse = |line: &LogLine| {
        let level = LEVELS.iter().position(|known| *known == line.level).unwrap_or(1);
        least.is_none_or(|least| level >= least)
    };
    let fits = |(_, line): &(u32, LogLine)| worse(line) && line.line.contains(&search);
    let (mut items, mut to) = (VecDeque::new(), from);
    while to - from < size {
        let page = run.log(task, attempt, to, BATCH_SIZE.min(size - (to - from))).await?;
        to = page.items.last().map_or(to, |(number, _)| number + 1);
        // The last of them are shown.
        items.extend(page.items.into_iter().filter(fits));
        items.drain(..items.len().saturating_sub(LINES_PER_PAGE as usize));
        if page.next.is_none() {
            break;
        }
    }
    Ok(Lines { items: items.into(), total, from, to, search })
}

/// How many lines there are: found by doubling, then halving, so that a long log costs a few queries.
async fn length(run: &RunReader, task: TaskIndex, attempt: u32) -> Result<u32, Refused> {
    let has = async |line: u32| {
        let found = run.log(task, attempt, line, 1).await?;
        Ok::<_, Refused>(!found.items.is_empty())
    };
    if attempt == 0 || !has(0).await? {
        return Ok(0);
    }
    let (mut there, mut step) = (0, LINES_PER_PAGE);
    while has(there + step).await? {
        there += step;
        step *= 2;
    }
    let mut gone = there + step;
    while gone - there > 1 {
        let middle = there + (gone - there) / 2;
        if has(middle).await? { there = middle } else { gone = middle }
    }
    Ok(gone)
}

/// Lines of a log as text, a batch at a time, so that it takes little memory however long it is.
fn batches(
    run: RunReader,
    task: TaskIndex,
    attempt: u32,
    first: Listing<(u32, LogLine), u32>,
) -> impl Stream<Item = Result<String, Problem>> + Send {
    stream::unfold(Some(Ok(first)), move |read| {
        let run = run.clone();
        async move {
            let page = match read? {
                Ok(page) => page,
                Err(error) => return Some((Err(error), None)),
            };
            let next = match page.next {
                Some(last) => Some(run.log(task, attempt, last + 1, BATCH_SIZE).await.map_err(Problem::from)),
                None => None,
            };
            Some((Ok(written(&page.items)), next))
        }
    })
}

fn written(lines: &[(u32, LogLine)]) -> String {
    let mut text = String::new();
    for (_, LogLine { at, stream, line, .. }) in lines {
        writeln!(text, "{} {stream:<6} {line}", show::time(at)).expect("a text takes all");
    }
    text
}

/// Which log is wanted as text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextQuery {
    attempt: Option<u32>,
    /// Whether to keep it as a file.
    #[serde(default)]
    download: Option<String>,
}

pub(crate) async fn text(
    State(console): At,
    visitor: Visitor,
    path: Result<Path<(RunId, String)>, Problem>,
    query: Result<Query<TextQuery>, Problem>,
) -> Result<Response, Refused> {
    let (Path((id, name)), Query(wanted)) = (path?, query?);
    let view: TaskView = visitor.ask.get(&format!("/runs/{id}/tasks/{}", part(&name))).await?;
    let (run, graph) = console.run(&visitor, id).await?;
    let index = task::find(&run, &graph, &view).await?.index;
    let attempt = wanted.attempt.unwrap_or(view.attempt);
    let first = run.log(index, attempt, 0, BATCH_SIZE).await?;
    let body = match first.items.is_empty() {
        true => Body::from("no lines yet\n"),
        false => Body::from_stream(batches(run, index, attempt, first).map_err(|problem| {
            // The status is sent already: the client sees that the text ends early.
            io::Error::other(problem.message().to_owned())
        })),
    };
    let mut response = ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response();
    if wanted.download.is_some() {
        let file = format!("attachment; filename=\"{id}-{}-{attempt}.log\"", part(&name));
        if let Ok(value) = file.parse() {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
        }
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_codes_are_taken_out_and_the_rest_is_kept() {
        assert_eq!(plain("\u{1b}[1;31mred\u{1b}[0m 🎉 [x]"), "red 🎉 [x]");
    }

    #[test]
    fn what_was_searched_for_is_marked_and_stays_text() {
        let lines = Lines { search: "<b>".into(), ..Lines::default() };
        assert_eq!(lines.marked("a <b> c").0, "a <mark>&lt;b&gt;</mark> c");
    }
}
