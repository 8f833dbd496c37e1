//! What the program depends on: `cargo deny` checks it in a build, and these tests check licences and lists without it.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::Names;
use super::reading::{Repository, quoted};

/// The licences that deny.toml allows.
fn allowed() -> Names {
    let repository = Repository::read();
    let list = repository.file("deny.toml").split("[licenses]\nallow = [").nth(1).unwrap();
    quoted(list.split("\n]").next().unwrap(), "    \"")
}

/// Whether a licence expression is satisfied by allowed licences: `MIT OR Apache-2.0`, `ISC AND (MIT OR Zlib)`, `MIT/Zlib`.
fn is_allowed(expression: &str, allowed: &Names) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any(&words, allowed);
    assert!(rest.is_empty(), "cannot parse `{expression}`");
    met
}

fn any<'w>(words: &'w [&'w str], allowed: &Names) -> (bool, &'w [&'w str]) {
    let (mut met, mut rest) = all(words, allowed);
    while let Some((&"OR", after)) = rest.split_first() {
        let (other, after) = all(after, allowed);
        (met, rest) = (met || other, after);
    }
    (met, rest)
}

fn all<'w>(words: &'w [&'w str], allowed: &Names) -> (bool, &'w [&'w str]) {
    let (mut met, mut rest) = one(words, allowed);
    while let Some((&"AND", after)) = rest.split_first() {
        let (other, after) = one(after, allowed);
        (met, rest) = (met && other, after);
    }
    (met, rest)
}

fn one<'w>(words: &'w [&'w str], allowed: &Names) -> (bool, &'w [&'w str]) {
    match words {
        ["(", rest @ ..] => {
            let (met, rest) = any(rest, allowed);
            (met, rest.strip_prefix(&[")"]).expect("brackets are closed"))
        }
        // An exception gives more rights, but it is another licence for `cargo deny`.
        [name, "WITH", exception, rest @ ..] => (allowed.contains(&format!("{name} WITH {exception}")), rest),
        [name, rest @ ..] => (allowed.contains(*name), rest),
        [] => panic!("the expression ends too soon"),
    }
}

#[test]
fn licence_expressions_are_understood() {
    let allowed: Names = ["MIT", "ISC"].map(str::to_owned).into();
    for expression in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "ISC AND (GPL-3.0 OR MIT)", "(MIT) AND ISC"] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR (MIT AND MPL-2.0)", "MIT WITH x"] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed_and_comes_from_the_registry() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (allowed, packages) = (allowed(), metadata["packages"].as_array().unwrap());
    assert!(packages.len() > 100 && allowed.contains("MIT"), "{allowed:?}");
    for package in packages.iter().filter(|package| !package["source"].is_null()) {
        let name = format!("{} {}", package["name"], package["version"]);
        assert!(
            package["source"].as_str().unwrap().starts_with("registry+"),
            "{name}: {}",
            package["source"]
        );
        match package["license"].as_str() {
            Some(licence) => assert!(is_allowed(licence, &allowed), "{name}: {licence}"),
            // `cargo deny` recognizes the licence by its text.
            None => assert!(package["license_file"].is_string(), "{name} has no licence"),
        }
    }
}

#[test]
fn the_gate_and_cargo_deny_check_the_same_large_dependencies() {
    let repository = Repository::read();
    let gate = repository.file(".ci/run").split("for crate in ").nth(1).unwrap();
    let gate: Names = gate.split(';').next().unwrap().split_whitespace().map(str::to_owned).collect();
    let entries = repository.file("deny.toml").lines().filter(|line| line.contains("deny-multiple-versions"));
    let denied: Names = entries.flat_map(|line| quoted(line, "crate = \"")).collect();
    assert_eq!(gate, denied);
}

/// Every version but the newest of each dependency that has several, as deny.toml writes it: `0.22` of `0.22.1`, `1` of `1.9.3`.
fn older_versions(lock: &str) -> Names {
    let mut versions: BTreeMap<&str, Vec<Vec<u64>>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| package.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix('"'));
        let (name, version) = (field("name = \"").unwrap(), field("version = \"").unwrap());
        let numbers = version.split(['.', '-', '+']).map_while(|part| part.parse().ok());
        versions.entry(name).or_default().push(numbers.collect());
    }
    let older = |(name, mut versions): (&str, Vec<Vec<u64>>)| {
        versions.sort();
        versions.pop();
        let compatible = |version: &Vec<u64>| match version.as_slice() {
            [0, minor, ..] => format!("{name}@0.{minor}"),
            version => format!("{name}@{}", version[0]),
        };
        versions.iter().map(compatible).collect::<Vec<_>>()
    };
    versions.into_iter().flat_map(older).collect()
}

#[test]
fn a_second_version_of_a_dependency_is_a_decision() {
    let repository = Repository::read();
    let deny = repository.file("deny.toml");
    assert!(deny.contains("multiple-versions = \"deny\""));
    let skipped = deny.split("\nskip = [").nth(1).unwrap().split("\n]").next().unwrap();
    let skipped: Names = skipped.lines().flat_map(|line| quoted(line, "crate = \"")).collect();
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock")).unwrap();
    assert_eq!(skipped, older_versions(&lock), "deny.toml and Cargo.lock differ");
}

#[test]
fn a_build_checks_dependencies_and_lists_them_in_both_images() {
    let repository = Repository::read();
    assert!(repository.file("cloudbuild.yaml").contains("cargo deny --locked check"));
    let image = repository.file("Dockerfile");
    let built = image.find("cargo cyclonedx --manifest-path cli/Cargo.toml").unwrap();
    assert!(built < image.find("AS worker").unwrap());
    assert!(image.contains("json.load(open(\"cli/ebb.cdx.json\"))"), "the list is read before it is shipped");
    assert!(image.contains("cli/ebb.cdx.json /worker/usr/local/share/ebb/sbom.cdx.json"));
    assert!(image.contains("deploy/image/assemble target/release/ebb cli/ebb.cdx.json /image"));
}
