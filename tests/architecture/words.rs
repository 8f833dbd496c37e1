//! Retired words stay retired, in prose and in identifiers, and doc comments say something.

use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// Retired words and phrases, and what to write instead. A phrase may span lines, and is found in identifiers, too.
const RETIRED: [(&str, &str); 90] = [
    ("a look", "a poll, a read"),
    ("anew", "again, re-run"),
    ("another look", "another poll, another try"),
    ("answers how", "returns how"),
    ("answers whether", "returns whether"),
    ("birth", "creation"),
    ("bookmark", "cursor"),
    ("bookmarks", "cursors"),
    ("born", "created"),
    ("buried", "dead-lettered"),
    ("bury", "dead-letter"),
    ("censor", "loss rule"),
    ("check up", "recheck"),
    ("checkup", "recheck"),
    ("deed", "audit entry"),
    ("deeds", "audit entries"),
    ("errand", "action"),
    ("errands", "actions"),
    ("eyes", "scope, reader"),
    ("fate", "outcome"),
    ("fates", "outcomes"),
    ("glance", "run summary"),
    ("hear of", "receive"),
    ("heard", "received"),
    ("hears", "receives"),
    ("inside task", "engine task"),
    ("instant tasks", "inline tasks"),
    ("into being", "create"),
    ("kept long enough", "expired"),
    ("lane", "concurrency group"),
    ("lanes", "concurrency groups"),
    ("last look", "last poll, last try"),
    ("look again", "poll again, recheck"),
    ("look for what got lost", "re-evaluate"),
    ("look since", "decide since"),
    ("looking at", "polling, reading"),
    ("looking for", "polling for, searching"),
    ("looks again", "polls again, rechecks"),
    ("looks grow", "polls grow"),
    ("message of ours", "an Ebbflow message"),
    ("messages of ours", "Ebbflow messages"),
    ("needs a look", "needs attention"),
    ("newborn", "new run"),
    ("newborns", "new runs"),
    ("news", "change feed"),
    ("next look", "next poll, next try"),
    ("no ebbflow", "not Ebbflow"),
    ("none of its business", "not visible to it"),
    ("none of their business", "not visible to them"),
    ("our message", "an Ebbflow message"),
    ("our messages", "Ebbflow messages"),
    ("parcel", "delivery"),
    ("parties", "fairness groups"),
    ("party", "fairness group"),
    ("patience", "a timeout"),
    ("put right", "repair"),
    ("putting right", "repairing"),
    ("receipt", "idempotency record"),
    ("receipts", "idempotency records"),
    ("rehearsal", "workflow test"),
    ("remnants", "retention"),
    ("said no", "refused, returned an error"),
    ("says no", "refuses"),
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
    ("told", "reported, notified"),
    ("unless said", "default"),
    ("unsaid", "pending messages"),
    ("unwalled", "outside the tenant's role"),
    ("wait for a place", "wait for a slot"),
    ("waiting for a place", "waiting for a slot"),
    ("waits for a place", "waits for a slot"),
    ("walled", "isolated"),
    ("weather", "faults"),
    ("whoever", "the process, caller or person"),
    ("wish", "submission"),
    ("wishes", "submissions"),
    ("worker elsewhere", "remote worker"),
    ("workers elsewhere", "remote workers"),
];

/// Names in code that give no unit or purpose, or that are retired only as names. They are matched as they are written.
const RETIRED_NAMES: [(&str, &str); 10] = [
    ("const AT_ONCE:", "MAX_CONCURRENT_…"),
    ("const HANDS:", "MAX_CONCURRENT_…"),
    ("const KEPT:", "MAX_…, …_TTL"),
    ("const LONGEST:", "MAX_…, …_TIMEOUT"),
    ("const MOST:", "MAX_…"),
    ("const PATIENCE:", "…_TIMEOUT"),
    ("const SHOWN:", "MAX_…"),
    ("const TURNS:", "MAX_CONCURRENT_…"),
    ("fn looking(", "a name with the field's word"),
    ("fn say(", "report, write, publish"),
];

/// What quotes retired words for good: recorded measurements and failures, the names of renamed options, licences, and this
/// list.
const QUOTES: [&str; 6] = [
    "docs/src/explanation/bench",
    "shared/engine/tests/proptest-regressions",
    "CHANGELOG.md",
    "LICENSE",
    "clients/python/LICENSE",
    "tests/architecture/words.rs",
];

/// Files and folders that tools write.
const GENERATED: [&str; 10] = [
    "target",
    ".git",
    ".ebb",
    ".terraform",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "__pycache__",
    "node_modules",
];

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
        if except.contains(&path) || GENERATED.contains(&name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, except, found);
        } else if is_text(&path) {
            found.push(path);
        }
    }
}

/// Whether people read a file: by its extension, or because it has none, as scripts and the Dockerfile.
fn is_text(path: &Path) -> bool {
    const EXTENSIONS: [&str; 17] = [
        "css", "hcl", "html", "js", "json", "md", "mjs", "py", "rs", "sh", "snap", "sql", "tf", "toml",
        "txt", "yaml", "yml",
    ];
    match path.extension() {
        Some(extension) => extension.to_str().is_some_and(|extension| EXTENSIONS.contains(&extension)),
        // Binaries are not read.
        None => fs::read(path).is_ok_and(|bytes| std::str::from_utf8(&bytes).is_ok()),
    }
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
    let names = RETIRED_NAMES.iter().filter(|(name, _)| text.contains(name));
    found.chain(names).map(|(word, instead)| format!("`{word}`; write {instead}")).collect()
}

#[test]
fn retired_words_stay_retired() {
    let mut found = Vec::new();
    for file in texts(&QUOTES) {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let text = format!("{name}\n{}", fs::read_to_string(&file).unwrap());
        found.extend(retired_words(&text).iter().map(|word| format!("{name}: {word}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn scripts_snapshots_and_the_image_are_read() {
    let read = texts(&QUOTES);
    for name in [
        "Dockerfile",
        "tests/run",
        "workflows/programs/raster-publish",
        "shared/api/tests/suite/operations.txt",
    ] {
        assert!(read.contains(&root().join(name)), "{name}");
    }
    assert!(read.iter().any(|path| path.extension().is_some_and(|extension| extension == "snap")));
}

#[test]
fn retired_words_are_found_in_prose_and_identifiers() {
    for text in [
        "the lane is full",
        "fn lane_of()",
        "struct WholeLane;",
        "a run is\n    told",
        "async fn say(text: &str)",
    ] {
        assert_eq!(retired_words(text).len(), 1, "{text}");
    }
    assert_eq!(retired_words("shared/store/src/lane.rs\n").len(), 1, "the name of a file");
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
