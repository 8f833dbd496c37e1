//! What every store promises, as one list of claims that each of them is held to.

#![expect(clippy::unwrap_used, reason = "a claim that meets an error has failed")]

mod admission;
mod backfills;
mod breakers;
mod checkpoints;
mod concurrency;
mod dead_letters;
mod definitions;
mod example;
mod fairness;
mod fan_out;
mod history;
mod inspection;
mod listing;
mod load;
mod offers;
mod operators;
mod retention;
mod schedules;
mod shares;
mod slots;
mod sweep;
mod triggers;
mod units;
mod values;
mod workers;

extern crate ebbflow_store as store;

use std::sync::Arc;

use store::{Connections, Memory, Postgres, Store};

/// The store that a claim is about.
type Subject = Arc<dyn Store>;

async fn postgres(url: &str) -> Subject {
    let connections = Connections { acquire_timeout: testkit::DEADLINE, ..Connections::at_most(5) };
    Arc::new(Postgres::open(url, None, connections).await.unwrap())
}

/// Makes each claim a test of each store. A claim that is written and not listed is dead code and denied.
macro_rules! claims {
    ($($topic:ident { $($claim:ident)* })*) => {
        mod memory {$(
            mod $topic {$(
                #[tokio::test]
                async fn $claim() {
                    crate::$topic::$claim(std::sync::Arc::new(crate::Memory::default())).await;
                }
            )*}
        )*}

        mod postgres {$(
            mod $topic {$(
                #[tokio::test]
                async fn $claim() {
                    let database = testkit::migrated(crate::Postgres::migrate).await;
                    crate::$topic::$claim(crate::postgres(&database.url).await).await;
                }
            )*}
        )*}
    };
}

