//! What must hold of every run, read from its own record of events.

use std::collections::BTreeMap;

use engine::Graph;
use model::{Event, EventKind, TaskIndex, TriggerRule, Workflow};

use crate::world::End;

/// The storm changed nothing about how the run ended.
pub(crate) fn same_end(calm: &End, storm: &End) -> Result<(), String> {
    if (calm.run, &calm.tasks) != (storm.run, &storm.tasks) {
        return Err(format!(
            "in calm {:?} {:?}, in the storm {:?} {:?}",
            calm.run, calm.tasks, storm.run, storm.tasks
        ));
    }
    Ok(())
}

/// No attempt was dispatched twice, no success came twice or was undone, nothing ran before its parents.
pub(crate) fn history(end: &End, workflow: &Workflow) -> Result<(), String> {
    let graph = Graph::compile(workflow.clone()).unwrap();
    let mut dispatched = BTreeMap::new();
    let mut ended: BTreeMap<TaskIndex, EventKind> = BTreeMap::new();
    for event in &end.events {
        let Some(task) = event.task else { continue };
        if let Some(before) = ended.get(&task) {
            return Err(format!("task {} went on with {:?} after {before:?}", task.0, event.kind));
        }
        match event.kind {
            EventKind::TaskDispatched => {
                *dispatched.entry((task, event.attempt)).or_insert(0) += 1;
                parents_have_ended(&graph, event, task, &ended)?;
            }
            EventKind::TaskSleeping | EventKind::TaskWaiting | EventKind::TaskFannedOut => {
                parents_have_ended(&graph, event, task, &ended)?;
            }
            kind if ends(event) => {
                ended.insert(task, kind);
            }
            _ => {}
        }
    }
    match dispatched.iter().find(|(_, count)| **count > 1) {
        Some(((task, attempt), count)) => {
            Err(format!("attempt {attempt} of task {} was released {count} times", task.0))
        }
        None => Ok(()),
    }
}

fn ends(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::TaskSucceeded
            | EventKind::TaskFailed
            | EventKind::TaskUpstreamFailed
            | EventKind::TaskSkipped
    )
}

fn parents_have_ended(
    graph: &Graph,
    event: &Event,
    task: TaskIndex,
    ended: &BTreeMap<TaskIndex, EventKind>,
) -> Result<(), String> {
    if event.child.is_some() {
        return Ok(());
    }
    let eager = matches!(graph.spec(task).trigger_rule, TriggerRule::OneSuccess | TriggerRule::OneFailed);
    match graph.parents(task).iter().find(|parent| !ended.contains_key(parent)) {
        Some(parent) if !eager => {
            Err(format!("task {} began before its parent {} had ended", task.0, parent.0))
        }
        _ => Ok(()),
    }
}
