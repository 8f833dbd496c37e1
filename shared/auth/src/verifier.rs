//! Checking a token in full: signature, issuer, audience, time.

use std::collections::BTreeMap;
use std::sync::Mutex;

use aws_lc_rs::digest;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};

use crate::{Claims, Error, GOOGLE_ISSUERS, GOOGLE_KEYS_URL, Keys};

/// Google's tokens have about 1 KiB; nobody gets to make us parse much more.
const MAX_TOKEN: usize = 16 * 1024;

/// Senders use a token for an hour, so a handful of entries serves nearly every request.
const MAX_VERIFIED: usize = 1024;

pub(crate) type Fingerprint = [u8; 32];

/// Says whether a token was signed by a trusted issuer, for us, for now.
pub struct Verifier {
    issuers: Vec<String>,
    audience: String,
    keys: Keys,
    /// Tokens whose signature, issuer and audience were found right: a check of their time is enough.
    verified: Mutex<BTreeMap<Fingerprint, Claims>>,
}

impl Verifier {
    /// Trusts tokens of these issuers, signed with these keys, for this audience.
    pub fn new<I: Into<String>>(
        issuers: impl IntoIterator<Item = I>,
        audience: impl Into<String>,
        keys: Keys,
    ) -> Self {
        let issuers = issuers.into_iter().map(Into::into).collect();
        Self { issuers, audience: audience.into(), keys, verified: Mutex::default() }
    }

    /// Trusts tokens that Google signed for this audience.
    pub fn google(audience: impl Into<String>) -> Result<Self, Error> {
        Ok(Self::new(GOOGLE_ISSUERS, audience, Keys::remote(GOOGLE_KEYS_URL)?))
    }

    /// Whether it believes an issuer of that name.
    pub(crate) fn trusts(&self, issuer: &str) -> bool {
        self.issuers.iter().any(|name| name == issuer)
    }

    /// The names of its issuers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(String::as_str)
    }

    /// What the token says, if it can be believed at `now`.
    pub async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Error> {
        let fingerprint = fingerprint(token)?;
        if let Some(claims) = self.recall(&fingerprint) {
            return claims.check_time(now).map(|()| claims);
        }
        let (header, kid) = read_header(token)?;
        let key = self.keys.find(&kid, now).await?;
        let claims = check_signature(token, header.alg, &key)?;
        claims.check(&self.issuers, &self.audience, now)?;
        self.remember(fingerprint, claims.clone(), now);
        Ok(claims)
    }

    fn recall(&self, fingerprint: &Fingerprint) -> Option<Claims> {
        self.verified.lock().expect("no holder panics").get(fingerprint).cloned()
    }

    fn remember(&self, fingerprint: Fingerprint, claims: Claims, now: DateTime<Utc>) {
        let mut verified = self.verified.lock().expect("no holder panics");
        if verified.len() >= MAX_VERIFIED {
            verified.retain(|_, claims| claims.check_time(now).is_ok());
        }
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(fingerprint, claims);
    }
}

pub(crate) fn fingerprint(token: &str) -> Result<Fingerprint, Error> {
    if token.len() > MAX_TOKEN {
        return Err(Error::Malformed("it is longer than 16 KiB"));
    }
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    Ok(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
}

fn read_header(token: &str) -> Result<(Header, String), Error> {
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| Error::Malformed("it is not a JWT, or its algorithm is unknown"))?;
    // A closed list: `none`, or an HMAC keyed with a public key, must never get as far as a key.
    if !matches!(header.alg, Algorithm::RS256 | Algorithm::ES256) {
        return Err(Error::Malformed("it is not signed with RS256 or ES256"));
    }
    let kid = header.kid.clone().ok_or(Error::Malformed("its header has no `kid`"))?;
    Ok((header, kid))
}

fn check_signature(token: &str, algorithm: Algorithm, key: &DecodingKey) -> Result<Claims, Error> {
    use jsonwebtoken::errors::ErrorKind;

    // Signature only: the claims are compared with the caller's time, not with the wall clock.
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    match jsonwebtoken::decode(token, key, &validation) {
        Ok(data) => Ok(data.claims),
        Err(error) => Err(match error.kind() {
            ErrorKind::Json(_) => Error::Malformed("a claim is missing or of the wrong type"),
            _ => Error::BadSignature,
        }),
    }
}
