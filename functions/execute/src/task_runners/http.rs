//! `http`: sends one request; the response is the output.

mod breaker;
mod request;
mod response;

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::TimeDelta;
use host::EgressPolicy;
use host::egress::{Blocked, Redirects};
use language::config::{self, Auth};
use reqwest::{Client, Request, Response};
use serde_json::Value;
use tokio::sync::OnceCell;

use model::{ErrorClass, Failure, TaskKind, TenantId};

use super::{TaskRunner, Unfinished};
use crate::job::{Context, Job};
use crate::log::{Level, Log, Stream};
use breaker::Outcome;

pub use breaker::{Breakers, SharedBreakers};

/// The maximum number of redirects that a request follows.
const MAX_REDIRECTS: usize = 5;
/// How long a host may take to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends one request. Clients are created on first use, so a worker that sends no requests needs no certificates.
#[derive(Default)]
pub(crate) struct Http {
    egress: EgressPolicy,
    /// For requests that may follow redirects to other hosts.
    any_host: OnceCell<Client>,
    /// For requests whose headers are for the original host only.
    same_host: OnceCell<Client>,
}

/// Redacts secrets in a text, before it is shortened.
pub(crate) type Redact<'a> = &'a (dyn Fn(&str) -> String + Sync);

#[async_trait]
impl TaskRunner for Http {
    fn kind(&self) -> TaskKind {
        TaskKind::Http
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let config: config::Http = super::config(job)?;
        if let Some(Auth::Basic(basic)) = &config.auth {
            // Base64 does not hide the password.
            let header = BASE64_STANDARD.encode(format!("{}:{}", basic.username, basic.password));
            context.log.redact([header]);
        }
        let exchange = self.exchange_with_breaker(&config, job.tenant, context);
        match context.cancel.run_until_cancelled(exchange).await {
            Some(output) => Ok(output?),
            None => Err(Unfinished::Stopped),
        }
    }
}

impl Http {
    /// A runner with an egress policy.
    pub(crate) fn with_egress_policy(egress: EgressPolicy) -> Self {
        Self { egress, ..Self::default() }
    }

    /// Sends the request of a config, and returns the output.
    pub(crate) async fn exchange(&self, config: &config::Http, redact: Redact<'_>) -> Result<Value, Failure> {
        let (client, request) = self.request(config).await?;
        let (request, response) = send(client, request, None).await;
        response::interpret(response?, config, &request, redact).await
    }

    /// The same, once the target's circuit breaker allows it.
    async fn exchange_with_breaker(
        &self,
        config: &config::Http,
        tenant: TenantId,
        context: &Context,
    ) -> Result<Value, Failure> {
        let (client, request) = self.request(config).await?;
        let target = breaker::target(tenant, request.url());
        let call = context.breakers.admit(target, &*context.clock, &context.log).await;
        let (request, response) = send(client, request, Some(&context.log)).await;
        let outcome = match &response {
            Ok(response) => response::outcome(response, context.clock.now()),
            // The request was not sent.
            Err(failure) if failure.class == ErrorClass::Permanent => Outcome::Unknown,
            Err(failure) => Outcome::Failed(context.log.redacted(&failure.message)),
        };
        let busy_for = call.finish(outcome).await;
        let output =
            response::interpret(response?, config, &request, &|text| context.log.redacted(text)).await;
        output.map_err(|failure| Failure { retry_after_seconds: busy_for.map(whole_seconds), ..failure })
    }

    async fn request(&self, config: &config::Http) -> Result<(&Client, Request), Failure> {
        let redirects = request::redirects(config);
        let client = if redirects == Redirects::SameHost { &self.same_host } else { &self.any_host };
        let client = client.get_or_try_init(|| async { make_client(&self.egress, redirects) }).await?;
        let request = request::build(client, config)?;
        self.egress.check_url(request.url()).map_err(|blocked| {
            Failure::permanent(format!("{} was not sent: {blocked}", request::describe(&request)))
        })?;
        Ok((client, request))
    }
}

/// Sends a request. Returns its description and the response.
async fn send(client: &Client, request: Request, log: Option<&Log>) -> (String, Result<Response, Failure>) {
    let description = request::describe(&request);
    let response = client.execute(request).await.map_err(|error| failed(&description, error));
    if let (Some(log), Ok(response)) = (log, &response) {
        let line = format!("{description} returned {}", response.status());
        log.line(Stream::System, Level::Info, &line).await;
    }
    (description, response)
}

/// A time to wait in seconds, not less than it.
fn whole_seconds(wait: TimeDelta) -> u32 {
    u32::try_from((wait.num_milliseconds() + 999) / 1_000).unwrap_or(u32::MAX)
}

fn make_client(egress: &EgressPolicy, redirects: Redirects) -> Result<Client, Failure> {
    let builder = Client::builder()
        .user_agent(concat!("ebbflow/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT);
    egress.apply(builder, MAX_REDIRECTS, redirects).build().map_err(|error| {
        Failure::transient(format!(
            "this worker cannot send requests (are its root certificates installed?): {}",
            reasons(&error)
        ))
    })
}

/// The failure of a request without a complete response.
fn failed(request: &str, error: reqwest::Error) -> Failure {
    let blocked = chain(&error).any(|error| error.is::<Blocked>());
    let permanent = blocked || error.is_builder() || error.is_redirect();
    // The description of the request has the URL without its secrets.
    let message = format!("{request} failed: {}", reasons(&error.without_url()));
    if permanent { Failure::permanent(message) } else { Failure::transient(message) }
}

/// The message of an error and all its sources.
fn reasons(error: &(dyn Error + 'static)) -> String {
    chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests;
