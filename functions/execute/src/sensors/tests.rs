//! Each kind of sensor against a real thing of its kind: a folder, a bucket's API, a database, a server, a run.

mod tasks;
mod triggers;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::TimeDelta;
use language::{FileKind, SourceFile};
use model::message::{PollDue, Watch};
use model::{Clock, ErrorClass, Failure, Instant, Message, RunId, TenantId, TriggerKey};
use runtime::{Runtime, StartRun};
use serde_json::{Map, Value, json};
use sqlx::{Connection, Executor as _, PgConnection};
use store::{Memory, NewVersion, RunFilter, TriggerRecord};
use tempfile::TempDir;
use testkit::{ManualClock, StorageServer};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::{Executor, Worker};

struct Mute;

#[async_trait]
impl bus::Bus for Mute {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

struct Bench {
    executor: Executor,
    clock: ManualClock,
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with(|executor| executor)
    }

    fn with(change: impl FnOnce(Executor) -> Executor) -> Self {
        let clock = ManualClock::at("2027-01-15T08:00:00Z");
        let store = Arc::new(Memory::default());
        let runtime = Arc::new(Runtime::new(store, Arc::new(Mute), Arc::new(clock.clone())));
        let folder = TempDir::new().unwrap();
        let executor =
            Executor::new(runtime.clone(), Worker::new(runtime), ".").with_secrets_in(folder.path());
        let executor = executor.with_egress_policy(host::EgressPolicy::allow_internal());
        Self { executor: change(executor), clock, folder }
    }

    /// What a task's sensor sees that began to look at `since`.
    async fn see(&self, config: Value, since: Instant) -> Result<Option<Value>, Failure> {
        self.executor.poll_condition(TenantId::DEFAULT, config, since, &str::to_owned).await
    }

    async fn write(&self, text: &str) {
        let name = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap().to_owned();
        let file = SourceFile { path: name, kind: FileKind::Workflow, text: text.to_owned() };
        let compiled = language::compile(&[file]);
        assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
        for definition in compiled.definitions {
            let new = NewVersion {
                tenant: TenantId::DEFAULT,
                workflow: definition.workflow,
                source: definition.source,
                hash: definition.hash,
                by: "test".into(),
                at: self.clock.now(),
            };
            self.executor.runtime.store().register(&new).await.unwrap();
        }
    }

    async fn start(&self, workflow: &str, logical_date: Option<Instant>) -> RunId {
        let start = StartRun {
            id: RunId(Uuid::from_u128(7)),
            tenant: TenantId::DEFAULT,
            workflow: workflow.to_owned(),
            inputs: Map::new(),
            labels: Map::new(),
            logical_date,
            origin: runtime::Origin::Api { by: "test".into() },
            priority: 0,
        };
        self.executor.runtime.start(start).await.unwrap().record.run.id
    }

    /// Registers a workflow with that sensor as its trigger.
    async fn watch(&self, sensor: Value) {
        self.write(&format!(
            "name: watched\ninputs: {{what: {{type: string}}}}\ntriggers:\n  \
             - {{name: eye, sensor: {sensor}, inputs: {{what: '{{{{ event.id }}}}'}}}}\n\
             tasks: [{{name: a, type: noop}}]\n"
        ))
        .await;
    }

    async fn poll(&self) {
        let watch = Watch::Trigger { workflow: "watched".into(), name: "eye".into() };
        let due = PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), watch };
        self.executor.poll(&due).await.unwrap();
    }

    async fn trigger(&self) -> TriggerRecord {
        let (workflow, name) = ("watched".into(), "eye".into());
        let key = TriggerKey { tenant: TenantId::DEFAULT, workflow, name };
        self.executor.runtime.store().trigger(&key).await.unwrap().unwrap()
    }

    async fn runs(&self) -> usize {
        let filter = RunFilter { workflow: Some("watched".into()), limit: 100, ..RunFilter::default() };
        self.executor.runtime.store().runs(TenantId::DEFAULT, &filter).await.unwrap().len()
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes a file that was last changed at that instant.
    fn put(&self, name: &str, text: &str, changed_at: Instant) {
        std::fs::write(self.file(name), text).unwrap();
        let file = std::fs::File::options().write(true).open(self.file(name)).unwrap();
        file.set_modified(changed_at.into()).unwrap();
    }
}

