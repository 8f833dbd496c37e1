//! The keys that verify tokens: fetched on demand, cached while fresh, and still used while the source is unavailable.

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
use crate::jwks_endpoint::JwksEndpoint;

/// The minimum time between two fetches, even if a caller invents key ids.
const MIN_FETCH_INTERVAL: TimeDelta = TimeDelta::seconds(30);

/// The same while no key is known and so no caller can be authenticated.
const MIN_FETCH_INTERVAL_WITHOUT_KEYS: TimeDelta = TimeDelta::seconds(1);

/// The source of a key set.
#[async_trait]
pub trait Source: Send + Sync {
    /// Fetches the current key set.
    async fn fetch(&self) -> Result<Fetched, Error>;
}

/// A key set, as fetched.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The key set (RFC 7517).
    pub jwks: Value,
    /// How long it stays fresh.
    pub max_age: Duration,
}

/// The keys of one issuer, by key id.
pub struct Keys {
    source: Option<Box<dyn Source>>,
    cache: RwLock<Cache>,
    /// When the last fetch started. Locked during a fetch, so that only one caller fetches at a time.
    fetched_at: Mutex<Option<DateTime<Utc>>>,
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
        Self { source: None, cache: RwLock::new(cache), fetched_at: Mutex::default() }
    }

    /// Keys published at a URL.
    pub fn remote(url: impl Into<String>) -> Result<Self, Error> {
        Ok(Self::from_source(JwksEndpoint::new(url.into())?))
    }

    /// Keys from another source.
    pub fn from_source(source: impl Source + 'static) -> Self {
        Self { source: Some(Box::new(source)), cache: RwLock::default(), fetched_at: Mutex::default() }
    }

    /// The key with that id.
    pub(crate) async fn find(&self, kid: &str, now: DateTime<Utc>) -> Result<Arc<DecodingKey>, Error> {
        match (self.known(kid), self.is_fresh(now)) {
            (Some(key), true) => return Ok(key),
            // A stale key still verifies tokens: one caller refreshes, and the others do not wait for it.
            (Some(key), false) => match self.fetched_at.try_lock() {
                Ok(mut fetched_at) => self.refresh(&mut fetched_at, now).await?,
                Err(_) => return Ok(key),
            },
            (None, _) => self.refresh(&mut *self.fetched_at.lock().await, now).await?,
        }
        self.known(kid).ok_or(Error::UnknownKey)
    }

    fn known(&self, kid: &str) -> Option<Arc<DecodingKey>> {
        self.cache.read().expect("no holder panics").keys.get(kid).cloned()
    }

    fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        self.cache.read().expect("no holder panics").fresh_until.is_some_and(|until| now < until)
    }

    /// Fetches the keys, unless they were fetched just now. Fails only if no key is known yet.
    async fn refresh(&self, fetched_at: &mut Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<(), Error> {
        let Some(source) = &self.source else { return Ok(()) };
        let empty = self.cache.read().expect("no holder panics").keys.is_empty();
        let interval = if empty { MIN_FETCH_INTERVAL_WITHOUT_KEYS } else { MIN_FETCH_INTERVAL };
        if fetched_at.is_some_and(|at| (now - at).abs() < interval) {
            return if empty {
                Err(Error::KeysUnavailable("the last fetch failed a moment ago".into()))
            } else {
                Ok(())
            };
        }
        *fetched_at = Some(now);
        match source.fetch().await.and_then(|fetched| self.update(fetched, now)) {
            Err(error) if empty => Err(error),
            Err(error) => {
                tracing::warn!(%error, "Cannot fetch new keys; continuing with the current ones");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn update(&self, fetched: Fetched, now: DateTime<Utc>) -> Result<(), Error> {
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

/// The keys for RS256 and ES256; other keys of the set are ignored.
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
