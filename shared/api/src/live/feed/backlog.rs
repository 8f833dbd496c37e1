//! What was read for listeners and not sent to all of them yet. It is kept here alone, so that a listener that does not read keeps
//! nothing: if there is too much, the oldest is dropped, and those that have not sent it are sent a gap.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::TenantId;

use super::Batch;

/// The maximum size of the backlog for the listeners of a tenant, and of all tenants, in bytes.
const MAX_KEPT_OF_A_TENANT: usize = 8 * 1024 * 1024;
const MAX_KEPT: usize = 64 * 1024 * 1024;

/// The batches that are kept for the listeners of an instance.
pub(super) struct Backlog {
    state: Mutex<State>,
    max: usize,
    max_of_a_tenant: usize,
}

#[derive(Default)]
struct State {
    tenants: BTreeMap<TenantId, Tenant>,
    bytes: usize,
    /// The number of the latest batch.
    latest: u64,
}

#[derive(Default)]
struct Tenant {
    batches: BTreeMap<u64, Kept>,
    bytes: usize,
    listeners: usize,
    /// The number of the last batch for all that was dropped before all had sent it.
    dropped: u64,
}

struct Kept {
    batch: Arc<Batch>,
    bytes: usize,
    /// How many listeners have not sent it; none for what a single one has missed.
    waiting: Option<usize>,
}

/// A listener's position in the backlog of its tenant.
pub(in crate::live) struct Position {
    backlog: Arc<Backlog>,
    tenant: TenantId,
    /// The batch that it has missed, which comes before the others.
    missed: Option<u64>,
    /// The last of the others that it has sent.
    sent: u64,
}

/// The next item that a listener sends.
pub(in crate::live) enum Next {
    Nothing,
    /// A batch, by its number.
    Batch(u64, Arc<Batch>),
    /// It was too slow: something was dropped before it was sent.
    Dropped,
}

impl Default for Backlog {
    fn default() -> Self {
        Self::new(MAX_KEPT, MAX_KEPT_OF_A_TENANT)
    }
}

impl Backlog {
    pub(super) fn new(max: usize, max_of_a_tenant: usize) -> Self {
        Self { state: Mutex::default(), max, max_of_a_tenant }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A position after everything that there is now.
    pub(super) fn join(self: &Arc<Self>, tenant: TenantId) -> Position {
        let mut state = self.lock();
        state.tenants.entry(tenant).or_default().listeners += 1;
        Position { backlog: self.clone(), tenant, missed: None, sent: state.latest }
    }

    /// Keeps a batch for all listeners of a tenant.
    pub(super) fn push(&self, tenant: TenantId, batch: Batch) {
        let mut state = self.lock();
        let waiting = state.tenants.get(&tenant).map_or(0, |tenant| tenant.listeners);
        if waiting > 0 {
            self.keep(&mut state, tenant, batch, Some(waiting));
        }
    }

    /// Keeps a batch, and drops the oldest ones for which there is no room: those of the tenant first, then those of the tenant
    /// that has most. Returns its number.
    fn keep(&self, state: &mut State, tenant: TenantId, batch: Batch, waiting: Option<usize>) -> u64 {
        state.latest += 1;
        let (number, bytes) = (state.latest, batch.bytes());
        let of_tenant = state.tenants.entry(tenant).or_default();
        of_tenant.batches.insert(number, Kept { batch: Arc::new(batch), bytes, waiting });
        of_tenant.bytes += bytes;
        state.bytes += bytes;
        while state.tenants.get(&tenant).is_some_and(|tenant| tenant.bytes > self.max_of_a_tenant) {
            state.drop_oldest(tenant);
        }
        while state.bytes > self.max {
            let most = state.tenants.iter().max_by_key(|(_, tenant)| tenant.bytes);
            let Some(most) = most.map(|(tenant, _)| *tenant) else { break };
            state.drop_oldest(most);
        }
        number
    }
}

impl State {
    fn drop_oldest(&mut self, tenant: TenantId) {
        let Some(of_tenant) = self.tenants.get_mut(&tenant) else { return };
        let Some((number, kept)) = of_tenant.batches.pop_first() else { return };
        of_tenant.bytes -= kept.bytes;
        self.bytes -= kept.bytes;
        if kept.waiting.is_some() {
            of_tenant.dropped = number;
        }
    }