async fn serve(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

#[tokio::test]
async fn a_file_is_there_or_has_changed_since_the_task_began() {
    let bench = Bench::new();
    let now = bench.clock.now();
    let there = json!({"file": {"path": bench.file("*.csv")}});
    let changed = json!({"file": {"path": bench.file("a.csv"), "changed": true}});
    assert_eq!(bench.see(there.clone(), now).await, Ok(None));
    assert_eq!(bench.see(changed.clone(), now).await, Ok(None));
    bench.put("a.csv", "one", now - TimeDelta::hours(1));
    bench.put("b.txt", "no", now);
    let seen = bench.see(there, now).await.unwrap().unwrap();
    assert_eq!((seen["files"].as_array().unwrap().len(), &seen["files"][0]["size"]), (1, &json!(3)));
    assert_eq!(bench.see(changed.clone(), now).await, Ok(None), "it was there before");
    bench.put("a.csv", "other", now + TimeDelta::seconds(1));
    let seen = bench.see(changed, now).await.unwrap().unwrap();
    assert_eq!(seen["watermark"], json!(now + TimeDelta::seconds(1)));
}

#[tokio::test]
async fn an_object_in_a_bucket_is_found_by_its_name_or_by_a_pattern() {
    let server = StorageServer::start(&["bucket"]).await;
    for name in ["in/a.csv", "in/b.txt", "in/c.csv"] {
        server.put("bucket", name, "content");
    }
    let bench = Bench::with(|executor| executor.with_storage(Some(server.url().to_owned())));
    let now = bench.clock.now();
    let seen = bench.see(json!({"file": {"path": "gs://bucket/in/*.csv"}}), now).await.unwrap().unwrap();
    let paths: Vec<&Value> = seen["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, [&json!("gs://bucket/in/a.csv"), &json!("gs://bucket/in/c.csv")]);
    assert_eq!(bench.see(json!({"file": {"path": "gs://bucket/in/d.csv"}}), now).await, Ok(None));
    for (status, class, message) in [
        (Some(503), ErrorClass::Transient, "503 Service Unavailable"),
        (Some(403), ErrorClass::Permanent, "403 Forbidden"),
        (None, ErrorClass::Permanent, "404 Not Found: The specified bucket"),
    ] {
        server.reject_with(status);
        let failure = bench.see(json!({"file": {"path": "gs://gone/x"}}), now).await.unwrap_err();
        assert_eq!(failure.class, class, "{message}");
        assert!(failure.message.contains(message), "{}", failure.message);
    }
    bench.watch(json!({"file": {"path": "gs://bucket/in/*.csv", "changed": true}})).await;
    bench.poll().await;
    server.put("bucket", "in/a.csv", "other");
    bench.poll().await;
    bench.poll().await;
    assert_eq!(bench.runs().await, 1);
}

#[tokio::test]
async fn rows_are_asked_for_with_values_that_are_bound() {
    let database = testkit::database().await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    connection.execute("create table orders (id bigint, day date)").await.unwrap();
    let bench = Bench::new();
    let now = bench.clock.now();
    let query = "select id, day from orders where day = $1::date order by id;";
    let ask = |day: &str| json!({"sql": {"url": database.url, "query": query, "params": [day]}});
    assert_eq!(bench.see(ask("2027-01-15"), now).await, Ok(None));
    connection.execute("insert into orders values (1, '2027-01-15'), (2, '2027-01-16')").await.unwrap();
    let seen = bench.see(ask("2027-01-15"), now).await.unwrap().unwrap();
    assert_eq!(seen, json!({"count": 1, "rows": [{"id": 1, "day": "2027-01-15"}]}));
    let harm = json!({"sql": {"url": database.url, "query": "delete from orders returning id"}});
    assert_eq!(bench.see(harm, now).await.unwrap_err().class, ErrorClass::Permanent);
    let missing = json!({"sql": {"url": database.url, "query": "select 1 from nothing"}});
    let failure = bench.see(missing, now).await.unwrap_err();
    assert!(failure.message.contains("relation \"nothing\" does not exist"), "{}", failure.message);
    let away = json!({"sql": {"url": "postgres://nobody@127.0.0.1:1/x", "query": "select 1"}});
    assert_eq!(bench.see(away, now).await.unwrap_err().class, ErrorClass::Transient);
}

/// A server that is as ready as it is told.
async fn service() -> (String, Arc<Mutex<(StatusCode, Value)>>) {
    let says = Arc::new(Mutex::new((StatusCode::OK, json!({"ready": false}))));
    let answer = async |State(says): State<Arc<Mutex<(StatusCode, Value)>>>| {
        let (status, body) = says.lock().unwrap().clone();
        (status, Json(body))
    };
    (serve(Router::new().route("/", get(answer)).with_state(says.clone())).await, says)
}

#[tokio::test]
async fn an_answer_must_meet_the_condition() {
    let (url, says) = service().await;
    let bench = Bench::new();
    let now = bench.clock.now();
    let ready = json!({"http": {"url": url, "condition": "answer.status == 200 and answer.body.ready"}});
    let any = json!({"http": {"url": url}});
    assert_eq!(bench.see(ready.clone(), now).await, Ok(None));
    *says.lock().unwrap() = (StatusCode::NOT_FOUND, json!({}));
    assert_eq!(bench.see(ready.clone(), now).await, Ok(None));
    assert_eq!(bench.see(any.clone(), now).await, Ok(None));
    *says.lock().unwrap() = (StatusCode::OK, json!({"ready": true, "n": 5}));
    assert_eq!(bench.see(ready, now).await.unwrap().unwrap()["body"]["n"], 5);
    assert!(bench.see(any, now).await.unwrap().is_some());
    let odd = json!({"http": {"url": url, "condition": "answer.body.nothing.at > 1"}});
    let failure = bench.see(odd, now).await.unwrap_err();
    assert!(failure.message.starts_with("condition: "), "{}", failure.message);
}

#[tokio::test]
async fn an_instant_is_reached_once() {
    let bench = Bench::new();
    let at = bench.clock.now() + TimeDelta::hours(1);
    let config = json!({"time": {"at": at}});
    assert_eq!(bench.see(config.clone(), at).await, Ok(None));
    bench.watch(config.clone()).await;
    bench.poll().await;
    bench.clock.advance(chrono::Duration::hours(1));
    assert_eq!(bench.see(config, at).await, Ok(Some(json!({ "at": at }))));
    bench.poll().await;
    bench.poll().await;
    assert_eq!(bench.runs().await, 1);
    // To whoever's clock is behind it seems to be to come.
    for minutes in [-1, 1] {
        bench.clock.set(at + TimeDelta::minutes(minutes));
        bench.poll().await;
    }
    assert_eq!(bench.runs().await, 1);
}

#[tokio::test]
async fn another_run_must_have_ended_as_wanted() {
    let bench = Bench::new();
    bench.write("name: other\ntasks: [{name: a, type: noop}]\n").await;
    let date = bench.clock.now();
    let config = |state: &str| json!({"run": {"workflow": "other", "logical_date": date, "state": state}});
    assert_eq!(bench.see(config("finished"), date).await, Ok(None));
    let run = bench.start("other", Some(date)).await;
    assert_eq!(bench.see(config("finished"), date).await, Ok(None));
    let cancel = engine::Command::Cancel { actor: "test".into(), reason: None };
    bench.executor.runtime.settle(run, cancel).await.unwrap();
    assert_eq!(bench.see(config("succeeded"), date).await, Ok(None));
    let seen = bench.see(config("finished"), date).await;
    assert_eq!(seen, Ok(Some(json!({"run_id": run, "state": "cancelled"}))));
}
