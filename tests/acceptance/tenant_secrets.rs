//! A tenant that names another tenant's secret gets nothing, wherever it names it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bus::Bus;
use model::message::{PollDue, PollTarget};
use model::{Message, RunId, RunState, TaskIndex, TaskKey, TenantId, TriggerKey};
use runtime::{FileKind, StartRun};
use serde_json::{Value, json};

use crate::world::{World, token};

const OF_ACME: &str = "key-of-acme-1234";

/// Names the secret of another tenant in a program, in a sensor's connection and in a callback.
const THIEF: &str = "
name: thief
on_failure: {notify: [{webhook: {url: 'SERVER', headers: {x-key: '{{ secrets.KEY }}'}}}]}
tasks:
  - {name: program, type: bash, config: {env: {KEY: '{{ secrets.KEY }}'}, command: 'echo $KEY'}}
  - {name: request, type: http, config: {method: POST, url: 'SERVER', auth: {bearer: '{{ secrets.KEY }}'}}}
  - {name: sensor, type: sensor, config: {sql: {url: '{{ secrets.KEY }}', query: select 1}}}
";

/// The same in a trigger's sensor.
const WATCHER: &str = "
name: watcher
triggers: [{name: poll, sensor: {http: {url: 'SERVER?{{ secrets.KEY }}'}}}]
tasks: [{name: a, type: noop}]
";

/// Names a secret in a program that workers lease.
const LEASED: &str = "
name: leased
tasks:
  - {name: program, type: bash, queue: tiles, config: {env: {KEY: '{{ secrets.KEY }}'}, command: 'echo $KEY'}}
";

/// Uses a secret of its own, and prints another one and a guess.
const OWNER: &str = "
name: owner
tasks:
  - name: use
    type: bash
    config:
      env: {KEY: '{{ secrets.KEY }}'}
      command: 'test $KEY = key-of-mallory && echo own $(printf other-key-; echo of-mallory) guess key-of-acme-1234'
";

/// A server that records whether anything reached it.
async fn server() -> (String, Arc<Mutex<Vec<HeaderMap>>>) {
    type Received = Arc<Mutex<Vec<HeaderMap>>>;
    async fn receive(State(received): State<Received>, headers: HeaderMap) -> StatusCode {
        received.lock().unwrap().push(headers);
        StatusCode::OK
    }
    let received = Received::default();
    let router = Router::new().route("/", post(receive).get(receive)).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, received)
}

/// A world in which acme has a secret, and the other tenant.
async fn world() -> (World, TenantId) {
    let world = World::new().await;
    world.store().tenant("acme", world.now()).await.unwrap();
    let mallory = world.store().tenant("mallory", world.now()).await.unwrap();
    for tenant in ["acme", "default"] {
        world.write_secret(tenant, "KEY", OF_ACME);
    }
    (world, mallory)
}

/// Runs a workflow of a tenant to its end.
async fn run(world: &World, tenant: TenantId, workflow: &str, text: &str) -> (RunId, RunState) {
    world.register_all(tenant, testkit::compile(&[(FileKind::Workflow, text)])).await;
    let start = StartRun { tenant, ..testkit::start_run(workflow) };
    let id = world.runtime.start(start).await.unwrap().record.run.id;
    world.bus.idle().await;
    (id, world.store().run(tenant, id).await.unwrap().unwrap().run.state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_requests_sensors_and_callbacks_have_no_secret_of_another_tenant() {
    let (world, mallory) = world().await;
    let (address, received) = server().await;
    let (id, state) = run(&world, mallory, "thief", &THIEF.replace("SERVER", &address)).await;
    assert_eq!(state, RunState::Failed);
    assert_eq!(world.states(id).await, ["failed", "failed", "failed"]);
    let history = format!("{:?} {:?}", world.tasks(id).await, world.events(id).await);
    let refusals = history.matches("tenant `mallory` has no secret `KEY`").count();
    assert!(refusals >= 4, "three tasks and the callback say so: {history}");
    assert!(!history.contains(OF_ACME), "{history}");
    assert_eq!(received.lock().unwrap().len(), 0, "nothing was sent");
}

/// What a worker of a tenant gets, once a run waits for one.
async fn lease(world: &World, url: &str, tenant: (TenantId, &str)) -> (RunId, Value) {
    let (id, name) = tenant;
    let queue = (FileKind::Queue, "name: tiles\nkind: pool\n");
    world.register_all(id, testkit::compile(&[queue, (FileKind::Workflow, LEASED)])).await;
    let start = StartRun { tenant: id, ..testkit::start_run("leased") };
    let run = world.runtime.start(start).await.unwrap().record.run.id;
    world.bus.idle().await;
    let asked = reqwest::Client::new()
        .post(format!("{url}/api/v1/execution/lease"))
        .bearer_auth(token())
        .header("x-ebb-tenant", name)
        .json(&json!({"worker": name, "queue": "tiles"}));
    (run, asked.send().await.unwrap().json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_leases_gets_no_secret_of_another_tenant() {
    let (world, mallory) = world().await;
    let acme = world.store().tenant("acme", world.now()).await.unwrap();
    let url = world.serve_api().await;
    let (_, own) = lease(&world, &url, (acme, "acme")).await;
    assert_eq!(own["items"][0]["secrets"], json!([OF_ACME]), "{own}");
    let (run, foreign) = lease(&world, &url, (mallory, "mallory")).await;
    assert_eq!(foreign["items"], json!([]), "{foreign}");
    assert_eq!(world.states(run).await, ["failed"]);
    let history = format!("{:?} {:?} {foreign}", world.tasks(run).await, world.events(run).await);
    assert!(history.contains("tenant `mallory` has no secret `KEY`"), "{history}");
    assert!(!history.contains(OF_ACME), "{history}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_triggers_sensor_has_no_secret_of_another_tenant() {
    let (world, mallory) = world().await;
    let (address, received) = server().await;
    let text = WATCHER.replace("SERVER", &address);
    world.register_all(mallory, testkit::compile(&[(FileKind::Workflow, &text)])).await;
    let target = PollTarget::Trigger { workflow: "watcher".into(), name: "poll".into() };
    let due = PollDue { tenant: mallory, queue: "light".into(), target };
    world.bus.publish(&[Message::PollDue(due)]).await.unwrap();
    world.bus.idle().await;
    let key = TriggerKey { tenant: mallory, workflow: "watcher".into(), name: "poll".into() };
    assert_eq!(world.store().trigger(&key).await.unwrap().unwrap().failures, 1);
    assert_eq!(received.lock().unwrap().len(), 0, "nothing was sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_shows_none_of_its_own_tenants_secrets_and_confirms_no_guess_about_anothers() {
    let (world, mallory) = world().await;
    world.write_secret("mallory", "KEY", "key-of-mallory");
    world.write_secret("mallory", "OTHER", "other-key-of-mallory");
    let (id, state) = run(&world, mallory, "owner", OWNER).await;
    assert_eq!(state, RunState::Succeeded, "it got its own secret of that name");
    let key = TaskKey { run: id, task: TaskIndex(0) };
    let log = world.store().log(key, 1, 0, 100).await.unwrap();
    let lines: Vec<&str> = log.iter().map(|(_, line)| line.line.as_str()).collect();
    assert!(lines.contains(&"own *** guess key-of-acme-1234"), "{lines:?}");
}
