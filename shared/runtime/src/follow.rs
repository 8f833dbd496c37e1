//! Going on without a message: whoever settled a task may carry out what follows from it.
//!
//! A task that was dispatched says by itself that it waits to be carried out, so there need not be a message about it:
//! should whoever took it over not come to it, the sweep announces it to all. Only tasks that take no time are taken over,
//! since the message about the first one is acknowledged no earlier than the last one has ended.

use std::collections::HashMap;

use engine::Command;
use model::message::TaskDispatched;
use model::{Message, RunId};
use tracing::warn;

use crate::combine::{Waiting, Wish};
use crate::{Result, Runtime, Settled};

impl Runtime {
    /// Settles one command as [`Runtime::settle`] does, and takes over work of that queue which may begin through it: a task
    /// that takes no time, of the same run. It is announced to nobody else, so whoever gets it carries it out, or
    /// announces it.
    pub async fn settle_and_go_on(
        &self,
        run: RunId,
        command: Command,
        queue: &str,
    ) -> Result<(Settled, Option<TaskDispatched>)> {
        self.bring(Wish::Settle(run, command), Some(queue.to_owned())).await
    }

    /// Announces work that was taken over to anyone who can carry it out.
    pub async fn announce(&self, work: TaskDispatched) {
        let run = work.key.run;
        if let Err(error) = self.bus.publish(&[Message::TaskDispatched(work)]).await {
            warn!("A task of run {run} waits for the sweep: {error}");
        }
    }

    /// Takes out of the announcements what those who wait take over, one task each, in their order.
    pub(crate) fn hand_over(
        &self,
        batch: &[Waiting],
        announcements: &mut Vec<Message>,
    ) -> Vec<Option<TaskDispatched>> {
        let mut taken = vec![None; batch.len()];
        let mut takers: HashMap<RunId, Vec<usize>> = HashMap::new();
        for (place, waiting) in batch.iter().enumerate().filter(|(_, waiting)| waiting.takes.is_some()) {
            takers.entry(waiting.wish.run()).or_default().push(place);
        }
        let mut hand_over = |message| {
            let Message::TaskDispatched(work) = message else { return Some(message) };
            let of_queue = |place: &usize| batch[*place].takes.as_ref() == Some(&work.queue);
            let places = takers.get_mut(&work.key.run).filter(|_| self.takes_no_time(&work));
            match places.and_then(|places| Some(places.remove(places.iter().position(of_queue)?))) {
                Some(place) => taken[place] = Some(work),
                None => return Some(Message::TaskDispatched(work)),
            }
            None
        };
        *announcements = announcements.drain(..).filter_map(&mut hand_over).collect();
        taken
    }

    fn takes_no_time(&self, work: &TaskDispatched) -> bool {
        let graph = self.graphs.get(work.version).filter(|graph| graph.has(work.key.task, work.child));
        graph.is_some_and(|graph| graph.spec_at(work.key.task, work.child).kind.is_inline())
    }
}
