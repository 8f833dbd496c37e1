//! Accepts a limited number of connections, and closes those that send or read too slowly. If there are too many, or if they keep
//! too much in memory, those that wait for their clients are closed first, so that idle and slow clients keep nobody waiting.

mod answered;
mod open;
mod write_timeout;

use std::convert::Infallible;
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
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;
use tracing::{debug, warn};

use answered::Answered;
use open::{Activity, OpenConnections, Place};
use write_timeout::WriteTimeout;

/// The maximum number of open connections. Cloud Run opens far fewer. What holds one for long, such as listeners to events and
/// leases that wait, must leave some of them for other requests: a connection that is not idle is never closed for another one.
pub const MAX_CONNECTIONS: usize = 1_000;

/// What requests and responses may keep in memory, all together, in bytes: requests until they are answered, responses until they
/// were read.
const MAX_KEPT: usize = 64 * 1024 * 1024;

/// What the system keeps of what a client has not read yet, in bytes. By default it would be megabytes for each client, and as it
/// reports progress a third of that at a time, clients that read steadily would seem to have stopped.
const SEND_BUFFER: usize = 128 * 1024;

/// How many clients there may be, and how long one may take to send a request and to read the response.
#[derive(Clone, Copy)]
struct Limits {
    /// The maximum number of open connections.
    connections: usize,
    /// The bytes of requests and responses that all of them keep in memory.
    kept: usize,
    /// For the head of a request, the first one included.
    head: Duration,
    /// For the body of a request.
    body: Duration,
    /// For a part of a response.
    part: Duration,
}

const LIMITS: Limits = Limits {
    connections: MAX_CONNECTIONS,
    kept: MAX_KEPT,
    head: Duration::from_secs(10),
    body: Duration::from_secs(30),
    part: Duration::from_secs(30),
};

const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Resolves when the process must shut down.
type Shutdown = Shared<BoxFuture<'static, ()>>;

/// Accepts connections until `shutdown` resolves, then lets open ones finish.
pub(crate) async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) {
    serve_within(listener, router, shutdown, LIMITS).await;
}

async fn serve_within(listener: TcpListener, router: Router, shutdown: Shutdown, limits: Limits) {
    let (connections, (open, closed)) =
        (OpenConnections::new(limits.connections, limits.kept), watch::channel(()));
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
                bound_send_buffer(&stream);
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
                let mut request = request.map(|body| received(body, limits.body, activity.clone()));
                request.extensions_mut().insert(ConnectInfo(from));
                let response = router.oneshot(request).await?;
                activity.set_busy();
                activity.release(usize::MAX);
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
        let stream = TokioIo::new(WriteTimeout::new(self.stream, limits.part));
        let mut connection = pin!(builder.serve_connection(stream, service));
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

/// Bounds what the system keeps for a client.
fn bound_send_buffer(stream: &TcpStream) {
    if let Err(error) = SockRef::from(stream).set_send_buffer_size(SEND_BUFFER) {
        debug!("The send buffer of a connection has no bound: {error}");
    }
}

/// The body of a request, with a timeout for all of it, which a trickle of bytes does not extend. What arrives counts as kept in
/// memory.
fn received(body: Incoming, timeout: Duration, activity: Arc<Activity>) -> Body {
    let body = Body::new(body);
    if body.is_end_stream() {
        activity.set_busy();
        return body;
    }
    activity.set_receiving();
    let timeout = Box::pin(tokio::time::timeout(timeout, future::pending::<()>()));
    let chunks = stream::unfold(Some((body.into_data_stream(), timeout, activity)), |state| async move {
        let (mut chunks, mut timeout, activity) = state?;
        tokio::select! {
            biased;
            _ = &mut timeout => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), None)),
            chunk = chunks.next() => match chunk {
                Some(chunk) => {
                    activity.keep(chunk.as_ref().map_or(0, |chunk| chunk.len()));
                    Some((chunk.map_err(io::Error::other), Some((chunks, timeout, activity))))
                }
                None => {
                    activity.set_busy();
                    None
                }
            },
        }
    });
    Body::from_stream(chunks)
}

#[cfg(test)]
mod tests;
