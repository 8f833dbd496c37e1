//! The output of a task, followed while it is written.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use auth::Permission;
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

/// How often a log is read for one who follows it, unless very many do.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How many logs are read per second for all who follow one, however many they are.
const MAX_POLLS_PER_SECOND: u32 = 100;

/// How often each log is read if this number of them is followed.
fn poll_interval(followed: usize) -> Duration {
    let followed = u32::try_from(followed).unwrap_or(u32::MAX);
    POLL_INTERVAL.max(Duration::from_secs(1) * followed / MAX_POLLS_PER_SECOND)
}

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
    /// Every follower has one of these, and the feed.
    one_of_all: Arc<()>,
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
            self.pace.reset_after(poll_interval(Arc::strong_count(&self.one_of_all) - 1));
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
    let found = tasks::find(&api, &caller, run, &task).await?;
    let (current, workflow) = (found.record.task.attempt, found.reader.record().run.workflow.clone());
    if query.attempt.is_some_and(|attempt| !(1..=current).contains(&attempt)) {
        let message = format!("task `{task}` has no such attempt; its latest is {current}");
        return Err(Problem::not_found(message));
    }
    let last = last_event(&headers)?
        .map(|last| resumed(last).ok_or_else(|| Problem::bad_request("unknown `Last-Event-ID`")));
    let (attempt, next) = last.transpose()?.unwrap_or((query.attempt.unwrap_or(current.max(1)), 0));
    let slot = api.feed.admit(caller.tenant)?;
    let check = move |reader: &Reader| reader.check_workflow(Permission::Read, &workflow);
    let ending = stay.end(api.clone(), caller.clone(), check);
    let follower = Follower {
        one_of_all: api.feed.followers(),
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
    fn the_more_follow_a_log_the_less_often_it_is_read_for_each() {
        assert_eq!([1, 50].map(poll_interval), [POLL_INTERVAL; 2]);
        for many in [51, 512, 100_000] {
            let each = 1.0 / poll_interval(many).as_secs_f64();
            assert!((each * many as f64 - f64::from(MAX_POLLS_PER_SECOND)).abs() < 1e-6, "{many}");
        }
    }

    #[test]
    fn a_follower_that_reconnects_continues_after_the_last_line() {
        assert_eq!(resumed("2.41"), Some((2, 42)));
        for other in ["", "2", "2.", ".4", "-1.3", "1.4294967295", "a.b"] {
            assert_eq!(resumed(other), None, "{other}");
        }
    }
}
