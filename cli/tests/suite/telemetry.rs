//! Traces, metrics and logs of a run.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{eventually, within_deadline};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::project::{Dev, Project, printed};

const THREE: &str = r#"
name: three
tasks:
  - {name: first, type: bash, config: {command: echo 1}}
  - {name: second, type: bash, depends_on: [first], config: {command: echo 2}}
  - {name: nap, type: sleep, depends_on: [second], config: {duration: 1s}}
  - {name: third, type: bash, depends_on: [nap], config: {command: echo 3}}
"#;

const TOKEN: &str = "only for the operators";
const THEIRS: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn dev(project: &Project, level: &str) -> Dev {
    let settings = [("RUST_LOG", level), ("EBB_PROJECT", "some-project"), ("EBB_OPERATIONS_TOKEN", TOKEN)];
    project.dev_with(&[], &settings)
}

/// Starts a run and waits for its end. Returns its id and the trace id of the answer.
async fn run(dev: &Dev) -> (String, String) {
    let start = dev.request(Method::POST, "/workflows/three/runs").header("traceparent", THEIRS);
    let answer = start.json(&json!({"inputs": {}})).send().await.unwrap();
    let trace = answer.headers()["traceparent"].to_str().unwrap()[3..35].to_owned();
    let id = answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    eventually("the run ends", async || {
        dev.get(&format!("/runs/{id}")).await["finished_at"].is_string().then_some(())
    })
    .await;
    (id, trace)
}

