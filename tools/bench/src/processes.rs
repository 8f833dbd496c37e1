//! The functions as they are deployed: several processes of each, behind a balancer.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use auth::Issuer;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use bus::local::{Broker, Faults};
use bus::{Endpoint, Subscription, SystemClock};
use model::{Clock, Topic};
use serde_json::json;
use tokio::net::TcpSocket;

use ebb::client::Server;

const ISSUER: &str = "https://bench.ebbflow.local";
const PUSHER: &str = "pusher@ebbflow.local";
const PUSH_AUDIENCE: &str = "ebbflow-push";
const API_AUDIENCE: &str = "ebbflow-api";
const ADMIN: &str = "admin@ebbflow.local";

/// A process that is not ready by then never will be.
const READY_TIMEOUT: Duration = Duration::from_secs(300);

/// The functions, and the topic that is pushed to each.
fn functions() -> [(&'static str, Topic); 4] {
    [
        ("trigger", Topic::Triggers),
        ("evaluate", Topic::Evaluations),
        ("execute", Topic::Work("light".into())),
        ("sweep", Topic::Management),
    ]
}

/// How long a sweep may take to respond: it waits for timers that are due soon.
const SWEEP_ACK_DEADLINE: Duration = Duration::from_secs(90);

/// A variable of the environment, and its value.
pub(crate) type Setting = (&'static str, &'static str);

/// A process of a function, killed on drop.
pub(crate) struct Function {
    name: &'static str,
    url: String,
    command: Command,
    process: Child,
    /// Bound and not listening, so that no other process is given its port.
    _port: TcpSocket,
    /// From its start until it was ready.
    pub(crate) took: Duration,
}

impl Function {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the process with SIGKILL and starts another one at the same address.
    pub(crate) fn replace(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        self.process = self.command.spawn().with_context(|| format!("cannot restart {}", self.name))?;
        Ok(())
    }

    async fn start(name: &'static str, database: &str, host: &str, settings: &[Setting]) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let port = socket.local_addr()?.port();
        let started = Instant::now();
        // As in the image, one program contains all functions.
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", name])
            .env("PORT", port.to_string())
            .env("EBB_HOST", "127.0.0.1")
            .env("DATABASE_URL", database)
            .env("EBB_BROKER_URL", host)
            .env("EBB_PUSH_AUTH", "oidc")
            .env("EBB_USER_CODE", "allow")
            .env("EBB_PUSH_AUDIENCE", PUSH_AUDIENCE)
            .env("EBB_PUSH_ACCOUNT", PUSHER)
            .env("EBB_PUSH_ISSUER", ISSUER)
            .env("EBB_PUSH_KEYS_URL", format!("{host}/keys"))
            .env("EBB_API_AUDIENCE", API_AUDIENCE)
            .env("EBB_API_ACCOUNTS", ADMIN)
            .env("EBB_RATE_CALLER", "0")
            .env("EBB_RATE_TENANT", "0")
            .env("EBB_API_ISSUER", ISSUER)
            .env("EBB_API_KEYS_URL", format!("{host}/keys"))
            .env("RUST_LOG", "error")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let url = format!("http://127.0.0.1:{port}");
        let mut function = Self { name, url, command, process, _port: socket, took: READY_TIMEOUT };
        function.wait(started).await?;
        function.took = started.elapsed();
        Ok(function)
    }

    async fn wait(&self, started: Instant) -> Result<()> {
        let (client, ready) = (http_client()?, format!("{}/readyz", self.url));
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        while !client.get(&ready).send().await.is_ok_and(|response| response.status().is_success()) {
            if started.elapsed() > READY_TIMEOUT {
                bail!("{} is not ready after {} s", self.name, READY_TIMEOUT.as_secs());
            }
            ticks.tick().await;
        }
        Ok(())
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Several processes of each function, on one database and one bus.
pub(crate) struct Processes {
    pub(crate) broker: Broker,
    issuer: Arc<Issuer>,
    functions: Vec<Function>,
}

impl Processes {
    /// Starts `instances` of each function, with these settings beside the usual ones.
    pub(crate) async fn start(database: &str, instances: usize, settings: &[Setting]) -> Result<Self> {
        let issuer = Arc::new(Issuer::generate(ISSUER));
        let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, Faults::default());
        let host = serve(broker.clone(), &issuer).await?;
        let mut processes = Self { broker, issuer, functions: Vec::new() };
        for (name, topic) in functions() {
            for _ in 0..instances {
                processes.functions.push(Function::start(name, database, &host, settings).await?);
            }
            processes.subscribe(name, &topic)?;
        }
        Ok(processes)
    }

    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub(crate) fn functions_mut(&mut self) -> &mut [Function] {
        &mut self.functions
    }

    /// What the platform's scheduler does: it asks a sweep to look for what is due.
    pub(crate) fn ticker(&self) -> Result<Ticker> {
        let balancer = self.balancer("sweep")?;
        Ok(Ticker { issuer: self.issuer.clone(), balancer })
    }

    /// The servers of the API, with a token.
    pub(crate) fn servers(&self) -> Vec<Server> {
        let now = SystemClock.now().timestamp();
        let token = self.issuer.sign(&json!({
            "iss": ISSUER, "sub": "admin", "aud": API_AUDIENCE, "email": ADMIN, "email_verified": true,
            "iat": now, "exp": now + 24 * 60 * 60,
        }));
        self.urls("trigger")
            .into_iter()
            .map(|url| Server { url, token: token.clone(), tenant: None })
            .collect()
    }

    fn urls(&self, function: &str) -> Vec<String> {
        self.functions.iter().filter(|it| it.name == function).map(|it| it.url.clone()).collect()
    }

    fn balancer(&self, name: &str) -> Result<Balancer> {
        Ok(Balancer { urls: self.urls(name).into(), turn: Arc::default(), client: http_client()? })
    }

    fn subscribe(&self, name: &str, topic: &Topic) -> Result<()> {
        let router = Router::new().route("/push", post(forward)).with_state(self.balancer(name)?);
        let endpoint = Endpoint::Router(router, "/push".into());
        let defaults = Subscription::new(name, endpoint, PUSH_AUDIENCE);
        let ack_deadline = if name == "sweep" { SWEEP_ACK_DEADLINE } else { defaults.ack_deadline };
        self.broker.subscribe(topic, Subscription { ack_deadline, ..defaults });
        Ok(())
    }
}

/// Serves the broker and the keys of its tokens to the processes.
async fn serve(broker: Broker, issuer: &Issuer) -> Result<String> {
    let keys = issuer.jwks();
    let host = bus::broker_http::router(broker).route("/keys", get(|| async { axum::Json(keys) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, host).await });
    Ok(address)
}

/// A client for servers on this machine, which a proxy could not reach.
pub(crate) fn http_client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().build()
}

/// Forwards pushes to several processes in turn, as a platform's load balancer does.
#[derive(Clone)]
struct Balancer {
    urls: Arc<[String]>,
    turn: Arc<AtomicUsize>,
    client: reqwest::Client,
}

impl Balancer {
    /// The address of the next process.
    fn next(&self) -> &str {
        &self.urls[self.turn.fetch_add(1, Ordering::Relaxed) % self.urls.len()]
    }
}

/// Calls the sweep, as the scheduler does.
pub(crate) struct Ticker {
    issuer: Arc<Issuer>,
    balancer: Balancer,
}

impl Ticker {
    /// Sends a tick and does not wait for the response. One that is lost with its process is followed by the next.
    pub(crate) fn tick(&self) {
        let now = SystemClock.now().timestamp();
        let token = self.issuer.sign(&json!({
            "iss": ISSUER, "sub": "scheduler", "aud": PUSH_AUDIENCE, "email": PUSHER, "email_verified": true,
            "iat": now, "exp": now + 60,
        }));
        let tick = self.balancer.client.post(format!("{}/sweep", self.balancer.next())).bearer_auth(token);
        tokio::spawn(tick.send());
    }
}

async fn forward(State(balancer): State<Balancer>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let push = balancer.client.post(format!("{}/push", balancer.next())).headers(headers).body(body);
    push.send().await.map_or(StatusCode::BAD_GATEWAY, |response| response.status())
}
