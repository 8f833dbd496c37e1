//! The values of all metrics, and the snapshot that every export is made of.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use metrics::{
    Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use super::catalogue::{Kind, METRICS, Metric};

/// The upper bounds of the buckets of every histogram, in seconds.
pub(super) const BOUNDS: [f64; 13] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0];

/// Records the metrics in the catalogue, and ignores all others.
#[derive(Default)]
pub(super) struct Registry {
    series: RwLock<HashMap<Key, Cell>>,
}

#[derive(Clone)]
enum Cell {
    Counter(Arc<AtomicU64>),
    /// The bits of an `f64`.
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Buckets>),
}

#[derive(Default)]
struct Buckets {
    /// One more than there are bounds: the last bucket is unbounded.
    counts: [AtomicU64; BOUNDS.len() + 1],
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let bucket = BOUNDS.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        GaugeFn::increment(&self.sum, value);
    }
}

/// A metric with at least one recorded series.
pub(super) struct Family {
    pub(super) metric: &'static Metric,
    /// The series, by labels.
    pub(super) series: BTreeMap<Labels, Value>,
}

/// Names and values of labels, in the order of the call.
pub(super) type Labels = Vec<(String, String)>;

pub(super) enum Value {
    Count(u64),
    Level(f64),
    Distribution {
        /// The number of values in each bucket.
        counts: Vec<u64>,
        sum: f64,
    },
}

impl Registry {
    /// All series, in the order of the catalogue.
    pub(super) fn snapshot(&self) -> Vec<Family> {
        let mut families: HashMap<&str, BTreeMap<Labels, Value>> = HashMap::new();
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        for (key, cell) in series.iter() {
            let labels = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned()));
            families.entry(key.name()).or_default().insert(labels.collect(), cell.value());
        }
        let family = |metric: &'static Metric| Some(Family { metric, series: families.remove(metric.name)? });
        METRICS.iter().filter_map(family).collect()
    }

    /// The cell of a series; none if the metric is not in the catalogue.
    fn cell(&self, key: &Key) -> Option<Cell> {
        if let Some(cell) = self.series.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Some(cell.clone());
        }
        let metric = METRICS.iter().find(|metric| metric.name == key.name())?;
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        Some(series.entry(key.to_retained()).or_insert_with(|| Cell::new(metric.kind)).clone())
    }
}

impl Cell {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Counter => Self::Counter(Arc::default()),
            Kind::Gauge => Self::Gauge(Arc::default()),
            Kind::Histogram => Self::Histogram(Arc::default()),
        }
    }

    fn value(&self) -> Value {
        let float = |bits: &AtomicU64| f64::from_bits(bits.load(Ordering::Relaxed));
        match self {
            Self::Counter(count) => Value::Count(count.load(Ordering::Relaxed)),
            Self::Gauge(level) => Value::Level(float(level)),
            Self::Histogram(buckets) => Value::Distribution {
                counts: buckets.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
                sum: float(&buckets.sum),
            },
        }
    }
}

impl Recorder for Registry {
    // The catalogue describes the metrics.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.cell(key) {
            Some(Cell::Counter(count)) => count.into(),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.cell(key) {
            Some(Cell::Gauge(level)) => level.into(),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.cell(key) {
            Some(Cell::Histogram(buckets)) => buckets.into(),
            _ => Histogram::noop(),
        }
    }
}
