//! README and book say plainly what does not keep tenants apart.

use super::reading::Repository;

/// The maximum length of the README, in lines.
const MAX_README: usize = 150;

/// What each page must say.
const STATEMENTS: [(&str, &[&str]); 3] = [
    (
        "README.md",
        &[
            "Programs of one worker share its kernel, its network and the account of its machine.",
            "Tenants that do not trust each other need workers of their own.",
            "[threat model](docs/src/explanation/threat-model.md)",
        ],
    ),
    (
        "docs/src/explanation/threat-model.md",
        &[
            "a program with the default network can reach the metadata server and so act as the pool's account",
            "may read the worker's own token",
            "nothing of another tenant",
            "`network: none` prevents it",
        ],
    ),
    (
        "docs/src/guides/run-workers.md",
        &[
            "can reach the metadata server there, and so act as the pool's account",
            "may read the worker's own token",
            "lease tasks of that one tenant",
            "`network: none` prevents this for a task",
        ],
    ),
];

/// What is not said.
fn missing(repository: &Repository) -> Vec<String> {
    let mut found = Vec::new();
    for (path, statements) in STATEMENTS {
        // A line may end anywhere in a sentence.
        let text = repository.file(path).split_whitespace().collect::<Vec<_>>().join(" ");
        let absent = statements.iter().filter(|statement| !text.contains(**statement));
        found.extend(absent.map(|statement| format!("{path} does not say `{statement}`")));
    }
    found
}

#[test]
fn the_limits_of_tenant_isolation_are_stated() {
    let repository = Repository::read();
    assert_eq!(missing(&repository), Vec::<String>::new());
    assert!(repository.file("README.md").lines().count() <= MAX_README);
}

#[test]
fn every_statement_that_is_removed_is_missed() {
    for (path, right) in [
        ("README.md", "share its kernel, its network"),
        ("README.md", "Tenants that do not trust each other"),
        ("README.md", "[threat model](docs/src/explanation/threat-model.md)"),
        ("docs/src/explanation/threat-model.md", "network can reach the metadata server and so act"),
        ("docs/src/explanation/threat-model.md", "That account may read the worker's own token"),
        ("docs/src/explanation/threat-model.md", "`network: none` prevents it"),
        ("docs/src/guides/run-workers.md", "can reach the metadata server there"),
        ("docs/src/guides/run-workers.md", "lease tasks of that one tenant"),
        ("docs/src/guides/run-workers.md", "prevents this for a task"),
    ] {
        let mut repository = Repository::read();
        repository.plant(path, right, "");
        let found = missing(&repository);
        assert!(found.len() == 1 && found[0].starts_with(path), "{path}: {found:?}");
    }
}
