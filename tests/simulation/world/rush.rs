//! A world in which far more is asked for than can be done.

use chrono::TimeDelta;
use model::{Limit, RetryPolicy, TaskSpec, Workflow};
use store::Store;

use super::World;
use crate::points::now;
use crate::script;

/// So many tasks are carried out at the same time.
pub(crate) const PLACES: u32 = 4;

/// Ten times as many as end in a minute, where each takes about fifty seconds.
const RUSH: i64 = 48;

/// Another tenant asks for one in so many seconds.
const SELDOM: i64 = 10;

impl World {
    /// For a minute, one tenant asks for ten times what can be done, and another one for a little.
    pub(crate) fn with_rush(mut self) -> Self {
        let memory = self.ground.memory.clone();
        now(memory.set_places(&Limit::Queue("light".into()), Some(PLACES))).unwrap();
        let other = now(memory.tenant("other", self.start)).unwrap();
        self.watch.hear_of(other, 1);
        let work = TaskSpec {
            name: "work".into(),
            kind: "bash".into(),
            config: script::config(self.seed, 0.0),
            timeout_seconds: 3_600,
            queue: "light".into(),
            // Whatever strikes, it is done in the end.
            retry: RetryPolicy { max_retries: 20, initial_delay_seconds: 1.0, ..RetryPolicy::default() },
            ..TaskSpec::default()
        };
        self.register([Workflow { name: "rush".into(), tasks: vec![work], ..Workflow::default() }]);
        let (busy, at) = (self.watch.tenants[0], self.start);
        for number in 0..RUSH {
            self.request_for(busy, "rush", at + TimeDelta::milliseconds(number * 60_000 / RUSH));
        }
        for second in (0..60).step_by(SELDOM as usize) {
            self.request_for(other, "rush", at + TimeDelta::seconds(second));
        }
        self
    }
}
