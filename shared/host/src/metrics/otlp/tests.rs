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
    let config = OtlpConfig { endpoint, headers, auth: OtlpAuth::None, project: Some("some-project".into()) };
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
    assert_eq!(of("service.name")["stringValue"], "ebbflow-sweep");
    assert_eq!(of("gcp.project_id")["stringValue"], "some-project");
    let other = Resource::new("sweep", None).attributes();
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
