//! Callers that nobody needs: they listen, send or read slowly, have no valid token, or invent cursors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use ebb::client::Server;
use futures::future::join_all;
use reqwest::{Client, StatusCode};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::Size;
use super::forged::Forger;
use super::slow::{Slow, be_slow};
use crate::processes::http_client;

/// Connections that share the requests with rejected tokens.
const SENDERS: u32 = 64;

/// Connections that read lists, and that resume event streams, with forged cursors.
const FORGERS: usize = 4;

/// How long to wait for listeners that have received nothing yet.
const LISTENERS_TIMEOUT: Duration = Duration::from_secs(300);

/// A cursor of the event stream that asks for everything that ever happened.
const BEGINNING: &str = "1:1:";

/// What the strangers have counted.
#[derive(Default)]
pub(super) struct Counters {
    stopped: AtomicBool,
    listeners: watch::Sender<u64>,
    disconnected: AtomicU64,
    gaps: AtomicU64,
    pub(super) slow_clients: AtomicU64,
    rejected: AtomicU64,
    believed: AtomicU64,
    failed: AtomicU64,
    forged: AtomicU64,
    resumed: AtomicU64,
    server_errors: AtomicU64,
    busy: AtomicU64,
}

impl Counters {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Counts the response to a request, if there was one: `expected` if the server refused or served it.
    fn count(&self, response: &reqwest::Result<reqwest::Response>, expected: &AtomicU64) {
        let counter = match response {
            Err(_) => &self.failed,
            Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => &self.busy,
            Ok(response) if response.status().is_server_error() => &self.server_errors,
            Ok(_) => expected,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What happened to the strangers.
pub(super) struct Seen {
    /// How long they stayed.
    pub(super) seconds: f64,
    /// Listeners that received something.
    pub(super) listeners: u64,
    /// Listeners whose connections the server has not closed.
    pub(super) connected: u64,
    /// How often a listener was sent that it missed events.
    pub(super) gaps: u64,
    /// Connections that slow clients opened; the server closes them.
    pub(super) slow_clients: u64,
    pub(super) rejected: u64,
    /// Requests that should have been rejected and were not.
    pub(super) believed: u64,
    /// Requests that were not answered.
    pub(super) failed: u64,
    pub(super) forged: u64,
    pub(super) resumed: u64,
    pub(super) server_errors: u64,
    /// Requests that a busy server asked to repeat.
    pub(super) busy: u64,
}

/// All strangers. They leave when this value is dropped.
pub(super) struct Strangers {
    counters: Arc<Counters>,
    tasks: JoinSet<()>,
    arrived: Instant,
    /// The number of listeners that were connected.
    listening: u64,
}

impl Strangers {
    /// Connects all listeners, then lets the others begin.
    pub(super) async fn arrive(server: &Server, size: Size) -> Result<Self> {
        let (counters, mut tasks, client) = (Arc::new(Counters::default()), JoinSet::new(), http_client()?);
        let connecting = (0..size.listeners).map(|_| connect(&client, server));
        for stream in join_all(connecting).await {
            tasks.spawn(follow(stream?, counters.clone()));
        }
        for number in 0..size.slow_clients {
            tasks.spawn(be_slow(Slow::number(number), server.clone(), counters.clone()));
        }
        for number in 0..SENDERS as usize {
            let period = Duration::from_secs(1) * SENDERS / size.rejected;
            let forger = Forger::new(number);
            tasks.spawn(send_rejected(client.clone(), server.url.clone(), forger, period, counters.clone()));
        }
        for number in 0..FORGERS {
            tasks.spawn(forge(client.clone(), server.clone(), Forger::new(number), counters.clone()));
            tasks.spawn(resume(client.clone(), server.clone(), counters.clone()));
        }
        Ok(Self { counters, tasks, arrived: Instant::now(), listening: size.listeners as u64 })
    }

    /// Waits until this many listeners have received something. Those that take too long are missing in the figures.
    pub(super) async fn wait_for_listeners(&self, count: usize) {
        let mut listeners = self.counters.listeners.subscribe();
        let all = listeners.wait_for(|listeners| *listeners >= count as u64);
        let _ = tokio::time::timeout(LISTENERS_TIMEOUT, all).await;
    }

    /// Ends all of them. Returns what they have seen.
    pub(super) async fn leave(mut self) -> Seen {
        let seconds = self.arrived.elapsed().as_secs_f64();
        self.counters.stopped.store(true, Ordering::Relaxed);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let seen = Seen {
            seconds,
            listeners: *self.counters.listeners.borrow(),
            connected: self.listening - count(&self.counters.disconnected),
            gaps: count(&self.counters.gaps),
            slow_clients: count(&self.counters.slow_clients),
            rejected: count(&self.counters.rejected),
            believed: count(&self.counters.believed),
            failed: count(&self.counters.failed),
            forged: count(&self.counters.forged),
            resumed: count(&self.counters.resumed),
            server_errors: count(&self.counters.server_errors),
            busy: count(&self.counters.busy),
        };
        self.tasks.shutdown().await;
        seen
    }
}

/// Connects a listener, as often as a busy server asks to come again.
async fn connect(client: &Client, server: &Server) -> reqwest::Result<reqwest::Response> {
    let mut pauses = interval(Duration::from_millis(100));
    loop {
        pauses.tick().await;
        let response = listen(client, server, None).await?;
        if response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return response.error_for_status();
        }
    }
}

async fn listen(client: &Client, server: &Server, last: Option<&str>) -> reqwest::Result<reqwest::Response> {
    let request = client.get(format!("{}/api/v1/events", server.url)).bearer_auth(&server.token);
    let request = last.into_iter().fold(request, |request, last| request.header("Last-Event-ID", last));
    request.send().await
}

/// Reads a stream of events until it ends.
async fn follow(mut stream: reqwest::Response, counters: Arc<Counters>) {
    let (mut has_received, mut gaps) = (false, Gaps::default());
    while let Ok(Some(part)) = stream.chunk().await {
        counters.gaps.fetch_add(gaps.count(&part), Ordering::Relaxed);
        if !std::mem::replace(&mut has_received, true) {
            counters.listeners.send_modify(|listeners| *listeners += 1);
        }
    }
    counters.disconnected.fetch_add(1, Ordering::Relaxed);
}

/// Counts the gaps in a stream of events, which comes in parts.
#[derive(Default)]
struct Gaps {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
}

impl Gaps {
    fn count(&mut self, part: &[u8]) -> u64 {
        let mut gaps = 0;
        for byte in part {
            match byte {
                b'\n' => gaps += u64::from(std::mem::take(&mut self.line) == b"event: gap"),
                _ if self.line.len() < 16 => self.line.push(*byte),
                _ => {}
            }
        }
        gaps
    }
}

/// Sends requests with a token that is rejected, one in each period. Responses are read to the end, so that connections are
/// used again.
async fn send_rejected(
    client: Client,
    url: String,
    mut forger: Forger,
    period: Duration,
    counters: Arc<Counters>,
) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while !counters.is_stopped() {
        ticks.tick().await;
        let request = client.get(format!("{url}/api/v1/runs"));
        let request = forger.token().into_iter().fold(request, |request, token| request.bearer_auth(token));
        let response = request.send().await;
        let is_rejected = |status: StatusCode| status == StatusCode::UNAUTHORIZED;
        let expected = match &response {
            Ok(response) if !is_rejected(response.status()) => &counters.believed,
            _ => &counters.rejected,
        };
        counters.count(&response, expected);
        if let Ok(response) = response {
            let _ = response.bytes().await;
        }
    }
}

/// Reads lists with cursors that no list returned.
async fn forge(client: Client, server: Server, mut forger: Forger, counters: Arc<Counters>) {
    while !counters.is_stopped() {
        let request = client.get(format!("{}/api/v1/runs?{}", server.url, forger.query()));
        let response = request.bearer_auth(&server.token).send().await;
        counters.count(&response, &counters.forged);
        if let Ok(response) = response {
            let _ = response.bytes().await;
        }
    }
}

/// Asks for all events there ever were, reads a little of the stream and begins again.
async fn resume(client: Client, server: Server, counters: Arc<Counters>) {
    while !counters.is_stopped() {
        let response = listen(&client, &server, Some(BEGINNING)).await;
        counters.count(&response, &counters.resumed);
        if let Ok(mut stream) = response {
            let _ = stream.chunk().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_counted_once_however_the_stream_is_split() {
        let stream = b"event: task\ndata: {\"text\": \"event: gap\"}\n\nevent: gap\ndata: {}\n\nevent: gap and more\n\n";
        for size in [1, 7, stream.len()] {
            let mut gaps = Gaps::default();
            assert_eq!(stream.chunks(size).map(|part| gaps.count(part)).sum::<u64>(), 1, "{size}");
        }
    }
}
