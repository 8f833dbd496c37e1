//! The keys that tokens are checked with: asked for when needed, kept while fresh, kept on while the source is
//! down.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::Error;
use crate::remote::Remote;

/// A caller with made-up key ids cannot make us ask the source more often than this.
const BETWEEN_QUESTIONS: TimeDelta = TimeDelta::seconds(30);

/// With no key at all nobody can be let in, so ask again soon.
const BETWEEN_QUESTIONS_WHEN_COLD: TimeDelta = TimeDelta::seconds(1);

/// Where a key set comes from.
#[async_trait]
pub trait Source: Send + Sync {
    /// Asks for the present key set.
    async fn fetch(&self) -> Result<Fetched, Error>;
}

/// A key set, as its source gave it.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The key set (RFC 7517).
    pub jwks: Value,
    /// How long it may be used without asking again.
    pub max_age: Duration,
}

/// The keys of one issuer, by key id.
pub struct Keys {
    source: Option<Box<dyn Source>>,
    cache: RwLock<Cache>,
    /// When the source was last asked. Held while asking, so that only one caller asks at a time.
    asked: Mutex<Option<DateTime<Utc>>>,
}

#[derive(Default)]
struct Cache {
    keys: BTreeMap<String, Arc<DecodingKey>>,
    fresh_until: Option<DateTime<Utc>>,
}

impl Keys {
    /// Keys that never change.
    pub fn fixed(jwks: &Value) -> Self {
        let cache = Cache { keys: parse(jwks), fresh_until: Some(DateTime::<Utc>::MAX_UTC) };
        Self { source: None, cache: RwLock::new(cache), asked: Mutex::default() }
    }

    /// Keys published at an address.
    pub fn remote(url: impl Into<String>) -> Result<Self, Error> {
        Ok(Self::from_source(Remote::new(url.into())?))
    }

    /// Keys from elsewhere.
    pub fn from_source(source: impl Source + 'static) -> Self {
        Self { source: Some(Box::new(source)), cache: RwLock::default(), asked: Mutex::default() }
    }

    /// The key of that id.
    pub(crate) async fn find(&self, kid: &str, now: DateTime<Utc>) -> Result<Arc<DecodingKey>, Error> {
        match (self.known(kid), self.is_fresh(now)) {
            (Some(key), true) => return Ok(key),
            // An old key still serves; one caller asks for new ones and nobody waits for that one.
            (Some(key), false) => match self.asked.try_lock() {
                Ok(mut asked) => self.refresh(&mut asked, now).await?,
                Err(_) => return Ok(key),
            },
            (None, _) => self.refresh(&mut *self.asked.lock().await, now).await?,
        }
        self.known(kid).ok_or(Error::UnknownKey)
    }

    fn known(&self, kid: &str) -> Option<Arc<DecodingKey>> {
        self.cache.read().expect("no holder panics").keys.get(kid).cloned()
    }

    fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        self.cache.read().expect("no holder panics").fresh_until.is_some_and(|until| now < until)
    }

    /// Asks the source, unless it was asked just now. Fails only if there is not one key to go on with.
    async fn refresh(&self, asked: &mut Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<(), Error> {
        let Some(source) = &self.source else { return Ok(()) };
        let cold = self.cache.read().expect("no holder panics").keys.is_empty();
        let pause = if cold { BETWEEN_QUESTIONS_WHEN_COLD } else { BETWEEN_QUESTIONS };
        if asked.is_some_and(|at| (now - at).abs() < pause) {
            return if cold {
                Err(Error::KeysUnavailable("the last fetch failed a moment ago".into()))
            } else {
                Ok(())
            };
        }
        *asked = Some(now);
        match source.fetch().await.and_then(|fetched| self.keep(fetched, now)) {
            Err(error) if cold => Err(error),
            Err(error) => {
                tracing::warn!(%error, "Going on with the keys we have, since new ones cannot be had");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn keep(&self, fetched: Fetched, now: DateTime<Utc>) -> Result<(), Error> {
        let keys = parse(&fetched.jwks);
        if keys.is_empty() {
            return Err(Error::KeysUnavailable("the source has no RSA or P-256 key with an id".into()));
        }
        let max_age = TimeDelta::from_std(fetched.max_age).unwrap_or(TimeDelta::MAX);
        let fresh_until = Some(now.checked_add_signed(max_age).unwrap_or(DateTime::<Utc>::MAX_UTC));
        *self.cache.write().expect("no holder panics") = Cache { keys, fresh_until };
        Ok(())
    }
}

/// The keys that can check RS256 or ES256. Others in the set are none of our business.
fn parse(jwks: &Value) -> BTreeMap<String, Arc<DecodingKey>> {
    let keys = jwks.get("keys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    keys.iter().filter_map(parse_key).collect()
}

fn parse_key(key: &Value) -> Option<(String, Arc<DecodingKey>)> {
    let jwk: Jwk = serde_json::from_value(key.clone()).ok()?;
    match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (),
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => (),
        _ => return None,
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some((jwk.common.key_id?, Arc::new(key)))
}
