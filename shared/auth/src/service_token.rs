//! Service tokens, for programs: long and random; only their hash is stored.

use aws_lc_rs::digest;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// The prefix of service tokens, by which people and secret scanners recognize them.
pub const PREFIX: &str = "ebb_";

/// The stored hash of a service token.
pub type Hash = [u8; 32];

/// A new token and its hash.
pub fn generate() -> (String, Hash) {
    let token = format!("{PREFIX}{}", crate::random());
    let hash = hash_of(&token);
    (token, hash)
}

/// The hash of a text that has the form of a service token. A fast hash suffices for 256 random bits.
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
    fn a_token_has_one_hash_and_each_token_differs() {
        let (token, kept) = generate();
        assert_eq!(hash(&token), Some(kept));
        assert_ne!(generate().1, kept);
        assert_eq!(token.len(), PREFIX.len() + 43);
    }

    #[test]
    fn other_texts_have_no_hash() {
        let (token, _) = generate();
        for bad in
            ["", "ebb_", "ebb_short", &token[1..], &format!("{token}A"), &token.replace("ebb_", "abb_")]
        {
            assert_eq!(hash(bad), None, "{bad}");
        }
    }
}
