//! What was found out a moment ago and need not be asked again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};

/// A bounded memory of answers, each good until an instant.
pub struct Recent<K, V> {
    most: usize,
    known: Mutex<BTreeMap<K, (V, DateTime<Utc>)>>,
}

impl<K: Ord, V: Clone> Recent<K, V> {
    /// Remembers at most so many.
    pub fn new(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// What is known, if it is still good.
    pub fn get(&self, key: &K, now: DateTime<Utc>) -> Option<V> {
        let known = self.known.lock().expect("no holder panics");
        known.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    /// Remembers an answer for a while.
    pub fn put(&self, key: K, value: V, now: DateTime<Utc>, good_for: TimeDelta) {
        let mut known = self.known.lock().expect("no holder panics");
        if known.len() >= self.most {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() >= self.most {
            known.clear();
        }
        let until = now.checked_add_signed(good_for).unwrap_or(DateTime::<Utc>::MAX_UTC);
        known.insert(key, (value, until));
    }

    /// Forgets everything.
    pub fn forget(&self) {
        self.known.lock().expect("no holder panics").clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_in_time_and_number() {
        let recent = Recent::new(3);
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        for key in 0..10 {
            recent.put(key, "value", at(0), TimeDelta::seconds(5));
            assert!(recent.known.lock().unwrap().len() <= 3);
        }
        assert_eq!((recent.get(&9, at(4)), recent.get(&9, at(5))), (Some("value"), None));
        recent.forget();
        assert_eq!(recent.get(&9, at(4)), None);
    }
}
