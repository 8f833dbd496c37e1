//! Circuit breakers: counting the ends of attempts, ending pauses, and what people and workers change.
//!
//! The engine decides. Here its decisions meet the rows: breakers are locked after runs and before limits, and the slots of a
//! task's breaker change in the transaction in which the breaker does.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use engine::Allocator;
use engine::breaker::{self, AttemptEnd};
use model::message::TimerArmed;
use model::{Breaker, BreakerKey, BreakerKind, BreakerRead, Instant, Limit, Message, Opening, TenantId};
use store::Transaction;
use tracing::{info, warn};

use crate::slots;
use crate::{Breakers, Result};

/// A pause that ends sooner is announced, since the sweep's next tick, or the next wake-up, may come too late for it.
const ANNOUNCED_AHEAD: TimeDelta = TimeDelta::seconds(120);

/// The changes to breakers in a transaction.
#[derive(Default)]
pub(crate) struct Changed {
    /// The slots that the limits of tasks have from now on.
    pub(crate) resized: BTreeMap<Limit, Option<u32>>,
    moves: Vec<Move>,
}

/// A breaker that opened, closed or lets a probe through.
struct Move {
    breaker: Breaker,
    before: Option<Opening>,
}

impl Changed {
    /// Logs what was committed. Returns messages to publish: the sweep must end a short pause in time.
    pub(crate) fn committed(&self, now: Instant) -> impl Iterator<Item = Message> {
        self.moves.iter().for_each(|moved| log(&moved.breaker, moved.before));
        let is_soon = move |until: &Instant| *until < now + ANNOUNCED_AHEAD;
        let paused = self.moves.iter().filter(|moved| moved.breaker.key.kind == BreakerKind::Task);
        let until = paused.filter_map(|moved| moved.breaker.open.filter(|open| !open.probing));
        let wake_at = until.map(|open| open.until).filter(is_soon).min();
        wake_at.map(|wake_at| Message::TimerArmed(TimerArmed { wake_at })).into_iter()
    }
}

/// Counts the ends of attempts for the breakers of their tasks. Without such tasks, nothing is read.
pub(crate) async fn count(
    transaction: &mut dyn Transaction,
    ends: &[AttemptEnd],
    now: Instant,
) -> Result<Changed> {
    if ends.is_empty() {
        return Ok(Changed::default());
    }
    let mut happened: BTreeMap<BreakerKey, bool> = BTreeMap::new();
    for end in ends {
        *happened.entry(end.key.clone()).or_default() |= end.failure.is_some();
    }
    let record = |breaker: &mut Breaker| {
        let key = breaker.key.clone();
        let own = ends.iter().filter(|end| end.key == key);
        own.for_each(|end| breaker::record(breaker, end, now));
    };
    change(transaction, &BreakerRead::Happened(happened.into_iter().collect()), record).await
}

/// Locks breakers, changes them, and writes those that changed.
async fn change(
    transaction: &mut dyn Transaction,
    read: &BreakerRead,
    mut decide: impl FnMut(&mut Breaker),
) -> Result<Changed> {
    let (mut changed, mut written) = (Changed::default(), Vec::new());
    for before in transaction.lock_breakers(read).await? {
        let mut breaker = before.clone();
        decide(&mut breaker);
        // One that was created for nothing goes again.
        if breaker == before && !breaker.is_idle() {
            continue;
        }
        if breaker.open != before.open {
            let limit = breaker.key.limit();
            changed.resized.extend(limit.map(|limit| (limit, breaker::slots(&breaker))));
            changed.moves.push(Move { breaker: breaker.clone(), before: before.open });
        }
        written.push(breaker);
    }
    if !written.is_empty() {
        transaction.save_breakers(&written).await?;
    }
    Ok(changed)
}

impl<'r> crate::Slots<'r> {
    /// Circuit breakers of tasks and hosts. That of a task takes slots away.
    pub fn breakers(self) -> Breakers<'r> {
        Breakers { runtime: self.runtime }
    }
}

