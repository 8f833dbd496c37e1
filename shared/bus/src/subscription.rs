//! Where a topic's messages are pushed, and how.

use std::time::Duration;

use axum::Router;

/// Where messages are pushed to.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A function in this process, called at this path without a socket.
    Router(Router, String),
    /// An address that takes POST requests.
    Url(String),
}

/// A push subscription. Pub/Sub can push to an address only; a local broker can call a router too.
#[derive(Clone, Debug)]
pub struct Subscription<E = Endpoint> {
    /// The id of the subscription.
    pub name: String,
    /// Where it pushes to.
    pub endpoint: E,
    /// The audience of its tokens.
    pub audience: String,
    /// How long the receiver may take before the message is delivered again.
    pub ack_deadline: Duration,
    /// After how many failed deliveries a message is dead-lettered.
    pub max_delivery_attempts: u32,
    /// The pause after the first failed delivery; it doubles each time.
    pub min_backoff: Duration,
    /// The maximum pause between two deliveries.
    pub max_backoff: Duration,
    /// The maximum number of concurrent deliveries.
    pub window: usize,
    /// The only message type it receives; all types if none.
    pub only: Option<String>,
}

impl<E> Subscription<E> {
    /// A subscription with default settings.
    pub fn new(name: impl Into<String>, endpoint: E, audience: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            endpoint,
            audience: audience.into(),
            ack_deadline: Duration::from_secs(60),
            // Generous, since an overloaded receiver uses up attempts, too.
            max_delivery_attempts: 20,
            min_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(60),
            window: 64,
            only: None,
        }
    }

    /// The pause after that many failed deliveries.
    pub(crate) fn backoff(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        self.min_backoff.saturating_mul(1 << doublings).min(self.max_backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_limit() {
        let subscription = Subscription {
            min_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            ..Subscription::new("s", (), "a")
        };
        let pauses = [1, 2, 3, 4, 5, 40].map(|attempts| subscription.backoff(attempts).as_secs());
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
    }
}
