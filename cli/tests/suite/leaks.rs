//! Secrets are planted wherever possible, workflows use them and fail with them, and then everything that a person can read
//! is searched: logs, tables, answers, pages, and the output of the command line.

mod evidence;
mod partner;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::project::{Dev, Project, printed};
use evidence::Evidence;
use partner::{Partner, sign};

const KEY: &str = "planted-env-key-7f3a91c2";
const HOOK: &str = "planted/file \"hook\"|^+b4d8";
const BASIC: &str = "planted-basic-password-11";
const SIGNING: &str = "planted-webhook-signing-3";
/// No workflow names it: a task reads it from the worker's environment, and the partner sends it.
const UNNAMED: &str = "planted-unnamed-5521-aa";
const DATABASE: &str = "planted-database-password";
const OPERATIONS: &str = "planted-operations-token";
const HEADER: &str = "planted-header-of-partner";
const BEARER: &str = "planted-bearer-of-nobody";

const PLANTED: [&str; 9] = [KEY, HOOK, BASIC, SIGNING, UNNAMED, DATABASE, OPERATIONS, HEADER, BEARER];

/// Not a secret, and in the same places: a place where it is missing was not searched.
const MARKER: &str = "visible-marker-404";

/// Uses secrets as intended, and prints them.
const GOOD: &str = r#"
name: good
inputs: {text: {type: string, default: none}}
triggers: [{name: partner, webhook: {secret: '{{ secrets.SIGNING }}'}, inputs: {text: '{{ event.data }} {{ event.attributes }}'}}]
on_success: {notify: [{webhook: {url: 'PARTNER/refuse/{{ secrets.HOOK }}', headers: {x-key: '{{ secrets.KEY }}'}}}]}
tasks:
  - name: call
    type: http
    config:
      url: 'PARTNER/mirror/{{ secrets.HOOK }}?key={{ secrets.KEY }}&marker=visible-marker-404'
      headers: {X-Key: '{{ secrets.KEY }}', X-Marker: visible-marker-404}
      auth: {basic: {username: ada, password: '{{ secrets.BASIC }}'}}
      body: {hook: '{{ secrets.HOOK }}', text: '{{ inputs.text }}'}
  - name: tell
    type: bash
    depends_on: [call]
    config:
      env: {KEY: '{{ secrets.KEY }}', HOOK: '{{ secrets.HOOK }}'}
      command: |
        echo "visible-marker-404 $KEY $HOOK"; echo "$KEY" | base64; echo "x$HOOK" >&2
        tr '\0' '\n' < /proc/$PPID/environ
        printf '{"key": "%s", "visible-marker-404": 1}' "$KEY" > "$EBB_OUTPUT"
  - name: ask
    type: sensor
    depends_on: [tell]
    config:
      http: {url: 'PARTNER/mirror/{{ secrets.HOOK }}', headers: {x-key: '{{ secrets.KEY }}'}, condition: answer.status == 200}
"#;

/// Failures with a secret in the error. The first two are truncated in the middle of it.
const BAD: [(&str, &str); 7] = [
    (
        "refused",
        "{type: http, config: {url: 'PARTNER/refuse/{{ secrets.HOOK }}', headers: {x-key: '{{ secrets.KEY }}'}}}",
    ),
    (
        "crashed",
        "{type: bash, config: {env: {KEY: '{{ secrets.KEY }}'}, command: 'printf \"%0490d%s\\n\" 7 \"$KEY\" >&2; exit 3'}}",
    ),
    (
        "away",
        "{type: http, config: {url: 'http://ada:{{ secrets.BASIC }}@127.0.0.1:1/{{ secrets.HOOK }}?k={{ secrets.KEY }}'}}",
    ),
    ("misread", "{type: http, config: {url: '{{ secrets.HOOK }}'}}"),
    ("unrendered", "{type: bash, config: {env: {N: '{{ secrets.KEY + 1 }}'}, command: 'true'}}"),
    ("unfit", "{type: http, config: {url: 'PARTNER/x', headers: {x-key: \"{{ secrets.KEY }}\\n\"}}}"),
    (
        "lacking",
        "{type: bash, config: {env: {A: '{{ secrets.KEY }}', B: '{{ secrets.NOWHERE }}'}, command: 'true'}}",
    ),
];

/// Plants all secrets and starts an `ebb dev`.
async fn plant(project: Project, partner: &Partner, database: &str) -> (Project, Dev) {
    let text = |text: &str| text.replace("PARTNER", &partner.url);
    let mut project = project.with("good", &text(GOOD));
    for (name, task) in BAD {
        let callback = "on_failure: {notify: [{webhook: 'PARTNER/refuse/{{ secrets.HOOK }}'}]}";
        let task = task.replacen('{', "{name: only, retry_policy: {max_retries: 0}, ", 1);
        project = project.with(name, &text(&format!("name: {name}\n{callback}\ntasks: [{task}]\n")));
    }
    let project = project.with_secret("HOOK", &format!("{HOOK}\n")).with_secret("SIGNING", SIGNING);
    let database = database.replacen('@', &format!(":{DATABASE}@"), 1);
    let settings = [
        ("EBB_SECRET_DEFAULT__KEY", KEY),
        ("EBB_SECRET_DEFAULT__BASIC", BASIC),
        ("EBB_SECRET_DEFAULT__UNNAMED", UNNAMED),
        ("EBB_OPERATIONS_TOKEN", OPERATIONS),
        ("DATABASE_URL", database.as_str()),
        ("RUST_LOG", "debug"),
    ];
    let dev = project.dev_with(&[], &settings);
    (project, dev)
}

