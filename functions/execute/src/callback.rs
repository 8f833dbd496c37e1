//! Callbacks: notifications about a run or a task.

use chrono::TimeDelta;
use engine::Command;
use host::Verdict;
use host::secrets::Redactor;
use language::config;
use model::message::{CallbackDue, Notice};
use model::{Call, Failure, Message, RunId, TaskKind};
use runtime::{CallbackJob, Origin, StartRun};
use serde_json::{Map, Value, json};

use crate::attempt::Executor;

/// How often a callback is tried in a row before the bus redelivers it later.
const MAX_TRIES: u32 = 3;

/// How long a receiver may take to respond.
const CALLBACK_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

impl Executor {
    /// Sends a callback. It may arrive twice, with the same id.
    pub async fn call_back(&self, due: &CallbackDue) -> runtime::Result<Verdict> {
        let tenant = self.runtime.tenants().name(due.tenant).await?;
        let known = self.runner.secrets.of(&tenant);
        let secrets = match known.resolve(self.runtime.callbacks().secrets(due).await?).await {
            Ok(secrets) => secrets,
            Err(failure) => return self.record_callback(due, "a callback", Err(failure)).await,
        };
        let redactor = Redactor::of(&secrets).and(known.all().await);
        match self.runtime.callbacks().job(due, secrets).await? {
            CallbackJob::Gone => Ok(Verdict::Reject("there is no such callback".into())),
            CallbackJob::Broken(failure) => {
                self.record_callback(due, "a callback", Err(redactor.failure(failure))).await
            }
            CallbackJob::Ready { call, event, depth } => {
                let what = redactor.text(&describe(&call));
                let result = self.call(due, call, event, depth, &redactor).await?;
                self.record_callback(due, &what, result.map_err(|failure| redactor.failure(failure))).await
            }
        }
    }

    async fn call(
        &self,
        due: &CallbackDue,
        call: Call,
        event: Value,
        depth: u32,
        redactor: &Redactor,
    ) -> runtime::Result<Result<(), Failure>> {
        match call {
            Call::Webhook { url, headers, body } => {
                let config =
                    json!({"method": "POST", "url": url, "headers": headers, "body": body.unwrap_or(event)});
                Ok(self.send(config, redactor).await)
            }
            Call::Message { topic, body } => {
                let notice = Notice { topic, run: due.run, body: body.unwrap_or(event) };
                let sent = self.runtime.bus().publish(&[Message::Notice(notice)]).await;
                Ok(sent.map_err(|error| Failure::transient(error.to_string())))
            }
            Call::Workflow { workflow, inputs } => self.start(due, workflow, inputs, &event, depth).await,
        }
    }

    async fn send(&self, config: Value, redactor: &Redactor) -> Result<(), Failure> {
        let config: config::Http =
            config::read(&TaskKind::Http, config).map_err(|error| Failure::permanent(error.to_string()))?;
        let redact = |text: &str| redactor.text(text);
        let clock = self.runtime.clock();
        let mut tries = 1;
        loop {
            let exchange = self.clients.http.exchange(&config, &redact);
            let response = tokio::select! {
                response = exchange => response,
                () = clock.wait_until(clock.now() + CALLBACK_TIMEOUT) => {
                    let seconds = CALLBACK_TIMEOUT.num_seconds();
                    Err(Failure::transient(format!("no response within {seconds} s")))
                }
            };
            match response {
                Ok(_) => return Ok(()),
                Err(failure) if tries == MAX_TRIES || !is_retryable(&failure) => return Err(failure),
                Err(_) => clock.wait_until(clock.now() + TimeDelta::seconds(1 << tries)).await,
            }
            tries += 1;
        }
    }

    async fn start(
        &self,
        due: &CallbackDue,
        workflow: String,
        inputs: Map<String, Value>,
        event: &Value,
        depth: u32,
    ) -> runtime::Result<Result<(), Failure>> {
        let id = RunId::from_key(due.tenant, &workflow, &format!("callback {}", event["id"]));
        let origin = Origin::Callback { run: due.run, depth };
        let request = StartRun { inputs, ..StartRun::new(id, due.tenant, workflow, origin) };
        match self.runtime.start(request).await {
            Ok(_) => Ok(Ok(())),
            // A redelivery for want of room would slow down the messages of other tenants.
            Err(error) if error.is_hopeless() || error.is_quota() => {
                Ok(Err(Failure::permanent(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    /// Records the result of a callback in the run's timeline, or has it redelivered.
    async fn record_callback(
        &self,
        due: &CallbackDue,
        what: &str,
        result: Result<(), Failure>,
    ) -> runtime::Result<Verdict> {
        let error = match result {
            Ok(()) => None,
            Err(failure) if is_retryable(&failure) => return Ok(Verdict::Retry(failure.message)),
            Err(failure) => Some(failure.message),
        };
        let verdict = error.clone().map_or(Verdict::Done, Verdict::Reject);
        let called_back = Command::CalledBack { what: what.to_owned(), error };
        self.runtime.settle(due.run, called_back).await?;
        Ok(verdict)
    }
}

fn is_retryable(failure: &Failure) -> bool {
    failure.class != model::ErrorClass::Permanent
}

/// The target of a callback, without the path and query of its URL, which may contain secrets.
fn describe(call: &Call) -> String {
    match call {
        Call::Webhook { url, .. } => {
            let host = url.split("//").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
            let host = host.and_then(|host| host.rsplit('@').next()).unwrap_or("an address");
            format!("webhook to {host}")
        }
        Call::Message { topic, .. } => format!("message to {topic}"),
        Call::Workflow { workflow, .. } => format!("run of {workflow}"),
    }
}
