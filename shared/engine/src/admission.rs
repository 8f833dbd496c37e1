//! Admission: which tasks get a slot.
//!
//! A task acquires its slots in the order of its needs. If a limit is full, or has waiters already, the task joins that
//! limit's wait queue and keeps the slots it has so far. All tasks acquire slots in the same order, so they cannot deadlock.
//! Once a waiter has all its slots it is *granted*: its run is notified, and the task claims them.
//!
//! An [`Allocator`] decides for all runs of a transaction together. It names the rows that it needs ([`SlotRead`]), and
//! the caller reads them, until it needs no more. While slots are free and nobody waits, that is one read without a lock.

mod queues;
mod trial;

use std::collections::BTreeMap;

use model::wait_queue::{LimitId, LimitRow, SlotChanges, SlotRead, SlotRows};
use model::{Admission, FairnessGroup, Granted, Instant, Limit, Needed, SlotRelease, SlotRequest};

use queues::WaitQueues;

pub use trial::Trial;

/// The maximum number of waiters of one limit that are granted slots at once; their start grants the next ones.
const MAX_GRANTED: u32 = 200;

/// The result of an admission.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Allocation {
    /// One for each request, in order.
    pub admissions: Vec<Admission>,
    /// The rows to write.
    pub changes: SlotChanges,
    /// The waiters that now have all their slots.
    pub granted: Vec<Granted>,
    /// Whether free slots are left that could be granted with more rows at hand.
    pub again: bool,
}

/// Decides which tasks get a slot, over rows that it asks for one read at a time.
#[derive(Default)]
pub struct Allocator {
    now: Instant,
    requests: Vec<SlotRequest>,
    releases: Vec<SlotRelease>,
    given_back: Vec<Granted>,
    /// Limits whose number of slots changes.
    resized: BTreeMap<Limit, Option<u32>>,
    /// The limits that requests and releases name.
    ids: BTreeMap<Limit, LimitId>,
    next: Option<SlotRead>,
    queues: WaitQueues,
    admissions: Vec<Admission>,
    counted: BTreeMap<Limit, i32>,
}

impl Allocator {
    /// Acquires slots for the requests and takes back those of the releases. Freed slots are granted to waiters.
    pub fn admit(requests: Vec<SlotRequest>, releases: Vec<SlotRelease>, now: Instant) -> Self {
        Self::admit_and_resize(requests, releases, BTreeMap::new(), now)
    }

    /// The same, after these limits have got this number of slots; none for no bound.
    pub fn admit_and_resize(
        requests: Vec<SlotRequest>,
        releases: Vec<SlotRelease>,
        resized: BTreeMap<Limit, Option<u32>>,
        now: Instant,
    ) -> Self {
        let mut allocator = Self { now, requests, releases, resized, ..Self::default() };
        if allocator.requests.is_empty() && allocator.nobody_waited() {
            allocator.count();
        } else {
            let fixed = allocator.fixed_slots();
            let initial = |limit: Limit| (limit.clone(), fixed.get(&limit).copied().or(limit.usual()));
            allocator.next = Some(SlotRead::Limits(allocator.demand().into_keys().map(initial).collect()));
        }
        allocator
    }

    /// Grants whatever slots are free to the tasks that wait for them.
    pub fn grant(now: Instant) -> Self {
        Self { now, next: Some(SlotRead::Grantable), ..Self::default() }
    }

    /// Gives back slots that were granted at these attempts and not claimed; what another attempt requested stays.
    pub fn give_back(given_back: Vec<Granted>, now: Instant) -> Self {
        let tasks = given_back.iter().map(|granted| granted.key).collect();
        Self { now, given_back, next: Some(SlotRead::Waiters(tasks)), ..Self::default() }
    }

    /// Grants slots that became free when they were counted.
    pub fn counted(rows: SlotRows, now: Instant) -> Self {
        let mut allocator = Self { now, ..Self::default() };
        allocator.queues.add(rows);
        allocator.read_first();
        allocator
    }

    /// The rows to read next; none once all is decided.
    pub fn next_read(&self) -> Option<&SlotRead> {
        self.next.as_ref()
    }

    /// Takes the rows that were read, and decides what they allow.
    pub fn add(&mut self, rows: SlotRows) {
        match self.next.take() {
            Some(SlotRead::Limits(_)) => return self.found(rows.limits),
            Some(SlotRead::Locked { .. }) => {
                self.queues.add(rows);
                return self.admit_locked();
            }
            Some(SlotRead::First { .. }) => {
                self.queues.add(rows);
                return self.queues.grant(self.now);
            }
            Some(SlotRead::Last(_)) => {
                self.queues.add(rows);
                self.queues.close_ranks();
            }
            Some(SlotRead::Waiters(_)) => {
                self.queues.add(rows);
                self.given_back.iter().for_each(|granted| self.queues.give_back(granted));
            }
            Some(SlotRead::Grantable) | None => self.queues.add(rows),
        }
        self.read_first();
    }

