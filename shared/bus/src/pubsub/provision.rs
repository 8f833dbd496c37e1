//! Creates topics and subscriptions where terraform has not: on the emulator.

use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::Error as PubSubError;
use google_cloud_pubsub::model::push_config::OidcToken;
use google_cloud_pubsub::model::{
    DeadLetterPolicy, ExpirationPolicy, PushConfig, RetryPolicy, Subscription as Made,
};
use model::Topic;

use super::PubSub;
use crate::{Error, Subscription};

impl PubSub {
    /// Creates the topic, its dead-letter topic with a subscription that retains messages, and the push subscription. Those
    /// that exist stay as they are, except for the push address.
    pub async fn provision(
        &self,
        topic: &Topic,
        subscription: &Subscription<String>,
        service_account: &str,
    ) -> Result<(), Error> {
        let (id, dead_letter_id) = (topic.id_with(&self.prefix), topic.dead_letter_id_with(&self.prefix));
        self.make_topic(&id).await?;
        self.make_topic(&dead_letter_id).await?;
        self.make(self.describe(&dead_letter_id, &dead_letter_id)).await?;

        let push = PushConfig::new().set_push_endpoint(&subscription.endpoint).set_oidc_token(
            OidcToken::new().set_service_account_email(service_account).set_audience(&subscription.audience),
        );
        let dead = DeadLetterPolicy::new()
            .set_dead_letter_topic(self.topic_name(&dead_letter_id))
            .set_max_delivery_attempts(number(subscription.max_delivery_attempts));
        let mut retry = RetryPolicy::new();
        retry.minimum_backoff = subscription.min_backoff.try_into().ok();
        retry.maximum_backoff = subscription.max_backoff.try_into().ok();
        let wanted = self
            .describe(&subscription.name, &id)
            .set_push_config(push.clone())
            .set_dead_letter_policy(dead)
            .set_retry_policy(retry)
            .set_ack_deadline_seconds(number(subscription.ack_deadline.as_secs()))
            .set_filter(
                subscription
                    .only
                    .as_ref()
                    .map(|kind| format!("attributes.\"ce-type\" = \"{kind}\""))
                    .unwrap_or_default(),
            );
        let name = wanted.name.clone();
        self.make(wanted).await?;
        let moved = self.subscriptions.modify_push_config().set_subscription(name).set_push_config(push);
        moved.send().await.map_err(Error::unavailable)
    }

    /// Pushes the dead letters of a provisioned topic to that address.
    pub async fn push_dead_letters(&self, topic: &Topic, endpoint: &str) -> Result<(), Error> {
        let id = topic.dead_letter_id_with(&self.prefix);
        let name = format!("projects/{}/subscriptions/{id}", self.project);
        let push = PushConfig::new().set_push_endpoint(endpoint);
        let moved = self.subscriptions.modify_push_config().set_subscription(name).set_push_config(push);
        moved.send().await.map_err(Error::unavailable)
    }

    async fn make_topic(&self, id: &str) -> Result<(), Error> {
        exists(self.topics.create_topic().set_name(self.topic_name(id)).send().await)
    }

    async fn make(&self, subscription: Made) -> Result<(), Error> {
        exists(self.subscriptions.create_subscription().with_request(subscription).send().await)
    }

    /// A subscription that never expires.
    fn describe(&self, name: &str, topic: &str) -> Made {
        Made::new()
            .set_name(format!("projects/{}/subscriptions/{name}", self.project))
            .set_topic(self.topic_name(topic))
            .set_expiration_policy(ExpirationPolicy::new())
    }
}

/// Treats an existing resource as created.
fn exists<T>(made: Result<T, PubSubError>) -> Result<(), Error> {
    match made {
        Err(error) if error.status().is_some_and(|status| status.code == Code::AlreadyExists) => Ok(()),
        other => other.map(drop).map_err(Error::unavailable),
    }
}

fn number(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
