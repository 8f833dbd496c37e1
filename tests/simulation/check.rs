//! The invariants of every run, one function each, checked after every step that changed the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Graph;
use model::message::TaskFinished;
use model::{
    Counts, Event, EventKind, Instant, Message, RunId, RunState, Task, TaskIndex, TaskKind, TaskState, Timer,
    TimerKind, TriggerRule, VersionId,
};

use crate::coverage::Moves;
use crate::leasing::{NEVER_RECEIVED, SAVED};
use crate::replay::{Replay, Rows};
use crate::timers;

/// An invariant that a world violates.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.invariant, self.what)
    }
}

/// Every known run of a world.
pub(crate) type Replays = BTreeMap<RunId, Replay>;

pub(crate) type Checked = Result<(), Violation>;

pub(crate) fn violation(invariant: &'static str, what: impl Into<String>) -> Checked {
    Err(Violation { invariant, what: what.into() })
}

/// Checks a run that changed, and records its new state.
pub(crate) fn changed(replay: &mut Replay, rows: Rows<'_>, truth: Instant, moves: &mut Moves) -> Checked {
    no_final_run_changes(replay, &rows)?;
    for event in &rows.events {
        nothing_happens_to_what_has_ended(replay, event)?;
        no_attempt_is_released_twice(replay, event)?;
        nothing_begins_before_its_parents(replay, &rows, event)?;
        what_is_not_idempotent_begins_once(replay, &rows, event)?;
        timers::each_fires_once(replay, &rows, event)?;
        timers::none_is_early(replay, &rows, event, truth)?;
        replay.apply(event, moves).or_else(|what| violation("the_rows_follow_from_the_events", what))?;
    }
    replay.catch_up(&rows, moves).or_else(|what| violation("the_rows_follow_from_the_events", what))?;
    the_rows_follow_from_the_events(replay, &rows)?;
    the_counters_equal_the_tasks(replay, &rows)?;
    parents_are_counted_once(replay, &rows)?;
    every_wait_has_a_reason(&rows)?;
    (replay.run, replay.timers) = (rows.run, rows.timers);
    replay.tasks.extend(rows.tasks);
    Ok(())
}

/// Nothing but sent callbacks is written to a run that has ended, until a person re-runs a part of it.
fn no_final_run_changes(replay: &Replay, rows: &Rows<'_>) -> Checked {
    if !replay.run.state.is_final() || rows.events.iter().any(is_rerun) {
        return Ok(());
    }
    let is_callback = |event: &Event| event.kind == EventKind::RunCalledBack;
    let (before, mut after) = (&replay.run, rows.run.clone());
    (after.revision, after.events) = (before.revision, before.events);
    let there = replay.tasks.iter().filter(|(_, task)| task.state != TaskState::Removed);
    if *before != after || !there.eq(&rows.tasks) || !rows.events.iter().all(is_callback) {
        return violation(
            "no_final_run_changes",
            format!("{before:?} became {after:?} by {:?}", rows.events),
        );
    }
    Ok(())
}

/// Whether a person re-runs a task.
fn is_rerun(event: &Event) -> bool {
    event.kind == EventKind::TaskCleared && event.actor.is_some()
}

/// A success is recorded once, and only a person who re-runs the task undoes it. The same holds for every other end.
fn nothing_happens_to_what_has_ended(replay: &mut Replay, event: &Event) -> Checked {
    match replay.task(event) {
        Some(task) if task.state == TaskState::Removed || task.state.is_final() && !is_rerun(event) => {
            violation(
                "no_success_is_undone",
                format!(
                    "task {} went on with {:?} after it had {}",
                    task.index.0,
                    event.kind,
                    task.state.name()
                ),
            )
        }
        _ => Ok(()),
    }
}

fn no_attempt_is_released_twice(replay: &mut Replay, event: &Event) -> Checked {
    match (event.kind, event.task) {
        (EventKind::TaskDispatched, Some(task)) if !replay.released.insert((task, event.attempt)) => {
            violation("no_attempt_is_released_twice", format!("attempt {} of task {}", event.attempt, task.0))
        }
        _ => Ok(()),
    }
}

