mod access;
mod parts;
mod proxy;
mod sign_in;
mod sizes;

use api::{Access, Links};
use auth::{Authenticator, Keys, Policy, PushAuth, Verifier};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use bus::SystemClock;
use host::App;
use model::message::TaskResult;
use model::{Failure, Parent, RunId, TaskIndex, TaskKey, TenantId};
use runtime::{Diagnostic, Origin, StartRun};
use serde_json::{Map, Value, json};
use store::{LogChunk, LogLine};
use testkit::SilentBus;
use tower::ServiceExt;

use super::*;

const EVIL: &str = "<script>alert(1)</script>";

type TestWorld = testkit::World<SilentBus, SystemClock>;

/// A console that anyone at this machine may read, with one failed run that says evil things.
async fn console() -> (Api, RunId, TestWorld) {
    let world = TestWorld::on_postgres(SilentBus, SystemClock).await;
    let verifier = Verifier::new(["nobody"], "api", Keys::fixed(&json!({"keys": []})));
    let policy = Policy::read("@example.com=admin:*").unwrap();
    let access = Access::new(Authenticator::new([verifier.into()]), policy);
    let connected = world.connected(PushAuth::None);
    let api = Api { pages_open: true, ..Api::new(connected, access, Links::default()) };
    world.write("{name: hello, inputs: {who: {type: string}}, tasks: [{name: greet, type: noop}]}").await;
    let run = start(&api.app).await;
    let line =
        LogLine { at: api.app.now(), stream: "stdout".into(), level: "info".into(), line: EVIL.into() };
    let key = TaskKey { run, task: TaskIndex(0) };
    let chunk = LogChunk { key, attempt: 1, first: 0, lines: vec![line] };
    api.app.runtime.store().append_log(&chunk).await.unwrap();
    world.report(run, 0, 1, TaskResult::Failed(Failure::permanent(EVIL))).await;
    (api, run, world)
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
    let id = format!("018f0000-0000-7000-8000-{number:012}").parse().unwrap();
    let origin = parent.map_or(Origin::Api { by: EVIL.into() }, Origin::Child);
    let start = StartRun { inputs, ..StartRun::new(id, TenantId::DEFAULT, workflow, origin) };
    app.runtime.start(start).await.unwrap().record.run.id
}

async fn read(api: &Api, host: &str, path: &str) -> (StatusCode, HeaderMap, String) {
    let request = Request::get(path).header("host", host).body(Body::empty()).unwrap();
    let response = router(api.clone()).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, parts.headers, String::from_utf8(body.into()).unwrap())
}

/// Sends a form as a page of the console at localhost does.
async fn press(api: &Api, path: &str, form: &str) -> (StatusCode, HeaderMap, String) {
    let request = Request::post(path)
        .header("host", "localhost")
        .header("origin", "http://localhost")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(form.to_owned()))
        .unwrap();
    let (parts, body) = router(api.clone()).oneshot(request).await.unwrap().into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, parts.headers, String::from_utf8(body.into()).unwrap())
}

