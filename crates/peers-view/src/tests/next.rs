//! What an operator is told to do next, and what a gate said that is red.

use super::*;

/// Writes goals and, as they were accepted but for a last line, the configuration.
fn write_files(world: &World, goals: &str, more: Option<&str>) {
    let accepted = peers_store::accept::read_bytes(&mut world.disk(), "config.yaml").unwrap().unwrap();
    let config = String::from_utf8(accepted).unwrap();
    let config = more.map_or(config.clone(), |more| format!("{config}{more}\n"));
    std::fs::write(world.path("peers/goals.yaml"), goals).unwrap();
    std::fs::write(world.path("peers/config.yaml"), config).unwrap();
}

#[test]
fn a_run_that_is_stuck_says_what_its_gate_said_and_where_all_of_it_is() {
    let raw = "pass_when returned False; exit_code=1; stdout-tail=''; stderr-tail='======\nFAIL: t\nAssertionError: 3 != 2.5\n'";
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.gates(1, vec![judged("tests-pass", 'b', red(raw))]);
    let reason = StopReason::StuckGate(goal("tests-pass"));
    world.exit(reason.clone(), raw);
    let short = "AssertionError: 3 != 2.5 (exit_code=1)";
    let text = world.text();
    assert!(text.contains(&format!("stuck:tests-pass: {short} (exit 11)\n")), "{text}");
    let logs = world.path("peers/log/gates");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("tick-00001-tests-pass.log"), "x").unwrap();
    let log = ".peers/log/gates/tick-00001-tests-pass.log";
    let text = world.text();
    assert!(text.contains(&format!("stuck:tests-pass: {short}; its output: {log} (exit 11)\n")), "{text}");
    let view = world.view();
    let told = red_gate(Some(&view), &reason, raw).unwrap();
    assert_eq!(told, format!("tests-pass is red: {short}; its output: {log}"));
    assert_eq!(red_gate(None, &reason, raw), Some(format!("tests-pass is red: {short}")));
    assert_eq!(red_gate(Some(&view), &StopReason::MaxTicks, raw), None);
    let json: Value = serde_json::from_str(&status_json(&view)).unwrap();
    assert_eq!(json["loop"]["value"]["gates"][0]["log"], log);
    for told in [world.text(), report_markdown(&world.report())] {
        assert!(!told.contains("stderr-tail="), "{told}");
    }
}

#[test]
fn a_run_at_its_tick_limit_goes_on_or_is_taken_home_by_commands() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::MaxTicks, "");
    assert_eq!(next_step(&world.view()).unwrap(), "`peers run` goes on, or leave it as it is");
    world.amend(|record| {
        (record.own_branch, record.branch, record.head) = (true, Some("work".into()), Some(commit('b')));
    });
    let land = "goes on; `peers land` merges what it has";
    assert_eq!(next_step(&world.view()).unwrap(), format!("`peers run` {land}"));
    world.amend(|record| record.workdir = "/data/apart".into());
    assert_eq!(next_step(&world.view()).unwrap(), format!("`peers -C /data/apart run` {land}"));
    // A cap of money that holds for one start is given again.
    world.amend(|record| record.request.max_usd = Usd::from_f64(20.5));
    let step = next_step(&world.view()).unwrap();
    assert!(step.starts_with("`peers -C /data/apart run --max-usd 20.50` "), "{step}");
    // What it passed over would stop the next start.
    world.amend(|record| record.request.anyway = true);
    let step = next_step(&world.view()).unwrap();
    assert!(step.starts_with("`peers -C /data/apart run --max-usd 20.50 --anyway` "), "{step}");
}

#[test]
fn how_a_run_in_a_worktree_goes_on_is_said_once() {
    for reason in [
        StopReason::MaxTicks,
        StopReason::StuckGate(goal("tests-pass")),
        StopReason::Budget(BudgetKind::MaxWall),
        StopReason::Budget(BudgetKind::MaxConsecutiveFailures),
        StopReason::AllPeersDegraded,
        StopReason::Error(ErrorKind::Io),
    ] {
        let mut world = World::running();
        world.exit(reason, "");
        world.amend(|record| {
            record.workdir = "/data/apart".into();
        });
        let step = next_step(&world.view()).unwrap();
        assert_eq!(step.matches("`peers -C /data/apart run`").count(), 1, "{step}");
        assert!(!step.contains("run again") && !step.contains("to go on"), "{step}");
    }
}

