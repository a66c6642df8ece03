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
const WALLS: &str = "tests/e2e/walls.rs";
const GATE_KEYS: &str = "crates/peers-run/tests/real_loop/gate_keys.rs";
const STATUS: &str = "crates/peers-view/src/tests/status.rs";
const HOOKS: &str = "crates/peers-run/tests/real_loop/hooks.rs";
const AROUND: &str = "hooks_run_one_after_the_other_around_turns_and_gates_and_at_the_end";
const HALT: &str = "halt_runs_for_every_other_stop_once_the_exit_is_recorded";
const FAILING: &str = "a_hook_that_fails_hangs_or_is_not_there_is_told_and_changes_nothing";
const COMPLETING: &str = "crates/peers-core/tests/loop_rows/completing.rs";
const ENV: &str = "crates/peers-run/src/env/tests.rs";
const OUTPUT: &str = "crates/peers-run/src/procs/output.rs";
const REVIEWING: &str = "crates/peers-core/tests/loop_rows/reviewing.rs";
const DELIVERY: &str = "crates/peers-core/tests/loop_rows/delivery.rs";
const PROMPT: &str = "crates/peers-core/src/prompt/tests.rs";
const COURSE: &str = "crates/peers-core/src/course.rs";
const PHASES: &str = "crates/peers-core/src/phases.rs";
const IMPLEMENT: &str = "tests/e2e/implement.rs";
const VERIFY: &str = "crates/peers-run/tests/procs/verify.rs";

