/* Every case, in the order in which they run: its name, and what it needs. */
#ifndef HF_CONFORM_CASES_H
#define HF_CONFORM_CASES_H

#include <holdfast/sys/conformance.h>

#define CASES_OF_CREATE(X)                                                               \
    X(create_is_idempotent, 0)                                                           \
    X(create_is_idempotent_after_the_row_ended, 0)                                       \
    X(create_compares_the_request_as_typed_not_as_completed, 0)                          \
    X(r01_a_row_has_what_was_asked_and_the_defaults, 0)                                  \
    X(r04_creation_is_an_event, 0)                                                       \
    X(r08_one_row_per_inbound_unit, 0)                                                   \
    X(many_units_of_one_call_keep_their_own, 0)                                          \
    X(many_alike_units_are_whole_whichever_of_them_stands, 0)                            \
    X(r15_scheduler_work_needs_a_run_id, 0)                                              \
    X(a13_no_run_id_reads_as_null_and_is_unique_all_the_same, 0)                         \
    X(idempotency_key_gives_the_first_row_again, 0)                                      \
    X(t11_dedup_key_admits_one_live_row, 0)                                              \
    X(dedup_holds_inside_one_batch, 0)                                                   \
    X(source_triple_is_looked_at_before_the_dedup_key, 0)                                \
    X(tenants_share_no_keys, 0)                                                          \
    X(tenants_share_no_waiting_references, 0)                                            \
    X(t14_falsy_payloads_round_trip, 0)                                                  \
    X(payload_is_kept_as_it_was_given, 0)                                                \
    X(detached_is_born_done, 0)                                                          \
    X(externally_owned_is_born_waiting, 0)                                               \
    X(parent_and_correlation_are_kept, 0)                                                \
    X(r70_events_name_their_actor, 0)                                                    \
    X(create_answers_each_item_of_a_batch, 0)                                            \
    X(create_all_or_none_refuses_the_whole_batch, 0)                                     \
    X(r59_bad_input_names_the_field_and_writes_nothing, 0)

#define CASES_OF_TIME(X)                                                                 \
    X(time_a_skewed_caller_takes_no_lease_early_and_none_late, 0)                        \
    X(time_set_back_delays_what_is_due_and_repeats_nothing, 0)                           \
    X(time_a_machine_that_slept_requeues_each_unit_once, 0)                              \
    X(time_passes_the_end_of_32_bits_of_seconds, 0)

#define CASES_OF_SHARE(X)                                                                \
    X(limit_lets_so_many_run_and_no_more, 0)                                             \
    X(limit_gives_the_place_of_what_ended_to_the_next, 0)                                \
    X(limit_is_freed_by_every_way_out_of_running, 0)                                     \
    X(limits_of_kinds_are_for_rows_without_a_key, 0)                                     \
    X(limits_of_tenants_are_their_own, 0)                                                \
    X(a_raised_limit_lets_the_waiting_go_on, 0)                                          \
    X(a_lowered_limit_ends_nothing_and_lets_nobody_in, 0)                                \
    X(rate_starts_exactly_as_many_as_its_bucket_has, 0)                                  \
    X(rate_saves_nothing_up_while_nobody_claims, 0)                                      \
    X(rate_begins_to_fill_when_a_unit_is_claimed_by_its_id, 0)                           \
    X(rate_gives_the_token_of_a_cancelled_row_to_the_next, 0)                            \
    X(a_sweep_says_when_the_rate_lets_the_next_go, 0)                                    \
    X(a_limit_may_have_both_a_most_and_a_rate, 0)                                        \
    X(fair_keys_take_turns, 0)                                                           \
    X(claims_of_one_kind_go_by_fair_tag, 0)                                              \
    X(claims_of_several_kinds_go_by_fair_tag, 0)                                         \
    X(fair_keys_share_by_weight, 0)                                                      \
    X(fair_shares_stay_within_a_unit_of_each_over_random_arrivals, 0)                    \
    X(a_key_that_was_idle_saved_nothing_up, 0)                                           \
    X(priority_comes_before_fairness, 0)                                                 \
    X(poison_is_held_and_released, 0)                                                    \
    X(poison_counts_only_what_is_lost_in_a_row_and_in_its_window, 0)                     \
    X(reschedule_moves_what_waits_for_its_time, 0)                                       \
    X(reschedule_brings_a_retry_forward, 0)                                              \
    X(bad_limits_and_keys_are_refused, 0)

#define CASES_OF_CLAIM(X)                                                                \
    X(r23_a_claim_gives_owner_token_and_term, 0)                                         \
    X(r23_every_acquisition_has_another_token, 0)                                        \
    X(nobody_sees_a_token_but_the_claimant, 0)                                           \
    X(nothing_to_claim_is_no_failure, 0)                                                 \
    X(t01_one_unit_is_claimed_once, 0)                                                   \
    X(t02_a_second_claimer_finds_nothing, 0)                                             \
    X(claim_order_is_priority_then_age, 0)                                               \
    X(claim_takes_at_most_its_limit, 0)                                                  \
    X(claim_takes_large_batches_whole, 0)                                                \
    X(claim_keeps_to_its_queue, 0)                                                       \
    X(claim_keeps_to_its_kinds, 0)                                                       \
    X(claim_by_id_takes_that_row_and_no_other, 0)                                        \
    X(t03_a_delayed_row_is_claimed_when_due_and_not_before, 0)                           \
    X(a_due_row_is_promoted_by_a_sweep, 0)                                               \
    X(a_due_time_in_the_past_is_no_gate, 0)                                              \
    X(the_same_nonce_gives_the_same_claim_again, 0)                                      \
    X(a_nonce_repeats_only_for_its_own_incarnation, 0)                                   \
    X(a_claim_skips_what_is_not_queued, 0)                                               \
    X(lane_has_one_running_row, 0)                                                       \
    X(lane_gives_its_place_to_the_next_when_a_row_ends, 0)                               \
    X(lane_is_freed_by_every_way_out_of_running, 0)                                      \
    X(lane_prefers_the_urgent_among_the_waiting, 0)                                      \
    X(lane_place_of_a_cancelled_row_goes_to_the_next, 0)                                 \
    X(a24_waiting_does_not_keep_the_lane, 0)                                             \
    X(a_due_row_does_not_keep_the_lane, 0)                                               \
    X(a_promoted_row_takes_its_place_in_the_lane_by_urgency, 0)                          \
    X(resume_into_running_needs_a_free_lane, 0)                                          \
    X(a_requeued_row_queues_up_in_its_lane, 0)                                           \
    X(lane_slots_of_tenants_are_their_own, 0)                                            \
    X(lane_place_goes_to_the_next_of_the_same_tenant, 0)                                 \
    X(lane_urgency_displaces_only_rows_of_the_same_tenant, 0)                            \
    X(lane_of_another_tenant_neither_stops_nor_yields_to_a_resume, 0)

