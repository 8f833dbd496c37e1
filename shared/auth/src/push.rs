//! Authentication of pushed messages.

use chrono::{DateTime, Utc};
use jsonwebtoken::dangerous::insecure_decode_claims;

use crate::{Claims, Error, GOOGLE_ISSUERS, Verifier};

/// How pushes are authenticated as coming from our own subscriptions. There is no default: a deployment must choose.
pub enum PushAuth {
    /// The token is verified here.
    Oidc {
        /// Verifies signature, issuer, audience and time.
        verifier: Verifier,
        /// The account that the subscriptions push as.
        service_account: String,
    },
    /// The platform has verified the token, and may have removed its signature. Only for services that are reachable
    /// solely through the platform: anyone else could forge such a token.
    Iam {
        /// The required audience of the token.
        audience: String,
        /// The account that the subscriptions push as.
        service_account: String,
    },
    /// Anyone may push: the emulator sends no token.
    None,
}

impl PushAuth {
    /// Checks whether the bearer of this `Authorization` header may push.
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
