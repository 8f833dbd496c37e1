//! Terraform creates what the code needs, and nothing else. What the code needs is read from the code.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "infrastructure/building.rs"]
mod building;
#[path = "infrastructure/composition.rs"]
mod composition;
#[path = "infrastructure/costs.rs"]
mod costs;
#[path = "infrastructure/dependencies.rs"]
mod dependencies;
#[path = "infrastructure/drill.rs"]
mod drill;
#[path = "infrastructure/image.rs"]
mod image;
#[path = "infrastructure/isolation.rs"]
mod isolation;
#[path = "infrastructure/limits.rs"]
mod limits;
#[path = "infrastructure/plans.rs"]
mod plans;
#[path = "infrastructure/planted.rs"]
mod planted;
#[path = "infrastructure/pushing.rs"]
mod pushing;
#[path = "infrastructure/reading.rs"]
mod reading;
#[path = "infrastructure/recovery.rs"]
mod recovery;
#[path = "infrastructure/released.rs"]
mod released;
#[path = "infrastructure/rollback.rs"]
mod rollback;
#[path = "infrastructure/secrets.rs"]
mod secrets;
#[path = "infrastructure/streams.rs"]
mod streams;
#[path = "infrastructure/watching.rs"]
mod watching;

use std::collections::BTreeSet;
use std::fmt::Debug;

use composition::composition;
use limits::limits;
use pushing::{publishers, routes, subscriptions, topics};
use reading::{Repository, definitions, inside, one_of, quoted, words};
use secrets::secrets;
use streams::streams;
use watching::{alerts, chapters, counts, dashboards, numbers};

/// Variables that terraform does not set, and why.
const SET_ELSEWHERE: [(&str, &str); 27] = [
    ("EBB_API_GRANTS", "roles are granted over the API"),
    ("EBB_API_GROUP_CLAIM", "Google's tokens contain no groups"),
    ("EBB_API_INTROSPECTION_AUDIENCES", "opaque tokens are accepted only on request"),
    ("EBB_API_INTROSPECTION_URL", "the default is Google"),
    ("EBB_ARCHIVE_DIR", "folders on Cloud Run do not outlive an instance"),
    ("EBB_BROKER_URL", "the local broker instead of Pub/Sub"),
    ("EBB_CONTAINMENT", "the default applies"),
    ("EBB_DATABASE_IDLE_SECONDS", "the default applies"),
    ("EBB_DEAD_SECONDS", "the default applies"),
    ("EBB_DATA", "a folder of `ebb dev` and the command line"),
    ("EBB_GRACE_SECONDS", "the default fits Cloud Run"),
    ("EBB_HEARTBEAT_SECONDS", "the default applies"),
    ("EBB_HOST", "Cloud Run needs the default"),
    ("EBB_OPERATIONS_TOKEN", "the invoker's token is accepted, too"),
    ("EBB_PUBSUB_ENDPOINT", "the emulator instead of Pub/Sub"),
    ("EBB_PUSH_ISSUER", "Google signs"),
    ("EBB_PUSH_KEYS_URL", "Google signs"),
    ("EBB_QUOTA_RUNS", "the default applies"),
    ("EBB_QUOTA_WORKFLOWS", "the default applies"),
    ("EBB_RATE_CALLER", "the default applies"),
    ("EBB_RATE_TENANT", "the default applies"),
    ("EBB_SECRETS_DIR", "Cloud Run passes secrets as variables"),
    ("EBB_STORAGE_ENDPOINT", "a replacement for Cloud Storage in tests"),
    ("EBB_TASKS_ENDPOINT", "a replacement for Cloud Tasks in tests"),
    ("EBB_TASK_READABLE", "tasks on Cloud Run share no folder"),
    ("EBB_TASK_WRITABLE", "tasks on Cloud Run share no folder"),
    ("EBB_TENANT", "the tenant of the command line"),
];

type Names = BTreeSet<String>;

/// All differences between the code and its infrastructure.
fn problems(repository: &Repository) -> Vec<String> {
    let checks = [
        functions,
        topics,
        subscriptions,
        publishers,
        routes,
        environment,
        secrets,
        grants,
        declarations,
        counts,
        alerts,
        numbers,
        chapters,
        dashboards,
        limits,
        composition,
        streams,
    ];
    checks.iter().flat_map(|check| check(repository)).collect()
}

