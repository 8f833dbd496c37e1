//! What is counted and who is called: by lines that the code writes, with chapters that the runbook has.

use super::reading::{Repository, attributes, could_say, inside, literals, words};
use super::{Names, compare};

/// What is counted although nothing writes it yet.
const STILL_TO_COME: [&str; 1] = ["open_breakers"];

/// Every line that is counted is one that the code writes.
pub(crate) fn counts(repository: &Repository) -> Vec<String> {
    let metrics = inside(repository.file("terraform/logs.tf"), "log_metrics = {");
    let mut found = Vec::new();
    for metric in attributes(metrics) {
        let pattern = literals(inside(metrics, &format!("{metric} = {{")).split("message ").nth(1).unwrap())
            .next()
            .unwrap();
        let sources = || repository.code("shared/").chain(repository.code("functions/"));
        let written = |text: &str| {
            sources().any(|(_, code)| code.lines().flat_map(literals).any(|line| could_say(line, text)))
        };
        let mut lines = pattern.split('|').map(|line| line.trim_start_matches('^'));
        let awaited = STILL_TO_COME.contains(&metric.as_str());
        if lines.clone().any(|line| written(line) == awaited) {
            found.push(match awaited {
                true => format!("{metric} is written now: take it out of STILL_TO_COME"),
                false => format!("{metric} counts lines that nothing writes: {pattern}"),
            });
        }
        let names = repository.file("shared/store/src/inspection.rs");
        let fault = |line: &str| line.strip_prefix("Found ").map(|name| format!("=> \"{}\"", name.trim()));
        if lines.any(|line| fault(line).is_some_and(|fault| !names.contains(&fault))) {
            found.push(format!("{metric} counts a fault that there is not: {pattern}"));
        }
    }
    found
}

/// Each alert has a chapter in the runbook, whose commands there are.
pub(crate) fn alerts(repository: &Repository) -> Vec<String> {
    let kebab = |name: &str| name.trim_end_matches("_critical").replace('_', "-");
    let sent: Names = attributes(inside(repository.file("terraform/alerts.tf"), "alerts = {"))
        .iter()
        .map(|name| kebab(name))
        .collect();
    let runbook = repository.file("docs/runbook.md");
    let chapters = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let chapters: Names = chapters.map(|title| title.to_lowercase().replace(' ', "-")).collect();
    let mut found = compare("alerts", ("terraform/alerts.tf", sent), ("docs/runbook.md", chapters));
    let commands = repository.commands();
    let told = words(runbook, "ebb ", |letter| letter.is_ascii_lowercase() || letter == '-');
    let unknown = told.iter().filter(|command| !commands.contains(command.trim_start_matches("ebb ")));
    found.extend(unknown.map(|command| format!("docs/runbook.md: there is no `{command}`")));
    found
}
