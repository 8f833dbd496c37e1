//! "Did you mean": the nearest right word to a wrong one.

use std::cell::Cell;

/// Longer words are not compared: a comparison takes time by the product of the lengths.
const MAX_BYTES: usize = 200;
/// The maximum number of candidates listed if none is near.
const MAX_LISTED: usize = 12;
/// The maximum number of words of one compilation that suggestions are searched for.
const MAX_WORDS: usize = 400;
/// The letters that one compilation compares with each other, in pairs: about a tenth of a second.
const MAX_COMPARED: usize = 20_000_000;

/// The work that suggestions may still take. Once it is spent, there are no more suggestions, so that a file full of
/// mistakes costs time by its length and not by the square of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    words: Cell<usize>,
    /// The pairs of letters compared so far.
    pub(crate) compared: Cell<usize>,
}

impl Budget {
    /// The candidate that `word` most probably stands for, if any is near enough.
    pub(crate) fn nearest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        self.words.set(self.words.get() + 1);
        if word.len() > MAX_BYTES || self.words.get() > MAX_WORDS {
            return None;
        }
        let length = word.chars().count();
        let reach = (length / 3).max(1);
        let mut best: Option<(usize, &str)> = None;
        for candidate in candidates {
            if !self.spend(1) {
                break;
            }
            let distance = match candidate.strip_prefix(word) {
                // `timeout` for `timeout_seconds`.
                Some(rest) if rest.starts_with('_') && !word.is_empty() => 0,
                _ if candidate.len().abs_diff(word.len()) > 4 * reach => continue,
                _ if candidate.chars().count().abs_diff(length) > reach => continue,
                _ if candidate.len() > MAX_BYTES || !self.spend(word.len() * candidate.len()) => continue,
                _ => strsim::damerau_levenshtein(word, candidate),
            };
            let is_near = distance <= reach && distance < candidate.chars().count();
            if is_near && best.is_none_or(|best| (distance, candidate) < best) {
                best = Some((distance, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// The hint that names the nearest candidate, or else all of them if they are few.
    pub(crate) fn hint<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Option<String> {
        if let Some(near) = self.nearest(word, candidates.clone()) {
            return Some(format!("did you mean `{near}`?"));
        }
        let all: Vec<&str> = candidates.into_iter().take(MAX_LISTED + 1).collect();
        (1..=MAX_LISTED).contains(&all.len()).then(|| format!("choose from {}", list(all)))
    }

    /// Whether there are no more suggestions.
    pub(crate) fn is_spent(&self) -> bool {
        self.words.get() >= MAX_WORDS || self.compared.get() > MAX_COMPARED
    }

    fn spend(&self, work: usize) -> bool {
        let compared = self.compared.get().saturating_add(work);
        self.compared.set(compared.min(MAX_COMPARED + 1));
        compared <= MAX_COMPARED
    }
}

/// The candidate that a single word most probably stands for, if any is near enough. The work is limited, however long
/// the word is and however many candidates there are.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    Budget::default().nearest(word, candidates)
}

/// The hint for a single word: the nearest candidate, or else all of them if they are few.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    Budget::default().hint(word, candidates)
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
    fn long_words_are_not_compared() {
        let long = "x".repeat(500_000);
        assert_eq!(nearest(&long, [format!("{long}y").as_str(), "queue"]), None);
        assert_eq!(nearest("queu", [long.as_str(), "queue"]), Some("queue"));
    }

    #[test]
    fn a_different_word_finds_nothing() {
        assert_eq!(nearest("load", ["extract", "a"]), None);
        assert_eq!(hint("load", ["extract", "a"]).as_deref(), Some("choose from `extract`, `a`"));
    }

    #[test]
    fn a_budget_ends() {
        let names: Vec<String> = (0..1_000).map(|number| format!("name-{number:04}")).collect();
        let is_found = |budget: &Budget| {
            budget.nearest("nam-0500", names.iter().map(String::as_str)) == Some("name-0500")
        };
        let budget = Budget::default();
        assert_eq!((0..1_000).filter(|_| is_found(&budget)).count(), 274);
        assert_eq!(budget.compared.get(), MAX_COMPARED + 1);
        let words = Budget::default();
        assert_eq!((0..1_000).filter(|_| words.nearest("nme", ["name"]).is_some()).count(), MAX_WORDS);
    }
}