#define CASES_OF_LEASE(X)                                                                \
    X(peers_act_only_at_expiry, 0)                                                       \
    X(peers_act_only_at_expiry_plus_grace_where_the_row_expires, 0)                      \
    X(peers_act_only_at_expiry_but_a_late_holder_may_settle, 0)                          \
    X(time_alone_never_ends_owner_bound, 0)                                              \
    X(time_alone_never_ends_owner_bound_but_its_start_may_time_out, 0)                   \
    X(time_alone_never_ends_owner_bound_while_it_waits, 0)                               \
    X(token_carries_the_fence, 0)                                                        \
    X(token_carries_the_fence_and_garbage_is_no_token, 0)                                \
    X(token_carries_the_fence_and_names_one_row, 0)                                      \
    X(reentry, 0)                                                                        \
    X(reentry_not_by_another_incarnation, 0)                                             \
    X(a_fence_never_falls_and_survives_release, 0)                                       \
    X(attempts_and_failures, 0)                                                          \
    X(renewal_touches_no_index, 0)                                                       \
    X(renewal_touches_no_index_and_the_sweep_pushes_the_look, 0)                         \
    X(r25_renewals_are_recorded_sparsely, 0)                                             \
    X(a_renewal_never_shortens_a_lease, 0)                                               \
    X(r26_a_stale_token_changes_nothing, 0)                                              \
    X(refused_writes_nothing, 0)                                                         \
    X(r21_rejections_may_be_noted_but_never_as_transitions, 0)                           \
    X(incarnation_refuses_holders_not_patience, 0)                                       \
    X(incarnation_refuses_holders_not_patience_even_by_the_same_nonce, 0)                \
    X(incarnation_of_a_token_counts_though_nonce_and_fence_match, 0)                     \
    X(incarnation_of_a_lease_counts_though_nonce_and_fence_match, 0)                     \
    X(incarnation_counts_for_close_outs_under_a_close_rule, 0)                           \
    X(a_store_bump_rises_by_one, 0)                                                      \
    X(t04_a_lapsed_lease_goes_to_another_owner, 0)                                       \
    X(t05_a_zombie_cannot_settle, 0)                                                     \
    X(t06_only_the_new_holder_renews, 0)                                                 \
    X(t08_poison_work_ends_when_its_failures_are_used_up, 0)                             \
    X(r27_expire_ends_as_timeout_with_its_reason, 0)                                     \
    X(r29_sweeping_twice_does_the_same_once, 0)                                          \
    X(r30_a_late_renewal_before_the_sweep_saves_the_lease, 0)                            \
    X(a23_a_late_result_is_kept_whole_where_it_is_kept, 0)                               \
    X(a23_a_late_result_beyond_an_event_is_named_as_such, 0)                             \
    X(a23_a_late_result_after_the_sweep_is_refused, 0)                                   \
    X(r11_only_running_rows_have_a_lease, 0)                                             \
    X(r28_a_term_is_at_least_three_renewals, 0)                                          \
    X(a_wall_clock_that_jumps_ends_no_lease, 0)                                          \
    X(r24_renew_all_renews_what_runs_is_owned_and_fresh, 0)                              \
    X(renew_all_keeps_to_an_incarnation_when_one_is_given, 0)                            \
    X(touch_reports_activity_and_renews_nothing, 0)

#define CASES_OF_SESSION(X)                                                              \
    X(lease_first_claim_acquires_and_displaces_nobody, 0)                                \
    X(lease_retry_of_a_claim_gives_the_same_lease, 0)                                    \
    X(lease_retry_of_a_takeover_bumps_once, 0)                                           \
    X(lease_reentry_rotates_the_token_and_keeps_the_fence, 0)                            \
    X(lease_of_another_incarnation_is_busy_while_live, 0)                                \
    X(lease_busy_shows_the_holder_without_its_token, 0)                                  \
    X(lease_renewal_extends_and_rotates_nothing, 0)                                      \
    X(lease_renewal_may_be_told_into_its_own_lease, 0)                                   \
    X(peers_act_only_at_expiry_and_a_session_holder_must_be_live, 0)                     \
    X(lease_renewal_by_a_stale_token_is_refused, 0)                                      \
    X(lease_release_by_a_stale_token_frees_nobody, 0)                                    \
    X(lease_release_twice_is_refused, 0)                                                 \
    X(lease_claim_after_release_or_lapse_has_a_higher_fence, 0)                          \
    X(lease_is_free_exactly_at_its_term, 0)                                              \
    X(lease_displacement_names_the_lapsed_holder, 0)                                     \
    X(lease_of_an_opaque_holder_is_never_proven_dead, 0)                                 \
    X(lease_keys_are_apart, 0)                                                           \
    X(lease_look_shows_lapsed_leases_and_changes_nothing, 0)                             \
    X(lease_terms_have_bounds, 0)                                                        \
    X(lease_tokens_are_refused_after_a_bump_but_peers_wait, 0)                           \
    X(lease_incarnation_counts_though_nonce_and_fence_match, 0)                          \
    X(lease_survives_a_reopened_store, HF_CONFORM_AGAIN)                                 \
    X(lease_has_one_winner_between_two_handles, HF_CONFORM_AGAIN)                        \
    X(a_handle_has_an_incarnation_of_its_own, HF_CONFORM_AGAIN)

#define CASES_OF_MATRIX(X)                                                               \
    X(r22_edge_matrix_of_rows_that_expire, 0)                                            \
    X(r22_edge_matrix_of_rerunnable_rows, 0)                                             \
    X(r22_edge_matrix_of_owner_bound_rows, 0)                                            \
    X(r22_edge_matrix_of_externally_owned_rows, 0)                                       \
    X(r22_edge_matrix_of_foreign_tokens, 0)                                              \
    X(r20_named_illegal_pairs_are_refused, 0)                                            \
    X(r14_one_change_cannot_both_wait_and_close, 0)                                      \
    X(r59_transition_offers_the_edges_of_a_holder, 0)

#define CASES_OF_SETTLE(X)                                                               \
    X(r36_close_out_stores_what_was_said, 0)                                             \
    X(r38_a_repeated_close_out_answers_as_the_first, 0)                                  \
    X(repeated_settles_answer_as_the_first, 0)                                           \
    X(a_repeated_completion_by_an_authority_answers_as_the_first, 0)                     \
    X(a_completion_after_a_cancel_is_no_repeat, 0)                                       \
    X(a_settled_token_repeats_until_somebody_else_settles, 0)                            \
    X(t09_fail_with_a_retry_clears_the_lease, 0)                                         \
    X(hand_back_queues_the_row_again_and_spends_nothing, 0)                              \
    X(t07_cancel_while_leased_stays_cancelled, 0)                                        \
    X(a06_cancel_ends_what_is_not_running_at_once, 0)                                    \
    X(cancel_of_owner_bound_is_a_request_that_its_owner_sees, 0)                         \
    X(abandon_is_only_for_started_owner_bound_rows, 0)                                   \
    X(a10_close_out_never_abandons, 0)                                                   \
    X(an_abandon_request_is_carried_out_only_after_the_lapse, 0)                         \
    X(an_abandon_request_ends_a_waiting_owner_bound_row, 0)                              \
    X(a03_requeue_keeps_the_row_and_starts_a_generation, 0)                              \
    X(a03_requeue_starts_the_count_of_failures_again, 0)                                 \
    X(requeue_respects_a_live_dedup_key, 0)                                              \
    X(r13_terminal_rows_change_only_by_requeue, 0)                                       \
    X(close_rule_evidence_asks_for_evidence, 0)                                          \
    X(close_rule_reviewer_asks_for_somebody_else, 0)                                     \
    X(a_wait_for_the_close_rule_is_ended_by_a_person, 0)                                 \
    X(another_wait_takes_no_authority, 0)                                                \
    X(externally_owned_is_closed_by_an_authority, 0)                                     \
    X(r64_append_event_cannot_forge_a_transition, 0)                                     \
    X(change_answers_each_item_of_a_batch, 0)                                            \
    X(close_outs_of_plain_rows_and_rows_of_lanes_and_limits_go_together, 0)              \
    X(change_all_or_none_refuses_the_whole_batch, 0)                                     \
    X(a_batch_names_a_row_only_once_by_whatever_way, 0)                                  \
    X(a_batch_names_a_row_only_once, 0)                                                  \
    X(brief_answers_carry_code_id_and_status, 0)                                         \
    X(operation_id_gives_the_first_answer_again, 0)                                      \
    X(operation_id_of_a_unit_that_was_pruned_says_so, 0)                                 \
    X(operation_id_repeats_a_requeue_once, 0)                                            \
    X(operation_ids_of_tenants_are_apart, 0)                                             \
    X(operation_id_of_a_create_gives_the_same_row, 0)