impl Breakers<'_> {
    /// Lets a probe through each breaker whose pause is over. Returns how many there were.
    pub async fn end_pauses(self, now: Instant, limit: u32) -> Result<usize> {
        let mut ended = 0;
        let end = |breaker: &mut Breaker| {
            breaker::end_pause(breaker, now);
            ended += 1;
        };
        self.settle(&BreakerRead::Due { now, limit }, end).await?;
        Ok(ended)
    }

    /// Closes a breaker of a tenant, and lets the tasks begin that wait for it. Returns it as it was, if it exists.
    pub async fn reset(self, tenant: TenantId, id: i64) -> Result<Option<Breaker>> {
        let mut found = None;
        let close = |breaker: &mut Breaker| {
            found = Some(breaker.clone());
            breaker::close(breaker);
        };
        self.settle(&BreakerRead::Id(tenant, id), close).await?;
        Ok(found)
    }

    /// Those of these breakers that remember a failure.
    pub async fn read(self, keys: &[BreakerKey]) -> Result<Vec<Breaker>> {
        Ok(self.runtime.store.breakers(keys).await?)
    }

    /// Opens the breaker of a host after its calls failed repeatedly. Returns since and until when it is open.
    pub async fn open_host(self, key: &BreakerKey, message: &str) -> Result<Opening> {
        let (now, mut open) = (self.runtime.clock.now(), None);
        let read = BreakerRead::Happened(vec![(key.clone(), true)]);
        self.settle(&read, |breaker| open = Some(breaker::open_host(breaker, message, now))).await?;
        Ok(open.expect("a breaker that fails is created"))
    }

    /// Takes the probe of a host, unless it is not the caller's turn: then it returns since and until when the breaker is open. A
    /// breaker that is closed needs no probe.
    pub async fn take_probe(self, key: &BreakerKey) -> Result<std::result::Result<(), Opening>> {
        let (now, mut taken) = (self.runtime.clock.now(), Ok(()));
        let take = |breaker: &mut Breaker| {
            if let Some(open) = &mut breaker.open {
                taken = breaker::take_probe(open, now);
            }
        };
        self.settle(&BreakerRead::Happened(vec![(key.clone(), false)]), take).await?;
        Ok(taken)
    }

    /// Blocks the calls to a host again after a probe, or lets them through. Returns since and until when the breaker is open.
    /// To report the same failed probe again changes nothing.
    pub async fn end_probe(self, key: &BreakerKey, failed: bool) -> Result<Option<Opening>> {
        let (now, mut open) = (self.runtime.clock.now(), None);
        let end = |breaker: &mut Breaker| match &mut breaker.open {
            Some(probed) if failed => {
                // While it is paused, no probe is under way.
                if probed.probing || probed.until <= now {
                    breaker::fail_probe(probed, now);
                }
                open = Some(*probed);
            }
            _ => breaker::close(breaker),
        };
        self.settle(&BreakerRead::Happened(vec![(key.clone(), false)]), end).await?;
        Ok(open)
    }

    /// Changes breakers in a transaction of their own, and lets tasks begin for which there is room now.
    async fn settle(self, read: &BreakerRead, decide: impl FnMut(&mut Breaker)) -> Result<()> {
        let mut transaction = self.runtime.store.begin().await?;
        let changed = change(&mut *transaction, read, decide).await?;
        let now = self.runtime.clock.now();
        let resizing = Allocator::admit_and_resize(Vec::new(), Vec::new(), changed.resized.clone(), now);
        let (_, granting) = slots::allocate(&mut *transaction, resizing).await?;
        transaction.commit().await?;
        for message in changed.committed(now) {
            if let Message::TimerArmed(armed) = message {
                self.runtime.wake_sweep(armed.wake_at).await;
            }
        }
        self.runtime.slots().take_up(granting).await
    }
}

/// Logs that a breaker opened or closed. Alerts count the first of these lines.
pub fn log(breaker: &Breaker, before: Option<Opening>) {
    let BreakerKey { tenant, kind, name } = &breaker.key;
    let (tenant, kind) = (tenant.0, kind.name());
    match breaker.open {
        Some(open) if breaker::has_opened(before, breaker.open) => warn!(
            event = "breaker_opened",
            tenant, "Opened the breaker of {kind} {name} until {}: {}", open.until, breaker.message
        ),
        None if before.is_some() => info!(tenant, "Closed the breaker of {kind} {name}"),
        _ => {}
    }
}
