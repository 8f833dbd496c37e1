//! The sweep is called when something is due, by a queue of Cloud Tasks, and once an hour by the scheduler.

use std::sync::Arc;
use std::time::Duration;

use auth::PushAuth;
use bus::local::{Broker, Faults};
use bus::wake_up::{CloudTasks, Target};
use bus::{Endpoint, Subscription};
use chrono::TimeDelta;
use execute::{Executor, Runner, Worker};
use host::App;
use model::{Clock, Instant, RunId, RunState, TenantId, Topic};
use runtime::Runtime;
use sqlx::{Connection, PgConnection};
use store::{Connections, Postgres};
use sweep::Sweep;
use testkit::{CloudTasksServer, DEADLINE, Database, ManualClock, eventually};
use tracing_subscriber::layer::SubscriberExt;

use crate::timers::Statements;
use crate::world::{AUDIENCE, ISSUER, PUSHER};

const QUEUE: &str = "projects/p/locations/r/queues/wake-ups";

const NAPS: &str = "
name: naps
tasks:
  - {name: first, type: noop}
  - {name: nap, type: sleep, depends_on: [first], config: {duration: 10m}}
  - {name: doze, type: sleep, depends_on: [nap], config: {duration: 20s}}
  - {name: last, type: noop, depends_on: [doze]}
";

/// Every function on a Postgres, a broker and a queue, under one clock.
struct Cloud {
    clock: ManualClock,
    broker: Broker,
    runtime: Arc<Runtime>,
    queue: CloudTasksServer,
    /// The address of the sweep, for the scheduler.
    sweep_url: String,
    database: Database,
}

impl Cloud {
    async fn start() -> Self {
        let clock = ManualClock::at("2027-01-15T09:00:30.25Z");
        let database = testkit::migrated(Postgres::migrate).await;
        let connections = Connections {
            idle_timeout: Duration::from_secs(1),
            acquire_timeout: DEADLINE,
            ..Connections::at_most(4)
        };
        let store = Postgres::open(&database.url, None, connections).await.unwrap();
        let broker = Broker::new(Arc::new(clock.clone()), ISSUER.clone(), PUSHER, Faults::default());
        let runtime = Runtime::new(Arc::new(store), Arc::new(broker.clone()), Arc::new(clock.clone()));
        let runtime = Arc::new(
            runtime.with(runtime::Settings { exact_wake_ups: true, ..runtime::Settings::default() }),
        );
        let app = App::new(runtime.clone(), PushAuth::None);
        let queue = CloudTasksServer::start(QUEUE, clock.clone()).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sweep_url = format!("http://{}/sweep", listener.local_addr().unwrap());
        let target = Target {
            queue: QUEUE.into(),
            url: sweep_url.clone(),
            account: PUSHER.into(),
            audience: AUDIENCE.into(),
        };
        let tasks = CloudTasks::new(target, Some(queue.url().into()), Arc::new(clock.clone())).unwrap();
        let sweep = Sweep::new(runtime.clone()).with_wake_ups(Arc::new(tasks));
        let sweep = sweep::router_with(app.clone(), sweep);
        let executor = Executor::new(
            runtime.clone(),
            Worker::new(runtime.clone()),
            Runner::new(runtime.clock().clone(), "."),
        );
        for (topic, router) in [
            (Topic::Evaluations, evaluate::router(app.clone())),
            (Topic::Work("light".into()), execute::router_with(app.clone(), executor)),
            (Topic::Management, sweep.clone()),
        ] {
            let endpoint = Endpoint::Router(router, "/push".into());
            broker.subscribe(&topic, Subscription::new(topic.id(), endpoint, AUDIENCE));
        }
        tokio::spawn(async move { axum::serve(listener, sweep).await });
        let cloud = Self { clock, broker, runtime, queue, sweep_url, database };
        cloud.tick().await;
        cloud
    }

    async fn tick(&self) {
        let ticked = reqwest::Client::new().post(&self.sweep_url).send().await.unwrap();
        assert!(ticked.status().is_success(), "{}", ticked.status());
        self.broker.idle().await;
    }

    async fn start_naps(&self) -> RunId {
        let definitions = testkit::compile(&[(runtime::FileKind::Workflow, NAPS)]);
        self.runtime.definitions().register(TenantId::DEFAULT, definitions, "test").await.unwrap();
        let started = self.runtime.start(testkit::start_run("naps")).await.unwrap();
        self.broker.idle().await;
        started.record.run.id
    }

