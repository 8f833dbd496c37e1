//! After the commit: publishing. It never fails the caller: what is lost here, the sweep publishes again.

use chrono::TimeDelta;
use model::message::TimerArmed;
use model::{Instant, Message, TaskKind, TaskState};
use store::Unsent;
use tracing::{Instrument, info, warn};

use crate::counting;
use crate::slots::Granting;
use crate::{Result, Runtime};

/// How many times messages are published while the bus is away: for two minutes in all.
const MAX_TRIES: u32 = 26;

const MAX_PAUSE: TimeDelta = TimeDelta::seconds(5);

/// What is left to do after a commit: publish messages, which follow from the rows themselves, and those of the outbox,
/// and let tasks begin that were granted a slot.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) messages: Vec<Message>,
    pub(crate) unsent: Option<Unsent>,
    pub(crate) granting: Granting,
}

impl Runtime {
    /// Publishes outbox messages whose own process ended before it could. Returns how many.
    pub async fn relay(&self, before: Instant, limit: u32) -> Result<usize> {
        let unsent = self.store.unsent(before, limit).await?;
        let ids: Vec<i64> = unsent.iter().map(|row| row.id).collect();
        let messages: Vec<Message> = unsent.into_iter().flat_map(|row| row.messages).collect();
        if !messages.is_empty() {
            self.bus.publish(&messages).await.map_err(crate::Error::Bus)?;
            mark_sent(self, &ids).await?;
        }
        Ok(messages.len())
    }

    /// Wakes the sweep at an instant, which may be before its next tick. If the message is lost, the tick finds what is due.
    pub async fn wake_sweep(&self, due_at: Instant) {
        let armed = Message::TimerArmed(TimerArmed { wake_at: due_at });
        if let Err(error) = self.bus.publish(&[armed]).await {
            warn!("The sweep cannot be woken before its next tick: {error}");
        }
    }
}

/// Publishes what a committed transaction left to publish, and lets tasks begin that were granted slots.
pub(crate) async fn publish(runtime: &Runtime, pending: Pending) {
    let granted = publish_messages(runtime, pending).await;
    if let Err(error) = runtime.slots().take_up(granted).await {
        warn!("Tasks that were granted slots wait for the sweep: {error}");
    }
}

/// Publishes messages and marks those of the outbox as sent. Returns which tasks were granted a slot.
pub(crate) async fn publish_messages(
    runtime: &Runtime,
    Pending { mut messages, unsent, granting }: Pending,
) -> Granting {
    let ids: Vec<i64> = unsent.iter().map(|row| row.id).collect();
    messages.extend(unsent.into_iter().flat_map(|row| row.messages));
    if let Some(requested) = &runtime.wake_ups {
        requested.reduce(&mut messages, runtime.clock.now());
    }
    counting::ends(&messages);
    log_ends(&messages);
    if messages.is_empty() {
        // There is nothing to publish.
    } else if let Err(error) = runtime.bus.publish(&messages).await {
        counting::unpublished();
        warn!("{} messages are published again in a moment: {error}", messages.len());
        publish_later(runtime, messages, ids);
    } else if let Err(error) = mark_sent(runtime, &ids).await {
        warn!("{} messages will be sent again by the sweep: {error}", messages.len());
    }
    granting
}

/// Publishes messages again while the bus is away, so that work goes on soon after its return. Nobody waits for it,
/// and should this process end before, the sweep publishes them.
fn publish_later(runtime: &Runtime, messages: Vec<Message>, ids: Vec<i64>) {
    let (bus, store, clock) = (runtime.bus.clone(), runtime.store.clone(), runtime.clock.clone());
    let publish = async move {
        for tries in 0..MAX_TRIES {
            let pause = MAX_PAUSE.min(TimeDelta::seconds(1 << tries.min(8)));
            clock.wait_until(clock.now() + pause).await;
            if bus.publish(&messages).await.is_ok() {
                // Messages that are not marked are only published once more.
                let _ = store.sent(&ids).await;
                return;
            }
        }
        warn!("{} messages wait for the sweep", messages.len());
    };
    tokio::spawn(publish.in_current_span());
}

async fn mark_sent(runtime: &Runtime, ids: &[i64]) -> store::Result<()> {
    if ids.is_empty() { Ok(()) } else { runtime.store.sent(ids).await }
}

/// Failure rates are counted from these lines. A process that dies before a line leaves one out, which is negligible.
fn log_ends(messages: &[Message]) {
    for message in messages {
        match message {
            Message::RunFinished(end) => {
                let (run, state) = (end.run, end.state.name());
                let tenant = end.tenant.0;
                let workflow = &end.workflow;
                info!(event = "run_ended", %run, tenant, workflow, state, "Run {run} of {workflow} {state}");
            }
            Message::TaskFinished(end) if end.state == TaskState::Failed => {
                let (run, task, tenant) = (end.run, &end.name, end.tenant.0);
                let (workflow, kind) = (&end.workflow, end.kind.as_ref().map_or("unknown", TaskKind::name));
                info!(event = "task_failed", %run, tenant, workflow, task, kind, "Task {task} of run {run} failed");
            }
            _ => {}
        }
    }
}