fn nothing_begins_before_its_parents(replay: &Replay, rows: &Rows<'_>, event: &Event) -> Checked {
    let begins = matches!(
        event.kind,
        EventKind::TaskDispatched
            | EventKind::TaskSleeping
            | EventKind::TaskWaiting
            | EventKind::TaskFannedOut
            | EventKind::TaskStarted
    );
    let (Some(task), None, true) = (event.task, event.child, begins) else { return Ok(()) };
    let rule = rows.graph.spec(task).trigger_rule;
    let eager = matches!(rule, TriggerRule::OneSuccess | TriggerRule::OneFailed | TriggerRule::Always);
    let open = |parent: &&TaskIndex| !replay.tasks[*parent].state.is_final();
    match rows.graph.parents(task).iter().find(open) {
        Some(parent) if !eager => violation(
            "nothing_begins_before_its_parents",
            format!("task {} began before its parent {} had ended", task.0, parent.0),
        ),
        _ => Ok(()),
    }
}

/// A task that is not idempotent begins again only if its last attempt reported a failure of its own, never reached its worker or
/// saved a checkpoint, or a person re-runs it.
fn what_is_not_idempotent_begins_once(replay: &mut Replay, rows: &Rows<'_>, event: &Event) -> Checked {
    let Some(task) = event.task else { return Ok(()) };
    let is_reported = || !matches!(event.data["class"].as_str(), Some("worker_lost" | "killed"));
    let may_be_repeated = || [NEVER_RECEIVED, SAVED].iter().any(|reason| event.data["reason"] == *reason);
    let must_begin_once = || rows.graph.spec_at(task, event.child).idempotent == Some(false);
    match event.kind {
        EventKind::TaskStarted if must_begin_once() && !replay.begun.insert(task) => {
            let what = format!("task {} begins with attempt {}", task.0, event.attempt);
            return violation("what_is_not_idempotent_begins_once", what);
        }
        EventKind::TaskCleared => drop(replay.begun.remove(&task)),
        EventKind::TaskRetrying if is_reported() => drop(replay.begun.remove(&task)),
        EventKind::TaskHandedBack if may_be_repeated() => drop(replay.begun.remove(&task)),
        _ => {}
    }
    Ok(())
}

fn the_rows_follow_from_the_events(replay: &Replay, rows: &Rows<'_>) -> Checked {
    if replay.run.state != rows.run.state {
        let what = format!("the run is {:?}, its events say {:?}", rows.run.state, replay.run.state);
        return violation("the_rows_follow_from_the_events", what);
    }
    for (index, row) in &rows.tasks {
        let replayed =
            replay.tasks.get(index).map_or((TaskState::Pending, 0), |task| (task.state, task.attempt));
        if replayed != (row.state, row.attempt) {
            let what =
                format!("task {} is {:?} #{}, its events say {replayed:?}", index.0, row.state, row.attempt);
            return violation("the_rows_follow_from_the_events", what);
        }
    }
    match replay
        .tasks
        .values()
        .find(|task| (task.state == TaskState::Removed) == rows.tasks.contains_key(&task.index))
    {
        Some(task) => {
            let what = format!("task {} is {} and shown, or is not and not", task.index.0, task.state.name());
            violation("the_rows_follow_from_the_events", what)
        }
        None => Ok(()),
    }
}

fn the_counters_equal_the_tasks(replay: &Replay, rows: &Rows<'_>) -> Checked {
    let mut numbers = Counts::default().to_array();
    // Their states are those of the rows, and those that were removed are not shown.
    replay.tasks.values().for_each(|task| numbers[task.state as usize] += 1);
    let counts = Counts::from_array(numbers);
    if counts != rows.run.counts {
        let what = format!("{:?} are counted as {:?}", counts, rows.run.counts);
        return violation("the_counters_equal_the_tasks", what);
    }
    let bad = rows.tasks.values().filter(|task| {
        matches!(task.state, TaskState::Failed | TaskState::UpstreamFailed)
            && task.child.is_none()
            && !rows.graph.spec(task.index).allow_failure
    });
    let failures = bad.count() as u32 + u32::from(replay.timed_out);
    if failures != rows.run.failures {
        let what = format!("{failures} failures are counted as {}", rows.run.failures);
        return violation("the_counters_equal_the_tasks", what);
    }
    Ok(())
}