fn compare<T: Ord + Debug>(
    what: &str,
    (here, ours): (&str, BTreeSet<T>),
    (there, theirs): (&str, BTreeSet<T>),
) -> Vec<String> {
    let only = |place: &str, names: Vec<&T>| match names.is_empty() {
        true => None,
        false => Some(format!("{what} {names:?}: only in {place}")),
    };
    let found =
        [only(here, ours.difference(&theirs).collect()), only(there, theirs.difference(&ours).collect())];
    found.into_iter().flatten().collect()
}

/// Each function is a folder, an argument of `ebb serve`, a service in the cloud and one in docker-compose.yml.
fn functions(repository: &Repository) -> Vec<String> {
    let folders = repository.functions();
    let served: Names = inside(repository.file("cli/src/serve.rs"), "pub enum Function {")
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .map(str::to_lowercase)
        .collect();
    let deployed: Names =
        quoted(inside(repository.file("terraform/functions.tf"), "functions = merge("), "function = \"");
    let composed: Names =
        words(repository.file("docker-compose.yml"), "[serve, ", |letter| letter.is_ascii_lowercase());
    let folders = || ("functions/", folders.clone());
    let mut found = compare("functions", folders(), ("ebb serve", served));
    found.extend(compare("functions", folders(), ("terraform/functions.tf", deployed)));
    found.extend(compare("functions", folders(), ("docker-compose.yml", composed)));
    found
}

/// The variables that functions and the migration read.
fn variables_read(repository: &Repository) -> Names {
    let config =
        &repository.code("shared/host/src/config").map(|(_, text)| text.as_str()).collect::<String>();
    let name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let mut read = words(config, "(\"EBB_", name);
    read.extend(words(config, "days(\"EBB_", name));
    // The settings of token issuers have a prefix.
    let endings = words(config, "{prefix}_", name);
    for prefix in words(config, "tokens(\"EBB_", name) {
        read.remove(&prefix);
        read.extend(
            endings.iter().map(|ending| format!("{prefix}_{}", ending.trim_start_matches("{prefix}_"))),
        );
    }
    let sources = repository.code("shared/").chain(repository.code("functions/"));
    for (_, text) in sources {
        read.extend(words(text, "environment.get(\"EBB_", name));
        read.extend(words(text, "PREFIX: &str = \"EBB_", name));
    }
    // The settings of the command line, above all of the migration.
    for (_, text) in repository.code("cli/src/") {
        read.extend(words(text, "env = \"EBB_", name));
    }
    read
}

fn environment(repository: &Repository) -> Vec<String> {
    let name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let given =
        ["terraform/functions.tf", "terraform/migrate.tf", "terraform/scheduler.tf", "terraform/workers.tf"];
    let set: Names = given.iter().flat_map(|file| words(repository.file(file), "EBB_", name)).collect();
    let elsewhere = SET_ELSEWHERE.map(|(name, _)| name.to_owned());
    let known: Names = set.iter().cloned().chain(elsewhere.clone()).collect();
    let read = variables_read(repository);
    let mut found = compare("variables", ("the code", read.clone()), ("terraform, or SET_ELSEWHERE", known));
    found.extend(
        elsewhere
            .iter()
            .filter(|name| set.contains(*name))
            .map(|name| format!("{name} is set, and SET_ELSEWHERE")),
    );
    let composed = words(repository.file("docker-compose.yml"), "EBB_", name);
    // The user sets the path of this folder on the host.
    let unknown = composed.iter().filter(|name| !read.contains(*name) && *name != "EBB_SECRETS");
    found.extend(unknown.map(|name| format!("docker-compose.yml sets {name}, which is never read")));
    found
}

/// Grants whose absence causes no error.
fn grants(repository: &Repository) -> Vec<String> {
    let terraform = repository.terraform();
    let needed = [
        (
            "resource \"google_pubsub_subscription_iam_member\" ",
            "agent_takes",
            "roles/pubsub.subscriber",
            "local.subscriptions",
        ),
        (
            "resource \"google_pubsub_topic_iam_member\" ",
            "agent_dead_letters",
            "roles/pubsub.publisher",
            "local.topics",
        ),
        (
            "resource \"google_cloud_run_v2_service_iam_member\" ",
            "invoker",
            "roles/run.invoker",
            "toset(values(local.receivers))",
        ),
    ];
    let lacks = |(kind, name, role, each): &(&str, &str, &str, &str)| {
        let made = definitions(&terraform, kind);
        !made
            .get(*name)
            .is_some_and(|body| body.contains(role) && body.contains(&format!("for_each = {each}\n")))
    };
    needed
        .iter()
        .filter(|grant| lacks(grant))
        .map(|(_, name, role, _)| format!("`{name}` does not grant {role} to all"))
        .collect()
}

