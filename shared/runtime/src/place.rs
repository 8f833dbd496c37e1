//! Places: asking for them on behalf of tasks, and telling those who were granted one.

use std::collections::BTreeMap;

use engine::{Command, RunSlice};
use model::{Instant, Limit, RunId};
use store::{Granted, Transaction};
use tracing::error;

use crate::{Result, Runtime, Settled};

/// Nobody goes on for more rounds on behalf of others.
const ROUNDS: u32 = 20;

/// So many tasks take over their places in one transaction.
const TAKEN_AT_ONCE: usize = 200;

/// Who was granted a place, and whether more may be.
#[derive(Default)]
pub(crate) struct Granting {
    pub(crate) granted: Vec<Granted>,
    pub(crate) again: bool,
}

impl Runtime {
    /// Asks for places for all tasks of these slices that need one, and gives back those that are not needed any more.
    /// Answers whether there was anything to ask or give back.
    pub(crate) async fn seat(
        &self,
        unit: &mut dyn Transaction,
        slices: Vec<&mut RunSlice<'_>>,
    ) -> Result<bool> {
        let mut asks: Vec<_> = slices.iter().flat_map(|slice| slice.asks()).collect();
        // Of those who come together, the most urgent is seated first.
        asks.sort_by_key(model::Ask::rank);
        let leaves: Vec<_> = slices.iter().flat_map(|slice| slice.leaves()).collect();
        if asks.is_empty() && leaves.is_empty() {
            return Ok(false);
        }
        let seats = unit.seat(&asks, &leaves, self.clock.now()).await?;
        let mut slices: BTreeMap<RunId, &mut RunSlice<'_>> =
            slices.into_iter().map(|slice| (slice.run().id, slice)).collect();
        for (ask, seat) in asks.into_iter().zip(seats) {
            if let Some(slice) = slices.get_mut(&ask.key.run) {
                slice.seat(ask.key.task, seat);
            }
        }
        Ok(true)
    }

    /// Says how many places a limit has, and lets those begin for whom there is room now.
    pub async fn set_places(&self, limit: &Limit, places: Option<u32>) -> Result<()> {
        self.store.set_places(limit, places).await?;
        self.grant().await
    }

    /// Grants whatever places are free to whoever waits for them.
    pub async fn grant(&self) -> Result<()> {
        self.take_up(Granting { granted: Vec::new(), again: true }).await
    }

    /// Lets tasks begin that were granted their places and did not hear of it. Answers how many there were.
    pub async fn take_up_untaken(&self, before: Instant, limit: u32) -> Result<usize> {
        let granted = self.store.untaken(before, limit).await?;
        let count = granted.len();
        self.take_up(Granting { granted, again: false }).await?;
        Ok(count)
    }

    /// Lets tasks begin that were granted their places, and looks again where somebody had to be left out. What is left
    /// after some rounds is left to the next who gives a place back, or to the sweep.
    pub(crate) async fn take_up(&self, Granting { mut granted, mut again }: Granting) -> Result<()> {
        for _ in 0..ROUNDS {
            if granted.is_empty() && !again {
                return Ok(());
            }
            let more = if granted.is_empty() {
                let mut unit = self.store.begin().await?;
                unit.grant(self.clock.now()).await?;
                let committed = unit.commit().await?;
                Granting { granted: committed.granted, again: committed.again }
            } else {
                let rest = granted.split_off(granted.len().min(TAKEN_AT_ONCE));
                let mut more = self.release(&granted).await?;
                more.granted.extend(rest);
                Granting { again: more.again || again, ..more }
            };
            (granted, again) = (more.granted, more.again);
        }
        Ok(())
    }

    /// Lets tasks begin; where one spoils the transaction, each on its own. Places of those that want them no more, or
    /// cannot be settled, are given back.
    async fn release(&self, granted: &[Granted]) -> Result<Granting> {
        let release = |granted: &Granted| {
            let (task, attempt) = (granted.key.task, granted.attempt);
            (granted.key.run, Command::Release { task, attempt })
        };
        let commands: Vec<_> = granted.iter().map(release).collect();
        let (settled, unsaid) = match self.settle_unsaid(&commands).await {
            Ok(settled) => settled,
            Err(error) if error.is_passing() => return Err(error),
            Err(error) if granted.len() == 1 => {
                error!("A task of run {} cannot begin: {error}", granted[0].key.run);
                return self.give_back(granted.to_vec()).await;
            }
            Err(_) => {
                let mut all = Granting::default();
                for one in granted {
                    let more = Box::pin(self.release(std::slice::from_ref(one))).await?;
                    all.granted.extend(more.granted);
                    all.again |= more.again;
                }
                return Ok(all);
            }
        };
        let more = self.say(unsaid).await;
        let unwanted = granted.iter().zip(settled).filter(|(_, settled)| *settled != Settled::Applied);
        let unwanted: Vec<Granted> = unwanted.map(|(granted, _)| *granted).collect();
        let given_back = self.give_back(unwanted).await?;
        let granted = more.granted.into_iter().chain(given_back.granted).collect();
        Ok(Granting { granted, again: more.again || given_back.again })
    }

    /// Gives back the places of tasks that were granted some and want them no more.
    async fn give_back(&self, granted: Vec<Granted>) -> Result<Granting> {
        if granted.is_empty() {
            return Ok(Granting::default());
        }
        let mut unit = self.store.begin().await?;
        unit.give_back(&granted, self.clock.now()).await?;
        let committed = unit.commit().await?;
        Ok(Granting { granted: committed.granted, again: committed.again })
    }
}