#define CASES_OF_WAIT(X)                                                                 \
    X(r17_entering_a_wait_releases_the_lease, 0)                                         \
    X(r39_waits_have_a_deadline_by_kind, 0)                                              \
    X(r39_a_wait_names_its_reference, 0)                                                 \
    X(r40_resume_queues_the_row_with_its_payload, 0)                                     \
    X(r40_resume_with_an_owner_runs_under_a_fresh_lease, 0)                              \
    X(a_nonce_repeats_a_resume_with_its_token, 0)                                        \
    X(r41_resume_by_reference, 0)                                                        \
    X(r41_a_wait_of_a_turn_is_no_reference_of_a_unit, 0)                                 \
    X(r41_resume_by_an_ambiguous_reference_is_refused, 0)                                \
    X(r41_a_status_narrows_a_resume_by_reference, 0)                                     \
    X(r41_of_two_resumes_one_wins, 0)                                                    \
    X(r41_a_wait_survives_a_reopened_store, HF_CONFORM_AGAIN)                            \
    X(r42_a_wait_past_its_deadline_times_out, 0)                                         \
    X(r42_escalation_by_event_comes_before_the_deadline_and_once, 0)                     \
    X(r42_escalation_by_work_creates_a_unit_beside, 0)                                   \
    X(a_resumed_wait_escalates_no_more, 0)                                               \
    X(escalation_needs_a_time_and_a_way, 0)                                              \
    X(a_policy_may_ask_for_an_escalation_of_every_wait, 0)                               \
    X(r43_waiting_spends_nothing_and_no_lease_sweep_sees_it, 0)                          \
    X(a25_the_owner_of_a_waiting_row_may_go, 0)                                          \
    X(a_started_owner_bound_row_is_resumed_only_by_its_owner, 0)                         \
    X(a_second_wait_forgets_the_first_answer, 0)

#define CASES_OF_RETRY(X)                                                                \
    X(r45_transient_classes_are_retried, 0)                                              \
    X(r45_hopeless_classes_fail_at_once, 0)                                              \
    X(a19_an_unknown_class_is_retried_within_the_bound, 0)                               \
    X(a20_backoff_doubles_from_five_seconds, 0)                                          \
    X(a02_max_attempts_counts_executions, 0)                                             \
    X(r48_no_retry_beyond_max_attempts, 0)                                               \
    X(r47_a_retry_is_queued_when_due_and_not_before, 0)                                  \
    X(r50_full_jitter_stays_within_its_bounds, 0)                                        \
    X(r44_a_retry_policy_of_its_own_is_obeyed, 0)                                        \
    X(r44_seconds_are_understood_too, 0)                                                 \
    X(never_on_and_retry_on_override_the_classes, 0)                                     \
    X(the_retry_policy_is_fixed_at_creation, 0)                                          \
    X(r49_every_source_is_retried_alike, 0)                                              \
    X(a01_an_observer_of_a_scheduled_retry_sees_one_attempt, 0)                          \
    X(a_started_owner_bound_row_is_never_retried, 0)                                     \
    X(r51_start_timeout, 0)                                                              \
    X(r51_a_started_row_has_no_start_timeout, 0)                                         \
    X(r51_a_promoted_retry_has_its_whole_start_timeout, 0)                               \
    X(r52_a_promoted_retry_that_starts_has_its_whole_execution_timeout, 0)               \
    X(r52_a_retry_that_a_claim_promotes_has_its_whole_execution_timeout, 0)              \
    X(r52_a_retry_that_is_claimed_by_id_has_its_whole_execution_timeout, 0)              \
    X(r51_a_retry_that_is_brought_forward_has_its_whole_start_timeout, 0)                \
    X(r52_execution_timeout, 0)                                                          \
    X(r55_execution_timeout_fires_though_the_lease_is_renewed, 0)                        \
    X(r52_each_execution_has_its_own_time, 0)                                            \
    X(r53_wait_timeout, 0)                                                               \
    X(r54_heartbeat_timeout, 0)                                                          \
    X(r12_rerunnable_work_leaves_running_when_its_lease_lapses, 0)                       \
    X(a18_a_timeout_is_retried_only_where_the_policy_lists_it, 0)                        \
    X(r07_every_delay_and_every_bad_end_has_a_reason, 0)                                 \
    X(r56_the_defaults_are_the_designs, 0)                                               \
    X(r57_policy_precedence_is_work_kind_source_default, 0)                              \
    X(lease_timings_are_fixed_at_claim, 0)                                               \
    X(a_claims_own_default_term_gives_way_to_any_policy, 0)                              \
    X(a_policy_can_set_every_field, 0)                                                   \
    X(a_policy_is_replaced_whole, 0)                                                     \
    X(bad_policies_are_refused, 0)                                                       \
    X(r58_the_effective_values_stand_in_the_event, 0)