/// Variables and outputs have descriptions and are used.
fn declarations(repository: &Repository) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repository.files("terraform/").filter(|(path, _)| path.ends_with(".tf")) {
        let folder = path.rsplit_once('/').unwrap().0;
        let used =
            |name: &str| repository.files(folder).any(|(_, text)| one_of(text, &format!("var.{name}")));
        for (name, body) in definitions(text, "variable ") {
            let needed =
                ["description = \"", "type "].map(|word| (word, body.contains(&format!("  {word}"))));
            let missing = needed
                .iter()
                .filter(|(_, has)| !has)
                .map(|(word, _)| format!("{path}: variable {name} has no {word}"));
            found.extend(
                missing.chain((!used(&name)).then(|| format!("{path}: variable {name} is not used"))),
            );
        }
        let outputs =
            definitions(text, "output ").into_iter().filter(|(_, body)| !body.contains("  description = \""));
        found.extend(outputs.map(|(name, _)| format!("{path}: output {name} has no description")));
    }
    found
}

#[test]
fn terraform_creates_what_the_code_needs_and_nothing_else() {
    let found = problems(&Repository::read());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn planted_mistakes_are_found() {
    let plants = [
        (
            "terraform/pubsub.tf",
            "      sweep             = \"${var.name}-management\"\n",
            "",
            "subscriptions",
        ),
        ("terraform/pubsub.tf", "dev.ebbflow.run.finished.v1", "dev.ebbflow.run.ended.v1", "alone"),
        (
            "deploy/prometheus/rules.yaml",
            "ebbflow_timer_overdue_seconds",
            "ebbflow_timers_overdue",
            "ebbflow_timers_overdue",
        ),
        ("deploy/prometheus/rules.yaml", "alert: dead_letters", "alert: lost_letters", "alerts"),
        (
            "functions/execute/src/worker.rs",
            "ebbflow_heartbeats_missed_total",
            "ebbflow_beats_missed_total",
            "metrics",
        ),
        (
            "shared/runtime/src/breakers.rs",
            "event = \"breaker_opened\"",
            "event = \"opened\"",
            "breaker_opened",
        ),
        ("terraform/secrets.tf", "keys(local.secrets_by_function)", "[\"execute\"]", "secrets"),
        ("terraform/functions.tf", "}__${upper", "}_${upper", "secrets"),
        (
            "terraform/pubsub.tf",
            "\"evaluate\", \"execute\", \"sweep\"]",
            "\"evaluate\", \"execute\"]",
            "publish",
        ),
        ("terraform/pubsub.tf", "function[\"execute-light\"]", "function[\"execute-heavy\"]", "callbacks"),
        ("functions/console/Cargo.toml", "api.workspace = true", "", "publish"),
        ("terraform/pubsub.tf", "var.api == null ? [] : [\"console\"]", "[\"console\"]", "publish"),
        ("terraform/pubsub.tf", "\"${var.name}-lifecycle\"", "\"${var.name}-livecycle\"", "topics"),
        (
            "terraform/pubsub.tf",
            "role         = \"roles/pubsub.subscriber\"",
            "role = \"roles/viewer\"",
            "agent_takes",
        ),
        ("terraform/pubsub.tf", "/dead-letters\"\n", "/push\"\n", "dead letters"),
        ("terraform/scheduler.tf", ".uri}/sweep\"", ".uri}/swep\"", "woken"),
        ("terraform/scheduler.tf", "EBB_WAKE_QUEUE", "EBB_WAKE_QEUE", "EBB_WAKE_QUEUE"),
        (
            "deploy/grafana/dashboards/reliability.json",
            "ebbflow_breakers_open",
            "ebbflow_open_breakers",
            "ebbflow_open_breakers",
        ),
        ("terraform/functions.tf", "function = \"console\"", "function = \"konsole\"", "functions"),
        ("terraform/functions.tf", "EBB_PUSH_ACCOUNT", "EBB_PUSH_ACOUNT", "EBB_PUSH_ACOUNT"),
        ("terraform/functions.tf", "EBB_ARCHIVE_BUCKET", "EBB_ARCHIVE_BUKET", "EBB_ARCHIVE_BUCKET"),
        ("terraform/workers.tf", "EBB_TOKEN", "EBB_TOKENS", "EBB_TOKENS"),
        ("terraform/migrate.tf", "EBB_GRANT_TO", "EBB_GRANTED_TO", "EBB_GRANTED_TO"),
        ("cli/src/cli.rs", "env = \"EBB_GRANT_TO\"", "env = \"EBB_GRANTS_TO\"", "EBB_GRANTS_TO"),
        (
            "terraform/migrate.tf",
            "google_secret_manager_secret.database_url.secret_id",
            "\"other\"",
            "DATABASE_URL",
        ),
        ("terraform/variables.tf", "  description = \"The log filter", "  # \"The", "log_filter"),
        ("terraform/logs.tf", "\"dead_lettered\"", "\"dead_letter\"", "events"),
        ("terraform/logs.tf", "\"stalled\"", "\"stuck\"", "stuck"),
        ("functions/sweep/src/sweep.rs", "event = fault", "event = \"found\"", "overdue_timers"),
        ("docs/src/operations/runbook.md", "## Dead letters", "## Letters", "alerts"),
        ("docs/src/operations/runbook.md", "ebb doctor", "ebb docter", "ebb docter"),
        (
            "docs/src/operations/runbook.md",
            "`ebb log-level execute",
            "`curl …/log-level",
            "cannot be reached",
        ),
        ("docs/src/operations/runbook.md", "### Stuck in running", "### Stuck", "Stuck in running"),
        ("docs/src/operations/runbook.md", "### Repeated failures", "Repeated failures", "Repeated failures"),
        (
            "docs/src/operations/runbook.md",
            "**Act.** Raise `disk_limit_gb`",
            "Raise `disk_limit_gb`",
            "Database disk",
        ),
        ("deploy/grafana/dashboards/overview.json", "Active runs, by state", "Runs", "active runs"),
        (
            "deploy/grafana/dashboards/overview.json",
            "sum by (kind) (rate(ebbflow_attempts",
            "sum(rate(ebbflow_attempts",
            "task type",
        ),
        (
            "deploy/grafana/dashboards/performance.json",
            "ebbflow_settle_seconds",
            "ebbflow_run_seconds",
            "evaluation latency",
        ),
        (
            "deploy/grafana/dashboards/reliability.json",
            "ebbflow_retries_total",
            "ebbflow_conflicts_total",
            "retries",
        ),
        ("deploy/grafana/dashboards/reliability.json", "Open breakers", "Hosts", "breakers"),
        ("deploy/grafana/dashboards/overview.json", "ebbflow_workers", "ebbflow_tasks", "workers"),
        ("terraform/variables.tf", "timeout_seconds >= 30", "timeout_seconds >= 10", "timeout_seconds of 10"),
        ("docker-compose.yml", "EBB_PUSH_AUTH: none", "EBB_PUSH_OUT: none", "EBB_PUSH_OUT"),
        ("docker-compose.yml", "    volumes: *secrets\n", "", "secrets"),
        ("docker-compose.yml", "    ports: [\"127.0.0.1:8481:8080\"]\n", "", "webhooks"),
        ("docker-compose.yml", "    pids_limit: *pids\n", "", "no pids_limit for worker"),
        ("docker-compose.yml", "    mem_limit: *memory\n", "", "no mem_limit for worker"),
        (
            "docker-compose.yml",
            "    command: [serve, evaluate]\n",
            "    command: [serve, evaluate]\n    ports: [8080]\n",
            "anyone push to evaluate",
        ),
        ("docker-compose.yml", "location /api/v1/hooks/ {", "location /api/v1/ {", "webhooks"),
        ("shared/model/src/message/topic.rs", "{prefix}-management", "{prefix}-orders", "topics"),
        ("shared/host/src/config.rs", "optional(\"EBB_QUEUE\")", "optional(\"EBB_LINES\")", "EBB_LINES"),
        ("shared/api/src/live/listener.rs", "from_secs(15 * 60)", "from_secs(20 * 60)", "event streams"),
        ("shared/host/src/push.rs", "event = \"dead_lettered\", ", "", "dead_lettered"),
        ("shared/runtime/src/publish.rs", "event = \"task_failed\", ", "", "task_failed"),
    ];
    for (path, right, wrong, expected) in plants {
        let mut repository = Repository::read();
        repository.plant(path, right, wrong);
        let found = problems(&repository);
        assert!(
            found.iter().any(|problem| problem.contains(expected)),
            "{path}: {right} → {wrong}: {found:#?}"
        );
    }
}
