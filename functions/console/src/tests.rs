mod sign_in;

use std::sync::Arc;

use api::{Access, Feed, Links};
use async_trait::async_trait;
use auth::{Gate, Keys, Policy, PushAuth, Verifier};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use bus::Bus;
use clock::SystemClock;
use engine::Command;
use language::{FileKind, SourceFile};
use model::message::TaskResult;
use model::{Failure, Message, Parent, RunId, TaskIndex, TaskKey, TenantId};
use runtime::{Runtime, StartRun};
use serde_json::{Map, Value, json};
use service::App;
use store::{LogChunk, LogLine, Memory, NewVersion};
use tower::ServiceExt;

use super::*;

const EVIL: &str = "<script>alert(1)</script>";

struct Mute;

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

/// A console that anyone at this machine may read, with one failed run that says evil things.
async fn console() -> (Api, RunId) {
    let runtime = Runtime::new(Arc::new(Memory::default()), Arc::new(Mute), Arc::new(SystemClock));
    let app = App { runtime: Arc::new(runtime), push: Arc::new(PushAuth::None) };
    let verifier = Verifier::new(["nobody"], "api", Keys::fixed(&json!({"keys": []})));
    let policy = Policy::read("@example.com=admin:*").unwrap();
    let access = Access::new(Gate::new([verifier.into()]), policy);
    let api = Api { app, access, links: Links::default(), pages_open: true, feed: Feed::default() };
    register(&api.app).await;
    let run = start(&api.app).await;
    let line =
        LogLine { at: api.app.now(), stream: "stdout".into(), level: "info".into(), line: EVIL.into() };
    let key = TaskKey { run, task: TaskIndex(0) };
    let chunk = LogChunk { key, attempt: 1, first: 0, lines: vec![line] };
    api.app.runtime.store().append_log(&chunk).await.unwrap();
    let result = TaskResult::Failed(Failure::permanent(EVIL));
    let report =
        Command::Report { task: TaskIndex(0), attempt: 1, worker: None, started_at: api.app.now(), result };
    api.app.runtime.settle(run, report).await.unwrap();
    (api, run)
}

async fn register(app: &App) {
    register_text(app, "{name: hello, inputs: {who: {type: string}}, tasks: [{name: greet, type: noop}]}")
        .await;
}

async fn register_text(app: &App, text: &str) {
    let file = SourceFile { path: "hello".into(), kind: FileKind::Workflow, text: text.into() };
    for definition in language::compile(&[file]).definitions {
        let (workflow, source, hash) = (definition.workflow, definition.source, definition.hash);
        let new = NewVersion {
            tenant: TenantId::DEFAULT,
            workflow,
            source,
            hash,
            by: "test".into(),
            at: app.now(),
        };
        app.runtime.store().register(&new).await.unwrap();
    }
}

async fn start(app: &App) -> RunId {
    start_of(app, "hello", 1, Map::from_iter([("who".into(), json!(EVIL))]), None).await
}

async fn start_of(
    app: &App,
    workflow: &str,
    number: u32,
    inputs: Map<String, Value>,
    parent: Option<Parent>,
) -> RunId {
    let start = StartRun {
        id: format!("018f0000-0000-7000-8000-{number:012}").parse().unwrap(),
        tenant: TenantId::DEFAULT,
        workflow: workflow.into(),
        inputs,
        labels: Map::new(),
        logical_date: None,
        trigger_kind: "api".into(),
        by: EVIL.into(),
        depth: parent.map_or(0, |parent| parent.depth),
        priority: 0,
        parent,
    };
    app.runtime.start(start).await.unwrap().run
}

async fn read(api: &Api, host: &str, path: &str) -> (StatusCode, HeaderMap, String) {
    let request = Request::get(path).header("host", host).body(Body::empty()).unwrap();
    let response = router(api.clone()).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, parts.headers, String::from_utf8(body.into()).unwrap())
}

#[tokio::test]
async fn the_list_shows_runs_and_leads_to_them() {
    let (api, run) = console().await;
    let (status, _, page) = read(&api, "localhost:8480", "/?workflow=hello&state=failed&limit=1").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        page.contains(&format!("href=\"/runs/{run}\"")) && page.contains("class=\"state failed\""),
        "{page}"
    );
    let (_, _, none) = read(&api, "localhost:8480", "/?workflow=&state=running").await;
    assert!(none.contains("No runs here"), "{none}");
}

