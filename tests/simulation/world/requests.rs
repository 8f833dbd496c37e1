//! The work of a world: some runs of the seed's workflow, and what people do to them.

use chrono::TimeDelta;
use model::message::{CancelRequested, RunRequested};
use model::{Instant, Limit, Message, RunId, TenantId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Map;
use store::{Definitions, NewVersion, Slots, Tenants};
use uuid::Uuid;

use super::{Delivery, World};
use crate::fault_points::now;
use crate::faults::Fault;
use crate::people::{self, Action, ScheduledAction};
use crate::plans;
use crate::workflows;

impl World {
    /// Requests some runs of the seed's workflow.
    pub(crate) fn with_random_runs(mut self) -> Self {
        let mut rng = StdRng::seed_from_u64(self.seed ^ 0xABCD);
        self.limit_slots(&mut rng);
        self.register([workflows::random(self.seed), workflows::small(), workflows::poor()]);
        self.has_leases = workflows::has_leases(self.seed);
        let (least, most) = if self.observer.tenants.len() > 1 { (2, 3) } else { (1, 3) };
        for number in 0..rng.random_range(least..=most) {
            let at = self.start + TimeDelta::seconds(number * rng.random_range(0..120));
            let run = self.request("random", at);
            self.actions.extend(people::actions(self.seed, run, at));
            if self.faults.inject(Fault::Cancel, None) {
                let (actor, reason) = ("ana".to_owned(), "enough".to_owned());
                let cancel = Message::CancelRequested(CancelRequested { run, actor, reason });
                let at = at + TimeDelta::seconds(self.faults.draw(0..400));
                self.deliveries.push(Delivery::sure(cancel, at));
            }
        }
        if plans::are_in(self.seed) {
            self.has_plans = true;
            self.register(plans::workflows());
            self.actions.extend(plans::actions(self.seed, self.start));
        }
        while self.faults.inject(Fault::Steer, None) {
            // Most of them while much is active, some after the runs have ended.
            let longest = [3, 60, 300, 1_500][self.faults.draw(0..4) as usize];
            let at = self.start + TimeDelta::seconds(self.faults.draw(0..longest));
            self.actions.push(ScheduledAction { at, action: Action::Steer });
        }
        for number in 0..2 {
            if self.faults.inject(Fault::NewVersion, None) {
                let at = self.start + TimeDelta::seconds(self.faults.draw(0..400));
                let new = Box::new(people::version(self.seed, number, at));
                self.actions.push(ScheduledAction { at, action: Action::Register(new) });
            }
        }
        self
    }

    /// In half of the worlds, slots are so few that tasks wait for them.
    pub(crate) fn has_few_slots(seed: u64) -> bool {
        seed.is_multiple_of(2)
    }

    /// Limits the slots; in half of these worlds, tasks of two tenants compete for them.
    fn limit_slots(&mut self, rng: &mut StdRng) {
        if !Self::has_few_slots(self.seed) {
            return;
        }
        let (memory, slots) = (&self.shared.memory, Some(rng.random_range(1..4)));
        for queue in workflows::QUEUES {
            now(memory.set_slots(&Limit::Queue(queue.into()), slots)).unwrap();
        }
        let pool = Limit::Pool(TenantId::DEFAULT, workflows::POOL.into());
        now(memory.set_slots(&pool, slots)).unwrap();
        if self.seed % 4 == 2 {
            let (other, weight) = (now(memory.tenant("other", self.start)).unwrap(), rng.random_range(1..4));
            now(memory.set_weight(other, weight)).unwrap();
            self.observer.add_tenant(other, weight);
        }
    }

    pub(super) fn register(&mut self, all: impl IntoIterator<Item = model::Workflow>) {
        for workflow in all {
            for tenant in self.observer.tenants.clone() {
                let (hash, source, by) = (String::from("h"), String::new(), String::from("simulation"));
                let workflow = workflow.clone();
                let new = NewVersion { tenant, workflow, source, hash, by, at: self.start };
                now(self.shared.memory.register(&new)).unwrap();
            }
        }
    }

    /// Requests a run of each tenant in turn.
    fn request(&mut self, workflow: &str, at: Instant) -> RunId {
        let tenants = &self.observer.tenants;
        self.request_for(tenants[self.runs.len() % tenants.len()], workflow, at)
    }

    pub(super) fn request_for(&mut self, tenant: TenantId, workflow: &str, at: Instant) -> RunId {
        let run = RunId(Uuid::from_u128((u128::from(self.seed) << 8) + self.runs.len() as u128 + 1));
        let request = Message::RunRequested(RunRequested {
            run,
            tenant,
            workflow: workflow.into(),
            inputs: Map::new(),
            logical_date: None,
            labels: Map::new(),
            trigger: "message".into(),
            parent: None,
            priority: self.runs.len() as i32 % 3 - 1,
        });
        self.runs.push(run);
        self.deliveries.push(Delivery::sure(request, at));
        run
    }
}
