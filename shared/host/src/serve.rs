//! Serves on a port until asked to stop, and the `main` that every function shares.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use axum::{Extension, Router};
use futures::future::{self, BoxFuture, FutureExt, Shared};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Environment;
use crate::metrics::{self, Exporter};
use crate::{Config, Connected, connections, init_telemetry, observed};

/// The default for how long work in progress may continue after the process was asked to stop. Cloud Run kills the process
/// two seconds later.
pub const GRACE: Duration = Duration::from_secs(8);

/// How long after the grace period the process ends at the latest: time to record unfinished work. The platform may end it
/// sooner.
const LEEWAY: Duration = Duration::from_secs(6);

/// What a process serves, and how it stops.
pub struct Serving {
    /// The routes.
    pub router: Router,
    /// Resolves when the process should end by itself.
    pub ended: BoxFuture<'static, ()>,
    /// Winds down work outside requests, within the grace period.
    pub let_go: Box<dyn FnOnce(Duration) -> BoxFuture<'static, ()> + Send>,
}

impl From<Router> for Serving {
    fn from(router: Router) -> Self {
        let (ended, let_go) = (future::pending().boxed(), Box::new(|_| future::ready(()).boxed()));
        Self { router, ended, let_go }
    }
}

/// Resolves when the process is asked to stop.
pub type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Lets long responses know that the process was asked to stop. Every request carries it as an extension.
#[derive(Clone, Default)]
pub struct Stopping(Option<Shared<BoxFuture<'static, ()>>>);

impl Stopping {
    /// Resolves when the process is asked to stop; never if nothing will ask.
    pub async fn asked(self) {
        match self.0 {
            Some(asked) => asked.await,
            None => future::pending().await,
        }
    }
}

/// Resolves on SIGTERM or SIGINT.
pub fn until_asked_to_stop() -> Stop {
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be listened for");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be listened for");
    Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Serves until `stop` or `ended` resolves, then lets work in progress finish within the grace period.
pub async fn serve(
    listener: TcpListener,
    serving: impl Into<Serving>,
    stop: Stop,
    grace: Duration,
) -> std::io::Result<()> {
    let Serving { router, ended, let_go } = serving.into();
    let asked = async move {
        tokio::select! {
            () = stop => {}
            () = ended => {}
        }
    };
    let asked = asked.boxed().shared();
    let router =
        router.layer(axum::middleware::from_fn(observed)).layer(Extension(Stopping(Some(asked.clone()))));
    let graceful = connections::serve(listener, router, asked.clone());
    let finish = asked.clone();
    let let_go = async move {
        finish.await;
        let_go(grace).await;
    };
    let all = async { tokio::join!(graceful, let_go) };
    let deadline = async {
        asked.await;
        drop(tokio::time::timeout(grace + LEEWAY, future::pending::<()>()).await);
    };
    tokio::select! {
        _ = all => {}
        () = deadline => {}
    }
    Ok(())
}

/// Reads the configuration, connects, serves `$PORT`. With `--check` it only checks the configuration.
pub fn main<F, S>(name: &str, serving: impl FnOnce(Config, Connected) -> F) -> ExitCode
where
    F: Future<Output = Result<S, crate::app::StartError>>,
    S: Into<Serving>,
{
    let environment = Environment::of_process();
    init_telemetry(&environment);
    metrics::init();
    let config = match Config::from_env(&environment) {
        Ok(config) => config,
        Err(problems) => {
            eprintln!("{name}: invalid configuration:\n{problems}");
            return ExitCode::from(2);
        }
    };
    if std::env::args().any(|argument| argument == "--check") {
        println!("{name}: the configuration is valid");
        return ExitCode::SUCCESS;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    match runtime.block_on(run(name, config, serving)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run<F, S>(
    name: &str,
    config: Config,
    serving: impl FnOnce(Config, Connected) -> F,
) -> Result<(), Box<dyn std::error::Error>>
where
    F: Future<Output = Result<S, crate::app::StartError>>,
    S: Into<Serving>,
{
    let stop = until_asked_to_stop();
    let listener = TcpListener::bind(SocketAddr::from((config.host, config.port))).await?;
    let connected = Connected::new(&config).await?;
    let grace = Duration::from_secs(config.grace_seconds.into());
    let exporter = config.otlp_endpoint.as_deref().map(|url| Exporter::new(url, name)).transpose()?;
    let serving = serving(config, connected).await?;
    tracing::info!("{name} is listening on {}", listener.local_addr()?);
    let Some(exporter) = exporter else { return Ok(serve(listener, serving, stop, grace).await?) };
    tokio::select! {
        served = serve(listener, serving, stop, grace) => served?,
        () = exporter.keep_sending() => {}
    }
    exporter.send().await;
    Ok(())
}
