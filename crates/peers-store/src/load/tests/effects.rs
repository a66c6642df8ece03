//! For each key a test that fails when changing the key changes nothing.
//!
//! A key that is new in the description fails here until its test is named.

use std::collections::BTreeSet;

use peers_model::config::Config;
use peers_model::goal::GoalsFile;
use peers_model::keys::{self, Shape, Table};

const START: &str = "crates/peers-run/src/boot/options.rs";
const REACHES: &str = "a_key_of_the_configuration_that_is_changed_changes_the_loop";
const BUDGETS: &str = "crates/peers-core/tests/loop_rows/budgets.rs";
const HEALTH: &str = "crates/peers-core/tests/loop_rows/health.rs";
const STREAKS: &str = "crates/peers-core/tests/loop_rows/streaks.rs";
const IDLE: &str = "crates/peers-core/tests/loop_rows/idle.rs";
const TRIAL: &str = "crates/peers-core/tests/loop_rows/trial.rs";
const WAITING: &str = "crates/peers-core/tests/loop_rows/waiting.rs";
const SKEPTICS: &str = "crates/peers-core/tests/loop_rows/skeptics.rs";
const PEERS: &str = "crates/peers-run/tests/procs/peers.rs";
const AGENTS: &str = "crates/peers-run/tests/procs/agents.rs";
const GATES: &str = "crates/peers-run/tests/procs/gates.rs";
const TOOLS: &str = "crates/peers-tools/src/registry.rs";
const ACP: &str = "crates/peers-tools/src/acp/command.rs";
const ASKS: &str = "crates/peers-acp/tests/bridge.rs";
const LOAD: &str = "crates/peers-store/src/load/tests.rs";
const REVIEWS: &str = "crates/peers-core/src/reviews/tests.rs";
const KEYS: &str = "crates/peers-run/tests/procs/keys.rs";
const GATE_KEYS: &str = "crates/peers-run/tests/real_loop/gate_keys.rs";
const STATUS: &str = "crates/peers-view/src/tests/status.rs";
const HOOKS: &str = "crates/peers-run/tests/real_loop/hooks.rs";
const AROUND: &str = "hooks_run_one_after_the_other_around_turns_and_gates_and_at_the_end";
const HALT: &str = "halt_runs_for_every_other_stop_once_the_exit_is_recorded";
const FAILING: &str = "a_hook_that_fails_hangs_or_is_not_there_is_told_and_changes_nothing";
const COMPLETING: &str = "crates/peers-core/tests/loop_rows/completing.rs";
const ENV: &str = "crates/peers-run/src/env.rs";
const OUTPUT: &str = "crates/peers-run/src/procs/output.rs";
const REVIEWING: &str = "crates/peers-core/tests/loop_rows/reviewing.rs";

