//! Which lines are logged: those that the filter lets through, and those that metrics count.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::{EnvFilter, Layer};

/// A filter that lines with a field `event` pass, down to the level `info`: alerts count them, and a filter must not silence
/// alerts.
pub(super) struct Levels(pub(super) EnvFilter);

fn is_counted(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && *metadata.level() <= Level::INFO && metadata.fields().field("event").is_some()
}

impl<S: Subscriber> Layer<S> for Levels {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // The filter registers every call site, also where its verdict does not matter.
        let interest = Layer::<S>::register_callsite(&self.0, metadata);
        if is_counted(metadata) { Interest::always() } else { interest }
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        is_counted(metadata) || Layer::<S>::enabled(&self.0, metadata, context)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Layer::<S>::max_level_hint(&self.0).map(|level| level.max(LevelFilter::INFO))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        Layer::<S>::on_new_span(&self.0, attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        Layer::<S>::on_record(&self.0, id, values, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        Layer::<S>::on_enter(&self.0, id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        Layer::<S>::on_exit(&self.0, id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        Layer::<S>::on_close(&self.0, id, context);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::{Event, debug, info, warn};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Counts the lines that pass.
    #[derive(Clone, Default)]
    struct Passed(Arc<Mutex<u32>>);

    impl<S: Subscriber> Layer<S> for Passed {
        fn on_event(&self, _event: &Event<'_>, _context: Context<'_, S>) {
            *self.0.lock().unwrap() += 1;
        }
    }

    fn passed(filter: &str, work: impl FnOnce()) -> u32 {
        let lines = Passed::default();
        let levels = Levels(EnvFilter::new(filter));
        let subscribed = testkit::subscribe(tracing_subscriber::registry().with(levels).with(lines.clone()));
        work();
        drop(subscribed);
        *lines.0.lock().unwrap()
    }

    #[test]
    fn a_counted_line_passes_every_filter() {
        for filter in ["info", "warn", "error", "off", "ebbflow_host=off", "error,somebody_else=debug"] {
            let ended = || info!(event = "run_ended", state = "failed", "A run failed");
            assert_eq!(passed(filter, ended), 1, "{filter}");
        }
    }

    #[test]
    fn other_lines_pass_only_their_filter() {
        for (filter, expected) in
            [("info", 2), ("warn", 1), ("error", 0), ("off", 0), ("off,ebbflow_host=debug", 3)]
        {
            let work = || {
                debug!("Details");
                info!("A request was served");
                warn!("Something is odd");
            };
            assert_eq!(passed(filter, work), expected, "{filter}");
        }
    }

    #[test]
    fn details_are_not_counted() {
        assert_eq!(passed("info", || debug!(event = "detail", "Details")), 0);
    }
}