#define CASES_OF_READ(X)                                                                 \
    X(get_by_unique_prefix_or_suffix, 0)                                                 \
    X(get_by_an_ambiguous_prefix_is_refused, 0)                                          \
    X(list_gives_open_rows_in_order_of_creation, 0)                                      \
    X(list_filters_by_each_column, 0)                                                    \
    X(list_by_status_finds_terminal_rows_too, 0)                                         \
    X(list_by_age_looks_at_the_last_change, 0)                                           \
    X(list_begins_with_the_newest_and_a_cursor_keeps_its_direction, 0)                   \
    X(list_filters_by_what_a_unit_belongs_to, 0)                                         \
    X(list_of_bad_ends_leaves_out_what_was_acknowledged, 0)                              \
    X(list_by_limit_shows_the_units_under_it, 0)                                         \
    X(list_of_a_period_is_by_creation_or_by_end, 0)                                      \
    X(list_finds_ids_and_names_by_their_beginnings_and_ends, 0)                          \
    X(a_cursor_is_of_its_list_and_filter, 0)                                             \
    X(a_page_ends_when_its_texts_are_large, 0)                                           \
    X(a_brief_list_has_no_long_texts, 0)                                                 \
    X(pages_have_no_gap_and_no_repeat, 0)                                                \
    X(a_last_page_has_no_cursor, 0)                                                      \
    X(paging_by_terminal_status_has_no_gap_either, 0)                                    \
    X(r10_a_trail_is_a_chain, 0)                                                         \
    X(r09_each_transition_is_one_event, 0)                                               \
    X(events_are_read_on_from_where_a_reader_stopped, 0)                                 \
    X(r67_stats_show_what_an_operator_asks, 0)                                           \
    X(tenants_are_counted_apart, 0)                                                      \
    X(stats_of_an_empty_store_are_zero, 0)                                               \
    X(prune_keeps_chains, 0)                                                             \
    X(prune_keeps_chains_and_never_reuses_event_ids, 0)                                  \
    X(t10_prune_takes_terminal_rows_only_and_at_most_its_limit, 0)                       \
    X(r16_prune_frees_the_keys_of_what_it_took, 0)                                       \
    X(r66_a_sweep_is_bounded_and_says_that_there_is_more, 0)                             \
    X(r65_one_sweep_does_all_that_is_due, 0)                                             \
    X(a_sweep_says_when_it_is_needed_next, 0)                                            \
    X(silent_owner_bound_rows_are_counted_and_left_alone, 0)                             \
    X(everything_survives_a_reopened_store, HF_CONFORM_AGAIN)                            \
    X(two_handles_see_one_store, HF_CONFORM_AGAIN)                                       \
    X(a_bump_is_seen_by_the_other_handle, HF_CONFORM_AGAIN)

#define CASES_OF_FEED(X)                                                                 \
    X(feed_gives_every_event_of_every_unit_in_order, 0)                                  \
    X(feed_pages_have_no_gap_and_no_repeat, 0)                                           \
    X(feed_filters_and_still_moves_on, 0)                                                \
    X(feed_from_the_end_gives_only_what_comes, 0)                                        \
    X(feed_says_once_that_prune_took_what_was_not_read, 0)                               \
    X(feed_goes_on_over_a_new_history, 0)                                                \
    X(feed_refuses_what_is_no_cursor, 0)                                                 \
    X(feed_waits_for_the_first_event_as_long_as_it_was_told, 0)                          \
    X(feed_goes_on_after_a_reopened_store, HF_CONFORM_AGAIN)                             \
    X(amnesty_gives_one_more_term_to_what_a_stall_kept_from_renewing, 0)                 \
    X(amnesty_is_not_for_leases_that_had_lapsed_before_or_have_time, 0)                  \
    X(amnesty_and_bumps_stand_in_the_stores_log, 0)

#define CASES_OF_LIFE(X)                                                                 \
    X(r02_the_ten_statuses_have_their_words, 0)                                          \
    X(r03_an_event_has_all_its_columns, 0)                                               \
    X(a04_each_transition_has_its_event_type, 0)                                         \
    X(a04_a_lease_is_shown_where_it_was_taken_and_let_go, 0)                             \
    X(a07_what_never_started_is_cancelled_or_times_out_but_never_fails, 0)               \
    X(a08_a_lapse_does_what_the_row_declared, 0)                                         \
    X(a21_times_are_milliseconds_of_the_given_clock, 0)                                  \
    X(a22_smaller_is_more_urgent_and_three_is_the_default, 0)                            \
    X(r46_a_retry_counts_one_execution_and_lets_go, 0)                                   \
    X(r68_what_is_active_now_is_one_list, 0)                                             \
    X(r69_the_whole_life_of_each_source, 0)                                              \
    X(structs_that_a_caller_fills_tell_their_size, 0)                                    \
    X(a_call_that_succeeds_leaves_err_untouched, 0)                                      \
    X(t01_two_handles_never_claim_one_unit_twice, HF_CONFORM_AGAIN)                      \
    X(t11_dedup_holds_between_two_handles, HF_CONFORM_AGAIN)                             \
    X(r29_two_sweepers_act_once, HF_CONFORM_AGAIN)                                       \
    X(r30_a_renewal_and_a_sweep_have_two_outcomes_only, HF_CONFORM_AGAIN)

#define CASES_OF_LIMITS(X)                                                               \
    X(limit_keys, 0)                                                                     \
    X(limit_keys_of_a_holder, 0)                                                         \
    X(limit_payload, 0)                                                                  \
    X(limit_event_payload, 0)                                                            \
    X(limit_json_depth, 0)                                                               \
    X(limit_reason_and_summary, 0)                                                       \
    X(limit_references, 0)                                                               \
    X(limit_retry_policy, 0)                                                             \
    X(limit_numbers, 0)                                                                  \
    X(limit_batch, 0)                                                                    \
    X(limit_kinds_and_pages, 0)

#define CASES_OF_SCHEDULE(X)                                                             \
    X(t31_a_due_slot_makes_one_unit_with_its_identity, HF_CONFORM_SCHEDULES)             \
    X(intervals_and_single_times_have_slots_too, HF_CONFORM_SCHEDULES)                   \
    X(t45_slots_follow_the_clocks_of_their_zone, HF_CONFORM_SCHEDULES)                   \
    X(t32_latest_makes_one_unit_after_an_outage_and_records_the_rest,                    \
      HF_CONFORM_SCHEDULES)                                                              \
    X(latest_makes_the_newest_missed_slot_when_none_is_on_time, HF_CONFORM_SCHEDULES)    \
    X(slots_within_the_threshold_are_late_and_not_missed, HF_CONFORM_SCHEDULES)          \
    X(t33_all_makes_every_missed_slot_in_order, HF_CONFORM_SCHEDULES)                    \
    X(none_skips_what_was_missed_and_makes_what_is_on_time, HF_CONFORM_SCHEDULES)        \
    X(g5_a_month_of_missed_seconds_is_one_short_step, HF_CONFORM_SCHEDULES)              \
    X(a_single_time_that_passed_is_made_late_or_skipped_by_its_rule,                     \
      HF_CONFORM_SCHEDULES)                                                              \
    X(t34_skip_leaves_a_slot_out_while_a_unit_is_unfinished, HF_CONFORM_SCHEDULES)       \
    X(t35_one_waiting_lets_one_unit_wait_behind_a_running_one, HF_CONFORM_SCHEDULES)     \
    X(allow_makes_units_beside_each_other, HF_CONFORM_SCHEDULES)                         \
    X(replace_cancels_the_unfinished_unit_as_it_makes_the_new_one, HF_CONFORM_SCHEDULES) \
    X(replace_makes_the_newest_of_many_due_slots, HF_CONFORM_SCHEDULES)                  \
    X(a_unit_that_is_run_now_replaces_too, HF_CONFORM_SCHEDULES)                         \
    X(replace_leaves_started_owner_bound_work_to_its_owner, HF_CONFORM_SCHEDULES)        \
    X(a_lane_of_its_own_is_kept, HF_CONFORM_SCHEDULES)                                   \
    X(catch_up_and_overlap_in_every_combination, HF_CONFORM_SCHEDULES)                   \
    X(t12_two_handles_make_each_slot_once, HF_CONFORM_SCHEDULES | HF_CONFORM_AGAIN)      \
    X(g3_a_slot_that_exists_already_never_stalls_its_schedule, HF_CONFORM_SCHEDULES)     \
    X(a_clock_that_goes_back_makes_no_slot_twice, HF_CONFORM_SCHEDULES)                  \
    X(adding_the_same_again_changes_nothing, HF_CONFORM_SCHEDULES)                       \
    X(t40_a_paused_schedule_makes_nothing_and_goes_on_from_now, HF_CONFORM_SCHEDULES)    \
    X(t40_an_update_moves_the_next_slot_only_with_its_timing, HF_CONFORM_SCHEDULES)      \
    X(a_stale_revision_changes_nothing, HF_CONFORM_SCHEDULES)                            \
    X(t40_a_unit_on_request_leaves_the_schedule_as_it_is, HF_CONFORM_SCHEDULES)          \
    X(t40_on_request_several_may_run_where_that_is_allowed, HF_CONFORM_SCHEDULES)        \
    X(a_removed_schedule_leaves_its_units, HF_CONFORM_SCHEDULES)                         \
    X(a_finished_schedule_is_neither_paused_nor_resumed, HF_CONFORM_SCHEDULES)           \
    X(tenants_share_no_schedules, HF_CONFORM_SCHEDULES)                                  \
    X(t36_a_set_is_added_updated_and_left_alone, HF_CONFORM_SCHEDULES)                   \
    X(t36_orphans_of_a_set_are_paused_kept_or_removed, HF_CONFORM_SCHEDULES)             \
    X(a_fault_in_one_entry_changes_nothing_and_is_named, HF_CONFORM_SCHEDULES)           \
    X(prune_takes_records_of_skipped_slots_and_no_schedule, HF_CONFORM_SCHEDULES)        \
    X(t38_bad_schedules_are_refused_by_field_and_write_nothing, HF_CONFORM_SCHEDULES)

