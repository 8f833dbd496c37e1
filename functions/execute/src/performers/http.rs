//! `http`: one request, and its answer as the output.

mod answer;
mod breaker;
mod request;

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use host::Outgoing;
use host::outgoing::{Reach, Refused};
use language::config::{self, Auth};
use reqwest::{Client, Request, Response};
use serde_json::Value;
use tokio::sync::OnceCell;

use model::{ErrorClass, Failure, TaskKind};

use super::{Performer, Unfinished};
use crate::job::{Context, Job};
use crate::log::{Level, Log, Stream};
use breaker::End;

pub(crate) use breaker::Breakers;

/// How often a request is sent on to another address.
const MAX_REDIRECTS: usize = 5;
/// A host that does not take the connection by then is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends one request. The client is made for the first one, so a worker that never sends any needs
/// no certificates.
#[derive(Default)]
pub(crate) struct Http {
    outgoing: Outgoing,
    /// For requests that may be sent on to other hosts.
    roaming: OnceCell<Client>,
    /// For those whose headers are for one host alone.
    staying: OnceCell<Client>,
}

/// Takes the secrets out of a text, before any of it is cut off.
pub(crate) type Hush<'a> = &'a (dyn Fn(&str) -> String + Sync);

#[async_trait]
impl Performer for Http {
    fn kind(&self) -> TaskKind {
        TaskKind::Http
    }

    async fn perform(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let config: config::Http = super::config(job)?;
        if let Some(Auth::Basic(basic)) = &config.auth {
            // Base64 does not hide the password.
            let sent = BASE64_STANDARD.encode(format!("{}:{}", basic.username, basic.password));
            context.log.mask(vec![sent]);
        }
        let exchange = self.guarded(&config, context);
        match context.cancel.run_until_cancelled(exchange).await {
            Some(answer) => Ok(answer?),
            None => Err(Unfinished::Stopped),
        }
    }
}

impl Http {
    /// One whose requests go only where they may.
    pub(crate) fn limited_to(outgoing: Outgoing) -> Self {
        Self { outgoing, ..Self::default() }
    }

    /// Sends the request that the config asks for, and judges its answer.
    pub(crate) async fn exchange(&self, config: &config::Http, hush: Hush<'_>) -> Result<Value, Failure> {
        let (client, request) = self.request(config).await?;
        let (asked, response) = send(client, request, None).await;
        answer::judge(response?, config, &asked, hush).await
    }

    /// The same, once the host's breaker lets it.
    async fn guarded(&self, config: &config::Http, context: &Context) -> Result<Value, Failure> {
        let (client, request) = self.request(config).await?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let call = context.breakers.admit(&host, &*context.clock, &context.log).await;
        let (asked, response) = send(client, request, Some(&context.log)).await;
        call.ended(match &response {
            Ok(response) if response.status().is_server_error() => End::Failed,
            Ok(_) => End::Answered,
            // It was not asked.
            Err(failure) if failure.class == ErrorClass::Permanent => End::Unknown,
            Err(_) => End::Failed,
        });
        answer::judge(response?, config, &asked, &|text| context.log.clean(text)).await
    }

    async fn request(&self, config: &config::Http) -> Result<(&Client, Request), Failure> {
        let reach = request::reach(config);
        let client = if reach == Reach::Home { &self.staying } else { &self.roaming };
        let client = client.get_or_try_init(|| async { make_client(&self.outgoing, reach) }).await?;
        let request = request::build(client, config)?;
        self.outgoing.check_url(request.url()).map_err(|refused| {
            Failure::permanent(format!("{} was not sent: {refused}", request::describe(&request)))
        })?;
        Ok((client, request))
    }
}

/// Sends a request. Answers what was asked, and what came of it.
async fn send(client: &Client, request: Request, log: Option<&Log>) -> (String, Result<Response, Failure>) {
    let asked = request::describe(&request);
    let response = client.execute(request).await.map_err(|error| broken(&asked, error));
    if let (Some(log), Ok(response)) = (log, &response) {
        let line = format!("{asked} answered {}", response.status());
        log.line(Stream::System, Level::Info, &line).await;
    }
    (asked, response)
}

fn make_client(outgoing: &Outgoing, reach: Reach) -> Result<Client, Failure> {
    let builder = Client::builder()
        .user_agent(concat!("ebbflow/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT);
    outgoing.limit(builder, MAX_REDIRECTS, reach).build().map_err(|error| {
        Failure::transient(format!(
            "this worker cannot send requests (are its root certificates installed?): {}",
            reasons(&error)
        ))
    })
}

/// The failure of an exchange that ended without a whole answer.
fn broken(asked: &str, error: reqwest::Error) -> Failure {
    let refused = chain(&error).any(|error| error.is::<Refused>());
    let hopeless = refused || error.is_builder() || error.is_redirect();
    // The address is in `asked` already, and there without its secrets.
    let message = format!("{asked} failed: {}", reasons(&error.without_url()));
    if hopeless { Failure::permanent(message) } else { Failure::transient(message) }
}

/// An error with everything that led to it.
fn reasons(error: &(dyn Error + 'static)) -> String {
    chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests;
