//! A collector on this machine, and what it receives.

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use tower::ServiceExt;

use super::*;

struct Given(&'static str);

#[async_trait]
impl Passwords for Given {
    async fn current(&self) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
}

type Received = Arc<Mutex<Vec<(String, HeaderMap, Value)>>>;

async fn collector() -> (String, Received) {
    let received = Received::default();
    let requests = received.clone();
    let accept = move |Path(what): Path<String>, headers: HeaderMap, axum::Json(body): axum::Json<Value>| {
        requests.lock().unwrap().push((what, headers, body));
        async { "{}" }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/{what}", post(accept));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

async fn exporter(token: Option<&'static str>) -> (Arc<Exporter>, Received) {
    let (endpoint, received) = collector().await;
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", "s3cret".parse().unwrap());
    let (project, region) = (Some("some-project".into()), Some("us-central1".into()));
    let installation = "ebbflow-test".into();
    let config = OtlpConfig { endpoint, headers, auth: OtlpAuth::None, installation, project, region };
    let mut exporter = Exporter::new(&config, "sweep").unwrap();
    exporter.tokens = token.map(|token| Box::new(Given(token)) as Box<dyn Passwords>);
    (Arc::new(exporter), received)
}

#[tokio::test]
async fn requests_carry_credentials_and_say_which_instance_sends() {
    let (exporter, received) = exporter(Some("a token")).await;
    exporter.send_metrics().await;
    let (what, headers, body) = received.lock().unwrap().pop().unwrap();
    assert_eq!(what, "metrics");
    assert!(headers["x-api-key"] == "s3cret" && headers["authorization"] == "Bearer a token", "{headers:?}");
    let attributes = body["resourceMetrics"][0]["resource"]["attributes"].as_array().unwrap().clone();
    let of =
        |key: &str| attributes.iter().find(|attribute| attribute["key"] == key).unwrap()["value"].clone();
    assert_eq!(of("service.name")["stringValue"], "ebbflow-test-sweep");
    assert_eq!(of("cluster")["stringValue"], "ebbflow-test", "another installation has other alerts");
    assert_eq!(of("gcp.project_id")["stringValue"], "some-project");
    assert_eq!(of("cloud.region")["stringValue"], "us-central1");
    let other = Resource::new("ebbflow", "sweep", None, None).attributes();
    assert_ne!(of("service.instance.id"), other[1]["value"], "another instance has another id");
}

#[tokio::test]
async fn what_there_is_is_sent_before_the_last_response() {
    let (exporter, received) = exporter(None).await;
    let flush = {
        let exporter = exporter.clone();
        from_fn(move |request, next| exporter.clone().before_response(request, next))
    };
    let router = Router::new()
        .route("/push", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .layer(flush);
    let ask = |path: &str| {
        let request = axum::http::Request::get(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request)
    };
    ask("/livez").await.unwrap();
    assert!(received.lock().unwrap().is_empty(), "a probe sends nothing");
    ask("/push").await.unwrap();
    let sent = received.lock().unwrap().iter().filter(|(what, ..)| what == "metrics").count();
    assert_eq!(sent, 1, "the collector has it when the response is there");
    // While another request is in progress, there will be another chance.
    let others = InProgress::among(&exporter.requests);
    ask("/push").await.unwrap();
    drop(others);
    assert_eq!(received.lock().unwrap().iter().filter(|(what, ..)| what == "metrics").count(), 1);
}

/// A server for tokens that never answers.
#[derive(Clone, Default)]
struct Silent(Arc<AtomicUsize>);

#[async_trait]
impl Passwords for Silent {
    async fn current(&self) -> Result<String, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_response_waits_only_shortly_for_what_does_not_respond_and_the_next_one_not_at_all() {
    let (exporter, _) = exporter(None).await;
    let silent = Silent::default();
    let mut exporter = Arc::into_inner(exporter).unwrap();
    exporter.tokens = Some(Box::new(silent.clone()));
    let exporter = Arc::new(exporter);
    let flush = from_fn(move |request, next| exporter.clone().before_response(request, next));
    let router = Router::new().route("/push", get(|| async { "ok" })).layer(flush);
    for _ in 0..2 {
        let request = axum::http::Request::get("/push").body(Body::empty()).unwrap();
        let response = testkit::within_deadline("the response", router.clone().oneshot(request)).await;
        assert!(response.unwrap().status().is_success());
        assert_eq!(silent.0.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn no_request_has_more_points_than_google_accepts() {
    let family = |points: usize| {
        let series =
            (0..points).map(|n| (vec![("n".to_owned(), n.to_string())], registry::Value::Count(n as u64)));
        Family { metric: &super::super::catalogue::METRICS[0], series: series.collect() }
    };
    for (sizes, expected) in
        [(&[][..], &[0][..]), (&[3, 4], &[7]), (&[200], &[200]), (&[150, 60, 450], &[200, 200, 200, 60])]
    {
        let portions = portions(sizes.iter().copied().map(family).collect());
        let points: Vec<usize> =
            portions.iter().map(|portion| portion.iter().map(|family| family.series.len()).sum()).collect();
        assert_eq!(points, expected, "{sizes:?}");
    }
}

#[test]
fn a_partial_success_is_noticed() {
    for (response, expected) in [
        (json!({}), false),
        (json!({"rejectedDataPoints": "0", "errorMessage": "a hint"}), false),
        (json!({"rejectedDataPoints": "3", "errorMessage": "no location"}), true),
        (json!({"rejectedSpans": 1}), true),
        (Value::Null, false),
    ] {
        assert_eq!(rejected(&response), expected, "{response}");
    }
}
