//! Slots: starting tasks that were granted one.
//!
//! A task that releases a slot grants it to the next in the wait queue in the same transaction. After the commit, `Release`
//! notifies that task's run; if the process dies in between, the sweep finds the grant.

use engine::{Allocator, Command};
use model::{Admission, Granted, Instant, Limit};
use store::{Transaction, Unsent};
use tracing::error;

use crate::inbox::{Halving, catching_panics};
use crate::pipeline;
use crate::publish;
use crate::{Result, Settled, Slots};

/// The most rounds that one caller does on behalf of others.
const MAX_ROUNDS: u32 = 20;

/// The most tasks that begin in one transaction.
const MAX_BATCH: usize = 200;

/// Tasks that were granted a slot, and whether more may be.
#[derive(Default)]
pub(crate) struct Granting {
    pub(crate) granted: Vec<Granted>,
    pub(crate) again: bool,
}

impl Granting {
    fn add(&mut self, more: Self) {
        self.granted.extend(more.granted);
        self.again |= more.again;
    }
}

/// Reads the rows that an allocator needs, lets it decide, and writes what it changed.
pub(crate) async fn allocate(
    transaction: &mut dyn Transaction,
    mut allocator: Allocator,
) -> Result<(Vec<Admission>, Granting)> {
    while let Some(read) = allocator.next_read() {
        let rows = transaction.read_slots(read).await?;
        allocator.add(rows);
    }
    let allocation = allocator.finish();
    transaction.save_slots(&allocation.changes).await?;
    Ok((allocation.admissions, Granting { granted: allocation.granted, again: allocation.again }))
}

/// Commits a transaction. Slots that are counted last may have become free for waiters, which are granted them.
pub(crate) async fn commit(
    mut transaction: Box<dyn Transaction>,
    mut granting: Granting,
    now: Instant,
) -> Result<(Option<Unsent>, Granting)> {
    if let Some(rows) = transaction.count_slots().await? {
        granting.add(allocate(&mut *transaction, Allocator::counted(rows, now)).await?.1);
    }
    Ok((transaction.commit().await?, granting))
}

impl Slots<'_> {
    /// Sets how many slots a limit has, and lets tasks begin for which there is room now.
    pub async fn resize(self, limit: &Limit, slots: Option<u32>) -> Result<()> {
        self.runtime.store.set_slots(limit, slots).await?;
        self.grant().await
    }

    /// Grants free slots to the tasks that wait for them.
    pub async fn grant(self) -> Result<()> {
        self.take_up(Granting { granted: Vec::new(), again: true }).await
    }

    /// Lets tasks begin that were granted their slots a while ago and have not begun. Returns how many.
    pub async fn take_up_untaken(self, before: Instant, limit: u32) -> Result<usize> {
        let granted = self.runtime.store.untaken(before, limit).await?;
        let count = granted.len();
        self.take_up(Granting { granted, again: false }).await?;
        Ok(count)
    }

    /// Lets tasks begin that were granted their slots, and grants again where rows were locked elsewhere. What remains
    /// after some rounds is left to the next task that releases a slot, or to the sweep.
    pub(crate) async fn take_up(self, Granting { mut granted, mut again }: Granting) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            if granted.is_empty() && !again {
                return Ok(());
            }
            let more = if granted.is_empty() {
                self.allocate(Allocator::grant(self.runtime.clock.now())).await?
            } else {
                let rest = granted.split_off(granted.len().min(MAX_BATCH));
                let mut more = self.release(granted).await?;
                more.granted.extend(rest);
                Granting { again: more.again || again, ..more }
            };
            (granted, again) = (more.granted, more.again);
        }
        Ok(())
    }

    /// Lets tasks begin. Slots of those that no longer want them, or cannot be settled, are given back.
    async fn release(self, granted: Vec<Granted>) -> Result<Granting> {
        let release = |granted: &Granted| {
            let (task, attempt) = (granted.key.task, granted.attempt);
            (granted.key.run, Command::Release { task, attempt })
        };
        let (mut more, mut batches) = (Granting::default(), Halving::of(granted));
        while let Some(batch) = batches.next() {
            let commands: Vec<_> = batch.iter().map(release).collect();
            match catching_panics(pipeline::write_all(self.runtime, &commands)).await {
                Ok(written) => {
                    more.add(publish::publish_messages(self.runtime, written.pending).await);
                    let settled = batch.into_iter().zip(written.settled);
                    let unwanted = settled.filter(|(_, settled)| *settled != Settled::Applied);
                    more.add(self.give_back(unwanted.map(|(granted, _)| granted).collect()).await?);
                }
                Err(error) => match batches.failed(batch, &error) {
                    None => {}
                    Some(_) if error.is_passing() => return Err(error),
                    Some(failed) => {
                        error!("A task of run {} cannot begin: {error}", failed[0].key.run);
                        more.add(self.give_back(failed).await?);
                    }
                },
            }
        }
        Ok(more)
    }

    /// Gives back the slots of tasks that no longer want them.
    async fn give_back(self, granted: Vec<Granted>) -> Result<Granting> {
        if granted.is_empty() {
            return Ok(Granting::default());
        }
        self.allocate(Allocator::give_back(granted, self.runtime.clock.now())).await
    }

    /// Allocates slots in a transaction of their own.
    async fn allocate(self, allocator: Allocator) -> Result<Granting> {
        let mut transaction = self.runtime.store.begin().await?;
        let (_, granting) = allocate(&mut *transaction, allocator).await?;
        transaction.commit().await?;
        Ok(granting)
    }
}
