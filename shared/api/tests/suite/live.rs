//! What happens, as it happens.

use std::time::Duration;

use axum::body::BodyDataStream;
use axum::http::StatusCode;
use futures::StreamExt;
use host::ShutdownSignal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{World, token};

/// What does not happen within this never happens.
const DEADLINE: Duration = Duration::from_secs(120);

/// One who listens, and what it has read and not looked at.
struct EventStream {
    stream: BodyDataStream,
    read: String,
}

/// One event, as it was sent.
#[derive(Debug, Default)]
struct SentEvent {
    id: Option<String>,
    name: Option<String>,
    data: Option<Value>,
}

impl EventStream {
    async fn open(world: &World, path: &str, last: Option<&str>) -> Self {
        let headers: Vec<(&str, &str)> = last.map(|last| ("last-event-id", last)).into_iter().collect();
        let response = world.open(path, &headers).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { stream: response.into_body().into_data_stream(), read: String::new() }
    }

    async fn next(&mut self) -> SentEvent {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                return parse(&event);
            }
            let chunk = tokio::time::timeout(DEADLINE, self.stream.next()).await.expect("something is sent");
            let chunk = chunk.expect("it goes on").unwrap();
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next events that carry data.
    async fn events(&mut self, count: usize) -> Vec<SentEvent> {
        let mut events = Vec::new();
        while events.len() < count {
            let event = self.next().await;
            if event.data.is_some() {
                events.push(event);
            }
        }
        events
    }

    /// No event arrives while the feed polls several times.
    async fn receives_nothing(&mut self) {
        let wait = tokio::time::timeout(Duration::from_millis(700), self.events(1));
        assert!(wait.await.is_err(), "an event was sent");
    }
}

fn parse(text: &str) -> SentEvent {
    let mut event = SentEvent::default();
    for (field, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        match field {
            "id" => event.id = Some(value.to_owned()),
            "event" => event.name = Some(value.to_owned()),
            "data" => event.data = Some(serde_json::from_str(value).unwrap()),
            _ => {}
        }
    }
    event
}

fn types(events: &[SentEvent]) -> Vec<&str> {
    events.iter().map(|event| event.data.as_ref().unwrap()["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_change_reaches_a_listener() {
    let world = World::with_hello().await;
    let mut stream = EventStream::open(&world, "/events", None).await;
    stream.next().await;
    let run = world.start().await;
    let events = stream.events(2).await;
    assert_eq!(types(&events), ["run.created", "run.started"]);
    let first = events[0].data.clone().unwrap();
    assert_eq!(first["run"], json!(run));
    assert_eq!(
        (&first["workflow"], &first["seq"], &first["state"]),
        (&json!("hello"), &json!(0), &json!("running"))
    );
}

#[tokio::test]
async fn a_listener_gets_what_it_asked_for_and_no_more() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let mut of_another = EventStream::open(&world, "/events?workflow=other", None).await;
    let mut of_hello = EventStream::open(&world, "/events?workflow=hello", None).await;
    let mut of_run = EventStream::open(&world, &format!("/events?run={run}"), None).await;
    world.start().await;
    world.report(run, 0, Ok(json!("hello"))).await;
    let events = of_run.events(2).await;
    assert_eq!(events[0].data.as_ref().unwrap()["task"], "greet");
    assert!(events.iter().all(|event| event.data.as_ref().unwrap()["run"] == json!(run)));
    of_hello.events(4).await;
    of_another.receives_nothing().await;
}

#[tokio::test]
async fn a_listener_that_reconnects_gets_what_it_missed_once() {
    let world = World::with_hello().await;
    let mut stream = EventStream::open(&world, "/events", None).await;
    let begin = stream.next().await.id.expect("a listener can reconnect before its first event");
    let run = world.start().await;
    let events = stream.events(3).await;
    let last = events.iter().rev().find_map(|event| event.id.clone()).expect("it can be resumed");
    drop(stream);
    world.report(run, 0, Ok(json!("hello"))).await;
    let mut again = EventStream::open(&world, "/events", Some(&last)).await;
    assert_eq!(types(&again.events(2).await), ["task.succeeded", "task.sleeping"]);
    again.receives_nothing().await;
    let mut from_the_beginning = EventStream::open(&world, "/events", Some(&begin)).await;
    let all = from_the_beginning.events(5).await;
    let numbers: Vec<_> =
        all.iter().map(|event| event.data.as_ref().unwrap()["seq"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_listener_with_an_unknown_cursor_gets_a_gap() {
    let world = World::with_hello().await;
    let mut stream = EventStream::open(&world, "/events", Some("long-ago")).await;
    let events = stream.events(1).await;
    assert_eq!(events[0].name.as_deref(), Some("gap"));
    assert!(events[0].id.is_some(), "from here on nothing is missed");
}

#[tokio::test]
async fn one_too_many_is_refused_until_another_leaves() {
    let world = World::with_hello().await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(EventStream::open(&world, "/events", None).await);
    }
    let refused = world.get("/events").await;
    assert_eq!(
        (refused.status, &refused.body["error_code"]),
        (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_listeners"))
    );
    assert_eq!(refused.headers["retry-after"], "1");
    streams.pop();
    EventStream::open(&world, "/events", None).await;
}

#[tokio::test]
async fn events_of_a_run_that_is_not_there_are_refused() {
    let world = World::with_hello().await;
    let none = world.get("/events?run=018f0000-0000-7000-8000-000000000001").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/events?task=x").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_does_not_wait_for_listeners() {
    let world = World::with_hello().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped: ShutdownSignal = Box::pin(async move { drop(stopped.await) });
    // A server that waited for its listeners would wait for the whole grace.
    let server = tokio::spawn(host::serve(listener, world.router(), stopped, 10 * DEADLINE));
    let mut socket = TcpStream::connect(address).await.unwrap();
    let token = token("api", 3600);
    let request = format!("GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    socket.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stop.send(()).unwrap();
    tokio::time::timeout(DEADLINE, server).await.expect("it stops").unwrap().unwrap();
}
