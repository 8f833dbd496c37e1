//! Dead letters.

use std::cmp::Reverse;

use async_trait::async_trait;
use model::Instant;

use super::Memory;
use crate::{DeadLetter, DeadLetterFilter, DeadLetters, Result, normal};

#[async_trait]
impl DeadLetters for Memory {
    async fn insert_dead_letter(&self, dead_letter: &DeadLetter) -> Result<()> {
        let mut tables = self.shared.tables();
        let dead_letter = normal::dead_letter(dead_letter);
        tables.dead_letters.entry(dead_letter.id.clone()).or_insert(dead_letter);
        Ok(())
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>> {
        Ok(self.shared.tables().dead_letters.get(&normal::dead_letter_id(id)).cloned())
    }

    async fn discard(&self, id: &str) -> Result<bool> {
        Ok(self.shared.tables().dead_letters.remove(&normal::dead_letter_id(id)).is_some())
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>> {
        let tables = self.shared.tables();
        let holds = |dead_letter: &&DeadLetter, text: &String| {
            let text = normal::text(text);
            dead_letter.reason.contains(&*text) || dead_letter.body.contains(&*text)
        };
        let is_after = |dead_letter: &&DeadLetter, (at, id): &(Instant, String)| {
            (dead_letter.at, &dead_letter.id) < (*at, id)
        };
        let dead_letters = tables.dead_letters.values();
        let dead_letters = dead_letters
            .filter(|dead_letter| filter.source.as_ref().is_none_or(|source| dead_letter.source == *source));
        let dead_letters = dead_letters
            .filter(|dead_letter| filter.text.as_ref().is_none_or(|text| holds(dead_letter, text)));
        let dead_letters = dead_letters
            .filter(|dead_letter| filter.after.as_ref().is_none_or(|place| is_after(dead_letter, place)));
        let mut dead_letters: Vec<&DeadLetter> = dead_letters.collect();
        dead_letters.sort_by_key(|dead_letter| Reverse((dead_letter.at, &dead_letter.id)));
        Ok(dead_letters.into_iter().take(filter.limit as usize).cloned().collect())
    }
}
