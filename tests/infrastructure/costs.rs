//! What is said about costs adds up, and is the same everywhere.

use super::reading::{Repository, inside};

/// The rows of a Markdown table: its cells, from the first row whose first cell begins like this.
fn column(text: &str, head: &str, place: usize) -> Vec<(String, f64)> {
    let lines = text.lines().skip_while(|line| !line.starts_with(&format!("| {head}")));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        // The last number of a cell: what precedes it says what it is for.
        let number = cells[place].trim_matches('*').rsplit([' ', ':']).next().unwrap();
        (cells[0].trim_matches('*').to_owned(), number.parse().unwrap_or(0.0))
    })
    .collect()
}

fn total(rows: &[(String, f64)]) -> f64 {
    rows.iter().find(|(name, _)| name == "total").unwrap().1
}

#[test]
fn what_an_idle_installation_costs_adds_up() {
    let repository = Repository::read();
    let files =
        [("docs/src/operations/cost.md", "idle, per month"), ("terraform/README.md", "idle, a month")];
    for (file, head) in files {
        for (place, said) in [(1, 27.41), (2, 247.26)] {
            let rows = column(repository.file(file), head, place);
            let parts: f64 = rows.iter().filter(|(name, _)| name != "total").map(|(_, price)| price).sum();
            assert!(
                (parts - total(&rows)).abs() < 0.005 && (total(&rows) - said).abs() < 0.005,
                "{file}: {rows:?}"
            );
        }
    }
    for file in ["docs/src/operations/cost.md", "docs/src/operations/first-deploy.md", "terraform/README.md"]
    {
        assert!(repository.file(file).contains("27.41"), "{file}");
    }
}

/// A pool is billed while it waits, and so is the instance at which it waits.
#[test]
fn what_a_worker_pool_costs_while_it_waits_is_said() {
    const MONTH: f64 = 730.0 * 3600.0;
    let cost = |vcpu: f64, gib: f64| format!("{:.2}", MONTH * (vcpu + 0.5 * gib));
    let (machine, waiting) = (cost(0.000011244, 0.000001235), cost(0.000024, 0.0000025));
    let repository = Repository::read();
    let price = column(repository.file("terraform/README.md"), "a month | formula", 2);
    assert_eq!(
        price.iter().map(|(_, price)| format!("{price:.2}")).collect::<Vec<_>>(),
        [&*machine, &*waiting]
    );
    for file in [
        "docs/src/operations/cost.md",
        "docs/src/operations/first-deploy.md",
        "docs/src/guides/remote-workers.md",
        "terraform/README.md",
    ] {
        let text = repository.file(file);
        assert!(text.contains(&machine) && text.contains(&waiting), "{file}: {machine} and {waiting}");
    }
    // The size that is priced is the default of a queue.
    let sizes = inside(repository.file("terraform/variables.tf"), "variable \"queues\" {");
    for size in ["cpu             = optional(string, \"1\")", "memory          = optional(string, \"512Mi\")"]
    {
        assert!(sizes.contains(size), "{size}");
    }
}

/// What builds cost depends on the machine, and what their images cost on how long the registry keeps them.
#[test]
fn what_builds_and_their_images_cost_is_said() {
    let repository = Repository::read();
    for file in ["docs/src/operations/cost.md", "terraform/README.md"] {
        let text = repository.file(file).split_whitespace().collect::<Vec<_>>().join(" ");
        for said in ["0.064 a minute", "0.10 a GB and month"] {
            assert!(text.contains(said), "{file}: {said}");
        }
    }
    for (file, line) in [
        ("cloudbuild.yaml", "machineType: E2_HIGHCPU_32"),
        ("terraform/registry.tf", "keep_count = 20"),
        ("terraform/registry.tf", "older_than = \"2592000s\""),
    ] {
        assert!(repository.file(file).contains(line), "{file}: {line}");
    }
}

/// Who says that an idle installation is free: the database costs money, also while nothing runs.
fn promises(repository: &Repository) -> Vec<String> {
    let promises = ["nothing while nothing runs", "next to nothing while idle", "free while idle"];
    let places = ["README.md", "ARCHITECTURE.md", "docs/", "terraform/", "deploy/"];
    let mut found = Vec::new();
    for (path, text) in places.iter().flat_map(|place| repository.files(place)) {
        // A line may end anywhere in a sentence.
        let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        let promised = promises.iter().filter(|promise| text.contains(**promise));
        found.extend(promised.map(|promise| format!("{path}: `{promise}`")));
        let introduction = text.trim_start_matches("# ebbflow ").split(". ").next().unwrap_or_default();
        if path == "README.md" && !introduction.contains("you pay for the database") {
            found.push(format!("{path} begins without who pays: `{introduction}`"));
        }
    }
    found
}

#[test]
fn nobody_promises_that_idle_is_free() {
    assert_eq!(promises(&Repository::read()), Vec::<String>::new());
}

#[test]
fn every_promise_that_idle_is_free_is_found() {
    for (path, right, wrong) in [
        ("README.md", "; you pay for the database", ""),
        ("README.md", "cost nothing while idle", "cost nothing while\nnothing runs"),
        ("ARCHITECTURE.md", "**Idle costs one statement a minute**", "It is free while idle"),
        ("docs/src/operations/cost.md", "cost nothing while idle", "cost next to nothing while idle"),
        ("terraform/variables.tf", "costs nothing while idle", "is free while idle"),
    ] {
        let mut repository = Repository::read();
        repository.plant(path, right, wrong);
        let found = promises(&repository);
        assert!(found.len() == 1 && found[0].starts_with(path), "{path}: {found:?}");
    }
}