/// The complete lines of the log. Each is one JSON object.
fn lines(project: &Project) -> Vec<Value> {
    let log = std::fs::read_to_string(project.log()).unwrap();
    // The last line may be incomplete.
    let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

async fn operate(dev: &Dev, method: Method, path: &str, token: &str, body: &str) -> (u16, String) {
    let request = reqwest::Client::new().request(method, format!("{}{path}", dev.url));
    let answer = request.bearer_auth(token).body(body.to_owned()).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn a_run_is_one_trace_from_the_request_through_every_task() {
    let project = Project::new().with("three", THREE);
    let dev = dev(&project, "info,ebbflow_host=debug");
    let (id, trace) = run(&dev).await;
    assert_eq!(trace, id.replace('-', ""), "its id is its trace");
    let (labels, name) = ("logging.googleapis.com/labels", format!("projects/some-project/traces/{trace}"));
    // Pushes are answered, and logged, after their commit: perhaps after the run has ended.
    let is_answered = |line: &Value, task: &str| {
        line[labels]["task"] == task && line["httpRequest"]["status"] == 204 && line[labels]["runId"] == id
    };
    let lines = eventually("all pushes are logged", async || {
        let lines = lines(&project);
        let is_logged = |task: &str| lines.iter().any(|line| is_answered(line, task));
        let is_complete = ["first", "second", "third"].iter().all(|task| is_logged(task))
            && lines.iter().any(|line| line["state"] == "succeeded")
            && lines.iter().any(|line| line["httpRequest"]["status"] == 201);
        is_complete.then_some(lines)
    })
    .await;
    let about = |line: &&Value| line.to_string().contains(&id) || line.to_string().contains(&trace);
    let own: Vec<&Value> = lines.iter().filter(about).collect();
    // Reading the run over the API is logged, too, as requests of their own.
    let own: Vec<&Value> =
        own.into_iter().filter(|line| line["httpRequest"]["requestMethod"] != "GET").collect();
    for line in &own {
        assert_eq!(line["logging.googleapis.com/trace"], name, "{line}");
        assert_eq!(line[labels]["runId"], id, "{line}");
        assert!(
            line["severity"].is_string() && line["time"].is_string() && line["message"].is_string(),
            "{line}"
        );
        assert!(line["logging.googleapis.com/sourceLocation"]["line"].is_string(), "{line}");
    }
    let answered = |line: &&&Value, status: u16| line["httpRequest"]["status"] == status;
    let started = own.iter().find(|line| answered(line, 201)).expect("the request that started it");
    assert_eq!(started["httpRequest"]["requestMethod"], "POST");
    let mut spans = Vec::new();
    for task in ["first", "second", "third"] {
        let of_task = |line: &&&Value| answered(line, 204) && line[labels]["task"] == task;
        let line = own.iter().find(of_task).unwrap_or_else(|| panic!("no line of {task}"));
        assert_eq!(line[labels]["attempt"], "1");
        assert_eq!((&line[labels]["workflow"], &line[labels]["tenant"]), (&json!("three"), &json!("1")));
        spans.push(line["logging.googleapis.com/spanId"].as_str().expect("the message's span").to_owned());
    }
    spans.dedup();
    assert!(
        spans.len() == 3 && spans.iter().all(|span| span.len() == 16),
        "each message is a span: {spans:?}"
    );
    assert!(own.iter().any(|line| line["state"] == "succeeded"), "its end is logged");
    let links = dev.get(&format!("/runs/{id}")).await["links"].clone();
    for link in ["self", "console", "logs", "trace"] {
        assert!(links[link].as_str().unwrap().ends_with(&format!("/runs/{id}")), "of the run: {links}");
    }
    for task in ["first", "second", "third"] {
        let path = format!("/runs/{id}/tasks/{task}");
        let links = dev.get(&path).await["links"].clone();
        let ends = |links: &Value, link: &str, end: String| links[link].as_str().unwrap().ends_with(&end);
        assert!(ends(&links, "self", path.clone()) && ends(&links, "logs", format!("{path}/log")), "{links}");
        assert!(ends(&links, "trace", format!("/runs/{id}#{task}")), "{links}");
        let attempts = dev.get(&format!("{path}/attempts")).await;
        let links = &attempts["items"][0]["links"];
        assert!(ends(links, "logs", format!("{path}/log?attempt=1")), "{links}");
        assert!(ends(links, "trace", format!("/runs/{id}#{task}")), "{links}");
    }
}

/// A collector of spans, and the spans that it was sent.
#[derive(Clone, Default)]
struct Collector(Arc<(Mutex<Vec<Value>>, Notify)>);

impl Collector {
    /// Starts a server. Returns its URL.
    async fn serve(&self) -> String {
        let take = |State(collector): State<Self>, Json(request): Json<Value>| async move {
            let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
            collector.0.0.lock().unwrap().extend(spans);
            collector.0.1.notify_one();
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(self.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// The spans of a trace, once its root has arrived.
    async fn whole(&self, trace: &str) -> Vec<Value> {
        within_deadline("the root of the trace arrives", async {
            loop {
                let all = self.0.0.lock().unwrap().clone();
                let of_it: Vec<Value> = all.into_iter().filter(|span| span["traceId"] == trace).collect();
                if of_it.iter().any(|span| span["parentSpanId"].is_null()) {
                    return of_it;
                }
                self.0.1.notified().await;
            }
        })
        .await
    }
}

fn attribute(span: &Value, name: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap().iter();
    attributes.filter(|pair| pair["key"] == name).map(|pair| pair["value"]["stringValue"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_trace_of_a_run_is_exported_with_a_link_to_its_caller() {
    let collector = Collector::default();
    let project = Project::new().with("three", THREE);
    let url = collector.serve().await;
    let dev = project.dev_with(&[], &[("EBB_OTLP_ENDPOINT", &url), ("RUST_LOG", "warn")]);
    let (id, trace) = run(&dev).await;
    // The collector responds meanwhile, on the other thread.
    assert!(tokio::task::block_in_place(|| dev.stops_on_request()), "it exports what is left when it stops");
    let spans = collector.whole(&trace).await;
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len(), "each has an id of its own");
    for span in &spans {
        assert!(span["parentSpanId"].as_str().is_none_or(|parent| ids.contains(parent)), "an orphan: {span}");
        assert_eq!(attribute(span, "run"), json!([id]), "{span}");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    let roots: Vec<&Value> = spans.iter().filter(|span| span["parentSpanId"].is_null()).collect();
    assert_eq!((roots.len(), &roots[0]["name"]), (1, &json!("run of three")));
    let started = spans.iter().find(|span| span["name"].as_str().unwrap().starts_with("POST ")).unwrap();
    assert_eq!(started["links"], json!([{"traceId": &THEIRS[3..35], "spanId": &THEIRS[36..52]}]));
    for task in ["first", "second", "third"] {
        let done = |span: &&Value| attribute(span, "task") == json!([task]);
        let span = spans.iter().find(done).unwrap_or_else(|| panic!("no span of {task}: {spans:#?}"));
        assert_eq!(attribute(span, "attempt"), json!(["1"]), "{span}");
        assert_eq!(
            (&span["kind"], attribute(span, "http.response.status_code")),
            (&json!(5), json!(["204"]))
        );
    }
}

/// The page of metrics, once it contains these lines: a run is counted a moment after its commit.
async fn metrics(dev: &Dev, path: &str, token: &str, lines: &[&str]) -> String {
    eventually(&format!("{lines:?} at {path}"), async || {
        let (status, page) = operate(dev, Method::GET, path, token, "").await;
        assert_eq!(status, 200, "{page}");
        lines.iter().all(|line| page.contains(line)).then_some(page)
    })
    .await
}

#[tokio::test]
async fn operators_read_metrics_that_promtool_accepts() {
    let project = Project::new().with("three", THREE);
    let dev = dev(&project, "warn");
    run(&dev).await;
    let expected = [
        r#"ebbflow_runs_ended_total{workflow="three",state="succeeded"} 1"#,
        r#"ebbflow_tasks_ended_total{kind="bash",state="succeeded"} 3"#,
        r#"ebbflow_tasks_ended_total{kind="sleep",state="succeeded"} 1"#,
        r#"ebbflow_queue_depth{tenant="default"} 0"#,
    ];
    assert_eq!(operate(&dev, Method::GET, "/metrics", "guessed", "").await.0, 401);
    let page = metrics(&dev, "/metrics", TOKEN, &expected).await;
    // In `ebb dev` the admin's token works as well, and each page covers the whole process.
    for path in ["/metrics", "/functions/sweep/metrics", "/functions/execute/metrics"] {
        metrics(&dev, path, &dev.token, &expected).await;
    }
    let rules = include_str!("../../../deploy/prometheus/rules.yaml");
    for rest in rules.split("ebbflow_").skip(1) {
        let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_').unwrap();
        let metric = format!("\nebbflow_{}", &rest[..end]);
        assert!(page.contains(&metric), "an alert asks for {metric}, which the page lacks:\n{page}");
    }
    checked_by_promtool(&["check", "metrics"], page.as_bytes());
}

#[test]
fn promtool_accepts_the_rules() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/prometheus");
    checked_by_promtool(&["check", "rules", &format!("{folder}/rules.yaml")], b"");
    checked_by_promtool(&["check", "config", &format!("{folder}/prometheus.yml")], b"");
}

/// Whether an alert fires after half an hour in which metrics had certain values, one each minute.
fn fires(alert: &str, expected: bool, series: &[(&str, &str)]) {
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/prometheus/rules.yaml");
    let firing = format!("count(ALERTS{{alertname='{alert}', alertstate='firing'}}) or vector(0)");
    let sample = json!({"value": u8::from(expected), "labels": "{}"});
    let series: Vec<Value> =
        series.iter().map(|(series, values)| json!({"series": series, "values": values})).collect();
    let test = json!({
        "rule_files": [rules],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [{"expr": firing, "eval_time": "30m", "exp_samples": [sample]}],
        }],
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.yaml");
    std::fs::write(&file, test.to_string()).unwrap();
    checked_by_promtool(&["test", "rules", file.to_str().unwrap()], b"");
}

#[test]
fn workers_are_missing_if_tasks_wait_and_nobody_executes_or_leases_any() {
    let fires = |expected, others: &[(&str, &str)]| {
        let waiting = [(r#"ebbflow_queue_depth{tenant="acme"}"#, "3x40")];
        fires("workers_missing", expected, &[&waiting, others].concat());
    };
    fires(true, &[]);
    fires(true, &[(r#"ebbflow_attempts_total{kind="bash",outcome="succeeded"}"#, "7x40")]);
    fires(true, &[(r#"ebbflow_workers{queue="gpu"}"#, "0x40")]);
    fires(false, &[(r#"ebbflow_attempts_total{kind="bash",outcome="succeeded"}"#, "7+5x40")]);
    // Execute counts no attempts where all queues are pools, whose workers are busy for hours.
    fires(false, &[(r#"ebbflow_workers{queue="gpu"}"#, "1x40")]);
    self::fires("workers_missing", false, &[(r#"ebbflow_queue_depth{tenant="acme"}"#, "0x40")]);
}

#[test]
fn a_service_is_down_if_it_does_not_respond_or_most_of_several_responses_are_errors() {
    let errors = r#"ebbflow_http_requests_total{instance="a",status="503"}"#;
    fires("service_down", true, &[(r#"up{job="ebbflow",instance="a"}"#, "0x40")]);
    fires("service_down", true, &[(errors, "0+6x40")]);
    fires(
        "service_down",
        false,
        &[(errors, "0+6x40"), (r#"ebbflow_http_requests_total{instance="a",status="200"}"#, "0+9x40")],
    );
    // Now and then one request of one: three in a quarter of an hour.
    fires("service_down", false, &[(errors, "0x4 1x4 2x4 3x4 4x4 5x4 6x4")]);
}

/// Checks something with promtool, if it is installed.
fn checked_by_promtool(arguments: &[&str], input: &[u8]) {
    let mut promtool = Command::new("promtool");
    promtool.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut process) = promtool.spawn() else {
        return testkit::skip("promtool is not installed (Debian's package `prometheus` has it)");
    };
    process.stdin.take().unwrap().write_all(input).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
}

#[tokio::test]
async fn the_log_level_changes_without_a_restart() {
    let project = Project::new();
    let dev = dev(&project, "warn");
    let debug = || lines(&project).iter().filter(|line| line["severity"] == "DEBUG").count();
    let level = |method, token, body| operate(&dev, method, "/log-level", token, body);
    assert_eq!(level(Method::PUT, "guessed", "debug").await.0, 401);
    assert_eq!(level(Method::GET, TOKEN, "").await, (200, "warn\n".into()));
    assert_eq!(debug(), 0);
    let (status, error) = level(Method::PUT, TOKEN, "info,ebbflow_host=noisy").await;
    assert!(status == 400 && error.contains("info,ebbflow_runtime=debug"), "{status} {error}");
    assert_eq!(level(Method::PUT, TOKEN, "debug").await, (200, "debug\n".into()));
    assert_eq!(level(Method::GET, TOKEN, "").await.1, "debug\n");
    eventually("requests are logged", async || {
        assert_eq!(level(Method::GET, &dev.token, "").await.0, 200);
        (debug() > 0).then_some(())
    })
    .await;
}
