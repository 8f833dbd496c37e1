//! A run and others: runs that it started, runs that share work with it, runs ahead of it in its concurrency group, and
//! the workers that could lease its tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Instant, RunId, RunState, ServedQueues, Task, TaskIndex, TaskKey};
use read::{ConcurrencyMember, SlotWait};
use runtime::Graph;
use serde_json::{Value, json};

use super::{Explained, Story, words};

/// Other runs, wait queues and workers that a run depends on.
#[derive(Default)]
pub struct Around {
    /// The oldest runs of its concurrency group, while it waits for the group.
    pub concurrency_group: Vec<ConcurrencyMember>,
    /// The runs that its tasks wait for, of those that exist.
    pub runs: BTreeMap<RunId, Other>,
    /// The positions of its queued tasks in the wait queue.
    pub slot_waits: BTreeMap<TaskIndex, SlotWait>,
    /// The queues that workers serve, while one of its tasks waits for a worker to lease it.
    pub served: Option<ServedQueues>,
}

/// A run that the explained run waits for.
pub struct Other {
    /// The name of its workflow.
    pub workflow: String,
    /// The current state of the run.
    pub state: RunState,
    /// Whether it waits until others have ended.
    pub waiting: bool,
    /// The graph of its version.
    pub graph: Arc<Graph>,
}

/// The run that a task waits for, by its event.
pub(super) fn waited_for(data: &Value) -> Option<RunId> {
    let shared = shared_with(data).map(|owner| owner.run);
    shared.or_else(|| serde_json::from_value(data["run"].clone()).ok())
}

fn shared_with(data: &Value) -> Option<TaskKey> {
    serde_json::from_value(data["shared_with"].clone()).ok()
}

/// Explains a task that waits for another run; none if it waits for something else.
pub(super) fn awaiting_other_run(story: &Story<'_>, task: &Task, data: &Value) -> Option<Explained> {
    let run = waited_for(data)?;
    Some(match shared_with(data) {
        Some(owner) => awaiting_shared(story, task, owner),
        None => awaiting_run(story, task, run, data["workflow"].as_str().unwrap_or_default()),
    })
}

fn awaiting_run(story: &Story<'_>, task: &Task, run: RunId, workflow: &str) -> Explained {
    let state = match story.around.runs.get(&run) {
        Some(other) => format!("which is {}", state_of(other)),
        None => "which does not exist yet".to_owned(),
    };
    let command = format!("ebb explain {run}");
    let because = format!(
        "It started run {run} of `{workflow}` at {} and waits for it, {state}. See `{command}`.",
        story.moment(task.since)
    );
    Explained::new(because, about(story, run, None, &command))
}

fn awaiting_shared(story: &Story<'_>, task: &Task, owner: TaskKey) -> Explained {
    let other = story.around.runs.get(&owner.run);
    let name = other.filter(|other| other.graph.has(owner.task, None));
    let name = name.map(|other| other.graph.name_at(owner.task, None));
    let shared = story.spec(task.index).global.as_ref().map(|global| format!(" as `{}`", global.name));
    let command = match &name {
        Some(name) => format!("ebb explain {} {}", owner.run, words::shell(name)),
        None => format!("ebb explain {}", owner.run),
    };
    let because = format!(
        "Since {} it has waited for {} of run {}, which executes the same work{} for both. See `{command}`.",
        story.moment(task.since),
        name.as_ref().map_or_else(|| "a task".to_owned(), |name| format!("`{name}`")),
        owner.run,
        shared.unwrap_or_default(),
    );
    Explained::new(because, about(story, owner.run, name, &command))
}

fn about(story: &Story<'_>, run: RunId, task: Option<String>, command: &str) -> Value {
    let other = story.around.runs.get(&run);
    json!({
        "run": run, "task": task, "state": other.map(|other| other.state),
        "workflow": other.map(|other| &other.workflow), "command": command,
    })
}

/// A run that begins only once others have ended.
pub(super) fn waiting_for_group(story: &Story<'_>) -> String {
    let limits = story.graph.workflow().concurrency.as_ref();
    let limit = limits.map_or(1, |limits| limits.limit);
    let runs = if limit == 1 { "1 run".to_owned() } else { format!("{limit} runs") };
    let key = match story.run.concurrency_group.as_deref() {
        None | Some("") => String::new(),
        Some(key) => format!(" with the concurrency key `{}`", words::quote(key)),
    };
    let going_on = story.around.concurrency_group.iter().filter(|member| !member.waiting);
    let going_on: Vec<String> = going_on.map(|member| format!("run {}", member.run)).collect();
    let waits = match going_on.as_slice() {
        [] => " It starts with its next recheck.".to_owned(),
        runs => format!(" It waits for {} to end{}.", words::list(runs.iter().cloned()), others_ahead(story)),
    };
    let since = story.moment(story.run.created_at);
    format!(
        "has waited for its concurrency group since {since}: its workflow allows {runs}{key} at once.{waits}"
    )
}

/// How many waiting runs are ahead of this one.
fn others_ahead(story: &Story<'_>) -> String {
    let before = story.around.concurrency_group.iter().take_while(|member| member.run != story.run.id);
    match before.filter(|member| member.waiting).count() {
        0 => String::new(),
        count => format!(", and {}", words::ahead(count)),
    }
}

/// The task that started the run, as a sentence.
pub(super) fn origin(story: &Story<'_>) -> String {
    let Some(parent) = story.run.parent else { return String::new() };
    let waits = if parent.waits { ", which waits for it" } else { "" };
    format!(" A task of run {} started it{waits}.", parent.key.run)
}

/// When the run times out, if it has a timeout.
pub(super) fn times_out_at(story: &Story<'_>) -> Option<Instant> {
    let limit = story.graph.workflow().timeout_seconds?;
    Some(story.run.started_at? + chrono::TimeDelta::seconds(limit.into()))
}

fn state_of(other: &Other) -> &'static str {
    if other.waiting && !other.state.is_final() {
        "waiting for its concurrency group"
    } else {
        other.state.name()
    }
}
