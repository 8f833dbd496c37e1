//! Whether work takes time in proportion to its size. What counts is the time that its threads spend on processors, which does
//! not depend on what else the machine does.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Four times the size may take four times as long, and somewhat more for what grows with the logarithm and for caches.
/// Where time is the square, it takes sixteen times.
const MAX_GROWTH: u32 = 8;

/// What takes no longer is not worth a comparison.
const NEGLIGIBLE: Duration = Duration::from_millis(100);

/// How often a time that seems too long is measured again. Other processes can only make it longer.
const MAX_MEASUREMENTS: usize = 5;

/// The threads of a runtime.
#[derive(Clone, Default)]
pub struct Threads(Arc<Mutex<Vec<String>>>);

impl Threads {
    /// Runs a test on the current thread and on threads for work that blocks.
    pub fn block_on<F: Future>(test: impl FnOnce(Self) -> F) -> F::Output {
        let threads = Self::default();
        threads.enter();
        let on_start = threads.clone();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // A thread that has ended cannot be asked for its time.
        let builder = builder.enable_all().thread_keep_alive(Duration::from_secs(3600));
        let runtime = builder.on_thread_start(move || on_start.enter()).build().expect("a runtime starts");
        runtime.block_on(test(threads))
    }

    /// Adds the current thread.
    fn enter(&self) {
        let thread = fs::read_link("/proc/thread-self").expect("/proc is there");
        let path = format!("/proc/{}/schedstat", thread.display());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// The time that they have spent on processors.
    fn busy(&self) -> Duration {
        let nanoseconds = |thread: &String| {
            let text = fs::read_to_string(thread).expect("the thread runs");
            text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0)
        };
        let threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_nanos(threads.iter().map(nanoseconds).sum())
    }

    /// How long a request of a size takes. What `prepare` does is not measured.
    async fn measure<P>(
        &self,
        size: usize,
        prepare: impl AsyncFn() -> P,
        send: impl AsyncFn(usize, P),
    ) -> Duration {
        let prepared = prepare().await;
        let before = self.busy();
        send(size, prepared).await;
        self.busy() - before
    }

    /// Fails if something of the second size, four times the first, takes much longer than four times as long.
    pub async fn check<P>(
        &self,
        what: &str,
        sizes: [usize; 2],
        prepare: impl AsyncFn() -> P,
        send: impl AsyncFn(usize, P),
    ) {
        let mut shortest = [Duration::MAX; 2];
        for _ in 0..MAX_MEASUREMENTS {
            for (time, size) in shortest.iter_mut().zip(sizes) {
                *time = (*time).min(self.measure(size, &prepare, &send).await);
            }
            if grows_slowly(shortest) {
                return;
            }
        }
        panic!("{what}: {shortest:?} for {sizes:?} bytes");
    }
}

fn grows_slowly([small, large]: [Duration; 2]) -> bool {
    large <= NEGLIGIBLE || large <= small * MAX_GROWTH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works for a number of steps that the compiler does not leave out.
    fn work(steps: usize) {
        for step in 0..steps {
            std::hint::black_box(step);
        }
    }

    #[test]
    fn what_is_linear_passes() {
        Threads::block_on(async |threads| {
            threads.check("linear", [1, 4], async || (), async |size, ()| work(size * 8_000_000)).await;
        });
    }

    #[test]
    #[should_panic(expected = "square: ")]
    fn what_is_the_square_does_not() {
        Threads::block_on(async |threads| {
            let square = async |size: usize, ()| work(size * size * 8_000_000);
            threads.check("square", [1, 4], async || (), square).await;
        });
    }
}