    /// Lets the time pass until an instant, with all wake-ups before it.
    async fn pass(&self, until: Instant) {
        while let Some(next) = self.queue.next_at().filter(|next| *next <= until) {
            self.clock.set(next.max(self.clock.now()));
            self.queue.run_due().await;
            self.broker.idle().await;
        }
        self.clock.set(until);
    }

    async fn finished_at(&self, run: RunId) -> Option<Instant> {
        let record = self.runtime.store().run(TenantId::DEFAULT, run).await.unwrap().unwrap();
        let finished_at = record.run.finished_at?;
        assert_eq!(record.run.state, RunState::Succeeded);
        Some(finished_at)
    }
}

#[tokio::test]
async fn timers_are_exact_without_ticks_and_without_a_sweep_that_stays() {
    let cloud = Cloud::start().await;
    let start = cloud.clock.now();
    let run = cloud.start_naps().await;
    cloud.pass(start + TimeDelta::minutes(12)).await;
    let took = cloud.finished_at(run).await.expect("it ended") - start;
    let naps = TimeDelta::minutes(10) + TimeDelta::seconds(20);
    // Each of the two is late by less than a tenth of a second.
    assert!(took >= naps && took < naps + TimeDelta::milliseconds(200), "{took}");
    assert!(cloud.queue.rejections().is_empty(), "{:?}", cloud.queue.rejections());
}

#[tokio::test]
async fn the_hourly_tick_finds_what_lost_wake_ups_would_have_found() {
    let cloud = Cloud::start().await;
    let start = cloud.clock.now();
    let run = cloud.start_naps().await;
    cloud.queue.lose_all();
    cloud.pass(start + TimeDelta::hours(1)).await;
    assert_eq!(cloud.finished_at(run).await, None, "no one has called the sweep");
    cloud.tick().await;
    cloud.pass(start + TimeDelta::hours(1) + TimeDelta::minutes(1)).await;
    assert!(
        cloud.finished_at(run).await.is_some(),
        "the tick fired one nap and requested a wake-up for the other"
    );
}

/// Counts the connections to a database, from another database of its server.
struct Sessions {
    server: PgConnection,
    database: String,
}

impl Sessions {
    async fn of(database: &Database) -> Self {
        let mut own = PgConnection::connect(&database.url).await.unwrap();
        let name = sqlx::query_scalar("select current_database()::text").fetch_one(&mut own).await.unwrap();
        own.close().await.unwrap();
        let (server, _) = database.url.rsplit_once('/').unwrap();
        let server = PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
        Self { server, database: name }
    }

    /// Waits until all are closed. Returns how many have been opened so far: a session is counted before it ends.
    async fn closed(&mut self) -> i64 {
        let open = "select count(*) from pg_stat_activity where datname = $1";
        eventually("the connections are released", async || {
            let open: i64 =
                sqlx::query_scalar(open).bind(&self.database).fetch_one(&mut self.server).await.unwrap();
            (open == 0).then_some(())
        })
        .await;
        let opened = "select sessions from pg_stat_database where datname = $1";
        sqlx::query_scalar(opened).bind(&self.database).fetch_one(&mut self.server).await.unwrap()
    }
}

#[tokio::test]
async fn an_idle_hour_opens_one_connection_and_sends_one_statement() {
    let statements = Statements::default();
    let _guard = testkit::subscribe(tracing_subscriber::registry().with(statements.clone()));
    let cloud = Cloud::start().await;
    let run = cloud.start_naps().await;
    cloud.pass(cloud.clock.now() + TimeDelta::minutes(30)).await;
    assert!(cloud.finished_at(run).await.is_some());
    let mut sessions = Sessions::of(&cloud.database).await;
    let opened = sessions.closed().await;
    let hour = cloud.clock.now() + TimeDelta::hours(1);
    let requests = cloud.queue.requests();
    assert_eq!(statements.of(cloud.pass(hour)).await, 0, "no one wakes the database");
    assert_eq!(cloud.queue.requests(), requests, "nor the sweep");
    assert_eq!(sessions.closed().await, opened, "nor connects to it");
    assert_eq!(statements.of(cloud.tick()).await, 1, "the safety tick finds nothing");
    assert_eq!(sessions.closed().await, opened + 1, "and closes its only connection");
}