#define CASES_OF_TRIGGER(X)                                                              \
    X(d38_ids_are_stable_and_the_same_definition_changes_nothing, HF_CONFORM_TRIGGERS)   \
    X(d38_a_second_registration_never_replaces_the_first, HF_CONFORM_TRIGGERS)           \
    X(d38_an_update_needs_the_revision_that_was_seen, HF_CONFORM_TRIGGERS)               \
    X(d38_enabling_and_disabling_are_fenced_and_disabled_gets_nothing,                   \
      HF_CONFORM_TRIGGERS)                                                               \
    X(d38_a_removed_one_keeps_its_history_and_is_revived_as_another,                     \
      HF_CONFORM_TRIGGERS)                                                               \
    X(d38_receipts_give_success_and_conflict_again_whatever_came_since,                  \
      HF_CONFORM_TRIGGERS)                                                               \
    X(d38_a_delivery_is_the_row_of_its_target, HF_CONFORM_TRIGGERS)                      \
    X(d38_the_same_occurrence_twice_starts_each_target_once, HF_CONFORM_TRIGGERS)        \
    X(d38_two_handles_emit_one_occurrence_once, HF_CONFORM_TRIGGERS | HF_CONFORM_AGAIN)  \
    X(d38_no_payload_and_null_are_the_same, HF_CONFORM_TRIGGERS)                         \
    X(d38_deliveries_are_in_the_order_of_owners_and_keys, HF_CONFORM_TRIGGERS)           \
    X(d38_what_was_delivered_stays_as_it_was, HF_CONFORM_TRIGGERS)                       \
    X(d38_nobody_who_waits_is_no_failure, HF_CONFORM_TRIGGERS)                           \
    X(d38_a_pruned_target_is_not_started_again, HF_CONFORM_TRIGGERS)                     \
    X(d38_an_occurrence_goes_when_its_last_unit_is_gone, HF_CONFORM_TRIGGERS)            \
    X(a_session_is_woken_and_granted_the_handle, HF_CONFORM_TRIGGERS)                    \
    X(a_template_that_names_a_missing_member_writes_nothing, HF_CONFORM_TRIGGERS)        \
    X(a_thousand_subscribers_are_one_transaction, HF_CONFORM_TRIGGERS)                   \
    X(tenants_share_no_subscriptions, HF_CONFORM_TRIGGERS)                               \
    X(bad_subscriptions_and_occurrences_are_refused_by_field, HF_CONFORM_TRIGGERS)       \
    X(a_target_that_is_a_process_begins_in_the_emission,                                 \
      HF_CONFORM_TRIGGERS | HF_CONFORM_PROCESSES)                                        \
    X(a_target_that_is_a_process_is_as_declared,                                         \
      HF_CONFORM_TRIGGERS | HF_CONFORM_PROCESSES)

#define CASES_OF_LISTS(X)                                                                \
    X(schedules_are_listed_by_name_a_page_at_a_time, HF_CONFORM_SCHEDULES)               \
    X(schedules_of_all_tenants_are_listed_where_none_is_named, HF_CONFORM_SCHEDULES)     \
    X(schedules_are_listed_newest_first, HF_CONFORM_SCHEDULES)                           \
    X(a_cursor_of_schedules_is_of_its_list_and_filter, HF_CONFORM_SCHEDULES)             \
    X(a_page_of_schedules_ends_when_its_payloads_are_large, HF_CONFORM_SCHEDULES)        \
    X(subscriptions_are_listed_a_page_at_a_time, HF_CONFORM_TRIGGERS)                    \
    X(subscriptions_of_all_tenants_are_listed_where_none_is_named, HF_CONFORM_TRIGGERS)  \
    X(subscriptions_are_listed_newest_first, HF_CONFORM_TRIGGERS)                        \
    X(a_cursor_of_subscriptions_is_of_its_list_and_filter, HF_CONFORM_TRIGGERS)          \
    X(a_page_of_subscriptions_ends_when_its_templates_are_large, HF_CONFORM_TRIGGERS)

