//! The audit log, and answers that are kept for a while.

use async_trait::async_trait;
use model::{Instant, TenantId};

use super::Memory;
use crate::{Deed, DeedFilter, DeedStore, Known, Receipt, ReceiptKey, ReceiptStore, Result, normal};

/// A key that was taken.
pub(super) struct ReceiptRow {
    fingerprint: String,
    taken_at: Instant,
    receipt: Option<Receipt>,
}

#[async_trait]
impl DeedStore for Memory {
    async fn note_deed(&self, deed: &Deed) -> Result<()> {
        let mut tables = self.shared.tables();
        tables.last_deed += 1;
        let number = tables.last_deed;
        tables.deeds.insert(number, normal::deed(deed));
        Ok(())
    }

    async fn deeds(&self, tenant: TenantId, filter: &DeedFilter) -> Result<Vec<(i64, Deed)>> {
        let wanted = |(number, deed): &(&i64, &Deed)| {
            deed.tenant == tenant
                && filter.after.is_none_or(|after| **number < after)
                && filter.actor.as_ref().is_none_or(|actor| *actor == deed.actor)
                && filter.action.as_ref().is_none_or(|action| *action == deed.action)
                && filter.text.as_ref().is_none_or(|text| deed.target.contains(text.as_str()))
                && filter.from.is_none_or(|from| deed.at >= from)
                && filter.to.is_none_or(|to| deed.at < to)
        };
        let tables = self.shared.tables();
        let found = tables.deeds.iter().rev().filter(wanted).take(filter.limit as usize);
        Ok(found.map(|(number, deed)| (*number, deed.clone())).collect())
    }

    async fn forget_deeds(&self, before: Instant) -> Result<u64> {
        let mut tables = self.shared.tables();
        let all = tables.deeds.len();
        tables.deeds.retain(|_, deed| deed.at >= before);
        Ok((all - tables.deeds.len()) as u64)
    }
}

#[async_trait]
impl ReceiptStore for Memory {
    async fn take_key(
        &self,
        key: &ReceiptKey,
        fingerprint: &str,
        now: Instant,
        stale: Instant,
        expired: Instant,
    ) -> Result<Known> {
        let mut tables = self.shared.tables();
        let known = tables.receipts.get(key).filter(|row| row.taken_at >= expired);
        match known {
            Some(row) if row.fingerprint != fingerprint => return Ok(Known::Other),
            Some(ReceiptRow { receipt: Some(receipt), .. }) => return Ok(Known::Answered(receipt.clone())),
            Some(row) if row.taken_at >= stale => return Ok(Known::UnderWay),
            _ => {}
        }
        let row = ReceiptRow { fingerprint: fingerprint.to_owned(), taken_at: now, receipt: None };
        tables.receipts.insert(key.clone(), row);
        Ok(Known::New)
    }

    async fn keep_receipt(&self, key: &ReceiptKey, receipt: Option<&Receipt>) -> Result<()> {
        let mut tables = self.shared.tables();
        match receipt {
            None => drop(tables.receipts.remove(key)),
            Some(receipt) => {
                if let Some(row) = tables.receipts.get_mut(key) {
                    row.receipt = Some(receipt.clone());
                }
            }
        }
        Ok(())
    }

    async fn forget_receipts(&self, before: Instant) -> Result<u64> {
        let mut tables = self.shared.tables();
        let all = tables.receipts.len();
        tables.receipts.retain(|_, row| row.taken_at >= before);
        Ok((all - tables.receipts.len()) as u64)
    }
}
