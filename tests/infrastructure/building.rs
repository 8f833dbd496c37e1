//! What Cloud Build does, in which order, and the image that comes of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Names;
use super::reading::{Repository, quoted, words};

#[test]
fn a_build_is_tested_before_it_is_migrated_to_and_migrated_to_before_it_is_deployed() {
    let repository = Repository::read();
    let build = repository.file("cloudbuild.yaml");
    let steps: Vec<&str> = build.lines().filter_map(|line| line.trim().strip_prefix("- id: ")).collect();
    assert_eq!(steps, ["terraform", "test", "dependencies", "build-and-push", "migrate", "deploy"]);
    assert!(!build.contains("waitFor"), "steps wait for the one before");
    assert!(
        repository.file("terraform/migrate.tf").contains("\"${var.name}-migrate\"")
            && build.contains("execute \"$_NAME-migrate\"")
    );
    let (up, moved) = (build.find("--no-traffic").unwrap(), build.find("--to-latest").unwrap());
    assert!(up < moved, "traffic moves once everything is up");
}

/// An update of a worker pool stops its workers after ten seconds, and a task may run for hours.
#[test]
fn a_deploy_leaves_worker_pools_alone_unless_it_is_asked() {
    let build = Repository::read().file("cloudbuild.yaml").to_owned();
    assert!(build.contains("\n  _POOLS: \"no\"\n"), "by default, tasks outlive deploys");
    let start = build.find("      pools=\n").unwrap();
    let end = start + build[start..].find("      done\n").unwrap() + "      done\n".len();
    for (pools, expected) in [("no", vec![]), ("yes", vec!["list", "update"])] {
        let script = format!(
            "set -euo pipefail\ngcloud() {{ echo \"$4\" >&2; echo gpu; }}\n\
             _POOLS={pools} _NAME=ebbflow _REGION=here _IMAGES=there _TAG=1a2b3c4\n{}",
            &build[start..end]
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "_POOLS={pools}");
        let called = String::from_utf8(output.stderr).unwrap();
        assert_eq!(called.lines().collect::<Vec<_>>(), expected, "_POOLS={pools}");
    }
}

/// A revision's name stays in the template, and `terraform apply` would send it again with another template.
#[test]
fn no_command_names_a_revision() {
    let repository = Repository::read();
    let build = repository.file("cloudbuild.yaml");
    let update =
        build.split("gcloud run services update \"$service\"").nth(1).unwrap().lines().next().unwrap();
    assert!(!update.contains("--tag") && !update.contains("--revision-suffix"), "{update}");
    assert!(
        build.contains("--update-tags=") && build.contains("--remove-tags="),
        "deploys are tagged afterwards"
    );
}

/// The official image has the minimal profile: neither rustfmt nor clippy, with which the gate begins.
#[test]
fn a_build_has_what_the_gate_needs_and_may_go_without() {
    let repository = Repository::read();
    let build = repository.file("cloudbuild.yaml");
    let (added, gate) =
        (build.find("rustup component add rustfmt clippy").unwrap(), build.find(".ci/run\n").unwrap());
    let steps: Vec<&str> = build.split("  - id: ").skip(1).collect();
    let skips = |step: &str| step.contains("[ \"$_TEST\" = yes ] ||");
    assert!(skips(steps[0]) && skips(steps[1]) && skips(steps[2]), "a first build tests and checks nothing");
    let skipped = build.rfind("[ \"$_TEST\" = yes ] || { echo \"Not").unwrap();
    assert!(skipped < added && added < gate);
    assert!(build.contains(" GATE=complete .ci/run\n"), "nothing is deployed that was not tested completely");
}

/// Without terraform or Python, the gate goes on, unless it must be complete.
#[test]
fn a_complete_gate_skips_nothing_about_deploys() {
    let repository = Repository::read();
    let gate = repository.file(".ci/run");
    let rule = gate.lines().find(|line| line.starts_with("may_skip()")).unwrap();
    for (gate, code, may) in [("", 3, true), ("", 1, false), ("complete", 3, false), ("complete", 1, false)] {
        let script = format!("{rule}\nGATE={gate}\nmay_skip {code}");
        let status = Command::new("bash").args(["-c", &script]).status().unwrap();
        assert_eq!(status.success(), may, "GATE={gate}, exit code {code}");
    }
    let steps = gate.lines().filter(|line| {
        ["terraform/check/run ", "tools/deploy-test/run "].iter().any(|step| line.starts_with(step))
    });
    assert_eq!(steps.filter(|line| line.ends_with(" || may_skip $?")).count(), 2);
    assert!(
        gate.contains("cloudbuild.yaml was not checked") && gate.contains("\n    may_skip 3\nfi\n"),
        "{gate}"
    );
    let planted = "[ \"${GATE:-}\" != complete ] || tools/deploy-test/run --mistakes";
    assert!(gate.lines().any(|line| line == planted), "a complete gate plants known mistakes");
}

/// Bash goes on if a command fails within the words of `for`: a list that cannot be read would be an empty list.
#[test]
fn no_loop_hides_a_failure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in
        ["cloudbuild.yaml", ".ci/run", ".ci/rollback", ".ci/python", "deploy/restore-drill", "tests/run"]
    {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let hidden = text.lines().find(|line| line.contains("for ") && line.contains(" in $("));
        assert_eq!(hidden, None, "{name}");
    }
}

/// Terraform's state contains secrets of the project, and what git ignores is not sent to a build either.
#[test]
fn the_state_of_terraform_is_not_committed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap();
    for pattern in ["*.tfstate", "*.tfstate.*", ".terraform/"] {
        assert!(ignored.lines().any(|line| line == pattern), "{pattern}");
    }
}

#[test]
fn tests_and_image_use_the_pinned_toolchain() {
    let repository = Repository::read();
    let pinned = quoted(repository.file("rust-toolchain.toml"), "channel = \"");
    let version = |letter: char| letter.is_ascii_digit() || letter == '.';
    for file in ["Dockerfile", "cloudbuild.yaml"] {
        let used: Names = words(repository.file(file), "rust:", version);
        let used: Names = used.iter().map(|image| image.replace("rust:", "")).collect();
        assert_eq!(used, pinned, "{file}");
    }
}

#[test]
fn the_image_holds_one_program_and_no_root() {
    let repository = Repository::read();
    let stages: Vec<&str> = repository.file("Dockerfile").split("\nFROM ").collect();
    let last = stages.last().unwrap();
    assert!(last.starts_with("scratch "), "the image that is built by default has no shell");
    for stage in stages.iter().filter(|stage| stage.contains("ENTRYPOINT")) {
        assert!(stage.contains("USER 65532") && stage.matches("COPY").count() == 1, "{stage}");
    }
}

/// Without `python3-venv`, Debian's Python creates no environments with packages.
#[test]
fn the_image_of_workers_has_what_tasks_of_programs_need() {
    let repository = Repository::read();
    let image = repository.file("Dockerfile");
    let worker = image.split("\nFROM ").find(|stage| stage.contains(" AS worker")).unwrap();
    let installed: Vec<&str> = worker.split_whitespace().collect();
    for package in ["bash", "ca-certificates", "python3", "python3-venv"] {
        assert!(installed.contains(&package), "{package}");
    }
}
