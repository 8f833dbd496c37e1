//! "Did you mean": the nearest right word to a wrong one.

/// Longer words are not compared: it takes time and space by the product of the lengths.
const MAX_BYTES: usize = 400;
/// The maximum number of candidates compared: a file can hold thousands of names and as many mistakes.
const MAX_CANDIDATES: usize = 1_000;
/// The maximum number listed if none is near.
const FEW: usize = 12;

/// The candidate that `word` most probably stands for, if any is near enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_BYTES {
        return None;
    }
    let length = word.chars().count();
    let reach = (length / 3).max(1);
    let distance = |candidate: &str| match candidate.strip_prefix(word) {
        // `timeout` for `timeout_seconds`.
        Some(rest) if rest.starts_with('_') && !word.is_empty() => Some(0),
        _ if candidate.len() > MAX_BYTES || candidate.chars().count().abs_diff(length) > reach => None,
        _ => Some(strsim::damerau_levenshtein(word, candidate)),
    };
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter_map(|candidate| distance(candidate).map(|distance| (distance, candidate)))
        .filter(|(distance, candidate)| *distance <= reach && *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// The hint that names the nearest candidate, or else all of them if they are few.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(near) = nearest(word, candidates.clone()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let all: Vec<&str> = candidates.into_iter().take(FEW + 1).collect();
    (1..=FEW).contains(&all.len()).then(|| format!("choose from {}", list(all)))
}

/// Names in backticks, with commas between them.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_finds_its_word() {
        assert_eq!(nearest("trasform", ["extract", "transform"]), Some("transform"));
        assert_eq!(nearest("depend_on", ["depends_on", "description"]), Some("depends_on"));
        assert_eq!(nearest("timeout", ["queue", "timeout_seconds"]), Some("timeout_seconds"));
    }

    #[test]
    fn words_of_any_length_are_answered_at_once() {
        let long = "x".repeat(500_000);
        assert_eq!(nearest(&long, [format!("{long}y").as_str(), "queue"]), None);
        assert_eq!(nearest("queu", [long.as_str(), "queue"]), Some("queue"));
    }

    #[test]
    fn a_different_word_finds_nothing() {
        assert_eq!(nearest("load", ["extract", "a"]), None);
        assert_eq!(hint("load", ["extract", "a"]).as_deref(), Some("choose from `extract`, `a`"));
    }
}
