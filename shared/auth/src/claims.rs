//! The claims of a token, and their validation.

use chrono::{DateTime, TimeDelta, Utc, serde as seconds};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Error;

/// How far the clocks of issuer and receiver may differ.
pub(crate) const LEEWAY: TimeDelta = TimeDelta::seconds(10);

/// The claims of a token (RFC 7519).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// The issuer that signed the token.
    pub iss: String,
    /// The subject: the issuer's id of the bearer.
    pub sub: String,
    /// The audiences that it was issued for.
    #[serde(deserialize_with = "one_or_many")]
    pub aud: Vec<String>,
    /// When the token expires.
    #[serde(with = "seconds::ts_seconds")]
    pub exp: DateTime<Utc>,
    /// When it becomes valid.
    #[serde(default, with = "seconds::ts_seconds_option", skip_serializing_if = "Option::is_none")]
    pub nbf: Option<DateTime<Utc>>,
    /// The bearer's e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether the issuer has verified that address.
    #[serde(default)]
    pub email_verified: bool,
    /// All claims that have no field here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Claims {
    /// Rejects claims of another issuer, for another audience, or outside their validity period.
    pub(crate) fn check(&self, issuers: &[String], audience: &str, now: DateTime<Utc>) -> Result<(), Error> {
        if !issuers.contains(&self.iss) {
            return Err(Error::WrongIssuer { expected: issuers.join(" or ") });
        }
        if !self.aud.iter().any(|aud| aud == audience) {
            return Err(Error::WrongAudience { expected: audience.into() });
        }
        self.check_time(now)
    }

    /// Rejects claims that are expired or not valid yet.
    pub(crate) fn check_time(&self, now: DateTime<Utc>) -> Result<(), Error> {
        // Subtracts, since adding to the largest possible `exp` would overflow.
        if now.signed_duration_since(self.exp) >= LEEWAY {
            return Err(Error::Expired);
        }
        match self.nbf {
            Some(nbf) if nbf.signed_duration_since(now) > LEEWAY => Err(Error::Premature),
            _ => Ok(()),
        }
    }

    /// Rejects all but this account, identified by a verified address.
    pub(crate) fn check_account(&self, service_account: &str) -> Result<(), Error> {
        match self.email_verified && self.email.as_deref() == Some(service_account) {
            true => Ok(()),
            false => Err(Error::WrongAccount),
        }
    }
}

/// The audience is one string or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(audience) => vec![audience],
        Audience::Many(audiences) => audiences,
    })
}
