//! What a task writes, as it is written.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt};
use host::Problem;
use model::{RunId, TaskState};
use read::Reader;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Interval;

use super::feed::ListenerSlot;
use super::listener::{HEARTBEAT, end_of_connection, hello};
use super::{Stay, last_event, unbuffered};
use crate::logs::LineView;
use crate::request::{Path, Query};
use crate::{Api, Caller, tasks};

/// How often the log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The maximum number of lines of one read.
const MAX_LINES: u32 = 500;

/// Which log to follow.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowQuery {
    /// Of this attempt only; without it, of the current one and those that follow it.
    #[schemars(range(min = 1))]
    pub attempt: Option<u32>,
}

/// One line of a followed log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FollowedView {
    /// The attempt that wrote it.
    pub attempt: u32,
    /// The line itself, in the same object.
    #[serde(flatten)]
    pub line: LineView,
}

/// A client that follows a task's log.
struct Follower {
    api: Api,
    caller: Caller,
    run: RunId,
    task: String,
    /// The attempt that is followed, and the number of its line that comes next.
    attempt: u32,
    next: u32,
    /// Whether later attempts are left out.
    only: bool,
    to_send: VecDeque<Event>,
    ended: bool,
    pace: Interval,
    heartbeat: Interval,
    /// Counts it among the listeners.
    _slot: ListenerSlot,
}

impl Follower {
    fn into_stream(
        self,
        stopping: impl Future<Output = ()> + Send + 'static,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let events = stream::unfold(self, async |mut it| Some((Ok(it.next().await?), it)));
        events.take_until(end_of_connection(stopping))
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.to_send.pop_front() {
                self.heartbeat.reset();
                return Some(event);
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                _ = self.heartbeat.tick() => return Some(Event::default().comment("alive")),
                _ = self.pace.tick() => {}
            }
            // After an error the client reconnects, and gets the error as a response if it persists.
            self.read().await.ok()?;
        }
    }

    /// Reads new lines. An attempt that was over before the read has written its last line.
    async fn read(&mut self) -> Result<(), Problem> {
        let found = tasks::find(&self.api, &self.caller, self.run, &self.task).await?;
        let task = &found.record.task;
        let lines = found.reader.log(task.index, self.attempt, self.next, MAX_LINES).await?;
        let read_all = lines.next.is_none();
        for (number, line) in lines.items {
            let view = FollowedView { attempt: self.attempt, line: LineView::from(line) };
            let data = serde_json::to_string(&view).expect("a view is made of JSON");
            self.to_send.push_back(Event::default().id(format!("{}.{number}", self.attempt)).data(data));
            self.next = number.saturating_add(1);
        }
        let over = task.state.is_final() || task.attempt > self.attempt;
        match (over && read_all, task.attempt > self.attempt && !self.only) {
            (false, _) => {}
            (true, true) => (self.attempt, self.next) = (self.attempt + 1, 0),
            (true, false) => self.end(task.state),
        }
        Ok(())
    }

    fn end(&mut self, state: TaskState) {
        self.ended = true;
        let data = json!({"attempt": self.attempt, "state": state}).to_string();
        self.to_send.push_back(Event::default().event("end").data(data));
    }
}

/// Where a follower that reconnects continues: after the last line that it received.
fn resumed(last: &str) -> Option<(u32, u32)> {
    let (attempt, number) = last.split_once('.')?;
    Some((attempt.parse().ok()?, number.parse::<u32>().ok()?.checked_add(1)?))
}

/// Follows a task's log until the task has ended.
pub(crate) async fn get_log(
    State(api): State<Api>,
    caller: Caller,
    Path((run, task)): Path<(RunId, String)>,
    Query(query): Query<FollowQuery>,
    stay: Stay,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let current = tasks::find(&api, &caller, run, &task).await?.record.task.attempt;
    if query.attempt.is_some_and(|attempt| !(1..=current).contains(&attempt)) {
        let message = format!("task `{task}` has no such attempt; its latest is {current}");
        return Err(Problem::not_found(message));
    }
    let last = last_event(&headers)?
        .map(|last| resumed(last).ok_or_else(|| Problem::bad_request("unknown `Last-Event-ID`")));
    let (attempt, next) = last.transpose()?.unwrap_or((query.attempt.unwrap_or(current.max(1)), 0));
    let slot = api.feed.admit(caller.tenant)?;
    let check = async move |reader: Reader| reader.run(run).await.map(drop);
    let ending = stay.end(api.clone(), caller.clone(), check);
    let follower = Follower {
        api,
        caller,
        run,
        task,
        attempt,
        next,
        only: query.attempt.is_some(),
        to_send: VecDeque::from([hello()]),
        ended: false,
        // The interval decides nothing, so it needs no clock.
        pace: tokio::time::interval(POLL_INTERVAL),
        heartbeat: tokio::time::interval(HEARTBEAT),
        _slot: slot,
    };
    Ok((unbuffered(), Sse::new(follower.into_stream(ending))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_that_reconnects_continues_after_the_last_line() {
        assert_eq!(resumed("2.41"), Some((2, 42)));
        for other in ["", "2", "2.", ".4", "-1.3", "1.4294967295", "a.b"] {
            assert_eq!(resumed(other), None, "{other}");
        }
    }
}
