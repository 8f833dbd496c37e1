//! `breaker` of a task, as written.

use model::BreakerSpec;

use crate::diagnostic::Report;
use crate::duration::Duration;
use crate::node::Node;
use crate::shape::{Shape, custom, duration, record, whole, with_default};

const MAX_FAILURES: u32 = 100;
/// A day: no window and no pause is longer, in seconds.
const MAX_SECONDS: u64 = 86_400;

record! {
    /// When failed attempts of a task keep further ones from beginning.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct BreakerParts as "a breaker" {
        /// How many attempts must fail to open it.
        failures: u32 = with_default(whole(1..=MAX_FAILURES), BreakerSpec::default().failures),
        /// The time within which they must fail, such as `10m`.
        window: u32 = with_default(span(), "10m"),
        /// How long no attempt begins once it is open, such as `5m`. Then one attempt shows whether the task works again.
        pause: u32 = with_default(span(), "5m"),
    }
}

impl BreakerParts {
    pub(crate) fn complete(self) -> BreakerSpec {
        let default = BreakerSpec::default();
        BreakerSpec {
            failures: self.failures.unwrap_or(default.failures),
            window_seconds: self.window.unwrap_or(default.window_seconds),
            pause_seconds: self.pause.unwrap_or(default.pause_seconds),
        }
    }
}

/// A length of time from a second to a day, in seconds.
fn span<'n>() -> impl Shape<'n, Value = u32> {
    let (shape, mut schema) = (duration(), duration().schema());
    (schema["minimum"], schema["maximum"]) = (1.into(), MAX_SECONDS.into());
    let read = move |node: &'n Node, report: &mut Report<'_>| {
        let seconds = shape.read(node, report).map(|duration: Duration| duration.to_std().as_secs())?;
        if !(1..=MAX_SECONDS).contains(&seconds) {
            report.add(&node.at, "a duration from `1s` to `1d` belongs here", None);
            return None;
        }
        u32::try_from(seconds).ok()
    };
    custom(read, move || schema.clone())
}
