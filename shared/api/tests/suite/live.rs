//! Events of runs, streamed as they happen.

use axum::body::BodyDataStream;
use axum::http::StatusCode;
use futures::StreamExt;
use host::ShutdownSignal;
use model::RunId;
use serde_json::{Value, json};
use testkit::{DEADLINE, within_deadline};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{World, now, token};

/// A client of the stream, with the text that it has read and not parsed yet.
struct Listener {
    stream: BodyDataStream,
    read: String,
}

/// One event of the stream.
#[derive(Debug, Default)]
struct StreamEvent {
    id: Option<String>,
    name: Option<String>,
    data: Option<Value>,
}

impl StreamEvent {
    fn data(&self) -> &Value {
        self.data.as_ref().expect("the event carries data")
    }
}

impl Listener {
    async fn open(world: &World, path: &str, last: Option<&str>) -> Self {
        let headers: Vec<(&str, &str)> = last.map(|last| ("last-event-id", last)).into_iter().collect();
        let response = world.open(path, &headers).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { stream: response.into_body().into_data_stream(), read: String::new() }
    }

    async fn next(&mut self) -> StreamEvent {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                return parse(&event);
            }
            let chunk = within_deadline("something is sent", self.stream.next()).await;
            let chunk = chunk.expect("it goes on").unwrap();
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next events that carry data.
    async fn events(&mut self, count: usize) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        while events.len() < count {
            let event = self.next().await;
            if event.data.is_some() {
                events.push(event);
            }
        }
        events
    }

    /// Asserts that the next event is the first one of this run, which was created last: nothing came before it.
    async fn receives_next(&mut self, run: RunId) {
        let events = self.events(1).await;
        assert_eq!(types(&events), ["run.created"]);
        assert_eq!(events[0].data()["run"], json!(run));
    }
}

fn parse(text: &str) -> StreamEvent {
    let mut event = StreamEvent::default();
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

fn types(events: &[StreamEvent]) -> Vec<&str> {
    events.iter().map(|event| event.data()["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_change_reaches_a_listener() {
    let world = World::with_hello().await;
    let mut listener = Listener::open(&world, "/events", None).await;
    listener.next().await;
    let run = world.start().await;
    let events = listener.events(2).await;
    assert_eq!(types(&events), ["run.created", "run.started"]);
    let created = events[0].data();
    assert_eq!(created["run"], json!(run));
    assert_eq!(
        (&created["workflow"], &created["seq"], &created["state"]),
        (&json!("hello"), &json!(0), &json!("running"))
    );
}

#[tokio::test]
async fn progress_reaches_a_listener_and_is_not_part_of_the_history() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let mut listener = Listener::open(&world, &format!("/events?run={run}"), None).await;
    let begin = listener.next().await.id.unwrap();
    let key = model::TaskKey { run, task: model::TaskIndex(0) };
    let history = world.get(&format!("/runs/{run}/events")).await.body;
    for fraction in [0.25, 0.5] {
        let report = model::ProgressReport {
            done: Some(model::Done { fraction, message: None }),
            metrics: [("rows".to_owned(), 3.0)].into(),
            ..model::ProgressReport::new(1, now())
        };
        world.runtime.workers().report_progress(key, &report).await.unwrap();
        let event = listener.events(1).await.remove(0);
        assert_eq!(event.name.as_deref(), Some("progress"));
        let data = event.data();
        assert_eq!((&data["run"], &data["task"]), (&json!(run), &json!("greet")));
        assert_eq!(data["progress"]["fraction"], json!(fraction));
        assert_eq!(data["progress"]["metrics"], json!({"rows": {"value": 3.0}}));
    }
    assert_eq!(world.get(&format!("/runs/{run}/events")).await.body, history);
    let mut again = Listener::open(&world, &format!("/events?run={run}"), Some(&begin)).await;
    let missed = again.events(1).await.remove(0);
    assert_eq!(missed.data()["progress"]["fraction"], json!(0.5), "the last report counts");
}

#[tokio::test]
async fn a_listener_gets_what_it_asked_for_and_no_more() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let mut of_another = Listener::open(&world, "/events?workflow=other", None).await;
    let mut of_hello = Listener::open(&world, "/events?workflow=hello", None).await;
    let mut of_run = Listener::open(&world, &format!("/events?run={run}"), None).await;
    world.start().await;
    world.report(run, 0, Ok(json!("hello"))).await;
    let events = of_run.events(2).await;
    assert_eq!(events[0].data()["task"], "greet");
    assert!(events.iter().all(|event| event.data()["run"] == json!(run)));
    of_hello.events(4).await;
    let other = world.play("name: other\ntasks:\n  - {name: a, type: noop}\n", json!({})).await;
    of_another.receives_next(other).await;
}

#[tokio::test]
async fn a_listener_that_reconnects_gets_what_it_missed_once() {
    let world = World::with_hello().await;
    let mut listener = Listener::open(&world, "/events", None).await;
    let begin = listener.next().await.id.expect("a listener can reconnect before its first event");
    let run = world.start().await;
    let events = listener.events(3).await;
    let last = events.iter().rev().find_map(|event| event.id.clone()).expect("it can be resumed");
    drop(listener);
    world.report(run, 0, Ok(json!("hello"))).await;
    let mut again = Listener::open(&world, "/events", Some(&last)).await;
    assert_eq!(types(&again.events(2).await), ["task.succeeded", "task.sleeping"]);
    let mut from_the_beginning = Listener::open(&world, "/events", Some(&begin)).await;
    let all = from_the_beginning.events(5).await;
    let numbers: Vec<_> = all.iter().map(|event| event.data()["seq"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    let next = world.start().await;
    again.receives_next(next).await;
}

#[tokio::test]
async fn a_listener_with_an_unknown_cursor_gets_a_gap() {
    let world = World::with_hello().await;
    let mut listener = Listener::open(&world, "/events", Some("long-ago")).await;
    let events = listener.events(1).await;
    assert_eq!(events[0].name.as_deref(), Some("gap"));
    assert!(events[0].id.is_some(), "from here on nothing is missed");
}

#[tokio::test]
async fn one_too_many_is_refused_until_another_leaves() {
    let world = World::with_hello().await;
    let mut listeners = Vec::new();
    for _ in 0..512 {
        listeners.push(Listener::open(&world, "/events", None).await);
    }
    let run = world.start().await;
    for listener in &mut listeners {
        listener.receives_next(run).await;
    }
    let refused = world.get("/events").await;
    assert_eq!(
        (refused.status, &refused.body["error_code"]),
        (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_listeners"))
    );
    assert_eq!(refused.headers["retry-after"], "1");
    listeners.pop();
    Listener::open(&world, "/events", None).await;
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
    within_deadline("it stops", server).await.unwrap().unwrap();
}
