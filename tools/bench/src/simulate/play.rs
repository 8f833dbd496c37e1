//! The simulation: tasks come, take slots and give them back, and the wait queue decides who is next.

use std::collections::{BTreeMap, VecDeque};

use engine::Trial;
use model::{TaskKey, TenantId};

use super::tenant::Tenant;

/// What became of one tenant.
#[derive(Clone, Default)]
pub(super) struct Got {
    /// The slots it was entitled to, of those that were given while several tenants waited.
    pub(super) entitled: f64,
    /// The slots it received of these.
    pub(super) received: u32,
    /// The slots that were given while each of its tasks waited.
    pub(super) waits: Vec<u32>,
}

/// What became of all tenants.
pub(super) struct Played {
    pub(super) releases: u32,
    pub(super) contended: u32,
    pub(super) tenants: Vec<Got>,
}

struct Play<'a> {
    tenants: &'a [Tenant],
    trial: Trial,
    /// The tasks that have a slot, the oldest first: all tasks take equally long.
    running: VecDeque<TaskKey>,
    /// The tenant of each task that waits, and the number of releases when it came.
    waiting: BTreeMap<TaskKey, (usize, u32)>,
    played: Played,
}

pub(super) fn play(tenants: &[Tenant], slots: u32) -> Played {
    let weights = tenants.iter().enumerate().map(|(index, tenant)| (id(index), tenant.weight)).collect();
    let played = Played { releases: 0, contended: 0, tenants: vec![Got::default(); tenants.len()] };
    let trial = Trial::new(slots, &weights);
    let mut play = Play { tenants, trial, running: VecDeque::new(), waiting: BTreeMap::new(), played };
    let mut arrivals = arrivals(tenants);
    loop {
        let is_due = |(at, _): &(u32, usize)| *at <= play.played.releases || play.running.is_empty();
        if let Some((_, tenant)) = arrivals.pop_front_if(|arrival| is_due(arrival)) {
            play.arrive(tenant);
        } else if let Some(task) = play.running.pop_front() {
            play.release(task);
        } else {
            return play.played;
        }
    }
}

/// When each task comes and whose it is, in that order.
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

impl Play<'_> {
    fn arrive(&mut self, tenant: usize) {
        let (task, at_once) = self.trial.request(id(tenant));
        if at_once {
            self.played.releases += 1;
            self.played.tenants[tenant].waits.push(0);
            self.running.push_back(task);
        } else {
            self.waiting.insert(task, (tenant, self.played.releases));
        }
    }

    fn release(&mut self, task: TaskKey) {
        let contenders: Vec<usize> = self.trial.waiting().map(|tenant| tenant.0 as usize - 1).collect();
        for task in self.trial.release(task) {
            let (tenant, since) = self.waiting.remove(&task).expect("the task waited");
            self.played.tenants[tenant].waits.push(self.played.releases - since);
            self.played.releases += 1;
            self.count(&contenders, tenant);
            self.running.push_back(task);
        }
    }

    /// Each contender is entitled to a share of the slot, in proportion to its weight.
    fn count(&mut self, contenders: &[usize], receiver: usize) {
        if contenders.len() < 2 {
            return;
        }
        self.played.contended += 1;
        self.played.tenants[receiver].received += 1;
        let weight = |tenant: &usize| f64::from(self.tenants[*tenant].weight);
        let all: f64 = contenders.iter().map(weight).sum();
        for tenant in contenders {
            self.played.tenants[*tenant].entitled += weight(tenant) / all;
        }
    }
}