/// Runs every workflow to its end.
fn run_all(project: &Project, evidence: &mut Evidence) {
    // An input that looks like a template is not rendered.
    let good = project.run(&["trigger", "good", "--input", "text={{ secrets.KEY }}", "--watch"]);
    assert_eq!(good.status.code(), Some(0), "{}", printed(&good));
    evidence.add("ebb trigger good", printed(&good));
    for (name, _) in BAD {
        let output = project.run(&["trigger", name, "--watch"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", printed(&output));
        evidence.add(&format!("ebb trigger {name}"), printed(&output));
    }
}

/// Sends requests that contain secrets: a webhook, tokens of all kinds, and invalid bodies.
async fn send_requests(project: &Project, dev: &Dev, evidence: &mut Evidence) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (timestamp, signature) = sign(SIGNING, MARKER);
    let hook = client.post(format!("{}/api/v1/hooks/good/partner", dev.url)).body(MARKER);
    let hook = hook.header("x-ebb-timestamp", timestamp).header("x-ebb-signature", &signature);
    let hook = hook.header("x-api-key", HEADER).header("authorization", format!("Bearer {BEARER}"));
    let answer = hook.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    evidence.add("the webhook's answer", answer.text().await.unwrap());
    for path in ["/api/v1/runs", "/functions/trigger/push", "/functions/execute/push", "/metrics", "/runs"] {
        for query in ["", "?access_token=planted-bearer-of-nobody"] {
            let request = client.post(format!("{}{path}{query}", dev.url)).bearer_auth(BEARER).body("{}");
            evidence.add(path, request.send().await.unwrap().text().await.unwrap());
        }
    }
    let made = project.run(&["tokens", "create", "ci", "--role", "viewer"]);
    let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(token.starts_with("ebb_"), "{}", printed(&made));
    let body = json!({"name": "again", "role": "viewer"});
    let again = dev.request(reqwest::Method::POST, "/tokens").header("idempotency-key", "one").json(&body);
    let again = again.send().await.unwrap().text().await.unwrap();
    let created: serde_json::Value = serde_json::from_str(&again).unwrap_or_default();
    evidence.hide(created["token"].as_str().unwrap_or_else(|| panic!("{again}")));
    evidence.add("ebb runs", printed(&project.run(&["runs", "--token", &token])));
    token
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn secrets_appear_nowhere_after_runs_that_used_them_and_failed_with_them() {
    let (database, partner) = (testkit::database().await, Partner::new([UNNAMED, KEY]).await);
    let (project, dev) = plant(Project::new(), &partner, &database.url).await;
    let mut evidence = Evidence::of(&PLANTED);
    run_all(&project, &mut evidence);
    let token = send_requests(&project, &dev, &mut evidence).await;
    evidence.hide(&token);
    evidence.hide(&dev.token.clone());
    partner.received_callbacks(1 + BAD.len()).await;
    evidence.read_everything(&dev).await;
    assert!(dev.stops_on_request());
    evidence.add("the log of ebb dev", std::fs::read_to_string(project.log()).unwrap());
    evidence.read_tables(&database.url).await;

    let received = partner.received();
    for secret in [KEY, BASIC] {
        assert!(received.iter().any(|text| text.contains(secret)), "{secret} never reached the partner");
    }
    for place in ["table run_facts", "table logs", "GET /api/v1/runs/", "page /runs/"] {
        assert!(evidence.finds(place, MARKER), "{place} was not searched: {:?}", evidence.places());
    }
    evidence.show_leaks();
}

/// What a process prints until it ends, or until it waits for a database that cannot be reached.
fn until_it_gives_up_or_tries_again(command: &mut Command) -> String {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut process = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
    // The command holds its ends of the pipe, which would otherwise never be closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut log = String::new();
    for line in BufReader::new(reader).lines() {
        log += &(line.unwrap() + "\n");
        if log.contains("trying again") {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    log
}

#[test]
fn errors_about_an_unreachable_database_do_not_show_its_password() {
    let project = Project::new();
    for address in
        ["localhost:1", "localhost:99999999", "[bad", "nowhere.invalid", "localhost:1/x?sslmode=odd"]
    {
        let serve = &|function: &str| {
            let mut command = project.command(&["serve", function]);
            command.env("DATABASE_URL", format!("postgres://ebb:{DATABASE}@{address}/ebbflow"));
            command.envs([
                ("EBB_PUSH_AUTH", "none"),
                ("EBB_BROKER_URL", "http://127.0.0.1:1"),
                ("PORT", "0"),
            ]);
            let log = until_it_gives_up_or_tries_again(command.env("RUST_LOG", "debug"));
            assert!(!log.is_empty() && !log.contains(DATABASE), "{log}");
        };
        // Each tries for some seconds.
        std::thread::scope(|scope| {
            for function in ["trigger", "execute", "sweep", "console"] {
                scope.spawn(move || serve(function));
            }
        });
    }
}
