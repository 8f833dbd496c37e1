//! Waiting for events and conditions, on a machine that may be busy. No test waits for a fixed time: these deadlines only
//! turn a test that hangs into one that fails.

use std::time::{Duration, Instant};

/// The time after which a test counts as hanging.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// The pause between two checks of a condition.
const PACE: Duration = Duration::from_millis(10);

/// Waits for an event.
///
/// # Panics
/// If the event does not happen before the deadline.
pub async fn within_deadline<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, event).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s in vain: {what}", DEADLINE.as_secs()),
    }
}

/// Checks a condition again and again until it returns a value.
///
/// # Panics
/// If it returns none before the deadline.
pub async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    within_deadline(what, async {
        let mut pace = tokio::time::interval(PACE);
        loop {
            pace.tick().await;
            if let Some(value) = check().await {
                return value;
            }
        }
    })
    .await
}

/// The same outside an asynchronous runtime.
///
/// # Panics
/// If it returns none before the deadline.
pub fn eventually_blocking<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(since.elapsed() < DEADLINE, "waited {} s in vain: {what}", DEADLINE.as_secs());
        std::thread::park_timeout(PACE);
    }
}

/// Lets the other tasks of a single-threaded runtime run until all of them wait. Use it only where they wait for nothing
/// but each other and a [`ManualClock`](crate::ManualClock): then the number of turns they need does not depend on the
/// machine.
pub async fn run_others() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
