//! Sealed values: signed, so that clients can store and return them, but neither change nor forge them.

use aws_lc_rs::{digest, hmac, rand};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc, serde::ts_seconds};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The maximum length of a sealed value: browsers store no larger cookie.
const MAX_SEALED_BYTES: usize = 4096;

/// Seals values with a key. Anyone can read a sealed value; only the holder of the key can create one.
#[derive(Clone)]
pub struct Seal(hmac::Key);

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    #[serde(with = "ts_seconds")]
    until: DateTime<Utc>,
    value: T,
}

impl Seal {
    /// A seal with a random key.
    pub fn random() -> Self {
        Self::new(random().as_bytes())
    }

    /// A seal with a key derived from a secret that several instances share.
    pub fn new(secret: &[u8]) -> Self {
        let key = digest::digest(&digest::SHA256, secret);
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }

    /// Seals a value for one purpose until an instant.
    pub fn close<T: Serialize>(&self, purpose: &str, value: T, until: DateTime<Utc>) -> String {
        let text = serde_json::to_vec(&Sealed { until, value }).expect("sealed values serialize to JSON");
        let text = BASE64_URL_SAFE_NO_PAD.encode(text);
        let signature = self.sign(purpose, &text);
        format!("{text}.{signature}")
    }

    /// The value, if it was sealed with this key for that purpose and has not expired.
    pub fn open<T: DeserializeOwned>(&self, purpose: &str, sealed: &str, now: DateTime<Utc>) -> Option<T> {
        let (text, signature) = sealed.split_once('.').filter(|_| sealed.len() <= MAX_SEALED_BYTES)?;
        if !crate::constant_time_eq(&self.sign(purpose, text), signature) {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let Sealed { until, value } = serde_json::from_slice(&bytes).ok()?;
        (now < until).then_some(value)
    }

    /// The signature of a text, which only the holder of the key can compute.
    pub fn sign(&self, purpose: &str, text: &str) -> String {
        let signature = hmac::sign(&self.0, format!("{purpose}\n{text}").as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref())
    }
}

/// 256 random bits, encoded as URL-safe base64.
pub fn random() -> String {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).expect("the system provides random bytes");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The PKCE challenge of a verifier (RFC 7636, S256).
pub fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn a_sealed_value_is_valid_for_its_purpose_and_its_time_only() {
        let seal = Seal::new(b"secret");
        let sealed = seal.close("session", "ada", at(10));
        assert_eq!(seal.open::<String>("session", &sealed, at(9)).as_deref(), Some("ada"));
        assert_eq!(seal.open::<String>("session", &sealed, at(10)), None);
        assert_eq!(seal.open::<String>("other", &sealed, at(9)), None);
        assert_eq!(Seal::random().open::<String>("session", &sealed, at(9)), None);
    }

    #[test]
    fn a_changed_value_is_rejected() {
        let seal = Seal::new(b"secret");
        let sealed = seal.close("session", "ada", at(10));
        for position in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(seal.open::<String>("session", &changed, at(9)), None, "{position}");
        }
        for bad in ["", ".", "a.b", &"a".repeat(10_000)] {
            assert_eq!(seal.open::<String>("session", bad, at(9)), None);
        }
    }

    #[test]
    fn a_challenge_is_that_of_the_standard() {
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
