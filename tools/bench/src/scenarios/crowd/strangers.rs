//! Callers that nobody needs: they listen, send slowly, have no valid token, or invent cursors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use ebb::client::Server;
use futures::future::join_all;
use reqwest::{Client, StatusCode, Url};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::Size;
use crate::processes::http_client;

/// Connections that share the requests with rejected tokens.
const SENDERS: u32 = 64;

/// Connections that ask with forged cursors.
const FORGERS: usize = 4;

/// How often a slow client sends a byte.
const SLOW_INTERVAL: Duration = Duration::from_secs(2);

/// Tokens that no issuer signed: nothing, nonsense, an unknown key, no algorithm, a service token that does not exist.
const TOKENS: [&str; 4] = [
    "nonsense",
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InVua25vd24ifQ.eyJpc3MiOiJ4In0.c2lnbmF0dXJl",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "ebb_0000000000000000000000000000000000000000000",
];

/// Cursors that no list returned.
const CURSORS: [&str; 6] = [
    "0",
    "nonsense",
    "eyJpZCI6MX0",
    "AAAAAAAAAAAAAAAAAAAAAA",
    "%00%ff",
    "019000000000700080000000000000000000000000000000",
];

/// What the strangers have counted.
#[derive(Default)]
struct Counters {
    stopped: AtomicBool,
    listeners: AtomicU64,
    slow_clients: AtomicU64,
    rejected: AtomicU64,
    forged: AtomicU64,
    server_errors: AtomicU64,
}

impl Counters {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Counts a response: `expected` if the server refused or served it, and a failure of the server otherwise.
    fn count(&self, status: StatusCode, expected: &AtomicU64) {
        let counter = if status.is_server_error() { &self.server_errors } else { expected };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What happened to the strangers.
pub(super) struct Seen {
    /// Listeners that received something.
    pub(super) listeners: u64,
    /// Connections that slow clients opened; the server closes them.
    pub(super) slow_clients: u64,
    pub(super) rejected: u64,
    pub(super) forged: u64,
    pub(super) server_errors: u64,
}

/// All strangers. They leave when this value is dropped.
pub(super) struct Strangers {
    counters: Arc<Counters>,
    tasks: JoinSet<()>,
}

impl Strangers {
    /// Connects all listeners, then lets the others begin.
    pub(super) async fn arrive(server: &Server, size: Size) -> Result<Self> {
        let (counters, mut tasks) = (Arc::new(Counters::default()), JoinSet::new());
        let (client, url) = (http_client()?, Url::parse(&server.url)?);
        let connecting = (0..size.listeners).map(|_| listen(&client, server));
        for stream in join_all(connecting).await {
            tasks.spawn(follow(stream?, counters.clone()));
        }
        for _ in 0..size.slow_clients {
            tasks.spawn(send_slowly(url.clone(), counters.clone()));
        }
        for number in 0..SENDERS {
            let token = TOKENS[number as usize % TOKENS.len()];
            let period = Duration::from_secs(1) * SENDERS / size.rejected;
            tasks.spawn(send_rejected(client.clone(), server.url.clone(), token, period, counters.clone()));
        }
        for _ in 0..FORGERS {
            tasks.spawn(forge(client.clone(), server.clone(), counters.clone()));
        }
        Ok(Self { counters, tasks })
    }

    /// Ends all of them. Returns what they have seen.
    pub(super) async fn leave(mut self) -> Seen {
        self.counters.stopped.store(true, Ordering::Relaxed);
        self.tasks.shutdown().await;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Seen {
            listeners: count(&self.counters.listeners),
            slow_clients: count(&self.counters.slow_clients),
            rejected: count(&self.counters.rejected),
            forged: count(&self.counters.forged),
            server_errors: count(&self.counters.server_errors),
        }
    }
}

async fn listen(client: &Client, server: &Server) -> reqwest::Result<reqwest::Response> {
    let request = client.get(format!("{}/api/v1/events", server.url)).bearer_auth(&server.token);
    request.send().await?.error_for_status()
}

/// Reads a stream of events until it ends.
async fn follow(mut stream: reqwest::Response, counters: Arc<Counters>) {
    let mut has_received = false;
    while let Ok(Some(_)) = stream.chunk().await {
        if !std::mem::replace(&mut has_received, true) {
            counters.listeners.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends a request byte by byte and never completes it. Connects again when the server has enough.
async fn send_slowly(url: Url, counters: Arc<Counters>) {
    let address = (url.host_str().unwrap_or_default().to_owned(), url.port().unwrap_or(80));
    let mut ticks = interval(SLOW_INTERVAL);
    while !counters.is_stopped() {
        ticks.tick().await;
        let Ok(mut stream) = TcpStream::connect(&address).await else { continue };
        counters.slow_clients.fetch_add(1, Ordering::Relaxed);
        let head = b"GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
        let mut sent = stream.write_all(head).await;
        while sent.is_ok() {
            ticks.tick().await;
            sent = stream.write_all(b"x").await;
        }
    }
}

/// Sends requests with a token that is rejected, one in each period. Responses are read to the end, so that connections are
/// used again.
async fn send_rejected(
    client: Client,
    url: String,
    token: &'static str,
    period: Duration,
    counters: Arc<Counters>,
) {
    let mut ticks = interval(period);
    // A server that is slower than the rate is not asked more often later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !counters.is_stopped() {
        ticks.tick().await;
        if let Ok(response) = client.get(format!("{url}/api/v1/runs")).bearer_auth(token).send().await {
            counters.count(response.status(), &counters.rejected);
            let _ = response.bytes().await;
        }
    }
}

/// Reads lists with cursors that no list returned.
async fn forge(client: Client, server: Server, counters: Arc<Counters>) {
    for cursor in CURSORS.iter().cycle() {
        if counters.is_stopped() {
            return;
        }
        let request = client.get(format!("{}/api/v1/runs?limit=100&cursor={cursor}", server.url));
        if let Ok(response) = request.bearer_auth(&server.token).send().await {
            counters.count(response.status(), &counters.forged);
            let _ = response.bytes().await;
        }
    }
}
