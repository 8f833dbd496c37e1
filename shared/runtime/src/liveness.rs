//! How workers show that they are alive.

use chrono::TimeDelta;

/// How long a heartbeat may take to arrive: a worker gives up on one after this time.
const MAX_DELAY: TimeDelta = TimeDelta::seconds(5);

/// The longest time between two heartbeats or leases of a worker that waits for tasks.
const MAX_RETRY_INTERVAL: TimeDelta = TimeDelta::seconds(15);

/// How often workers send heartbeats, and after how long without one they are dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Liveness {
    /// The time between two heartbeats of a worker that holds attempts.
    pub heartbeat_interval: TimeDelta,
    /// How long a worker is silent before it is dead.
    pub dead_after: TimeDelta,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { heartbeat_interval: TimeDelta::seconds(10), dead_after: TimeDelta::seconds(60) }
    }
}

impl Liveness {
    /// How long a worker is silent before it is suspected.
    pub fn suspect_after(self) -> TimeDelta {
        self.dead_after * 2 / 3
    }

    /// How long a suspect then has to send a heartbeat.
    pub fn confirm_after(self) -> TimeDelta {
        self.dead_after / 3
    }

    /// Whether a live worker sends a heartbeat while it is suspected, even if the one before fails.
    pub fn is_sound(self) -> bool {
        self.heartbeat_interval >= TimeDelta::seconds(1)
            && self.confirm_after() >= self.heartbeat_interval + MAX_DELAY
    }

    /// How often a worker that waits for tasks is recorded as alive: before it is suspected.
    pub fn retry_interval(self) -> TimeDelta {
        MAX_RETRY_INTERVAL.min(self.suspect_after() / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(heartbeat: i64, dead: i64) -> Liveness {
        Liveness { heartbeat_interval: TimeDelta::seconds(heartbeat), dead_after: TimeDelta::seconds(dead) }
    }

    #[test]
    fn a_worker_is_dead_after_a_minute_by_default() {
        let default = Liveness::default();
        assert!(default.is_sound());
        assert_eq!(
            (default.suspect_after(), default.confirm_after()),
            (TimeDelta::seconds(40), TimeDelta::seconds(20))
        );
        assert_eq!(default.retry_interval(), TimeDelta::seconds(15));
    }

    #[test]
    fn a_suspect_has_time_for_a_heartbeat() {
        assert!(of(1, 18).is_sound() && !of(1, 17).is_sound());
        assert!(of(30, 105).is_sound() && !of(30, 104).is_sound() && !of(0, 60).is_sound());
        assert!(of(1, 18).retry_interval() < of(1, 18).suspect_after());
    }
}
