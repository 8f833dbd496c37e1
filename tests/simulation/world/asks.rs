//! What is asked of a world: some runs of the seed's workflow, and what people do about them.

use chrono::TimeDelta;
use model::message::{CancelRequested, RunRequested};
use model::{Instant, Limit, Message, RunId, TenantId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Map;
use store::{NewVersion, Store};
use uuid::Uuid;

use super::{Parcel, World};
use crate::people::{self, Errand, What};
use crate::plans;
use crate::points::now;
use crate::weather::Fault;
use crate::workflows;

impl World {
    /// Asks for some runs of the seed's workflow.
    pub(crate) fn with_random_runs(mut self) -> Self {
        let mut dice = StdRng::seed_from_u64(self.seed ^ 0xABCD);
        self.crowd(&mut dice);
        self.register([workflows::random(self.seed), workflows::small(), workflows::poor()]);
        let (least, most) = if self.watch.tenants.len() > 1 { (2, 3) } else { (1, 3) };
        for number in 0..dice.random_range(least..=most) {
            let at = self.start + TimeDelta::seconds(number * dice.random_range(0..120));
            let run = self.request("random", at);
            self.errands.extend(people::errands(self.seed, run, at));
            if self.storm.strikes(Fault::Cancel, None) {
                let (actor, reason) = ("ana".to_owned(), "enough".to_owned());
                let cancel = Message::CancelRequested(CancelRequested { run, actor, reason });
                let at = at + TimeDelta::seconds(self.storm.draw(0..400));
                self.parcels.push(Parcel::sure(cancel, at));
            }
        }
        if plans::are_in(self.seed) {
            self.has_plans = true;
            self.register(plans::workflows());
            self.errands.extend(plans::errands(self.seed, self.start));
        }
        while self.storm.strikes(Fault::Steer, None) {
            // Most of them while much goes on, some once the runs have ended.
            let longest = [3, 60, 300, 1_500][self.storm.draw(0..4) as usize];
            let at = self.start + TimeDelta::seconds(self.storm.draw(0..longest));
            self.errands.push(Errand { at, what: What::Steer });
        }
        for number in 0..2 {
            if self.storm.strikes(Fault::NewVersion, None) {
                let at = self.start + TimeDelta::seconds(self.storm.draw(0..400));
                let new = Box::new(people::version(self.seed, number, at));
                self.errands.push(Errand { at, what: What::Register(new) });
            }
        }
        self
    }

    /// In half of the worlds, places are so few that tasks stand in line.
    pub(crate) fn is_crowded(seed: u64) -> bool {
        seed.is_multiple_of(2)
    }

    /// Where places are few, tasks of two tenants stand in line in half of the worlds.
    fn crowd(&mut self, dice: &mut StdRng) {
        if !Self::is_crowded(self.seed) {
            return;
        }
        let (memory, places) = (&self.ground.memory, Some(dice.random_range(1..4)));
        for queue in workflows::QUEUES {
            now(memory.set_places(&Limit::Queue(queue.into()), places)).unwrap();
        }
        let pool = Limit::Pool(TenantId::DEFAULT, workflows::POOL.into());
        now(memory.set_places(&pool, places)).unwrap();
        if self.seed % 4 == 2 {
            let (other, weight) = (now(memory.tenant("other", self.start)).unwrap(), dice.random_range(1..4));
            now(memory.set_weight(other, weight)).unwrap();
            self.watch.hear_of(other, weight);
        }
    }

    pub(super) fn register(&mut self, all: impl IntoIterator<Item = model::Workflow>) {
        for workflow in all {
            for tenant in self.watch.tenants.clone() {
                let (hash, source, by) = (String::from("h"), String::new(), String::from("simulation"));
                let workflow = workflow.clone();
                let new = NewVersion { tenant, workflow, source, hash, by, at: self.start };
                now(self.ground.memory.register(&new)).unwrap();
            }
        }
    }

    /// Asks for a run of each tenant in turn.
    fn request(&mut self, workflow: &str, at: Instant) -> RunId {
        let tenants = &self.watch.tenants;
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
        self.parcels.push(Parcel::sure(request, at));
        run
    }
}
