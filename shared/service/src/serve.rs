//! Serving on a port until asked to stop, and the `main` that every function shares.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::{App, Config, init_telemetry};

/// The platform kills ten seconds after it asked: requests under way get this long.
const GRACE: Duration = Duration::from_secs(8);

/// Resolves when the process is asked to stop.
pub type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

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

/// Serves until `stop` resolves, then lets requests under way finish, for eight seconds at most.
pub async fn serve(listener: TcpListener, router: Router, stop: Stop) -> std::io::Result<()> {
    let (asked, wait) = tokio::sync::oneshot::channel::<()>();
    let graceful = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.await;
        let _ = asked.send(());
    });
    let deadline = async move {
        match wait.await {
            Ok(()) => drop(tokio::time::timeout(GRACE, std::future::pending::<()>()).await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        served = graceful => served,
        () = deadline => Ok(()),
    }
}

/// Reads the configuration, connects, serves `$PORT`. With `--check` it only checks the configuration.
pub fn main<F>(name: &str, router: impl FnOnce(Config, App) -> F) -> ExitCode
where
    F: Future<Output = Result<Router, crate::app::StartError>>,
{
    init_telemetry();
    let config = match Config::from_env(|variable| std::env::var(variable).ok()) {
        Ok(config) => config,
        Err(problems) => {
            eprintln!("{name}: the configuration is not usable:\n{problems}");
            return ExitCode::from(2);
        }
    };
    if std::env::args().any(|argument| argument == "--check") {
        println!("{name}: the configuration is usable");
        return ExitCode::SUCCESS;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    match runtime.block_on(run(name, config, router)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run<F>(
    name: &str,
    config: Config,
    router: impl FnOnce(Config, App) -> F,
) -> Result<(), Box<dyn std::error::Error>>
where
    F: Future<Output = Result<Router, crate::app::StartError>>,
{
    let stop = until_asked_to_stop();
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], config.port))).await?;
    let app = App::connect(&config).await?;
    let router = router(config, app).await?;
    tracing::info!("{name} listens on {}", listener.local_addr()?);
    Ok(serve(listener, router, stop).await?)
}
