//! Retired words stay retired, in prose and in identifiers, and doc comments say something.

use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// Retired words and phrases, and what to write instead. A phrase may span lines, and is found in identifiers, too.
const RETIRED: [(&str, &str); 61] = [
    ("anew", "again, re-run"),
    ("answers how", "returns how"),
    ("answers whether", "returns whether"),
    ("are told", "are notified"),
    ("birth", "creation"),
    ("bookmark", "cursor"),
    ("bookmarks", "cursors"),
    ("buried", "dead-lettered"),
    ("bury", "dead-letter"),
    ("censor", "loss rule"),
    ("check up", "recheck"),
    ("checkup", "recheck"),
    ("come into being", "are created"),
    ("comes into being", "is created"),
    ("deed", "audit entry"),
    ("deeds", "audit entries"),
    ("errand", "action"),
    ("errands", "actions"),
    ("fate", "outcome"),
    ("fates", "outcomes"),
    ("glance", "run summary"),
    ("hear of", "receive"),
    ("heard of", "received"),
    ("hears of", "receives"),
    ("inside task", "engine task"),
    ("instant tasks", "inline tasks"),
    ("is told", "is notified"),
    ("lane", "concurrency group"),
    ("lanes", "concurrency groups"),
    ("newborn", "new run"),
    ("newborns", "new runs"),
    ("no ebbflow", "not Ebbflow"),
    ("parcel", "delivery"),
    ("parties", "fairness groups"),
    ("party", "fairness group"),
    ("receipt", "idempotency record"),
    ("receipts", "idempotency records"),
    ("rehearsal", "workflow test"),
    ("remnants", "retention"),
    ("scene", "run slice"),
    ("scenes", "run slices"),
    ("seat", "acquire, waiter"),
    ("seating", "admission"),
    ("seats", "waiters"),
    ("sighting", "poll"),
    ("slip", "expression error"),
    ("so many", "a number, at most"),
    ("stand in line", "wait for a slot"),
    ("standing in line", "waiting for a slot"),
    ("stands in line", "waits for a slot"),
    ("stood in line", "waited for a slot"),
    ("storm", "faults"),
    ("unless said", "default"),
    ("unsaid", "pending messages"),
    ("unwalled", "outside the tenant's role"),
    ("walled", "isolated"),
    ("was told", "was notified"),
    ("weather", "faults"),
    ("whoever", "the process, caller or person"),
    ("wish", "submission"),
    ("wishes", "submissions"),
];

/// What quotes retired words for good: recorded measurements, the names of renamed options, and this list.
const QUOTES: [&str; 3] = ["docs/src/explanation/bench", "CHANGELOG.md", "tests/architecture/words.rs"];

/// The files of the repository that people read, except those below certain paths.
fn texts(except: &[&str]) -> Vec<PathBuf> {
    let except: Vec<PathBuf> = except.iter().map(|path| root().join(path)).collect();
    let mut found = Vec::new();
    collect(&root(), &except, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, except: &[PathBuf], found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if except.contains(&path) || matches!(name, "target" | ".git" | ".ebb" | "node_modules") {
            continue;
        }
        if path.is_dir() {
            collect(&path, except, found);
        } else if is_text(&path) {
            found.push(path);
        }
    }
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(
        extension,
        Some(
            "css"
                | "html"
                | "js"
                | "json"
                | "md"
                | "mjs"
                | "py"
                | "rs"
                | "sh"
                | "sql"
                | "tf"
                | "toml"
                | "yaml"
                | "yml"
        )
    )
}

/// The words of a text in lower case, each between spaces, with those of identifiers taken apart.
fn spaced(text: &str) -> String {
    let mut words = String::from(" ");
    let mut after_lower = false;
    for letter in text.chars() {
        if after_lower && letter.is_uppercase() {
            words.push(' ');
        }
        after_lower = letter.is_lowercase() || letter.is_ascii_digit();
        match letter.is_alphanumeric() {
            true => words.extend(letter.to_lowercase()),
            false if words.ends_with(' ') => {}
            false => words.push(' '),
        }
    }
    words + " "
}

fn retired_words(text: &str) -> Vec<String> {
    let words = spaced(text);
    let found = RETIRED.iter().filter(|(word, _)| words.contains(&format!(" {word} ")));
    found.map(|(word, instead)| format!("`{word}`; write {instead}")).collect()
}

#[test]
fn retired_words_stay_retired() {
    let mut found = Vec::new();
    for file in texts(&QUOTES) {
        let name = file.strip_prefix(root()).unwrap().display();
        found.extend(
            retired_words(&fs::read_to_string(&file).unwrap()).iter().map(|word| format!("{name}: {word}")),
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn retired_words_are_found_in_prose_and_identifiers() {
    for text in ["the lane is full", "fn lane_of()", "struct WholeLane;", "a run is\n    told"] {
        assert_eq!(retired_words(text).len(), 1, "{text}");
    }
    assert_eq!(retired_words("planets, a plane, LANEWAY"), [""; 0]);
}

/// The doc comments of a source that consist of one line with three words or fewer.
fn empty_comments(source: &str) -> Vec<&str> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
    let is_short = |line: &str| line.trim_start_matches('/').split_whitespace().count() <= 3;
    let alone = |at: usize| is_doc(at) && !is_doc(at + 1) && (at == 0 || !is_doc(at - 1));
    (0..lines.len()).filter(|at| alone(*at) && is_short(lines[*at])).map(|at| lines[at]).collect()
}

#[test]
fn doc_comments_say_something() {
    let mut found = Vec::new();
    let files = texts(&[]).into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs"));
    for file in files {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let source = fs::read_to_string(&file).unwrap();
        found.extend(empty_comments(&source).iter().map(|comment| format!("{name}: {comment}")));
    }
    assert!(found.is_empty(), "delete these or say more: {found:#?}");
}

#[test]
fn a_short_doc_comment_is_found() {
    let source =
        "/// The run.\npub run: Run,\n/// The state in which a run waits.\n/// The run.\nfn f() {}\n";
    assert_eq!(empty_comments(source), ["/// The run."]);
}
