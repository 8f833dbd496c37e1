//! Whatever fits the document, and whatever does not, as another program makes it up from the document.

use std::path::PathBuf;
use std::process::Stdio;

use service::Stop;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::world::{World, token};

/// Which refusals are no surprise.
const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/schemathesis.toml");

/// The program, if it is installed: named by a variable, or on the path.
fn schemathesis() -> Option<PathBuf> {
    let named = std::env::var_os("SCHEMATHESIS").map(PathBuf::from);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        || std::env::split_paths(&folders).map(|folder| folder.join("schemathesis")).find(|it| it.is_file());
    named.or_else(on_path)
}

/// All checks are on. Live events go on for ever, and logs may, so they are tested elsewhere; so are
/// webhooks, which are not served here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_schemathesis_passes() {
    let Some(program) = schemathesis() else {
        eprintln!("skipped: `pip install schemathesis`, or say where it is in the variable SCHEMATHESIS");
        return;
    };
    let world = World::with_hello().await;
    world.start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v1/openapi.json", listener.local_addr().unwrap());
    let never: Stop = Box::pin(std::future::pending());
    let server = tokio::spawn(service::serve(listener, world.router(), never, service::GRACE));
    let examples = std::env::var("SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| "10".into());
    let run = Command::new(program)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .args([
            "--config-file",
            CONFIGURATION,
            "run",
            &url,
            "--checks",
            "all",
            "--exclude-path",
            "/api/v1/events",
            "--exclude-path",
            "/api/v1/runs/{id}/tasks/{task}/logs/follow",
            "--exclude-path-regex",
            "/hooks/",
        ])
        .args(["--max-examples", &examples, "--seed", "1", "--suppress-health-check", "all"])
        .args(["--header", &format!("Authorization: Bearer {}", token("api", 3600))])
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output();
    let output = run.await.expect("schemathesis can be started");
    server.abort();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
}
