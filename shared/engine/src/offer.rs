//! Offers: which dispatched tasks remote workers may take, and in which order.

use std::collections::BTreeMap;

use model::slot::LIVE_WEIGHT;
use model::{BackfillId, Candidate, Offer, TaskIndex, TaskState, rank};

use crate::run_slice::RunSlice;

impl RunSlice<'_> {
    /// The leased tasks that were dispatched here, and those that are dispatched no longer. They follow from the
    /// moves alone, so no command can forget them.
    pub(crate) fn offers(&self) -> (Vec<Offer>, Vec<TaskIndex>) {
        let (mut made, mut withdrawn) = (Vec::new(), Vec::new());
        for (index, before) in self.slots.moves() {
            let state = self.tasks[&index].state;
            if !self.spec(index).leased {
                continue;
            }
            if state == TaskState::Dispatched {
                made.push(offer(self, index));
            } else if before == TaskState::Dispatched {
                withdrawn.push(index);
            }
        }
        (made, withdrawn)
    }
}

fn offer(slice: &RunSlice<'_>, index: TaskIndex) -> Offer {
    let (task, spec) = (&slice.tasks[&index], slice.spec(index));
    Offer {
        task: index,
        attempt: task.attempt,
        queue: spec.queue.clone(),
        kind: spec.kind.to_string(),
        requires: spec.requires.clone(),
        backfill: slice.run.concurrency_group.as_deref().and_then(BackfillId::of_concurrency_group),
        rank: rank(task.since, slice.run.priority + spec.priority),
    }
}

/// Puts offers in the order in which a worker takes them. Within a fairness group, the lowest rank is first. Between groups,
/// a lottery decides, whose tickets are the groups' weights: it needs no counters, which concurrent workers would have to
/// take turns at, and over many draws each group gets its share. The same draw gives the same order.
pub fn in_turn(mut candidates: Vec<Candidate>, draw: u64) -> Vec<Candidate> {
    candidates.sort_by_key(|candidate| (candidate.backfill, candidate.rank, candidate.key));
    let mut next: BTreeMap<Option<BackfillId>, f64> = BTreeMap::new();
    let mut placed: Vec<(f64, Candidate)> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let tickets = f64::from(candidate.weight.unwrap_or(LIVE_WEIGHT).max(1));
        // The first of several exponential variates belongs to each group in proportion to its rate.
        let first = || -uniform(draw, candidate.backfill).ln() / tickets;
        let place = next.entry(candidate.backfill).or_insert_with(first);
        placed.push((*place, candidate));
        *place += 1.0 / tickets;
    }
    placed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    placed.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A number in (0, 1] that looks random and depends on nothing but its arguments (SplitMix64).
fn uniform(draw: u64, group: Option<BackfillId>) -> f64 {
    let group = group.map_or(0, |backfill| backfill.0.as_u128());
    let seed = draw ^ (group as u64) ^ ((group >> 64) as u64).rotate_left(32);
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use model::{RunId, TaskKey};
    use uuid::Uuid;

    use super::*;

    fn candidate(number: u128, rank: i64, backfill: Option<(u128, u32)>) -> Candidate {
        Candidate {
            key: TaskKey { run: RunId(Uuid::from_u128(number)), task: TaskIndex(0) },
            attempt: 1,
            rank,
            backfill: backfill.map(|(id, _)| BackfillId(Uuid::from_u128(id))),
            weight: backfill.map(|(_, weight)| weight),
        }
    }

    fn numbers(candidates: Vec<Candidate>) -> Vec<u128> {
        candidates.into_iter().map(|candidate| candidate.key.run.0.as_u128()).collect()
    }

    #[test]
    fn within_a_group_the_lowest_rank_is_first() {
        let offered = vec![candidate(1, 30, None), candidate(2, 10, None), candidate(3, 20, None)];
        for draw in 0..20 {
            assert_eq!(numbers(in_turn(offered.clone(), draw)), [2, 3, 1]);
        }
    }

    #[test]
    fn a_backfill_is_first_as_often_as_its_weight_says() {
        let offered = vec![candidate(1, 10, None), candidate(2, 0, Some((7, 2)))];
        let draws = 6_000;
        let backfill = (0..draws).filter(|draw| numbers(in_turn(offered.clone(), *draw))[0] == 2).count();
        // Two tickets of twelve.
        assert!((900..1_100).contains(&backfill), "{backfill} of {draws}");
    }

    #[test]
    fn the_same_draw_gives_the_same_order() {
        let offered: Vec<Candidate> =
            (0..9).map(|number| candidate(number, 0, (number % 3 > 0).then_some((number % 3, 5)))).collect();
        for draw in 0..50 {
            assert_eq!(in_turn(offered.clone(), draw), in_turn(offered.clone(), draw));
        }
    }
}
