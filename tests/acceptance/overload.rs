//! Ten times the capacity at once: every request is answered, no run is lost, and other tenants are not delayed.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::{Access, Api, Links};
use auth::{Authenticator, Policy};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use bus::SystemClock;
use language::FileKind;
use model::{Clock, EventKind, Limit, RunId, RunState, TenantId};
use runtime::StartRun;
use serde_json::Value;
use sqlx::{Connection, PgConnection};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tower::ServiceExt;
use uuid::Uuid;

use crate::world::{ISSUER, World};

/// The slots of the queue.
const SLOTS: u32 = 10;

/// The number of runs requested at once.
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

/// The API, with two connections to the world's database.
async fn api(world: &World) -> Router {
    let store = store::Postgres::connect(world.database_url(), 2).await.unwrap();
    let (database, accounts) = (read::Database::new(&store), accounts::Accounts::new(&store));
    let clock = world.runtime.clock().clone();
    let runtime = Arc::new(runtime::Runtime::new(Arc::new(store), Arc::new(world.bus.clone()), clock));
    let app = host::App { runtime, ..world.app.clone() };
    let auth = ISSUER.verifier("api");
    let policy = Policy::read("ada@example.com=admin:*").unwrap();
    let access = Access::new(Authenticator::new([auth.into()]), policy);
    let connected = host::Connected { app, database, accounts };
    api::router(Api::new(connected, access, Links::local("http://127.0.0.1")))
}

/// Requests a run until it is accepted. Notifies `refused` of every answer that asks to retry later.
async fn request_run(api: Router, token: String, refused: Arc<Notify>) -> RunId {
    let key = Uuid::now_v7().to_string();
    loop {
        let request = Request::post("/api/v1/workflows/burst/runs")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", &key)
            .body(Body::from("{}"))
            .unwrap();
        let answer = api.clone().oneshot(request).await.unwrap();
        let (status, has_retry_after) =
            (answer.status().as_u16(), answer.headers().contains_key(header::RETRY_AFTER));
        if matches!(status, 429 | 503) && has_retry_after {
            refused.notify_one();
            continue;
        }
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(matches!(status, 200 | 201), "{status}: {body}");
        return RunId(body["id"].as_str().unwrap().parse().unwrap());
    }
}

/// Requests all runs at once.
async fn burst(world: &World, refused: &Arc<Notify>) -> JoinSet<RunId> {
    let api = api(world).await;
    let token = ISSUER.push_token("ada@example.com", "api", SystemClock.now());
    (0..BURST).map(|_| request_run(api.clone(), token.clone(), refused.clone())).collect()
}

async fn register_for(world: &World, tenant: TenantId) {
    world.register_all(tenant, testkit::compile(&[(FileKind::Workflow, WORKFLOW)])).await;
}

/// The number of tasks that wait for a slot of the queue, and of those that hold one.
async fn depth(world: &World) -> (u32, u32) {
    let limits = world.store().limits(TenantId::DEFAULT).await.unwrap();
    let queue = limits.into_iter().find(|limit| limit.limit == light()).unwrap();
    (queue.waiting, queue.used)
}

/// Records who is queued and who is granted a slot. Both happen under the lock of the limit, so the numbers are in the order
/// of the commits.
const RECORD_TURNS: &str = "
create table turns (number bigserial, transaction xid8, tenant integer, run uuid, task integer, granted boolean);
create function record_turn() returns trigger language plpgsql security definer as $$
begin
    if tg_op = 'INSERT' then
        insert into turns (transaction, tenant, run, task, granted)
            values (pg_current_xact_id(), new.tenant, new.run, new.idx, false);
    elsif old.granted_at is null and (tg_op = 'DELETE' or new.granted_at is not null) then
        insert into turns (transaction, tenant, run, task, granted)
            values (pg_current_xact_id(), old.tenant, old.run, old.idx, true);
    end if;
    return null;
end $$;
create trigger record_turn after insert or update or delete on slot_waiters for each row execute function record_turn();
";

/// For each task of a run that was queued, the number of tasks of other tenants that were granted a slot meanwhile.
const OVERTAKING: &str = "
select (select count(*) from turns other
         where other.granted and other.tenant <> queued.tenant and other.transaction <> got.transaction
           and other.number between queued.number and got.number)
  from turns queued join turns got using (run, task)
 where run = $1 and got.granted and not queued.granted";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_load_loses_no_run_and_delays_another_tenant_by_at_most_one_round() {
    let world = World::new().await;
    let mut observer = PgConnection::connect(world.database_url()).await.unwrap();
    sqlx::raw_sql(RECORD_TURNS).execute(&mut observer).await.unwrap();
    let other = world.store().tenant("other", SystemClock.now()).await.unwrap();
    register_for(&world, TenantId::DEFAULT).await;
    register_for(&world, other).await;
    // All slots are taken while the burst arrives.
    world.runtime.slots().resize(&light(), Some(0)).await.unwrap();
    let runs: BTreeSet<RunId> = burst(&world, &Arc::default()).await.join_all().await.into_iter().collect();
    assert_eq!(runs.len() as u32, BURST, "every accepted request has its own run");
    let quiet = StartRun { tenant: other, ..testkit::start_run("burst") };
    let quiet = world.runtime.start(quiet).await.unwrap().record.run.id;
    assert_eq!(depth(&world).await, (BURST + 1, 0), "all wait for a slot");

    world.runtime.slots().resize(&light(), Some(SLOTS)).await.unwrap();
    world.bus.idle().await;
    assert_eq!(depth(&world).await, (0, 0), "no task waits and every slot is free");
    for run in &runs {
        let succeeded = world.events(*run).await;
        let succeeded = succeeded.iter().filter(|event| event.kind == EventKind::TaskSucceeded).count();
        assert_eq!((world.run(*run).await.run.state, succeeded), (RunState::Succeeded, 2));
    }
    let record = world.store().run(other, quiet).await.unwrap().unwrap();
    assert_eq!(record.run.state, RunState::Succeeded);
    // Every tenant gets a slot in each round, so a task waits at most for the tasks that hold one when it is queued.
    let overtaking: Vec<i64> =
        sqlx::query_scalar(OVERTAKING).bind(quiet.0).fetch_all(&mut observer).await.unwrap();
    // The second has no row if it is granted a slot in the transaction that queues it.
    assert!((1..=2).contains(&overtaking.len()), "its first task waited: {overtaking:?}");
    assert!(
        overtaking.iter().all(|tasks| *tasks <= SLOTS.into()),
        "{overtaking:?} tasks of the burst overtook"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_finds_no_connection_is_answered_with_retry_after_and_loses_nothing() {
    let world = World::new().await;
    register_for(&world, TenantId::DEFAULT).await;
    // Both connections wait for a lock that is held until a request has given up on getting a connection.
    let mut holder = PgConnection::connect(world.database_url()).await.unwrap();
    sqlx::raw_sql("begin; lock table runs in exclusive mode").execute(&mut holder).await.unwrap();
    let refused = Arc::new(Notify::new());
    let requests = burst(&world, &refused).await;
    refused.notified().await;
    sqlx::raw_sql("commit").execute(&mut holder).await.unwrap();
    let runs: BTreeSet<RunId> = requests.join_all().await.into_iter().collect();
    world.bus.idle().await;
    assert_eq!(runs.len() as u32, BURST);
    for run in runs {
        assert_eq!(world.run(run).await.run.state, RunState::Succeeded);
    }
}
