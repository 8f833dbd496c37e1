use axum::routing::{get, post};
use futures::future;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// The time after which an event counts as never happening.
const DEADLINE: Duration = Duration::from_secs(120);

async fn within_deadline<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, event).await.expect(what)
}

struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(head: Duration) -> Self {
        Self::within(Limits { connections: MAX_CONNECTIONS, head, body: DEADLINE }).await
    }

    async fn within(limits: Limits) -> Self {
        let origin = |ConnectInfo(from): ConnectInfo<SocketAddr>| async move { from.ip().to_string() };
        let echo = |body: Body| async move { crate::read_body(body, 10).await.map(|_| "read") };
        let drain = |body: Body| async move { crate::read_body(body, usize::MAX).await.map(|_| "read") };
        let router =
            Router::new().route("/", get(origin)).route("/echo", post(echo)).route("/drain", post(drain));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move { drop(stopped.await) }.boxed().shared();
        let serving = tokio::spawn(serve_within(listener, router, shutdown, limits));
        Self { address, stop: Some(stop), serving }
    }

    /// Sends a text, and reads until the server closes the connection.
    async fn send(&self, text: &str) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // The server does not read the rest of a request that it rejects.
        let _ = socket.write_all(text.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = within_deadline("the server closes the connection", socket.read_to_end(&mut answer)).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Waits until a request is served. On a busy machine one may run into a short timeout.
    async fn is_up(&self) {
        let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        testkit::eventually("the server answers", async || {
            self.send(request).await.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_request_with_an_endless_head_times_out() {
    // Long enough that a request sent at once is read in time on a busy machine.
    let server = Server::start(Duration::from_secs(1)).await;
    for beginning in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-More: "] {
        server.send(beginning).await;
    }
    let slow = future::join_all((0..200).map(|_| server.send("GET / HTTP/1.1\r\nX: ")));
    tokio::join!(slow, server.is_up());
}

#[tokio::test]
async fn a_request_with_an_endless_body_times_out_and_others_are_served() {
    let server = Server::within(Limits {
        connections: MAX_CONNECTIONS,
        head: DEADLINE,
        body: Duration::from_millis(200),
    })
    .await;
    let sized = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx";
    let chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
    for beginning in [sized, chunked] {
        let answer = server.send(beginning).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("timed out"), "{answer}");
    }
    let slow = future::join_all((0..200).map(|_| server.send(chunked)));
    tokio::join!(slow, server.is_up());
}

#[tokio::test]
async fn a_trickle_of_bytes_does_not_extend_the_timeout() {
    let server = Server::within(Limits {
        connections: MAX_CONNECTIONS,
        head: DEADLINE,
        body: Duration::from_millis(200),
    })
    .await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = b"POST /drain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write_all(head).await.unwrap();
    let (mut answers, mut sending) = socket.into_split();
    let drip = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while sending.write_all(b"1\r\nx\r\n").await.is_ok() {
            ticks.tick().await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = drip => {}
        _ = within_deadline("it is cut off", answers.read_to_end(&mut answer)) => {}
    }
    server.is_up().await;
}

#[tokio::test]
async fn a_flood_of_headers_is_refused_and_others_are_served() {
    let server = Server::start(DEADLINE).await;
    let many = "X-Flood: 1\r\n".repeat(MAX_HEADERS + 1);
    let large = format!("X-Flood: {}\r\n", "x".repeat(2 * MAX_HEAD_BYTES));
    for flood in [many, large] {
        let answer = server.send(&format!("GET / HTTP/1.1\r\nHost: x\r\n{flood}\r\n")).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
        server.is_up().await;
    }
}

#[tokio::test]
async fn malformed_requests_are_rejected() {
    let server = Server::start(DEADLINE).await;
    for nonsense in
        ["\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\u{1} HTTP/1.1\r\nHost: x\r\n\r\n", "x\r\n\r\n"]
    {
        let answer = server.send(nonsense).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{nonsense:?}: {answer}");
    }
    let both = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n";
    let answer = server.send(both).await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "one request gets one response: {answer}");
    server.is_up().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_rejected() {
    let server = Server::start(DEADLINE).await;
    let body = "x".repeat(11);
    let request = format!(
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(server.send(&request).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn forwarding_headers_do_not_change_the_client_address() {
    let server = Server::start(DEADLINE).await;
    let claims = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.7\r\nForwarded: for=203.0.113.7\r\n\r\n";
    assert!(server.send(claims).await.ends_with("127.0.0.1"));
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_idle_connections() {
    let mut server = Server::start(10 * DEADLINE).await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    server.is_up().await;
    server.stop.take().unwrap().send(()).unwrap();
    within_deadline("it stops", server.serving).await.unwrap();
    drop(idle);
}

#[tokio::test]
async fn idle_connections_beyond_the_limit_keep_nobody_waiting() {
    let server = Server::within(Limits { connections: 20, head: DEADLINE, body: DEADLINE }).await;
    let unfinished = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx";
    let mut idle = Vec::new();
    for number in 0..110 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        // Silent clients, clients in the middle of a head, and clients in the middle of a body.
        let beginning = ["", "GET / HT", unfinished][number % 3];
        socket.write_all(beginning.as_bytes()).await.unwrap();
        idle.push(socket);
    }
    within_deadline("a request is served beside idle clients", server.is_up()).await;
    let open = idle.len();
    let closed = within_deadline("the idlest clients are closed", async {
        let mut rest = Vec::new();
        // A reset is an end, too.
        let _ = idle[0].read_to_end(&mut rest).await;
        rest
    });
    assert!(closed.await.is_empty() && open > 20);
}
