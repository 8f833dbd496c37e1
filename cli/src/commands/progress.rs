//! The progress of a run, derived from its events: lines for a pipe, a live view for a terminal.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use api::views::{EventView, TaskView};
use chrono::TimeDelta;
use model::{EventKind, Instant, RunState, TaskState};
use serde_json::Value;

use crate::output::{self, Colour, Palette};

/// The maximum number of tasks in the live view.
const MAX_LINES: usize = 20;

/// The progress of a run.
pub(super) struct Progress {
    tasks: Vec<Line>,
    places: BTreeMap<String, usize>,
    /// The running tasks and children, as they were last read.
    running: BTreeMap<String, Option<TaskView>>,
    /// The running task that was read last.
    last_read: String,
    /// How the run ended, once it has.
    pub(super) end: Option<RunState>,
}

struct Line {
    name: String,
    state: TaskState,
    attempt: u32,
    max_attempts: u32,
    since: Option<Instant>,
    note: String,
    children: Option<Children>,
}

/// The progress of a fan-out's children.
#[derive(Default)]
struct Children {
    count: u64,
    ended: u64,
    failed: u64,
    first_failed: Option<String>,
}

impl Children {
    /// Counts a child that ended. Returns whether to print a line: for each failure, and for each tenth of the others.
    fn on(&mut self, name: &str, state: TaskState) -> bool {
        let tenths = |ended: u64| ended * 10 / self.count.max(1);
        let prints = state == TaskState::Failed || tenths(self.ended) < tenths(self.ended + 1);
        self.ended += 1;
        if state == TaskState::Failed {
            self.failed += 1;
            self.first_failed.get_or_insert_with(|| name.to_owned());
        }
        prints
    }

    fn summary(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("  {}/{} children{failed}", self.ended, self.count)
    }
}

impl Progress {
    /// A run with these tasks, before its first event.
    pub(super) fn new(tasks: Vec<TaskView>) -> Self {
        let pending = |task: TaskView| Line {
            name: task.name,
            state: TaskState::Pending,
            attempt: 0,
            max_attempts: task.max_attempts,
            since: None,
            note: String::new(),
            children: None,
        };
        let tasks: Vec<Line> = tasks.into_iter().map(pending).collect();
        let places = tasks.iter().enumerate().map(|(place, task)| (task.name.clone(), place)).collect();
        Self { tasks, places, running: BTreeMap::new(), last_read: String::new(), end: None }
    }

    /// Whether an event's line says how many attempts its task is allowed, which changes with each attempt.
    pub(super) fn needs_total(&self, event: &EventView) -> bool {
        let is_own = event.task.as_ref().is_some_and(|task| self.places.contains_key(task));
        is_own && event.attempt > Some(1) && entered(event).is_some()
    }

    /// Takes in how many attempts each task is allowed.
    pub(super) fn set_totals(&mut self, tasks: &[TaskView]) {
        for task in tasks {
            if let Some(place) = self.places.get(&task.name) {
                self.tasks[*place].max_attempts = task.max_attempts;
            }
        }
    }

    /// Applies one event. Returns the line to print, if it changed anything.
    pub(super) fn on(&mut self, event: &EventView, palette: Palette) -> Option<String> {
        if let Some(end) = end(event.kind) {
            self.end = Some(end);
        }
        if matches!(event.kind, EventKind::RunStarted | EventKind::RunRetried | EventKind::TaskCleared) {
            // It had ended, and continues.
            self.end = None;
        }
        let state = entered(event)?;
        let name = event.task.as_deref()?;
        match state {
            TaskState::Running => self.running.insert(name.to_owned(), None),
            _ => self.running.remove(name),
        };
        let Some(place) = self.places.get(name).copied() else {
            return self.on_child(name, state, event, palette);
        };
        let task = &mut self.tasks[place];
        task.state = state;
        let count = event.data["count"].as_u64().filter(|_| event.kind == EventKind::TaskFannedOut);
        if let Some(count) = count {
            task.children = Some(Children { count, ..Children::default() });
        }
        task.attempt = event.attempt.unwrap_or(task.attempt);
        task.since = Some(event.at);
        task.note = note(&event.data);
        Some(format!("{} {}", event.at.format("%H:%M:%S"), self.line(place, palette)))
    }