#[tokio::test]
async fn a_run_shows_its_tasks_their_errors_and_logs() {
    let (api, run) = console().await;
    let (status, _, page) = read(&api, "127.0.0.1:8480", &format!("/runs/{run}")).await;
    assert_eq!(status, StatusCode::OK);
    for part in ["id=\"greet\"", "1 of 1", "permanent: ", &format!("/runs/{run}/tasks/greet/log")] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let (_, headers, log) = read(&api, "127.0.0.1:8480", &format!("/runs/{run}/tasks/greet/log")).await;
    assert_eq!(headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert!(log.ends_with(&format!("stdout {EVIL}\n")), "{log}");
}

#[tokio::test]
async fn nothing_that_a_user_wrote_becomes_part_of_the_page() {
    let (api, run) = console().await;
    for path in ["/", &format!("/runs/{run}"), "/?workflow=%22%3E%3Cscript%3E"] {
        let (_, headers, page) = read(&api, "localhost", path).await;
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}

#[tokio::test]
async fn open_pages_are_for_this_machine_only_and_closed_ones_need_a_token() {
    let (mut api, run) = console().await;
    for path in ["/", &format!("/runs/{run}"), &format!("/runs/{run}/tasks/greet/log")] {
        assert_eq!(read(&api, "evil.example:8480", path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    api.pages_open = false;
    for path in ["/", &format!("/runs/{run}"), &format!("/runs/{run}/tasks/greet/log")] {
        assert_eq!(read(&api, "localhost", path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(read(&api, "localhost", "/style.css").await.0, StatusCode::OK);
    assert_eq!(read(&api, "localhost", "/livez").await.0, StatusCode::OK);
}

#[tokio::test]
async fn everyone_may_read_the_schemas_of_the_language() {
    let (mut api, _) = console().await;
    api.pages_open = false;
    for schema in language::Schema::ALL {
        let path = format!("/schemas/{}.json", schema.name());
        let (status, headers, content) = read(&api, "evil.example", &path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(headers[header::CONTENT_TYPE], "application/schema+json");
        assert_eq!(headers[header::CACHE_CONTROL], "public, max-age=3600");
        assert_eq!(content, schema.to_json().to_string());
    }
}

#[tokio::test]
async fn open_pages_do_not_open_the_api() {
    let (api, run) = console().await;
    let (status, _, _) = read(&api, "localhost", "/api/v1/runs").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let cancel = Request::post(format!("/api/v1/runs/{run}/cancel")).header("host", "localhost");
    let answer = router(api).oneshot(cancel.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_on_a_page() {
    let (api, run) = console().await;
    for (path, status) in [
        ("/runs/018f0000-0000-7000-8000-00000000ffff", StatusCode::NOT_FOUND),
        (&format!("/runs/{run}/tasks/none/log"), StatusCode::NOT_FOUND),
        ("/runs/nonsense", StatusCode::BAD_REQUEST),
        ("/?state=odd", StatusCode::BAD_REQUEST),
    ] {
        let (answered, _, page) = read(&api, "localhost", path).await;
        assert_eq!(answered, status, "{path}");
        assert!(page.starts_with("<!doctype html>"), "{page}");
    }
}

#[tokio::test]
async fn a_fan_out_shows_how_many_children_ended_and_leads_to_them() {
    let (api, _) = console().await;
    let text =
        "{name: wide, tasks: [{name: split, type: fan_out, for_each: range(150), task: {type: noop}}]}";
    register_text(&api.app, text).await;
    let run = start_of(&api.app, "wide", 2, Map::new(), None).await;
    let (_, _, page) = read(&api, "localhost", &format!("/runs/{run}")).await;
    let link = format!("href=\"/runs/{run}?parent=split\">0 of 150 children ended</a>");
    assert!(page.contains(&link) && !page.contains("split__"), "{page}");
    let (_, _, children) = read(&api, "localhost", &format!("/runs/{run}?parent=split")).await;
    for part in ["Children of split", "id=\"split__0\"", "id=\"split__99\"", "&amp;parent=split\">More tasks"]
    {
        assert!(children.contains(part), "{part} is missing in {children}");
    }
    assert!(!children.contains("split__100"), "a page is bounded");
}

#[tokio::test]
async fn runs_that_have_to_do_with_each_other_lead_to_each_other() {
    let (api, first) = console().await;
    let limited = "{name: single, concurrency: {limit: 1, policy: queue}, tasks: [{name: only, type: noop}]}";
    register_text(&api.app, limited).await;
    let parent =
        Parent { key: TaskKey { run: first, task: TaskIndex(0) }, attempt: 1, waits: false, depth: 1 };
    let going_on = start_of(&api.app, "single", 3, Map::new(), Some(parent)).await;
    let held = start_of(&api.app, "single", 4, Map::new(), None).await;
    let page = async |path: String| read(&api, "localhost", &path).await.2;
    assert!(page(format!("/runs/{first}")).await.contains(&format!("href=\"/?parent={first}\"")));
    let list = page(format!("/?parent={first}")).await;
    assert!(list.contains(&going_on.to_string()) && !list.contains(&held.to_string()), "{list}");
    let child = page(format!("/runs/{going_on}")).await;
    assert!(
        child.contains("task greet of ") && child.contains(&format!("href=\"/runs/{first}\"")),
        "{child}"
    );
    let waiting = page(format!("/runs/{held}")).await;
    let link = format!("<dt>Held</dt><dd>waits for <a href=\"/runs/{going_on}\">");
    assert!(waiting.contains(&link), "{waiting}");
}
