//! The simulation: tasks arrive, take slots and release them, and the wait queue decides who is next.

use std::collections::{BTreeMap, VecDeque};

use engine::Trial;
use model::{TaskKey, TenantId};

use super::tenant::Tenant;

/// The slots that one tenant was granted.
#[derive(Clone, Default)]
pub(super) struct Grants {
    /// The slots it was entitled to, of those that were granted while several tenants waited.
    pub(super) entitled: f64,
    /// The slots it received of these.
    pub(super) received: u32,
    /// For each of its tasks, the number of slots that were granted while it waited.
    pub(super) waits: Vec<u32>,
}

/// The result of a simulation.
pub(super) struct Simulated {
    pub(super) releases: u32,
    pub(super) contended: u32,
    pub(super) tenants: Vec<Grants>,
}

struct Simulation<'a> {
    tenants: &'a [Tenant],
    trial: Trial,
    /// The tasks that have a slot, oldest first: all tasks take the same time.
    running: VecDeque<TaskKey>,
    /// The tenant of each waiting task, and the number of releases when it arrived.
    waiting: BTreeMap<TaskKey, (usize, u32)>,
    result: Simulated,
}

pub(super) fn run(tenants: &[Tenant], slots: u32) -> Simulated {
    let weights = tenants.iter().enumerate().map(|(index, tenant)| (id(index), tenant.weight)).collect();
    let result = Simulated { releases: 0, contended: 0, tenants: vec![Grants::default(); tenants.len()] };
    let trial = Trial::new(slots, &weights);
    let mut simulation =
        Simulation { tenants, trial, running: VecDeque::new(), waiting: BTreeMap::new(), result };
    let mut arrivals = arrivals(tenants);
    loop {
        let is_due =
            |(at, _): &(u32, usize)| *at <= simulation.result.releases || simulation.running.is_empty();
        if let Some((_, tenant)) = arrivals.pop_front_if(|arrival| is_due(arrival)) {
            simulation.arrive(tenant);
        } else if let Some(task) = simulation.running.pop_front() {
            simulation.release(task);
        } else {
            return simulation.result;
        }
    }
}

/// When each task arrives, and its tenant, in order of arrival.
fn arrivals(tenants: &[Tenant]) -> VecDeque<(u32, usize)> {
    let of_one = |(index, tenant): (usize, &Tenant)| {
        let (at, every) = (tenant.at, tenant.every);
        (0..tenant.tasks).map(move |task| (at.saturating_add(task.saturating_mul(every)), index))
    };
    let mut all: Vec<(u32, usize)> = tenants.iter().enumerate().flat_map(of_one).collect();
    all.sort_by_key(|(at, _)| *at);
    all.into()
}

fn id(index: usize) -> TenantId {
    TenantId(index as i32 + 1)
}

impl Simulation<'_> {
    fn arrive(&mut self, tenant: usize) {
        let (task, at_once) = self.trial.request(id(tenant));
        if at_once {
            self.result.releases += 1;
            self.result.tenants[tenant].waits.push(0);
            self.running.push_back(task);
        } else {
            self.waiting.insert(task, (tenant, self.result.releases));
        }
    }

    fn release(&mut self, task: TaskKey) {
        let contenders: Vec<usize> = self.trial.waiting().map(|tenant| tenant.0 as usize - 1).collect();
        for task in self.trial.release(task) {
            let (tenant, since) = self.waiting.remove(&task).expect("the task waited");
            self.result.tenants[tenant].waits.push(self.result.releases - since);
            self.result.releases += 1;
            self.count(&contenders, tenant);
            self.running.push_back(task);
        }
    }

    /// Each contender is entitled to a share of the slot, in proportion to its weight.
    fn count(&mut self, contenders: &[usize], receiver: usize) {
        if contenders.len() < 2 {
            return;
        }
        self.result.contended += 1;
        self.result.tenants[receiver].received += 1;
        let weight = |tenant: &usize| f64::from(self.tenants[*tenant].weight);
        let all: f64 = contenders.iter().map(weight).sum();
        for tenant in contenders {
            self.result.tenants[*tenant].entitled += weight(tenant) / all;
        }
    }
}
