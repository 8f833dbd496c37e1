//! Combining: what comes in while a transaction is under way shares the next one: commands, and runs to be started.
//!
//! Whoever brings a wish puts it into the list and waits for a turn. With a turn comes the whole list: one
//! transaction settles it, and everybody gets an answer. Under load batches grow by themselves; idle, a batch is one
//! wish that waits for nothing. Nobody runs in the background: a caller that goes away in the middle of its turn leaves
//! the others to bring their wishes again, if they were not settled yet.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::Command;
use futures::FutureExt;
use model::message::TaskDispatched;
use model::{Message, RunId};
use tokio::sync::{Semaphore, oneshot};
use tracing::warn;

use crate::counting;
use crate::publish::Unsaid;
use crate::start::Start;
use crate::{Error, Result, Runtime, Settled};

/// No transaction settles more wishes.
const LARGEST_BATCH: usize = 200;

/// So many transactions at the same time: while one waits for its commit, the next can be prepared.
const TURNS: usize = 2;

/// What is settled together with others.
#[derive(Clone)]
pub(crate) enum Wish {
    /// A command about a run.
    Settle(RunId, Command),
    /// A run that shall come into being. It does, or the wish is refused.
    Start(Arc<Start>),
}

impl Wish {
    /// The run that it is about.
    pub(crate) fn run(&self) -> RunId {
        match self {
            Self::Settle(run, _) => *run,
            Self::Start(start) => start.new_run.id,
        }
    }
}

/// The wishes that wait for a turn.
pub(crate) struct Combiner {
    waiting: Mutex<Vec<Waiting>>,
    turns: Semaphore,
}

/// What became of a wish, and the work that whoever brought it takes over.
type Fulfilled = (Settled, Option<TaskDispatched>);

/// What became of a wish, as soon as that is certain.
type Fate = Arc<Mutex<Option<Result<Fulfilled>>>>;

pub(crate) struct Waiting {
    pub(crate) wish: Wish,
    /// The queue whose work whoever waits would take over.
    pub(crate) takes: Option<String>,
    fate: Fate,
    /// Told, or dropped, once whoever had the turn is done with it.
    done: oneshot::Sender<()>,
}

impl Waiting {
    fn is_settled(&self, settled: Result<Fulfilled>) {
        *lock(&self.fate) = Some(settled);
    }

    /// Tells whoever waits. Answers the work that it would have taken over, had it not gone away.
    fn tell(self) -> Option<TaskDispatched> {
        match self.done.send(()) {
            Ok(()) => None,
            Err(()) => lock(&self.fate).take()?.ok()?.1,
        }
    }
}

impl Default for Combiner {
    fn default() -> Self {
        Self { waiting: Mutex::default(), turns: Semaphore::new(TURNS) }
    }
}

impl Combiner {
    /// Whether the wish of that fate still waits for a turn.
    fn lists(&self, fate: &Fate) -> bool {
        lock(&self.waiting).iter().any(|waiting| Arc::ptr_eq(&waiting.fate, fate))
    }

    /// The wishes of the next transaction. A run comes into being in one and is seen by others only in a later one.
    fn next_batch(&self) -> Vec<Waiting> {
        let mut waiting = lock(&self.waiting);
        let (mut runs, mut births, mut size) = (BTreeSet::new(), BTreeSet::new(), 0);
        let joins = |waiting: &Waiting| {
            let run = waiting.wish.run();
            let apart = match waiting.wish {
                Wish::Start(_) => runs.contains(&run) || !births.insert(run),
                Wish::Settle(..) => births.contains(&run),
            };
            let joins = !apart && size < LARGEST_BATCH;
            if joins {
                runs.insert(run);
                size += 1;
            }
            joins
        };
        let (batch, left) = waiting.drain(..).partition(joins);
        *waiting = left;
        batch
    }
}

impl Runtime {
    /// Settles one command, in one transaction with others that come at the same time.
    pub async fn settle(&self, run: RunId, command: Command) -> Result<Settled> {
        Ok(self.bring(Wish::Settle(run, command), None).await?.0)
    }

