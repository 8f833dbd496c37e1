//! The requests of an `ebb worker` that has nothing to do, counted on their way to the server.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::processes::http_client;
use crate::workflows::LEASED_QUEUE;
use crate::world::Bench;

/// The leases between whose beginnings requests are counted: the worker's first, which also registers it, and two later.
const LEASES: usize = 3;

/// A request on its way to the server.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    is_lease: bool,
}

/// Forwards requests to a server, and notes each.
#[derive(Clone)]
struct Counter {
    url: String,
    client: reqwest::Client,
    seen: Arc<watch::Sender<Vec<Seen>>>,
}

/// A process that is killed on drop.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The requests of an idle worker per minute, over two leases.
pub(super) async fn measure(bench: &Bench) -> Result<f64> {
    let world = bench.world().await?;
    let seen = Arc::new(watch::Sender::new(Vec::new()));
    let counter = Counter { url: world.server().url.clone(), client: http_client()?, seen: seen.clone() };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(forward).with_state(counter);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let worker = start(&address, &world.server().token)?;
    let mut seen = seen.subscribe();
    let all = seen.wait_for(|seen| leases(seen).count() >= LEASES).await?.clone();
    drop(worker);
    world.close().await?;
    let (Some(first), Some(last)) = (leases(&all).next(), leases(&all).nth(LEASES - 1)) else {
        return Ok(0.0);
    };
    let requests = all.iter().filter(|seen| seen.at < last).count();
    Ok(requests as f64 / ((last - first).as_secs_f64() / 60.0))
}

/// When each lease began.
fn leases(seen: &[Seen]) -> impl Iterator<Item = Instant> {
    seen.iter().filter(|seen| seen.is_lease).map(|seen| seen.at)
}

fn start(url: &str, token: &str) -> Result<Worker> {
    let process = Command::new(std::env::current_exe()?)
        .args(["worker", "--queue", LEASED_QUEUE, "--drain-above", "100"])
        .envs([("EBB_URL", url), ("EBB_TOKEN", token), ("RUST_LOG", "error")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Ok(Worker(process.context("cannot start a worker")?))
}

async fn forward(
    State(counter): State<Counter>,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(HeaderName, &'static str); 1], Bytes) {
    let seen = Seen { at: Instant::now(), is_lease: uri.path().ends_with("/lease") };
    counter.seen.send_modify(|all| all.push(seen));
    headers.remove(header::HOST);
    let request = counter.client.post(format!("{}{uri}", counter.url)).headers(headers).body(body);
    let json = [(header::CONTENT_TYPE, "application/json")];
    let Ok(response) = request.send().await else { return (StatusCode::BAD_GATEWAY, json, Bytes::new()) };
    (response.status(), json, response.bytes().await.unwrap_or_default())
}
