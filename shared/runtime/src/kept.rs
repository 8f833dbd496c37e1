//! What is kept in memory so that it is not made again: limited by what it weighs, the oldest goes first.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

use serde::Serialize;

/// Values that never change, by key.
pub(crate) struct Kept<K, V> {
    /// The maximum weight of all entries together, in bytes. One that alone weighs more is kept until the next one comes.
    max_weight: usize,
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    by_key: BTreeMap<K, (Arc<V>, usize)>,
    /// The keys, those that were added first in front.
    order: VecDeque<K>,
    weight: usize,
}

impl<K: Ord + Clone, V> Kept<K, V> {
    pub(crate) fn new(max_weight: usize) -> Self {
        let entries = Entries { by_key: BTreeMap::new(), order: VecDeque::new(), weight: 0 };
        Self { max_weight, entries: Mutex::new(entries) }
    }

    pub(crate) fn get(&self, key: &K) -> Option<Arc<V>> {
        let entries = self.entries.lock().expect("nothing panics while it is held");
        entries.by_key.get(key).map(|(value, _)| value.clone())
    }

    /// Keeps a value in place of the oldest ones. Of two that are made at the same time, the first is kept.
    pub(crate) fn keep(&self, key: K, value: V, weight: usize) -> Arc<V> {
        let mut entries = self.entries.lock().expect("nothing panics while it is held");
        if let Some((earlier, _)) = entries.by_key.get(&key) {
            return earlier.clone();
        }
        let value = Arc::new(value);
        while entries.weight.saturating_add(weight) > self.max_weight
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.weight -= entries.by_key.remove(&oldest).map_or(0, |(_, weight)| weight);
        }
        entries.weight = entries.weight.saturating_add(weight);
        entries.order.push_back(key.clone());
        entries.by_key.insert(key, (value.clone(), weight));
        value
    }
}

/// What a value takes in memory, in bytes, roughly and rather too much: the length of its JSON, and something for each map and
/// each value in it, since short ones take more memory than their texts do.
pub(crate) fn weigh(value: &impl Serialize) -> usize {
    const MAP: usize = 640;
    const VALUE: usize = 64;
    struct Weight(usize);
    impl io::Write for Weight {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let weight = |byte: &u8| match byte {
                b'{' => MAP,
                b',' | b'[' => VALUE,
                _ => 1,
            };
            self.0 += bytes.iter().map(weight).sum::<usize>();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut weight = Weight(0);
    // Counting never fails, and what is kept as JSON has string keys only.
    let _ = serde_json::to_writer(&mut weight, value);
    weight.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_go_first_once_all_weigh_too_much() {
        let kept = Kept::new(10);
        let keys = |kept: &Kept<u32, u32>| (1..=9).filter(|key| kept.get(key).is_some()).collect::<Vec<_>>();
        for key in [5, 4, 3] {
            kept.keep(key, key, 3);
        }
        assert_eq!(keys(&kept), [3, 4, 5]);
        assert_eq!(*kept.keep(4, 0, 3), 4, "it is there");
        kept.keep(2, 2, 4);
        assert_eq!(keys(&kept), [2, 3, 4], "the first one went");
        kept.keep(9, 9, 8);
        assert_eq!(keys(&kept), [9], "as many as it takes");
        assert_eq!(*kept.keep(1, 1, 11), 1);
        assert_eq!(keys(&kept), [1], "one that is too heavy is kept alone");
        kept.keep(6, 6, 1);
        assert_eq!(keys(&kept), [6]);
    }

    #[test]
    fn a_value_weighs_at_least_its_text_and_short_values_more() {
        assert!(weigh(&json!("x".repeat(1_000))) >= 1_000);
        let dense = json!(vec![json!({"a": 1}); 1_000]);
        assert!(weigh(&dense) > 50 * dense.to_string().len());
    }
}