async fn page(api: &Api, path: &str) -> String {
    let (status, _, page) = read(api, "localhost:8480", path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {page}");
    page
}

/// Every page that there is, with something on it.
fn every_page(run: RunId) -> Vec<String> {
    let of_run = [
        "",
        "?tab=events",
        "?tab=data",
        "?tab=try",
        "?tab=try&expression=inputs.who",
        "/tasks/greet",
        "/tasks/greet?q=x&level=error&attempt=1",
    ];
    let of_workflow = ["", "/trigger", "/source", "/versions", "/backfill"];
    let operations = [
        "",
        "/workers",
        "/timers",
        "/schedules",
        "/triggers",
        "/backfills",
        "/dead-letters",
        "/breakers",
        "/audit",
        "/health",
    ];
    let others = ["/", "/runs", "/runs?workflow=hello&state=failed", "/workflows", "/workflows?q=hel"];
    let of_run = of_run.map(|rest| format!("/runs/{run}{rest}"));
    let of_workflow = of_workflow.map(|rest| format!("/workflows/hello{rest}"));
    let operations = operations.map(|rest| format!("/operations{rest}"));
    of_run.into_iter().chain(of_workflow).chain(operations).chain(others.map(str::to_owned)).collect()
}

#[tokio::test]
async fn the_list_shows_runs_and_leads_to_them() {
    let (api, run, _world) = console().await;
    let list = page(&api, "/runs?workflow=hello&state=failed&limit=1").await;
    assert!(list.contains(&format!("href=\"/runs/{run}\"")) && list.contains("class=\"state failed\""));
    let none = page(&api, "/runs?workflow=&state=running").await;
    assert!(none.contains("No runs here"), "{none}");
}

#[tokio::test]
async fn home_puts_what_failed_first_with_a_button_to_retry_it() {
    let (api, run, _world) = console().await;
    let home = page(&api, "/").await;
    let problems = home.find("Needs attention").unwrap();
    assert!(problems < home.find("Active runs").unwrap());
    assert!(home.contains(&format!("action=\"/runs/{run}/retry\"")), "{home}");
}

#[tokio::test]
async fn home_shows_the_first_problems_of_files_and_health_more() {
    let (api, _, _world) = console().await;
    let problem = |number: u32| Diagnostic::of_file(format!("graphs/{number}.yaml"), EVIL.to_owned());
    api.app.file_problems.replace((1..=500).map(problem).collect());
    let (home, health) = (page(&api, "/").await, page(&api, "/operations/health").await);
    assert!(home.contains("graphs/5.yaml") && !home.contains("graphs/7.yaml"), "{home}");
    assert!(home.contains("graphs/6.yaml:1:1: and 495 more") && !home.contains(EVIL), "{home}");
    assert!(health.contains("graphs/7.yaml") && !health.contains("graphs/500.yaml"), "{health}");
    assert!(health.contains("active versions of workflows stay in place") && !health.contains(EVIL));
    api.app.file_problems.replace(Vec::new());
    assert!(!page(&api, "/").await.contains("graphs/"));
}

#[tokio::test]
async fn a_run_says_first_why_it_failed_and_what_can_be_done() {
    let (api, run, _world) = console().await;
    let page = page(&api, &format!("/runs/{run}")).await;
    let (why, graph) = (page.find("class=\"why failed\"").unwrap(), page.find("id=\"graph\"").unwrap());
    assert!(why < graph, "words come before the picture");
    let retry = format!("action=\"/runs/{run}/retry\"");
    for part in ["Retry failed", &retry, &format!("/runs/{run}/tasks/greet#log"), "class=\"task failed\""] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
}

#[tokio::test]
async fn a_task_shows_its_log_its_attempts_and_its_settings() {
    let (api, run, _world) = console().await;
    let shown = page(&api, &format!("/runs/{run}/tasks/greet")).await;
    for part in ["Attempts", "Settings", "1 lines", "stdout", "Download"] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let none = page(&api, &format!("/runs/{run}/tasks/greet?q=nowhere")).await;
    assert!(none.contains("No line matches."), "{none}");
    let (_, headers, log) = read(&api, "localhost", &format!("/runs/{run}/tasks/greet/log?download=1")).await;
    assert_eq!(headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert!(headers[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment"));
    assert!(log.ends_with(&format!("stdout {EVIL}\n")), "{log}");
}

#[tokio::test]
async fn nothing_that_a_user_wrote_becomes_part_of_any_page() {
    let (api, run, _world) = console().await;
    let strange = ["/runs?workflow=%22%3E%3Cscript%3E", "/workflows?q=%22%3E%3Cscript%3E"].map(str::to_owned);
    let like = [format!("/workflows/hello/trigger?like={run}")];
    for path in every_page(run).into_iter().chain(strange).chain(like) {
        let (status, headers, page) = read(&api, "localhost", &path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {page}");
        assert_eq!(page.matches("<script").count(), 1, "only our own, which is a file: {path}");
        assert!(!page.contains("alert(1)</script>") && !page.contains(" style=\""), "{path}: {page}");
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(page.len() < 100_000, "{path} has {} bytes", page.len());
    }
}

#[tokio::test]
async fn open_pages_are_for_this_machine_only_and_closed_ones_need_a_token() {
    let (mut api, run, _world) = console().await;
    let log = format!("/runs/{run}/tasks/greet/log");
    for path in every_page(run).iter().chain([&log]) {
        assert_eq!(read(&api, "evil.example:8480", path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    api.pages_open = false;
    for path in every_page(run).iter().chain([&log]) {
        assert_eq!(read(&api, "localhost", path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(press(&api, &format!("/runs/{run}/retry"), "").await.0, StatusCode::UNAUTHORIZED);
    for path in ["/style.css", "/console.js", "/icon.svg", "/livez"] {
        assert_eq!(read(&api, "localhost", path).await.0, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_button_does_what_it_says_and_leads_back_with_words() {
    let (api, run, _world) = console().await;
    let (status, headers, _) =
        press(&api, &format!("/runs/{run}/retry"), "back=/runs%3Fstate%3Dfailed").await;
    assert_eq!(
        (status, &headers[header::LOCATION]),
        (StatusCode::SEE_OTHER, &"/runs?state=failed".parse().unwrap())
    );
    let cookie = headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("ebb_notice=done"), "{cookie}");
    let request =
        Request::get("/runs").header("host", "localhost").header("cookie", cookie.split(';').next().unwrap());
    let answer = router(api.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert!(answer.headers()[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"), "it is shown once");
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&body).contains("Failed tasks are re-run."));
    assert!(
        !page(&api, &format!("/runs/{run}")).await.contains("class=\"why failed\""),
        "it is under way again"
    );
    let (_, headers, _) = press(&api, &format!("/runs/{run}/resume"), "").await;
    assert!(headers[header::SET_COOKIE].to_str().unwrap().starts_with("ebb_notice=failed"));
    assert_eq!(press(&api, &format!("/runs/{run}/explode"), "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_form_is_refused_by_the_name_of_a_field_or_parameter_that_it_does_not_have() {
    let (api, run, _world) = console().await;
    let (status, _, page) = press(&api, &format!("/runs/{run}/retry?reson=mended"), "").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(page.contains("unknown query parameter `reson`"), "{page}");
    for (path, form, message) in [
        (format!("/runs/{run}/retry"), "reson=mended", "unknown form field `reson`"),
        (format!("/runs/{run}/tasks/greet/clear"), "output=7", "unknown form field `output`"),
        ("/workflows/hello/trigger".to_owned(), "input.whom=Eve", "unknown form field `input.whom`"),
        ("/runs/bulk".to_owned(), "action=retry&stat=failed", "unknown form field `stat`"),
    ] {
        let (status, _, page) = press(&api, &path, form).await;
        assert!(status == StatusCode::BAD_REQUEST && page.contains(message), "{path}: {status} {page}");
    }
}

#[tokio::test]
async fn forms_of_other_sites_do_nothing() {
    let (api, run, _world) = console().await;
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        let request = Request::post(format!("/runs/{run}/retry"))
            .header("host", "localhost")
            .header("content-type", "application/x-www-form-urlencoded")
            .header(name, value)
            .body(Body::empty())
            .unwrap();
        let answer = router(api.clone()).oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{name}");
    }
    assert!(page(&api, &format!("/runs/{run}")).await.contains("class=\"why failed\""));
}

#[tokio::test]
async fn a_run_is_started_with_a_form_and_errors_are_shown_at_their_fields() {
    let (api, _, world) = console().await;
    let text = "{name: form, inputs: {count: {type: integer}, who: {type: string, default: Ada}}, tasks: [{name: a, type: noop}]}";
    world.write(text).await;
    let form = page(&api, "/workflows/form/trigger").await;
    assert!(
        form.contains("name=\"input.count\" type=\"number\"") && form.contains("value=\"Ada\""),
        "{form}"
    );
    let (status, _, refused) = press(&api, "/workflows/form/trigger", "input.count=many&input.who=Eve").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let field = refused.find("class=\"field bad\"").unwrap();
    assert!(refused[field..].contains("class=\"wrong\"") && refused.contains("value=\"Eve\""), "{refused}");
    let (status, headers, _) = press(&api, "/workflows/form/trigger", "input.count=3&input.who=Eve").await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let run = headers[header::LOCATION].to_str().unwrap();
    let data = page(&api, &format!("{run}?tab=data")).await;
    assert!(data.contains("&#34;count&#34;: 3") || data.contains("&quot;count&quot;: 3"), "{data}");
}

#[tokio::test]
async fn an_approval_is_asked_for_and_given_on_the_page() {
    let (api, _, world) = console().await;
    let text = "{name: ask, tasks: [{name: decide, type: approval, config: {message: Pay?, fields: {amount: {type: number, required: true}}}}]}";
    world.write(text).await;
    let run = start_of(&api.app, "ask", 9, Map::new(), None).await;
    let asked = page(&api, &format!("/runs/{run}")).await;
    assert!(asked.contains("Pay?") && asked.contains("name=\"input.amount\""), "{asked}");
    assert!(page(&api, "/").await.contains("Decide"));
    let approve = format!("/runs/{run}/tasks/decide/approve");
    let (_, headers, _) = press(&api, &approve, "").await;
    assert!(headers[header::SET_COOKIE].to_str().unwrap().contains("amount"), "what is missing is named");
    press(&api, &approve, "input.amount=7").await;
    assert!(page(&api, &format!("/runs/{run}?tab=data")).await.contains("7"));
    assert!(page(&api, &format!("/runs/{run}")).await.contains("class=\"state succeeded\""));
}

#[tokio::test]
async fn many_runs_are_acted_on_only_once_their_number_was_seen() {
    let (api, run, _world) = console().await;
    let (_, _, preview) = press(&api, "/runs/bulk", "action=retry&state=failed").await;
    assert!(preview.contains("retry 1 runs?") && preview.contains("name=\"sure\""), "{preview}");
    assert!(
        page(&api, &format!("/runs/{run}")).await.contains("class=\"why failed\""),
        "nothing was done yet"
    );
    let (_, headers, _) = press(&api, "/runs/bulk", "action=retry&state=failed&sure=yes").await;
    assert!(headers[header::SET_COOKIE].to_str().unwrap().contains("1%20runs%20changed"));
}

#[tokio::test]
async fn everyone_may_read_the_schemas_of_the_language() {
    let (mut api, _, _world) = console().await;
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
    let (api, run, _world) = console().await;
    let (status, _, _) = read(&api, "localhost", "/api/v1/runs").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let cancel = Request::post(format!("/api/v1/runs/{run}/cancel")).header("host", "localhost");
    let answer = router(api).oneshot(cancel.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_on_a_page() {
    let (api, run, _world) = console().await;
    for (path, status) in [
        ("/runs/018f0000-0000-7000-8000-00000000ffff", StatusCode::NOT_FOUND),
        (&format!("/runs/{run}/tasks/none/log"), StatusCode::NOT_FOUND),
        ("/runs/nonsense", StatusCode::NOT_FOUND),
        ("/runs?state=odd", StatusCode::BAD_REQUEST),
        ("/workflows/none", StatusCode::NOT_FOUND),
    ] {
        let (answered, _, page) = read(&api, "localhost", path).await;
        assert_eq!(answered, status, "{path}");
        assert!(page.starts_with("<!doctype html>"), "{page}");
    }
}
