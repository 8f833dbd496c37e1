//! Whose tokens are believed: of which issuers, and in which form.

use chrono::{DateTime, Utc};
use jsonwebtoken::dangerous::insecure_decode_claims;
use serde::Deserialize;

use crate::introspect::Introspector;
use crate::{Error, Identity, Verifier};

/// An issuer whose signed tokens are believed.
pub struct Trusted {
    /// Checks them.
    pub verifier: Verifier,
    /// The claim that names groups; without one, nobody is in any.
    pub group_claim: Option<String>,
}

impl From<Verifier> for Trusted {
    fn from(verifier: Verifier) -> Self {
        Self { verifier, group_claim: None }
    }
}

/// Tells who the bearer of a token is.
#[derive(Default)]
pub struct Gate {
    issuers: Vec<Trusted>,
    introspector: Option<Introspector>,
}

impl Gate {
    /// Believes signed tokens of these issuers.
    pub fn new(issuers: impl IntoIterator<Item = Trusted>) -> Self {
        Self { issuers: issuers.into_iter().collect(), introspector: None }
    }

    /// Believes opaque tokens, too, of which an issuer can be asked.
    pub fn or_opaque(mut self, introspector: Introspector) -> Self {
        self.introspector = Some(introspector);
        self
    }

    /// Whoever bears this token, if it can be believed at `now`.
    pub async fn identify(&self, token: &str, now: DateTime<Utc>) -> Result<Identity, Error> {
        if token.split('.').count() == 3 {
            let trusted = self.issuer_of(token)?;
            let claims = trusted.verifier.verify(token, now).await?;
            return Ok(Identity::new(&claims, trusted.group_claim.as_deref()));
        }
        match &self.introspector {
            Some(introspector) => Ok(Identity::new(&introspector.look_up(token, now).await?, None)),
            None => Err(Error::Malformed("it is not a JWT, or a claim is missing")),
        }
    }

    /// Whoever claims to have issued it; whether they did is checked with their keys.
    fn issuer_of(&self, token: &str) -> Result<&Trusted, Error> {
        #[derive(Deserialize)]
        struct Claimed {
            iss: String,
        }
        // With one issuer there is nothing to choose, and it says best what is wrong.
        if let [only] = self.issuers.as_slice() {
            return Ok(only);
        }
        let claimed: Claimed = insecure_decode_claims(token)
            .map_err(|_| Error::Malformed("it is not a JWT, or a claim is missing"))?;
        let found = self.issuers.iter().find(|trusted| trusted.verifier.trusts(&claimed.iss));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.issuers.iter().flat_map(|trusted| trusted.verifier.names()).collect();
            Error::WrongIssuer { expected: names.join(" or ") }
        })
    }
}
