//! Tokens of our own, for programs: long, random, and known here by their hash only.

use aws_lc_rs::{digest, rand};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// How a service token begins, for people and for those who look for leaked ones.
pub const PREFIX: &str = "ebb_";

/// What is kept of a service token.
pub type Hash = [u8; 32];

/// A new token and its hash. Nobody can find the one from the other.
pub fn generate() -> (String, Hash) {
    let mut random = [0; 32];
    rand::fill(&mut random).expect("the system gives random bytes");
    let token = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let hash = hash_of(&token);
    (token, hash)
}

/// The hash of a token, if it could be one of ours. A fast hash will do: nobody guesses 256 random bits.
pub fn hash(token: &str) -> Option<Hash> {
    let random = BASE64_URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX)?).ok()?;
    (random.len() == 32).then(|| hash_of(token))
}

/// The hash of a random text.
pub fn hash_of(token: &str) -> Hash {
    digest::digest(&digest::SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_hash_and_each_is_another() {
        let (token, kept) = generate();
        assert_eq!(hash(&token), Some(kept));
        assert_ne!(generate().1, kept);
        assert_eq!(token.len(), PREFIX.len() + 43);
    }

    #[test]
    fn what_cannot_be_a_token_has_no_hash() {
        let (token, _) = generate();
        for bad in
            ["", "ebb_", "ebb_short", &token[1..], &format!("{token}A"), &token.replace("ebb_", "abb_")]
        {
            assert_eq!(hash(bad), None, "{bad}");
        }
    }
}
