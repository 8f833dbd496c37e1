//! What docker-compose.yml opens: ports to the console and to webhooks, the API to the worker, and nothing else; and what it
//! limits.

use std::collections::BTreeMap;

use super::reading::{Repository, literals};
use super::secrets::reads_secrets;
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
    let readers = repository.code("functions/").filter(|(_, text)| reads_secrets(text));
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
    found.extend(worker(&services));
    found.extend(unlimited(&services));
    found
}

/// The worker runs code of users: it shares a network with the console alone, and does not know where the database is.
fn worker(services: &BTreeMap<&str, String>) -> Vec<String> {
    let mut found = Vec::new();
    let networks = |body: &str| {
        let listed = body.split("    networks: [").nth(1).and_then(|rest| rest.split(']').next());
        listed.unwrap_or("default").split(", ").map(str::to_owned).collect::<Names>()
    };
    let own = services.get("worker").map(|body| networks(body)).unwrap_or_default();
    let beside = services.iter().filter(|(_, body)| !networks(body).is_disjoint(&own));
    let beside: Names = beside.map(|(name, _)| (*name).to_owned()).collect();
    if beside != Names::from(["console".to_owned(), "worker".to_owned()]) {
        found.push(format!("docker-compose.yml: the worker reaches {beside:?}"));
    }
    let inherits =
        |body: &String| ["DATABASE_URL", "*environment", "*function", "*execute"].map(|it| body.contains(it));
    if services.get("worker").is_some_and(|body| inherits(body).contains(&true)) {
        found.push("docker-compose.yml tells the worker what services know, such as DATABASE_URL".into());
    }
    found
}

/// Programs run as the user of their service, whose limits are the only ones that hold for all of them together.
fn unlimited(services: &BTreeMap<&str, String>) -> Vec<String> {
    let runs_programs = |body: &str| body.contains("\n    image: ebbflow-worker\n");
    let limits = ["pids_limit", "mem_limit"];
    let missing = services.iter().filter(|(_, body)| runs_programs(body)).flat_map(|(name, body)| {
        let absent = limits.into_iter().filter(move |limit| !body.contains(&format!("\n    {limit}: ")));
        absent.map(move |limit| format!("docker-compose.yml sets no {limit} for {name}, which runs programs"))
    });
    missing.collect()
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

#[test]
fn a_worker_that_reaches_or_knows_more_is_found() {
    assert_eq!(composition(&Repository::read()), Vec::<String>::new());
    let sweep = "  sweep:\n    <<: *function\n";
    let url = "      EBB_URL: http://console:8080\n";
    for (right, wrong, expected) in [
        ("    networks: [api]\n", String::new(), "worker reaches"),
        ("    networks: [api]\n", "    networks: [default, api]\n".to_owned(), "worker reaches"),
        (sweep, format!("{sweep}    networks: [default, api]\n"), "worker reaches"),
        (url, format!("      <<: *environment\n{url}"), "DATABASE_URL"),
        (url, format!("{url}      DATABASE_URL: *database\n"), "DATABASE_URL"),
    ] {
        let mut repository = Repository::read();
        repository.plant("docker-compose.yml", right, &wrong);
        let found = composition(&repository);
        assert!(found.len() == 1 && found[0].contains(expected), "{right} → {wrong}: {found:?}");
    }
}