/// File of a test, the test, the keys that it shows. A key may have several.
const CONFIG: &[(&str, &str, &str)] = &[
    ("crates/peers-setup/src/init/tests.rs", "a_driver_is_written_into_the_config_and_accepted", "driver"),
    (
        START,
        REACHES,
        "comm health budget goals max_retries on_peer_unavailable rate_limit_max_wait_s \
         skeptic prompt",
    ),
    (DELIVERY, "row_63_messages_of_two_senders_have_their_own_numbers_and_arrive_once", "comm"),
    (DELIVERY, "row_62_config_order_wins_health_is_kept_and_the_active_peer_stays_active", "peers"),
    (PEERS, "git_in_a_peers_turn_commits_in_the_peers_name", "peers[].name"),
    (
        PEERS,
        "row_20_a_silent_claude_that_writes_its_session_is_alive_and_a_silent_codex_is_not",
        "peers[].tool",
    ),
    (PEERS, "exit_code_and_signal_are_told_apart", "peers[].argv"),
    (
        PEERS,
        "row_33_a_prompt_that_is_too_long_for_an_argument_goes_through_a_private_file",
        "peers[].prompt_mode",
    ),
    (HEALTH, "row_42_a_spare_goes_only_when_all_others_are_out", "peers[].role"),
    (
        TOOLS,
        "model_reasoning_and_provider_become_arguments_only_where_they_are_absent",
        "peers[].model peers[].reasoning",
    ),
    (TOOLS, "a_provider_of_another_house_brings_its_key_and_only_that", "peers[].provider"),
    (ACP, "the_bridge_gets_the_prompt_and_the_agents_own_argv_stays_as_it_is", "peers[].permissions"),
    (ASKS, "a_permission_is_answered_by_policy_and_never_for_good_where_once_will_do", "peers[].permissions"),
    (LOAD, "a_tools_map_becomes_peers_in_the_order_of_the_file", "tools tools.*.argv"),
    (
        LOAD,
        "each_field_of_a_tool_is_that_of_its_peer",
        "tools.*.prompt_mode tools.*.model tools.*.reasoning tools.*.provider \
         tools.*.permissions",
    ),
    (PEERS, "row_17_silence_beyond_the_limit_ends_the_whole_tree", "health.idle_timeout_s"),
    (PEERS, "row_17_endless_output_ends_at_the_total_limit", "health.absolute_max_runtime_s"),
    (
        PEERS,
        "row_21_a_tree_that_waits_for_nothing_but_itself_is_ended_and_one_that_reads_or_computes_is_kept",
        "health.hang_kill_s",
    ),
    (
        PEERS,
        "row_31_usage_of_a_structured_stream_is_read_even_where_the_capture_lost_it",
        "health.buf_cap_bytes",
    ),
    (PEERS, "row_22_an_error_pattern_ends_a_peer_that_would_go_on", "health.error_patterns"),
    (OUTPUT, "a_halt_pattern_needs_a_failure_or_to_be_the_last_word", "health.halt_patterns"),
    (
        BUDGETS,
        "row_58_each_budget_stops_at_its_limit_and_the_last_tree_is_judged_once",
        "budget.max_iterations budget.max_runtime_s budget.max_tokens budget.max_usd",
    ),
    (BUDGETS, "row_58_wall_time_is_measured_from_the_start_of_the_run", "budget.max_wall_s"),
    (BUDGETS, "row_58_no_turn_begins_after_the_deadline_and_a_running_one_is_cut_at_it", "budget.deadline"),
    (
        BUDGETS,
        "row_58_failures_in_a_row_stop_and_a_success_in_between_does_not",
        "budget.max_consecutive_failures",
    ),
    (BUDGETS, "row_58_money_hard_stops_warn_warns_once_and_off_says_nothing", "budget.max_usd_mode"),
    (
        WAITING,
        "spending_without_progress_ends_the_run",
        "budget.max_tokens_since_progress budget.max_usd_since_progress",
    ),
    (
        BUDGETS,
        "row_58_a_peer_over_its_own_cap_takes_no_more_turns_and_the_run_ends_when_none_is_left",
        "budget.per_peer budget.per_peer.*.max_tokens budget.per_peer.*.max_usd",
    ),
    (GATES, "the_limit_of_the_configuration_holds_for_a_gate_without_its_own", "goals.timeout_s"),
    // Nothing counts up to it yet: docs/formats/config.md says so.
    ("crates/peers-view/src/tests/info.rs", "", "goals.convergence_n"),
    (STREAKS, "row_56_a_gate_that_is_red_for_five_ticks_stops_after_exactly_five", "goals.stuck_halt_after"),
    (STREAKS, "row_56_a_gate_that_nobody_watches_never_stops", "goals.stuck_halt_gates"),
    (IDLE, "row_56_zero_never_stops_and_a_third_peer_has_its_share", "goals.idle_halt_after"),
    (TRIAL, "ctrl_c_skips_it_the_time_limit_ends_it_and_another_signal_stops", "goals.trial_s"),
    (REVIEWING, "soft_goals_that_are_not_required_are_not_waited_for", "goals.soft_consensus_required"),
    (
        "tests/e2e/cli_money.rs",
        "a_variable_that_goals_env_asks_for_and_gates_do_not_get_is_named",
        "goals.env",
    ),
    (GATES, "a_gate_knows_where_it_is_and_nothing_of_the_operator", "goals.env"),
    (GATES, "a_daemon_without_a_trace_is_counted_for_the_gate_that_runs_alone", "goals.parallel"),
    (
        "crates/peers-core/src/classify_path.rs",
        "globs_of_the_operator_add_tests_and_take_none_away",
        "bug_hunt",
    ),
    (
        "crates/peers-checks/src/tests/bug_ledger.rs",
        "a_glob_of_the_operator_makes_a_reproducer_of_a_file",
        "bug_hunt.test_globs",
    ),
    (
        "crates/peers-checks/src/tests/sources.rs",
        "the_operator_says_where_sources_are_and_that_there_may_be_none",
        "checks checks.layout checks.allow_empty",
    ),
    (
        "crates/peers-checks/src/tests/no_secrets.rs",
        "row_15_a_private_key_in_a_file_fails_unless_exactly_it_is_allowed",
        "checks.allow_secrets",
    ),
    (
        "crates/peers-checks/src/tests/suite.rs",
        "the_operators_command_stands_for_all_runners",
        "checks.test_command checks.test_report",
    ),
    (HEALTH, "row_41_an_interval_of_zero_never_tries_again", "recovery_interval"),
    (
        AGENTS,
        "what_a_tool_gives_no_figure_for_is_priced_by_the_table_and_the_operator_may_change_it",
        "prices prices.*.input prices.*.cached_input prices.*.output",
    ),
    ("crates/peers-tools/src/prices.rs", "", "prices.*.cache_write"),
    (SKEPTICS, "row_53_without_a_skeptic_the_proof_comes_at_once", "skeptic.enabled"),
    (SKEPTICS, "row_53_two_rounds_are_by_two_peers", "skeptic.rounds"),
    (SKEPTICS, "row_54_three_of_them_are_stuck", "skeptic.max_attempts"),
    (PROMPT, "a_hundred_and_thirty_chatty_gates_keep_the_budget_and_the_worst_is_shown", "prompt.max_bytes"),
    (
        VERIFY,
        "extra_commands_pass_with_exit_code_zero",
        "verify verify.commands verify.commands[].name verify.commands[].cmd \
         verify.commands[].timeout_s",
    ),
    (VERIFY, "the_limit_of_verify_stands_before_that_of_the_goals", "verify.timeout_s"),
    (
        PEERS,
        "a_silent_peer_leaves_no_log_and_no_copy_is_made_where_none_is_wanted",
        "observability observability.tee_stream",
    ),
    (
        WALLS,
        "a_project_may_ask_for_a_better_wall_and_a_closed_network",
        "sandbox sandbox.require sandbox.net",
    ),
    (GATE_KEYS, "with_strict_tree_a_gate_that_changes_the_work_tree_is_red_and_named", "goals.strict_tree"),
    (GATE_KEYS, "row_69_setup_makes_what_a_clean_checkout_lacks", "setup setup.commands"),
    (KEYS, "where_the_setup_fails_every_gate_is_red", "setup.commands[].cmd"),
    (KEYS, "a_setup_at_its_limit_is_red", "setup.commands[].timeout_s"),
    (KEYS, "a_pristine_tree_is_set_up_each_time_and_a_copy_when_its_files_change", "setup.paths"),
    (
        GATE_KEYS,
        "row_65_where_peers_are_unconfined_expensive_gates_run_between_turns_and_that_is_said",
        "pipeline_gates",
    ),
    (
        HOOKS,
        AROUND,
        "hooks hooks.pre_turn hooks.pre_turn[].cmd hooks.post_turn hooks.post_turn[].cmd \
         hooks.pre_gate hooks.pre_gate[].cmd hooks.post_gate hooks.post_gate[].cmd \
         hooks.converge hooks.converge[].cmd",
    ),
    (
        HOOKS,
        FAILING,
        "hooks.pre_turn[].timeout_s hooks.post_turn[].timeout_s hooks.pre_gate[].timeout_s \
         hooks.post_gate[].timeout_s hooks.converge[].timeout_s hooks.halt[].timeout_s",
    ),
    (HOOKS, HALT, "hooks.halt hooks.halt[].cmd"),
];