#[test]
fn a_run_that_ended_without_a_peer_names_it_and_what_helps_it() {
    let ended = |reason: StopReason| {
        let mut world = World::running();
        world.tick(1, "claude", |_| {});
        world.tick(2, "codex", |tick| {
            fail(tick, TickOutcome::NeedsOperator);
            tick.exit.api = ApiClass::Auth;
            tick.soft_fail_reason = Some("its service does not know it".into());
        });
        world.tick(3, "claude", |_| {});
        world.exit(reason, "");
        let view = world.view();
        let alerts: Vec<String> =
            view.alerts.iter().filter(|alert| alert.kind == "peer").map(|alert| alert.text.clone()).collect();
        let closing = closing(&view);
        assert!(alerts.iter().all(|alert| closing.contains(&format!("alert: {alert}"))), "{closing:?}");
        assert!(alerts.iter().all(|alert| world.text().contains(alert)), "{}", world.text());
        let report = report_markdown(&world.report());
        assert_eq!(
            report.matches("**Alert**: `codex has no turns after tick 2").count(),
            alerts.len(),
            "{report}"
        );
        (alerts, next_step(&view).unwrap_or_default())
    };
    let (alerts, _) = ended(StopReason::Complete);
    let [alert] = alerts.as_slice() else { panic!("{alerts:?}") };
    for says in
        ["codex has no turns after tick 2, it needs its operator: ", "; log `codex` in (`codex login`"]
    {
        assert!(alert.contains(says), "{alert}");
    }
    assert!(!alert.contains("run again"), "{alert}");
    // Beside the one for which the run stopped, whose remedy is the next step.
    let (alerts, next) = ended(StopReason::PeerUnavailable(name("claude")));
    assert!(alerts.len() == 1 && next.contains("`claude`") && !next.contains("codex"), "{alerts:?} {next}");
    assert_eq!(ended(StopReason::PeerUnavailable(name("codex"))).0, [""; 0]);
}

#[test]
fn who_is_degraded_or_waits_or_is_blocked_is_named_at_the_end_only() {
    let mut world = World::running();
    for tick in 1..=3 {
        world.tick(tick, "claude", |tick| {
            fail(tick, TickOutcome::PeerFailed);
            tick.exit.class = ExitClass::Nonzero;
        });
    }
    world.tick(4, "codex", |tick| {
        block(tick, "no database");
    });
    assert_eq!(world.view_held().alerts, []);
    world.exit(StopReason::MaxTicks, "");
    let view = world.view();
    let alerts: Vec<&str> = view.alerts.iter().map(|alert| alert.text.as_str()).collect();
    let [first, second] = alerts.as_slice() else { panic!("{alerts:?}") };
    assert!(
        first.starts_with("claude had no turns after tick 3, it is degraded: \"its last 3 turns"),
        "{first}"
    );
    let says = "codex says since tick 4 that it is blocked: \"no database\"; once that is seen to: ";
    assert_eq!(*second, format!("{says}`peers ack blocked:codex --reason TEXT`"));
}

#[test]
fn words_of_a_peer_never_look_like_a_command_of_ours() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        fail(tick, TickOutcome::Blocked);
        tick.blocked_on = Some("x\"; once that is seen to: `rm -rf`".into());
    });
    world.tick(2, "codex", |tick| {
        fail(tick, TickOutcome::NeedsOperator);
        tick.soft_fail_reason = Some("no; log in: `rm -rf`".into());
    });
    world.exit(StopReason::MaxTicks, "");
    let view = world.view();
    let alerts: Vec<&str> = view.alerts.iter().map(|alert| alert.text.as_str()).collect();
    let [first, second] = alerts.as_slice() else { panic!("{alerts:?}") };
    assert!(first.contains("\"x'; once that is seen to: 'rm -rf'\"; once that is"), "{first}");
    assert!(second.contains(": \"no; log in: 'rm -rf'\"; check why"), "{second}");
}