    /// A listener needs a batch no more.
    fn leave(&mut self, tenant: TenantId, number: u64) {
        let Some(of_tenant) = self.tenants.get_mut(&tenant) else { return };
        let Some(kept) = of_tenant.batches.get_mut(&number) else { return };
        let waiting = kept.waiting.unwrap_or(1).saturating_sub(1);
        kept.waiting = kept.waiting.map(|_| waiting);
        if waiting == 0 {
            let bytes = kept.bytes;
            of_tenant.batches.remove(&number);
            of_tenant.bytes -= bytes;
            self.bytes -= bytes;
        }
    }

    /// The batches for all listeners of a tenant that come after a number.
    fn after(&self, tenant: TenantId, number: u64) -> impl Iterator<Item = (u64, &Kept)> {
        let batches = self.tenants.get(&tenant).map(|tenant| &tenant.batches);
        let later =
            batches.into_iter().flat_map(move |all| all.range((Bound::Excluded(number), Bound::Unbounded)));
        later.map(|(number, kept)| (*number, kept)).filter(|(_, kept)| kept.waiting.is_some())
    }
}

impl Position {
    /// Sends this batch before all others.
    pub(in crate::live) fn send_first(&mut self, missed: Batch) {
        let number = self.backlog.keep(&mut self.backlog.lock(), self.tenant, missed, None);
        self.missed = Some(number);
    }

    /// Returns the next item until it is passed.
    pub(in crate::live) fn next(&self) -> Next {
        let state = self.backlog.lock();
        let Some(tenant) = state.tenants.get(&self.tenant) else { return Next::Nothing };
        if let Some(missed) = self.missed {
            let kept = tenant.batches.get(&missed);
            return kept.map_or(Next::Dropped, |kept| Next::Batch(missed, kept.batch.clone()));
        }
        if self.sent < tenant.dropped {
            return Next::Dropped;
        }
        let next = state.after(self.tenant, self.sent).next();
        next.map_or(Next::Nothing, |(number, kept)| Next::Batch(number, kept.batch.clone()))
    }

    /// Goes on to what comes after a batch that was sent.
    pub(in crate::live) fn pass(&mut self, number: u64) {
        if self.missed.take().is_none() {
            self.sent = number;
        }
        self.backlog.lock().leave(self.tenant, number);
    }

    /// Goes on to what comes after that which was dropped.
    pub(in crate::live) fn pass_dropped(&mut self) {
        if self.missed.take().is_none() {
            let state = self.backlog.lock();
            self.sent = state.tenants.get(&self.tenant).map_or(self.sent, |tenant| tenant.dropped);
        }
    }

