//! Places: asking for them on behalf of tasks, and telling those who were granted one.

use std::collections::BTreeMap;

use engine::{Command, Scene};
use model::{Instant, Limit, RunId};
use store::{Granted, Unit};

use crate::{Result, Runtime};

/// A line whose rows others have in hand is looked at again so often, before it is left to the sweep.
const LOOKS: u32 = 5;

/// So many tasks take over their places in one transaction.
const TAKEN_AT_ONCE: usize = 200;

/// Who was granted a place, and whether more may be.
#[derive(Default)]
pub(crate) struct Granting {
    pub(crate) granted: Vec<Granted>,
    pub(crate) again: bool,
}

impl Runtime {
    /// Asks for places for all tasks of these scenes that need one, and gives back those that are not needed any more.
    pub(crate) async fn seat(&self, unit: &mut dyn Unit, scenes: Vec<&mut Scene<'_>>) -> Result<()> {
        let mut asks: Vec<_> = scenes.iter().flat_map(|scene| scene.asks()).collect();
        // Of those who come together, the most urgent is seated first.
        asks.sort_by_key(model::Ask::rank);
        let leaves: Vec<_> = scenes.iter().flat_map(|scene| scene.leaves()).collect();
        if asks.is_empty() && leaves.is_empty() {
            return Ok(());
        }
        let seats = unit.seat(&asks, &leaves, self.clock.now()).await?;
        let mut scenes: BTreeMap<RunId, &mut Scene<'_>> =
            scenes.into_iter().map(|scene| (scene.run().id, scene)).collect();
        for (ask, seat) in asks.into_iter().zip(seats) {
            if let Some(scene) = scenes.get_mut(&ask.key.run) {
                scene.seat(ask.key.task, seat);
            }
        }
        Ok(())
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

    /// Lets tasks begin that were granted their places, and looks again where somebody had to be left out.
    pub(crate) async fn take_up(&self, Granting { mut granted, mut again }: Granting) -> Result<()> {
        let mut looks = 0;
        while !granted.is_empty() || again {
            if granted.is_empty() {
                if looks == LOOKS {
                    return Ok(());
                }
                looks += 1;
                let committed = self.look_again().await?;
                (granted, again) = (committed.granted, committed.again);
                continue;
            }
            let rest = granted.split_off(granted.len().min(TAKEN_AT_ONCE));
            let release = |granted: &Granted| {
                let (task, attempt) = (granted.key.task, granted.attempt);
                (granted.key.run, Command::Release { task, attempt })
            };
            let commands: Vec<_> = granted.iter().map(release).collect();
            let (_, unsaid) = self.settle_unsaid(&commands).await?;
            let more = self.say(unsaid).await;
            granted = rest;
            granted.extend(more.granted);
            again |= more.again;
        }
        Ok(())
    }

    async fn look_again(&self) -> Result<store::Committed> {
        let mut unit = self.store.begin().await?;
        unit.grant(self.clock.now()).await?;
        Ok(unit.commit().await?)
    }
}
