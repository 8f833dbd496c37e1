//! A clock that only tests move.

use async_trait::async_trait;
use chrono::{Duration, SubsecRound};
use model::{Clock, Instant};
use tokio::sync::watch;

/// A clock that shows the same time until a test moves it. Clones share the time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: watch::Sender<Instant>,
}

impl ManualClock {
    /// A clock that shows `instant`, such as `2026-01-01T00:00:00Z`.
    pub fn at(instant: &str) -> ManualClock {
        let now = instant.parse().unwrap_or_else(|e| panic!("{instant:?} is not an instant: {e}"));
        ManualClock { now: watch::Sender::new(now) }
    }

    /// Moves the time by `duration`, which may be negative.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now() + duration);
    }

    /// Moves the time to `instant`.
    pub fn set(&self, instant: Instant) {
        self.now.send_replace(instant.trunc_subsecs(6));
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Instant {
        *self.now.borrow()
    }

    async fn wait_until(&self, instant: Instant) {
        let reached = self.now.subscribe().wait_for(|now| *now >= instant).await.is_ok();
        assert!(reached, "the clock outlives its waiters");
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_time_changes_only_when_it_is_moved() {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        let before = clock.now();
        assert_eq!(clock.now(), before);
        clock.advance(Duration::seconds(90));
        assert_eq!(clock.now() - before, Duration::seconds(90));
        clock.set(before);
        assert_eq!(clock.now(), before);
    }

    #[test]
    fn a_waiter_continues_when_the_instant_is_reached_and_not_before() {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        let mover = clock.clone();
        let mut waiting = pin!(clock.wait_until(clock.now() + Duration::seconds(60)));
        let mut context = Context::from_waker(Waker::noop());

        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        mover.advance(Duration::seconds(59));
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        mover.advance(Duration::seconds(1));
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
    }

    #[tokio::test]
    async fn a_task_that_waits_is_woken_by_the_move() {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        let then = clock.now() + Duration::days(30);
        let waiter = clock.clone();
        let waiting = tokio::spawn(async move { waiter.wait_until(then).await });
        tokio::task::yield_now().await;
        clock.set(then);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn waiting_for_a_past_instant_returns_at_once() {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        clock.wait_until(clock.now()).await;
        clock.wait_until(clock.now() - Duration::days(1)).await;
    }
}
