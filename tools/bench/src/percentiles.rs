//! Percentiles of measurements.

/// Measurements, sorted in ascending order.
pub(crate) struct Percentiles(Vec<f64>);

impl Percentiles {
    pub(crate) fn of(mut measured: Vec<f64>) -> Self {
        measured.sort_unstable_by(f64::total_cmp);
        Self(measured)
    }

    /// The smallest measurement that `percent` of all do not exceed; 0 if there are none.
    pub(crate) fn at(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_measurements() {
        let measured = Percentiles::of((1..=200).rev().map(f64::from).collect());
        assert_eq!([50, 99, 100].map(|percent| measured.at(percent)), [100.0, 198.0, 200.0]);
        assert_eq!(Percentiles::of(vec![7.0]).at(50), 7.0);
        assert_eq!(Percentiles::of(Vec::new()).at(99), 0.0);
    }
}
