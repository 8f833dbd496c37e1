//! What a token says, and whether that suits us.

use chrono::{DateTime, TimeDelta, Utc, serde as seconds};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Error;

/// How far the clocks of issuer and receiver may be apart.
const LEEWAY: TimeDelta = TimeDelta::seconds(10);

/// What a token says about its bearer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Who issued it.
    pub iss: String,
    /// Whom it is about.
    pub sub: String,
    /// For whom it was issued.
    #[serde(deserialize_with = "one_or_many")]
    pub aud: Vec<String>,
    /// Until when it is good.
    #[serde(with = "seconds::ts_seconds")]
    pub exp: DateTime<Utc>,
    /// From when it is good.
    #[serde(default, with = "seconds::ts_seconds_option", skip_serializing_if = "Option::is_none")]
    pub nbf: Option<DateTime<Utc>>,
    /// The bearer's e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether the issuer vouches for that address.
    #[serde(default)]
    pub email_verified: bool,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Claims {
    /// Refuses what was issued by another, for another, or for another time.
    pub(crate) fn check(&self, issuers: &[String], audience: &str, now: DateTime<Utc>) -> Result<(), Error> {
        if !issuers.contains(&self.iss) {
            return Err(Error::WrongIssuer { expected: issuers.join(" or ") });
        }
        if !self.aud.iter().any(|aud| aud == audience) {
            return Err(Error::WrongAudience { expected: audience.into() });
        }
        self.check_time(now)
    }

    /// Refuses what is not good at this time.
    pub(crate) fn check_time(&self, now: DateTime<Utc>) -> Result<(), Error> {
        // Differences, since adding to an `exp` at the end of time would overflow.
        if now.signed_duration_since(self.exp) >= LEEWAY {
            return Err(Error::Expired);
        }
        match self.nbf {
            Some(nbf) if nbf.signed_duration_since(now) > LEEWAY => Err(Error::Premature),
            _ => Ok(()),
        }
    }

    /// Refuses everyone but this account, known by an address that the issuer vouches for.
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
