//! The bus between the processes: the local broker, or Google's emulator. Both push over HTTP.

use std::sync::Arc;
use std::time::Duration;

use auth::Issuer;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use bus::local::{Broker, Faults};
use bus::pubsub::PubSub;
use bus::{Bus, Endpoint, Subscription, SystemClock};
use chrono::TimeDelta;
use ebbflow_tests::{Balancer, FunctionProcess, signal};
use model::{Message, Topic};
use testkit::{Emulator, Port, eventually};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cluster::pause;

pub(crate) const PUSHER: &str = "pusher@example.com";
pub(crate) const AUDIENCE: &str = "push";
const PROJECT: &str = "chaos";

/// A push to a frozen process fails then, and is delivered to the other one.
const PUSH_TIMEOUT: Duration = Duration::from_secs(8);

/// The bus that is tested.
enum Kind {
    Local(Broker),
    Google(Emulator, PubSub),
}

/// A bus that can become unavailable.
pub(crate) struct Hub {
    kind: Kind,
    balancer: Balancer,
    /// Serves pushes to the functions, the keys of tokens, and the local broker.
    router: Router,
    port: Port,
    closed: CancellationToken,
}

impl Hub {
    /// Starts the local broker.
    pub(crate) async fn local(issuer: &Arc<Issuer>) -> Self {
        let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, Faults::default());
        Self::open(Kind::Local(broker), issuer).await
    }

    /// Starts Google's emulator, if it is installed.
    pub(crate) async fn google(issuer: &Arc<Issuer>) -> Option<Self> {
        let emulator = Emulator::start().await?;
        let pubsub = PubSub::connect(PROJECT, Some(emulator.url.clone())).await.unwrap();
        Some(Self::open(Kind::Google(emulator, pubsub), issuer).await)
    }

    async fn open(kind: Kind, issuer: &Issuer) -> Self {
        let keys = issuer.jwks();
        let balancer = Balancer::new(PUSH_TIMEOUT);
        let mut router = balancer
            .router()
            .route("/nobody", post(async || StatusCode::NO_CONTENT))
            .route("/keys", get(|| async { axum::Json(keys) }));
        if let Kind::Local(broker) = &kind {
            router = router.merge(bus::broker_http::router(broker.clone()));
        }
        let closed = CancellationToken::new();
        let mut hub = Self { kind, balancer, router, port: Port::reserve(), closed };
        hub.listen().await;
        hub
    }

    async fn listen(&mut self) {
        // The previous listener may still be closing.
        let address = ("127.0.0.1", self.port.number());
        let listener = eventually("the port is free", async || TcpListener::bind(address).await.ok()).await;
        self.closed = CancellationToken::new();
        let (router, closed) = (self.router.clone(), self.closed.clone());
        let serving = axum::serve(listener, router).with_graceful_shutdown(closed.cancelled_owned());
        tokio::spawn(async move { serving.await.unwrap() });
    }

    fn url(&self) -> String {
        self.port.url()
    }

    /// The settings of a process that concern the bus.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("EBB_PUSH_KEYS_URL", format!("{}/keys", self.url()))];
        match &self.kind {
            Kind::Local(_) => {
                settings.extend([("EBB_BROKER_URL", self.url()), ("EBB_PUSH_AUTH", "oidc".into())]);
            }
            // The emulator does not sign pushes.
            Kind::Google(emulator, _) => settings.extend([
                ("EBB_PROJECT", PROJECT.into()),
                ("EBB_PUBSUB_ENDPOINT", emulator.url.clone()),
                ("EBB_PUSH_AUTH", "none".into()),
            ]),
        }
        settings
    }

    /// Pushes the messages of a topic to one process of a function after the other.
    pub(crate) async fn subscribe(&self, name: &str, topic: &Topic, processes: &[FunctionProcess]) {
        processes.iter().for_each(|process| self.balancer.add(process));
        let url = format!("{}/push/{name}", self.url());
        let subscription = Subscription {
            ack_deadline: Duration::from_secs(10),
            max_backoff: Duration::from_secs(2),
            // The maximum of Pub/Sub.
            max_delivery_attempts: 100,
            ..Subscription::new(name, url, AUDIENCE)
        };
        match &self.kind {
            Kind::Local(broker) => broker.subscribe(topic, to_address(subscription)),
            Kind::Google(_, pubsub) => pubsub.provision(topic, &subscription, PUSHER).await.unwrap(),
        }
    }

    /// Creates the topics that no function subscribes to.
    pub(crate) async fn open_topics(&self) {
        if let Kind::Google(_, pubsub) = &self.kind {
            let nobody = Subscription::new("nobody", format!("{}/nobody", self.url()), AUDIENCE);
            pubsub.provision(&Topic::Lifecycle, &nobody, PUSHER).await.unwrap();
        }
    }

    /// Publishes a message, as often as it takes.
    pub(crate) async fn publish(&self, message: Message) {
        let bus: &dyn Bus = match &self.kind {
            Kind::Local(broker) => broker,
            Kind::Google(_, pubsub) => pubsub,
        };
        while bus.publish(std::slice::from_ref(&message)).await.is_err() {
            pause(TimeDelta::milliseconds(100)).await;
        }
    }

    /// Closes the broker's socket, or freezes the emulator: nothing is accepted and nothing is pushed.
    pub(crate) fn make_unavailable(&self) {
        match &self.kind {
            Kind::Local(_) => self.closed.cancel(),
            Kind::Google(emulator, _) => signal("-STOP", emulator.id()),
        }
    }

    /// Opens the broker's socket again, or thaws the emulator.
    pub(crate) async fn make_available(&mut self) {
        match &self.kind {
            Kind::Local(_) => self.listen().await,
            Kind::Google(emulator, _) => signal("-CONT", emulator.id()),
        }
    }
}

fn to_address(subscription: Subscription<String>) -> Subscription {
    Subscription {
        ack_deadline: subscription.ack_deadline,
        max_backoff: subscription.max_backoff,
        max_delivery_attempts: subscription.max_delivery_attempts,
        ..Subscription::new(subscription.name, Endpoint::Url(subscription.endpoint), subscription.audience)
    }
}
