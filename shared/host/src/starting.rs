//! Serves from the first moment. Until the database has accepted a connection, everything but liveness returns 503. Once it
//! responds, the process has started, even if the database is not migrated yet.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::future::{self, BoxFuture, FutureExt};
use tokio::sync::oneshot;
use tower::ServiceExt;
use tracing::warn;

use crate::serve::OnShutdown;
use crate::{Problem, Serving};

/// The time between two attempts to connect. An attempt takes up to five seconds itself.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The entrance of a process: closed until it is opened with what the process serves.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Opened>);

#[derive(Default)]
struct Opened {
    database_responded: AtomicBool,
    router: OnceLock<Router>,
    finished: Mutex<Option<oneshot::Sender<BoxFuture<'static, ()>>>>,
    on_shutdown: Mutex<Option<OnShutdown>>,
}

impl Gate {
    /// The service from the start: the routes of the process once the gate is open.
    pub(crate) fn serving(&self) -> Serving {
        let (sender, finished) = oneshot::channel();
        *self.0.finished.lock().expect("no holder panics") = Some(sender);
        let (gate, ending) = (self.clone(), self.clone());
        let router = Router::new().fallback(move |request: Request| gate.clone().respond(request));
        let finished = async move {
            match finished.await {
                Ok(finished) => finished.await,
                Err(_) => future::pending().await,
            }
        };
        let on_shutdown = move |grace| match ending.0.on_shutdown.lock().expect("no holder panics").take() {
            Some(on_shutdown) => on_shutdown(grace),
            None => future::ready(()).boxed(),
        };
        Serving { router, finished: finished.boxed(), on_shutdown: Box::new(on_shutdown) }
    }

    /// Opens the gate: from now on requests are served.
    pub(crate) fn open(&self, serving: Serving) {
        let Serving { router, finished, on_shutdown } = serving;
        *self.0.on_shutdown.lock().expect("no holder panics") = Some(on_shutdown);
        if let Some(sender) = self.0.finished.lock().expect("no holder panics").take() {
            drop(sender.send(finished));
        }
        drop(self.0.router.set(router));
    }

    /// The database accepts connections, but not yet those of this function.
    pub(crate) fn database_responded(&self) {
        self.0.database_responded.store(true, Ordering::Relaxed);
    }

    async fn respond(self, request: Request) -> Response {
        if let Some(router) = self.0.router.get() {
            return router.clone().oneshot(request).await.into_response();
        }
        let responded = self.0.database_responded.load(Ordering::Relaxed);
        let problem = match request.uri().path() {
            "/alive" | "/livez" => return "ok".into_response(),
            "/started" if responded => return "ok".into_response(),
            _ if responded => {
                "the database is not migrated, or its owner role is not granted to this function: run `ebb migrate`"
            }
            _ => "the database has not accepted a connection yet",
        };
        Problem::unavailable(problem).into_response()
    }
}

/// Tries until it succeeds, or until an error is not worth another attempt.
pub(crate) async fn retry<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    mut attempt: impl FnMut() -> F,
    is_temporary: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut pace = tokio::time::interval(RETRY_INTERVAL);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        match attempt().await {
            Err(error) if is_temporary(&error) => warn!("Cannot start yet, trying again: {error}"),
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use axum::body::Body;
    use axum::http::{StatusCode, header};
    use axum::routing::get;

    use super::*;

    async fn seen(router: &Router, path: &str) -> (StatusCode, bool) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        (response.status(), response.headers().contains_key(header::RETRY_AFTER))
    }

    #[tokio::test]
    async fn only_liveness_succeeds_until_the_gate_is_open() {
        let gate = Gate::default();
        let Serving { router, finished, on_shutdown } = gate.serving();
        for path in ["/alive", "/livez"] {
            assert_eq!(seen(&router, path).await, (StatusCode::OK, false), "{path}");
        }
        for path in ["/started", "/readyz", "/push", "/api/v1/runs", "/"] {
            assert_eq!(seen(&router, path).await, (StatusCode::SERVICE_UNAVAILABLE, true), "{path}");
        }
        gate.database_responded();
        assert_eq!(seen(&router, "/started").await, (StatusCode::OK, false));
        assert_eq!(seen(&router, "/push").await, (StatusCode::SERVICE_UNAVAILABLE, true));
        let (ended, end) = oneshot::channel();
        let routes = Router::new().route("/started", get(|| async { "ok" }));
        gate.open(Serving {
            router: routes,
            finished: future::ready(()).boxed(),
            on_shutdown: Box::new(move |grace| {
                ended.send(grace).unwrap();
                future::ready(()).boxed()
            }),
        });
        assert_eq!(seen(&router, "/started").await, (StatusCode::OK, false));
        assert_eq!(seen(&router, "/push").await, (StatusCode::NOT_FOUND, false));
        finished.await;
        on_shutdown(Duration::from_secs(8)).await;
        assert_eq!(end.await, Ok(Duration::from_secs(8)));
    }

    #[tokio::test]
    async fn a_process_that_never_started_has_nothing_to_finish() {
        let serving = Gate::default().serving();
        (serving.on_shutdown)(Duration::from_secs(8)).await;
        assert!(serving.finished.now_or_never().is_none());
    }

    #[tokio::test]
    async fn temporary_errors_are_tried_again_and_others_are_not() {
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            future::ready(if attempts.get() < 3 { Err("away") } else { Ok(attempts.get()) })
        };
        assert_eq!(retry(attempt, |error| *error == "away").await, Ok(3));
        attempts.set(0);
        assert_eq!(retry(attempt, |error| *error != "away").await, Err("away"));
        assert_eq!(attempts.get(), 1);
    }
}
