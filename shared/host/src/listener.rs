//! Accepts a limited number of connections, and closes those that send too slowly. If there are too many, those that wait
//! for their clients are closed first, so that idle clients keep nobody waiting.

mod open;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request};
use futures::future::{self, BoxFuture, FutureExt, Shared};
use futures::{StreamExt, stream};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;
use tracing::{debug, warn};

use open::{Answered, OpenConnections, Place};

/// The maximum number of open connections. Cloud Run opens far fewer.
const MAX_CONNECTIONS: usize = 1_000;

/// How many clients there may be, and how long one may take to send a request.
#[derive(Clone, Copy)]
struct Limits {
    /// The maximum number of open connections.
    connections: usize,
    /// For the head of a request, the first one included.
    head: Duration,
    /// For the body of a request.
    body: Duration,
}

const LIMITS: Limits =
    Limits { connections: MAX_CONNECTIONS, head: Duration::from_secs(10), body: Duration::from_secs(30) };

const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Resolves when the process must shut down.
type Shutdown = Shared<BoxFuture<'static, ()>>;

/// Accepts connections until `shutdown` resolves, then lets open ones finish.
pub(crate) async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) {
    serve_within(listener, router, shutdown, LIMITS).await;
}

async fn serve_within(listener: TcpListener, router: Router, shutdown: Shutdown, limits: Limits) {
    let (connections, (open, closed)) = (OpenConnections::new(limits.connections), watch::channel(()));
    loop {
        let accepted = async {
            let accepted = listener.accept().await?;
            Ok::<_, io::Error>((accepted, connections.place().await))
        };
        let accepted = tokio::select! {
            () = shutdown.clone() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok(((stream, from), place)) => {
                let connection = Connection { stream, from, shutdown: shutdown.clone(), limits, place };
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
    limits: Limits,
    place: Place,
}

impl Connection {
    async fn serve(self, router: Router) {
        let (from, limits, activity) = (self.from, self.limits, self.place.activity());
        let service = service_fn(|request: Request<Incoming>| {
            let (router, activity) = (router.clone(), activity.clone());
            async move {
                let received = activity.clone();
                let mut request =
                    request.map(|body| with_timeout(body, limits.body, move || received.set_busy()));
                request.extensions_mut().insert(ConnectInfo(from));
                let response = router.oneshot(request).await?;
                activity.set_busy();
                Ok::<_, Infallible>(response.map(|body| Body::new(Answered::new(body, activity))))
            }
        });
        // Detecting the HTTP version would have no timeout.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
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
                () = self.place.evicted() => {
                    debug!("Closing an idle connection from {from} to make room");
                    return;
                }
                () = &mut shutdown => connection.as_mut().graceful_shutdown(),
            }
        }
    }
}

/// The body, with a timeout for all of it, which a trickle of bytes does not extend. `received` is called at its end.
fn with_timeout(body: Incoming, timeout: Duration, received: impl FnOnce() + Send + 'static) -> Body {
    let body = Body::new(body);
    if body.is_end_stream() {
        received();
        return body;
    }
    let timeout = Box::pin(tokio::time::timeout(timeout, future::pending::<()>()));
    let chunks = stream::unfold(Some((body.into_data_stream(), timeout, received)), |state| async move {
        let (mut chunks, mut timeout, received) = state?;
        tokio::select! {
            biased;
            _ = &mut timeout => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), None)),
            chunk = chunks.next() => match chunk {
                Some(chunk) => {
                    Some((chunk.map_err(io::Error::other), Some((chunks, timeout, received))))
                }
                None => {
                    received();
                    None
                }
            },
        }
    });
    Body::from_stream(chunks)
}

#[cfg(test)]
mod tests;
