//! Connections: as many as there is room for, and none that only pretends to ask something.

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

/// So many connections are open at once; one more waits until there is room. Cloud Run sends far fewer.
const MOST: usize = 1_000;

/// How long whoever asks something may take to do so.
#[derive(Clone, Copy)]
struct Patience {
    /// Whoever has not sent the head of a request by then is cut off, and so is whoever sends none.
    head: Duration,
    /// Whoever has not sent all of its body by then is read no further.
    body: Duration,
}

const PATIENCE: Patience = Patience { head: Duration::from_secs(30), body: Duration::from_secs(30) };

/// No request has more headers, and no head is larger, in bytes.
const MOST_HEADERS: usize = 100;
const LARGEST_HEAD: usize = 64 * 1024;

/// Resolves when the process is asked to stop.
type Asked = Shared<BoxFuture<'static, ()>>;

/// Accepts connections until `asked` resolves, then lets those that are open finish what they do.
pub(crate) async fn serve(listener: TcpListener, router: Router, asked: Asked) {
    serve_patiently(listener, router, asked, PATIENCE).await;
}

async fn serve_patiently(listener: TcpListener, router: Router, asked: Asked, patience: Patience) {
    let (room, (open, closed)) = (Arc::new(Semaphore::new(MOST)), watch::channel(()));
    loop {
        let accepted = async {
            let place = room.clone().acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let (accepted, place) = tokio::select! {
            () = asked.clone() => break,
            Some(accepted) = accepted => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let connection = Connection { stream, from, asked: asked.clone(), patience, _place: place };
                let (router, closed) = (router.clone(), closed.clone());
                tokio::spawn(async move {
                    connection.serve(router).await;
                    drop(closed);
                });
            }
            // Whoever asked was gone before it was accepted, or there are too many files open: others come.
            Err(error) => {
                warn!("A connection was not accepted: {error}");
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
    asked: Asked,
    patience: Patience,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(self, router: Router) {
        let (from, patience) = (self.from, self.patience);
        let service = router.map_request(move |request: Request<Incoming>| {
            let mut request = request.map(|body| in_time(body, patience.body));
            request.extensions_mut().insert(ConnectInfo(from));
            request
        });
        // Whoever is to say first which version it speaks could take its time with that.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(patience.head)
            .max_headers(MOST_HEADERS)
            .max_buf_size(LARGEST_HEAD);
        let service = TowerToHyperService::new(service);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(self.stream), service));
        let mut asked = pin!(self.asked.fuse());
        loop {
            tokio::select! {
                served = connection.as_mut() => {
                    if let Err(error) = served {
                        debug!("A connection of {from} ended: {error}");
                    }
                    return;
                }
                () = &mut asked => connection.as_mut().graceful_shutdown(),
            }
        }
    }
}

/// The body, which breaks off where it takes too long: whoever sends a byte now and then holds nobody up for ever.
fn in_time(body: Incoming, within: Duration) -> Body {
    let body = Body::new(body);
    if body.is_end_stream() {
        return body;
    }
    let late = Box::pin(tokio::time::timeout(within, future::pending::<()>()));
    let chunks = stream::unfold(Some((body.into_data_stream(), late)), |sent| async move {
        let (mut chunks, mut late) = sent?;
        tokio::select! {
            biased;
            _ = &mut late => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), None)),
            chunk = chunks.next() => Some((chunk?.map_err(io::Error::other), Some((chunks, late)))),
        }
    });
    Body::from_stream(chunks)
}

#[cfg(test)]
mod tests;
