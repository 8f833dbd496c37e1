//! The rules between crates and the budgets of files, read from the manifests and sources themselves.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "architecture/sizes.rs"]
mod sizes;
#[path = "architecture/words.rs"]
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The pure crates may import none of these: they wait, read clocks or do I/O.
const OUTSIDE: [&str; 8] = ["axum", "bus", "reqwest", "runtime", "sqlx", "store", "tokio", "tower"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The folders of all our crates, by their short names.
fn crates() -> BTreeMap<String, PathBuf> {
    let list = |folder: &str| fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let lists = ["shared", "functions", "tools"].into_iter().flat_map(list);
    let folders = lists.filter(|path| path.join("Cargo.toml").is_file());
    let named = folders.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    named
        .chain([("cli".to_owned(), root().join("cli")), ("tests".to_owned(), root().join("tests"))])
        .collect()
}

/// The names in one section of a crate's manifest.
fn dependencies(folder: &Path, section: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let lines = manifest.lines().skip_while(|line| *line != format!("[{section}]")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The table "Who may import whom" of ARCHITECTURE.md: crate → the crates of ours that it may import.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = document.split("## Who may import whom").nth(1).expect("ARCHITECTURE.md has the table");
    let rows = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names =
            |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
        (names(cells[1]).pop_first().unwrap(), names(cells[2]))
    })
    .collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let visible = entries
        .filter(|path| !matches!(path.file_name().unwrap().to_str(), Some("target" | ".git" | ".ebb")));
    visible
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn each_crate_imports_only_what_the_architecture_allows() {
    let (crates, allowed) = (crates(), allowed());
    let ours: BTreeSet<&String> = crates.keys().collect();
    for (name, folder) in
        crates.iter().filter(|(name, _)| !["bench", "cli", "tests"].contains(&name.as_str()))
    {
        let may = allowed.get(name).unwrap_or_else(|| panic!("ARCHITECTURE.md says nothing about `{name}`"));
        let does: BTreeSet<String> = dependencies(folder, "dependencies");
        let beyond: Vec<&String> =
            does.iter().filter(|import| ours.contains(import) && !may.contains(*import)).collect();
        assert!(beyond.is_empty(), "`{name}` imports {beyond:?}, which ARCHITECTURE.md does not allow");
        let unused: Vec<&String> = may.iter().filter(|import| !does.contains(*import)).collect();
        assert!(unused.is_empty(), "ARCHITECTURE.md lets `{name}` import {unused:?}, which it does not");
    }
}

/// The most crates of ours that the API, and the console, may know.
const MAX_IMPORTS: usize = 6;

#[test]
fn api_and_console_know_readers_and_the_runtime_and_never_the_store() {
    let crates = crates();
    for name in ["api", "console"] {
        let imports: Vec<String> = dependencies(&crates[name], "dependencies")
            .into_iter()
            .filter(|import| crates.contains_key(import))
            .collect();
        assert!(imports.len() <= MAX_IMPORTS, "`{name}` imports {imports:?}");
        assert!(!imports.contains(&"store".to_owned()), "`{name}` reads or writes past `read` and `runtime`");
    }
    // The runtime hands out its store to functions that work for every tenant.
    for folder in ["shared/api/src", "functions/console/src"] {
        for path in sources(&root().join(folder)).into_iter().filter(|path| !is_test(path)) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains(".store()"), "{} takes the store from the runtime", path.display());
        }
    }
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
}

#[test]
fn only_read_takes_on_the_role_of_a_tenant() {
    let product =
        ["shared", "functions", "cli/src"].into_iter().flat_map(|folder| sources(&root().join(folder)));
    let others: Vec<PathBuf> = product
        .filter(|path| !is_test(path) && fs::read_to_string(path).unwrap().contains("reading_as("))
        .filter(|path| !path.starts_with(root().join("shared/read")))
        .filter(|path| !path.ends_with("shared/store/src/postgres/reading.rs"))
        .collect();
    assert!(others.is_empty(), "{others:?}: read for a caller with a `Reader`");
}

#[test]
fn the_pure_crates_know_nothing_that_does_io() {
    for name in ["model", "engine", "language", "drawing"] {
        let leaks: Vec<String> = dependencies(&crates()[name], "dependencies")
            .into_iter()
            .filter(|import| OUTSIDE.contains(&import.as_str()))
            .collect();
        assert!(leaks.is_empty(), "`{name}` reaches for {leaks:?}");
    }
}

#[test]
fn what_tests_share_is_never_part_of_the_product() {
    for (name, folder) in crates().into_iter().filter(|(name, _)| name != "tests") {
        assert!(!dependencies(&folder, "dependencies").contains("testkit"), "`{name}` ships testkit");
    }
}

#[test]
fn only_testkit_subscribes_a_thread_to_what_it_traces() {
    let folders = ["shared", "functions", "cli", "tests"].into_iter();
    let others: Vec<PathBuf> = folders
        .flat_map(|folder| sources(&root().join(folder)))
        .filter(|path| fs::read_to_string(path).unwrap().contains(concat!("set_", "default(")))
        .filter(|path| !path.starts_with(root().join("shared/testkit")))
        .collect();
    assert!(
        others.is_empty(),
        "{others:?}: what other threads do decides what a subscriber gets; use `testkit::subscribe`"
    );
}