const GOALS: &[(&str, &str, &str)] = &[
    (LOAD, "empty_goals_are_no_goals", "goals"),
    (LOAD, "goals_that_make_no_sense_are_found_by_id_and_key", "goals[].id goals[].type"),
    (PROMPT, "a_full_prompt_says_everything", "goals[].description"),
    (GATES, "verdicts_come_in_the_order_of_the_goals", "goals[].cmd"),
    (GATES, "a_check_is_our_own_program_with_its_three_answers", "goals[].check goals[].args"),
    (
        REVIEWING,
        "what_the_check_of_a_review_finds_is_shown_to_its_reviewer_and_decides_nothing",
        "goals[].check",
    ),
    (GATES, "a_gate_may_judge_a_file_that_it_wrote", "goals[].pass_when"),
    (GATES, "a_gate_at_its_limit_is_ended_with_children_that_left_its_group", "goals[].timeout_s"),
    (GATES, "a_flaky_gate_gets_another_chance_and_a_slow_one_does_not", "goals[].retry_on_fail"),
    (COMPLETING, "row_69_a_gate_marked_live_is_exempt_and_named", "goals[].tree"),
    (PROMPT, "every_requested_review_is_named_even_when_instructions_are_cut", "goals[].prompt"),
    (REVIEWS, "alternating_takes_reviews_in_turn_only", "goals[].reviewer"),
    (REVIEWS, "row_51_two_peers_are_two_reviews", "goals[].consensus_needed"),
    (REVIEWS, "two_and_three_peers_agree_by_every_rule_as_the_matrix_says", "goals[].quorum"),
    (REVIEWING, "a_review_is_asked_for_only_where_it_can_help_and_not_too_often", "goals[].review_interval"),
    ("crates/peers-core/src/scope.rs", "globs_hold_what_people_expect", "goals[].paths"),
    (KEYS, "paths_say_what_a_kept_answer_is_about", "goals[].paths"),
    (KEYS, "a_gate_that_wants_a_copy_of_the_commit_runs_there", "goals[].tree goals[].expensive"),
    (KEYS, "a_green_answer_outlives_the_process_for_the_same_tree_alone", "goals[].cacheable"),
    (KEYS, "a_serial_gate_has_the_machine_for_itself", "goals[].serial"),
    (KEYS, "a_gate_waits_for_what_it_needs_and_is_skipped_when_that_is_red", "goals[].needs"),
    (ENV, "a_gate_gets_a_variable_only_if_project_and_operator_both_name_it", "goals[].env"),
    (KEYS, "a_gate_starts_in_its_directory_and_judges_files_from_the_top", "goals[].cwd"),
    (
        PHASES,
        "an_artifact_has_its_size_its_sections_and_each_step",
        "phases[].least_bytes phases[].sections phases[].each_step",
    ),
    (COURSE, "row_76_gates_stay_green_for_as_long_as_the_plan_asks_and_then_two_ticks_more", "settle"),
    (
        IMPLEMENT,
        "a_phase_without_its_artifact_stops_the_run_after_three_turns",
        "phases phases[].artifact phases[].name phases[].prompt",
    ),
    (IMPLEMENT, "built", "phases[].steps"),
    (
        STATUS,
        "a_loop_that_runs_shows_gates_reviews_peers_budget_ticks_and_warnings",
        "goals[].group goals[].weight",
    ),
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
    let with_test = named.iter().flat_map(|(_, _, keys)| keys.split(' ')).map(str::to_owned);
    let with_test: BTreeSet<String> = with_test.collect();
    assert_eq!(keys, with_test, "left: keys; right: keys with a test that changing them changes something");
    for (file, test, keys) in named {
        let text = std::fs::read_to_string(format!("{top}/{file}")).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(
            test.is_empty() || text.contains(&format!("fn {test}(")),
            "{keys}: {file} has no test `{test}`"
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
