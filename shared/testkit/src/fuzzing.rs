//! How long fuzzers run, and which cases they begin with.
//!
//! Every fuzzer reads `EBB_FUZZ_SECONDS`, the time for it, and `EBB_SEED`, which chooses the cases. Without them it tries few
//! cases, the same each time. For ten minutes each, with a seed of one's own:
//!
//! ```text
//! export EBB_SEED=7 EBB_FUZZ_SECONDS=600
//! # The language: all targets together, by their shares; or one target, of whose share 600 seconds are a part.
//! cargo test -p ebbflow-language --test fuzz -- --nocapture
//! EBB_FUZZ_SECONDS=1500 cargo test -p ebbflow-language --test fuzz -- files_are --nocapture          # 40 %
//! EBB_FUZZ_SECONDS=3333 cargo test -p ebbflow-language --test fuzz -- templates_are --nocapture      # 18 %
//! # The API: bodies made of several large parts.
//! cargo test -p ebbflow-api --test suite -- no_random_request --nocapture
//! # The API: definitions, bodies and tokens that are damaged at random.
//! cargo test -p ebbflow-api --test suite -- hostile --nocapture
//! # A whole process: pushes, events, tokens and definitions that almost make sense.
//! cargo test -p ebb --test suite -- bad_input --nocapture
//! # The engine: random graphs with random outcomes, and with random things that people do.
//! cargo test -p ebbflow-engine --test it -- random_graphs --nocapture
//! ```
//!
//! The tests of properties (`proptest!`) read `PROPTEST_RNG_SEED` and `PROPTEST_CASES`; `.cargo/config.toml` chooses the seed:
//!
//! ```text
//! PROPTEST_RNG_SEED=7 PROPTEST_CASES=10000 cargo test -p ebbflow-language --test template
//! ```

use std::env;
use std::fmt;
use std::time::{Duration, Instant};

/// The time and the seed of a fuzzer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuzzing {
    /// How long it goes on; nothing by default.
    pub length: Duration,
    /// The seed, if one was chosen.
    pub seed: Option<u64>,
    began: Instant,
}

impl Fuzzing {
    /// As the environment says.
    ///
    /// # Panics
    ///
    /// If a variable holds no number.
    pub fn from_env() -> Self {
        let number = |name: &str| {
            let text = env::var(name).ok()?;
            Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
        };
        let length = Duration::from_secs(number("EBB_FUZZ_SECONDS").unwrap_or(0));
        Self { length, seed: number("EBB_SEED"), began: Instant::now() }
    }

    /// Whether there is time for more.
    pub fn goes_on(&self) -> bool {
        self.began.elapsed() < self.length
    }
}

impl fmt::Display for Fuzzing {
    /// How to see the same again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EBB_FUZZ_SECONDS={}", self.length.as_secs())?;
        self.seed.map_or(Ok(()), |seed| write!(f, " EBB_SEED={seed}"))
    }
}
