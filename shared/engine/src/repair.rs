//! Repairs of a run whose counters do not match its tasks. The rows of the tasks are what is true: the counters follow from
//! them, and so does the run's end.

use model::{Audit, Counts, EventKind};
use serde_json::{Map, Value, json};

use crate::command::Outcome;
use crate::run_slice::RunSlice;

/// Makes the run's counters match its tasks, and drops timers that nothing waits for. Idempotent.
pub(crate) fn recount(slice: &mut RunSlice<'_>, audit: &Audit) -> Outcome {
    let mut repaired = Map::new();
    // A run that ended stays as it ended.
    if !slice.run.state.is_final() {
        if slice.run.counts != audit.counts {
            let (was, is) = (named(&slice.run.counts), named(&audit.counts));
            repaired.insert("counts".into(), json!({"was": was, "is": is}));
            slice.run.counts = audit.counts;
        }
        let may = |task: &&model::TaskIndex| slice.graph.spec_at(**task, None).allow_failure;
        let failures = audit.ended_badly.iter().filter(|task| !may(task)).count() as u32;
        // There may be more: a run that took too long counts for itself.
        if slice.run.failures < failures {
            repaired.insert("failures".into(), json!({"was": slice.run.failures, "is": failures}));
            slice.run.failures = failures;
        }
    }
    for owner in &audit.orphaned_timers {
        slice.timers.unset(*owner);
    }
    if !audit.orphaned_timers.is_empty() {
        repaired.insert("orphaned_timers".into(), json!(audit.orphaned_timers.len()));
    }
    if repaired.is_empty() {
        return Outcome::Stale;
    }
    slice.record(EventKind::RunRepaired, None, None, Value::Object(repaired));
    Outcome::Applied
}

fn named(counts: &Counts) -> Value {
    counts
        .present()
        .map(|(state, count)| (state.name().to_owned(), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}
