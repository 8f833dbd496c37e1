//! `http`: one request, and its answer as the output.

mod answer;
mod breaker;
mod request;

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use language::config;
use reqwest::{Client, Request, Response, redirect};
use serde_json::Value;
use tokio::sync::OnceCell;

use model::Failure;

use super::{TaskKind, stopped};
use crate::job::{Context, Job};
use crate::log::{Level, Log, Stream};
use breaker::End;

pub(crate) use breaker::Breakers;

/// How often a request is sent on to another address.
const REDIRECTS: usize = 5;
/// A host that does not take the connection by then is not there.
const CONNECT: Duration = Duration::from_secs(30);

/// Sends one request. The client is made for the first one, so a worker that never sends any needs
/// no certificates.
#[derive(Default)]
pub(crate) struct Http {
    client: OnceCell<Client>,
}

#[async_trait]
impl TaskKind for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    async fn start(&self, job: &Job, context: &Context) -> Result<Value, Failure> {
        let config: config::Http = super::config(job)?;
        let exchange = self.guarded(&config, context);
        context.cancel.run_until_cancelled(exchange).await.unwrap_or_else(|| Err(stopped()))
    }
}

impl Http {
    /// Sends the request that the config asks for, and judges its answer.
    pub(crate) async fn exchange(&self, config: &config::Http, log: Option<&Log>) -> Result<Value, Failure> {
        let client = self.client.get_or_try_init(|| async { client() }).await?;
        let (asked, response) = send(client, request::build(client, config)?, log).await;
        answer::judge(response?, config, &asked).await
    }

    /// The same, once the host's breaker lets it.
    async fn guarded(&self, config: &config::Http, context: &Context) -> Result<Value, Failure> {
        let client = self.client.get_or_try_init(|| async { client() }).await?;
        let request = request::build(client, config)?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let call = context.breakers.admit(&host, &*context.clock, &context.log).await;
        let (asked, response) = send(client, request, Some(&context.log)).await;
        let broken = response.as_ref().map_or(true, |response| response.status().is_server_error());
        call.ended(if broken { End::Failed } else { End::Answered });
        answer::judge(response?, config, &asked).await
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

fn client() -> Result<Client, Failure> {
    Client::builder()
        .user_agent(concat!("ebbflow/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::limited(REDIRECTS))
        .connect_timeout(CONNECT)
        .build()
        .map_err(|error| {
            Failure::transient(format!(
                "this worker cannot send requests (are its root certificates installed?): {}",
                reasons(&error)
            ))
        })
}

/// The failure of an exchange that ended without a whole answer.
fn broken(asked: &str, error: reqwest::Error) -> Failure {
    let hopeless = error.is_builder() || error.is_redirect();
    // The address is in `asked` already, and there without its secrets.
    let message = format!("{asked} failed: {}", reasons(&error.without_url()));
    if hopeless { Failure::permanent(message) } else { Failure::transient(message) }
}

/// An error with everything that led to it.
fn reasons(error: &dyn Error) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests;
