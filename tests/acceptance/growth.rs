//! No request to a function or a page takes time that is the square of its size, or is answered at length: webhooks, pushes,
//! ticks, endpoints for operators, and every form and page of the console. The endpoints of the API are tested with the API.

use std::collections::BTreeSet;
use std::path::Path;

use api::{Access, Api, Links};
use auth::{Authenticator, Policy, PushAuth};
use aws_lc_rs::hmac;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use bus::SystemClock;
use host::Secrets;
use model::{Clock, Message};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{SilentBus, Threads, eventually};
use tower::ServiceExt;

use crate::world::ISSUER;

const HOOKED: &str = "
name: hooked
inputs: {text: {type: string, default: ''}}
triggers:
  - {name: partner, webhook: {secret: '{{ secrets.PARTNER }}'}, filter: event.data.text != '', inputs: {text: '{{ event.data.text }}'}}
  - {name: event, event: {type: com.example.made}, inputs: {text: '{{ event.data.text }}'}}
tasks: [{name: a, type: approval, config: {fields: {n: {type: number}}}}]
";

/// No answer to a request is longer, in bytes: a page is not longer for what was sent to it.
const MAX_ANSWER: usize = 1024 * 1024;

/// The sizes of bodies that are compared, in bytes: the larger one is almost the limit.
const BODIES: [usize; 2] = [250_000, 1_000_000];

/// The sizes of paths and queries that are compared, in bytes.
const ADDRESSES: [usize; 2] = [15_000, 60_000];

struct Functions {
    world: testkit::World<SilentBus, SystemClock>,
    api: Api,
    trigger: Router,
    console: Router,
    _secrets: TempDir,
}

impl Functions {
    async fn new() -> Self {
        let world = testkit::World::on_postgres(SilentBus, SystemClock).await;
        world.write(HOOKED).await;
        let verifier = ISSUER.verifier("api");
        let policy = Policy::read("@example.com=admin:*").unwrap();
        let secrets = tempfile::tempdir().unwrap();
        std::fs::create_dir(secrets.path().join("default")).unwrap();
        std::fs::write(secrets.path().join("default/PARTNER"), "s3cret").unwrap();
        let access = Access::new(Authenticator::new([verifier.into()]), policy);
        let connected = world.connected(PushAuth::None);
        let api = Api { pages_open: true, ..Api::new(connected, access, Links::default()) };
        let signed = Secrets::default().with_folder(secrets.path().to_owned());
        let trigger = trigger::router_with(api.app.clone(), Some(api.clone()), signed);
        let console = console::router(api.clone());
        Self { world, api, trigger, console, _secrets: secrets }
    }

    /// Sends a request whose answer must be one of ours, and not too long. On a busy machine, a debug build may take longer
    /// than a request may: it is then sent again.
    async fn send(&self, router: Router, request: Request<Body>, what: &str) -> StatusCode {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let response = eventually("the request is answered in time", async || {
            let request = Request::from_parts(head.clone(), Body::from(body.clone()));
            let response = router.clone().oneshot(request).await.unwrap();
            (response.status() != StatusCode::SERVICE_UNAVAILABLE).then_some(response)
        })
        .await;
        let status = response.status();
        let answer = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(!status.is_server_error(), "{what}: {status}");
        assert!(answer.len() <= MAX_ANSWER, "{what}: {status}, answered with {} bytes", answer.len());
        status
    }
}

/// Bodies of about a size that are not what any function expects, or only just.
fn strange(size: usize) -> Vec<(&'static str, String)> {
    let keys: Vec<String> = (0..size / 14).map(|number| format!("\"k{number:06}\":1")).collect();
    vec![
        ("a text", "x".repeat(size)),
        ("brackets", "[".repeat(size)),
        ("a JSON text", json!("x".repeat(size)).to_string()),
        ("keys", format!("{{{}}}", keys.join(","))),
        ("numbers", format!("[{}1]", "1,".repeat(size / 2))),
        ("base64", json!({"message": {"data": "QUJD".repeat(size / 4), "messageId": "1"}}).to_string()),
        (
            "attributes",
            format!(
                "{{\"message\": {{\"data\": \"e30=\", \"messageId\": \"1\", \"attributes\": {{{}}}}}}}",
                keys.join(",")
            ),
        ),
    ]
}

/// A request that is about that large.
type Large<'a> = dyn Fn(usize) -> Request<Body> + 'a;

