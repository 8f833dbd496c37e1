//! Source files and tests that a document mentions between backticks.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The mentioned `….rs` files and tests that do not exist. A path may leave out its first folders, and a test's name its
/// end: `a_long_name…`.
pub(crate) fn missing(text: &str, sources: &[PathBuf]) -> Vec<String> {
    let functions: BTreeSet<String> =
        sources.iter().flat_map(|path| functions(&fs::read_to_string(path).unwrap())).collect();
    let is_missing = |code: &&str| match (code.strip_suffix('…'), code.ends_with(".rs")) {
        (_, true) => !sources.iter().any(|path| path.ends_with(code)),
        (Some(begin), false) if is_name(begin) => !functions.iter().any(|name| name.starts_with(begin)),
        (None, false) if is_name(code) && code.split('_').count() > 4 => !functions.contains(*code),
        _ => false,
    };
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(is_missing)
        .map(str::to_owned)
        .collect()
}

fn is_name(code: &str) -> bool {
    code.contains('_') && code.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn functions(source: &str) -> Vec<String> {
    let after = source.split("fn ").skip(1);
    let end = |rest: &str| rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    after.filter_map(|rest| Some(rest[..end(rest)?].to_owned())).collect()
}

#[test]
fn a_file_and_a_test_that_do_not_exist_are_found() {
    let sources = [super::root().join("cli/tests/documents/mentions.rs")];
    let there = "`documents/mentions.rs`, `mentions.rs`, `a_file_and_a_test…`, `a_file_and_a_test_that_do_not_exist_are_found`";
    assert_eq!(missing(there, &sources), [""; 0]);
    let gone = "`documents/mention.rs` `entions.rs` `a_file_and_no_test…` `a_file_and_a_test_that_does_not_exist` `max_retries`";
    assert_eq!(missing(gone, &sources).len(), 4);
}