    /// Settles one wish, in one transaction with others that come at the same time. Whoever brings it takes over work of
    /// that queue which may begin through it, if there is any.
    pub(crate) async fn bring(&self, wish: Wish, takes: Option<String>) -> Result<Fulfilled> {
        loop {
            let (done, mut told) = oneshot::channel();
            let fate = Fate::default();
            let waiting = Waiting { wish: wish.clone(), takes: takes.clone(), fate: fate.clone(), done };
            lock(&self.combiner.waiting).push(waiting);
            let mut over = false;
            while !over && self.combiner.lists(&fate) {
                tokio::select! {
                    biased;
                    _ = &mut told => over = true,
                    turn = self.combiner.turns.acquire() => {
                        let _turn = turn.expect("turns are never closed");
                        // Others' wishes may be among them, of any tenant.
                        store::unwalled(self.take_turn()).await;
                    }
                }
            }
            if !over {
                // Whoever took our wish along may be at it still.
                let _ = told.await;
            }
            let settled = lock(&fate).take();
            if let Some(settled) = settled {
                return settled;
            }
            // Whoever had our wish went away before it was settled.
        }
    }

    /// Settles what waits. Where one wish spoils the transaction, or meets others once too often, each half is settled on
    /// its own, and so on: the others are not held up for long.
    async fn take_turn(&self) {
        let mut batches = vec![self.combiner.next_batch()];
        while let Some(mut batch) = batches.pop().filter(|batch| !batch.is_empty()) {
            match self.settle_together(&batch).await {
                Ok(()) => {}
                Err(error) if batch.len() == 1 => batch[0].is_settled(Err(error)),
                Err(error) if error.is_outage() => {
                    let why = error.to_string();
                    batch.iter().for_each(|waiting| waiting.is_settled(Err(Error::Together(why.clone()))));
                }
                Err(error) => {
                    warn!("{} wishes are settled in two halves: {error}", batch.len());
                    batches.push(batch.split_off(batch.len() / 2));
                    batches.push(batch);
                    continue;
                }
            }
            self.tell(batch).await;
        }
    }

    /// Tells everybody. What those would have taken over who have gone away is for anyone.
    async fn tell(&self, batch: Vec<Waiting>) {
        let left: Vec<Message> =
            batch.into_iter().filter_map(Waiting::tell).map(Message::TaskDispatched).collect();
        self.publish(Unsaid { announcements: left, ..Unsaid::default() }).await;
    }

    /// Settles a batch and publishes what follows. Everybody's fate is certain before anything is published.
    async fn settle_together(&self, batch: &[Waiting]) -> Result<()> {
        let wishes: Vec<Wish> = batch.iter().map(|waiting| waiting.wish.clone()).collect();
        // A defect in deciding one wish must not be the end of whoever has the turn.
        let since = std::time::Instant::now();
        let settled = AssertUnwindSafe(self.settle_wishes(&wishes)).catch_unwind().await;
        counting::settled(since);
        let (settled, mut unsaid) = settled.unwrap_or_else(|_| Err(Error::Defect))?;
        let taken = self.hand_over(batch, &mut unsaid.announcements);
        for ((waiting, settled), taken) in batch.iter().zip(settled).zip(taken) {
            waiting.is_settled(Ok((settled, taken)));
        }
        self.publish(unsaid).await;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it is held")
}

#[cfg(test)]
mod tests {
    use model::{RunId, TaskIndex, TaskKey, TenantId, VersionId};

    use super::*;

    #[test]
    fn whoever_goes_away_leaves_what_it_would_have_taken_over() {
        let work = TaskDispatched {
            key: TaskKey { run: RunId(uuid::Uuid::nil()), task: TaskIndex(1) },
            tenant: TenantId::DEFAULT,
            attempt: 1,
            version: VersionId(1),
            queue: "light".into(),
            child: None,
            give_up_at: None,
        };
        for (stays, left) in [(true, None), (false, Some(work.clone()))] {
            let (done, told) = oneshot::channel();
            let listening = stays.then_some(told);
            let wish = Wish::Settle(work.key.run, Command::Admit);
            let waiting = Waiting { wish, takes: Some("light".into()), fate: Fate::default(), done };
            waiting.is_settled(Ok((Settled::Applied, Some(work.clone()))));
            assert_eq!(waiting.tell(), left);
            drop(listening);
        }
    }
}
