//! How late runs begin, measured against the instants they were planned for.

use chrono::TimeDelta;

/// The upper ends of the classes that drift is counted in, in milliseconds; a last one is for all beyond.
const CLASSES: [i64; 11] = [50, 100, 250, 500, 1_000, 1_500, 2_000, 5_000, 10_000, 30_000, 60_000];

/// How many runs began how late.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Drift {
    /// How many fell into each class.
    counts: [i64; CLASSES.len() + 1],
}

impl Drift {
    /// What was counted before, class by class. What is missing is zero.
    pub fn from_counts(counts: &[i64]) -> Self {
        let mut drift = Self::default();
        drift.counts.iter_mut().zip(counts).for_each(|(mine, count)| *mine = *count);
        drift
    }

    /// The counts, class by class.
    pub fn counts(&self) -> &[i64] {
        &self.counts
    }

    /// Counts one more run that started this late.
    pub fn add(&mut self, late: TimeDelta) {
        let late = late.num_milliseconds();
        let class = CLASSES.iter().position(|end| late <= *end).unwrap_or(CLASSES.len());
        self.counts[class] += 1;
    }

    /// How many fell into each class, with its upper end in milliseconds; the last one has none.
    pub fn classes(&self) -> impl Iterator<Item = (Option<i64>, i64)> + '_ {
        CLASSES.iter().copied().map(Some).chain([None]).zip(self.counts.iter().copied())
    }

    /// How many were counted.
    pub fn count(&self) -> i64 {
        self.counts.iter().sum()
    }

    /// The drift in milliseconds at that percentile (0 to 100); none if nothing was counted, or if it exceeds the
    /// largest bucket.
    pub fn percentile(&self, share: i64) -> Option<i64> {
        let wanted = (self.count() * share + 99) / 100;
        let mut seen = 0;
        let class = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        CLASSES.get(class.filter(|_| self.count() > 0)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_given_by_class() {
        let mut drift = Drift::default();
        assert_eq!(drift.percentile(99), None);
        (0..99).for_each(|_| drift.add(TimeDelta::milliseconds(80)));
        drift.add(TimeDelta::milliseconds(1_900));
        assert_eq!(
            (drift.percentile(50), drift.percentile(99), drift.percentile(100)),
            (Some(100), Some(100), Some(2_000))
        );
        drift.add(TimeDelta::hours(1));
        assert_eq!(drift.percentile(100), None);
        assert_eq!(Drift::from_counts(drift.counts()), drift);
    }
}