/// A task counts exactly those of its parents that have ended. If all ended together, from outside, nothing was
/// propagated: a task that has ended need not know, and one that is re-run does.
fn parents_are_counted_once(replay: &Replay, rows: &Rows<'_>) -> Checked {
    if rows.run.state.is_final() {
        return Ok(());
    }
    let knows = |task: &&Task| !task.state.is_final() || replay.run_ends.is_empty();
    for task in rows.tasks.values().filter(|task| task.child.is_none()).filter(knows) {
        let parents = rows.graph.parents(task.index).iter();
        let ended = parents.filter(|parent| rows.tasks[*parent].state.is_final()).count() as u32;
        if task.parents.done != ended {
            let what = format!(
                "{ended} parents of task {} have ended, it knows of {:?}",
                task.index.0, task.parents
            );
            return violation("parents_are_counted_once", what);
        }
    }
    Ok(())
}

fn open_of<'a>(rows: &'a Rows<'_>) -> impl Iterator<Item = &'a Task> {
    rows.tasks.values().filter(|task| !task.state.is_final())
}

/// No task is lost: an unfinished run is rechecked, and a task that waits for an instant has its timer.
fn every_wait_has_a_reason(rows: &Rows<'_>) -> Checked {
    // A task that only sleeps has its timers, and signals and answers arrive as commands; one that waits for another run
    // may miss its end.
    let asleep = |task: &Task| {
        let spec = rows.graph.spec_at(task.index, task.child);
        let for_others = spec.kind == TaskKind::Workflow || spec.global.is_some();
        task.state == TaskState::UpForRetry || task.state == TaskState::Sleeping && !for_others
    };
    let mut open = rows.tasks.values().filter(|task| !task.state.is_final());
    let sleeps =
        open.clone().any(asleep) && open.all(|task| asleep(task) || task.state == TaskState::Pending);
    if !rows.run.state.is_final() && !rows.checked_up && !sleeps {
        let open: Vec<String> =
            open_of(rows).map(|task| format!("{} {}", task.index.0, task.state.name())).collect();
        return violation("no_task_is_lost", format!("nothing will recheck run {}: {open:?}", rows.run.id));
    }
    for task in rows.tasks.values() {
        let spec = rows.graph.spec_at(task.index, task.child);
        let kind = match task.state {
            TaskState::UpForRetry => TimerKind::Retry,
            TaskState::Sleeping if spec.kind == TaskKind::Sleep => TimerKind::Sleep,
            _ => continue,
        };
        let own = |timer: &Timer| {
            timer.task == Some(task.index) && timer.kind == kind && timer.attempt == task.attempt
        };
        if !rows.timers.iter().any(own) {
            let what = format!("task {} is {} without a timer", task.index.0, task.state.name());
            return violation("no_task_is_lost", what);
        }
    }
    Ok(())
}

/// A fan-out has no more active children than allowed, not counting those that a person re-runs meanwhile.
pub(crate) fn no_fan_out_is_too_wide(replay: &Replay, graph: &Graph) -> Checked {
    for fan_out in replay.tasks.values().filter(|task| task.fan.is_some()) {
        let limit = graph.spec(fan_out.index).fan_out.as_ref().and_then(|plan| plan.max_parallel);
        let goes_on = |task: &&Task| {
            task.child.is_some_and(|child| child.of == fan_out.index)
                && !replay.hurried.contains(&task.index)
                && task.state != TaskState::Pending
                && !task.state.is_final()
        };
        let going_on = replay.tasks.values().filter(goes_on).count();
        if limit.is_some_and(|limit| going_on > limit as usize) {
            let what = format!("{going_on} children of task {} go on, {limit:?} may", fan_out.index.0);
            return violation("no_fan_out_is_too_wide", what);
        }
    }
    Ok(())
}