    /// Whether what comes next is what the listener has missed.
    pub(in crate::live) fn is_missed(&self) -> bool {
        self.missed.is_some()
    }
}

impl Drop for Position {
    fn drop(&mut self) {
        let mut state = self.backlog.lock();
        let unsent: Vec<u64> = state.after(self.tenant, self.sent).map(|(number, _)| number).collect();
        for number in unsent.into_iter().chain(self.missed) {
            state.leave(self.tenant, number);
        }
        if let Some(tenant) = state.tenants.get_mut(&self.tenant) {
            tenant.listeners -= 1;
            if tenant.listeners == 0 {
                state.tenants.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::RunId;
    use read::FeedCursor;
    use uuid::Uuid;

    use super::super::Notice;
    use super::*;

    const HERE: TenantId = TenantId(1);
    const ELSEWHERE: TenantId = TenantId(2);

    fn batch(bytes: usize) -> Batch {
        let (workflow, run, json) = (String::new(), RunId(Uuid::nil()), "x".repeat(bytes));
        let notices = vec![Notice { workflow, run, seq: Some(0), json }];
        Batch { notices, cursor: FeedCursor("1:1:".into()), complete: true }
    }

    /// The sizes of the batches that a listener sends until there is nothing, 0 for a gap.
    fn sends(position: &mut Position) -> Vec<usize> {
        let mut sizes = Vec::new();
        loop {
            match position.next() {
                Next::Nothing => return sizes,
                Next::Dropped => {
                    sizes.push(0);
                    position.pass_dropped();
                }
                Next::Batch(number, batch) => {
                    sizes.push(batch.notices[0].json.len());
                    position.pass(number);
                }
            }
        }
    }

    fn kept(backlog: &Backlog) -> usize {
        let state = backlog.lock();
        assert_eq!(state.bytes, state.tenants.values().map(|tenant| tenant.bytes).sum::<usize>());
        state.tenants.values().map(|tenant| tenant.batches.len()).sum()
    }

    #[test]
    fn a_slow_listener_is_sent_a_gap_and_the_others_everything() {
        let backlog = Arc::new(Backlog::new(15_000, 10_000));
        let (mut slow, mut fast, mut foreign) =
            (backlog.join(HERE), backlog.join(HERE), backlog.join(ELSEWHERE));
        for size in 4_001..4_010 {
            backlog.push(HERE, batch(size));
            assert_eq!(sends(&mut fast), [size], "what it has sent makes room for it");
            backlog.push(ELSEWHERE, batch(6_000));
            assert_eq!(sends(&mut foreign), [6_000], "another tenant is not affected");
            assert!(backlog.lock().bytes <= 15_000);
        }
        assert_eq!(kept(&backlog), 2, "only what the slow one has not sent");
        assert_eq!(sends(&mut slow), [0, 4_008, 4_009]);
        assert_eq!(kept(&backlog), 0);
        backlog.push(HERE, batch(5));
        assert_eq!((sends(&mut slow), sends(&mut fast)), (vec![5], vec![5]), "it goes on");
    }

    #[test]
    fn the_tenant_that_keeps_most_makes_room() {
        let backlog = Arc::new(Backlog::new(10_000, 9_000));
        let (mut slow, mut foreign) = (backlog.join(HERE), backlog.join(ELSEWHERE));
        for size in [4_001, 4_002] {
            backlog.push(HERE, batch(size));
        }
        backlog.push(ELSEWHERE, batch(3_000));
        assert_eq!((sends(&mut slow), sends(&mut foreign)), (vec![0, 4_002], vec![3_000]));
    }

    #[test]
    fn what_a_listener_has_missed_comes_first_and_is_limited_too() {
        let backlog = Arc::new(Backlog::new(10_000, 10_000));
        let mut late: Vec<Position> = (0..4).map(|_| backlog.join(HERE)).collect();
        for position in &mut late {
            position.send_first(batch(4_000));
            assert!(position.is_missed());
        }
        backlog.push(HERE, batch(100));
        let sent: Vec<Vec<usize>> = late.iter_mut().map(sends).collect();
        assert_eq!(sent, [vec![0, 100], vec![0, 100], vec![4_000, 100], vec![4_000, 100]]);
    }

    #[test]
    fn what_is_dropped_while_a_listener_sends_it_is_a_gap() {
        let backlog = Arc::new(Backlog::new(1_000, 1_000));
        let mut slow = backlog.join(HERE);
        backlog.push(HERE, batch(700));
        let Next::Batch(number, _) = slow.next() else { panic!("there is one") };
        backlog.push(HERE, batch(701));
        assert!(matches!(slow.next(), Next::Dropped), "in the middle of it");
        backlog.push(HERE, batch(702));
        slow.pass(number);
        assert_eq!(sends(&mut slow), [0, 702], "it does not skip what it has not seen");
    }

    #[test]
    fn a_listener_that_leaves_leaves_nothing_behind() {
        let backlog = Arc::new(Backlog::new(10_000, 10_000));
        let (mut one, other) = (backlog.join(HERE), backlog.join(HERE));
        one.send_first(batch(1));
        backlog.push(HERE, batch(2));
        drop(one);
        assert_eq!(kept(&backlog), 1, "the other one has not sent it");
        let mut late = backlog.join(HERE);
        assert!(sends(&mut late).is_empty(), "it begins with what comes after it");
        drop((other, late));
        backlog.push(HERE, batch(3));
        assert!(backlog.lock().tenants.is_empty());
    }
}
