//! Accepts a limited number of connections, and closes those that send too slowly.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request};
use futures::future::{self, BoxFuture, FutureExt, Shared};
use futures::{StreamExt, stream};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;
use tracing::{debug, warn};

/// The maximum number of open connections; further ones wait. Cloud Run opens far fewer connections.
const MAX_CONNECTIONS: usize = 1_000;

/// How long a client may take to send a request.
#[derive(Clone, Copy)]
struct Timeouts {
    /// For the head of a request, the first one included.
    head: Duration,
    /// For the body of a request.
    body: Duration,
}

const TIMEOUTS: Timeouts = Timeouts { head: Duration::from_secs(30), body: Duration::from_secs(30) };

const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Resolves when the process must shut down.
type Shutdown = Shared<BoxFuture<'static, ()>>;

/// Accepts connections until `shutdown` resolves, then lets open ones finish.
pub(crate) async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) {
    serve_with_timeouts(listener, router, shutdown, TIMEOUTS).await;
}

async fn serve_with_timeouts(listener: TcpListener, router: Router, shutdown: Shutdown, timeouts: Timeouts) {
    let (permits, (open, closed)) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), watch::channel(()));
    loop {
        let accepted = async {
            let permit = permits.clone().acquire_owned().await.ok()?;
            Some((listener.accept().await, permit))
        };
        let (accepted, permit) = tokio::select! {
            () = shutdown.clone() => break,
            Some(accepted) = accepted => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let connection =
                    Connection { stream, from, shutdown: shutdown.clone(), timeouts, _permit: permit };
                let (router, closed) = (router.clone(), closed.clone());
                tokio::spawn(async move {
                    connection.serve(router).await;
                    drop(closed);
                });
            }
            // The client has disconnected, or too many files are open.
            Err(error) => {
                warn!("Cannot accept a connection: {error}");
                tokio::task::yield_now().await;
            }
        }
    }
    drop(listener);
    drop(closed);
    open.closed().await;
}

struct Connection {
    stream: TcpStream,
    from: SocketAddr,
    shutdown: Shutdown,
    timeouts: Timeouts,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(self, router: Router) {
        let (from, timeouts) = (self.from, self.timeouts);
        let service = router.map_request(move |request: Request<Incoming>| {
            let mut request = request.map(|body| with_timeout(body, timeouts.body));
            request.extensions_mut().insert(ConnectInfo(from));
            request
        });
        // Detecting the HTTP version would have no timeout.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.head)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
        let service = TowerToHyperService::new(service);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(self.stream), service));
        let mut shutdown = pin!(self.shutdown.fuse());
        loop {
            tokio::select! {
                served = connection.as_mut() => {
                    if let Err(error) = served {
                        debug!("A connection from {from} failed: {error}");
                    }
                    return;
                }
                () = &mut shutdown => connection.as_mut().graceful_shutdown(),
            }
        }
    }
}

/// The body, with a timeout for all of it, which a trickle of bytes does not extend.
fn with_timeout(body: Incoming, timeout: Duration) -> Body {
    let body = Body::new(body);
    if body.is_end_stream() {
        return body;
    }
    let timeout = Box::pin(tokio::time::timeout(timeout, future::pending::<()>()));
    let chunks = stream::unfold(Some((body.into_data_stream(), timeout)), |state| async move {
        let (mut chunks, mut timeout) = state?;
        tokio::select! {
            biased;
            _ = &mut timeout => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), None)),
            chunk = chunks.next() => Some((chunk?.map_err(io::Error::other), Some((chunks, timeout)))),
        }
    });
    Body::from_stream(chunks)
}

#[cfg(test)]
mod tests;
