//! Dead letters.

use std::cmp::Reverse;

use async_trait::async_trait;
use model::Instant;

use super::Memory;
use crate::{DeadLetter, DeadLetterViews, DeadLetters, LetterFilter, Result, normal};

#[async_trait]
impl DeadLetters for Memory {
    async fn bury(&self, letter: &DeadLetter) -> Result<()> {
        let mut tables = self.shared.tables();
        let letter = normal::letter(letter);
        tables.letters.entry(letter.id.clone()).or_insert(letter);
        Ok(())
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>> {
        Ok(self.shared.tables().letters.get(&normal::letter_id(id)).cloned())
    }

    async fn discard(&self, id: &str) -> Result<bool> {
        Ok(self.shared.tables().letters.remove(&normal::letter_id(id)).is_some())
    }
}

#[async_trait]
impl DeadLetterViews for Memory {
    async fn dead_letters(&self, filter: &LetterFilter) -> Result<Vec<DeadLetter>> {
        let tables = self.shared.tables();
        let holds = |letter: &&DeadLetter, text: &String| {
            let text = normal::text(text);
            letter.reason.contains(&*text) || letter.body.contains(&*text)
        };
        let is_after =
            |letter: &&DeadLetter, (at, id): &(Instant, String)| (letter.at, &letter.id) < (*at, id);
        let letters = tables.letters.values();
        let letters =
            letters.filter(|letter| filter.source.as_ref().is_none_or(|source| letter.source == *source));
        let letters = letters.filter(|letter| filter.text.as_ref().is_none_or(|text| holds(letter, text)));
        let letters =
            letters.filter(|letter| filter.after.as_ref().is_none_or(|place| is_after(letter, place)));
        let mut letters: Vec<&DeadLetter> = letters.collect();
        letters.sort_by_key(|letter| Reverse((letter.at, &letter.id)));
        Ok(letters.into_iter().take(filter.limit as usize).cloned().collect())
    }
}
