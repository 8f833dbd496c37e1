//! Google Cloud Pub/Sub, or its emulator.

mod provision;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_gax::error::rpc::Code;
use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::retry_policy::{NeverRetry, RetryPolicy, RetryPolicyExt};
use google_cloud_gax::retry_result::RetryResult;
use google_cloud_gax::retry_state::RetryState;
use google_cloud_pubsub::client::{BasePublisher, Publisher, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::Message as PubSubMessage;
use model::{Clock, Message, Topic};
use uuid::Uuid;

use crate::envelope::BusMessage;
use crate::{Bus, Error, SystemClock};

/// Messages that cannot be published by then are published again later by the sweep.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);

const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Retries transient errors. The client's own policy does not, since it assumes that calls are not idempotent; publishing is.
#[derive(Debug)]
struct Transient;

impl RetryPolicy for Transient {
    fn on_error(&self, _state: &RetryState, error: google_cloud_pubsub::Error) -> RetryResult {
        use Code::{Aborted, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unknown};
        match error.status().map(|status| status.code) {
            None if !error.is_authentication() => RetryResult::Continue(error),
            Some(Aborted | DeadlineExceeded | Internal | ResourceExhausted | Unavailable | Unknown) => {
                RetryResult::Continue(error)
            }
            _ => RetryResult::Permanent(error),
        }
    }
}

/// Publishes to the topics of one project.
pub struct PubSub {
    project: String,
    prefix: String,
    base: BasePublisher,
    publishers: Mutex<BTreeMap<String, Publisher>>,
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
}

impl PubSub {
    /// Connects with the credentials of the environment, or without any to the emulator at `endpoint`.
    pub async fn connect(project: impl Into<String>, endpoint: Option<String>) -> Result<Self, Error> {
        let mut base = BasePublisher::builder().with_retry_policy(Transient.with_time_limit(PUBLISH_TIMEOUT));
        let mut topics = TopicAdmin::builder();
        let mut subscriptions = SubscriptionAdmin::builder();
        if let Some(endpoint) = endpoint {
            let nobody: Credentials = anonymous::Builder::new().build();
            base = base.with_endpoint(&endpoint).with_credentials(nobody.clone());
            topics = topics.with_endpoint(&endpoint).with_credentials(nobody.clone());
            subscriptions = subscriptions.with_endpoint(endpoint).with_credentials(nobody);
        }
        Ok(Self {
            project: project.into(),
            prefix: Topic::DEFAULT_PREFIX.into(),
            base: base.build().await.map_err(Error::unavailable)?,
            publishers: Mutex::default(),
            topics: topics.build().await.map_err(Error::unavailable)?,
            subscriptions: subscriptions.build().await.map_err(Error::unavailable)?,
        })
    }

    /// The same bus, where the installation's topics begin with `prefix`.
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    fn topic_name(&self, id: &str) -> String {
        format!("projects/{}/topics/{id}", self.project)
    }

    fn publisher(&self, topic: &Topic) -> Publisher {
        let id = topic.id_with(&self.prefix);
        let mut publishers = self.publishers.lock().expect("no holder panics");
        let start = || {
            // Sends batches at once; the default waits 10 ms for more, which would delay every single message.
            let publisher = self.base.publisher(self.topic_name(&id));
            publisher.set_delay_threshold(Duration::ZERO).build()
        };
        publishers.entry(id.clone()).or_insert_with(start).clone()
    }
}

#[async_trait]
impl Bus for PubSub {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        // All are submitted before the first is awaited, so that they share requests.
        let taken: Vec<_> =
            messages.iter().map(|message| self.publisher(&message.topic()).publish(post(message))).collect();
        try_join_all(taken).await.map(drop).map_err(Error::unavailable)
    }

    async fn ping(&self) -> Result<(), Error> {
        let topic = self.topic_name(&Topic::Evaluations.id_with(&self.prefix));
        let request = self.topics.get_topic().set_topic(topic);
        let request = request.with_attempt_timeout(PING_TIMEOUT).with_retry_policy(NeverRetry);
        match request.send().await {
            Ok(_) => Ok(()),
            // A publisher may lack permission to read topics; the refusal shows that Pub/Sub responds.
            Err(error) if error.status().is_some_and(|status| status.code == Code::PermissionDenied) => {
                Ok(())
            }
            Err(error) => Err(Error::unavailable(error)),
        }
    }
}

fn post(message: &Message) -> PubSubMessage {
    // Wall-clock time: it only says when the event was created.
    let message = BusMessage::new(message, Uuid::now_v7(), SystemClock.now());
    PubSubMessage::new().set_data(message.data).set_attributes(message.attributes)
}
