//! Copies the archive of Postgres programs from the crate that contains it for this target.
//!
//! That crate has neither code nor a build script, so `cargo metadata` tells where its sources are.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rustc-check-cfg=cfg(compiled_in)");
    if env::var_os("CARGO_FEATURE_PGLITE").is_none() {
        return;
    }
    let Some(archive) = archive() else { return };
    let copy = PathBuf::from(variable("OUT_DIR")).join("postgres.tar.zst");
    std::fs::copy(&archive, &copy).unwrap_or_else(|e| panic!("copy {}: {e}", archive.display()));
    println!("cargo::rustc-cfg=compiled_in");
}

/// The archive for the target, if there is one for it.
fn archive() -> Option<PathBuf> {
    let target = variable("TARGET");
    let name = format!("pglite-rs-lib-{target}");
    let packages = packages(&target);
    let package = packages.as_array()?.iter().find(|package| package["name"] == *name)?;
    let manifest = PathBuf::from(package["manifest_path"].as_str()?);
    Some(manifest.with_file_name("lib").join("pglite-runtime.tar.zst"))
}

/// Every package that the workspace depends on when built for `target`.
fn packages(target: &str) -> serde_json::Value {
    let output = Command::new(variable("CARGO"))
        .args(["metadata", "--format-version", "1", "--filter-platform", target])
        .current_dir(variable("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this build script");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"].take()
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
