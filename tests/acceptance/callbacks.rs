//! Callbacks reach webhooks, topics and workflows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bus::{Endpoint, Subscription, SystemClock};
use model::{EventKind, RunState, Topic};
use runtime::Settings;
use serde_json::{Value, json};
use testkit::eventually;

use crate::world::{AUDIENCE, World};

type Received = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

async fn receive(State(received): State<Received>, headers: HeaderMap, body: String) -> StatusCode {
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    received.lock().unwrap().push((headers, body));
    StatusCode::OK
}

/// Starts a server that records requests. Returns its address.
async fn listener() -> (String, Received) {
    let received = Received::default();
    let router = Router::new().route("/hook", post(receive)).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_calls_back_by_webhook_message_and_workflow() {
    let world = World::new().await;
    let (address, received) = listener().await;
    let topic = Topic::Named("alerts".into());
    let messages = Received::default();
    let router = Router::new().route("/push", post(receive)).with_state(messages.clone());
    let endpoint = Endpoint::Router(router, "/push".into());
    world.bus.subscribe(&topic, Subscription::new("alerts", endpoint, AUDIENCE));
    let text = format!(
        "
name: fails
inputs: {{who: {{type: string, default: ana}}}}
on_success: {{notify: {{webhook: '{address}'}}}}
on_failure:
  notify:
    - webhook: {{url: '{address}', headers: {{x-run: '{{{{ event.run }}}}'}}, body: {{to: '{{{{ inputs.who }}}}', error: '{{{{ event.error }}}}'}}}}
    - webhook: '{address}'
    - message: alerts
    - workflow: {{name: alarm, inputs: {{what: '{{{{ event.workflow }}}}'}}}}
tasks: [{{name: no, type: fail, config: {{message: no luck, class: permanent}}}}]
"
    );
    let alarm = "name: alarm\ninputs: {what: {type: string}}\ntasks: [{name: ring, type: noop}]\n";
    world.write_all(&[&text, alarm]).await;
    let run = world.start("fails").await;
    assert_eq!(world.state(run).await, RunState::Failed);

    let error = "task `no` failed: no luck";
    let requests = received.lock().unwrap().clone();
    let own = requests.iter().find(|(_, body)| body["to"] == "ana").expect("the body from the template");
    assert_eq!((own.1["error"].as_str(), own.0["x-run"].to_str().unwrap()), (Some(error), &*run.to_string()));
    let usual = requests.iter().find(|(_, body)| body["to"].is_null()).expect("the default body");
    for (field, value) in [("on", "failure"), ("state", "failed"), ("workflow", "fails"), ("error", error)] {
        assert_eq!(usual.1[field], value, "{}", usual.1);
    }
    // Each may arrive twice, with the same id.
    let is_expected = |body: &Value| body["to"] == "ana" || body["id"] == usual.1["id"];
    assert!(requests.iter().all(|(_, body)| is_expected(body)), "on_success did not call back: {requests:?}");
    assert!(!messages.lock().unwrap().is_empty(), "the topic received its message");
    let alarms = world.runs("alarm").await;
    assert_eq!(alarms.len(), 1);
    assert_eq!(alarms[0].facts.inputs["what"], json!("fails"));
    let recorded = world.events(run).await.into_iter().filter(|event| event.kind == EventKind::RunCalledBack);
    assert!(recorded.count() >= 4, "the history records each callback");
}

/// What the callbacks were about, each with its id. One that arrived twice counts once.
fn occasions(received: &Received) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    received.lock().unwrap().iter().map(|(_, body)| (text(&body["on"]), text(&body["id"]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_and_a_missed_deadline_call_back() {
    let world = World::new().await;
    let (address, received) = listener().await;
    let text = format!(
        "
name: late
deadline_seconds: 1
on_missed_deadline: {{notify: {{webhook: '{address}'}}}}
tasks:
  - name: wavers
    type: bash
    retry_policy: {{max_retries: 1, initial_delay_seconds: 0.1}}
    on_retry: {{notify: {{webhook: '{address}'}}}}
    config: {{command: 'test {{{{ task.attempt }}}} = 2'}}
  - {{name: rest, type: wait_for_signal, depends_on: [wavers], config: {{signal: enough}}}}
"
    );
    world.write(&text).await;
    let run = world.start("late").await;
    // The run goes on until both have called back, however long that takes.
    let called_back = eventually("both call back", async || {
        let occasions = occasions(&received);
        (occasions.len() >= 2).then_some(occasions)
    })
    .await;
    let on: Vec<&str> = called_back.iter().map(|(on, _)| on.as_str()).collect();
    assert_eq!(on, ["missed_deadline", "retry"]);
    world.signal(run, "enough").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(occasions(&received), called_back);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_exceeds_its_timeout_fails() {
    let world = World::new().await;
    let text = "
name: slow
timeout_seconds: 1
tasks:
  - {name: wait, type: wait_for_signal, config: {signal: never}}
  - {name: after, type: noop, depends_on: [wait]}
";
    world.write(text).await;
    let run = world.start("slow").await;
    let record = world.finished(run).await.run;
    let expected = "the run took longer than its timeout_seconds of 1";
    assert_eq!((record.state, record.error.as_deref()), (RunState::Failed, Some(expected)));
    assert_eq!(world.states(run).await, ["failed", "upstream_failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_starts_a_run_beyond_the_quota_is_a_dead_letter() {
    let world = World::with(Settings { run_quota: Some(1), ..Settings::default() }).await;
    let wait = "tasks: [{name: wait, type: wait_for_signal, config: {signal: enough}}]";
    let calls = format!("{{name: calls, on_success: {{notify: {{workflow: {{name: after}}}}}}, {wait}}}");
    world.write_all(&[&calls, &format!("{{name: after, {wait}}}")]).await;
    let run = world.start("calls").await;
    // Another process, without a quota, leaves no room.
    world.process(SystemClock).await.start(testkit::start_run("after")).await.unwrap();
    world.signal(run, "enough").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let letters = world.dead_letters().await;
    assert!(letters.len() == 1 && letters[0].reason.contains("EBB_QUOTA_RUNS"), "{letters:?}");
    assert_eq!(world.runs("after").await.len(), 1);
}
