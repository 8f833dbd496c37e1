//! The simulator finds what it is for: each of these bugs is planted on purpose, and found.

use crate::bugs::Bug;
use crate::seeds;

/// No bug may hide for longer.
const SEEDS: u64 = 200;

/// With the bug, some invariant fails within the seeds; the first that does is one of those it can break.
fn is_found(bug: Bug, by: &[&str]) {
    let violation = (0..SEEDS).find_map(|seed| seeds::play(seed, seeds::rates(seed), Some(bug)).err());
    let violation = violation.unwrap_or_else(|| panic!("{bug:?} was not found in {SEEDS} worlds"));
    assert!(by.contains(&violation.invariant), "{bug:?} was found by {violation}");
}

#[test]
fn a_missing_fence_is_found() {
    let by = [
        "the_rows_follow_from_the_events",
        "the_counters_equal_the_tasks",
        "no_success_is_undone",
        "no_attempt_is_released_twice",
        "parents_are_counted_once",
        "no_handler_breaks_down",
        "no_final_run_changes",
        "what_is_not_idempotent_begins_once",
        "offers_equal_the_dispatched_tasks",
    ];
    is_found(Bug::MissingFence, &by);
}

#[test]
fn a_message_published_before_its_commit_is_found() {
    is_found(Bug::PublishBeforeCommit, &["every_message_is_true"]);
}

#[test]
fn a_lost_outbox_row_is_found() {
    is_found(Bug::LostOutboxRow, &["every_end_was_published"]);
}

#[test]
fn a_timer_that_fires_twice_is_found() {
    is_found(Bug::TimerFiredTwice, &["each_timer_fires_once"]);
}

#[test]
fn a_timer_that_fires_for_another_attempt_is_found() {
    is_found(Bug::UnfencedTimer, &["no_timer_is_early", "each_timer_fires_once"]);
}

#[test]
fn a_join_that_counts_a_parent_twice_is_found() {
    is_found(Bug::DoubleRelease, &["parents_are_counted_once", "nothing_begins_before_its_parents"]);
}

#[test]
fn a_slot_that_is_not_given_back_is_found() {
    is_found(Bug::KeptSlot, &["places_equal_the_tasks"]);
}

#[test]
fn a_tenant_that_takes_more_than_its_turns_is_found() {
    is_found(Bug::GreedyTenant, &["nobody_waits_for_more_than_a_round"]);
}

#[test]
fn a_second_beginning_of_what_is_not_idempotent_is_found() {
    is_found(Bug::ForgottenPromise, &["what_is_not_idempotent_begins_once"]);
}

#[test]
fn an_offer_that_is_not_withdrawn_is_found() {
    is_found(Bug::KeptOffer, &["offers_equal_the_dispatched_tasks"]);
}

#[test]
fn a_report_that_counts_after_another_worker_started_the_next_attempt_is_found() {
    is_found(Bug::UncheckedReport, &["no_late_report_counts"]);
}

#[test]
fn a_repeated_report_that_is_refused_is_found() {
    is_found(Bug::RefusedRepeat, &["a_repeated_report_is_accepted"]);
}

#[test]
fn a_repeated_hand_back_that_is_refused_is_found() {
    is_found(Bug::RefusedHandBack, &["a_repeated_report_is_accepted"]);
}

#[test]
fn a_repeated_checkpoint_that_is_refused_is_found() {
    is_found(Bug::RefusedCheckpoint, &["a_repeated_report_is_accepted"]);
}

#[test]
fn a_lost_worker_that_nobody_notices_is_found() {
    is_found(Bug::UnnoticedLoss, &["every_run_ends"]);
}

#[test]
fn an_offer_that_is_leased_before_its_turn_is_found() {
    is_found(Bug::UnfairLease, &["no_offer_is_passed_over"]);
}

#[test]
fn a_failing_seed_shrinks_and_what_is_left_fails_again_the_same_way() {
    let bug = Some(Bug::LostOutboxRow);
    let failing = |seed: u64| {
        let violation = seeds::play(seed, seeds::rates(seed), bug).err()?;
        (violation.invariant == "every_end_was_published").then_some((seed, violation))
    };
    let (seed, violation) = (0..SEEDS).find_map(failing).expect("the bug is found");
    let shrunk = seeds::shrink(seed, violation, bug);
    let (all, left) = (seeds::rates(seed).rates.len(), shrunk.rates.rates.len());
    assert!(left <= 2 && left < all, "hardly any kind of fault is needed: {:?}", shrunk.rates);
    let again = seeds::play(seed, shrunk.rates.clone(), bug).map(|_| ()).unwrap_err();
    assert_eq!(again.to_string(), shrunk.violation.to_string());
    assert!(shrunk.report(seed).contains(&format!("EBB_SEED={seed}")), "it says how to reproduce it");
}
