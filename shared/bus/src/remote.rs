//! A local broker in another process, reached over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use base64::prelude::{BASE64_STANDARD, Engine};
use model::{Clock, Message};
use reqwest::{Client, RequestBuilder};
use uuid::Uuid;

use crate::broker_http::{MAX_MESSAGES, Posted, Publish};
use crate::envelope::BusMessage;
use crate::{Bus, Error, SystemClock};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Publishes to the broker behind an address.
pub struct Remote {
    client: Client,
    url: String,
    project: String,
}

impl Remote {
    /// The broker at this address, such as `http://127.0.0.1:8085`.
    pub fn new(url: impl Into<String>, project: impl Into<String>) -> Result<Self, Error> {
        let client = Client::builder().timeout(REQUEST_TIMEOUT).build().map_err(Error::unavailable)?;
        Ok(Self { client, url: url.into().trim_end_matches('/').into(), project: project.into() })
    }

    async fn publish_to(&self, topic: &str, messages: Vec<Posted>) -> Result<(), Error> {
        let url = format!("{}/v1/projects/{}/topics/{topic}:publish", self.url, self.project);
        send(self.client.post(url).json(&Publish { messages })).await
    }
}

#[async_trait]
impl Bus for Remote {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        let mut topics: BTreeMap<String, Vec<&Message>> = BTreeMap::new();
        for message in messages {
            topics.entry(message.topic().id()).or_default().push(message);
        }
        for (topic, messages) in topics {
            for batch in messages.chunks(MAX_MESSAGES) {
                self.publish_to(&topic, batch.iter().copied().map(posted).collect()).await?;
            }
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        send(self.client.get(&self.url)).await
    }
}

fn posted(message: &Message) -> Posted {
    // Wall-clock time: it only says when the event was created.
    let message = BusMessage::new(message, Uuid::now_v7(), SystemClock.now());
    Posted { data: BASE64_STANDARD.encode(message.data), attributes: message.attributes }
}

async fn send(request: RequestBuilder) -> Result<(), Error> {
    request.send().await.and_then(|answer| answer.error_for_status()).map(drop).map_err(Error::unavailable)
}
