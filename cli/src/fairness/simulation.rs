//! The simulation: tasks arrive, take slots and release them, and the wait queue decides who is next.

use std::collections::{BTreeMap, VecDeque};

use model::{TaskKey, TenantId};
use store::Trial;

use super::tenant::Tenant;

/// The result of one tenant.
#[derive(Clone, Default)]
pub(super) struct Got {
    /// How many slots it was entitled to, of those granted while several tenants waited.
    pub(super) entitled: f64,
    /// How many it received of these.
    pub(super) received: u32,
    /// How many slots were granted while each of its tasks waited.
    pub(super) waits: Vec<u32>,
}

/// The result of all tenants.
pub(super) struct Simulated {
    pub(super) releases: u32,
    pub(super) contended: u32,
    pub(super) tenants: Vec<Got>,
}

struct Simulation<'a> {
    tenants: &'a [Tenant],
    trial: Trial,
    /// Who holds a slot, longest first: all tasks take equally long.
    holders: VecDeque<TaskKey>,
    /// The tenant of each waiting task, and the release at which it arrived.
    arrived: BTreeMap<TaskKey, (usize, u32)>,
    result: Simulated,
}

/// Runs the simulation to its end.
pub(super) fn simulate_all(tenants: &[Tenant], slots: u32) -> Simulated {
    let weights = tenants.iter().enumerate().map(|(place, tenant)| (number(place), tenant.weight)).collect();
    let result = Simulated { releases: 0, contended: 0, tenants: vec![Got::default(); tenants.len()] };
    let trial = Trial::new(slots, &weights);
    let mut simulation =
        Simulation { tenants, trial, holders: VecDeque::new(), arrived: BTreeMap::new(), result };
    let mut arrivals = VecDeque::from(arrivals(tenants));
    loop {
        while arrivals
            .front()
            .is_some_and(|(at, _)| *at <= simulation.result.releases || simulation.holders.is_empty())
        {
            simulation.arrive(arrivals.pop_front().expect("it was checked").1);
        }
        match simulation.holders.pop_front() {
            Some(task) => simulation.release(task),
            None => return simulation.result,
        }
    }
}

/// The arrivals of tasks by time, with their tenant.
fn arrivals(tenants: &[Tenant]) -> Vec<(u32, usize)> {
    let of_one = |(place, tenant): (usize, &Tenant)| {
        let (at, every) = (tenant.at, tenant.every);
        (0..tenant.tasks).map(move |task| (at.saturating_add(task.saturating_mul(every)), place))
    };
    let mut all: Vec<(u32, usize)> = tenants.iter().enumerate().flat_map(of_one).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

fn number(place: usize) -> TenantId {
    TenantId(place as i32 + 1)
}

impl Simulation<'_> {
    fn arrive(&mut self, place: usize) {
        let (task, at_once) = self.trial.ask(number(place));
        if at_once {
            self.result.releases += 1;
            self.result.tenants[place].waits.push(0);
            self.holders.push_back(task);
        } else {
            self.arrived.insert(task, (place, self.result.releases));
        }
    }

    fn release(&mut self, task: TaskKey) {
        let waiting: Vec<usize> = self.trial.in_line().map(|tenant| tenant.0 as usize - 1).collect();
        for task in self.trial.leave(task) {
            let (place, since) = self.arrived.remove(&task).expect("it waited");
            self.result.tenants[place].waits.push(self.result.releases - since);
            self.result.releases += 1;
            self.count(&waiting, place);
            self.holders.push_back(task);
        }
    }

    /// A waiting tenant is entitled to a share of each granted slot, in proportion to its weight.
    fn count(&mut self, waiting: &[usize], receiver: usize) {
        if waiting.len() < 2 {
            return;
        }
        self.result.contended += 1;
        self.result.tenants[receiver].received += 1;
        let weight = |place: &usize| f64::from(self.tenants[*place].weight);
        let all: f64 = waiting.iter().map(weight).sum();
        for place in waiting {
            self.result.tenants[*place].entitled += weight(place) / all;
        }
    }
}