/// Key, file of the test, the test. A key may have several.
const CONFIG: &[(&str, &str, &str)] = &[
    ("driver", "crates/peers-setup/src/init/tests.rs", "a_driver_is_written_into_the_config_and_accepted"),
    ("comm", START, REACHES),
    (
        "comm",
        "crates/peers-core/tests/loop_rows/delivery.rs",
        "row_63_messages_of_two_senders_have_their_own_numbers_and_arrive_once",
    ),
    (
        "peers",
        "crates/peers-core/tests/loop_rows/delivery.rs",
        "row_62_config_order_wins_health_is_kept_and_the_active_peer_stays_active",
    ),
    ("peers[].name", PEERS, "git_in_a_peers_turn_commits_in_the_peers_name"),
    (
        "peers[].tool",
        PEERS,
        "row_20_a_silent_claude_that_writes_its_session_is_alive_and_a_silent_codex_is_not",
    ),
    ("peers[].argv", PEERS, "exit_code_and_signal_are_told_apart"),
    (
        "peers[].prompt_mode",
        PEERS,
        "row_33_a_prompt_that_is_too_long_for_an_argument_goes_through_a_private_file",
    ),
    ("peers[].role", HEALTH, "row_42_a_spare_goes_only_when_all_others_are_out"),
    ("peers[].model", TOOLS, "model_reasoning_and_provider_become_arguments_only_where_they_are_absent"),
    ("peers[].reasoning", TOOLS, "model_reasoning_and_provider_become_arguments_only_where_they_are_absent"),
    ("peers[].provider", TOOLS, "a_provider_of_another_house_brings_its_key_and_only_that"),
    ("peers[].permissions", ACP, "the_bridge_gets_the_prompt_and_the_agents_own_argv_stays_as_it_is"),
    ("peers[].permissions", ASKS, "a_permission_is_answered_by_policy_and_never_for_good_where_once_will_do"),
    ("tools", LOAD, "a_tools_map_becomes_peers_in_the_order_of_the_file"),
    ("tools.*.argv", LOAD, "a_tools_map_becomes_peers_in_the_order_of_the_file"),
    ("tools.*.prompt_mode", LOAD, "each_field_of_a_tool_is_that_of_its_peer"),
    ("tools.*.model", LOAD, "each_field_of_a_tool_is_that_of_its_peer"),
    ("tools.*.reasoning", LOAD, "each_field_of_a_tool_is_that_of_its_peer"),
    ("tools.*.provider", LOAD, "each_field_of_a_tool_is_that_of_its_peer"),
    ("tools.*.permissions", LOAD, "each_field_of_a_tool_is_that_of_its_peer"),
    ("health", START, REACHES),
    ("health.idle_timeout_s", PEERS, "row_17_silence_beyond_the_limit_ends_the_whole_tree"),
    ("health.absolute_max_runtime_s", PEERS, "row_17_endless_output_ends_at_the_total_limit"),
    (
        "health.hang_kill_s",
        PEERS,
        "row_21_a_tree_that_waits_for_nothing_but_itself_is_ended_and_one_that_reads_or_computes_is_kept",
    ),
    (
        "health.buf_cap_bytes",
        PEERS,
        "row_31_usage_of_a_structured_stream_is_read_even_where_the_capture_lost_it",
    ),
    ("health.error_patterns", PEERS, "row_22_an_error_pattern_ends_a_peer_that_would_go_on"),
    ("health.halt_patterns", OUTPUT, "a_halt_pattern_needs_a_failure_or_to_be_the_last_word"),
    ("budget", START, REACHES),
    (
        "budget.max_iterations",
        BUDGETS,
        "row_58_each_budget_stops_at_its_limit_and_the_last_tree_is_judged_once",
    ),
    (
        "budget.max_runtime_s",
        BUDGETS,
        "row_58_each_budget_stops_at_its_limit_and_the_last_tree_is_judged_once",
    ),
    ("budget.max_wall_s", BUDGETS, "row_58_wall_time_is_measured_from_the_start_of_the_run"),
    ("budget.deadline", BUDGETS, "row_58_no_turn_begins_after_the_deadline_and_a_running_one_is_cut_at_it"),
    (
        "budget.max_consecutive_failures",
        BUDGETS,
        "row_58_failures_in_a_row_stop_and_a_success_in_between_does_not",
    ),
    ("budget.max_tokens", BUDGETS, "row_58_each_budget_stops_at_its_limit_and_the_last_tree_is_judged_once"),
    ("budget.max_usd", BUDGETS, "row_58_each_budget_stops_at_its_limit_and_the_last_tree_is_judged_once"),
    ("budget.max_usd_mode", BUDGETS, "row_58_money_hard_stops_warn_warns_once_and_off_says_nothing"),
    ("budget.max_tokens_since_progress", WAITING, "spending_without_progress_ends_the_run"),
    ("budget.max_usd_since_progress", WAITING, "spending_without_progress_ends_the_run"),
    (
        "budget.per_peer",
        BUDGETS,
        "row_58_a_peer_over_its_own_cap_takes_no_more_turns_and_the_run_ends_when_none_is_left",
    ),
    (
        "budget.per_peer.*.max_tokens",
        BUDGETS,
        "row_58_a_peer_over_its_own_cap_takes_no_more_turns_and_the_run_ends_when_none_is_left",
    ),
    (
        "budget.per_peer.*.max_usd",
        BUDGETS,
        "row_58_a_peer_over_its_own_cap_takes_no_more_turns_and_the_run_ends_when_none_is_left",
    ),
    ("goals", START, REACHES),
    ("goals.timeout_s", GATES, "the_limit_of_the_configuration_holds_for_a_gate_without_its_own"),
    // Nothing counts up to it yet: docs/formats/config.md says so.
    ("goals.convergence_n", "crates/peers-view/src/tests/info.rs", ""),
    ("goals.stuck_halt_after", STREAKS, "row_56_a_gate_that_is_red_for_five_ticks_stops_after_exactly_five"),
    ("goals.stuck_halt_gates", STREAKS, "row_56_a_gate_that_nobody_watches_never_stops"),
    ("goals.idle_halt_after", IDLE, "row_56_zero_never_stops_and_a_third_peer_has_its_share"),
    ("goals.trial_s", TRIAL, "ctrl_c_skips_it_the_time_limit_ends_it_and_another_signal_stops"),
    ("goals.soft_consensus_required", REVIEWING, "soft_goals_that_are_not_required_are_not_waited_for"),
    (
        "goals.env",
        "tests/e2e/cli_money.rs",
        "a_variable_that_goals_env_asks_for_and_gates_do_not_get_is_named",
    ),
    ("goals.env", GATES, "a_gate_knows_where_it_is_and_nothing_of_the_operator"),
    ("goals.parallel", GATES, "a_daemon_without_a_trace_is_counted_for_the_gate_that_runs_alone"),
    (
        "bug_hunt",
        "crates/peers-core/src/classify_path.rs",
        "globs_of_the_operator_add_tests_and_take_none_away",
    ),
    (
        "bug_hunt.test_globs",
        "crates/peers-checks/src/tests/bug_ledger.rs",
        "a_glob_of_the_operator_makes_a_reproducer_of_a_file",
    ),
    ("max_retries", START, REACHES),
    ("recovery_interval", HEALTH, "row_41_an_interval_of_zero_never_tries_again"),
    ("on_peer_unavailable", START, REACHES),
    ("rate_limit_max_wait_s", START, REACHES),
    (
        "prices",
        AGENTS,
        "what_a_tool_gives_no_figure_for_is_priced_by_the_table_and_the_operator_may_change_it",
    ),
    (
        "prices.*.input",
        AGENTS,
        "what_a_tool_gives_no_figure_for_is_priced_by_the_table_and_the_operator_may_change_it",
    ),
    (
        "prices.*.cached_input",
        AGENTS,
        "what_a_tool_gives_no_figure_for_is_priced_by_the_table_and_the_operator_may_change_it",
    ),
    ("prices.*.cache_write", "crates/peers-tools/src/prices.rs", ""),
    (
        "prices.*.output",
        AGENTS,
        "what_a_tool_gives_no_figure_for_is_priced_by_the_table_and_the_operator_may_change_it",
    ),
    ("skeptic", START, REACHES),
    ("skeptic.enabled", SKEPTICS, "row_53_without_a_skeptic_the_proof_comes_at_once"),
    ("skeptic.rounds", SKEPTICS, "row_53_two_rounds_are_by_two_peers"),
    ("skeptic.max_attempts", SKEPTICS, "row_54_three_of_them_are_stuck"),
    ("prompt", START, REACHES),
    (
        "prompt.max_bytes",
        "crates/peers-core/src/prompt/tests.rs",
        "a_hundred_and_thirty_chatty_gates_keep_the_budget_and_the_worst_is_shown",
    ),
    ("verify", "crates/peers-run/tests/procs/verify.rs", "extra_commands_pass_with_exit_code_zero"),
    (
        "verify.timeout_s",
        "crates/peers-run/tests/procs/verify.rs",
        "the_limit_of_verify_stands_before_that_of_the_goals",
    ),
    ("verify.commands", "crates/peers-run/tests/procs/verify.rs", "extra_commands_pass_with_exit_code_zero"),
    (
        "verify.commands[].name",
        "crates/peers-run/tests/procs/verify.rs",
        "extra_commands_pass_with_exit_code_zero",
    ),
    (
        "verify.commands[].cmd",
        "crates/peers-run/tests/procs/verify.rs",
        "extra_commands_pass_with_exit_code_zero",
    ),
    (
        "verify.commands[].timeout_s",
        "crates/peers-run/tests/procs/verify.rs",
        "extra_commands_pass_with_exit_code_zero",
    ),
    ("observability", PEERS, "a_silent_peer_leaves_no_log_and_no_copy_is_made_where_none_is_wanted"),
    ("goals.strict_tree", GATE_KEYS, "with_strict_tree_a_gate_that_changes_the_work_tree_is_red_and_named"),
    ("setup", GATE_KEYS, "row_69_setup_makes_what_a_clean_checkout_lacks"),
    ("setup.commands", GATE_KEYS, "row_69_setup_makes_what_a_clean_checkout_lacks"),
    ("setup.commands[].cmd", KEYS, "where_the_setup_fails_every_gate_is_red"),
    ("setup.commands[].timeout_s", KEYS, "a_setup_at_its_limit_is_red"),
    ("setup.paths", KEYS, "a_pristine_tree_is_set_up_each_time_and_a_copy_when_its_files_change"),
    (
        "pipeline_gates",
        GATE_KEYS,
        "row_65_where_peers_are_unconfined_expensive_gates_run_between_turns_and_that_is_said",
    ),
    (
        "observability.tee_stream",
        PEERS,
        "a_silent_peer_leaves_no_log_and_no_copy_is_made_where_none_is_wanted",
    ),
    ("hooks", HOOKS, AROUND),
    ("hooks.pre_turn", HOOKS, AROUND),
    ("hooks.pre_turn[].cmd", HOOKS, AROUND),
    ("hooks.pre_turn[].timeout_s", HOOKS, FAILING),
    ("hooks.post_turn", HOOKS, AROUND),
    ("hooks.post_turn[].cmd", HOOKS, AROUND),
    ("hooks.post_turn[].timeout_s", HOOKS, FAILING),
    ("hooks.pre_gate", HOOKS, AROUND),
    ("hooks.pre_gate[].cmd", HOOKS, AROUND),
    ("hooks.pre_gate[].timeout_s", HOOKS, FAILING),
    ("hooks.post_gate", HOOKS, AROUND),
    ("hooks.post_gate[].cmd", HOOKS, AROUND),
    ("hooks.post_gate[].timeout_s", HOOKS, FAILING),
    ("hooks.converge", HOOKS, AROUND),
    ("hooks.converge[].cmd", HOOKS, AROUND),
    ("hooks.converge[].timeout_s", HOOKS, FAILING),
    ("hooks.halt", HOOKS, HALT),
    ("hooks.halt[].cmd", HOOKS, HALT),
    ("hooks.halt[].timeout_s", HOOKS, FAILING),
];

