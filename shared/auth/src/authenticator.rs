//! Authenticates callers by signed or opaque tokens of trusted issuers.

use chrono::{DateTime, Utc};
use jsonwebtoken::dangerous::insecure_decode_claims;
use serde::Deserialize;

use crate::introspect::Introspector;
use crate::{Claims, Error, IAP_ISSUER, Identity, Verifier};

/// An issuer whose signed tokens are accepted.
pub struct TrustedIssuer {
    /// Verifies the issuer's tokens.
    pub verifier: Verifier,
    /// The claim that lists groups; without one, callers have no groups.
    pub group_claim: Option<String>,
}

impl TrustedIssuer {
    /// The identity in verified claims. Identity-Aware Proxy signs in only accounts whose address Google knows, and does not
    /// repeat it.
    fn identity(&self, mut claims: Claims) -> Identity {
        claims.email_verified |= claims.iss == IAP_ISSUER;
        Identity::new(&claims, self.group_claim.as_deref())
    }
}

impl From<Verifier> for TrustedIssuer {
    fn from(verifier: Verifier) -> Self {
        Self { verifier, group_claim: None }
    }
}

/// Identifies the bearer of a token.
#[derive(Default)]
pub struct Authenticator {
    issuers: Vec<TrustedIssuer>,
    introspector: Option<Introspector>,
}

impl Authenticator {
    /// Accepts signed tokens of these issuers.
    pub fn new(issuers: impl IntoIterator<Item = TrustedIssuer>) -> Self {
        Self { issuers: issuers.into_iter().collect(), introspector: None }
    }

    /// Accepts opaque tokens, too, which their issuer introspects.
    pub fn with_introspection(mut self, introspector: Introspector) -> Self {
        self.introspector = Some(introspector);
        self
    }

    /// The bearer of a token that is valid at `now`.
    pub async fn identify(&self, token: &str, now: DateTime<Utc>) -> Result<Identity, Error> {
        if token.split('.').count() == 3 {
            let trusted = self.issuer_of(token)?;
            let claims = trusted.verifier.verify(token, now).await?;
            return Ok(trusted.identity(claims));
        }
        match &self.introspector {
            Some(introspector) => Ok(Identity::new(&introspector.introspect(token, now).await?, None)),
            None => Err(Error::Malformed("it is not a JWT, or a claim is missing")),
        }
    }

    /// Whether Identity-Aware Proxy is one of the issuers.
    pub fn trusts_proxy(&self) -> bool {
        self.proxy().is_some()
    }

    /// The person who has signed in with Identity-Aware Proxy, according to its assertion.
    pub async fn identify_by_proxy(&self, assertion: &str, now: DateTime<Utc>) -> Result<Identity, Error> {
        let proxy = self.proxy().ok_or(Error::Missing)?;
        Ok(proxy.identity(proxy.verifier.verify(assertion, now).await?))
    }

    fn proxy(&self) -> Option<&TrustedIssuer> {
        self.issuers.iter().find(|trusted| trusted.verifier.trusts(IAP_ISSUER))
    }

    /// The issuer that the token claims; the signature is checked later, with that issuer's keys.
    fn issuer_of(&self, token: &str) -> Result<&TrustedIssuer, Error> {
        #[derive(Deserialize)]
        struct Claimed {
            iss: String,
        }
        // With a single issuer there is nothing to choose, and its verifier gives the most precise error.
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
