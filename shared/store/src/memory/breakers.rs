//! Circuit breakers in memory.

use async_trait::async_trait;
use model::{Breaker, BreakerGate, BreakerKey, BreakerKind, BreakerRead, Instant, Limit};

use super::Memory;
use super::transaction::MemoryTransaction;
use crate::{Breakers, Result, TransactionBreakers, normal};

/// The table of breakers. It is small: a transaction that changes it writes it whole.
#[derive(Clone, Default)]
pub(super) struct BreakerTable {
    /// In the order of their ids.
    rows: Vec<Breaker>,
    last_id: i64,
}

impl BreakerTable {
    fn find(&self, key: &BreakerKey) -> Option<&Breaker> {
        self.rows.iter().find(|row| row.key == normal_key(key))
    }

    /// The rows that a transaction asks for, in the order of their ids.
    fn lock(&mut self, read: &BreakerRead) -> Vec<Breaker> {
        let mut found: Vec<Breaker> = match read {
            BreakerRead::Happened(happened) => {
                happened.iter().filter_map(|(key, failed)| self.find_or_create(key, *failed)).collect()
            }
            BreakerRead::Due { now, limit } => {
                let due = self.rows.iter().filter(|row| paused_until(row).is_some_and(|until| until <= *now));
                due.take(*limit as usize).cloned().collect()
            }
            BreakerRead::Id(tenant, id) => {
                self.rows.iter().filter(|row| row.id == *id && row.key.tenant == *tenant).cloned().collect()
            }
        };
        found.sort_by_key(|row| row.id);
        found
    }

    fn find_or_create(&mut self, key: &BreakerKey, failed: bool) -> Option<Breaker> {
        match self.find(key) {
            Some(row) => Some(row.clone()).filter(|row| failed || row.open.is_some()),
            None if !failed => None,
            None => {
                self.last_id += 1;
                self.rows.push(Breaker::closed(self.last_id, normal_key(key)));
                self.rows.last().cloned()
            }
        }
    }

    fn save(&mut self, breakers: &[Breaker]) {
        for breaker in breakers {
            let written = Breaker { message: normal::text(&breaker.message).into_owned(), ..breaker.clone() };
            self.rows.iter_mut().filter(|row| row.id == breaker.id).for_each(|row| *row = written.clone());
        }
        self.rows.retain(|row| !row.is_idle());
    }

    /// Deletes the first rows that nobody needs any more. Returns how many.
    pub(super) fn forget(&mut self, before: Instant, limit: usize) -> u64 {
        let is_old = |row: &&Breaker| {
            let is_past = match row.open {
                None => true,
                Some(open) => row.key.kind == BreakerKind::Host && open.until <= before,
            };
            is_past && row.failed_at.iter().all(|at| *at <= before)
        };
        let old: Vec<i64> = self.rows.iter().filter(is_old).take(limit).map(|row| row.id).collect();
        self.rows.retain(|row| !old.contains(&row.id));
        old.len() as u64
    }
}

/// When the first pause ends.
pub(super) fn first_due(table: &BreakerTable) -> Option<Instant> {
    table.rows.iter().filter_map(paused_until).min()
}

/// When the pause of the breaker ends that takes the slots of a limit away.
pub(super) fn pause_end(table: &BreakerTable, limit: &Limit) -> Option<Instant> {
    let same = |row: &&Breaker| row.key.limit().as_ref() == Some(limit);
    table.rows.iter().find(same).and_then(paused_until)
}

/// How many breakers let nothing through.
pub(super) fn open(table: &BreakerTable) -> u32 {
    table.rows.iter().filter(|row| paused_until(row).is_some()).count() as u32
}

fn paused_until(breaker: &Breaker) -> Option<Instant> {
    breaker.open.filter(|open| !open.probing).map(|open| open.until)
}

fn normal_key(key: &BreakerKey) -> BreakerKey {
    BreakerKey { name: normal::text(&key.name).into_owned(), ..key.clone() }
}

#[async_trait]
impl Breakers for Memory {
    async fn breakers(&self, keys: &[BreakerKey]) -> Result<Vec<Breaker>> {
        let tables = self.shared.tables();
        let mut found: Vec<Breaker> =
            keys.iter().filter_map(|key| tables.breakers.find(key)).cloned().collect();
        found.sort_by_key(|row| row.id);
        Ok(found)
    }
}

#[async_trait]
impl TransactionBreakers for MemoryTransaction {
    async fn lock_breakers(&mut self, read: &BreakerRead) -> Result<Vec<Breaker>> {
        let tables = self.shared.tables();
        Ok(self.draft.breakers.get_or_insert_with(|| tables.breakers.clone()).lock(read))
    }

    async fn breaker_gates(&mut self, keys: &[BreakerKey]) -> Result<Vec<BreakerGate>> {
        let tables = self.shared.tables();
        let gate = |key: &BreakerKey| {
            let row = tables.breakers.find(key)?;
            let used = key.limit().map_or(0, |limit| tables.slots.used(&limit));
            Some(BreakerGate { key: row.key.clone(), probing: row.open?.probing, used })
        };
        Ok(keys.iter().filter_map(gate).collect())
    }

    async fn save_breakers(&mut self, breakers: &[Breaker]) -> Result<()> {
        let tables = self.shared.tables();
        self.draft.breakers.get_or_insert_with(|| tables.breakers.clone()).save(breakers);
        Ok(())
    }
}
