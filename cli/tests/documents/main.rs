//! The documents: generated pages are current, every page is in the summary, every link leads somewhere.
//!
//! `INSTA_UPDATE=always cargo test -p ebb --test documents` writes the generated pages again.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod cli;
mod commands;
mod endpoints;
mod links;
mod mentions;
mod task_types;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use model::TaskKind;

/// Writes the text of a page.
type Generate = fn() -> String;

/// Every generated page below `docs/src`, and what writes it.
const GENERATED: [(&str, Generate); 3] = [
    ("reference/task-types.md", task_types::page),
    ("reference/cli.md", cli::page),
    ("reference/api-endpoints.md", endpoints::page),
];

/// Documents outside the book whose links are checked.
const OTHERS: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "clients/python/README.md",
    "migrations/README.md",
    "terraform/README.md",
    "terraform/check/README.md",
    "workflows/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn book() -> PathBuf {
    root().join("docs/src")
}

/// The files below a folder whose names end with `.` and the extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { files(&path, extension) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    found.sort();
    found
}

#[test]
fn generated_pages_are_current() {
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    for (name, page) in GENERATED {
        let (path, page) = (book().join(name), page());
        if update {
            fs::write(&path, page).unwrap();
            continue;
        }
        let command = "INSTA_UPDATE=always cargo test -p ebb --test documents";
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert!(published == page, "docs/src/{name} is out of date; update it with: {command}");
    }
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = book().join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> =
        links::in_document(&summary).into_iter().map(|link| book().join(link.target)).collect();
    let pages: BTreeSet<PathBuf> = files(&book(), "md").into_iter().filter(|page| *page != summary).collect();
    assert_eq!(listed, pages);
}

#[test]
fn every_link_leads_somewhere() {
    let documents = files(&book(), "md").into_iter().chain(OTHERS.map(|name| root().join(name)));
    let broken: Vec<String> = documents.flat_map(|document| links::broken(&document)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_command_of_ebb_is_one_that_it_takes() {
    // The changelog also mentions commands of its time.
    let others = OTHERS.iter().filter(|name| **name != "CHANGELOG.md").map(|name| root().join(name));
    let documents = files(&book(), "md").into_iter().chain(others);
    let rejected: Vec<String> = documents.flat_map(|document| commands::rejected(&document)).collect();
    assert!(rejected.is_empty(), "{rejected:#?}");
}

#[test]
fn every_file_and_test_that_the_architecture_mentions_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let sources: Vec<PathBuf> = ["cli", "functions", "shared", "tests", "tools"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), "rs"))
        .collect();
    let missing = mentions::missing(&text, &sources);
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_environment_variable_is_documented() {
    let page = fs::read_to_string(book().join("reference/environment.md")).unwrap();
    let sources = ["cli/src", "functions", "shared/host/src", "shared/embedded/src"];
    let sources = sources.iter().flat_map(|folder| files(&root().join(folder), "rs"));
    let product = sources.filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"));
    let names: BTreeSet<String> =
        product.flat_map(|path| variables(&fs::read_to_string(path).unwrap())).collect();
    // A name in the source may be the beginning of several, such as `EBB_PUSH`.
    let is_there =
        |name: &&String| page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}_"));
    let missing: Vec<&String> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "docs/src/reference/environment.md does not mention {missing:?}");
}

#[test]
fn the_language_reference_names_every_task_type() {
    let page = fs::read_to_string(book().join("reference/language.md")).unwrap();
    let tasks = page.split("\n## ").find(|section| section.starts_with("Tasks\n")).unwrap();
    let is_missing = |kind: &&TaskKind| !tasks.contains(&format!("`{kind}`"));
    let missing: Vec<&TaskKind> = TaskKind::ALL.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "docs/src/reference/language.md does not say who executes {missing:?}");
}

/// The quoted names that begin with `EBB_`, but no mere prefixes, outside the unit tests at a file's end.
fn variables(source: &str) -> Vec<String> {
    let source = source.split("\nmod tests {").next().unwrap_or_default();
    let quoted = source.split('"').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.starts_with("EBB_")
            && !text.ends_with('_')
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    quoted.filter(is_name).map(str::to_owned).collect()
}
