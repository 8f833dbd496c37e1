//! Publishing after the commit. It never fails the caller: what is lost here, the sweep says again.

use chrono::TimeDelta;
use model::Message;
use store::Committed;
use tracing::{Instrument, info, warn};

use crate::counting;
use crate::place::Granting;
use crate::{Result, Runtime};

/// While the bus is away, messages are said again so often: for two minutes in all.
const TRIES: u32 = 26;

/// With no longer pause in between.
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(5);

/// What a commit left to be said: announcements, which follow from the rows themselves, outbox messages, and who was
/// granted a place.
#[derive(Default)]
pub(crate) struct Unsaid {
    pub(crate) announcements: Vec<Message>,
    pub(crate) committed: Committed,
}

impl Runtime {
    /// Publishes what a commit left to be said, marks outbox messages as sent, and tells those who were granted places.
    pub(crate) async fn publish(&self, unsaid: Unsaid) {
        let granted = self.say(unsaid).await;
        if let Err(error) = self.take_up(granted).await {
            warn!("Tasks that were granted places wait for the sweep: {error}");
        }
    }

    /// Publishes messages. Answers who was granted a place, and whether more may be.
    pub(crate) async fn say(&self, Unsaid { mut announcements, committed }: Unsaid) -> Granting {
        let ids: Vec<i64> = committed.unsent.iter().map(|row| row.id).collect();
        announcements.extend(committed.unsent.into_iter().flat_map(|row| row.messages));
        counting::ends(&announcements);
        log_ends(&announcements);
        if announcements.is_empty() {
            // Nothing to say.
        } else if let Err(error) = self.bus.publish(&announcements).await {
            counting::unpublished();
            warn!("{} messages are said again in a moment: {error}", announcements.len());
            self.say_later(announcements, ids);
        } else if let Err(error) = self.mark_sent(&ids).await {
            warn!("{} messages will be sent again by the sweep: {error}", announcements.len());
        }
        Granting { granted: committed.granted, again: committed.again }
    }

    /// Says messages again while the bus is away, so that work goes on soon after its return. Nobody waits for it, and
    /// should this process end before, the sweep says them.
    fn say_later(&self, messages: Vec<Message>, ids: Vec<i64>) {
        let (bus, store, clock) = (self.bus.clone(), self.store.clone(), self.clock.clone());
        let say = async move {
            for tries in 0..TRIES {
                let pause = LONGEST_PAUSE.min(TimeDelta::seconds(1 << tries.min(8)));
                clock.wait_until(clock.now() + pause).await;
                if bus.publish(&messages).await.is_ok() {
                    // Messages that are not marked are only said once more.
                    let _ = store.sent(&ids).await;
                    return;
                }
            }
            warn!("{} messages wait for the sweep", messages.len());
        };
        tokio::spawn(say.in_current_span());
    }

    /// Publishes outbox messages that their own process did not live to publish. Answers how many.
    pub async fn relay(&self, before: model::Instant, limit: u32) -> Result<usize> {
        let unsent = self.store.unsent(before, limit).await?;
        let ids: Vec<i64> = unsent.iter().map(|row| row.id).collect();
        let messages: Vec<Message> = unsent.into_iter().flat_map(|row| row.messages).collect();
        if !messages.is_empty() {
            self.bus.publish(&messages).await.map_err(crate::Error::Bus)?;
            self.mark_sent(&ids).await?;
        }
        Ok(messages.len())
    }

    async fn mark_sent(&self, ids: &[i64]) -> store::Result<()> {
        if ids.is_empty() { Ok(()) } else { self.store.sent(ids).await }
    }
}

/// The failure rate is counted from these lines. A process that dies before this line leaves a run out, which is negligible.
fn log_ends(messages: &[Message]) {
    for message in messages {
        if let Message::RunFinished(end) = message {
            let (run, state) = (end.run, end.state.name());
            let tenant = end.tenant.0;
            let workflow = &end.workflow;
            info!(event = "run_ended", %run, tenant, workflow, state, "Run {run} of {workflow} {state}");
        }
    }
}