    /// The result, once no more rows are needed.
    pub fn finish(self) -> Allocation {
        let Self { mut queues, admissions, counted, .. } = self;
        let granted = std::mem::take(&mut queues.granted);
        let again = queues.again;
        Allocation { admissions, changes: SlotChanges { counted, ..queues.changes() }, granted, again }
    }

    /// If there is room for everybody, slots are only counted. Otherwise the limits are locked.
    fn found(&mut self, limits: BTreeMap<LimitId, LimitRow>) {
        if self.nobody_waited() && self.fits(&limits) {
            return self.count();
        }
        let waited = self.requests.iter().filter(|request| request.waited).map(|request| request.key);
        let left = self.releases.iter().filter(|release| !release.holds_slots).map(|release| release.key);
        let mut groups: Vec<FairnessGroup> = self.requests.iter().map(SlotRequest::fairness_group).collect();
        groups.sort_unstable();
        groups.dedup();
        self.next = Some(SlotRead::Locked {
            limits: limits.keys().copied().collect(),
            waiters: waited.chain(left).collect(),
            groups,
        });
        self.ids = limits.into_values().map(|row| (row.limit, row.id)).collect();
    }

    fn admit_locked(&mut self) {
        let fixed = self.fixed_slots().into_iter().map(|(limit, slots)| (limit, Some(slots)));
        for (limit, slots) in fixed.chain(std::mem::take(&mut self.resized)) {
            self.queues.resize(self.ids[&limit], slots);
        }
        let ids = &self.ids;
        let needs = |needs: &[Needed]| needs.iter().map(|need| ids[&need.limit]).collect::<Vec<_>>();
        for release in &self.releases {
            self.queues.release(release, &needs(&release.needs));
        }
        let queues = &mut self.queues;
        self.admissions =
            self.requests.iter().map(|request| queues.request(request, needs(&request.needs))).collect();
        let left = self.queues.left_turns();
        if left.is_empty() {
            self.read_first();
        } else {
            self.next = Some(SlotRead::Last(left));
        }
    }

    /// Reads the first waiters of limits that have free slots.
    fn read_first(&mut self) {
        let heads = self.queues.heads(MAX_GRANTED);
        if !heads.is_empty() {
            let (removed, locked) = (self.queues.take_removed(), self.queues.limit_ids());
            self.next = Some(SlotRead::First { removed, heads, locked });
        }
    }

    fn count(&mut self) {
        self.counted = self.demand();
        self.admissions = vec![Admission::Acquired; self.requests.len()];
    }

    /// Whether no task here can have a row in a wait queue, and no limit grants slots to others.
    fn nobody_waited(&self) -> bool {
        self.resized.is_empty()
            && self.releases.iter().all(|release| release.holds_slots)
            && self.requests.iter().all(|request| !request.waited)
    }

    /// By how many slots each limit would change.
    fn demand(&self) -> BTreeMap<Limit, i32> {
        let mut demand: BTreeMap<Limit, i32> = self.resized.keys().map(|limit| (limit.clone(), 0)).collect();
        let requested = self.requests.iter().flat_map(|request| &request.needs).map(|need| (need, 1));
        let released = self.releases.iter().flat_map(|release| &release.needs).map(|need| (need, -1));
        for (need, by) in requested.chain(released) {
            *demand.entry(need.limit.clone()).or_default() += by;
        }
        demand
    }

    /// The slots of limits whose number the requesting tasks' definitions fix.
    fn fixed_slots(&self) -> BTreeMap<Limit, u32> {
        let needs = self.requests.iter().flat_map(|request| &request.needs);
        needs.filter_map(|need| Some((need.limit.clone(), need.slots?))).collect()
    }

    /// Whether everybody gets a slot, going by rows that are not locked: only of limits that may be exceeded for a moment.
    fn fits(&self, limits: &BTreeMap<LimitId, LimitRow>) -> bool {
        let demand = self.demand();
        self.fixed_slots().is_empty()
            && limits.values().all(|row| {
                let by = demand.get(&row.limit).copied().unwrap_or_default();
                let enough =
                    row.slots.is_none_or(|slots| i64::from(row.used) + i64::from(by) <= i64::from(slots));
                row.waiting == 0 && enough && (row.limit.is_soft() || row.slots.is_none())
            })
    }
}
