//! Serves on a port until shutdown, and the `main` of every function.

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
use crate::{Config, Connected, init_telemetry, listener, observe_request};

/// How long work in progress may continue after SIGTERM, by default. Cloud Run kills the process two seconds later.
pub const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(8);

/// How long the process may take after the grace period, to record unfinished work. The platform may kill it sooner.
const SHUTDOWN_LEEWAY: Duration = Duration::from_secs(6);

/// What a process serves, and how it shuts down.
pub struct Serving {
    /// The routes to serve.
    pub router: Router,
    /// Resolves when the process should shut down by itself.
    pub finished: BoxFuture<'static, ()>,
    /// Finishes work outside requests, within the grace period.
    pub on_shutdown: Box<dyn FnOnce(Duration) -> BoxFuture<'static, ()> + Send>,
}

impl From<Router> for Serving {
    fn from(router: Router) -> Self {
        let (finished, on_shutdown) = (future::pending().boxed(), Box::new(|_| future::ready(()).boxed()));
        Self { router, finished, on_shutdown }
    }
}

/// Resolves when the process must shut down.
pub type ShutdownSignal = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells long responses about a shutdown. Every request carries it as an extension.
#[derive(Clone, Default)]
pub struct ShutdownNotice(Option<Shared<BoxFuture<'static, ()>>>);

impl ShutdownNotice {
    /// Resolves at shutdown; never in a process without a shutdown signal.
    pub async fn received(self) {
        match self.0 {
            Some(shutdown) => shutdown.await,
            None => future::pending().await,
        }
    }
}

/// Resolves on SIGTERM or SIGINT.
pub fn shutdown_signal() -> ShutdownSignal {
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be listened for");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be listened for");
    Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Serves until `signal` or `finished` resolves, then lets work in progress finish within the grace period.
pub async fn serve(
    listener: TcpListener,
    serving: impl Into<Serving>,
    signal: ShutdownSignal,
    grace: Duration,
) -> std::io::Result<()> {
    let Serving { router, finished, on_shutdown } = serving.into();
    let shutdown = async move {
        tokio::select! {
            () = signal => {}
            () = finished => {}
        }
    };
    let shutdown = shutdown.boxed().shared();
    let notice = Extension(ShutdownNotice(Some(shutdown.clone())));
    let router = router.layer(axum::middleware::from_fn(observe_request)).layer(notice);
    let requests = listener::serve(listener, router, shutdown.clone());
    let begun = shutdown.clone();
    let on_shutdown = async move {
        begun.await;
        on_shutdown(grace).await;
    };
    let all = async { tokio::join!(requests, on_shutdown) };
    let deadline = async {
        shutdown.await;
        drop(tokio::time::timeout(grace + SHUTDOWN_LEEWAY, future::pending::<()>()).await);
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
    let signal = shutdown_signal();
    let listener = TcpListener::bind(SocketAddr::from((config.host, config.port))).await?;
    let connected = Connected::new(&config).await?;
    let grace = Duration::from_secs(config.grace_seconds.into());
    let exporter = config.otlp_endpoint.as_deref().map(|url| Exporter::new(url, name)).transpose()?;
    let serving = serving(config, connected).await?;
    tracing::info!("{name} is listening on {}", listener.local_addr()?);
    let Some(exporter) = exporter else { return Ok(serve(listener, serving, signal, grace).await?) };
    tokio::select! {
        served = serve(listener, serving, signal, grace) => served?,
        () = exporter.keep_sending() => {}
    }
    exporter.send().await;
    Ok(())
}
