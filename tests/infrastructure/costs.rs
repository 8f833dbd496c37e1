//! What is said about costs adds up, and is the same everywhere.

use super::reading::Repository;

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
        for (place, said) in [(1, 27.54), (2, 247.39)] {
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
        assert!(repository.file(file).contains("27.54"), "{file}");
    }
}

/// The database costs money, also while nothing runs.
#[test]
fn nobody_promises_that_idle_is_free() {
    let repository = Repository::read();
    let promises = ["nothing while nothing runs", "next to nothing while idle", "free while idle"];
    for (path, text) in repository.files("docs/").chain(repository.files("terraform/")) {
        let text = text.to_lowercase();
        let found: Vec<&&str> = promises.iter().filter(|promise| text.contains(**promise)).collect();
        assert!(found.is_empty(), "{path}: {found:?}");
    }
}
