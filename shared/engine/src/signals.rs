//! Signals and answers: what people and other systems send to tasks that wait for them.

use model::{EventKind, Failure, Signal, TaskIndex, TaskKind, TaskState};
use serde_json::{Value, json};

use crate::command::Outcome;
use crate::decide::{fail, succeed};
use crate::run_slice::RunSlice;

/// Delivers a signal to the tasks that wait for it; if there are none, it is kept for the first one that will.
pub(crate) fn signal(slice: &mut RunSlice<'_>, name: &str, payload: &Value, actor: &str) -> Outcome {
    if slice.run.state.is_final() {
        return Outcome::Stale;
    }
    slice.record(EventKind::RunSignalled, None, Some(actor), json!({"signal": name}));
    let graph = slice.graph;
    let asleep = |slice: &RunSlice<'_>, task: &TaskIndex| {
        slice.tasks.get(task).is_some_and(|task| task.state == TaskState::Sleeping)
    };
    let waiting: Vec<TaskIndex> = graph.waiting_for(name).filter(|task| asleep(slice, task)).collect();
    if waiting.is_empty() {
        slice.draft.keep_signal(Signal { name: name.into(), payload: payload.clone() });
    }
    for index in waiting {
        succeed(slice, index, slice.tasks[&index].attempt, slice.now, payload);
    }
    Outcome::Applied
}

/// Ends an approval that waits for an answer.
pub(crate) fn answer(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    approved: bool,
    payload: &Value,
    actor: &str,
) -> Outcome {
    let asks = slice.tasks.get(&index).is_some_and(|task| task.state == TaskState::Sleeping)
        && slice.spec(index).kind == TaskKind::Approval;
    if !asks {
        return Outcome::Stale;
    }
    if approved {
        // The form is the output; the approver is recorded next to it.
        let mut output = json!({"approved": true, "approved_by": actor});
        for (name, value) in payload.as_object().into_iter().flatten() {
            output[name] = value.clone();
        }
        succeed(slice, index, slice.tasks[&index].attempt, slice.now, &output);
    } else {
        let reason = payload.as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
        fail(slice, index, Failure::permanent(format!("{actor} did not approve{reason}")));
    }
    slice.last_event().actor = Some(actor.into());
    Outcome::Applied
}
