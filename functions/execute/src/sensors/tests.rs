//! Each kind of sensor with a real source: a folder, a bucket's API, a database, a server, a run.

mod tasks;
mod triggers;

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::TimeDelta;
use model::message::{PollDue, PollTarget};
use model::{Clock, ErrorClass, Failure, Instant, RunId, TenantId, TriggerKey};
use runtime::StartRun;
use serde_json::{Value, json};
use sqlx::{Connection, Executor as _, PgConnection};
use store::TriggerRecord;
use tempfile::TempDir;
use testkit::{StorageServer, World, start_run};
use tokio::net::TcpListener;

use crate::{Executor, Runner, Worker};

/// An executor that polls, and a folder with its files and secrets.
struct Bench {
    world: World,
    executor: Executor,
    folder: TempDir,
}

impl Deref for Bench {
    type Target = World;

    fn deref(&self) -> &Self::Target {
        &self.world
    }
}

impl Bench {
    fn new() -> Self {
        Self::with(|runner| runner)
    }

    fn with(change: impl FnOnce(Runner) -> Runner) -> Self {
        Self::on(World::at("2027-01-15T08:00:00Z"), change)
    }

    fn on(world: World, change: impl FnOnce(Runner) -> Runner) -> Self {
        let folder = TempDir::new().unwrap();
        // The databases of tests listen on a socket.
        let egress = host::EgressPolicy::read(None, Some("0.0.0.0/0, ::/0, /")).unwrap();
        let runner = Runner::new(world.runtime.clock().clone(), ".")
            .with_secrets_in(folder.path().join("secrets"))
            .with_egress_policy(egress);
        let worker = Worker::new(world.runtime.clone());
        Self { executor: Executor::new(world.runtime.clone(), worker, change(runner)), world, folder }
    }

    /// Polls the sensor of a task that began at `since`.
    async fn see(&self, config: Value, since: Instant) -> Result<Option<Value>, Failure> {
        self.executor.poll_condition(TenantId::DEFAULT, config, since, &str::to_owned).await
    }

    async fn start_at(&self, workflow: &str, logical_date: Instant) -> RunId {
        let start = StartRun { logical_date: Some(logical_date), ..start_run(workflow) };
        self.runtime.start(start).await.unwrap().record.run.id
    }

    /// Registers a workflow that a sensor triggers.
    async fn watch(&self, sensor: Value) {
        self.write(&format!(
            "name: watched\ninputs: {{what: {{type: string}}}}\ntriggers:\n  \
             - {{name: poll, sensor: {sensor}, inputs: {{what: '{{{{ event.id }}}}'}}}}\n\
             tasks: [{{name: a, type: noop}}]\n"
        ))
        .await;
    }