#define CASES_OF_PROCESS(X)                                                              \
    X(d36_a_disposition_must_be_declared, HF_CONFORM_PROCESSES)                          \
    X(d36_registration_and_observers_are_one_and_idempotent, HF_CONFORM_PROCESSES)       \
    X(d36_an_event_is_told_once_by_its_key, HF_CONFORM_PROCESSES)                        \
    X(d36_types_of_the_ledger_are_refused_and_declared_ones_kept, HF_CONFORM_PROCESSES)  \
    X(d36_long_cancel_reasons_are_kept_whole, HF_CONFORM_PROCESSES)                      \
    X(d36_an_external_reference_is_written_once, HF_CONFORM_PROCESSES)                   \
    X(d36_observers_come_and_go_with_an_event_each, HF_CONFORM_PROCESSES)                \
    X(d36_every_record_is_the_fold_of_its_log_after_every_step, HF_CONFORM_PROCESSES)    \
    X(d36_a_process_lease_is_busy_reentered_renewed_and_fenced, HF_CONFORM_PROCESSES)    \
    X(d36_completion_needs_the_authority_of_its_disposition, HF_CONFORM_PROCESSES)       \
    X(d36_the_first_start_is_recorded_once_and_an_owner_bound_one_never_repeated,        \
      HF_CONFORM_PROCESSES)                                                              \
    X(d36_the_budget_of_attempts_ends_a_rerunnable_process, HF_CONFORM_PROCESSES)        \
    X(d36_waiting_processes_stay_listed_and_pages_are_exact, HF_CONFORM_PROCESSES)       \
    X(d36_filters_go_together_and_time_is_half_open, HF_CONFORM_PROCESSES)               \
    X(d36_live_references_are_counted_by_a_list, HF_CONFORM_PROCESSES)                   \
    X(d36_the_feed_has_every_fact_in_order_and_says_what_was_pruned,                     \
      HF_CONFORM_PROCESSES)                                                              \
    X(d36_prune_takes_what_ended_before_the_cutoff_and_leaves_its_end,                   \
      HF_CONFORM_PROCESSES)                                                              \
    X(d36_an_abandon_request_is_the_first_writers_and_none_after_the_end,                \
      HF_CONFORM_PROCESSES)                                                              \
    X(d36_sweep_rerunnable_is_claimed_again, HF_CONFORM_PROCESSES)                       \
    X(d36_sweep_owner_bound_never_started_is_anybodys, HF_CONFORM_PROCESSES)             \
    X(d36_sweep_owner_bound_and_silent_is_left, HF_CONFORM_PROCESSES)                    \
    X(d36_sweep_reconciles_a_request_once_the_lease_has_lapsed, HF_CONFORM_PROCESSES)    \
    X(d36_sweep_externally_owned_is_never_claimed_and_ends_by_request,                   \
      HF_CONFORM_PROCESSES)                                                              \
    X(d36_a_drain_says_what_it_could_not_end_and_why, HF_CONFORM_PROCESSES)              \
    X(d36_a_drain_ends_only_its_own, HF_CONFORM_PROCESSES)                               \
    X(d36_await_gives_the_end_and_says_when_there_is_none_yet, HF_CONFORM_PROCESSES)     \
    X(d36_a_signal_resumes_who_waits_for_it_in_its_transaction, HF_CONFORM_PROCESSES)    \
    X(a_signal_that_comes_before_the_wait_ends_it, HF_CONFORM_PROCESSES)                 \
    X(a_signal_that_comes_before_the_wait_of_a_bound_process_ends_it,                    \
      HF_CONFORM_PROCESSES)                                                              \
    X(a_bound_process_that_took_its_signal_is_ended_by_its_token, HF_CONFORM_PROCESSES)  \
    X(a_repeated_wait_of_a_bound_process_takes_no_second_signal, HF_CONFORM_PROCESSES)   \
    X(a_signal_that_comes_while_a_bound_process_waits_goes_with_its_owners_resume,       \
      HF_CONFORM_PROCESSES)                                                              \
    X(a_repeated_wait_takes_no_second_signal, HF_CONFORM_PROCESSES)                      \
    X(d37_every_way_to_end_wakes_the_session_once, HF_CONFORM_PROCESSES)                 \
    X(d37_an_event_and_its_wake_are_one_transaction, HF_CONFORM_PROCESSES)               \
    X(d37_a_session_that_is_not_there_finds_its_wakes_later, HF_CONFORM_PROCESSES)       \
    X(d37_a_retarget_discards_what_nobody_took_and_keeps_what_was_taken,                 \
      HF_CONFORM_PROCESSES)                                                              \
    X(d37_a_wake_whose_claimant_is_lost_is_taken_again_under_a_fresh_token,              \
      HF_CONFORM_PROCESSES)                                                              \
    X(d37_a_process_registered_again_after_prune_wakes_anew, HF_CONFORM_PROCESSES)       \
    X(d37_a_requeued_process_wakes_at_each_of_its_ends, HF_CONFORM_PROCESSES)

#define CASES_OF_TALK(X)                                                                 \
    X(session_create_is_idempotent_and_the_first_meta_stands, HF_CONFORM_SESSIONS)       \
    X(session_bad_input_names_the_field_and_writes_nothing, HF_CONFORM_SESSIONS)         \
    X(session_send_makes_one_unit_that_no_queue_sees, HF_CONFORM_SESSIONS)               \
    X(session_send_of_a_blank_text_is_refused, HF_CONFORM_SESSIONS)                      \
    X(session_inputs_go_on_after_an_input_of_the_session, HF_CONFORM_SESSIONS)           \
    X(session_a_message_may_have_input_bytes_and_no_more, HF_CONFORM_SESSIONS)           \
    X(session_claim_opens_a_turn_over_the_oldest_input, HF_CONFORM_SESSIONS)             \
    X(session_claim_is_by_agent, HF_CONFORM_SESSIONS)                                    \
    X(session_claim_by_id_takes_one_with_nothing_to_do, HF_CONFORM_SESSIONS)             \
    X(session_head_is_the_revision_the_count_and_the_digest, HF_CONFORM_SESSIONS)        \
    X(session_a_message_that_is_refused_or_repeated_makes_nothing_ready,                 \
      HF_CONFORM_SESSIONS)                                                               \
    X(session_a_lease_that_was_ended_is_told_so_again, HF_CONFORM_SESSIONS)              \
    X(session_amnesty_is_for_its_lease_too, HF_CONFORM_SESSIONS)                         \
    X(session_claim_under_a_nonce_is_repeatable, HF_CONFORM_SESSIONS)                    \
    X(session_claim_by_agents_under_a_nonce_is_repeatable, HF_CONFORM_SESSIONS)          \
    X(session_lapsed_lease_passes_the_very_turn_on, HF_CONFORM_SESSIONS)                 \
    X(session_lapsed_lease_with_nothing_to_do_hides_no_other, HF_CONFORM_SESSIONS)       \
    X(session_hand_back_keeps_the_turn_and_spends_nothing, HF_CONFORM_SESSIONS)          \
    X(session_crashes_without_a_step_hold_the_input_and_the_session_goes_on,             \
      HF_CONFORM_SESSIONS)                                                               \
    X(session_a_new_step_forgets_the_crashes, HF_CONFORM_SESSIONS)                       \
    X(session_an_input_is_cancelled_while_queued_and_asked_to_while_it_runs,             \
      HF_CONFORM_SESSIONS)                                                               \
    X(session_renewal_is_by_token_and_tells_what_is_lost, HF_CONFORM_SESSIONS)           \
    X(session_tokens_of_an_older_history_are_refused, HF_CONFORM_SESSIONS)               \
    X(session_wakes_are_inputs_and_begin_turns_in_order,                                 \
      HF_CONFORM_SESSIONS | HF_CONFORM_PROCESSES)                                        \
    X(session_a_wake_while_it_is_held_is_seen_by_the_release,                            \
      HF_CONFORM_SESSIONS | HF_CONFORM_PROCESSES)

