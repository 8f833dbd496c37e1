//! Ten times as much at once as can be carried out: everybody is answered, nothing is lost, and nobody else waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::{Access, Api, Feed, Links};
use auth::{Authenticator, Keys, Policy, Verifier};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use bus::SystemClock;
use language::FileKind;
use model::{Clock, EventKind, Instant, Limit, RunId, RunState, TenantId};
use runtime::StartRun;
use serde_json::Value;
use store::NewVersion;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tower::ServiceExt;
use uuid::Uuid;

use crate::world::{World, compile, request};

/// So many tasks are carried out at the same time: what one instance of the queue holds.
const SLOTS: u32 = 10;

/// So many runs are asked for at once.
const BURST: u32 = 10 * SLOTS;

const WORKFLOW: &str = "
name: burst
tasks:
  - {name: a, type: bash, config: {command: 'true'}}
  - {name: b, type: bash, config: {command: 'true'}, depends_on: [a]}
";

fn light() -> Limit {
    Limit::Queue("light".into())
}

/// The world's API, over few connections.
async fn api(world: &World) -> Router {
    let store = store::Postgres::connect(&world.database.url, 2).await.unwrap();
    let (database, accounts) = (read::Database::new(&store), accounts::Accounts::new(&store));
    let clock = world.runtime.clock().clone();
    let runtime = Arc::new(runtime::Runtime::new(Arc::new(store), Arc::new(world.broker.clone()), clock));
    let app = host::App { runtime, ..world.app.clone() };
    let auth = Verifier::new([world.issuer.url()], "api", Keys::fixed(&world.issuer.jwks()));
    let policy = Policy::read("ada@example.com=admin:*").unwrap();
    let access = Access::new(Authenticator::new([auth.into()]), policy);
    let links = Links::local("http://127.0.0.1");
    let feed = Feed::default();
    api::router(Api { app, database, accounts, access, links, pages_open: false, feed })
}

/// Asks for a run until it is accepted, and says so whenever it is told to come again.
async fn start(api: Router, token: String, refused: Arc<Notify>) -> RunId {
    let key = Uuid::now_v7().to_string();
    loop {
        let asked = Request::post("/api/v1/workflows/burst/runs")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", &key)
            .body(Body::from("{}"))
            .unwrap();
        let answer = api.clone().oneshot(asked).await.unwrap();
        let (status, says_when) =
            (answer.status().as_u16(), answer.headers().contains_key(header::RETRY_AFTER));
        if matches!(status, 429 | 503) && says_when {
            refused.notify_one();
            continue;
        }
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(matches!(status, 200 | 201), "{status}: {body}");
        return RunId(body["id"].as_str().unwrap().parse().unwrap());
    }
}

/// All of them at once.
async fn burst(world: &World, refused: &Arc<Notify>) -> JoinSet<RunId> {
    let api = api(world).await;
    let token = world.issuer.push_token("ada@example.com", "api", SystemClock.now());
    (0..BURST).map(|_| start(api.clone(), token.clone(), refused.clone())).collect()
}

async fn register_for(world: &World, tenant: TenantId) {
    let workflow = compile(&[(FileKind::Workflow, WORKFLOW)]).remove(0);
    let (source, hash, by) = (String::new(), "burst".to_owned(), "test".to_owned());
    let new = NewVersion { tenant, workflow, source, hash, by, at: SystemClock.now() };
    world.runtime.store().register(&new).await.unwrap();
}

/// How many tasks wait for a slot, and how many have one.
async fn depth(world: &World) -> (u32, u32) {
    let limits = world.runtime.store().limits(TenantId::DEFAULT).await.unwrap();
    let queue = limits.into_iter().find(|limit| limit.limit == light()).unwrap();
    (queue.waiting, queue.used)
}

/// When something happened to the tasks of a run.
async fn when(world: &World, run: RunId, what: EventKind) -> Vec<Instant> {
    let events = world.events(run).await.into_iter();
    events.filter(|event| event.kind == what).map(|event| event.at).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_load_loses_nothing_and_delays_no_other_tenant_by_more_than_a_round() {
    let world = World::new().await;
    let other = world.runtime.store().tenant("other", SystemClock.now()).await.unwrap();
    register_for(&world, TenantId::DEFAULT).await;
    register_for(&world, other).await;
    // All workers are busy while the burst comes in.
    world.runtime.slots().resize(&light(), Some(0)).await.unwrap();
    let runs: BTreeSet<RunId> = burst(&world, &Arc::default()).await.join_all().await.into_iter().collect();
    assert_eq!(runs.len() as u32, BURST, "whoever was accepted has a run of their own");
    let quiet = StartRun { tenant: other, ..request("burst") };
    let quiet = world.runtime.start(quiet).await.unwrap().record.run.id;
    assert_eq!(depth(&world).await, (BURST + 1, 0), "all wait in line");

    world.runtime.slots().resize(&light(), Some(SLOTS)).await.unwrap();
    world.broker.idle().await;
    assert_eq!(depth(&world).await, (0, 0), "the line is empty and every place is free");
    let mut others = Vec::new();
    for run in &runs {
        let succeeded = world.events(*run).await;
        let succeeded = succeeded.iter().filter(|event| event.kind == EventKind::TaskSucceeded).count();
        assert_eq!((world.run(*run).await.run.state, succeeded), (RunState::Succeeded, 2));
        others.extend(when(&world, *run, EventKind::TaskDispatched).await);
    }
    let record = world.runtime.store().run(other, quiet).await.unwrap().unwrap();
    assert_eq!(record.run.state, RunState::Succeeded);
    // In each round every tenant has a turn, so all it may wait for is what is under way when it comes.
    let (began, sent) = (
        when(&world, quiet, EventKind::TaskQueued).await,
        when(&world, quiet, EventKind::TaskDispatched).await,
    );
    assert_eq!((began.len(), sent.len()), (2, 2), "it stood in line with both tasks");
    for (began, sent) in began.iter().zip(&sent) {
        let meanwhile = others.iter().filter(|at| *began < **at && *at < sent).count() as u32;
        assert!(meanwhile <= SLOTS, "{meanwhile} tasks of the burst came before one of the other tenant");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_finds_no_connection_is_told_to_come_again_and_loses_nothing() {
    let world = World::new().await;
    register_for(&world, TenantId::DEFAULT).await;
    // Both connections wait for a lock that somebody holds for longer than anyone waits for a connection.
    let mut holder = <sqlx::PgConnection as sqlx::Connection>::connect(&world.database.url).await.unwrap();
    sqlx::raw_sql("begin; lock table runs in exclusive mode").execute(&mut holder).await.unwrap();
    let refused = Arc::new(Notify::new());
    let asking = burst(&world, &refused).await;
    refused.notified().await;
    sqlx::raw_sql("commit").execute(&mut holder).await.unwrap();
    let runs: BTreeSet<RunId> = asking.join_all().await.into_iter().collect();
    world.broker.idle().await;
    assert_eq!(runs.len() as u32, BURST);
    for run in runs {
        assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
    }
}