    async fn poll(&self) {
        let target = PollTarget::Trigger { workflow: "watched".into(), name: "poll".into() };
        let due = PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), target };
        self.executor.poll(&due).await.unwrap();
    }

    async fn trigger(&self) -> TriggerRecord {
        let (workflow, name) = ("watched".into(), "poll".into());
        let key = TriggerKey { tenant: TenantId::DEFAULT, workflow, name };
        self.store().trigger(&key).await.unwrap().unwrap()
    }

    /// The number of runs that the trigger has started.
    async fn count(&self) -> usize {
        self.runs("watched").await.len()
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
async fn a_file_exists_or_has_changed_since_the_task_began() {
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
    assert_eq!(bench.see(changed.clone(), now).await, Ok(None), "it existed before the task began");
    bench.put("a.csv", "other", now + TimeDelta::seconds(1));
    let seen = bench.see(changed, now).await.unwrap().unwrap();
    assert_eq!(seen["watermark"], json!(now + TimeDelta::seconds(1)));
}

#[tokio::test]
async fn no_sensor_of_files_looks_into_the_folder_of_secrets() {
    let bench = Bench::new();
    let now = bench.clock.now();
    std::fs::create_dir_all(bench.file("secrets/acme")).unwrap();
    std::fs::create_dir(bench.file("in")).unwrap();
    for file in ["secrets/acme/KEY", "in/a.csv"] {
        bench.put(file, "content", now);
    }
    for (link, target) in [
        ("folder", "secrets"),
        ("in/file", "../secrets/acme/KEY"),
        ("gone", "secrets/acme/GONE"),
        ("again", "folder"),
    ] {
        std::os::unix::fs::symlink(target, bench.file(link)).unwrap();
    }
    let see = async |path: String| bench.see(json!({"file": {"path": path}}), now).await;
    for path in [
        "secrets/*",
        "secrets/acme/*",
        "secrets/acme/KEY",
        "secrets/acme/GONE",
        "secrets/nobody/*",
        "secrets/acme",
        "secrets",
        "in/../secrets/acme/*",
        "secrets/acme/../acme/KEY",
        "folder/acme/K*",
        "again/acme/KEY",
        "in/file",
        "gone",
    ] {
        let failure = see(bench.file(path)).await.expect_err(path);
        assert_eq!(failure.class, ErrorClass::Permanent, "{path}: {}", failure.message);
        assert!(
            failure.message.ends_with("leads into the folder of secrets, where sensors find no files"),
            "{path}"
        );
    }
    let around = format!("/proc/self/root{}", bench.file("secrets/acme/*"));
    assert!(see(around).await.is_err());
    for path in ["in/*", "in/a.csv", "secrets/../in/*"] {
        assert_eq!(
            see(bench.file(path)).await.unwrap().unwrap()["files"].as_array().unwrap().len(),
            1,
            "{path}"
        );
    }
    assert_eq!(see(bench.file("secrets-of-none")).await, Ok(None));
    bench.watch(json!({"file": {"path": bench.file("secrets/acme/*")}})).await;
    bench.poll().await;
    assert_eq!((bench.trigger().await.failures, bench.count().await), (1, 0));
}

#[tokio::test]
async fn a_rendered_date_of_a_year_that_nothing_can_store_fails_for_good() {
    let bench = Bench::new();
    let now = bench.clock.now();
    for year in ["+12026", "-262143", "0000"] {
        let date = format!("{year}-01-01T00:00:00Z");
        for sensor in [
            json!({"run": {"workflow": "other", "logical_date": date}}),
            json!({"time": {"at": date}}),
            json!({"file": {"path": bench.file("*"), "changed_since": date}}),
        ] {
            let failure = bench.see(sensor.clone(), now).await.expect_err(&sensor.to_string());
            assert_eq!(failure.class, ErrorClass::Permanent, "{}", failure.message);
            assert!(failure.message.contains("between 0001 and 9999"), "{}", failure.message);
        }
    }
}

#[tokio::test]
async fn an_object_in_a_bucket_is_found_by_its_name_or_by_a_pattern() {
    let server = StorageServer::start(&["bucket"]).await;
    for name in ["in/a.csv", "in/b.txt", "in/c.csv"] {
        server.put("bucket", name, "content");
    }
    let mut bench = Bench::new();
    bench.executor = bench.executor.with_storage(Some(server.url().to_owned()));
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
    assert_eq!(bench.count().await, 1);
}

#[tokio::test]
async fn a_query_binds_its_parameters() {
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

#[tokio::test]
async fn a_query_that_finds_more_than_a_megabyte_fails() {
    let database = testkit::database().await;
    let bench = Bench::new();
    let ask = |query: String| json!({"sql": {"url": database.url, "query": query}});
    let text = |bytes: u32| format!("select repeat('x', {bytes}) as text");
    let see = async |query: String| bench.see(ask(query), bench.clock.now()).await;
    let seen = see(text(900_000)).await.unwrap().unwrap();
    assert_eq!(seen["count"], 1);
    let rows = |count: u32| format!("select repeat('x', 10000) from generate_series(1, {count})");
    assert_eq!(see(rows(90)).await.unwrap().unwrap()["count"], 90);
    // One row that is too long, and many that are so together.
    for query in [text(1_100_000), text(20_000_000), rows(110), rows(1_000_000)] {
        let failure = see(query.clone()).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Permanent, "{query}: {}", failure.message);
        let reason = "its rows have more than 1048576 bytes of JSON; select fewer of them, or fewer columns";
        assert!(failure.message.contains(reason), "{query}: {}", failure.message);
    }
}

#[tokio::test]
async fn a_query_goes_only_where_the_egress_policy_allows() {
    let database = testkit::database().await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let ask = |url: &str| json!({"sql": {"url": url, "query": "select 1"}});
    let see = async |list: &str, url: &str| {
        let policy = host::EgressPolicy::read(None, Some(list)).unwrap();
        let bench = Bench::with(|runner| runner.with_egress_policy(policy));
        bench.see(ask(url), bench.clock.now()).await
    };
    for url in [
        format!("postgres://ebb@127.0.0.1:{port}/x"),
        format!("postgres://ebb@localhost:{port}/x"),
        format!("postgres://ebb@[::ffff:127.0.0.1]:{port}/x"),
        format!("postgres://ebb@db.example/x?host=127.0.0.1&port={port}"),
        format!("postgres://ebb@db.example/x?hostaddr=127.0.0.1&port={port}"),
        "postgres://ebb@169.254.169.254/x".to_owned(),
        "postgres://ebb@db.example/x?host=/var/run/postgresql".to_owned(),
        database.url.clone(),
    ] {
        let failure = see("", &url).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Permanent, "{url}: {}", failure.message);
        assert!(failure.message.starts_with("the query was not sent: "), "{url}: {}", failure.message);
    }
    let nobody = tokio::time::timeout(std::time::Duration::ZERO, server.accept()).await;
    assert!(nobody.is_err(), "no connection was opened");
    let everywhere = see("0.0.0.0/0, ::/0", &database.url).await.unwrap_err();
    assert!(everywhere.message.contains("is a socket of this machine"), "{}", everywhere.message);
    let allowed = see("/", &database.url).await.unwrap().unwrap();
    assert_eq!(allowed["count"], 1);
    let url = format!("postgres://ebb@localhost:{port}/x");
    let asked = see("127.0.0.1", &url);
    let accepted = tokio::select! {
        accepted = server.accept() => accepted.is_ok(),
        asked = asked => panic!("{asked:?}"),
    };
    assert!(accepted, "an allowed address is asked");
}

/// A server whose answer the test sets.
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
async fn an_instant_triggers_once() {
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
    assert_eq!(bench.count().await, 1);
    // By a clock that is behind, the instant is in the future.
    for minutes in [-1, 1] {
        bench.clock.set(at + TimeDelta::minutes(minutes));
        bench.poll().await;
    }
    assert_eq!(bench.count().await, 1);
}

#[tokio::test]
async fn another_run_must_have_ended_in_the_expected_state() {
    let bench = Bench::new();
    bench.write("name: other\ntasks: [{name: a, type: noop}]\n").await;
    let date = bench.clock.now();
    let config = |state: &str| json!({"run": {"workflow": "other", "logical_date": date, "state": state}});
    assert_eq!(bench.see(config("finished"), date).await, Ok(None));
    let run = bench.start_at("other", date).await;
    assert_eq!(bench.see(config("finished"), date).await, Ok(None));
    bench.cancel(run).await;
    assert_eq!(bench.see(config("succeeded"), date).await, Ok(None));
    let seen = bench.see(config("finished"), date).await;
    assert_eq!(seen, Ok(Some(json!({"run_id": run, "state": "cancelled"}))));
}