    /// The next running tasks to read, children too. Each has its turn, however many there are.
    pub(super) fn next_running(&mut self, most: usize) -> Vec<String> {
        let last = self.last_read.as_str();
        let after = self.running.range::<str, _>((Excluded(last), Unbounded));
        let before = self.running.range::<str, _>((Unbounded, Included(last)));
        let next: Vec<String> = after.chain(before).take(most).map(|(name, _)| name.clone()).collect();
        self.last_read = next.last().cloned().unwrap_or_default();
        next
    }

    /// Takes in how far a running task has come. Returns the line to print: for each phase, and for each tenth of the work.
    pub(super) fn report(&mut self, task: TaskView, palette: Palette) -> Option<String> {
        let phase_and_tenth = |task: &TaskView| {
            let reported = task.progress.as_ref()?;
            Some((reported.phase.clone(), reported.percent().map(|percent| percent / 10)))
        };
        let name = task.name.clone();
        let at = task.progress.as_ref()?.at;
        let known = self.running.get_mut(&name)?;
        let is_new = known.as_ref().and_then(phase_and_tenth) != phase_and_tenth(&task);
        *known = Some(task);
        let line = match self.places.get(&name) {
            Some(place) => self.line(*place, palette),
            None => self.child_line(self.running[&name].as_ref()?, palette),
        };
        is_new.then(|| format!("{} {line}", at.format("%H:%M:%S")))
    }

    /// Counts a child's end in the line of its fan-out.
    fn on_child(
        &mut self,
        name: &str,
        state: TaskState,
        event: &EventView,
        palette: Palette,
    ) -> Option<String> {
        let (parent, _) = name.rsplit_once("__").filter(|_| state.is_final())?;
        let place = *self.places.get(parent)?;
        let prints = self.tasks[place].children.as_mut()?.on(name, state);
        prints.then(|| format!("{} {}", event.at.format("%H:%M:%S"), self.line(place, palette)))
    }

    /// The tasks that failed, with their errors and the task whose log has details.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let failed = self.tasks.iter().filter(|task| task.state == TaskState::Failed);
        failed.map(|task| {
            let child = task.children.as_ref().and_then(|children| children.first_failed.as_deref());
            (task.name.as_str(), task.note.as_str(), child.unwrap_or(&task.name))
        })
    }

    /// The live view at `now`: all tasks if they are few, else the relevant ones.
    pub(super) fn picture(&self, now: Instant, palette: Palette) -> String {
        let all: Vec<usize> = (0..self.tasks.len()).collect();
        let mut shown = all.clone();
        if shown.len() > MAX_LINES {
            shown.retain(|place| is_relevant(self.tasks[*place].state));
            shown.truncate(MAX_LINES);
        }
        let mut lines: Vec<String> = shown.iter().map(|place| self.line_at(*place, now, palette)).collect();
        let children = self.running.values().flatten().filter(|task| task.parent.is_some());
        let spare = MAX_LINES - lines.len();
        lines.extend(children.take(spare).map(|child| self.child_line(child, palette)));
        if shown.len() < all.len() {
            let ended = self.tasks.iter().filter(|task| task.state.is_final()).count();
            lines.push(palette.paint(Colour::Quiet, format!("{ended} of {} tasks have ended", all.len())));
        }
        lines.join("\n")
    }

    fn line_at(&self, place: usize, now: Instant, palette: Palette) -> String {
        let task = &self.tasks[place];
        let running = task.since.filter(|_| task.state == TaskState::Running);
        let elapsed = running.map(|since| output::span((now - since).max(TimeDelta::zero())));
        let line = self.line(place, palette);
        elapsed.map_or(line.clone(), |elapsed| format!("{line}  {elapsed}"))
    }

    fn line(&self, place: usize, palette: Palette) -> String {
        let task = &self.tasks[place];
        let note = if task.note.is_empty() { String::new() } else { format!(": {}", task.note) };
        let children = task.children.as_ref().map(Children::summary).unwrap_or_default();
        let running = self.running.get(&task.name).and_then(Option::as_ref);
        let reported = running.map(reported).unwrap_or_default();
        let attempt = attempt(task.attempt, task.max_attempts);
        let state = self.name_and_state(&task.name, task.state, palette);
        format!("{state}{attempt}{children}{reported}{note}")
    }

    /// The line of a running child.
    fn child_line(&self, task: &TaskView, palette: Palette) -> String {
        let state = self.name_and_state(&task.name, TaskState::Running, palette);
        format!("{state}{}{}", attempt(task.attempt, task.max_attempts), reported(task))
    }

    fn name_and_state(&self, name: &str, state: TaskState, palette: Palette) -> String {
        let width = self.tasks.iter().map(|task| task.name.chars().count()).max().unwrap_or_default();
        let (sign, colour) = output::task_sign(state);
        format!("{name:<width$}  {}", palette.paint(colour, format!("{sign} {}", state.name())))
    }
}

