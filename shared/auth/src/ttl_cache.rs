//! A bounded cache whose entries expire.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};

/// A bounded cache whose entries expire. When it is full of live entries, it is cleared.
pub struct TtlCache<K, V> {
    capacity: usize,
    entries: Mutex<BTreeMap<K, (V, DateTime<Utc>)>>,
}

impl<K: Ord, V: Clone> TtlCache<K, V> {
    /// An empty cache for at most `capacity` entries.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, entries: Mutex::default() }
    }

    /// The value of a key, if it is cached and has not expired.
    pub fn get(&self, key: &K, now: DateTime<Utc>) -> Option<V> {
        let entries = self.entries.lock().expect("no holder panics");
        entries.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    /// Caches a value for `ttl`.
    pub fn put(&self, key: K, value: V, now: DateTime<Utc>, ttl: TimeDelta) {
        let mut entries = self.entries.lock().expect("no holder panics");
        if entries.len() >= self.capacity {
            entries.retain(|_, (_, until)| now < *until);
        }
        if entries.len() >= self.capacity {
            entries.clear();
        }
        let until = now.checked_add_signed(ttl).unwrap_or(DateTime::<Utc>::MAX_UTC);
        entries.insert(key, (value, until));
    }

    /// Removes all entries, whatever their age.
    pub fn clear(&self) {
        self.entries.lock().expect("no holder panics").clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_in_time_and_number() {
        let recent = TtlCache::new(3);
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        for key in 0..10 {
            recent.put(key, "value", at(0), TimeDelta::seconds(5));
            assert!(recent.entries.lock().unwrap().len() <= 3);
        }
        assert_eq!((recent.get(&9, at(4)), recent.get(&9, at(5))), (Some("value"), None));
        recent.clear();
        assert_eq!(recent.get(&9, at(4)), None);
    }
}