#[test]
fn benchmarks_are_never_part_of_the_product() {
    for (name, folder) in crates() {
        for section in ["dependencies", "dev-dependencies"] {
            assert!(!dependencies(&folder, section).contains("bench"), "`{name}` contains the benchmarks");
        }
    }
    let commands = fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(commands.contains("--package ebb") && !commands.contains("ebbflow-bench"), "{commands}");
}

#[test]
fn every_crate_obeys_the_lints_of_the_workspace() {
    for (name, folder) in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "`{name}` has lints of its own");
    }
}

#[test]
fn no_module_is_named_for_having_no_name() {
    let nameless: Vec<PathBuf> = sources(&root())
        .into_iter()
        .filter(|path| {
            matches!(
                path.file_stem().unwrap().to_str(),
                Some("utils" | "util" | "common" | "helpers" | "misc")
            )
        })
        .collect();
    assert!(nameless.is_empty(), "{nameless:?}");
}

#[test]
fn settings_are_read_from_the_environment_in_one_place() {
    let reader = "shared/host/src/config/environment.rs";
    // These read no settings: they look for the terminal, the user's home and installed programs, or pass variables on to
    // the programs of tasks.
    let others = [
        "cli/src/output.rs",
        "cli/src/client/credentials.rs",
        "shared/embedded/src/installed.rs",
        "shared/embedded/src/emulator.rs",
        "functions/execute/src/process/environment.rs",
        "functions/execute/src/process/containment.rs",
    ];
    let product =
        ["shared", "functions", "cli/src"].into_iter().flat_map(|folder| sources(&root().join(folder)));
    let readers: Vec<String> = product
        .filter(|path| fs::read_to_string(path).unwrap().contains("env::var"))
        .map(|path| path.strip_prefix(root()).unwrap().display().to_string())
        .filter(|path| !path.contains("tests") && !path.contains("testkit") && !path.ends_with("build.rs"))
        .filter(|path| path != reader && !others.contains(&path.as_str()))
        .collect();
    assert!(readers.is_empty(), "{readers:?}: read settings in {reader}, and take them from `Config`");
}

#[test]
fn flags_take_settings_from_the_environment_only_by_these_names() {
    let flags: BTreeSet<(String, String)> = sources(&root().join("cli/src"))
        .into_iter()
        .chain(["shared", "functions"].into_iter().flat_map(|folder| sources(&root().join(folder))))
        .filter(|path| !is_test(path))
        .flat_map(|path| {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            // `target_env` and the like name no variable.
            let flags = text.split(" env = \"").skip(1).filter_map(|rest| rest.split('"').next());
            flags.map(|flag| (name.clone(), flag.to_owned())).collect::<Vec<_>>()
        })
        .collect();
    let known = [
        ("cli/src/args.rs", "EBB_DATA"),
        ("cli/src/args.rs", "EBB_TENANT"),
        ("cli/src/args.rs", "EBB_TOKEN"),
        ("cli/src/args.rs", "EBB_URL"),
        ("cli/src/args/operations.rs", "EBB_PROJECT"),
        ("cli/src/cli.rs", "DATABASE_URL"),
        ("cli/src/cli.rs", "EBB_GRANT_TO"),
        ("cli/src/dev.rs", "DATABASE_URL"),
    ];
    let known = known.map(|(file, flag)| (file.to_owned(), flag.to_owned())).into();
    assert_eq!(
        flags, known,
        "a service takes its settings from `Config`; name here what a command's flag reads"
    );
}

#[test]
fn only_the_crates_that_own_tables_and_reads_speak_sql() {
    for (name, folder) in crates() {
        let speaks = dependencies(&folder, "dependencies").contains("sqlx");
        assert_eq!(
            speaks,
            matches!(name.as_str(), "accounts" | "store" | "read" | "embedded" | "bench"),
            "`{name}`"
        );
    }
}

/// The lines of a document.
fn lines_of(document: &str) -> Vec<String> {
    fs::read_to_string(root().join(document)).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn documents_are_short() {
    for (document, max) in [("README.md", 150), ("ARCHITECTURE.md", 300)] {
        let lines = lines_of(document).len();
        assert!(
            lines <= max,
            "{document} has {lines} lines; at most {max} are allowed: move details into docs/"
        );
    }
}

#[test]
fn the_glossary_is_short() {
    let architecture = lines_of("ARCHITECTURE.md");
    let table = architecture
        .iter()
        .skip_while(|line| *line != "## Words")
        .skip_while(|line| !line.starts_with("|---"));
    let rows = table.skip(1).take_while(|line| line.starts_with('|')).count();
    assert!(
        (1..=20).contains(&rows),
        "{rows} words of our own; at most 20 are allowed: use the field's words"
    );
}
