//! Who may push messages to us.

use chrono::{DateTime, Utc};
use jsonwebtoken::dangerous::insecure_decode_claims;

use crate::{Claims, Error, GOOGLE_ISSUERS, Verifier};

/// How a push is known to come from our own subscriptions. There is no default: a deployment must choose.
pub enum PushAuth {
    /// The token is checked here, in full.
    Oidc {
        /// Checks signature, issuer, audience and time.
        verifier: Verifier,
        /// The account that the subscriptions push as.
        service_account: String,
    },
    /// The platform has checked the token and may have taken its signature away. Only for services that cannot be
    /// reached but through that platform's check: anyone else could make such a token up.
    Iam {
        /// What the token must have been issued for.
        audience: String,
        /// The account that the subscriptions push as.
        service_account: String,
    },
    /// Everyone may push: the emulator sends no token.
    None,
}

impl PushAuth {
    /// Lets the bearer of this `Authorization` header push, or says why not.
    pub async fn check(&self, authorization: Option<&str>, now: DateTime<Utc>) -> Result<(), Error> {
        match self {
            Self::Oidc { verifier, service_account } => {
                let claims = verifier.verify(bearer(authorization)?, now).await?;
                claims.check_account(service_account)
            }
            Self::Iam { audience, service_account } => {
                let claims = read_claims(bearer(authorization)?)?;
                claims.check(&GOOGLE_ISSUERS.map(String::from), audience, now)?;
                claims.check_account(service_account)
            }
            Self::None => Ok(()),
        }
    }
}

fn bearer(authorization: Option<&str>) -> Result<&str, Error> {
    match authorization.and_then(|header| header.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Error::Missing),
    }
}

fn read_claims(token: &str) -> Result<Claims, Error> {
    insecure_decode_claims(token).map_err(|_| Error::Malformed("it is not a JWT, or a claim is missing"))
}
