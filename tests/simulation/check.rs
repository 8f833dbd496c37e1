//! What must hold of every run, each under its own name, looked at after every step that changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Graph;
use model::message::TaskFinished;
use model::{
    Counts, Event, EventKind, Instant, Message, RunId, RunState, Task, TaskIndex, TaskState, Timer,
    TimerKind, TriggerRule, VersionId,
};

use crate::coverage::Moves;
use crate::shadow::{Rows, Shadow};
use crate::timers;

/// Something that must hold and does not.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.invariant, self.what)
    }
}

/// Every run of a world, as far as it is known.
pub(crate) type Shadows = BTreeMap<RunId, Shadow>;

pub(crate) type Checked = Result<(), Trouble>;

pub(crate) fn trouble(invariant: &'static str, what: impl Into<String>) -> Checked {
    Err(Trouble { invariant, what: what.into() })
}

/// Looks at a run that changed, and takes note of how it is now.
pub(crate) fn changed(shadow: &mut Shadow, rows: Rows<'_>, truth: Instant, moves: &mut Moves) -> Checked {
    no_final_run_changes(shadow, &rows)?;
    for event in &rows.events {
        nothing_happens_to_what_has_ended(shadow, event)?;
        no_attempt_is_released_twice(shadow, event)?;
        nothing_begins_before_its_parents(shadow, &rows, event)?;
        timers::each_fires_once(shadow, &rows, event)?;
        timers::none_is_early(shadow, &rows, event, truth)?;
        shadow.play(event, moves).or_else(|what| trouble("the_rows_follow_from_the_events", what))?;
    }
    shadow.catch_up(&rows, moves).or_else(|what| trouble("the_rows_follow_from_the_events", what))?;
    the_rows_follow_from_the_events(shadow, &rows)?;
    the_counters_equal_the_tasks(shadow, &rows)?;
    parents_are_counted_once(shadow, &rows)?;
    whoever_waits_has_a_reason(&rows)?;
    (shadow.run, shadow.timers) = (rows.run, rows.timers);
    shadow.tasks.extend(rows.tasks);
    Ok(())
}

/// Nothing is written to a run that has ended, but who was told of it, until a person has some of it done anew.
fn no_final_run_changes(shadow: &Shadow, rows: &Rows<'_>) -> Checked {
    if !shadow.run.state.is_final() || rows.events.iter().any(is_anew) {
        return Ok(());
    }
    let told = |event: &Event| event.kind == EventKind::RunCalledBack;
    let (before, mut after) = (&shadow.run, rows.run.clone());
    (after.revision, after.events) = (before.revision, before.events);
    let there = shadow.tasks.iter().filter(|(_, task)| task.state != TaskState::Removed);
    if *before != after || !there.eq(&rows.tasks) || !rows.events.iter().all(told) {
        return trouble("no_final_run_changes", format!("{before:?} became {after:?} by {:?}", rows.events));
    }
    Ok(())
}

/// Whether a person has a task done anew.
fn is_anew(event: &Event) -> bool {
    event.kind == EventKind::TaskCleared && event.actor.is_some()
}

