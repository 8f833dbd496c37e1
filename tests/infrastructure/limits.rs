//! No function is given a request timeout that its configuration would reject.

use super::reading::Repository;

/// The numbers that follow each `start`.
fn numbers(text: &str, start: &str) -> Vec<u32> {
    let rests = text.split(start).skip(1);
    rests.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
}

/// Every timeout that terraform sets or accepts is longer than the margin that functions keep before the end of a request, and the
/// shortest that a queue may have leaves at least half of it to attempts.
pub(crate) fn limits(repository: &Repository) -> Vec<String> {
    let margin = numbers(repository.file("shared/host/src/config/limits.rs"), "MARGIN_SECONDS: u32 = ");
    let shortest = numbers(repository.file("terraform/variables.tf"), "size.timeout_seconds >= ");
    let (&[margin], &[shortest]) = (margin.as_slice(), shortest.as_slice()) else {
        return vec![format!("there is not one margin and one shortest timeout: {margin:?}, {shortest:?}")];
    };
    let set = numbers(repository.file("terraform/functions.tf"), " timeout = ");
    let mut found = Vec::new();
    if set.len() < 4 || set.iter().any(|seconds| *seconds <= margin) {
        found.push(format!(
            "terraform/functions.tf: functions need a timeout of more than {margin} s: {set:?}"
        ));
    }
    if shortest < 2 * margin {
        found.push(format!(
            "terraform/variables.tf accepts a timeout_seconds of {shortest}, of which functions keep {margin}"
        ));
    }
    found
}