const GOALS: &[(&str, &str, &str)] = &[
    ("goals", LOAD, "empty_goals_are_no_goals"),
    ("goals[].id", LOAD, "goals_that_make_no_sense_are_found_by_id_and_key"),
    ("goals[].type", LOAD, "goals_that_make_no_sense_are_found_by_id_and_key"),
    ("goals[].description", "crates/peers-core/src/prompt/tests.rs", "a_full_prompt_says_everything"),
    ("goals[].cmd", GATES, "verdicts_come_in_the_order_of_the_goals"),
    ("goals[].check", GATES, "a_check_is_our_own_program_with_its_three_answers"),
    (
        "goals[].check",
        REVIEWING,
        "what_the_check_of_a_review_finds_is_shown_to_its_reviewer_and_decides_nothing",
    ),
    ("goals[].args", GATES, "a_check_is_our_own_program_with_its_three_answers"),
    ("goals[].pass_when", GATES, "a_gate_may_judge_a_file_that_it_wrote"),
    ("goals[].timeout_s", GATES, "a_gate_at_its_limit_is_ended_with_children_that_left_its_group"),
    ("goals[].retry_on_fail", GATES, "a_flaky_gate_gets_another_chance_and_a_slow_one_does_not"),
    ("goals[].tree", COMPLETING, "row_69_a_gate_marked_live_is_exempt_and_named"),
    (
        "goals[].prompt",
        "crates/peers-core/src/prompt/tests.rs",
        "every_requested_review_is_named_even_when_instructions_are_cut",
    ),
    ("goals[].reviewer", REVIEWS, "alternating_takes_reviews_in_turn_only"),
    ("goals[].consensus_needed", REVIEWS, "row_51_two_peers_are_two_reviews"),
    ("goals[].quorum", REVIEWS, "two_and_three_peers_agree_by_every_rule_as_the_matrix_says"),
    ("goals[].review_interval", REVIEWING, "a_review_is_asked_for_only_where_it_can_help_and_not_too_often"),
    ("goals[].paths", "crates/peers-core/src/scope.rs", "globs_hold_what_people_expect"),
    ("goals[].paths", KEYS, "paths_say_what_a_kept_answer_is_about"),
    ("goals[].tree", KEYS, "a_gate_that_wants_a_copy_of_the_commit_runs_there"),
    ("goals[].cacheable", KEYS, "a_green_answer_outlives_the_process_for_the_same_tree_alone"),
    ("goals[].expensive", KEYS, "a_gate_that_wants_a_copy_of_the_commit_runs_there"),
    ("goals[].serial", KEYS, "a_serial_gate_has_the_machine_for_itself"),
    ("goals[].needs", KEYS, "a_gate_waits_for_what_it_needs_and_is_skipped_when_that_is_red"),
    ("goals[].env", ENV, "a_gate_gets_a_variable_only_if_project_and_operator_both_name_it"),
    ("goals[].cwd", KEYS, "a_gate_starts_in_its_directory_and_judges_files_from_the_top"),
    ("goals[].group", STATUS, "groups_and_weights_are_shown"),
    ("goals[].weight", STATUS, "groups_and_weights_are_shown"),
];

