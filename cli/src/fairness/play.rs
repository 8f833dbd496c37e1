//! Playing it through: tasks come, take places and give them back, and the line decides who is next.

use std::collections::{BTreeMap, VecDeque};

use model::{TaskKey, TenantId};
use store::Trial;

use super::tenant::Tenant;

/// What became of one tenant.
#[derive(Clone, Default)]
pub(super) struct Got {
    /// How many places it was entitled to, of those that were given while several waited.
    pub(super) entitled: f64,
    /// How many it received of these.
    pub(super) received: u32,
    /// How many places were given while each of its tasks waited, in the order in which they came to an end.
    pub(super) waits: Vec<u32>,
}

/// What became of everyone.
pub(super) struct Played {
    pub(super) releases: u32,
    pub(super) contended: u32,
    pub(super) tenants: Vec<Got>,
}

struct Stage<'a> {
    tenants: &'a [Tenant],
    trial: Trial,
    /// Who has a place, the longest first: all tasks take equally long.
    held: VecDeque<TaskKey>,
    /// Whose each task in line is, and how many releases there had been when it came.
    came: BTreeMap<TaskKey, (usize, u32)>,
    played: Played,
}

/// Plays it through to the end.
pub(super) fn play(tenants: &[Tenant], places: u32) -> Played {
    let weights = tenants.iter().enumerate().map(|(place, tenant)| (number(place), tenant.weight)).collect();
    let played = Played { releases: 0, contended: 0, tenants: vec![Got::default(); tenants.len()] };
    let trial = Trial::new(places, &weights);
    let mut stage = Stage { tenants, trial, held: VecDeque::new(), came: BTreeMap::new(), played };
    let mut arrivals = VecDeque::from(arrivals(tenants));
    loop {
        while arrivals.front().is_some_and(|(at, _)| *at <= stage.played.releases || stage.held.is_empty()) {
            stage.arrive(arrivals.pop_front().expect("it was looked at").1);
        }
        match stage.held.pop_front() {
            Some(task) => stage.give_back(task),
            None => return stage.played,
        }
    }
}

/// When each task comes and whose it is, in that order.
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

impl Stage<'_> {
    fn arrive(&mut self, place: usize) {
        let (task, at_once) = self.trial.ask(number(place));
        if at_once {
            self.played.releases += 1;
            self.played.tenants[place].waits.push(0);
            self.held.push_back(task);
        } else {
            self.came.insert(task, (place, self.played.releases));
        }
    }

    fn give_back(&mut self, task: TaskKey) {
        let waiting: Vec<usize> = self.trial.in_line().map(|tenant| tenant.0 as usize - 1).collect();
        for task in self.trial.leave(task) {
            let (place, since) = self.came.remove(&task).expect("it stood in line");
            self.played.tenants[place].waits.push(self.played.releases - since);
            self.played.releases += 1;
            self.count(&waiting, place);
            self.held.push_back(task);
        }
    }

    /// Whoever waits is entitled to its weight's part of each place that is given.
    fn count(&mut self, waiting: &[usize], receiver: usize) {
        if waiting.len() < 2 {
            return;
        }
        self.played.contended += 1;
        self.played.tenants[receiver].received += 1;
        let weight = |place: &usize| f64::from(self.tenants[*place].weight);
        let all: f64 = waiting.iter().map(weight).sum();
        for place in waiting {
            self.played.tenants[*place].entitled += weight(place) / all;
        }
    }
}
