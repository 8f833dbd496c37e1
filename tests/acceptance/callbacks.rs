//! Callbacks reach whoever wants to be told, with secrets that nobody else sees.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bus::{Endpoint, Subscription};
use language::FileKind;
use model::{EventKind, RunState, TenantId, Topic};
use serde_json::{Value, json};
use store::RunFilter;

use crate::world::{AUDIENCE, World};

type Received = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

async fn receive(State(received): State<Received>, headers: HeaderMap, body: String) -> StatusCode {
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    received.lock().unwrap().push((headers, body));
    StatusCode::OK
}

/// Somebody who listens at an address and writes down what comes.
async fn listener() -> (String, Received) {
    let received = Received::default();
    let router = Router::new().route("/hook", post(receive)).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_told_by_webhook_message_and_workflow() {
    let world = World::new().await;
    let (address, received) = listener().await;
    let topic = Topic::Named("alerts".into());
    let heard = Received::default();
    let router = Router::new().route("/push", post(receive)).with_state(heard.clone());
    let endpoint = Endpoint::Router(router, "/push".into());
    world.broker.subscribe(&topic, Subscription::new("alerts", endpoint, AUDIENCE));
    let text = format!(
        "
name: fails
inputs: {{who: {{type: string, default: ana}}}}
on_success: {{notify: {{webhook: '{address}'}}}}
on_failure:
  notify:
    - webhook: {{url: '{address}', headers: {{x-run: '{{{{ event.run }}}}'}}, body: {{to: '{{{{ inputs.who }}}}', said: '{{{{ event.error }}}}'}}}}
    - webhook: '{address}'
    - message: alerts
    - workflow: {{name: alarm, inputs: {{what: '{{{{ event.workflow }}}}'}}}}
tasks: [{{name: no, type: fail, config: {{message: no luck, class: permanent}}}}]
"
    );
    let alarm = "name: alarm\ninputs: {what: {type: string}}\ntasks: [{name: ring, type: noop}]\n";
    world.write(&[(FileKind::Workflow, &text), (FileKind::Workflow, alarm)]).await;
    let run = world.trigger("fails").await;
    assert_eq!(world.state(run).await, RunState::Failed);

    let said = "task `no` failed: no luck";
    let told = received.lock().unwrap().clone();
    let own = told.iter().find(|(_, body)| body["to"] == "ana").expect("the body that was asked for");
    assert_eq!((own.1["said"].as_str(), own.0["x-run"].to_str().unwrap()), (Some(said), &*run.to_string()));
    let usual = told.iter().find(|(_, body)| body["to"].is_null()).expect("what happened, as it is");
    for (field, value) in [("on", "failure"), ("state", "failed"), ("workflow", "fails"), ("error", said)] {
        assert_eq!(usual.1[field], value, "{}", usual.1);
    }
    assert_eq!(told.len(), 2, "nobody was told of a success");
    assert_eq!(heard.lock().unwrap().len(), 1, "the topic has its message");
    let filter = RunFilter { workflow: Some("alarm".into()), limit: 10, ..RunFilter::default() };
    let alarms = world.runtime.store().runs(TenantId::DEFAULT, &filter).await.unwrap();
    assert_eq!(alarms.len(), 1);
    assert_eq!(alarms[0].facts.inputs["what"], json!("fails"));
    let noted = world.events(run).await.into_iter().filter(|event| event.kind == EventKind::RunCalledBack);
    assert_eq!(noted.count(), 4, "the timeline tells of each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_and_a_missed_deadline_are_told() {
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
  - {{name: rest, type: sleep, depends_on: [wavers], config: {{duration: 2s}}}}
"
    );
    world.write(&[(FileKind::Workflow, &text)]).await;
    let run = world.trigger("late").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let mut occasions: Vec<String> =
        received.lock().unwrap().iter().map(|(_, body)| body["on"].as_str().unwrap().to_owned()).collect();
    occasions.sort();
    assert_eq!(occasions, ["missed_deadline", "retry"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_takes_too_long_is_ended() {
    let world = World::new().await;
    let text = "
name: slow
timeout_seconds: 1
tasks:
  - {name: wait, type: wait_for_signal, config: {signal: never}}
  - {name: after, type: noop, depends_on: [wait]}
";
    world.write(&[(FileKind::Workflow, text)]).await;
    let run = world.trigger("slow").await;
    let record = world.finished(run).await.run;
    let said = "the run took longer than its timeout_seconds of 1";
    assert_eq!((record.state, record.error.as_deref()), (RunState::Failed, Some(said)));
    assert_eq!(world.states(run).await, ["failed", "upstream_failed"]);
}