claims! {
    checkpoints {
        the_last_word_of_the_latest_attempt_stands
        each_attempt_has_the_progress_that_it_reported
    }
    triggers {
        a_version_brings_its_triggers_and_takes_them_along
        a_trigger_is_found_by_its_key
        a_trigger_that_waits_for_the_same_keeps_what_it_has_seen
        an_event_is_noted_once_by_each_trigger
        of_many_who_note_an_event_at_once_one_is_the_first
        an_event_that_is_not_committed_was_never_received
        only_the_last_event_that_is_held_back_is_taken_and_once
        a_poll_is_recorded_over_the_revision_it_was_based_on
        a_trigger_that_pauses_is_not_due_until_it_goes_on
        a_trigger_is_put_off_once
        triggers_pause_and_go_on_with_their_workflow
        triggers_are_listed_by_workflow_and_name
        old_trigger_events_are_deleted
        events_of_deleted_triggers_are_deleted_too
        a_run_is_found_by_its_logical_date
    }
    units {
        a_new_run_is_there_with_all_its_rows
        a_run_of_a_taken_id_writes_nothing
        a_logical_date_is_taken_once_per_workflow
        a_run_that_has_ended_may_give_up_its_date
        a_run_of_an_unknown_version_is_refused
        locked_runs_come_once_and_in_id_order
        named_tasks_come_once_and_those_that_do_not_exist_are_left_out
        unfinished_tasks_leave_out_those_that_ended
        a_save_raises_the_revisions_it_wrote_over
        a_stale_run_is_a_conflict_and_leaves_nothing
        a_stale_task_is_a_conflict_and_leaves_nothing
        a_unit_that_met_a_conflict_cannot_be_committed
        a_dropped_unit_leaves_no_trace
        a_unit_sees_what_it_wrote_and_others_do_not
        concurrent_units_on_one_run_take_turns
        units_that_name_runs_in_opposite_order_do_not_block_each_other
        changes_of_several_runs_are_saved_together
        completing_one_of_a_thousand_parents_changes_two_tasks
        a_kept_signal_is_there_until_it_is_taken
    }
    values {
        a_run_comes_back_as_it_was_saved
        a_run_comes_back_with_its_parent_and_concurrency_group
        a_run_is_below_its_parent
        a_task_comes_back_as_it_was_saved
        only_an_attempt_begins_a_task
        an_output_comes_back_to_the_letter
        nul_characters_do_not_make_a_write_fail
        times_that_clocks_disagree_on_are_put_in_order
        a_final_state_without_a_time_is_refused
        a_worker_holds_running_tasks_only
        a_second_output_of_a_task_is_refused
        templates_are_given_facts_and_outputs
    }
    operators {
        all_tasks_come_whether_they_ended_or_not
        an_output_that_is_withdrawn_is_gone_and_can_be_delivered_again
        outputs_that_are_too_large_together_are_not_read
        children_that_were_removed_are_not_listed
        only_attempts_that_were_made_are_void
        a_finished_run_can_be_reopened
        what_a_cleared_task_delivered_serves_nobody_any_more
    }
    definitions {
        the_same_content_again_changes_nothing
        other_content_becomes_the_next_version
        registering_older_content_makes_its_version_active_again
        concurrent_registrations_are_numbered_one_by_one
        an_archived_workflow_is_in_use_again_once_it_is_registered
        a_workflow_pauses_once_and_goes_on_once
        what_is_archived_or_unknown_neither_pauses_nor_goes_on
        a_version_is_never_changed
        a_unit_reads_versions
        a_workflow_of_another_tenant_is_not_found
        a_version_is_found_by_its_number
        an_older_version_is_made_active_again_once
        a_version_that_does_not_exist_is_not_made_active
        activating_a_version_brings_an_archived_workflow_back
    }
    history {
        events_are_numbered_across_saves
        events_can_be_read_from_the_middle_of_a_save
        an_event_number_is_used_once
        attempts_are_kept_oldest_first
        the_later_word_about_an_attempt_stands
        log_lines_are_numbered_across_chunks
        the_same_chunk_again_changes_nothing
        a_log_is_cut_where_it_becomes_too_long
        logs_of_attempts_are_kept_apart
    }
    listing {
        runs_are_listed_newest_first
        runs_are_filtered_by_workflow_and_state
        runs_are_filtered_by_the_run_that_started_them
        a_run_says_of_which_version_the_task_is_that_started_it
        a_run_of_another_tenant_is_not_found
        tasks_are_listed_by_index_and_by_page_with_output_and_timer
        of_several_timers_a_task_shows_the_one_that_is_due_first
        only_the_outputs_asked_for_are_returned
    }
    sweep {
        an_empty_store_has_nothing_on_its_agenda
        the_agenda_says_when_the_first_of_each_is_due
        a_run_without_a_recheck_is_neglected_unless_it_only_waits
        what_is_due_for_a_run_can_be_put_off
        a_recheck_can_be_brought_forward_but_not_postponed
        a_timer_is_due_at_its_instant_and_not_before
        a_task_has_one_timer_of_a_kind
        a_run_has_timers_of_its_own
        timers_are_dropped_by_whose_they_are
        a_timer_without_an_owner_that_can_have_it_is_refused
        a_timer_that_is_dropped_and_set_at_once_is_set
        steps_leave_the_recheck_as_it_was
        a_finished_run_is_not_looked_at
        every_unfinished_run_can_be_looked_at_at_once
        committed_messages_are_unsent_until_they_are_marked
        marking_messages_as_sent_twice_changes_nothing
        young_messages_are_left_to_the_process_that_wrote_them
        a_unit_takes_what_is_due_and_no_more
    }
    fan_out {
        children_are_there_with_their_items
        a_run_can_be_created_with_children
        ten_thousand_children_are_created_in_one_save
        children_are_listed_apart_from_the_tasks_of_the_definition
        children_of_two_fan_outs_are_listed_apart
        a_named_child_comes_with_its_fan_out
        a_unit_sees_the_children_it_made
        only_the_items_asked_for_are_returned
        an_item_comes_back_to_the_letter
        outputs_of_children_are_read_by_child
        of_the_outputs_of_children_the_field_that_is_asked_for_is_read
        a_unit_sees_what_it_has_delivered
        a_child_is_created_once
        a_child_comes_after_its_fan_out
        a_fan_out_counts_each_child_once
    }
    shares {
        the_first_task_that_asks_executes_it_and_the_others_wait
        a_task_that_waits_says_for_whom
        the_owner_that_asks_again_still_owns_it
        other_keys_names_and_tenants_are_other_work
        keys_may_be_empty_long_or_hold_anything
        a_fresh_success_is_reused_by_tasks_that_ask_later
        a_success_without_output_is_taken_as_null
        an_old_success_is_executed_again
        what_was_executed_in_vain_is_executed_by_the_next
        a_share_ends_once
        a_wait_that_is_over_is_forgotten
        a_task_waits_for_one_owner_at_its_latest_attempt
        a_task_that_owns_or_reuses_an_execution_no_longer_waits
        a_task_that_asks_again_when_its_wait_is_over_waits_again
        a_task_that_ended_waits_for_nothing
        a_dropped_unit_shares_nothing
        a_run_may_share_before_it_is_created
        of_many_that_ask_at_once_one_carries_it_out
        a_task_that_asks_meanwhile_finds_what_was_committed
        a_task_that_asks_meanwhile_replaces_an_owner_that_gave_up
        units_that_ask_in_opposite_order_at_worst_decide_again
        shares_of_runs_that_exist_end_with_them
    }
    concurrency {
        a_concurrency_group_has_its_unfinished_runs_oldest_first
        a_concurrency_group_is_of_one_workflow_and_tenant
        the_ancestors_of_a_run_are_those_that_wait_for_it
        a_held_run_is_held_until_it_is_let_go
        only_a_run_in_a_concurrency_group_can_wait
        concurrency_keys_may_be_empty_long_or_any_text
        a_transaction_sees_its_own_runs_in_a_concurrency_group
        of_runs_that_enter_a_concurrency_group_at_once_one_finds_it_free
    }
    slots {
        slots_are_acquired_while_some_are_free_and_then_tasks_wait
        a_task_that_leaves_lets_the_next_begin
        a_grant_is_taken_over_once
        asking_again_changes_nothing
        a_task_that_leaves_the_wait_queue_is_forgotten
        a_grant_that_is_not_taken_goes_to_the_next
        what_is_given_back_goes_to_the_next_and_only_at_that_attempt
        a_dropped_transaction_takes_no_slot
        a_task_needs_a_slot_of_every_limit
        what_a_workflow_says_of_its_slots_stands
        a_limit_that_nobody_has_set_has_the_usual_slots
        raised_slots_are_granted
        one_task_behind_many_of_another_tenant_comes_in_the_next_round
        tenants_come_by_their_weights
        a_backfill_takes_turns_by_its_weight_and_lets_live_tasks_go_first
        higher_priority_comes_first_within_a_tenant
        low_priority_does_not_starve
        of_many_that_ask_at_once_no_more_are_given_than_there_are
        when_many_leave_at_once_every_waiter_gets_a_turn
        readers_see_limits_and_wait_queues
    }
    breakers {
        a_breaker_is_created_by_its_first_failure
        a_breaker_comes_back_as_it_was_saved
        what_saw_no_failure_matters_only_while_it_is_open
        a_breaker_that_remembers_nothing_is_gone
        a_breaker_that_nobody_needs_is_forgotten
        a_pause_is_on_the_agenda_until_it_ends
        a_breaker_is_found_by_its_tenant_alone
        of_many_failures_at_once_every_one_counts
        a_task_behind_a_breaker_knows_when_the_pause_ends
        a_claim_finds_the_breakers_that_are_not_closed_and_who_has_their_slots
    }
    workers {
        a_beat_names_what_the_worker_holds
        attempts_of_a_silent_worker_are_lost
        a_queue_is_served_while_a_remote_worker_of_it_lives
        remote_workers_are_not_our_own
        attempts_of_a_worker_that_never_registered_are_lost
        attempts_of_a_worker_that_left_are_lost_at_once
        a_beat_that_was_overtaken_does_not_turn_time_back
        silent_workers_are_dead_and_forgotten_after_a_day
        a_dead_worker_that_returns_is_alive_and_what_it_still_holds_was_lost
        a_lease_is_a_sign_of_life_once_in_a_while
        what_a_worker_reports_changes_nobody_elses_row
        a_worker_that_sends_a_heartbeat_again_loses_nothing_and_is_not_forgotten
        a_worker_receives_its_command_with_its_next_heartbeat_or_when_it_leaves
        of_several_orders_the_first_stands_unless_it_is_to_be_killed
        an_unknown_worker_cannot_be_given_a_command
    }
    inspection {
        an_empty_store_is_in_order
        what_is_overdue_is_found_with_its_age
        a_run_in_which_nothing_moves_is_found
        counts_that_do_not_fit_are_found_and_audited
        every_unfinished_run_is_looked_at_page_by_page
    }
    load {
        an_empty_store_carries_nothing
        what_is_unfinished_is_counted_by_state_and_tenant
        workers_are_counted_by_queue
        what_a_tenant_has_is_counted_up_to_a_bound
        a_tenant_is_known_by_its_number_and_its_name
    }
    retention {
        a_turn_is_taken_once
        runs_that_ended_long_ago_come_in_the_order_of_their_ends
        parts_are_forgotten_once_and_the_rest_stays
        a_run_tells_whether_its_outputs_are_forgotten
        a_run_is_forgotten_with_all_its_rows
        a_run_that_has_not_ended_is_not_forgotten
    }
    offers {
        an_offer_is_there_while_its_task_is_dispatched
        a_new_run_brings_its_offers
        a_later_attempt_replaces_the_offer_of_an_earlier_one
        offers_of_other_tenants_and_queues_are_not_found
        each_group_is_listed_once_and_gives_its_first_offers
        an_offer_is_reserved_once_until_the_reservation_ends
        a_reservation_can_end_early
        of_many_that_reserve_at_once_each_gets_other_offers
        new_offers_are_received_once_they_are_committed
        offers_are_forgotten_with_their_run
    }
    schedules {
        the_schedules_of_an_active_version_are_known
        other_instants_count_from_the_change_on
        the_same_instants_stay_undecided_through_a_change
        a_schedule_that_is_gone_is_forgotten
        an_older_version_brings_its_schedules_back
        a_schedule_is_saved_over_the_revision_it_was_read_at
        a_pause_outlasts_a_new_version
        schedules_come_when_they_are_due_and_by_page
        each_schedule_has_its_own_dates
    }
    backfills {
        a_backfill_is_created_once_with_its_dates
        a_backfill_is_saved_over_the_revision_it_was_read_at
        a_date_moves_on_once
        a_turn_counts_what_is_under_way
        runs_are_found_by_their_dates
        backfills_come_when_they_are_due_and_by_page
        a_cancelled_backfill_may_be_looked_at
        backfills_that_ended_long_ago_are_forgotten
    }
    dead_letters {
        dead_letters_come_newest_first
        the_same_dead_letter_again_changes_nothing
        any_message_can_be_dead_lettered
        pages_of_dead_letters_neither_repeat_nor_leave_out
        dead_letters_are_filtered_by_source_and_text
        a_dead_letter_is_there_until_it_is_thrown_away
        expired_dead_letters_are_deleted
    }
}
