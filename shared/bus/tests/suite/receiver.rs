//! A test function that returns configured responses and records its requests.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use auth::{Issuer, PushAuth};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use axum::routing::post;
use ebbflow_bus::envelope::{Delivery, open};
use ebbflow_bus::local::{Broker, Faults};
use ebbflow_bus::{Endpoint, Subscription, SystemClock};
use model::Clock;
use tokio::sync::mpsc;

pub(crate) const AUDIENCE: &str = "https://receiver.test";
pub(crate) const ACCOUNT: &str = "pusher@local.test";
pub(crate) const ISSUER: &str = "https://issuer.test";

pub(crate) static HOUSE: LazyLock<Arc<Issuer>> = LazyLock::new(|| Arc::new(Issuer::generate(ISSUER)));

/// A broker with these faults.
pub(crate) fn broker(faults: Faults) -> Broker {
    Broker::new(Arc::new(SystemClock), HOUSE.clone(), ACCOUNT, faults)
}

/// A recorded request, and the status of its response.
pub(crate) struct Seen {
    pub(crate) delivery: Delivery,
    pub(crate) authorization: Option<String>,
    pub(crate) answer: StatusCode,
}

pub(crate) struct Receiver {
    pub(crate) router: Router,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl Receiver {
    /// Responds to each delivery with a status.
    pub(crate) fn answering(answer: impl Fn(&Delivery) -> StatusCode + Send + Sync + 'static) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        let handler = async move |headers: HeaderMap, body: Bytes| {
            let delivery = open(&headers, &body).unwrap();
            let authorization = headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
            let answer = answer(&delivery);
            // A test that has seen enough does not listen any longer.
            sender.send(Seen { delivery, authorization, answer }).ok();
            answer
        };
        Self { router: Router::new().route("/push", post(handler)), seen }
    }

    /// Responds to each delivery with 204.
    pub(crate) fn content() -> Self {
        Self::answering(|_| StatusCode::NO_CONTENT)
    }

    /// Waits for the next delivery.
    pub(crate) async fn next(&mut self) -> Seen {
        testkit::within_deadline("a delivery", self.seen.recv()).await.expect("the receiver lives")
    }

    /// The deliveries that the test has not read yet.
    pub(crate) fn so_far(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }

    /// A subscription that calls it, with short pauses.
    pub(crate) fn subscription(&self, name: &str) -> Subscription {
        let endpoint = Endpoint::Router(self.router.clone(), "/push".into());
        Subscription { min_backoff: Duration::from_millis(1), ..Subscription::new(name, endpoint, AUDIENCE) }
    }
}

/// Serves the routes on a free port and returns the address.
pub(crate) async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Passes only if the push was signed for us by the house.
pub(crate) async fn check_token(authorization: Option<&str>) {
    let verifier = HOUSE.verifier(AUDIENCE);
    let auth = PushAuth::Oidc { verifier, service_account: ACCOUNT.into() };
    auth.check(authorization, SystemClock.now()).await.unwrap();
}