#define CASES_OF_COMMIT(X)                                                               \
    X(d32_commit_moves_the_head_by_one_and_the_history_round_trips, HF_CONFORM_SESSIONS) \
    X(d32_the_same_commit_again_returns_its_receipt_without_a_lease,                     \
      HF_CONFORM_SESSIONS)                                                               \
    X(d32_commit_needs_the_live_lease_the_head_and_the_turn, HF_CONFORM_SESSIONS)        \
    X(d32_a_token_is_of_one_session_alone, HF_CONFORM_SESSIONS)                          \
    X(d32_a_revision_at_its_ceiling_is_told_and_not_wrapped, HF_CONFORM_SESSIONS)        \
    X(an_input_that_ends_badly_has_the_reason_of_its_turn, HF_CONFORM_SESSIONS)          \
    X(d32_of_two_commits_at_one_revision_one_applies, HF_CONFORM_SESSIONS)               \
    X(d32_steps_store_provisional_nodes_that_a_commit_makes_final, HF_CONFORM_SESSIONS)  \
    X(d32_a_step_is_stored_once_under_its_number, HF_CONFORM_SESSIONS)                   \
    X(d32_usage_is_summed_by_source_and_model, HF_CONFORM_SESSIONS)                      \
    X(d32_usage_beyond_64_bits_is_told_and_not_wrapped, HF_CONFORM_SESSIONS)             \
    X(d32_a_blob_that_is_referred_to_must_be_stored, HF_CONFORM_SESSIONS)                \
    X(session_a_blob_is_stored_once_under_its_hash, HF_CONFORM_SESSIONS)                 \
    X(sessions_are_listed_in_both_directions, HF_CONFORM_SESSIONS)                       \
    X(session_a_blob_may_have_attachment_bytes_and_no_more, HF_CONFORM_SESSIONS)         \
    X(d32_units_of_the_outbox_are_made_with_the_commit_or_not_at_all,                    \
      HF_CONFORM_SESSIONS)                                                               \
    X(d32_budgets_of_bytes_and_rows_say_limit_and_size, HF_CONFORM_SESSIONS)             \
    X(d32_the_budget_of_bytes_counts_all_that_a_commit_stores, HF_CONFORM_SESSIONS)      \
    X(d32_a_claim_loads_the_first_page_and_the_open_turn, HF_CONFORM_SESSIONS)           \
    X(d32_pages_are_of_the_head_that_the_first_one_had, HF_CONFORM_SESSIONS)             \
    X(d32_what_was_committed_survives_a_reopen, HF_CONFORM_SESSIONS | HF_CONFORM_AGAIN)

#define CASES_OF_AWAY(X)                                                                 \
    X(wait_puts_a_turn_away_and_its_answer_makes_it_ready, HF_CONFORM_WAITS)             \
    X(wait_the_first_answer_counts_and_later_ones_are_told_of_it, HF_CONFORM_WAITS)      \
    X(wait_a_repeated_answer_leaves_the_next_wait_of_its_turn_alone, HF_CONFORM_WAITS)   \
    X(wait_of_a_held_turn_says_how_it_ended_until_the_turn_goes_on, HF_CONFORM_WAITS)    \
    X(wait_an_early_answer_is_kept, HF_CONFORM_WAITS)                                    \
    X(wait_an_early_answer_by_an_actor_that_may_not_answer_does_not_count,               \
      HF_CONFORM_WAITS)                                                                  \
    X(wait_several_of_a_turn_are_independent_and_the_first_wakes_it, HF_CONFORM_WAITS)   \
    X(wait_a_timer_is_the_sessions_ready_time_and_never_begins_again, HF_CONFORM_WAITS)  \
    X(wait_a_message_does_not_wake_a_turn_that_waits, HF_CONFORM_WAITS)                  \
    X(wait_put_away_repeats_without_a_lease, HF_CONFORM_WAITS)                           \
    X(wait_a_deadline_does_what_its_wait_says, HF_CONFORM_WAITS)                         \
    X(wait_a_turn_that_failed_at_a_deadline_is_ended_by_its_next_owner,                  \
      HF_CONFORM_WAITS)                                                                  \
    X(wait_a_deadline_fails_a_turn_that_another_answer_has_queued, HF_CONFORM_WAITS)     \
    X(wait_a_deadline_passes_to_the_next_answerer, HF_CONFORM_WAITS)                     \
    X(wait_escalates_once_and_stays_open, HF_CONFORM_WAITS)                              \
    X(wait_rows_of_sessions_are_never_due_by_themselves, HF_CONFORM_WAITS)               \
    X(wait_revocation_is_for_good, HF_CONFORM_WAITS)                                     \
    X(wait_one_is_revoked_alone, HF_CONFORM_WAITS)                                       \
    X(wait_a_timer_is_not_revoked, HF_CONFORM_WAITS)                                     \
    X(wait_a_revocation_holds_in_a_store_that_was_reopened,                              \
      HF_CONFORM_WAITS | HF_CONFORM_AGAIN)                                               \
    X(wait_a_revocation_leaves_a_cancel_that_is_pending, HF_CONFORM_WAITS)               \
    X(wait_keys_are_stable_and_answer_from_a_cold_process,                               \
      HF_CONFORM_WAITS | HF_CONFORM_AGAIN)                                               \
    X(wait_a_bad_key_gets_one_answer_and_writes_nothing, HF_CONFORM_WAITS)               \
    X(wait_two_secrets_may_be_valid, HF_CONFORM_WAITS)                                   \
    X(wait_bad_input_names_the_field_and_writes_nothing, HF_CONFORM_WAITS)               \
    X(wait_edited_arguments_must_fit, HF_CONFORM_WAITS)                                  \
    X(turn_cancel_before_it_begins_cancels_its_input, HF_CONFORM_WAITS)                  \
    X(turn_cancel_of_a_running_turn_is_seen_by_every_owner_and_wins_over_completion,     \
      HF_CONFORM_WAITS)                                                                  \
    X(turn_cancel_after_completion_says_so, HF_CONFORM_WAITS)                            \
    X(turn_cancel_of_a_waiting_turn_ends_its_waits_and_units_at_once, HF_CONFORM_WAITS)  \
    X(turn_cancel_by_the_unit_cancels_a_waiting_turn_too, HF_CONFORM_WAITS)              \
    X(turn_cancel_while_it_runs_is_kept_by_a_put_away, HF_CONFORM_WAITS)                 \
    X(wait_an_owner_that_dies_while_it_ends_a_turn_is_replaced, HF_CONFORM_WAITS)

