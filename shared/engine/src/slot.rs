//! Places: a task that is to be carried out asks for one, and holds it until it ends or only waits.
//!
//! Who has a slot is decided by the store, for all runs together; a slice says who asks and who leaves.

use model::{
    Admission, BackfillId, Child, EventKind, Limit, Needed, SlotRelease, SlotRequest, TaskEvent, TaskIndex,
    TaskState, TenantId,
};
use serde_json::json;

use crate::run_slice::RunSlice;
use crate::{Graph, propagate};

impl RunSlice<'_> {
    /// The tasks that ask for a slot.
    pub fn slot_requests(&self) -> Vec<SlotRequest> {
        let request = |index: TaskIndex| {
            let task = &self.tasks[&index];
            SlotRequest {
                key: self.key(index),
                attempt: task.attempt,
                tenant: self.run.tenant,
                backfill: self.run.concurrency_group.as_deref().and_then(BackfillId::of_concurrency_group),
                priority: self.run.priority + self.spec(index).priority,
                since: task.since,
                waited: self.slots.before(index).is_none_or(|before| before == TaskState::Queued),
                needs: needs(self, index),
            }
        };
        self.slots.requested().map(request).collect()
    }

    /// The tasks that no longer need the slot that they had or waited for.
    pub fn slot_releases(&self) -> Vec<SlotRelease> {
        let release = |index: TaskIndex, holds_slots: bool| SlotRelease {
            key: self.key(index),
            holds_slots,
            needs: needs(self, index),
        };
        let moved = |(index, before): (TaskIndex, TaskState)| {
            let now = self.tasks[&index].state;
            let released = before.holds_slots() && !now.holds_slots();
            let left = before == TaskState::Queued && now != TaskState::Queued;
            (released || left).then(|| release(index, released))
        };
        let leaving = self.slots.leaving().map(|index| release(index, false));
        self.slots.moves().filter_map(moved).chain(leaving).collect()
    }

    /// What became of a task that asked for a slot.
    pub fn admit(&mut self, index: TaskIndex, admission: Admission) {
        self.slots.answered(index);
        match admission {
            Admission::Acquired => {
                let queue = &self.spec(index).queue;
                self.must(index, TaskEvent::Released, EventKind::TaskDispatched, json!({"queue": queue}));
                propagate::announce(self, index);
            }
            Admission::Waiting(limit) => {
                let full = json!({"limit": limit.kind(), "name": limit.name()});
                self.record(EventKind::TaskQueued, Some(index), None, full);
            }
            Admission::StillWaiting => {}
        }
    }
}

/// Lets a queued task ask for a slot. Its work message goes out once it has one.
pub(crate) fn release(slice: &mut RunSlice<'_>, index: TaskIndex) {
    if slice.is_paused() {
        return; // It stays queued until the run is resumed.
    }
    slice.slots.request(index);
}

/// Dispatches a queued task that was granted the slots it waited for.
pub(crate) fn take_slot(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32) -> crate::Outcome {
    let waits = |task: &model::Task| task.state == TaskState::Queued && task.attempt == attempt;
    if !slice.tasks.get(&index).is_some_and(waits) {
        return crate::Outcome::Stale;
    }
    if slice.is_paused() {
        leave_queue(slice, index); // Others may have it meanwhile.
    }
    release(slice, index);
    crate::Outcome::Applied
}

/// A queued task leaves its wait queue, or gives up the slots that it was granted.
pub(crate) fn leave_queue(slice: &mut RunSlice<'_>, index: TaskIndex) {
    slice.slots.leave(index);
}

fn needs(slice: &RunSlice<'_>, index: TaskIndex) -> Vec<Needed> {
    slice.graph.needs(slice.run.tenant, index, slice.tasks[&index].child)
}

impl Graph {
    /// Where a task of a tenant's run needs a slot, in the order in which it takes them.
    pub fn needs(&self, tenant: TenantId, index: TaskIndex, child: Option<Child>) -> Vec<Needed> {
        let (spec, workflow) = (self.spec_at(index, child), self.workflow());
        let pool = spec.pool.clone().map(|pool| (Limit::Pool(tenant, pool), None));
        let whole = workflow.max_active_tasks;
        let own = whole.map(|slots| (Limit::Workflow(tenant, workflow.name.clone()), Some(slots)));
        let always = [(Limit::Tenant(tenant), None), (Limit::Queue(spec.queue.clone()), None)];
        let all = pool.into_iter().chain(own).chain(always);
        all.map(|(limit, slots)| Needed { limit, slots }).collect()
    }
}
