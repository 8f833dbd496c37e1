//! Whatever fits the document, and whatever does not, as another program makes it up from the document.

use std::path::PathBuf;
use std::process::Stdio;

use host::ShutdownSignal;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::world::{World, token};

/// The program, if it is installed: named by a variable, or on the path.
fn schemathesis() -> Option<PathBuf> {
    let named = std::env::var_os("SCHEMATHESIS").map(PathBuf::from);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        || std::env::split_paths(&folders).map(|folder| folder.join("schemathesis")).find(|it| it.is_file());
    named.or_else(on_path)
}

/// Live events go on for ever, logs may, and leases wait, so they are tested elsewhere; so are webhooks, which are not served
/// here.
const NOT_ASKED: [&str; 8] = [
    "--exclude-path",
    "/api/v1/execution/lease",
    "--exclude-path",
    "/api/v1/events",
    "--exclude-path",
    "/api/v1/runs/{id}/tasks/{task}/logs/follow",
    "--exclude-path-regex",
    "/hooks/",
];

/// All checks are on: with names and ids that it makes up, which are mostly of nothing, or with those of something.
async fn check(configuration: &str) {
    let Some(program) = schemathesis() else {
        return testkit::skip("`pip install schemathesis`, or say where it is in the variable SCHEMATHESIS");
    };
    let world = World::with_hello().await;
    let run = world.start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v1/openapi.json", listener.local_addr().unwrap());
    let never: ShutdownSignal = Box::pin(std::future::pending());
    let server = tokio::spawn(host::serve(listener, world.router(), never, host::DEFAULT_GRACE_PERIOD));
    let examples = std::env::var("SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| "10".into());
    let check = Command::new(program)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .arg("--config-file")
        .arg(format!("{}/tests/suite/schemathesis/{configuration}", env!("CARGO_MANIFEST_DIR")))
        .args(["run", &url, "--checks", "all", "--max-examples", &examples])
        // The same cases each time: what a new case finds should not depend on the change at hand.
        .args(["--generation-deterministic", "--suppress-health-check", "all"])
        .args(NOT_ASKED)
        .args(["--header", &format!("Authorization: Bearer {}", token("api", 3600))])
        .env("NO_COLOR", "1")
        .env("RUN", run.to_string())
        .stdin(Stdio::null())
        .output();
    let output = check.await.expect("schemathesis can be started");
    server.abort();
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}");
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_schemathesis_passes() {
    check("strange.toml").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_schemathesis_passes_of_things_that_are_there() {
    check("known.toml").await;
}
