//! The ports that docker-compose.yml opens: to the console and to webhooks, and to nothing else.

use std::collections::BTreeMap;

use super::reading::{Repository, literals};
use super::{Names, compare};

/// The services and their definitions.
fn services(text: &str) -> BTreeMap<&str, String> {
    let list = text.split("\nservices:\n").nth(1).unwrap_or_default();
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    let mut name = "";
    for line in list.lines().take_while(|line| line.is_empty() || line.starts_with(' ')) {
        if let Some(next) = line.strip_prefix("  ").filter(|rest| rest.starts_with(char::is_alphabetic)) {
            name = next.split(':').next().unwrap_or_default();
        }
        found.entry(name).or_default().push_str(&format!("{line}\n"));
    }
    found
}

pub(crate) fn composition(repository: &Repository) -> Vec<String> {
    let text = repository.file("docker-compose.yml");
    let services = services(text);
    let mut found = Vec::new();
    let readers = repository.code("functions/").filter(|(_, text)| text.contains("config.secrets"));
    for function in readers.filter_map(|(path, _)| path.split('/').nth(1)) {
        let has_secrets = |body: &&String| {
            body.contains("EBB_SECRETS_DIR: /run/secrets-of-workflows") && body.contains("volumes: *secrets")
        };
        let serving = format!("[serve, {function}]");
        if !services.values().filter(|body| body.contains(&serving)).all(|body| has_secrets(&body)) {
            found.push(format!(
                "secrets: docker-compose.yml does not show {function} the secrets of workflows"
            ));
        }
    }
    // Pushes are not authenticated here, so functions that accept them must not be reachable.
    let open: Names = services
        .iter()
        .filter(|(_, body)| body.contains("    ports:"))
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let pushed = |body: &String| {
        let function = body.split("[serve, ").nth(1).and_then(|rest| rest.split(']').next());
        function.is_some_and(|function| {
            let folder = format!("functions/{function}/src/");
            repository.code(&folder).any(|(_, text)| text.contains(".route(\"/push\", post("))
        })
    };
    let exposed = services.iter().filter(|(name, body)| open.contains(**name) && pushed(body));
    found.extend(exposed.map(|(name, _)| format!("docker-compose.yml lets anyone push to {name}")));
    if !open.contains("hooks") {
        found.push("webhooks: docker-compose.yml has no way in for them".into());
    }
    found.extend(ways_in(repository, text));
    found
}

/// The proxy passes only the webhook paths of the trigger.
fn ways_in(repository: &Repository, text: &str) -> Vec<String> {
    let routes = literals(repository.file("functions/trigger/src/webhooks.rs"))
        .filter(|path| path.starts_with("/api/v1/"))
        .filter_map(|path| path.split("{workflow}").next());
    let taken: Names = routes.map(|path| path.replace("{tenant}", "[^/]+")).collect();
    let passing = text.lines().filter(|line| line.contains("proxy_pass http://trigger:8080;"));
    let passed: Names = passing
        .filter_map(|line| line.trim().strip_prefix("location ")?.split(" {").next())
        .map(|path| path.trim_start_matches("~ ^").to_owned())
        .collect();
    compare("webhooks", ("functions/trigger/src/webhooks.rs", taken), ("docker-compose.yml", passed))
}
