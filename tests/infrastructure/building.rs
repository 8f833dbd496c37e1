//! What Cloud Build does, in which order, and the image that comes of it.

use super::Names;
use super::reading::{Repository, quoted, words};

#[test]
fn a_build_is_tested_before_it_is_migrated_to_and_migrated_to_before_it_is_deployed() {
    let repository = Repository::read();
    let build = repository.file("cloudbuild.yaml");
    let steps: Vec<&str> = build.lines().filter_map(|line| line.trim().strip_prefix("- id: ")).collect();
    assert_eq!(steps, ["test", "dependencies", "build-and-push", "migrate", "deploy"]);
    assert!(!build.contains("waitFor"), "steps wait for the one before");
    assert!(
        repository.file("terraform/migrate.tf").contains("\"${var.name}-migrate\"")
            && build.contains("execute \"$_NAME-migrate\"")
    );
    let (up, moved) = (build.find("--no-traffic").unwrap(), build.find("--to-latest").unwrap());
    assert!(up < moved, "traffic moves once everything is up");
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
    let skipped = build.find("[ \"$_TEST\" = yes ] ||").unwrap();
    assert!(skipped < added && added < gate);
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
