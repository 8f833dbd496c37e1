//! Slots: a task that a worker is to execute requests one of each of its limits, and holds them until it ends or only waits.
//!
//! [`admission`](crate::admission) decides who gets a slot, for all runs together; a slice names the tasks that request slots
//! and those that release them.

use model::{
    Admission, BackfillId, Child, EventKind, Limit, Needed, SlotRelease, SlotRequest, TaskEvent, TaskIndex,
    TaskState, TenantId,
};
use serde_json::json;

use crate::run_slice::RunSlice;
use crate::{Graph, propagate};

impl RunSlice<'_> {
    /// The tasks that request slots.
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

    /// Applies the outcome of a task's request for slots.
    pub fn admit(&mut self, index: TaskIndex, admission: Admission) {
        self.slots.answered(index);
        match admission {
            Admission::Acquired => {
                let queue = &self.spec(index).queue;
                self.must(index, TaskEvent::Released, EventKind::TaskDispatched, json!({"queue": queue}));
                propagate::dispatch(self, index);
            }
            Admission::Waiting(limit) => {
                let full = json!({"limit": limit.kind(), "name": limit.name()});
                self.record(EventKind::TaskQueued, Some(index), None, full);
            }
            Admission::StillWaiting => {}
        }
    }
}

/// Requests the slots of a queued task. Its work message is published once it has them.
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
    /// The limits that a task of a tenant's run needs a slot of, in the order in which it acquires them.
    pub fn needs(&self, tenant: TenantId, index: TaskIndex, child: Option<Child>) -> Vec<Needed> {
        let (spec, workflow) = (self.spec_at(index, child), self.workflow());
        let breaker = spec.breaker.and_then(|_| self.breaker(tenant, index, child).limit());
        let breaker = breaker.map(|limit| (limit, None));
        let pool = spec.pool.clone().map(|pool| (Limit::Pool(tenant, pool), None));
        let whole = workflow.max_active_tasks;
        let own = whole.map(|slots| (Limit::Workflow(tenant, workflow.name.clone()), Some(slots)));
        let tenants = (Limit::Tenant(tenant), None);
        // Workers lease no more than they have slots for, and those of one tenant must not hold up another's.
        let queue = (!spec.leased).then(|| (Limit::Queue(spec.queue.clone()), None));
        let all = breaker.into_iter().chain(pool).chain(own).chain([tenants]).chain(queue);
        all.map(|(limit, slots)| Needed { limit, slots }).collect()
    }
}