#define CASES_OF_WATCH(X)                                                                \
    X(attention_of_an_empty_store_is_empty, 0)                                           \
    X(attention_finds_a_lease_that_lapses_soon_and_one_that_has_lapsed, 0)               \
    X(attention_sends_a_silent_unit_that_may_run_again_to_a_sweep, 0)                    \
    X(attention_shows_a_question_at_once, 0)                                             \
    X(attention_leaves_work_of_another_system_alone, 0)                                  \
    X(attention_shows_other_waits_past_half_of_their_time, 0)                            \
    X(attention_shows_what_a_turn_asks_at_once, HF_CONFORM_WAITS)                        \
    X(attention_shows_other_waits_of_turns_past_half_of_their_time, HF_CONFORM_WAITS)    \
    X(attention_counts_questions_of_units_and_turns_together, HF_CONFORM_WAITS)          \
    X(attention_counts_silent_units_and_sessions_apart, HF_CONFORM_WAITS)                \
    X(attention_counts_bad_ends_of_many_classes_to_the_last, HF_CONFORM_WAITS)           \
    X(attention_answers_a_question_with_one_of_its_choices, 0)                           \
    X(attention_shows_bad_ends_until_they_are_acknowledged, 0)                           \
    X(attention_shows_a_unit_again_that_ends_badly_again, 0)                             \
    X(ack_marks_bad_ends_of_a_kind_and_no_other, 0)                                      \
    X(ack_refuses_what_did_not_end_badly_and_marks_nothing, 0)                           \
    X(attention_counts_what_it_does_not_show, 0)                                         \
    X(attention_counts_questions_beyond_its_limit, 0)                                    \
    X(attention_is_of_one_tenant_or_of_all, 0)                                           \
    X(attention_finds_units_that_no_worker_claims, 0)                                    \
    X(attention_finds_sessions_that_no_worker_takes, HF_CONFORM_WAITS)                   \
    X(attention_looks_for_workers_beyond_the_most_urgent_thousand, 0)                    \
    X(attention_finds_a_limit_whose_holders_are_all_silent, 0)                           \
    X(queues_are_counted_by_name, 0)                                                     \
    X(holders_are_listed_and_two_at_once_are_twins, 0)                                   \
    X(holders_of_sessions_have_the_leases_of_those, HF_CONFORM_SESSIONS)                 \
    X(ages_are_of_open_units_and_of_what_is_left_of_leases, 0)                           \
    X(ages_count_the_lease_of_an_open_turn_once, HF_CONFORM_SESSIONS)

#define CASES_OF_EFFECT(X)                                                               \
    X(d39_an_effect_is_begun_once_and_settled_once, HF_CONFORM_SESSIONS)                 \
    X(d39_a_repeated_step_begins_and_settles_nothing_again, HF_CONFORM_SESSIONS)         \
    X(d39_the_next_owner_is_shown_what_is_open_and_what_waits_for_a_retry,               \
      HF_CONFORM_SESSIONS)                                                               \
    X(d39_a_lost_or_lapsed_lease_settles_nothing, HF_CONFORM_SESSIONS)                   \
    X(d39_a_renewed_lease_keeps_a_long_effect, HF_CONFORM_SESSIONS)                      \
    X(d39_an_effect_is_of_its_turn_alone, HF_CONFORM_SESSIONS)                           \
    X(d39_a_released_turn_goes_on_with_its_journal_if_its_session_did_not,               \
      HF_CONFORM_SESSIONS)                                                               \
    X(d39_a_turn_that_is_set_aside_is_no_damage, HF_CONFORM_SESSIONS)                    \
    X(d39_a_released_turn_repeats_no_effect_that_asks_unless_the_operator_says_so,       \
      HF_CONFORM_SESSIONS)                                                               \
    X(d39_a_released_turn_begins_anew_where_repetitions_do_no_harm, HF_CONFORM_SESSIONS) \
    X(d39_what_a_turn_used_is_counted_once_whether_or_not_it_is_committed,               \
      HF_CONFORM_SESSIONS)                                                               \
    X(d39_bad_effects_are_refused_by_field_and_write_nothing, HF_CONFORM_SESSIONS)       \
    X(d39_blobs_of_a_step_are_stored_once_and_read_by_their_hash, HF_CONFORM_SESSIONS)   \
    X(d39_unknown_effects_are_listed_until_the_session_goes_on, HF_CONFORM_SESSIONS)     \
    X(d39_the_journal_survives_a_reopen, HF_CONFORM_SESSIONS | HF_CONFORM_AGAIN)

#define CASES_OF_JOURNAL(X)                                                              \
    X(d39_a_recorded_outcome_replays_and_is_settled_once, HF_CONFORM_SESSIONS)           \
    X(d39_a_key_with_another_envelope_is_a_mismatch, HF_CONFORM_SESSIONS)                \
    X(d39_a_renewed_effect_of_a_scope_keeps_others_busy, HF_CONFORM_SESSIONS)            \
    X(d39_a_lapsed_effect_of_a_scope_is_taken_over_by_its_class, HF_CONFORM_SESSIONS)    \
    X(d39_a_holder_that_lost_its_effect_records_nothing, HF_CONFORM_SESSIONS)            \
    X(d39_a_begin_with_its_nonce_is_answered_again, HF_CONFORM_SESSIONS)                 \
    X(d39_a_scope_is_retired_by_its_exact_name, HF_CONFORM_SESSIONS)                     \
    X(d39_prune_takes_the_effects_of_a_process_with_it, HF_CONFORM_SESSIONS)             \
    X(d39_process_prune_takes_the_effects_of_a_process_with_it,                          \
      HF_CONFORM_SESSIONS | HF_CONFORM_PROCESSES)                                        \
    X(d39_an_effect_of_a_scope_that_is_unknown_is_listed_until_it_is_resolved,           \
      HF_CONFORM_SESSIONS)                                                               \
    X(d39_an_effect_of_a_scope_is_resolved_once, HF_CONFORM_SESSIONS)                    \
    X(d39_a_lapsed_effect_of_a_scope_is_listed_where_no_begin_helps,                     \
      HF_CONFORM_SESSIONS)                                                               \
    X(d39_unknown_effects_of_scopes_are_listed_in_pages, HF_CONFORM_SESSIONS)            \
    X(d39_a_bad_resolution_of_an_effect_is_refused_by_field, HF_CONFORM_SESSIONS)        \
    X(d39_bad_effects_of_scopes_are_refused_by_field, HF_CONFORM_SESSIONS)               \
    X(d39_the_journal_of_scopes_survives_a_reopen, HF_CONFORM_SESSIONS | HF_CONFORM_AGAIN)

#define CASES(X)                                                                         \
    CASES_OF_CREATE(X)                                                                   \
    CASES_OF_CLAIM(X)                                                                    \
    CASES_OF_SHARE(X)                                                                    \
    CASES_OF_TIME(X)                                                                     \
    CASES_OF_LEASE(X)                                                                    \
    CASES_OF_SESSION(X)                                                                  \
    CASES_OF_MATRIX(X)                                                                   \
    CASES_OF_SETTLE(X)                                                                   \
    CASES_OF_WAIT(X)                                                                     \
    CASES_OF_RETRY(X)                                                                    \
    CASES_OF_READ(X)                                                                     \
    CASES_OF_FEED(X)                                                                     \
    CASES_OF_LIFE(X)                                                                     \
    CASES_OF_LIMITS(X)                                                                   \
    CASES_OF_SCHEDULE(X)                                                                 \
    CASES_OF_TRIGGER(X)                                                                  \
    CASES_OF_LISTS(X)                                                                    \
    CASES_OF_PROCESS(X)                                                                  \
    CASES_OF_WATCH(X)                                                                    \
    CASES_OF_TALK(X)                                                                     \
    CASES_OF_COMMIT(X)                                                                   \
    CASES_OF_AWAY(X)                                                                     \
    CASES_OF_EFFECT(X)                                                                   \
    CASES_OF_JOURNAL(X)

#define X(name, needs) void conform_##name(struct hf_conform *t);
CASES(X)
#undef X

#endif
