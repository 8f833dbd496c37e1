//! Pages about what is very large: they show a part of it, and lead to all of it.

use axum::Extension;
use axum::routing::get;
use futures::StreamExt;
use host::RequestDeadline;

use super::*;

const WIDE: &str = "
name: wide
tasks:
  - {name: a, type: echo, config: {value: 1}}
  - {name: b, type: echo, config: {value: 1}}
  - {name: c, type: echo, depends_on: [a, b], config: {value: '{{ outputs.a.text | length }} {{ outputs.b }}'}}
  - {name: d, type: echo, depends_on: [c], config: {value: '{{ outputs.c }}'}}
";

/// No page is longer, in bytes.
const MAX_PAGE: usize = 1024 * 1024;

/// A run whose first task has a very long output.
async fn wide(api: &Api, world: &TestWorld) -> (RunId, Value) {
    world.write(WIDE).await;
    let run = start_of(&api.app, "wide", 20, Map::new(), None).await;
    // Indented, it would be a hundred times as long.
    let deep = (0..100).fold(json!(vec![0; 200_000]), |value, _| json!([value]));
    let output = json!({"text": "x".repeat(500_000), "deep": deep});
    world.report(run, 0, 1, TaskResult::Succeeded(output.clone())).await;
    world.report(run, 1, 1, TaskResult::Succeeded(json!("short"))).await;
    (run, output)
}

#[tokio::test]
async fn a_long_output_is_shown_in_part_with_a_link_to_all_of_it() {
    let (api, _, world) = console().await;
    let (run, output) = wide(&api, &world).await;
    let data = page(&api, &format!("/runs/{run}?tab=data")).await;
    assert!(data.len() < MAX_PAGE, "{} bytes", data.len());
    let all = format!("href=\"/api/v1/runs/{run}/tasks/a/output\">All");
    assert!(data.contains(&all) && data.contains("short"), "{data}");
    let task = page(&api, &format!("/runs/{run}/tasks/a")).await;
    assert!(task.len() < MAX_PAGE, "{} bytes", task.len());
    assert!(task.contains(&all), "the link leads to all of it");
    let mut request = Request::get(format!("/api/v1/runs/{run}/tasks/a/output")).body(Body::empty()).unwrap();
    request.extensions_mut().insert(auth::Caller::local());
    let answer = router(api).oneshot(request).await.unwrap();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["output"], output);
}

#[tokio::test]
async fn an_expression_sees_all_of_what_it_uses_and_the_page_shows_the_beginnings() {
    let (api, _, world) = console().await;
    let (run, _) = wide(&api, &world).await;
    let tried = page(&api, &format!("/runs/{run}?tab=try&expression=outputs.a.text+%7C+length")).await;
    assert!(tried.contains("500000") && tried.contains("Available names"), "{tried}");
    assert!(tried.len() < MAX_PAGE, "{} bytes", tried.len());
    let settings = page(&api, &format!("/runs/{run}/tasks/c")).await;
    assert!(settings.contains("500000 short"), "settings are rendered: {settings}");
}

const RETRIED: &str = "
name: retried
tasks:
  - {name: a, type: echo, config: {value: 1}, retry_policy: {max_retries: 100, initial_delay_seconds: 1, jitter: 0}}
";

#[tokio::test]
async fn of_many_attempts_the_latest_are_shown() {
    let (api, _, world) = console().await;
    world.write(RETRIED).await;
    let run = start_of(&api.app, "retried", 20, Map::new(), None).await;
    for attempt in 1..=101 {
        world.report(run, 0, attempt, TaskResult::Failed(model::Failure::transient("no"))).await;
        press(&api, &format!("/runs/{run}/tasks/a/wake"), "").await;
    }
    let shown = page(&api, &format!("/runs/{run}/tasks/a")).await;
    let log = |attempt: u32| shown.contains(&format!("/tasks/a?attempt={attempt}#log"));
    assert!(shown.contains("attempt <b>101 of 101</b>"), "{shown}");
    assert!(!log(1) && (2..=101).all(log) && shown.contains(">1 earlier ones are not shown"), "{shown}");
}

#[tokio::test]
async fn a_long_log_is_sent_in_parts_and_shown_in_part() {
    let (api, run, _world) = console().await;
    let line = |number: usize| LogLine {
        at: api.app.now(),
        stream: "stdout".into(),
        level: "info".into(),
        line: format!("{number} {}", "y".repeat(3_000)),
    };
    let key = TaskKey { run, task: TaskIndex(0) };
    for first in (1..3_000).step_by(100) {
        let lines = (first..first + 100).map(line).collect();
        let chunk = LogChunk { key, attempt: 1, first: first as u32, lines };
        api.app.runtime.store().append_log(&chunk).await.unwrap();
    }
    let log = format!("/runs/{run}/tasks/greet/log?attempt=1");
    let request = Request::get(log).header("host", "localhost").body(Body::empty()).unwrap();
    let answer = router(api.clone()).oneshot(request).await.unwrap();
    let parts: Vec<_> = answer.into_body().into_data_stream().map(Result::unwrap).collect().await;
    assert!(parts.iter().all(|part| part.len() < 2 * MAX_PAGE) && parts.len() > 3, "{} parts", parts.len());
    let text = String::from_utf8(parts.concat()).unwrap();
    assert_eq!(text.lines().count(), 3_001, "every line once");
    for query in ["", "&q=2500+y", "&level=info"] {
        let shown = page(&api, &format!("/runs/{run}/tasks/greet?attempt=1{query}")).await;
        assert!(shown.contains("<mark>2500 y</mark>yy") || query != "&q=2500+y", "{query}");
        assert!(shown.len() < 2 * MAX_PAGE, "{query}: {} bytes", shown.len());
    }
}

#[tokio::test]
async fn what_is_no_form_is_refused_in_our_words() {
    let (api, run, _world) = console().await;
    for (kind, form) in
        [("text/plain", "a=b"), ("application/x-www-form-urlencoded", "reason=%FF%zz&reason=\u{0}")]
    {
        let request = Request::post(format!("/runs/{run}/retry"))
            .header("host", "localhost")
            .header("origin", "http://localhost")
            .header("content-type", kind)
            .body(Body::from(form))
            .unwrap();
        let (parts, body) = router(api.clone()).oneshot(request).await.unwrap().into_parts();
        let page = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap();
        if parts.status == StatusCode::BAD_REQUEST {
            assert!(page.contains("unsupported form") && !page.contains("deserialize"), "{page}");
        } else {
            assert_ne!(kind, "text/plain", "{}", parts.status);
        }
    }
    let long = format!("reason={}", "x".repeat(2 * 1024 * 1024));
    let (status, _, page) = press(&api, &format!("/runs/{run}/retry"), &long).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{page}");
}

#[tokio::test]
async fn every_page_has_a_deadline_and_a_largest_size() {
    let deadline = |found: Option<Extension<RequestDeadline>>| async move { found.is_some().to_string() };
    let router = Router::new().route("/", get(deadline)).layer(middleware::from_fn(bounded));
    let answer = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(to_bytes(answer.into_body(), 10).await.unwrap(), "true");
    let large = Response::new(Body::from(vec![b'x'; RESPONSE_LIMIT as usize + 1]));
    assert_eq!(limited(large).status(), StatusCode::INTERNAL_SERVER_ERROR);
}