#[test]
fn a_peer_that_failed_in_each_of_its_last_turns_is_named_at_the_end() {
    let alerts = |held: bool, fails: &[u64]| {
        let mut world = World::running();
        for tick in 1..=4 {
            let (who, failed) = (["codex", "claude"][usize::from(tick % 2 == 0)], fails.contains(&tick));
            world.tick(tick, who, |tick| {
                if failed {
                    fail(tick, TickOutcome::PeerFailed);
                    tick.soft_fail_reason = Some("no `model`".into());
                }
            });
        }
        if held {
            return world.view_held().alerts;
        }
        world.exit(StopReason::MaxTicks, "");
        world.view().alerts
    };
    let named = alerts(false, &[2, 4]);
    let [alert] = named.as_slice() else { panic!("{named:?}") };
    assert_eq!(alert.kind, "peer");
    assert_eq!(alert.text, "claude failed in each of its last 2 turns: \"no 'model'\"; see `peers replay 4`");
    assert_eq!(alerts(false, &[4]), [], "one of two");
    assert_eq!(alerts(true, &[2, 4]), [], "while a run works");
}

#[test]
fn a_run_in_which_everybody_waits_says_so() {
    let mut world = World::running();
    let until = Timestamp::from_millis(world.now + 3_600_000);
    let wait = |peer| {
        Record::Cooling(Cooling {
            peer: name(peer),
            until,
            streak: 1,
            cause: WaitCause::UsageCap,
            since: None,
        })
    };
    let waiting = |view: &LoopView| -> Vec<String> {
        view.alerts.iter().filter(|alert| alert.kind == "waiting").map(|alert| alert.text.clone()).collect()
    };
    world.append(wait("claude"));
    assert_eq!(waiting(&world.view_held()), [""; 0], "codex can");
    world.append(wait("codex"));
    let told = waiting(&world.view_held());
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert!(told.starts_with("no peer can have a turn before "), "{told}");
    let why = " UTC: claude waits for the end of its usage cap, codex waits for the end of its usage cap";
    assert!(told.ends_with(why), "{told}");
    assert_eq!(waiting(&world.view()), [""; 0], "no run works");
    let lock = Lock::Held { pid: Some(7), run_id: Some(world.run.to_string()) };
    let mut asked = world.asked(lock);
    asked.gates_since = Some(asked.now);
    assert_eq!(waiting(&world.read(&asked)), [""; 0], "gates run");
    world.begin_tick(1, "claude");
    assert_eq!(waiting(&world.view_held()), [""; 0], "a turn is open");
}

#[test]
fn after_the_last_peer_is_acknowledged_the_run_goes_on() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        block(tick, "no database");
    });
    world.exit(StopReason::ParkedBlocked, "claude (tick 1): no database");
    assert!(next_step(&world.view()).unwrap().starts_with("clear what blocks claude"));
    let op = OperatorOp::Ack { target: AckTarget::Blocked(name("claude")), reason: "it runs".into() };
    world.alone(operator(op));
    assert_eq!(next_step(&world.view()).unwrap(), "`peers run` goes on");
}

#[test]
fn files_that_are_not_accepted_come_before_every_next_step() {
    let look = "look at what changed in goals.yaml (`peers goals diff`), then `peers goals accept` or `peers goals restore`";
    for reason in [
        StopReason::Complete,
        StopReason::MaxTicks,
        StopReason::Interrupted(2),
        StopReason::Drained,
        StopReason::Budget(BudgetKind::MaxUsd),
    ] {
        let mut world = World::running();
        world.exit(reason.clone(), "");
        write_files(&world, "goals: []\n# edited\n", None);
        assert_eq!(next_step(&world.view()).as_deref(), Some(look), "{reason}");
        assert!(world.text().contains("goals.yaml differs from what was accepted"), "{}", world.text());
        write_files(&world, "goals: []\n# edited\n", Some("# edited"));
        assert!(world.text().contains("goals.yaml and config.yaml differ from"), "{}", world.text());
    }
    let mut world = World::running();
    write_files(&world, "goals: []\n# edited\n", None);
    assert_eq!(next_step(&world.view()).as_deref(), Some(look), "a run that crashed");
    world.exit(StopReason::Tamper(TamperKind::Store), "");
    let step = next_step(&world.view()).unwrap();
    assert!(step.starts_with("find out who changed it"), "{step}");
    assert!(world.view().attention.others.iter().any(|cause| cause.next.as_deref() == Some(look)));
}

