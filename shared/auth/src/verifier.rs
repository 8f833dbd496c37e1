//! Verifies signed tokens: signature, issuer, audience and time.

use aws_lc_rs::digest;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};

use crate::claims::LEEWAY;
use crate::{Claims, Error, GOOGLE_ISSUERS, GOOGLE_KEYS_URL, Keys, TtlCache};

/// The maximum length of a token; Google's have about 1 KiB.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Senders use a token for an hour, so a few entries serve nearly every request.
const MAX_CACHED: usize = 1024;

pub(crate) type Fingerprint = [u8; 32];

/// Verifies that a trusted issuer signed a token for our audience and that it is valid now.
pub struct Verifier {
    issuers: Vec<String>,
    audience: String,
    keys: Keys,
    /// Tokens whose signature, issuer and audience were verified, until they expire.
    verified: TtlCache<Fingerprint, Claims>,
}

impl Verifier {
    /// Accepts tokens of these issuers, signed with these keys, for this audience.
    pub fn new<I: Into<String>>(
        issuers: impl IntoIterator<Item = I>,
        audience: impl Into<String>,
        keys: Keys,
    ) -> Self {
        let issuers = issuers.into_iter().map(Into::into).collect();
        Self { issuers, audience: audience.into(), keys, verified: TtlCache::new(MAX_CACHED) }
    }

    /// Accepts tokens that Google signed for this audience.
    pub fn google(audience: impl Into<String>) -> Result<Self, Error> {
        Ok(Self::new(GOOGLE_ISSUERS, audience, Keys::remote(GOOGLE_KEYS_URL)?))
    }

    /// Whether it accepts tokens of an issuer.
    pub(crate) fn trusts(&self, issuer: &str) -> bool {
        self.issuers.iter().any(|name| name == issuer)
    }

    /// The issuers that it accepts.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(String::as_str)
    }

    /// The claims of a token that is valid at `now`.
    pub async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Error> {
        let fingerprint = fingerprint(token)?;
        if let Some(claims) = self.verified.get(&fingerprint, now) {
            return claims.check_time(now).map(|()| claims);
        }
        let (header, kid) = read_header(token)?;
        let key = self.keys.find(&kid, now).await?;
        let claims = check_signature(token, header.alg, &key)?;
        claims.check(&self.issuers, &self.audience, now)?;
        self.verified.put(fingerprint, claims.clone(), now, claims.exp - now + LEEWAY);
        Ok(claims)
    }
}

pub(crate) fn fingerprint(token: &str) -> Result<Fingerprint, Error> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(Error::Malformed("it is longer than 16 KiB"));
    }
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    Ok(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
}

fn read_header(token: &str) -> Result<(Header, String), Error> {
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| Error::Malformed("it is not a JWT, or its algorithm is unknown"))?;
    // An allow list, so that neither `none` nor an HMAC keyed with a public key is ever accepted.
    if !matches!(header.alg, Algorithm::RS256 | Algorithm::ES256) {
        return Err(Error::Malformed("it is not signed with RS256 or ES256"));
    }
    let kid = header.kid.clone().ok_or(Error::Malformed("its header has no `kid`"))?;
    Ok((header, kid))
}

fn check_signature(token: &str, algorithm: Algorithm, key: &DecodingKey) -> Result<Claims, Error> {
    use jsonwebtoken::errors::ErrorKind;

    // The signature only: the claims are checked against the caller's time, not the wall clock.
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
