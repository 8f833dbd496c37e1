//! Log-based metrics count events that the code logs, every alert has a chapter in the runbook, and dashboards show what matters.

use serde_json::Value;

use super::reading::{Repository, attributes, inside, literals, quoted, words};
use super::{Names, compare};

/// Alerts on Cloud SQL, which those who run their own Postgres watch with its own exporter.
const CLOUD_ONLY: [&str; 3] = ["database-disk", "database-cpu", "backup-failed"];

/// Roles of the database, whose names begin like those of metrics.
const ROLES: [&str; 1] = ["ebbflow_owner"];

/// Chapters of the runbook about what raises no alert.
const SITUATIONS: [&str; 2] = ["Stuck in running", "Repeated failures"];

/// The dashboards for Grafana.
const DASHBOARDS: [&str; 3] = ["overview.json", "performance.json", "reliability.json"];

/// What the dashboards show: words of a panel's title, and a part of its query.
const CHARTED: [(&str, &str); 7] = [
    ("active runs", "(ebbflow_runs{"),
    ("task type", "sum by (kind) (rate(ebbflow_attempts_total"),
    ("failed tasks, by type", "sum by (kind) (increase(ebbflow_tasks_ended_total"),
    ("evaluation latency", "ebbflow_settle_seconds_bucket"),
    ("retries", "ebbflow_retries_total"),
    ("breakers", "ebbflow_breakers_open"),
    ("workers", "ebbflow_workers"),
];

/// How a query of a dashboard is limited to one installation: metrics at Google have its name as the label `cluster`.
const OF_ONE: &str = "{cluster=~\"$installation\"";

/// Labels that the collector adds, and that of buckets.
const ADDED: [&str; 2] = ["instance", "le"];

/// What says "of one type" counts each type by itself.
const BY_TYPE: [(&str, &str); 2] = [
    ("terraform/alerts.tf", "reducer = \"REDUCE_SUM\", by = [\"metric.labels.kind\"]"),
    (
        "deploy/prometheus/rules.yaml",
        "sum by (kind) (increase(ebbflow_tasks_ended_total{state=\"failed\"}[10m])) > 20",
    ),
];

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
    let summed = BY_TYPE.iter().filter(|(file, query)| !repository.file(file).contains(query));
    found.extend(summed.map(|(file, _)| format!("task failures in {file} are not counted by type")));
    let led: Names = quoted_after(rules, "docs/src/operations/runbook.md#");
    found.extend(compare("chapters", ("terraform/alerts.tf", sent), ("deploy/prometheus/rules.yaml", led)));
    let commands = repository.commands();
    let mentioned = words(runbook, "ebb ", |letter| letter.is_ascii_lowercase() || letter == '-');
    let unknown = mentioned.iter().filter(|command| !commands.contains(command.trim_start_matches("ebb ")));
    found.extend(unknown.map(|command| format!("docs/src/operations/runbook.md: there is no `{command}`")));
    found
}

/// Each chapter says what the situation means, how to investigate it, and what to do, with commands that reach what they need:
/// nobody outside Google's network can call an internal service.
pub(crate) fn chapters(repository: &Repository) -> Vec<String> {
    let runbook = repository.file("docs/src/operations/runbook.md");
    let titled = runbook.split("\n##").skip(1).filter_map(|chapter| {
        let (title, text) = chapter.split_once('\n')?;
        Some((title.strip_prefix("# ").map_or((title.trim(), false), |title| (title, true)), text))
    });
    let chapters: Vec<((&str, bool), &str)> = titled.collect();
    let missing = SITUATIONS
        .iter()
        .filter(|title| !chapters.iter().any(|((name, _), _)| name == *title))
        .map(|title| format!("docs/src/operations/runbook.md has no chapter `{title}`"));
    // Other chapters of the lower level may be written as they like.
    let checked = chapters.iter().filter(|((title, lower), _)| !lower || SITUATIONS.contains(title));
    let incomplete = checked.flat_map(|((title, _), text)| {
        let parts = ["**Meaning.**", "**Investigate.**", "**Act.**"].into_iter();
        parts.filter(move |part| !text.contains(part)).map(move |part| {
            format!("docs/src/operations/runbook.md: the chapter `{title}` has no part {part}")
        })
    });
    let called = runbook.lines().filter(|line| line.contains("curl"));
    let called = called.map(|line| format!("docs/src/operations/runbook.md: cannot be reached: {line}"));
    missing.chain(incomplete).chain(called).collect()
}

