use std::sync::LazyLock;

use axum::body::Bytes;
use axum::routing::{get, post};
use futures::future;
use testkit::{DEADLINE, within_deadline};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// Limits that no client of a test reaches.
const LENIENT: Limits =
    Limits { connections: MAX_CONNECTIONS, kept: MAX_KEPT, head: DEADLINE, body: DEADLINE, part: DEADLINE };

struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(head: Duration) -> Self {
        Self::within(Limits { head, ..LENIENT }).await
    }

    async fn within(limits: Limits) -> Self {
        let origin = |ConnectInfo(from): ConnectInfo<SocketAddr>| async move { from.ip().to_string() };
        let echo = |body: Body| async move { crate::read_body(body, 10).await.map(|_| "read") };
        let drain = |body: Body| async move { crate::read_body(body, usize::MAX).await.map(|_| "read") };
        let router = Router::new().route("/", get(origin)).route("/echo", post(echo));
        let router =
            router.route("/drain", post(drain)).route("/endless", get(endless)).route("/large", get(large));
        let router = router.route("/quiet", get(quiet));
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
    let server = Server::within(Limits { body: Duration::from_millis(200), ..LENIENT }).await;
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
    let server = Server::within(Limits { body: Duration::from_millis(200), ..LENIENT }).await;
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
    let server = Server::within(Limits { connections: 20, ..LENIENT }).await;
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

/// A stream of events in which nothing happens after the first one.
async fn quiet() -> Body {
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"hello"))]);
    Body::from_stream(first.chain(stream::pending()))
}

#[tokio::test]
async fn streams_below_the_limit_leave_a_connection_for_every_other_request() {
    let server = Server::within(Limits { connections: 20, ..LENIENT }).await;
    let mut streams = Vec::new();
    for _ in 0..19 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(b"GET /quiet HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let begun = async {
            while !answer.ends_with(b"hello\r\n") {
                answer.push(socket.read_u8().await.unwrap());
            }
        };
        within_deadline("the stream begins", begun).await;
        streams.push(socket);
    }
    // Each of these keeps its connection open after its response, and the next one needs its place.
    let mut idle = Vec::new();
    for _ in 0..10 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut status = [0; 12];
        let served = socket.read_exact(&mut status);
        within_deadline("a request is served beside streams", served).await.unwrap();
        idle.push(socket);
    }
    for socket in &mut streams {
        let none = socket.read_u8().now_or_never();
        assert!(none.is_none(), "no stream is closed for it");
    }
}

/// How many responses without an end are over.
static GIVEN_UP: LazyLock<watch::Sender<u32>> = LazyLock::new(|| watch::Sender::new(0));

struct Endless;

impl Drop for Endless {
    fn drop(&mut self) {
        GIVEN_UP.send_modify(|count| *count += 1);
    }
}

/// A response without an end.
async fn endless() -> Body {
    let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
    Body::from_stream(stream::unfold(Endless, move |endless| {
        let chunk = chunk.clone();
        async move { Some((Ok::<_, Infallible>(chunk), endless)) }
    }))
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up_and_others_are_served() {
    let server = Server::within(Limits { part: Duration::from_millis(200), ..LENIENT }).await;
    let mut ended = GIVEN_UP.subscribe();
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        sockets.push(socket);
    }
    let all = sockets.len() as u32;
    within_deadline("they are given up", ended.wait_for(|count| *count == all)).await.unwrap();
    server.is_up().await;
}

const MIB: usize = 1024 * 1024;

/// The size of a large response: more than the systems of both sides keep.
const LARGE: usize = 8 * MIB;

/// A large response; the number of them in memory is known.
struct Large(Vec<u8>);

static LARGE_ONES: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        LARGE_ONES.send_modify(|count| *count -= 1);
    }
}

async fn large() -> Body {
    LARGE_ONES.send_modify(|count| *count += 1);
    Body::from(Bytes::from_owner(Large((0..LARGE).map(|at| at as u8).collect())))
}

#[tokio::test]
async fn responses_that_are_not_read_take_a_limited_amount_of_memory() {
    let server = Server::within(Limits { kept: 3 * LARGE, part: 10 * DEADLINE, ..LENIENT }).await;
    let request = b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (mut sockets, mut in_memory) = (Vec::new(), LARGE_ONES.subscribe());
    for number in 1..=10 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(request).await.unwrap();
        // Its response has begun, and is not read any further.
        socket.read_exact(&mut [0; 12]).await.unwrap();
        sockets.push(socket);
        let bounded = in_memory.wait_for(|count| *count == number.min(3));
        within_deadline("only three are kept", bounded).await.unwrap();
    }
    let mut first = Vec::new();
    let _ = within_deadline("the slowest are closed", sockets[0].read_to_end(&mut first)).await;
    assert!(first.len() < LARGE, "{} bytes", first.len());
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    within_deadline("a client that reads gets all of it", socket.read_to_end(&mut answer)).await.unwrap();
    let body = &answer[answer.len() - LARGE..];
    assert!(body.iter().enumerate().all(|(at, byte)| *byte == at as u8));
    drop(sockets);
    within_deadline("nothing is left", in_memory.wait_for(|count| *count == 0)).await.unwrap();
}

#[tokio::test]
async fn requests_that_never_end_take_a_limited_amount_of_memory() {
    let server = Server::within(Limits { kept: 4 * MIB, body: 10 * DEADLINE, ..LENIENT }).await;
    let head = format!("POST /drain HTTP/1.1\r\nHost: x\r\nContent-Length: {MIB}\r\n\r\n");
    let mut sockets = Vec::new();
    for _ in 0..10 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        // The last byte never comes.
        let _ = socket.write_all(&vec![b'x'; MIB - 1]).await;
        sockets.push(socket);
    }
    for slow in &mut sockets[..4] {
        let mut rest = Vec::new();
        let _ = within_deadline("the slowest are closed", slow.read_to_end(&mut rest)).await;
        assert!(rest.is_empty());
    }
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let whole = [head.replace("Host", "Connection: close\r\nHost").into_bytes(), vec![b'x'; MIB]].concat();
    socket.write_all(&whole).await.unwrap();
    let mut answer = String::new();
    within_deadline("a client that is not slow is served", socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("read"), "{answer}");
}

#[tokio::test]
async fn the_system_keeps_little_for_a_client_that_does_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    bound_send_buffer(&stream);
    // Linux doubles it for its own bookkeeping, and does not let it grow from then on.
    assert!(SockRef::from(&stream).send_buffer_size().unwrap() <= 2 * SEND_BUFFER);
}
