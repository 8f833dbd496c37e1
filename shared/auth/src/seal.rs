//! Values that are given away and come back: sealed, so that nobody changes them or makes them up.

use aws_lc_rs::{digest, hmac, rand};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc, serde::ts_seconds};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// No sealed value is longer, in bytes: browsers keep no larger cookie.
const LONGEST: usize = 4096;

/// Seals values with a key. What is sealed can be read by anyone, and made by nobody else.
#[derive(Clone)]
pub struct Seal(hmac::Key);

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    #[serde(with = "ts_seconds")]
    until: DateTime<Utc>,
    value: T,
}

impl Seal {
    /// With a key that lasts as long as the value.
    pub fn random() -> Self {
        Self::new(random().as_bytes())
    }

    /// With a key made of a secret that several instances share.
    pub fn new(secret: &[u8]) -> Self {
        let key = digest::digest(&digest::SHA256, secret);
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }

    /// A value that is good for one purpose until an instant.
    pub fn close<T: Serialize>(&self, purpose: &str, value: T, until: DateTime<Utc>) -> String {
        let text = serde_json::to_vec(&Sealed { until, value }).expect("what is sealed is JSON");
        let text = BASE64_URL_SAFE_NO_PAD.encode(text);
        let mark = self.mark(purpose, &text);
        format!("{text}.{mark}")
    }

    /// The value, if it was sealed here for that purpose and its time is not over.
    pub fn open<T: DeserializeOwned>(&self, purpose: &str, sealed: &str, now: DateTime<Utc>) -> Option<T> {
        let (text, mark) = sealed.split_once('.').filter(|_| sealed.len() <= LONGEST)?;
        if !crate::same(&self.mark(purpose, text), mark) {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let Sealed { until, value } = serde_json::from_slice(&bytes).ok()?;
        (now < until).then_some(value)
    }

    /// A mark that only the holder of the key can put on a text.
    pub fn mark(&self, purpose: &str, text: &str) -> String {
        let mark = hmac::sign(&self.0, format!("{purpose}\n{text}").as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(mark.as_ref())
    }
}

/// 256 random bits as text.
pub fn random() -> String {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).expect("the system gives random bytes");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The challenge that a secret answers (RFC 7636, S256).
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
    fn what_is_sealed_is_good_for_its_purpose_and_its_time_only() {
        let seal = Seal::new(b"secret");
        let sealed = seal.close("session", "ada", at(10));
        assert_eq!(seal.open::<String>("session", &sealed, at(9)).as_deref(), Some("ada"));
        assert_eq!(seal.open::<String>("session", &sealed, at(10)), None);
        assert_eq!(seal.open::<String>("other", &sealed, at(9)), None);
        assert_eq!(Seal::random().open::<String>("session", &sealed, at(9)), None);
    }

    #[test]
    fn what_was_changed_on_its_way_is_not_believed() {
        let seal = Seal::new(b"secret");
        let sealed = seal.close("session", "ada", at(10));
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(seal.open::<String>("session", &changed, at(9)), None, "{place}");
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
