//! Combining: commands that come in while a transaction is under way share the next one.
//!
//! Whoever brings a command puts it into the list and waits for a turn. With a turn comes the whole list: one
//! transaction settles it, and everybody gets an answer. Under load batches grow by themselves; idle, a batch is one
//! command that waits for nothing. Nobody runs in the background: a caller that goes away in the middle of its turn
//! leaves the others to bring their commands again, which changes nothing twice.

use std::sync::{Mutex, MutexGuard};

use engine::Command;
use model::RunId;
use tokio::sync::{Semaphore, oneshot};

use crate::{Error, Result, Runtime, Settled};

/// No transaction settles more commands.
const LARGEST_BATCH: usize = 200;

/// So many transactions at the same time: while one waits for its commit, the next can be prepared.
const TURNS: usize = 2;

/// The commands that wait for a turn.
pub(crate) struct Combiner {
    waiting: Mutex<Vec<Waiting>>,
    turns: Semaphore,
}

struct Waiting {
    run: RunId,
    command: Command,
    answer: oneshot::Sender<Result<Settled>>,
}

impl Default for Combiner {
    fn default() -> Self {
        Self { waiting: Mutex::default(), turns: Semaphore::new(TURNS) }
    }
}

impl Combiner {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().expect("nothing panics while it is held")
    }

    fn next_batch(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let size = waiting.len().min(LARGEST_BATCH);
        waiting.drain(..size).collect()
    }
}

impl Runtime {
    /// Settles one command, in one transaction with others that come at the same time.
    pub async fn settle(&self, run: RunId, command: Command) -> Result<Settled> {
        loop {
            let (answer, mut answered) = oneshot::channel();
            self.combiner.waiting().push(Waiting { run, command: command.clone(), answer });
            let settled = loop {
                tokio::select! {
                    biased;
                    settled = &mut answered => break settled,
                    turn = self.combiner.turns.acquire() => {
                        let _turn = turn.expect("turns are never closed");
                        self.take_turn().await;
                    }
                }
            };
            // Whoever had the turn went away in the middle of it: nothing was settled, or it will be found stale.
            if let Ok(settled) = settled {
                return settled;
            }
        }
    }

    /// Settles what waits. Where one command spoils the transaction, each is settled on its own.
    async fn take_turn(&self) {
        let batch = self.combiner.next_batch();
        let commands: Vec<(RunId, Command)> =
            batch.iter().map(|waiting| (waiting.run, waiting.command.clone())).collect();
        match self.settle_all(&commands).await {
            Ok(settled) => {
                for (waiting, settled) in batch.into_iter().zip(settled) {
                    // Whoever does not listen any more has gone away.
                    let _ = waiting.answer.send(Ok(settled));
                }
            }
            Err(error) if batch.len() == 1 => answer(batch, error),
            Err(_) => {
                for waiting in batch {
                    let settled = self.settle_all(&[(waiting.run, waiting.command)]).await;
                    let _ = waiting.answer.send(settled.map(|settled| settled[0]));
                }
            }
        }
    }
}

fn answer(batch: Vec<Waiting>, error: Error) {
    if let Some(waiting) = batch.into_iter().next() {
        let _ = waiting.answer.send(Err(error));
    }
}
