//! Waiting for what must happen, on a machine that may be busy.

use std::time::Duration;

/// What does not happen within this never happens.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Waits for an event, and fails the test if it does not come.
pub async fn within_deadline<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, event).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing for {} s", DEADLINE.as_secs()),
    }
}

/// Asks again and again until there is an answer.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    within_deadline(what, async {
        let mut pace = tokio::time::interval(Duration::from_millis(10));
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            pace.tick().await;
        }
    })
    .await
}
