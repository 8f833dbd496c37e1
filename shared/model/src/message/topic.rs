//! Topics, and their ids on the bus.

/// Where a message goes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Topic {
    /// Requests to create runs.
    Triggers,
    /// Results and nudges for evaluate.
    Evaluations,
    /// Attempts to carry out, one topic per queue.
    Work(String),
    /// Messages to and about workers, and wake-ups of the sweep.
    Management,
    /// Outgoing: runs and tasks that finished, for anyone to subscribe.
    Lifecycle,
    /// Outgoing: a topic of the user's own.
    Named(String),
}

impl Topic {
    /// The default prefix of topic ids, unless several installations share a bus.
    pub const DEFAULT_PREFIX: &str = "ebbflow";

    /// The topic's id on the bus.
    pub fn id(&self) -> String {
        self.id_with(Self::DEFAULT_PREFIX)
    }

    /// The topic's id on a bus where the installation's topics begin with `prefix`. A topic of the user's own has no prefix.
    pub fn id_with(&self, prefix: &str) -> String {
        match self {
            Self::Triggers => format!("{prefix}-triggers"),
            Self::Evaluations => format!("{prefix}-evaluations"),
            Self::Work(queue) => format!("{prefix}-work-{queue}"),
            Self::Management => format!("{prefix}-management"),
            Self::Lifecycle => format!("{prefix}-lifecycle"),
            Self::Named(id) => id.clone(),
        }
    }

    /// The id of the topic that receives undeliverable messages.
    pub fn dead_letter_id(&self) -> String {
        self.dead_letter_id_with(Self::DEFAULT_PREFIX)
    }

    /// The id of that topic where the installation's topics begin with `prefix`.
    pub fn dead_letter_id_with(&self, prefix: &str) -> String {
        format!("{}-dead-letters", self.id_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_that_share_a_bus_have_their_own_topics() {
        let work = Topic::Work("light".into());
        assert_eq!(
            (work.id(), work.dead_letter_id()),
            ("ebbflow-work-light".into(), "ebbflow-work-light-dead-letters".into())
        );
        assert_eq!(work.id_with("etl"), "etl-work-light");
        assert_eq!(Topic::Evaluations.dead_letter_id_with("etl"), "etl-evaluations-dead-letters");
        assert_eq!(Topic::Named("orders".into()).id_with("etl"), "orders");
    }
}