/// A concurrency group has no more active runs than its limit.
pub(crate) fn no_concurrency_group_is_overfull(
    replays: &Replays,
    changed: &Replay,
    graph: &Graph,
) -> Checked {
    let (Some(group), Some(limits)) = (&changed.run.concurrency_group, &graph.workflow().concurrency) else {
        return Ok(());
    };
    let goes_on = |replay: &&Replay| {
        let run = &replay.run;
        run.workflow == changed.run.workflow
            && run.concurrency_group.as_ref() == Some(group)
            && run.tenant == changed.run.tenant
            && !run.waiting
            && !run.state.is_final()
    };
    let going_on = replays.values().filter(goes_on).count();
    if going_on > limits.limit as usize {
        return violation(
            "no_concurrency_group_is_overfull",
            format!("{going_on} runs go on, {} may", limits.limit),
        );
    }
    Ok(())
}

/// A shared task has one active execution in each queue at a time.
pub(crate) fn shared_work_is_done_once_at_a_time(
    replays: &Replays,
    graphs: &BTreeMap<VersionId, Arc<Graph>>,
) -> Checked {
    let mut owners = BTreeSet::new();
    for replay in replays.values().filter(|replay| !replay.run.state.is_final()) {
        let graph = &graphs[&replay.run.version];
        for task in replay.tasks.values().filter(|task| task.child.is_none()) {
            let spec = graph.spec(task.index);
            let executes = matches!(
                task.state,
                TaskState::Queued | TaskState::Dispatched | TaskState::Running | TaskState::UpForRetry
            );
            let Some(global) = spec.global.as_ref().filter(|_| executes) else { continue };
            let work = (global.name.clone(), spec.queue.clone(), spec.config.to_string());
            if !owners.insert((replay.run.tenant, work)) {
                let what = format!("{} is also executed by task {}", global.name, task.index.0);
                return violation("shared_work_is_done_once_at_a_time", what);
            }
        }
    }
    Ok(())
}

/// Nothing is published before it is true.
pub(crate) fn every_message_is_true(message: &Message, replays: &Replays) -> Checked {
    let replay = message.run().and_then(|run| replays.get(&run));
    let attempt_of =
        |task: TaskIndex| replay.and_then(|replay| replay.tasks.get(&task)).map(|task| task.attempt);
    let holds = match message {
        Message::TaskFinished(said) => {
            replay.is_some_and(|replay| replay.ends.contains(&(said.task, said.state)))
        }
        Message::RunFinished(said) => replay.is_some_and(|replay| replay.run_ends.contains(&said.state)),
        Message::ChildFinished(said) => {
            replays.get(&said.child).is_some_and(|child| child.run_ends.contains(&said.state))
        }
        Message::TaskDispatched(said) => {
            attempt_of(said.key.task).is_some_and(|attempt| attempt >= said.attempt)
        }
        _ => true,
    };
    if holds { Ok(()) } else { violation("every_message_is_true", format!("{message:?}")) }
}

/// Every end was published.
pub(crate) fn every_end_was_published(replay: &Replay, said: &[Message]) -> Checked {
    let (run, state) = (replay.run.id, replay.run.state);
    let is_published = |message: &Message| matches!(message, Message::RunFinished(said) if said.run == run && said.state == state);
    if !said.iter().any(is_published) {
        return violation("every_end_was_published", format!("the end of run {run} was not published"));
    }
    let ended = replay.tasks.values().filter(|task| task.state != TaskState::Removed);
    let is_reported = |task: &Task| {
        let own =
            |said: &TaskFinished| said.run == run && said.task == task.index && said.state == task.state;
        said.iter().any(|message| matches!(message, Message::TaskFinished(said) if own(said)))
    };
    match ended.into_iter().find(|task| !is_reported(task)) {
        Some(task) => violation(
            "every_end_was_published",
            format!("the end of task {} of run {run} was not published", task.index.0),
        ),
        None => Ok(()),
    }
}

/// How a run ended: its state, and those of the tasks of its definition.
pub(crate) type End = (RunState, Vec<TaskState>);

/// Faults do not change how a run ends.
pub(crate) fn same_end(clean: &End, faulty: &End) -> Checked {
    if clean == faulty {
        return Ok(());
    }
    violation("every_run_ends_as_without_faults", format!("without faults {clean:?}, with them {faulty:?}"))
}
