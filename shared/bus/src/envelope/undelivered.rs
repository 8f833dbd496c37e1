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
        let source = |name: &str| message.attributes.get(&format!("CloudPubSubDeadLetterSource{name}"));
        Self {
            subscription: source("Subscription").cloned().or(subscription),
            deliveries: source("DeliveryCount").and_then(|count| count.parse().ok()),
            id: message.message_id.or(message.message_id_twin),
        }
    }

    /// Why it was dead-lettered, for people.
    pub fn reason(&self) -> String {
        match self.deliveries {
            Some(1) => "undeliverable after 1 delivery".into(),
            Some(count) => format!("undeliverable after {count} deliveries"),
            None => "undeliverable, according to the bus".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_stay_empty() {
        for body in ["", "{}", "no JSON", r#"{"message": {}}"#] {
            let undelivered = Undelivered::read(body.as_bytes());
            assert_eq!((undelivered.id.as_deref(), undelivered.deliveries), (None, None), "{body}");
            assert_eq!(undelivered.reason(), "undeliverable, according to the bus");
        }
    }
}
