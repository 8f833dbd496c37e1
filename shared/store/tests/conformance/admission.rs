//! Admissions as the runtime makes them: the engine decides over the rows that a store reads.

use engine::{Allocation, Allocator};
use model::{Admission, Granted, SlotRelease, SlotRequest};
use store::{Store, Transaction};

use crate::example::at;

/// Lets the engine decide in a transaction of its own. Returns what it decided, and the waiters that were granted slots.
pub(crate) async fn allocate(store: &dyn Store, allocator: Allocator) -> (Vec<Admission>, Vec<Granted>) {
    let mut transaction = store.begin().await.unwrap();
    let mut allocation = decide(&mut *transaction, allocator).await;
    if let Some(rows) = transaction.count_slots().await.unwrap() {
        let counted = decide(&mut *transaction, Allocator::counted(rows, at(1))).await;
        allocation.granted.extend(counted.granted);
    }
    transaction.commit().await.unwrap();
    (allocation.admissions, allocation.granted)
}

pub(crate) async fn decide(transaction: &mut dyn Transaction, mut allocator: Allocator) -> Allocation {
    while let Some(read) = allocator.next_read() {
        let rows = transaction.read_slots(read).await.unwrap();
        allocator.add(rows);
    }
    let allocation = allocator.finish();
    transaction.save_slots(&allocation.changes).await.unwrap();
    allocation
}

pub(crate) async fn admit(
    store: &dyn Store,
    requests: &[SlotRequest],
    releases: &[SlotRelease],
) -> (Vec<Admission>, Vec<Granted>) {
    allocate(store, Allocator::admit(requests.to_vec(), releases.to_vec(), at(1))).await
}
