//! A world with far more work than capacity.

use chrono::TimeDelta;
use model::{Limit, RetryPolicy, TaskKind, TaskSpec, Workflow};
use store::{Slots, Tenants};

use super::World;
use crate::fault_points::now;
use crate::script;

/// How many tasks may run at the same time.
pub(crate) const SLOTS: u32 = 4;

/// Ten times as many as end in a minute; each takes about fifty seconds.
const REQUESTS: i64 = 48;

/// The seconds between two requests of the other tenant.
const INTERVAL: i64 = 10;

impl World {
    /// For a minute, one tenant requests ten times the capacity, and another tenant a little.
    pub(crate) fn with_overload(mut self) -> Self {
        let memory = self.shared.memory.clone();
        now(memory.set_slots(&Limit::Queue("light".into()), Some(SLOTS))).unwrap();
        let other = now(memory.tenant("other", self.start)).unwrap();
        self.observer.add_tenant(other, 1);
        let work = TaskSpec {
            name: "work".into(),
            kind: TaskKind::Bash,
            config: script::config(self.seed, 0.0),
            timeout_seconds: 3_600,
            queue: "light".into(),
            // Whatever fails, it succeeds in the end.
            retry: RetryPolicy { max_retries: 20, initial_delay_seconds: 1.0, ..RetryPolicy::default() },
            ..TaskSpec::default()
        };
        self.register([Workflow { name: "rush".into(), tasks: vec![work], ..Workflow::default() }]);
        let (busy, at) = (self.observer.tenants[0], self.start);
        for number in 0..REQUESTS {
            self.request_for(busy, "rush", at + TimeDelta::milliseconds(number * 60_000 / REQUESTS));
        }
        for second in (0..60).step_by(INTERVAL as usize) {
            self.request_for(other, "rush", at + TimeDelta::seconds(second));
        }
        self
    }
}
