//! The bus between the processes: the local broker, or Google's emulator. Both push over HTTP.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use auth::Issuer;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use bus::local::{Broker, Faults};
use bus::pubsub::PubSub;
use bus::{Bus, Endpoint, Subscription, SystemClock};
use chrono::TimeDelta;
use model::{Message, Topic};
use testkit::{Emulator, Port, eventually};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cluster::pause;

pub(crate) const PUSHER: &str = "pusher@example.com";
pub(crate) const AUDIENCE: &str = "push";
const PROJECT: &str = "chaos";

/// Which bus it is.
enum Kind {
    Local(Broker),
    Google(Emulator, PubSub),
}

/// A bus that can be away.
pub(crate) struct Hub {
    kind: Kind,
    balancer: Balancer,
    /// What processes reach over HTTP: the functions' pushes, the keys of tokens, and the local broker.
    router: Router,
    port: Port,
    closed: CancellationToken,
}

impl Hub {
    /// The local broker.
    pub(crate) async fn local(issuer: &Arc<Issuer>) -> Self {
        let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, Faults::default());
        Self::open(Kind::Local(broker), issuer).await
    }

    /// Google's emulator, where it is installed.
    pub(crate) async fn google(issuer: &Arc<Issuer>) -> Option<Self> {
        let emulator = Emulator::start().await?;
        let pubsub = PubSub::connect(PROJECT, Some(emulator.url.clone())).await.unwrap();
        Some(Self::open(Kind::Google(emulator, pubsub), issuer).await)
    }

    async fn open(kind: Kind, issuer: &Issuer) -> Self {
        let keys = issuer.jwks();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(8)).build().unwrap();
        let balancer = Balancer { urls: Arc::default(), next: Arc::default(), client };
        let mut router = Router::new()
            .route("/push/{function}", post(forward))
            .with_state(balancer.clone())
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
        // The listener of before closes in its own time.
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

    /// What a process is told about the bus.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut told = vec![("EBB_PUSH_KEYS_URL", format!("{}/keys", self.url()))];
        match &self.kind {
            Kind::Local(_) => {
                told.extend([("EBB_BROKER_URL", self.url()), ("EBB_PUSH_AUTH", "oidc".into())]);
            }
            // The emulator signs nothing.
            Kind::Google(emulator, _) => told.extend([
                ("EBB_PROJECT", PROJECT.into()),
                ("EBB_PUBSUB_ENDPOINT", emulator.url.clone()),
                ("EBB_PUSH_AUTH", "none".into()),
            ]),
        }
        told
    }

    /// Pushes what is for a function to one process after the other.
    pub(crate) async fn mount(&self, name: &str, urls: Vec<String>) {
        self.balancer.urls.lock().unwrap().insert(name.to_owned(), urls);
        let topic = match name {
            "trigger" => Topic::Triggers,
            "evaluate" => Topic::Evaluations,
            "execute" => Topic::Work("light".into()),
            _ => Topic::Management,
        };
        let url = format!("{}/push/{name}", self.url());
        let subscription = Subscription {
            ack_deadline: Duration::from_secs(10),
            max_backoff: Duration::from_secs(2),
            // The most that Pub/Sub takes.
            max_delivery_attempts: 100,
            ..Subscription::new(name, url, AUDIENCE)
        };
        match &self.kind {
            Kind::Local(broker) => broker.subscribe(&topic, to_address(subscription)),
            Kind::Google(_, pubsub) => pubsub.provision(&topic, &subscription, PUSHER).await.unwrap(),
        }
    }

    /// Topics that nobody listens to must be there all the same.
    pub(crate) async fn open_topics(&self) {
        if let Kind::Google(_, pubsub) = &self.kind {
            let nobody = Subscription::new("nobody", format!("{}/nobody", self.url()), AUDIENCE);
            pubsub.provision(&Topic::Lifecycle, &nobody, PUSHER).await.unwrap();
        }
    }

    /// Publishes; whoever asks goes on until it is taken.
    pub(crate) async fn publish(&self, message: Message) {
        let bus: &dyn Bus = match &self.kind {
            Kind::Local(broker) => broker,
            Kind::Google(_, pubsub) => pubsub,
        };
        while bus.publish(std::slice::from_ref(&message)).await.is_err() {
            pause(TimeDelta::milliseconds(100)).await;
        }
    }

    /// The broker's socket is closed, or the emulator's process stands still: nothing is taken and nothing is pushed.
    pub(crate) fn leave(&self) {
        match &self.kind {
            Kind::Local(_) => self.closed.cancel(),
            Kind::Google(emulator, _) => signal("-STOP", emulator.id()),
        }
    }

    pub(crate) async fn come_back(&mut self) {
        match &self.kind {
            Kind::Local(_) => self.listen().await,
            Kind::Google(emulator, _) => signal("-CONT", emulator.id()),
        }
    }
}

pub(crate) fn signal(signal: &str, process: u32) {
    let _ = Command::new("kill").args([signal, &process.to_string()]).status();
}

fn to_address(subscription: Subscription<String>) -> Subscription {
    Subscription {
        ack_deadline: subscription.ack_deadline,
        max_backoff: subscription.max_backoff,
        max_delivery_attempts: subscription.max_delivery_attempts,
        ..Subscription::new(subscription.name, Endpoint::Url(subscription.endpoint), subscription.audience)
    }
}

/// Sends each push to the next of several processes, as the platform's load balancer does.
#[derive(Clone)]
struct Balancer {
    urls: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    next: Arc<AtomicUsize>,
    client: reqwest::Client,
}

async fn forward(
    State(balancer): State<Balancer>,
    Path(function): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Body) {
    let turn = balancer.next.fetch_add(1, Ordering::Relaxed);
    let url = {
        let urls = balancer.urls.lock().unwrap();
        urls[&function][turn % urls[&function].len()].clone()
    };
    match balancer.client.post(format!("{url}/push")).headers(headers).body(body).send().await {
        Ok(answer) => (answer.status(), Body::empty()),
        Err(_) => (StatusCode::BAD_GATEWAY, Body::empty()),
    }
}
