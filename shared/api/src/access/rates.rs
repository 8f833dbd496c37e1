//! How many requests a caller and a tenant may send.

use std::collections::BTreeMap;
use std::sync::Mutex;

use host::Problem;
use model::{Instant, TenantId};

use super::Access;

/// The number of callers that are counted; beyond it, idle ones are forgotten first.
const MAX_COUNTED: usize = 10_000;

/// The burst that an idle caller may use, in seconds' worth of requests.
const BURST_SECONDS: f64 = 2.0;

/// Requests a second; none for no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Of one caller: an account or a token.
    pub caller: Option<u32>,
    /// Of a tenant as a whole.
    pub tenant: Option<u32>,
}

/// The recent request rates of callers, on this instance.
#[derive(Default)]
pub(super) struct Counted {
    rates: Rates,
    buckets: Mutex<BTreeMap<Who, Bucket>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Who {
    Caller(TenantId, String),
    Tenant(TenantId),
}

/// The remaining number of requests at an instant.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    /// The remaining number of requests now.
    fn refilled(self, rate: f64, now: Instant) -> f64 {
        let seconds = (now - self.at).num_milliseconds().max(0) as f64 / 1000.0;
        (self.left + seconds * rate).min(rate * BURST_SECONDS)
    }
}

impl Counted {
    fn new(rates: Rates) -> Self {
        Self { rates, buckets: Mutex::default() }
    }

    /// Counts a request, or returns the seconds until there is room for it.
    fn take(&self, who: Who, rate: u32, now: Instant) -> Result<(), u64> {
        let rate = f64::from(rate);
        let mut buckets = self.buckets.lock().expect("no holder panics");
        if buckets.len() >= MAX_COUNTED {
            // A full bucket need not be kept.
            buckets.retain(|_, bucket| now - bucket.at < chrono::TimeDelta::seconds(BURST_SECONDS as i64));
        }
        if buckets.len() >= MAX_COUNTED {
            buckets.clear();
        }
        let bucket = buckets.entry(who).or_insert(Bucket { left: rate * BURST_SECONDS, at: now });
        let left = bucket.refilled(rate, now);
        let enough = left >= 1.0;
        *bucket = Bucket { left: if enough { left - 1.0 } else { left }, at: now.max(bucket.at) };
        if enough { Ok(()) } else { Err(((1.0 - left) / rate).ceil().max(1.0) as u64) }
    }
}

impl Access {
    /// Sets the maximum request rates.
    pub fn with_rates(self, rates: Rates) -> Self {
        let inner = std::sync::Arc::into_inner(self.0).expect("it was made a moment ago");
        Self(super::Inner { counted: Counted::new(rates), ..inner }.into())
    }

    /// Counts a caller's request, or refuses it until there is room.
    pub(super) fn count(&self, tenant: TenantId, name: &str, now: Instant) -> Result<(), Problem> {
        let counted = &self.0.counted;
        let bounds = [
            (Who::Caller(tenant, name.to_owned()), counted.rates.caller, "you"),
            (Who::Tenant(tenant), counted.rates.tenant, "the tenant"),
        ];
        for (who, rate, whom) in bounds {
            let Some(rate) = rate else { continue };
            counted.take(who, rate, now).map_err(|seconds| {
                Problem::too_many(
                    format!("{whom} exceeded {rate} requests per second; retry in {seconds} s"),
                    seconds,
                )
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Instant {
        Instant::from_timestamp_millis(1_800_000_000_000 + milliseconds).unwrap()
    }

    fn who(number: i32) -> Who {
        Who::Tenant(TenantId(number))
    }

    #[test]
    fn a_caller_beyond_the_rate_gets_the_time_to_wait() {
        let counted = Counted::default();
        for _ in 0..10 {
            assert_eq!(counted.take(who(1), 5, at(0)), Ok(()));
        }
        assert_eq!(counted.take(who(1), 5, at(0)), Err(1));
        assert_eq!(counted.take(who(2), 5, at(0)), Ok(()), "another one is not held up");
        assert_eq!(counted.take(who(1), 5, at(100)), Err(1), "asking in vain costs nothing");
        assert_eq!(counted.take(who(1), 5, at(200)), Ok(()));
        assert_eq!(counted.take(who(1), 5, at(200)), Err(1));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away_and_takes_nothing() {
        let counted = Counted::default();
        assert_eq!(counted.take(who(1), 1, at(10_000)), Ok(()));
        assert_eq!(counted.take(who(1), 1, at(0)), Ok(()));
        assert_eq!(counted.take(who(1), 1, at(10_000)), Err(1));
    }

    #[test]
    fn a_limited_number_of_callers_is_counted() {
        let counted = Counted::default();
        for number in 0..(2 * MAX_COUNTED as i32 + 5) {
            assert_eq!(counted.take(who(number), 1, at(0)), Ok(()));
        }
        assert!(counted.buckets.lock().unwrap().len() <= MAX_COUNTED);
    }
}