/// A success is recorded once and never undone but by a person who has it done anew; nor is any other end.
fn nothing_happens_to_what_has_ended(shadow: &mut Shadow, event: &Event) -> Checked {
    match shadow.task(event) {
        Some(task) if task.state == TaskState::Removed || task.state.is_final() && !is_anew(event) => {
            trouble(
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

fn no_attempt_is_released_twice(shadow: &mut Shadow, event: &Event) -> Checked {
    match (event.kind, event.task) {
        (EventKind::TaskDispatched, Some(task)) if !shadow.released.insert((task, event.attempt)) => {
            trouble("no_attempt_is_released_twice", format!("attempt {} of task {}", event.attempt, task.0))
        }
        _ => Ok(()),
    }
}

fn nothing_begins_before_its_parents(shadow: &Shadow, rows: &Rows<'_>, event: &Event) -> Checked {
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
    let open = |parent: &&TaskIndex| !shadow.tasks[*parent].state.is_final();
    match rows.graph.parents(task).iter().find(open) {
        Some(parent) if !eager => trouble(
            "nothing_begins_before_its_parents",
            format!("task {} began before its parent {} had ended", task.0, parent.0),
        ),
        _ => Ok(()),
    }
}

fn the_rows_follow_from_the_events(shadow: &Shadow, rows: &Rows<'_>) -> Checked {
    if shadow.run.state != rows.run.state {
        let what = format!("the run is {:?}, its events say {:?}", rows.run.state, shadow.run.state);
        return trouble("the_rows_follow_from_the_events", what);
    }
    for (index, row) in &rows.tasks {
        let told = shadow.tasks.get(index).map_or((TaskState::Pending, 0), |task| (task.state, task.attempt));
        if told != (row.state, row.attempt) {
            let what =
                format!("task {} is {:?} #{}, its events say {told:?}", index.0, row.state, row.attempt);
            return trouble("the_rows_follow_from_the_events", what);
        }
    }
    match shadow
        .tasks
        .values()
        .find(|task| (task.state == TaskState::Removed) == rows.tasks.contains_key(&task.index))
    {
        Some(task) => {
            let what = format!("task {} is {} and shown, or is not and not", task.index.0, task.state.name());
            trouble("the_rows_follow_from_the_events", what)
        }
        None => Ok(()),
    }
}

fn the_counters_equal_the_tasks(shadow: &Shadow, rows: &Rows<'_>) -> Checked {
    let mut numbers = Counts::default().to_array();
    // Their states are those of the rows, and those that were removed are not shown.
    shadow.tasks.values().for_each(|task| numbers[task.state as usize] += 1);
    let counts = Counts::from_array(numbers);
    if counts != rows.run.counts {
        let what = format!("{:?} are counted as {:?}", counts, rows.run.counts);
        return trouble("the_counters_equal_the_tasks", what);
    }
    let bad = rows.tasks.values().filter(|task| {
        matches!(task.state, TaskState::Failed | TaskState::UpstreamFailed)
            && task.child.is_none()
            && !rows.graph.spec(task.index).allow_failure
    });
    let failures = bad.count() as u32 + u32::from(shadow.timed_out);
    if failures != rows.run.failures {
        let what = format!("{failures} failures are counted as {}", rows.run.failures);
        return trouble("the_counters_equal_the_tasks", what);
    }
    Ok(())
}

/// A task knows exactly of those of its parents that have ended. Once all ended together from outside nobody was told:
/// who has ended need not know, and who begins anew does.
fn parents_are_counted_once(shadow: &Shadow, rows: &Rows<'_>) -> Checked {
    if rows.run.state.is_final() {
        return Ok(());
    }
    let knows = |task: &&Task| !task.state.is_final() || shadow.run_ends.is_empty();
    for task in rows.tasks.values().filter(|task| task.child.is_none()).filter(knows) {
        let parents = rows.graph.parents(task.index).iter();
        let ended = parents.filter(|parent| rows.tasks[*parent].state.is_final()).count() as u32;
        if task.parents.done != ended {
            let what = format!(
                "{ended} parents of task {} have ended, it knows of {:?}",
                task.index.0, task.parents
            );
            return trouble("parents_are_counted_once", what);
        }
    }
    Ok(())
}

fn open_of<'a>(rows: &'a Rows<'_>) -> impl Iterator<Item = &'a Task> {
    rows.tasks.values().filter(|task| !task.state.is_final())
}

/// No task is lost: an unfinished run is looked at, and what waits for a time has its timer.
fn whoever_waits_has_a_reason(rows: &Rows<'_>) -> Checked {
    // What only sleeps has its timers, and signals and answers come as commands; whoever waits for another run may miss
    // its end.
    let asleep = |task: &Task| {
        let spec = rows.graph.spec_at(task.index, task.child);
        let for_others = spec.kind == "workflow" || spec.global.is_some();
        task.state == TaskState::UpForRetry || task.state == TaskState::Sleeping && !for_others
    };
    let mut open = rows.tasks.values().filter(|task| !task.state.is_final());
    let sleeps =
        open.clone().any(asleep) && open.all(|task| asleep(task) || task.state == TaskState::Pending);
    if !rows.run.state.is_final() && !rows.checked_up && !sleeps {
        let open: Vec<String> =
            open_of(rows).map(|task| format!("{} {}", task.index.0, task.state.name())).collect();
        return trouble("no_task_is_lost", format!("nobody will look at run {}: {open:?}", rows.run.id));
    }
    for task in rows.tasks.values() {
        let spec = rows.graph.spec_at(task.index, task.child);
        let kind = match task.state {
            TaskState::UpForRetry => TimerKind::Retry,
            TaskState::Sleeping if spec.kind == "sleep" => TimerKind::Sleep,
            _ => continue,
        };
        let own = |timer: &Timer| {
            timer.task == Some(task.index) && timer.kind == kind && timer.attempt == task.attempt
        };
        if !rows.timers.iter().any(own) {
            let what = format!("task {} is {} without a timer", task.index.0, task.state.name());
            return trouble("no_task_is_lost", what);
        }
    }
    Ok(())
}

/// Of a fan-out's children only so many go on at the same time, beside those that somebody had done anew meanwhile.
pub(crate) fn no_fan_out_is_too_wide(shadow: &Shadow, graph: &Graph) -> Checked {
    for fan_out in shadow.tasks.values().filter(|task| task.fan.is_some()) {
        let limit = graph.spec(fan_out.index).fan_out.as_ref().and_then(|plan| plan.max_parallel);
        let goes_on = |task: &&Task| {
            task.child.is_some_and(|child| child.of == fan_out.index)
                && !shadow.hurried.contains(&task.index)
                && task.state != TaskState::Pending
                && !task.state.is_final()
        };
        let going_on = shadow.tasks.values().filter(goes_on).count();
        if limit.is_some_and(|limit| going_on > limit as usize) {
            let what = format!("{going_on} children of task {} go on, {limit:?} may", fan_out.index.0);
            return trouble("no_fan_out_is_too_wide", what);
        }
    }
    Ok(())
}

/// Of the runs of one lane only so many go on at the same time.
pub(crate) fn no_lane_is_overfull(shadows: &Shadows, changed: &Shadow, graph: &Graph) -> Checked {
    let (Some(lane), Some(limits)) = (&changed.run.lane, &graph.workflow().concurrency) else {
        return Ok(());
    };
    let goes_on = |shadow: &&Shadow| {
        let run = &shadow.run;
        run.workflow == changed.run.workflow
            && run.lane.as_ref() == Some(lane)
            && run.tenant == changed.run.tenant
            && !run.held
            && !run.state.is_final()
    };
    let going_on = shadows.values().filter(goes_on).count();
    if going_on > limits.limit as usize {
        return trouble("no_lane_is_overfull", format!("{going_on} runs go on, {} may", limits.limit));
    }
    Ok(())
}

/// Whatever several runs share, one of them carries out at a time.
pub(crate) fn shared_work_is_done_once_at_a_time(
    shadows: &Shadows,
    graphs: &BTreeMap<VersionId, Arc<Graph>>,
) -> Checked {
    let mut owners = BTreeSet::new();
    for shadow in shadows.values().filter(|shadow| !shadow.run.state.is_final()) {
        let graph = &graphs[&shadow.run.version];
        for task in shadow.tasks.values().filter(|task| task.child.is_none()) {
            let spec = graph.spec(task.index);
            let carries_out = matches!(
                task.state,
                TaskState::Queued | TaskState::Dispatched | TaskState::Running | TaskState::UpForRetry
            );
            let Some(global) = spec.global.as_ref().filter(|_| carries_out) else { continue };
            if !owners.insert((shadow.run.tenant, global.name.clone(), spec.config.to_string())) {
                let what = format!("{} is carried out by task {} as well", global.name, task.index.0);
                return trouble("shared_work_is_done_once_at_a_time", what);
            }
        }
    }
    Ok(())
}

/// Nothing is said before it is true.
pub(crate) fn what_is_said_is_true(message: &Message, shadows: &Shadows) -> Checked {
    let shadow = message.run().and_then(|run| shadows.get(&run));
    let attempt_of =
        |task: TaskIndex| shadow.and_then(|shadow| shadow.tasks.get(&task)).map(|task| task.attempt);
    let holds = match message {
        Message::TaskFinished(said) => {
            shadow.is_some_and(|shadow| shadow.ends.contains(&(said.task, said.state)))
        }
        Message::RunFinished(said) => shadow.is_some_and(|shadow| shadow.run_ends.contains(&said.state)),
        Message::ChildFinished(said) => {
            shadows.get(&said.child).is_some_and(|child| child.run_ends.contains(&said.state))
        }
        Message::TaskDispatched(said) => {
            attempt_of(said.key.task).is_some_and(|attempt| attempt >= said.attempt)
        }
        _ => true,
    };
    if holds { Ok(()) } else { trouble("what_is_said_is_true", format!("{message:?}")) }
}

/// Whoever listens has heard of every end.
pub(crate) fn every_end_was_told(shadow: &Shadow, said: &[Message]) -> Checked {
    let (run, state) = (shadow.run.id, shadow.run.state);
    let told = |message: &Message| matches!(message, Message::RunFinished(said) if said.run == run && said.state == state);
    if !said.iter().any(told) {
        return trouble("every_end_was_told", format!("nobody heard that run {run} ended"));
    }
    let ended = shadow.tasks.values().filter(|task| task.state != TaskState::Removed);
    let heard = |task: &Task| {
        let own =
            |said: &TaskFinished| said.run == run && said.task == task.index && said.state == task.state;
        said.iter().any(|message| matches!(message, Message::TaskFinished(said) if own(said)))
    };
    match ended.into_iter().find(|task| !heard(task)) {
        Some(task) => trouble(
            "every_end_was_told",
            format!("nobody heard that task {} of run {run} ended", task.index.0),
        ),
        None => Ok(()),
    }
}

/// How a run ended: its state, and those of the tasks of its definition.
pub(crate) type End = (RunState, Vec<TaskState>);

/// The storm changed nothing about how a run ended.
pub(crate) fn same_end(calm: &End, storm: &End) -> Checked {
    if calm == storm {
        return Ok(());
    }
    trouble("every_run_ends_as_in_calm", format!("in calm {calm:?}, in the storm {storm:?}"))
}
