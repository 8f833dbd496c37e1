//! Serves on a port until shutdown, and the `main` of every function.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn;
use axum::{Extension, Router};
use futures::future::{self, BoxFuture, FutureExt, Shared};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::StartError;
use crate::config::Environment;
use crate::metrics::{self, Exporter};
use crate::starting::Gate;
use crate::{Config, Connected, follow_log_filter, init_telemetry, limit_arenas, listener, observe_request};

/// How long work in progress may continue after SIGTERM, by default. Cloud Run kills the process two seconds later.
pub const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(8);

/// How long the process may take after the grace period, to record unfinished work. The platform may kill it sooner.
const SHUTDOWN_LEEWAY: Duration = Duration::from_secs(6);

/// The routes of a process, and how it shuts down.
pub struct Serving {
    /// The routes to serve.
    pub router: Router,
    /// Resolves when the process should shut down by itself.
    pub finished: BoxFuture<'static, ()>,
    /// Finishes work outside requests, within the grace period.
    pub on_shutdown: OnShutdown,
}

/// Finishes work within the given time.
pub type OnShutdown = Box<dyn FnOnce(Duration) -> BoxFuture<'static, ()> + Send>;

impl From<Router> for Serving {
    fn from(router: Router) -> Self {
        let (finished, on_shutdown) = (future::pending().boxed(), Box::new(|_| future::ready(()).boxed()));
        Self { router, finished, on_shutdown }
    }
}

/// Resolves when the process must shut down.
pub type ShutdownSignal = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Signals long responses to end. Every request carries it as an extension.
#[derive(Clone, Default)]
pub struct ShutdownNotice {
    shutdown: Option<Shared<BoxFuture<'static, ()>>>,
    request_limit: Option<Duration>,
}

impl ShutdownNotice {
    /// Resolves at shutdown, and before the platform ends the request; never in a process without either.
    pub async fn received(self) {
        let shutdown = self.shutdown.map_or_else(|| future::pending().boxed(), FutureExt::boxed);
        match self.request_limit {
            Some(limit) => drop(tokio::time::timeout(limit, shutdown).await),
            None => shutdown.await,
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
    let serving = observed(serving.into());
    serve_unobserved(listener, serving, signal, (grace, None)).await
}

fn observed(serving: Serving) -> Serving {
    Serving { router: serving.router.layer(from_fn(observe_request)), ..serving }
}

async fn serve_unobserved(
    listener: TcpListener,
    serving: Serving,
    signal: ShutdownSignal,
    (grace, request_limit): (Duration, Option<Duration>),
) -> std::io::Result<()> {
    let Serving { router, finished, on_shutdown } = serving;
    let shutdown = async move {
        tokio::select! {
            () = signal => {}
            () = finished => {}
        }
    };
    let shutdown = shutdown.boxed().shared();
    let notice = Extension(ShutdownNotice { shutdown: Some(shutdown.clone()), request_limit });
    let requests = listener::serve(listener, router.layer(notice), shutdown.clone());
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

/// Reads the configuration, serves `$PORT` and connects, in this order. With `--check` it only checks the configuration.
pub fn main<F, S>(name: &str, serving: impl FnOnce(Config, Connected) -> F) -> ExitCode
where
    F: Future<Output = Result<S, StartError>>,
    S: Into<Serving>,
{
    limit_arenas();
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
    F: Future<Output = Result<S, StartError>>,
    S: Into<Serving>,
{
    let signal = shutdown_signal();
    let listener = TcpListener::bind(SocketAddr::from((config.host, config.port))).await?;
    let address = listener.local_addr()?;
    let grace = Duration::from_secs(config.grace_seconds.into());
    let exporter = config.otlp.as_ref().map(|otlp| Exporter::new(otlp, name)).transpose()?.map(Arc::new);
    let gate = Gate::default();
    let limits = (grace, config.request_limit());
    let mut serving_all = gate.serving();
    // A platform that limits requests takes the CPU away between them.
    if let Some(exporter) = exporter.clone().filter(|_| config.request_seconds.is_some()) {
        let flush = from_fn(move |request, next| exporter.clone().before_response(request, next));
        serving_all.router = serving_all.router.layer(flush);
    }
    let served = serve_unobserved(listener, serving_all, signal, limits);
    let work = async {
        let mut served = pin!(served);
        let start = async {
            let (connected, login) = Connected::when_available(&config, &gate).await?;
            let accounts = connected.accounts.clone();
            let serving: Serving = serving(config, connected).await?.into();
            let router = follow_log_filter(serving.router, &accounts, name);
            let router = match login {
                Some(login) => login.renewed_for(router),
                None => router,
            };
            gate.open(observed(Serving { router, ..serving }));
            tracing::info!("{name} is listening on {address}");
            Ok::<_, StartError>(())
        };
        tokio::select! {
            started = start => started?,
            stopped = &mut served => return Ok(stopped?),
        }
        Ok::<_, Box<dyn std::error::Error>>(served.await?)
    };
    let Some(exporter) = exporter else { return work.await };
    tokio::select! {
        worked = work => worked?,
        () = exporter.keep_sending() => {}
    }
    exporter.send().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_responses_end_before_the_platform_ends_the_request() {
        let limited = ShutdownNotice { shutdown: None, request_limit: Some(Duration::from_millis(1)) };
        limited.received().await;
        let stopping = future::ready(()).boxed().shared();
        let stopped = ShutdownNotice { shutdown: Some(stopping), request_limit: Some(Duration::MAX) };
        stopped.received().await;
        assert!(ShutdownNotice::default().received().now_or_never().is_none());
    }
}