fn post(path: &str, body: String) -> Request<Body> {
    Request::post(path).body(Body::from(body)).unwrap()
}

#[test]
fn no_push_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let functions = Functions::new().await;
        let app = &functions.api.app;
        let routers = [
            ("trigger", functions.trigger.clone(), "/push"),
            ("evaluate", evaluate::router(app.clone()), "/push"),
            ("evaluate", evaluate::router(app.clone()), "/dead-letters"),
            ("execute", execute::router(app.clone()), "/push"),
            ("sweep", sweep::router(app.clone()), "/push"),
            ("sweep", sweep::router(app.clone()), "/sweep"),
        ];
        for (function, router, path) in &routers {
            for (number, (what, _)) in strange(0).into_iter().enumerate() {
                let what = format!("{path} of {function} with {what}");
                let send = async |size: usize, ()| {
                    let (_, body) = strange(size).swap_remove(number);
                    functions.send(router.clone(), post(path, body), &what).await;
                };
                threads.check(&what, BODIES, async || (), send).await;
            }
        }
    });
}

#[test]
fn no_message_or_event_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let functions = Functions::new().await;
        let now = SystemClock.now();
        let wrapped = |message: &Message| {
            let (headers, body) = bus::envelope::wrap(message, "17", now, "trigger", Some(1));
            let mut request = post("/push", String::new());
            *request.headers_mut() = headers;
            *request.body_mut() = Body::from(body);
            request
        };
        let event = |data: Value| {
            let event = json!({
                "specversion": "1.0", "id": uuid::Uuid::now_v7(), "source": "/test", "type": "com.example.made",
                "datacontenttype": "application/json", "data": data,
            });
            let request = Request::post("/push").header("content-type", "application/cloudevents+json");
            request.body(Body::from(event.to_string())).unwrap()
        };
        let text = |size: usize| json!({"text": "x".repeat(size / 2)});
        let keys = |size: usize| -> Value {
            Value::Object((0..size / 28).map(|number| (format!("k{number:06}"), json!(1))).collect())
        };
        let requests: [(&str, &Large<'_>); 4] = [
            ("a run with a long text", &|size| {
                wrapped(&Message::RunRequested(testkit::run_requested("hooked", &text(size))))
            }),
            ("a run with unknown inputs", &|size| {
                wrapped(&Message::RunRequested(testkit::run_requested("hooked", &keys(size))))
            }),
            ("an event with a long text", &|size| event(text(size))),
            ("an event with many fields", &|size| event(keys(size))),
        ];
        for (what, request) in requests {
            let send = async |size: usize, ()| {
                functions.send(functions.trigger.clone(), request(size), what).await;
            };
            threads.check(what, BODIES, async || (), send).await;
        }
        let send = async |size: usize, ()| {
            let path = format!("/push?tenant={}", "n".repeat(size));
            functions.send(functions.trigger.clone(), post(&path, "{}".into()), "a long tenant").await;
        };
        threads.check("a long tenant", ADDRESSES, async || (), send).await;
    });
}

#[test]
fn no_webhook_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let functions = Functions::new().await;
        let signed = |path: &str, body: String| {
            let timestamp = SystemClock.now().timestamp();
            let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret");
            let tag = hmac::sign(&key, format!("{timestamp}.{body}").as_bytes());
            let tag: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            Request::post(path)
                .header("x-ebb-timestamp", timestamp.to_string())
                .header("x-ebb-signature", format!("v1={tag}"))
                .body(Body::from(body))
                .unwrap()
        };
        let large = |size: usize| {
            let mut bodies = strange(size);
            // No two are the same: a request that was accepted is not accepted again.
            let text = format!("{}{}", uuid::Uuid::now_v7(), "x".repeat(size));
            bodies.push(("a valid text", json!({ "text": text }).to_string()));
            bodies
        };
        for path in ["/api/v1/hooks/hooked/partner", "/api/v1/tenants/default/hooks/hooked/partner"] {
            for (number, (what, _)) in large(0).into_iter().enumerate() {
                let what = format!("{path} with {what}");
                let send = async |size: usize, ()| {
                    let (_, body) = large(size).swap_remove(number);
                    let unsigned =
                        functions.send(functions.trigger.clone(), post(path, body.clone()), &what).await;
                    assert_eq!(unsigned, StatusCode::UNAUTHORIZED, "{what}");
                    let signed = functions.send(functions.trigger.clone(), signed(path, body), &what).await;
                    assert_ne!(signed, StatusCode::UNAUTHORIZED, "{what}");
                };
                threads.check(&what, BODIES, async || (), send).await;
            }
        }
        for path in [
            "/api/v1/hooks/NAME/partner",
            "/api/v1/hooks/hooked/NAME",
            "/api/v1/tenants/NAME/hooks/hooked/partner",
        ] {
            let send = async |size: usize, ()| {
                let path = path.replace("NAME", &"n".repeat(size));
                functions.send(functions.trigger.clone(), signed(&path, "{}".into()), "a long name").await;
            };
            threads.check(path, ADDRESSES, async || (), send).await;
        }
    });
}