/// ` (attempt 2 of 4)`; nothing for the first.
fn attempt(attempt: u32, max_attempts: u32) -> String {
    if attempt > 1 { format!(" (attempt {attempt} of {max_attempts})") } else { String::new() }
}

fn reported(task: &TaskView) -> String {
    let reported = task.progress.as_ref().map(output::reported).filter(|text| !text.is_empty());
    reported.map(|text| format!("  {text}")).unwrap_or_default()
}

fn is_relevant(state: TaskState) -> bool {
    matches!(
        state,
        TaskState::Dispatched
            | TaskState::Running
            | TaskState::Sleeping
            | TaskState::UpForRetry
            | TaskState::Failed
    )
}

fn end(kind: EventKind) -> Option<RunState> {
    match kind {
        EventKind::RunSucceeded => Some(RunState::Succeeded),
        EventKind::RunFailed => Some(RunState::Failed),
        EventKind::RunCancelled => Some(RunState::Cancelled),
        _ => None,
    }
}

fn entered(event: &EventView) -> Option<TaskState> {
    Some(match event.kind {
        EventKind::TaskHandedBack => TaskState::Queued,
        EventKind::TaskDispatched => TaskState::Dispatched,
        EventKind::TaskStarted => TaskState::Running,
        EventKind::TaskSleeping | EventKind::TaskWaiting | EventKind::TaskFannedOut => TaskState::Sleeping,
        EventKind::TaskRetrying => TaskState::UpForRetry,
        EventKind::TaskSucceeded => TaskState::Succeeded,
        EventKind::TaskFailed => TaskState::Failed,
        EventKind::TaskUpstreamFailed => TaskState::UpstreamFailed,
        EventKind::TaskSkipped => TaskState::Skipped,
        EventKind::TaskCancelled => TaskState::Cancelled,
        EventKind::TaskCleared => TaskState::Pending,
        EventKind::TaskMarked => TaskState::named(event.data["as"].as_str()?)?,
        _ => return None,
    })
}

/// The relevant part of an event's data, in one line.
fn note(data: &Value) -> String {
    let text = |name: &str| data[name].as_str().map(|text| output::first_line(text).to_owned());
    let error = text("message").map(|message| match text("class") {
        Some(class) => format!("{class}: {message}"),
        None => message,
    });
    let delay = data["delay_ms"].as_i64().map(TimeDelta::milliseconds);
    let again = delay.map(|delay| format!("again in {}", output::span(delay)));
    let until = text("until").map(|until| format!("until {until}"));
    let signal = text("signal").map(|signal| format!("waits for the signal {signal}"));
    let other = data["shared_with"]["run"].as_str().or(data["run"].as_str());
    let run = other.map(|run| format!("waits for run {run}"));
    [error, text("reason"), again, signal, run, until].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
