//! Cursors that no list returned and no stream sent, and tokens that nobody signed.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use model::RunId;
use uuid::Uuid;

/// Tokens that no issuer signed: nonsense, an unknown key, no algorithm.
const TOKENS: [&str; 3] = [
    "nonsense",
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InVua25vd24ifQ.eyJpc3MiOiJ4In0.c2lnbmF0dXJl",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
];

/// Filters of lists: along an index, and beyond it.
const FILTERS: [&str; 6] = [
    "",
    "&state=failed",
    "&workflow=one&state=succeeded",
    "&text=no-run-has-this",
    "&label=team=none",
    "&sort=finished_at",
];

/// Cursors that are not even well-formed.
const NONSENSE: [&str; 3] = ["nonsense", "eyJpZCI6MX0", "%00%ff"];

/// The year in which instants of forged cursors begin, in seconds since 1970: runs were created before and after them.
const EARLIEST: u64 = 1_700_000_000;
const SECONDS: u64 = 300_000_000;

/// Forges without end. The same seed forges the same.
pub(super) struct Forger(u64);

impl Forger {
    pub(super) fn new(seed: usize) -> Self {
        Self((seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1))
    }

    fn random(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// What a caller presents who has no token: none, one of no issuer, or a new one that looks like a service token.
    pub(super) fn token(&mut self) -> Option<String> {
        match self.random() % 5 {
            0 => None,
            1 => Some(TOKENS[self.random() as usize % TOKENS.len()].to_owned()),
            _ => Some(auth::service_token::generate().0),
        }
    }

    /// The query of a list. Most cursors have the form of those that lists return, so that the database reads from there.
    pub(super) fn query(&mut self) -> String {
        let filter = FILTERS[self.random() as usize % FILTERS.len()];
        let cursor = match self.random() % 8 {
            0 => NONSENSE[self.random() as usize % NONSENSE.len()].to_owned(),
            _ => self.cursor(),
        };
        format!("limit=100&cursor={cursor}{filter}")
    }

    /// A position in the list of runs.
    fn cursor(&mut self) -> String {
        let seconds = EARLIEST + self.random() % SECONDS;
        let at = DateTime::<Utc>::from_timestamp(seconds as i64, 0).unwrap_or_default();
        let run = RunId(Uuid::from_u64_pair(self.random(), self.random()));
        let position = serde_json::to_vec(&(at, run)).unwrap_or_default();
        BASE64_URL_SAFE_NO_PAD.encode(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_cursors_have_the_form_of_real_ones() {
        let mut forger = Forger::new(1);
        let (one, other) = (forger.cursor(), forger.cursor());
        assert_ne!(one, other);
        for cursor in [one, other] {
            let position = BASE64_URL_SAFE_NO_PAD.decode(cursor).unwrap();
            serde_json::from_slice::<(model::Instant, RunId)>(&position).unwrap();
        }
    }

    #[test]
    fn tokens_differ_and_some_have_the_form_of_service_tokens() {
        let mut forger = Forger::new(2);
        let tokens: Vec<Option<String>> = (0..100).map(|_| forger.token()).collect();
        assert!(tokens.contains(&None));
        let mut formed: Vec<&str> = tokens
            .iter()
            .flatten()
            .map(String::as_str)
            .filter(|it| auth::service_token::hash(it).is_some())
            .collect();
        let count = formed.len();
        assert!(count > 20, "{tokens:?}");
        formed.sort_unstable();
        formed.dedup();
        assert_eq!(formed.len(), count, "each is another");
    }
}