#[test]
fn no_request_of_an_operator_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let functions = Functions::new().await;
        let send = async |size: usize, ()| {
            let body = Body::from("a=debug,".repeat(size / 8));
            let request = Request::put("/log-level").body(body).unwrap();
            functions.send(functions.trigger.clone(), request, "a long filter").await;
        };
        threads.check("/log-level", BODIES, async || (), send).await;
    });
}

/// The sources of the console: what its routes and forms are called is read from there, so that none is forgotten.
fn console_sources() -> String {
    fn read(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                read(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut text = String::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/console/src"), &mut text);
    text
}

/// The texts in quotes that follow one of these beginnings of a call.
fn quoted_after(text: &str, calls: &[&str]) -> BTreeSet<String> {
    let all = calls.iter().flat_map(|call| text.split(*call).skip(1));
    let quoted =
        |rest: &str| rest.trim_start().strip_prefix('"')?.split_once('"').map(|(name, _)| name.to_owned());
    all.filter_map(quoted).collect()
}

/// Addresses of the console's routes, of something that is there.
fn addresses(routes: &BTreeSet<String>, run: &str) -> Vec<String> {
    let named = |route: &String| {
        route
            .replace("/runs/{id}", &format!("/runs/{run}"))
            .replace("/operations/{page}/{id}/{action}", "/operations/schedules/hooked/pause")
            .replace("{id}", "018f0000-0000-7000-8000-000000000001")
            .replace("{task}", "a")
            .replace("{name}", "hooked")
            .replace("{workflow}", "hooked")
            .replace("{kind}", "pool")
            .replace("{number}", "1")
            .replace("{action}", "pause")
    };
    routes.iter().map(named).filter(|path| path.starts_with('/') && !path.contains('{')).collect()
}

#[test]
fn no_form_or_page_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let functions = Functions::new().await;
        let run = functions.world.start("hooked").await.to_string();
        let sources = console_sources();
        let routes = addresses(&quoted_after(&sources, &[".route("]), &run);
        let fields = quoted_after(&sources, &[".field(", ".raw("]);
        assert!(routes.len() > 30 && fields.len() > 8, "{routes:?} {fields:?}");
        let form = |path: &str, body: String| {
            Request::post(path)
                .header("host", "localhost")
                .header("origin", "http://localhost")
                .header("content-type", "application/x-www-form-urlencoded")
                .body(Body::from(body))
                .unwrap()
        };
        for path in &routes {
            let send = async |size: usize, ()| {
                functions.send(functions.console.clone(), form(path, "a=1&".repeat(size / 4)), path).await;
            };
            let what = format!("a form of many fields to {path}");
            threads.check(&what, BODIES, async || (), send).await;
            for field in &fields {
                let send = async |size: usize, ()| {
                    let body = format!("{field}={}", "x%3D".repeat(size / 4));
                    functions.send(functions.console.clone(), form(path, body), path).await;
                };
                let what = format!("a form to {path} with a long `{field}`");
                threads.check(&what, BODIES, async || (), send).await;
            }
            // An event stream has no end.
            if path == "/live" {
                continue;
            }
            for query in ["x=", "text=", "workflow=", "cursor=", "tab=try&expression=", "tab="] {
                let send = async |size: usize, ()| {
                    let path = format!("{path}?{query}{}", "n".repeat(size));
                    let request =
                        Request::builder().method(Method::GET).uri(&path).header("host", "localhost");
                    let request = request.body(Body::empty()).unwrap();
                    functions.send(functions.console.clone(), request, query).await;
                };
                threads.check(&format!("{path}?{query}"), ADDRESSES, async || (), send).await;
            }
        }
    });
}
