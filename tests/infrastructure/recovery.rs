//! What the page about disaster recovery promises follows from what terraform sets up.

use super::reading::Repository;

const PAGE: &str = "docs/src/operations/disaster-recovery.md";

/// A row of the page: what is lost, within how much time it is back, and how much data is gone.
struct Objective {
    loss: &'static str,
    time: &'static str,
    data: &'static str,
    /// The files, and their lines, that it relies on.
    relies_on: &'static [(&'static str, &'static str)],
}

const OBJECTIVES: [Objective; 4] = [
    Objective {
        loss: "a zone",
        time: "a minute or two",
        data: "none",
        relies_on: &[("terraform/examples/production/main.tf", "high_availability = true")],
    },
    Objective {
        loss: "the database, or what is in it",
        time: "1 hour",
        data: "at most 5 minutes",
        relies_on: &[
            ("terraform/database.tf", "point_in_time_recovery_enabled = true"),
            ("terraform/database.tf", "transaction_log_retention_days = 7"),
            // Messages wait while the database is restored.
            ("terraform/pubsub.tf", "message_retention_duration = \"604800s\""),
            ("deploy/restore-drill", "gcloud sql instances clone"),
        ],
    },
    Objective {
        loss: "a region",
        time: "1 hour",
        data: "at most 5 minutes with a replica, else a day",
        relies_on: &[("terraform/database.tf", "start_time                     = \"03:00\"")],
    },
    Objective {
        loss: "the project",
        time: "hours",
        data: "since the last export",
        relies_on: &[("terraform/database.tf", "retain_backups_on_delete = var.deletion_protection")],
    },
];

fn problems(repository: &Repository) -> Vec<String> {
    let rows: Vec<Vec<&str>> = repository
        .file(PAGE)
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut found = Vec::new();
    for Objective { loss, time, data, relies_on } in OBJECTIVES {
        if !rows.iter().any(|row| row.get(..3) == Some(&[loss, time, data])) {
            found.push(format!("{PAGE} does not promise {time}, {data} for {loss}"));
        }
        let missing = relies_on.iter().filter(|(file, line)| !repository.file(file).contains(line));
        found.extend(missing.map(|(file, line)| format!("{loss}: {file} does not say `{line}`")));
    }
    found
}

#[test]
fn what_is_promised_about_recovery_is_set_up() {
    assert_eq!(problems(&Repository::read()), Vec::<String>::new());
}

#[test]
fn a_promise_about_recovery_that_cannot_be_kept_is_found() {
    for (path, right, wrong, expected) in [
        (PAGE, "| 1 hour | at most 5 minutes | [restore]", "| 1 hour | nothing | [restore]", "the database"),
        (PAGE, "| a region | 1 hour |", "| a region | a minute |", "a region"),
        ("terraform/database.tf", "recovery_enabled = true", "recovery_enabled = false", "the database"),
        (
            "terraform/examples/production/main.tf",
            "high_availability = true",
            "high_availability = false",
            "a zone",
        ),
    ] {
        let mut repository = Repository::read();
        repository.plant(path, right, wrong);
        let found = problems(&repository);
        assert!(found.len() == 1 && found[0].contains(expected), "{path}: {found:?}");
    }
}
