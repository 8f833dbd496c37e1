//! Places: a task that is to be carried out asks for one, and holds it until it ends or only waits.
//!
//! Who has a slot is decided by the store, for all runs together; a slice says who asks and who leaves.

use model::{
    Admission, BackfillId, Child, EventKind, Limit, Needed, SlotRelease, SlotRequest, TaskEvent, TaskIndex,
    TaskState, TenantId,
};
use serde_json::json;

use crate::Graph;
use crate::run_slice::RunSlice;

impl RunSlice<'_> {
    /// Lets a queued task ask for a slot. Its work message goes out once it has one.
    pub(crate) fn release(&mut self, index: TaskIndex) {
        if self.is_paused() {
            return; // It stays queued until the run is resumed.
        }
        self.asking.insert(index);
    }

    /// A place is there for a task that stood in line.
    pub(crate) fn take_slot(&mut self, index: TaskIndex, attempt: u32) -> crate::Outcome {
        let waits = |task: &model::Task| task.state == TaskState::Queued && task.attempt == attempt;
        if !self.tasks.get(&index).is_some_and(waits) {
            return crate::Outcome::Stale;
        }
        if self.is_paused() {
            self.leave_queue(index); // Others may have it meanwhile.
        }
        self.release(index);
        crate::Outcome::Applied
    }

    /// A queued task gives up where it stands in line, or the place that it was granted.
    pub(crate) fn leave_queue(&mut self, index: TaskIndex) {
        self.leaving.insert(index);
    }

    /// The tasks that ask for a slot.
    pub fn asks(&self) -> Vec<SlotRequest> {
        let ask = |index: &TaskIndex| {
            let task = &self.tasks[index];
            SlotRequest {
                key: self.key(*index),
                attempt: task.attempt,
                tenant: self.run.tenant,
                backfill: self.run.concurrency_group.as_deref().and_then(BackfillId::of_concurrency_group),
                priority: self.run.priority + self.spec(*index).priority,
                since: task.since,
                waited: self.before.get(index).is_none_or(|before| *before == TaskState::Queued),
                needs: self.needs(*index),
            }
        };
        self.asking.iter().map(ask).collect()
    }

    /// The tasks that no longer need the slot that they had or waited for.
    pub fn leaves(&self) -> Vec<SlotRelease> {
        let leave = |(index, before): (&TaskIndex, &TaskState)| {
            let now = self.tasks[index].state;
            let left = before.holds_slots() && !now.holds_slots();
            let gone = *before == TaskState::Queued && now != TaskState::Queued;
            (left || gone).then(|| SlotRelease {
                key: self.key(*index),
                holds_slots: left,
                needs: self.needs(*index),
            })
        };
        let queued = |index: &TaskIndex| SlotRelease {
            key: self.key(*index),
            holds_slots: false,
            needs: self.needs(*index),
        };
        self.before.iter().filter_map(leave).chain(self.leaving.iter().map(queued)).collect()
    }

    /// What became of a task that asked for a slot.
    pub fn seat(&mut self, index: TaskIndex, seat: Admission) {
        self.asking.remove(&index);
        match seat {
            Admission::Acquired => {
                let queue = &self.spec(index).queue;
                self.must(index, TaskEvent::Released, EventKind::TaskDispatched, json!({"queue": queue}));
                self.announce(index);
            }
            Admission::Waiting(limit) => {
                let full = json!({"limit": limit.kind(), "name": limit.name()});
                self.record(EventKind::TaskQueued, Some(index), None, full);
            }
            Admission::StillWaiting => {}
        }
    }

    fn needs(&self, index: TaskIndex) -> Vec<Needed> {
        self.graph.needs(self.run.tenant, index, self.tasks[&index].child)
    }
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
