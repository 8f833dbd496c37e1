//! A world whose processes are replaced while a worker outside runs a task of hours.

use chrono::TimeDelta;
use model::Task;
use store::Runs;

use super::World;
use crate::fault_points::now;
use crate::workflows;

impl World {
    /// Requests a run of one task that a worker outside leases and that takes this long.
    pub(crate) fn with_leased_task(mut self, takes: TimeDelta) -> Self {
        self.register([workflows::long(takes)]);
        self.has_leases = true;
        let (tenant, start) = (self.observer.tenants[0], self.start);
        self.request_for(tenant, "long", start);
        self
    }

    /// How much time has passed.
    pub(crate) fn age(&self) -> TimeDelta {
        self.now() - self.start
    }

    /// Replaces every process of the functions at once. What they were doing ends.
    pub(crate) fn deploy(&mut self) {
        let all: Vec<u64> = self.instances.iter().map(|instance| instance.id).collect();
        all.into_iter().for_each(|instance| self.replace(instance));
    }

    /// The first task of the run that was requested first, once the run exists.
    pub(crate) fn first_task(&self) -> Option<Task> {
        let rows = now(self.shared.memory.run_tasks(self.runs[0], None, None, 1)).unwrap();
        rows.into_iter().next().map(|row| row.task)
    }
}
