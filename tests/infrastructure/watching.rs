//! Log-based metrics count events that the code logs, and every alert has a chapter in the runbook.

use super::reading::{Repository, attributes, inside, literals, quoted, words};
use super::{Names, compare};

/// Alerts on Cloud SQL, which those who run their own Postgres watch with its own exporter.
const CLOUD_ONLY: [&str; 3] = ["database-disk", "database-cpu", "backup-failed"];

/// Roles of the database, whose names begin like those of metrics.
const ROLES: [&str; 1] = ["ebbflow_owner"];

/// Every event that terraform counts is one that the code logs, and the other way round. Some of an inspection's faults are
/// counted, too: a finding is logged with its fault as the event.
pub(crate) fn counts(repository: &Repository) -> Vec<String> {
    let metrics = inside(repository.file("terraform/logs.tf"), "log_metrics = {");
    let counted: Names = metrics
        .split("events ")
        .skip(1)
        .flat_map(|rest| literals(rest.split(']').next().unwrap()))
        .map(str::to_owned)
        .collect();
    let sources = || repository.code("shared/").chain(repository.code("functions/"));
    let logged: Names = sources().flat_map(|(_, code)| quoted(code, "event = \"")).collect();
    let faults = quoted(repository.file("shared/store/src/inspection.rs"), "=> \"");
    let findings = sources().any(|(_, code)| code.contains("event = fault"));
    let known: Names =
        counted.iter().filter(|event| !findings || !faults.contains(*event)).cloned().collect();
    compare("events", ("terraform/logs.tf", known), ("the code", logged))
}

/// Each alert has a chapter in the runbook, and the commands in it exist.
pub(crate) fn alerts(repository: &Repository) -> Vec<String> {
    let kebab = |name: &str| name.trim_end_matches("_critical").replace('_', "-");
    let sent: Names = attributes(inside(repository.file("terraform/alerts.tf"), "alerts = {"))
        .iter()
        .map(|name| kebab(name))
        .collect();
    let runbook = repository.file("docs/src/operations/runbook.md");
    let chapters = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let chapters: Names = chapters.map(|title| title.to_lowercase().replace(' ', "-")).collect();
    let mut found = compare(
        "alerts",
        ("terraform/alerts.tf", sent.clone()),
        ("docs/src/operations/runbook.md", chapters),
    );
    let rules = repository.file("deploy/prometheus/rules.yaml");
    let ruled: Names = quoted_after(rules, "alert: ").iter().map(|name| kebab(name)).collect();
    let sent: Names = sent.into_iter().filter(|name| !CLOUD_ONLY.contains(&name.as_str())).collect();
    found.extend(compare(
        "alerts",
        ("terraform/alerts.tf", sent.clone()),
        ("deploy/prometheus/rules.yaml", ruled),
    ));
    let led: Names = quoted_after(rules, "docs/src/operations/runbook.md#");
    found.extend(compare("chapters", ("terraform/alerts.tf", sent), ("deploy/prometheus/rules.yaml", led)));
    let commands = repository.commands();
    let mentioned = words(runbook, "ebb ", |letter| letter.is_ascii_lowercase() || letter == '-');
    let unknown = mentioned.iter().filter(|command| !commands.contains(command.trim_start_matches("ebb ")));
    found.extend(unknown.map(|command| format!("docs/src/operations/runbook.md: there is no `{command}`")));
    found
}

/// What follows each `start` up to the end of its line.
fn quoted_after(text: &str, start: &str) -> Names {
    text.split(start).skip(1).filter_map(|rest| rest.lines().next()).map(str::to_owned).collect()
}

/// Every metric that is counted is listed, and every one that is listed is counted; rules ask for no others.
pub(crate) fn numbers(repository: &Repository) -> Vec<String> {
    let name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let catalogue = "shared/host/src/metrics/catalogue.rs";
    let listed = words(repository.file(catalogue), "\"ebbflow_", name);
    let sources = repository.code("shared/").chain(repository.code("functions/"));
    let counted: Names = sources
        .filter(|(path, _)| *path != catalogue)
        .flat_map(|(_, text)| words(text, "\"ebbflow_", name))
        .filter(|name| !ROLES.contains(&name.as_str()))
        .collect();
    let mut found = compare("metrics", (catalogue, listed.clone()), ("the code", counted));
    let known = |asked: &str| {
        let parts = ["", "_bucket", "_count"].map(|part| asked.strip_suffix(part));
        parts.into_iter().flatten().any(|name| listed.contains(name))
    };
    let askers = repository.files("deploy/prometheus/").chain(repository.files("deploy/grafana/"));
    for (path, text) in askers {
        let asked = words(text, "ebbflow_", name);
        let unknown = asked.iter().filter(|asked| !known(asked));
        found.extend(unknown.map(|asked| format!("{path} asks for {asked}, which nobody counts")));
    }
    found
}
