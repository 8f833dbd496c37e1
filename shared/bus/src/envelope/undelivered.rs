//! A dead letter as the bus describes it.

use super::message::Push;

/// A message that a bus could not deliver, as it comes from a dead-letter topic.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Undelivered {
    /// Its id on the dead-letter topic, if it has one.
    pub id: Option<String>,
    /// The subscription that could not deliver it, if known.
    pub subscription: Option<String>,
    /// How many deliveries failed, if known.
    pub deliveries: Option<u32>,
}

impl Undelivered {
    /// Reads the body of a push. Missing fields stay empty: a dead letter is never refused.
    pub fn read(body: &[u8]) -> Self {
        let Ok(Push { message, subscription, .. }) = serde_json::from_slice::<Push>(body) else {
            return Self::default();
        };
        let told = |name: &str| message.attributes.get(&format!("CloudPubSubDeadLetterSource{name}"));
        Self {
            subscription: told("Subscription").cloned().or(subscription),
            deliveries: told("DeliveryCount").and_then(|count| count.parse().ok()),
            id: message.message_id.or(message.message_id_twin),
        }
    }

    /// Why it was dead-lettered, for people.
    pub fn reason(&self) -> String {
        match self.deliveries {
            Some(1) => "given up after 1 delivery".into(),
            Some(count) => format!("given up after {count} deliveries"),
            None => "given up by the bus".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_comes_is_read_as_far_as_it_goes() {
        for body in ["", "{}", "no JSON", r#"{"message": {}}"#] {
            let undelivered = Undelivered::read(body.as_bytes());
            assert_eq!((undelivered.id.as_deref(), undelivered.deliveries), (None, None), "{body}");
            assert_eq!(undelivered.reason(), "given up by the bus");
        }
    }
}