/// Every key below `table`, by its path: `budget.max_usd`, `peers[].name`, `budget.per_peer.*.max_usd`.
fn below(table: &'static Table, path: &str, keys: &mut BTreeSet<String>) {
    for key in table.keys {
        let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        inside(&key.shape, path.clone(), keys);
        keys.insert(path);
    }
}

fn inside(shape: &'static Shape, path: String, keys: &mut BTreeSet<String>) {
    match shape {
        Shape::Table(table) => below(table, &path, keys),
        Shape::List { of, .. } => inside(of, path + "[]", keys),
        Shape::Named { of, .. } => inside(of, path + ".*", keys),
        Shape::Maybe(of) => inside(of, path, keys),
        Shape::Switch
        | Shape::Whole { .. }
        | Shape::Amount
        | Shape::Price
        | Shape::Text(_)
        | Shape::Word { .. } => {}
    }
}

fn check(table: &'static Table, named: &[(&str, &str, &str)]) {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut keys = BTreeSet::new();
    below(table, "", &mut keys);
    let with_test: BTreeSet<String> = named.iter().map(|(key, _, _)| (*key).to_owned()).collect();
    assert_eq!(keys, with_test, "left: keys; right: keys with a test that changing them changes something");
    for (key, file, test) in named {
        let text = std::fs::read_to_string(format!("{top}/{file}")).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(
            test.is_empty() || text.contains(&format!("fn {test}(")),
            "{key}: {file} has no test `{test}`"
        );
    }
}

#[test]
fn each_key_of_the_configuration_has_a_test_that_changing_it_changes_something() {
    check(keys::of::<Config>(), CONFIG);
}

#[test]
fn each_key_of_the_goals_has_a_test_that_changing_it_changes_something() {
    check(keys::of::<GoalsFile>(), GOALS);
}
