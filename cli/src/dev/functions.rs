//! The functions, mounted in one process: the broker pushes to them, an alarm wakes the sweep, and the console serves HTTP.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api::access::Sessions;
use api::{Access, Api, Links};
use auth::Seal;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use axum::middleware::from_fn;
use bus::local::Broker;
use bus::{Endpoint, Subscription};
use chrono::{DurationRound, TimeDelta};
use execute::Executor;
use host::wake_up::Alarm;
use host::{Connected, Secrets, follow_log_filter, observe_request};
use model::{Clock, Topic};
use runtime::Runtime;
use tokio::sync::Notify;
use tower::ServiceExt;
use tracing::warn;

use super::issuer::{LocalIssuer, PUSH_AUDIENCE};
use super::sign_in;

/// The sweep of separate processes responds when nothing is due soon, and not later than the next tick.
pub(super) const SWEEP_ACK_DEADLINE: Duration = Duration::from_secs(90);

/// The only lifecycle messages that the trigger function receives.
pub(super) const RUN_FINISHED: &str = "dev.ebbflow.run.finished.v1";

pub(super) struct Functions {
    pub(super) execute: Router,
    /// Also stores dead letters.
    pub(super) evaluate: Router,
    /// What is served to people and programs: the console, the API, and the functions' push endpoints.
    pub(super) public: Router,
    sweep: Router,
    alarm: Alarm,
    stop: Arc<Notify>,
}

impl Functions {
    pub(super) fn mount(
        connected: Connected,
        issuer: &LocalIssuer,
        url: &str,
        broker: &Broker,
        executor: Arc<Executor>,
        secrets: Secrets,
    ) -> Result<Self, auth::Error> {
        let Connected { app, database, accounts } = connected;
        let log_accounts = accounts.clone();
        // Pushes within this process bypass the server, which would observe them.
        let observed = |router: Router| router.layer(from_fn(observe_request));
        let execute = observed(execute::router_with(app.clone(), executor));
        let trigger = observed(trigger::router_with(app.clone(), None, secrets.clone()));
        let evaluate = observed(evaluate::router(app.clone()));
        let retention = sweep::Retention::default().with_accounts(accounts.clone());
        let alarm = Alarm::default();
        let sweep = sweep::Sweep::new(app.runtime.clone())
            .with_retention(retention)
            .with_wake_ups(Arc::new(alarm.clone()));
        let sweep = observed(sweep::router_with(app.clone(), sweep));
        let subscribe = |topic: Topic, name: &str, router: &Router, ack_deadline: Option<Duration>| {
            let endpoint = Endpoint::Router(router.clone(), "/push".into());
            let defaults = Subscription::new(name, endpoint, PUSH_AUDIENCE);
            let ack_deadline = ack_deadline.unwrap_or(defaults.ack_deadline);
            broker.subscribe(&topic, Subscription { ack_deadline, ..defaults });
        };
        for topic in [Topic::Triggers, Topic::Evaluations, Topic::Management, Topic::Lifecycle] {
            broker.subscribe_dead_letters(&topic, dead_letters(&topic, &evaluate));
        }
        subscribe(Topic::Triggers, "trigger", &trigger, None);
        // For triggers on the end of another workflow's run.
        let endpoint = Endpoint::Router(trigger.clone(), "/push".into());
        let defaults = Subscription::new("trigger-lifecycle", endpoint, PUSH_AUDIENCE);
        let only = Some(RUN_FINISHED.to_owned());
        broker.subscribe(&Topic::Lifecycle, Subscription { only, ..defaults });
        subscribe(Topic::Evaluations, "evaluate", &evaluate, None);
        subscribe(Topic::Management, "sweep", &sweep, Some(SWEEP_ACK_DEADLINE));
        // Sessions end with the process, and signing in again is one click.
        let sessions = Sessions::new(sign_in::sign_in(&issuer.issuer(), url)?, Seal::random());
        let access = Access::new(issuer.authenticator(), issuer.policy()).with_sessions(sessions);
        let connected = Connected { app: app.clone(), database, accounts };
        let api = Api {
            pages_open: true,
            secrets: secrets.clone(),
            ..Api::new(connected, access, Links::local(url))
        };
        let public = console::router(api.clone())
            .merge(trigger::webhooks(app.clone(), Some(api), secrets))
            .merge(sign_in::router(issuer.issuer(), url))
            .nest("/functions/trigger", trigger)
            .nest("/functions/evaluate", evaluate.clone())
            .nest("/functions/execute", execute.clone())
            .nest("/functions/sweep", sweep.clone());
        // All functions share the filter of this process.
        let public = follow_log_filter(public, &log_accounts, "console");
        Ok(Self { execute, evaluate, public, sweep, alarm, stop: Arc::default() })
    }

    /// Resumes runs that an earlier process left unfinished: its messages are lost and its workers dead.
    pub(super) async fn resume(&self, runtime: &Arc<Runtime>) -> anyhow::Result<()> {
        let sweep = sweep::Sweep::new(runtime.clone());
        sweep.after_restart().await.context("cannot resume unfinished runs")
    }

    /// Calls the sweep at once, whenever something is due, and at the start of every hour, as the cloud does with exact
    /// wake-ups.
    pub(super) fn keep_ticking(&self, issuer: LocalIssuer, clock: Arc<dyn Clock>) {
        let (sweep, alarm, stop) = (self.sweep.clone(), self.alarm.clone(), self.stop.clone());
        tokio::spawn(async move {
            loop {
                let request = Request::post("/sweep")
                    .header(header::AUTHORIZATION, format!("Bearer {}", issuer.push_token(clock.now())))
                    .body(Body::empty())
                    .expect("a request of fixed parts");
                let response = tokio::spawn(sweep.clone().oneshot(request));
                let hour = TimeDelta::hours(1);
                let next = clock.now().duration_trunc(hour).unwrap_or_else(|_| clock.now()) + hour;
                tokio::select! {
                    () = stop.notified() => return,
                    () = alarm.ring(&*clock) => {}
                    () = clock.wait_until(next) => {}
                }
                if response.is_finished() && response.await.is_err() {
                    warn!("The sweep panicked; the next tick tries again");
                }
            }
        });
    }

    pub(super) fn stop_ticking(&self) {
        self.stop.notify_one();
    }
}

/// Evaluate stores a topic's dead letters.
pub(super) fn dead_letters(topic: &Topic, evaluate: &Router) -> Subscription {
    let endpoint = Endpoint::Router(evaluate.clone(), "/dead-letters".into());
    Subscription::new(topic.dead_letter_id(), endpoint, PUSH_AUDIENCE)
}