#[test]
fn files_that_a_turn_changed_are_put_back_first() {
    let mut world = World::running();
    write_files(&world, "goals: []\n", None);
    world.exit(StopReason::GoalMutation("goals.yaml".into()), "");
    let step = |world: &World| next_step(&world.view()).unwrap();
    assert_eq!(step(&world), "`peers run` goes on", "restored since");
    write_files(&world, "goals: []\n# edited\n", None);
    assert_eq!(
        step(&world),
        "put goals.yaml back (`peers goals restore`), or look at what changed (`peers goals diff`) and keep it (`peers goals accept`), then `peers run`"
    );
    write_files(&world, "goals: [\n", None);
    let broken = step(&world);
    assert!(
        broken.starts_with(
            "restore the accepted files (`peers goals restore`), or correct .peers/goals.yaml line "
        ),
        "{broken}"
    );
    std::fs::remove_file(world.path("peers/goals.yaml")).unwrap();
    assert!(step(&world).starts_with("put goals.yaml back (`peers goals restore`)"), "{}", step(&world));
}

#[test]
fn a_file_that_cannot_be_read_is_corrected_and_never_accepted() {
    let mut world = World::running();
    write_files(&world, "goals: []\nx: [\n", None);
    let step = |world: &World| next_step(&world.view()).unwrap();
    world.exit(StopReason::MaxTicks, "");
    assert!(step(&world).starts_with("correct .peers/goals.yaml line "), "{}", step(&world));
    write_files(&world, "goals: []\nhelp: 1\n", Some("nonsense: 1"));
    let both = step(&world);
    assert!(
        both.contains(".peers/config.yaml line ") && both.contains(" and .peers/goals.yaml line 2"),
        "{both}"
    );
    assert!(!both.contains("accept"), "{both}");
    let json: Value = world.json();
    assert_eq!(json["setup"]["broken"][1], serde_json::json!({"file": ".peers/goals.yaml", "line": 2}));
}

#[test]
fn files_of_a_worktree_are_looked_at_and_accepted_there() {
    let mut world = World::running();
    world.exit(StopReason::GoalMutation("goals.yaml".into()), "");
    world.amend(|record| {
        record.workdir = "/data/apart".into();
    });
    let there = "put goals.yaml back (`peers -C /data/apart goals restore`), or look at what changed (`peers -C /data/apart goals diff`) and keep it (`peers -C /data/apart goals accept`), then `peers -C /data/apart run`";
    // Those here are as accepted.
    assert!(next_step(&world.view()).unwrap().starts_with(there), "{:?}", next_step(&world.view()));
    write_files(&world, "goals: []\n# edited\n", None);
    let mut asked = world.asked(Lock::Free);
    asked.files_in = Some("/data/apart".into());
    assert_eq!(next_step(&world.read(&asked)).as_deref(), Some(there));
    write_files(&world, "goals: [\n", None);
    let step = next_step(&world.read(&asked)).unwrap();
    assert!(step.contains("or correct /data/apart/.peers/goals.yaml line "), "{step}");
}

#[test]
fn the_text_about_a_halt_says_what_status_says_and_who_needs_the_operator() {
    let mut world = World::running();
    world.tick(1, "codex", |_| {});
    for tick in 2..=6 {
        world.tick(tick, "claude", |tick| {
            fail(tick, TickOutcome::NeedsOperator);
            tick.exit.api = ApiClass::Auth;
            tick.soft_fail_reason = Some("not logged in: \u{1b}[31m`rm -rf`".into());
        });
    }
    world.exit(StopReason::AllPeersDegraded, "");
    let mut view = world.view();
    if let crate::Sourced::Fresh(core) = &mut view.core {
        (core.clean, core.dirty, core.dirty_count) = (Some(false), vec!["?? notes.txt".into()], Some(1));
    }
    let text = crate::halted_markdown(&view);
    for line in [
        "# No peer is left\n",
        "peer-unavailable:all-peers-degraded",
        "- claude is unavailable: `not logged in: 'rm -rf'`; `tick 6: needs-operator in 3m`",
        "- next step for claude: log `claude` in (start `claude` and type `/login`",
        "1 uncommitted path: ?? notes.txt",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(super::is_harmless(&text), "{text}");
    assert!(!text.contains("HALTED.md"), "{text}");
}