/// The dashboards show everything that they must.
pub(crate) fn dashboards(repository: &Repository) -> Vec<String> {
    let mut panels = Vec::new();
    let files = repository.files("deploy/grafana/dashboards/");
    let files: Names = files.filter_map(|(path, _)| path.rsplit('/').next()).map(str::to_owned).collect();
    let wanted = DASHBOARDS.map(str::to_owned).into();
    let mut found = compare("dashboards", ("deploy/grafana", files), ("those that are documented", wanted));
    for (_, text) in repository.files("deploy/grafana/dashboards/") {
        let dashboard: Value = serde_json::from_str(text).unwrap();
        let mut variables = dashboard["templating"]["list"].as_array().into_iter().flatten();
        if !variables.any(|variable| variable["name"] == "installation" && variable["allValue"] == ".*") {
            found.push(format!("{} cannot tell installations apart", dashboard["title"]));
        }
        panels.extend(dashboard["panels"].as_array().unwrap().iter().map(|panel| {
            let title = panel["title"].as_str().unwrap().to_lowercase();
            let targets = panel["targets"].as_array().into_iter().flatten();
            (title, targets.filter_map(|target| target["expr"].as_str()).collect::<Vec<_>>().join("\n"))
        }));
    }
    let shown = |(words, query): &(&str, &str)| {
        panels.iter().any(|(title, queries)| title.contains(words) && queries.contains(query))
    };
    let everybody =
        panels.iter().filter(|(_, query)| query.matches("ebbflow_").count() != query.matches(OF_ONE).count());
    found.extend(everybody.map(|(title, query)| format!("`{title}` shows all installations: {query}")));
    let missing = CHARTED.iter().filter(|topic| !shown(topic));
    found.extend(missing.map(|(words, query)| format!("no dashboard shows {words} with {query}")));
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
        found.extend(ungrouped(repository.file(catalogue), path, text));
    }
    found
}

/// Queries that group a metric by a label that it does not have: they would find one group, of everything.
fn ungrouped(catalogue: &str, path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, start) in text.match_indices("by (") {
        let (labels, rest) = text[at + start.len()..].split_once(')').unwrap_or_default();
        let metric = rest.split("ebbflow_").nth(1).and_then(|rest| rest.split(['{', '[', ')']).next());
        let metric = metric.unwrap_or_default().trim_end_matches("_bucket").trim_end_matches("_count");
        let entry = catalogue.split(&format!("\"ebbflow_{metric}\",")).nth(1);
        let known: Names = entry
            .and_then(|rest| rest.split(']').next())
            .map_or_else(Names::new, |labels| literals(labels).map(str::to_owned).collect());
        let lacking = labels.split(", ").filter(|label| !known.contains(*label) && !ADDED.contains(label));
        found.extend(
            lacking.map(|label| format!("{path} groups ebbflow_{metric} by `{label}`, which it lacks")),
        );
    }
    found
}

#[test]
fn what_counts_other_things_than_it_says_is_found() {
    for (path, right, wrong, expected) in [
        (
            "deploy/prometheus/rules.yaml",
            "sum by (kind) (increase(ebbflow_tasks_ended_total",
            "sum(increase(ebbflow_tasks_ended_total",
            "by type",
        ),
        ("shared/host/src/metrics/catalogue.rs", "&[\"kind\", \"state\"]", "&[\"state\"]", "which it lacks"),
        (
            "deploy/grafana/dashboards/overview.json",
            "ebbflow_runs{cluster=~\\\"$installation\\\"}",
            "ebbflow_runs{}",
            "all installations",
        ),
    ] {
        let mut repository = Repository::read();
        repository.plant(path, right, wrong);
        let found = [alerts(&repository), numbers(&repository), dashboards(&repository)].concat();
        assert!(found.iter().any(|problem| problem.contains(expected)), "{path}: {wrong}: {found:#?}");
    }
}
