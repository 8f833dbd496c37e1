//! Running the next inline task without a message: the worker that reports a task runs what follows from it.
//!
//! The row of a dispatched task says that it waits for a worker, so it needs no message of its own: if the worker that
//! took it over ends before it gets to it, the sweep publishes it. Only inline tasks are taken over, since the message
//! about the first task is acknowledged after the last one has ended.

use std::collections::HashMap;

use engine::Command;
use model::message::TaskDispatched;
use model::{Message, RunId};
use tracing::warn;

use crate::inbox;
use crate::{Result, Runtime, Settled};

impl Runtime {
    /// Settles one command as [`Runtime::settle`] does, and takes over an inline task of the same run and of that queue
    /// which may begin through it. Its message is not published, so the caller runs it, or publishes it.
    pub async fn settle_and_go_on(
        &self,
        run: RunId,
        command: Command,
        queue: &str,
    ) -> Result<(Settled, Option<TaskDispatched>)> {
        inbox::settle_then(self, run, command, Some(queue.to_owned())).await
    }

    /// Publishes a task that was taken over, for any worker.
    pub async fn publish_work(&self, work: TaskDispatched) {
        let run = work.key.run;
        if let Err(error) = self.bus.publish(&[Message::TaskDispatched(work)]).await {
            warn!("A task of run {run} waits for the sweep: {error}");
        }
    }
}

/// Takes out of the messages what these callers take over: one inline task each, of their run and queue.
pub(crate) fn hand_over<'t>(
    runtime: &Runtime,
    takers: impl Iterator<Item = &'t (RunId, Option<String>)>,
    messages: &mut Vec<Message>,
) -> Vec<Option<TaskDispatched>> {
    let mut taken = Vec::new();
    let mut by_run: HashMap<RunId, Vec<(usize, &str)>> = HashMap::new();
    for (place, (run, queue)) in takers.enumerate() {
        taken.push(None);
        if let Some(queue) = queue {
            by_run.entry(*run).or_default().push((place, queue));
        }
    }
    if by_run.is_empty() {
        return taken;
    }
    let mut keep = |message| {
        let Message::TaskDispatched(work) = message else { return Some(message) };
        let of_run = by_run.get_mut(&work.key.run).filter(|_| is_inline(runtime, &work));
        let taker = of_run.and_then(|takers| {
            let found = takers.iter().position(|(_, queue)| *queue == work.queue)?;
            Some(takers.remove(found).0)
        });
        match taker {
            Some(place) => taken[place] = Some(work),
            None => return Some(Message::TaskDispatched(work)),
        }
        None
    };
    *messages = messages.drain(..).filter_map(&mut keep).collect();
    taken
}

fn is_inline(runtime: &Runtime, work: &TaskDispatched) -> bool {
    let graph = runtime.graphs.get(work.version).filter(|graph| graph.has(work.key.task, work.child));
    graph.is_some_and(|graph| graph.spec_at(work.key.task, work.child).kind.is_inline())
}
