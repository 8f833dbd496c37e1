//! "Did you mean": the nearest right word to a wrong one.

/// The candidate that `word` most probably stands for, if any is near enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let reach = (word.chars().count() / 3).max(1);
    let distance = |candidate: &str| match candidate.strip_prefix(word) {
        // `timeout` for `timeout_seconds`.
        Some(rest) if rest.starts_with('_') && !word.is_empty() => 0,
        _ => strsim::damerau_levenshtein(word, candidate),
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= reach && *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// The hint that names the nearest candidate, or else all of them if they are few.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(near) = nearest(word, candidates.clone()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    (1..=12).contains(&all.len()).then(|| format!("choose from {}", list(all)))
}

/// Names in backticks, with commas between them.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        assert_eq!(nearest("trasform", ["extract", "transform"]), Some("transform"));
        assert_eq!(nearest("depend_on", ["depends_on", "description"]), Some("depends_on"));
        assert_eq!(nearest("timeout", ["queue", "timeout_seconds"]), Some("timeout_seconds"));
    }

    #[test]
    fn a_different_word_finds_nothing() {
        assert_eq!(nearest("load", ["extract", "a"]), None);
        assert_eq!(hint("load", ["extract", "a"]).as_deref(), Some("choose from `extract`, `a`"));
    }
}
