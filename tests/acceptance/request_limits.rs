//! A platform that ends requests after a while: what takes longer ends itself before that, in order.

use std::sync::Arc;

use bus::local::{Broker, Faults};
use bus::{Endpoint, Subscription, SystemClock};
use ebbflow_tests::{FunctionProcess, build};
use futures::future::join_all;
use model::{ErrorClass, RunState, Topic};
use serde_json::json;
use testkit::within_deadline;

use crate::processes::serve;
use crate::world::{AUDIENCE, ISSUER, PUSHER};

type World = testkit::World<Broker, SystemClock>;

/// It leaves five seconds to work: enough to open a stream on a busy machine.
const LIMIT_SECONDS: &str = "20";

const NAPS: &str = "{name: naps, tasks: [{name: nap, type: sleep, config: {duration: 1h}}]}";

/// Takes an hour, and may be tried again.
const WORKS: &str = "
name: works
tasks:
  - {name: work, type: bash, config: {command: sleep 3600}, retry_policy: {max_retries: 3}}
";

async fn world() -> World {
    let broker = Broker::new(Arc::new(SystemClock), ISSUER.clone(), PUSHER, Faults::default());
    testkit::World::on_postgres(broker, SystemClock).await
}

/// The settings of a function whose requests end after a while.
async fn limited(world: &World) -> Vec<(&'static str, String)> {
    let host = serve(&world.bus).await;
    vec![
        ("DATABASE_URL", world.database_url().to_owned()),
        ("EBB_BROKER_URL", host.clone()),
        ("EBB_PUSH_AUTH", "none".to_owned()),
        ("EBB_REQUEST_SECONDS", LIMIT_SECONDS.to_owned()),
        ("EBB_API_AUDIENCE", "api".to_owned()),
        ("EBB_API_ISSUER", ISSUER.url().to_owned()),
        ("EBB_API_KEYS_URL", format!("{host}/keys")),
        ("EBB_API_ACCOUNTS", "ada@example.com".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_streams_end_by_themselves() {
    let program = build().await;
    let world = world().await;
    world.write(NAPS).await;
    let run = world.start("naps").await;
    let token = ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "ada", "aud": "api", "email": "ada@example.com", "email_verified": true,
        "exp": world.now().timestamp() + 3600,
    }));
    let log = format!("/api/v1/runs/{run}/tasks/nap/logs/follow");
    let settings = limited(&world).await;
    let [trigger, console] =
        ["trigger", "console"].map(|name| FunctionProcess::start(name, &program, settings.clone()));
    let streams = [
        (&trigger, "/api/v1/events"),
        (&trigger, &log),
        (&console, "/api/v1/events"),
        (&console, "/live"),
        (&console, &log),
    ];
    let follow = async |(process, path): (&FunctionProcess, &str)| {
        process.wait_until_ready().await;
        let request = reqwest::Client::new().get(process.url(path)).bearer_auth(&token);
        let stream = request.send().await.unwrap().error_for_status().unwrap();
        let what = format!("{path} of {} ends", process.name);
        // A connection that is cut in the middle of a stream is an error here.
        let received = within_deadline(&what, stream.text()).await.unwrap();
        assert!(received.contains("listening"), "{what}: {received}");
    };
    join_all(streams.map(follow)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_ends_before_its_request_and_says_what_to_use_instead() {
    let program = build().await;
    let world = world().await;
    world.write(WORKS).await;
    let execute = FunctionProcess::start("execute", &program, limited(&world).await);
    execute.wait_until_ready().await;
    let subscription = Subscription::new("execute", Endpoint::Url(execute.url("/push")), AUDIENCE);
    world.bus.subscribe(&Topic::Work("light".into()), subscription);
    let run = world.start("works").await;
    within_deadline("the attempt ends", world.bus.idle()).await;
    assert_eq!(world.run(run).await.run.state, RunState::Failed);
    let task = world.tasks(run).await.remove(0).task;
    let failure = task.failure.unwrap();
    assert_eq!((task.attempt, failure.class), (1, ErrorClass::Permanent), "a second one would end as well");
    assert!(failure.message.contains("longer than 5 s"), "{}", failure.message);
}
