//! What a loop asks of its operator: (stop reason, liveness, facts) to level, word and command.

use super::*;

use super::row::asked;
use super::row::held;
use super::row::row;

fn stopped(reason: StopReason) -> World {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(reason, "what it said");
    world
}

fn said(attention: &Attention) -> (Level, &str, Option<&str>) {
    (attention.top.level, attention.top.code, attention.top.action.as_deref())
}

fn codes(attention: &Attention) -> Vec<&str> {
    std::iter::once(&attention.top).chain(&attention.others).map(|cause| cause.code).collect()
}

#[test]
fn state_and_outcome_follow_the_table() {
    for (reason, state, outcome) in [
        (StopReason::Complete, LoopState::Stopped, "converged"),
        (StopReason::Budget(BudgetKind::MaxUsd), LoopState::Stopped, "limit"),
        (StopReason::Unjudged(goal("x")), LoopState::Stopped, "stuck"),
        (StopReason::ParkedProof, LoopState::Stopped, "paused"),
        (StopReason::Tamper(TamperKind::Store), LoopState::Stopped, "integrity"),
        (StopReason::Error(ErrorKind::Git), LoopState::Crashed, "error"),
    ] {
        let row = row(&stopped(reason));
        assert_eq!((row.state, row.outcome.as_deref()), (state, Some(outcome)));
    }
}

#[test]
fn a_finished_branch_is_taken_home_once() {
    let mut world = stopped(StopReason::Complete);
    world.amend(|record| {
        (record.own_branch, record.branch, record.head) = (true, Some("work".into()), Some(commit('b')));
    });
    let land = "peers -C /home/ann/repo land";
    assert_eq!(said(&row(&world).attention), (Level::Done, "complete", Some(land)));
    assert_eq!(said(&world.view().attention), (Level::Done, "complete", Some("peers land")));
    let landed = OperatorOp::Landed { run: world.run.clone(), into: "main".into(), commit: commit('c') };
    world.alone(operator(landed));
    for attention in [row(&world).attention, world.view().attention] {
        assert_eq!((attention.top.level, attention.others.len()), (Level::Idle, 0), "{attention:?}");
    }
}

#[test]
fn a_landing_counts_for_the_run_whose_branch_it_was() {
    // The branch that an earlier run of two made.
    let world = |branches: [&str; 2], landed: usize| {
        let mut world = World::running();
        let ids = ["00000000000000aa", "00000000000000bb"].map(|id| RunId::new(id).unwrap());
        world.exit(StopReason::MaxTicks, "");
        world.run = ids[1].clone();
        world.start(rules());
        world.exit(StopReason::MaxTicks, "");
        for (record, branch) in runs::all(world.store.disk()).unwrap().iter_mut().zip(branches) {
            record.branch = Some(branch.into());
            if record.run_id == ids[1] {
                record.started_at = Timestamp::from_millis(world.now - 1);
            }
            runs::write(world.store.disk(), record).unwrap();
        }
        let (run, into) = (ids[landed].clone(), "main".into());
        world.alone(operator(OperatorOp::Landed { run, into, commit: commit('c') }));
        (row(&world).attention.level(), world.view().attention.level())
    };
    assert_eq!(world(["work", "other"], 1), (Level::Idle, Level::Idle));
    assert_eq!(world(["work", "work"], 0), (Level::Idle, Level::Idle));
    assert_eq!(world(["work", "other"], 0), (Level::Watch, Level::Watch), "the branch of another run");
}

#[test]
fn a_landing_does_not_count_for_a_run_that_began_after_it() {
    let mut world = stopped(StopReason::MaxTicks);
    let landed = OperatorOp::Landed { run: world.run.clone(), into: "main".into(), commit: commit('c') };
    world.alone(operator(landed));
    let after = world.now + 1;
    world.another_run("00000000000000bb");
    world.exit(StopReason::MaxTicks, "");
    world.amend(|record| record.started_at = Timestamp::from_millis(after));
    assert_eq!((row(&world).attention.level(), world.view().landed), (Level::Watch, None));
}

#[test]
fn what_is_alarming_stays_so_when_the_branch_was_undone() {
    let mut world = stopped(StopReason::Tamper(TamperKind::History));
    let undone = OperatorOp::Undone {
        run: world.run.clone(),
        from: commit('b'),
        to: commit('a'),
        salvage: "refs/x".into(),
    };
    world.alone(operator(undone));
    assert_eq!(row(&world).attention.top.code, "tamper");
    assert_eq!(row(&world).attention.level(), Level::Act);
}

#[test]
fn a_crash_says_how_and_a_start_takes_it_up() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    for (boot, outcome, says) in [
        (Some(super::BOOT), "killed", "crashed in tick 1 of claude: its process is gone without a word"),
        (Some("another"), "host_rebooted", "crashed in tick 1 of claude: the machine was restarted since"),
        (None, "lost", "crashed in tick 1 of claude: what became of its process is not known"),
    ] {
        let row = LoopRow::read(
            &mut world.disk(),
            &Asked { boot_id: boot.map(str::to_owned), ..asked(&world, Lock::Free) },
        );
        assert_eq!((row.state, row.outcome.as_deref()), (LoopState::Crashed, Some(outcome)));
        assert_eq!(said(&row.attention), (Level::Act, "crashed", Some("peers-ctl start billing")));
        assert_eq!(row.attention.top.why, says);
    }
}

#[test]
fn a_loop_that_works_asks_for_nothing() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    let row = held(&world);
    assert_eq!(said(&row.attention), (Level::Ok, "running", None));
    assert_eq!(row.attention.top.why, "tick 1 of claude for 2m");
    assert!(row.attention.others.is_empty());
    let fresh = row_of_fresh();
    assert_eq!(said(&fresh.attention), (Level::Idle, "fresh", Some("peers-ctl start billing")));
    let command = Lock::Command { pid: Some(9), command: "land".into() };
    let row = LoopRow::read(&mut world.disk(), &asked(&world, command));
    assert_eq!(said(&row.attention), (Level::Ok, "command", None));
}

fn row_of_fresh() -> LoopRow {
    row(&World::new())
}

#[test]
fn what_is_not_known_for_two_minutes_needs_somebody() {
    let world = World::running();
    let at = |ms: Option<i64>| {
        let mut asked = asked(&world, Lock::Free);
        asked.listed.unknown = Some(Unknown {
            since: ms.map(|ms| Timestamp::from_millis(asked.now.as_millis() - ms)),
            outcome: Some("path_missing".into()),
            why: "the directory is gone".into(),
            nobody: false,
        });
        let row = LoopRow::read(&mut world.disk(), &asked);
        assert_eq!((row.state, row.outcome.as_deref()), (LoopState::Unknown, Some("path_missing")));
        row.attention
    };
    assert_eq!(said(&at(Some(120_000))), (Level::Watch, "unknown", Some("peers-ctl doctor billing")));
    assert_eq!(at(Some(120_001)).level(), Level::Act);
    assert_eq!(at(None).level(), Level::Act);
    let row = LoopRow::read(&mut world.disk(), &asked(&world, Lock::Unreadable("no right".into())));
    assert_eq!(row.state, LoopState::Unknown);
    assert_eq!(row.attention.top.why, "it is not known whether the loop runs: no right");
}

#[test]
fn the_most_urgent_stands_first_and_the_others_are_listed() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.exit.usage.usd = Some(Usd::from_micros(4_500_000)));
    world.begin_tick(2, "codex");
    let mut asked = asked(&world, super::row::lock(&world));
    asked.free_bytes = Some(1024 * 1024 * 1024 - 1);
    let attention = LoopRow::read(&mut world.disk(), &asked).attention;
    assert_eq!(said(&attention), (Level::Act, "disk-low", Some("df -h /home/ann/repo")));
    assert_eq!(codes(&attention), ["disk-low", "cap-near"]);
    asked.full = Some("/state/peers".into());
    let attention = LoopRow::read(&mut world.disk(), &asked).attention;
    assert_eq!(said(&attention), (Level::Act, "disk-low", Some("df -h /state/peers")));
    assert!(attention.top.why.ends_with("free for its trusted store"), "{}", attention.top.why);
    asked.free_bytes = Some(1024 * 1024 * 1024);
    let attention = LoopRow::read(&mut world.disk(), &asked).attention;
    assert_eq!(codes(&attention), ["cap-near"]);
    assert_eq!(attention.top.why, "90% of its money: $4.50 of $5.00");
    assert_eq!(attention.top.action.unwrap(), "peers-ctl budget raise billing --usd +3");
}

#[test]
fn the_version_of_a_loop_that_runs_is_compared_with_this_program() {
    let world = World::running();
    let code = |version: &str| {
        let mut asked = asked(&world, super::row::lock(&world));
        asked.version = version.to_owned();
        let attention = LoopRow::read(&mut world.disk(), &asked).attention;
        (attention.top.level, attention.top.code, attention.top.action)
    };
    let restart = Some("peers-ctl restart billing".to_owned());
    assert_eq!(code("0.1.0").1, "running");
    assert_eq!(code("0.1.1"), (Level::Watch, "version-drift", restart.clone()));
    assert_eq!(code("0.2.0"), (Level::Act, "version-drift", restart.clone()));
    assert_eq!(code("1.1.0"), (Level::Act, "version-drift", restart));
}

#[test]
fn a_loop_in_which_nothing_moves_needs_somebody() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    let at = |ms: i64, change: &dyn Fn(&mut Asked)| {
        let mut asked = asked(&world, super::row::lock(&world));
        asked.now = Timestamp::from_millis(world.now + ms);
        asked.heard = None;
        change(&mut asked);
        let attention = LoopRow::read(&mut world.disk(), &asked).attention;
        (attention.top.code, attention.top.action)
    };
    // A peer is ended after nine seconds here.
    assert_eq!(at(18_000, &|_| {}).0, "running");
    assert_eq!(at(18_001, &|_| {}), ("silent", Some("peers-ctl logs billing".into())));
    let heard = Timestamp::from_millis(world.now + 60_000);
    assert_eq!(at(70_000, &|asked| asked.heard = Some(heard)).0, "running");
    assert_eq!(at(70_000, &|asked| asked.gates_since = Some(heard)).0, "running");
    assert_eq!(at(90_000, &|asked| asked.heard = Some(heard)).0, "silent");
}

#[test]
fn the_output_of_a_peer_below_the_own_directory_counts_as_a_sign_of_life() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    let logs = world.path("peers/log/peers");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("tick-00001-claude.stream.jsonl"), "x").unwrap();
    // The file is of today, which is long after the journal.
    let asked = Asked { heard: None, ..asked(&world, super::row::lock(&world)) };
    assert_eq!(LoopRow::read(&mut world.disk(), &asked).attention.top.code, "running");
    std::fs::remove_file(logs.join("tick-00001-claude.stream.jsonl")).unwrap();
    assert_eq!(LoopRow::read(&mut world.disk(), &asked).attention.top.code, "silent");
}

#[test]
fn a_peer_that_is_silent_for_long_is_told_before_it_is_too_long() {
    let mut world = World::running();
    world.budget("{max_iterations: 10}");
    world.begin_tick(1, "claude");
    let why = |ms: i64| {
        let mut asked = asked(&world, super::row::lock(&world));
        (asked.now, asked.heard) = (Timestamp::from_millis(world.now + 120_000), None);
        let heard = Some(Timestamp::from_millis(world.now + 120_000 - ms));
        LoopRow::read(&mut world.disk(), &Asked { heard, ..asked }).attention.top.why
    };
    assert_eq!(why(59_999), "tick 1 of claude for 2m");
    assert_eq!(why(60_000), "tick 1 of claude for 2m, silent for 1m (ended after 15m)");
}

#[test]
fn a_peer_that_is_silent_for_ten_minutes_or_was_ended_for_it_is_worth_a_look() {
    let mut world = World::running();
    world.budget("{max_iterations: 10}");
    world.begin_tick(1, "claude");
    let top = |world: &World, ms: i64| {
        let mut asked = asked(world, super::row::lock(world));
        asked.now = Timestamp::from_millis(world.now + ms);
        asked.heard = Some(Timestamp::from_millis(world.now));
        let top = LoopRow::read(&mut world.disk(), &asked).attention.top;
        (top.level, top.code, top.why, top.action)
    };
    assert_eq!(top(&world, 599_999).1, "running");
    let peek = Some("peers-ctl peek billing".to_owned());
    let why = "claude has printed nothing for 10m (it is ended after 15m)".to_owned();
    assert_eq!(top(&world, 600_000), (Level::Watch, "peer-silent", why, peek.clone()));
    world.end_tick(1, "claude", |tick| tick.classification = "idle-timeout".into());
    world.begin_tick(2, "codex");
    let (level, code, why, action) = top(&world, 1000);
    assert_eq!((level, code, action), (Level::Watch, "peer-silent", peek));
    assert_eq!(why, "claude was ended for its silence in tick 1");
}

#[test]
fn of_a_stuck_gate_the_command_is_told_and_its_whole_output_is_read_next() {
    let mut world = World::running();
    world
        .accept_goals("goals:\n- {id: tests-pass, type: hard, cmd: cargo test, pass_when: exit_code == 0}\n");
    world.tick(1, "claude", |_| {});
    world.gates(1, vec![judged("tests-pass", 'b', red("3 failed"))]);
    world.exit(StopReason::StuckGate(goal("tests-pass")), "");
    let logs = world.path("peers/log/gates");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("tick-00001-tests-pass.log"), "x").unwrap();
    let log = "/home/ann/repo/.peers/log/gates/tick-00001-tests-pass.log";
    let top = row(&world).attention.top;
    assert_eq!(top.action.unwrap(), format!("less {log}"));
    assert_eq!(top.why, "stuck:tests-pass: `cargo test`: 3 failed");
    // The same wherever it is asked for.
    let view = LoopView::read(&mut world.disk(), &asked(&world, Lock::Free));
    let step = format!(
        "read what it printed (`less {log}`) and help or change the goal (`peers -C /home/ann/repo goals edit`), then `peers-ctl start billing`"
    );
    assert_eq!(crate::next_step(&view).unwrap(), step);
}

#[test]
fn files_that_cannot_be_read_need_somebody() {
    let world = World::new();
    let goals = world.path("peers/goals.yaml");
    let _none = std::fs::remove_file(&goals);
    std::os::unix::fs::symlink("/etc/passwd", &goals).unwrap();
    for attention in [row(&world).attention, world.view().attention] {
        assert_eq!((attention.top.level, attention.top.code), (Level::Act, "unreadable-files"));
        assert!(attention.top.why.contains(".peers/goals.yaml ("), "{}", attention.top.why);
    }
}

#[test]
fn who_waits_for_its_service_is_watched_with_the_time_and_silence_is_no_sign_then() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let until = Timestamp::from_millis(world.now + 3_600_000);
    let cooling =
        Cooling { peer: name("claude"), until, streak: 1, cause: WaitCause::RateLimit, since: None };
    world.append(Record::Cooling(cooling));
    let asked = Asked { heard: None, ..asked(&world, super::row::lock(&world)) };
    let attention = LoopRow::read(&mut world.disk(), &asked).attention;
    assert_eq!(said(&attention), (Level::Watch, "peer-waiting", None));
    assert!(attention.top.why.starts_with("claude waits until 23:13 UTC, 57m"), "{}", attention.top.why);
    assert!(!codes(&attention).contains(&"silent"));
}

#[test]
fn a_peer_that_is_out_is_watched() {
    let mut world = World::new();
    let mut rules = rules();
    rules.continue_without_peer = true;
    world.start(rules);
    world.tick(1, "claude", |tick| {
        refuse(tick, ApiClass::Auth);
    });
    world.begin_tick(2, "codex");
    let attention = held(&world).attention;
    assert!(codes(&attention).contains(&"peer-unavailable"), "{attention:?}");
    let cause =
        std::iter::once(&attention.top).chain(&attention.others).find(|c| c.code == "peer-unavailable");
    assert_eq!(cause.unwrap().action.as_deref(), Some("peers-ctl doctor billing --live"));
}

#[test]
fn gates_failures_reviews_and_skeptics_are_watched() {
    let mut world = World::running();
    for tick in 1..=3 {
        world.tick(tick, "claude", |_| {});
        world.gates(tick, vec![judged("tests-pass", 'b', red("3 failed"))]);
    }
    let attention = held(&world).attention;
    let read = "peers -C /home/ann/repo verify --only tests-pass";
    assert_eq!(said(&attention), (Level::Watch, "gate-red", Some(read)));
    assert_eq!(attention.top.why, "tests-pass is red for 3 ticks: 3 failed");
    world.gates(3, vec![judged("tests-pass", 'b', Verdict::Pass)]);
    for tick in 4..=5 {
        world.tick(tick, "codex", |tick| {
            fail(tick, TickOutcome::PeerFailed);
            tick.exit.class = ExitClass::Nonzero;
        });
    }
    let attention = held(&world).attention;
    assert_eq!(said(&attention), (Level::Watch, "failures", Some("peers-ctl replay billing --from-tick 5")));
    assert_eq!(attention.top.why, "2 turns failed in a row (the loop stops at 5)");
    let mut world = World::running();
    world.tick(1, "codex", |tick| tick.skeptic = Some(SkepticVerdict::Found));
    let attention = held(&world).attention;
    assert_eq!(
        said(&attention),
        (Level::Watch, "reopened", Some("peers -C /home/ann/repo bug-hunt summary"))
    );
}

#[test]
fn reviewers_who_disagree_are_watched() {
    use peers_model::record::{AcceptedReview, ScopeMove};
    let mut world = World::running();
    for (tick, peer, pass, sha) in [(1, "claude", true, 'c'), (2, "codex", false, 'd')] {
        world.tick(tick, peer, |tick| {
            let scope = ScopeMove { before: "s".into(), after: "s".into() };
            tick.scopes.insert(goal("docs-read"), scope);
            tick.reviews = vec![AcceptedReview {
                goal: goal("docs-read"),
                pass,
                sha: commit(sha),
                notes: String::new(),
            }];
        });
    }
    let row = held(&world);
    assert_eq!(said(&row.attention), (Level::Watch, "review-split", Some("peers-ctl review billing")));
    assert_eq!(row.attention.top.why, "reviewers disagree about docs-read");
}

#[test]
fn a_long_time_without_a_commit_is_watched_by_the_records_of_the_loop() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let last = world.now;
    world.tick(2, "codex", |tick| tick.commits.clear());
    world.begin_tick(3, "claude");
    let at = |ms: i64| {
        let mut asked = asked(&world, super::row::lock(&world));
        asked.now = Timestamp::from_millis(last + ms);
        asked.heard = Some(asked.now);
        LoopRow::read(&mut world.disk(), &asked).attention
    };
    assert_eq!(at(45 * 60_000).top.code, "running");
    let attention = at(49 * 60_000);
    assert_eq!(said(&attention), (Level::Watch, "no-commit", Some("peers-ctl peek billing")));
    assert_eq!(attention.top.why, "no commit for 49m");
    assert_eq!(attention.top.since, Some(Timestamp::from_millis(last)));
}

#[test]
fn a_cap_that_will_not_last_is_watched_before_it_is_near() {
    let mut world = World::running();
    // Three clean ticks are asked for, each takes 0.50 of the 2.60; this spends 1.50 and none was clean.
    world.budget("{max_usd: 2.6}");
    for tick in 1..=3 {
        world.tick(tick, "claude", |tick| tick.blocking_report = true);
    }
    let attention = held(&world).attention;
    assert_eq!(codes(&attention), ["cap-ahead"]);
    assert_eq!(attention.top.why, "its money will not last until it can be complete: $1.50 of $2.60");
    world.budget("{max_usd: 3.0}");
    assert_eq!(held(&world).attention.top.code, "running");
}

#[test]
fn files_that_nobody_accepted_need_somebody_whether_it_runs_or_not() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let config = peers_store::accept::read_bytes(&mut world.disk(), "config.yaml").unwrap().unwrap();
    std::fs::write(world.path("peers/config.yaml"), config).unwrap();
    std::fs::write(world.path("peers/goals.yaml"), "goals: []\n# more\n").unwrap();
    for attention in [held(&world).attention, row(&world).attention] {
        let cause = std::iter::once(&attention.top).chain(&attention.others).find(|c| c.code == "unaccepted");
        let cause = cause.unwrap();
        assert_eq!(cause.why, ".peers/goals.yaml changed and the change was not accepted");
        assert_eq!(cause.action.as_deref(), Some("peers -C /home/ann/repo goals diff"));
        assert_eq!(cause.level, Level::Act);
    }
    std::fs::write(world.path("peers/goals.yaml"), "goals: [}\n").unwrap();
    assert!(codes(&held(&world).attention).contains(&"unreadable-files"));
}

#[test]
fn a_mirror_that_somebody_changed_needs_somebody_until_the_next_run() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.append(Record::MirrorRestored(MirrorRestored { tick: Some(TickNo(1)), what: "differed".into() }));
    for attention in [held(&world).attention, world.view_held().attention] {
        let all = || std::iter::once(&attention.top).chain(&attention.others);
        let cause = all().find(|cause| cause.code == "mirror-changed").unwrap();
        assert_eq!((cause.level, cause.action.is_some()), (Level::Act, true));
        assert!(cause.why.contains("in tick 1"), "{}", cause.why);
    }
    world.exit(StopReason::MaxTicks, "");
    world.another_run("00000000000000bb");
    assert_eq!(held(&world).attention.top.code, "running");
}

#[test]
fn a_damaged_journal_a_move_that_was_cut_short_and_a_refusal_need_somebody() {
    let mut world = stopped(StopReason::MaxTicks);
    let what = BranchMove {
        kind: MoveKind::Land,
        run: world.run.clone(),
        branch: "main".into(),
        from: commit('a'),
        to: commit('b'),
        workdir: None,
    };
    world.alone(operator(OperatorOp::Moving(what)));
    let mut asked = asked(&world, Lock::Free);
    asked.refusals = vec!["git is missing; install it".into(), "x".into()];
    let attention = LoopRow::read(&mut world.disk(), &asked).attention;
    assert_eq!(codes(&attention), ["cut-short", "refused", "max-ticks"]);
    assert_eq!(attention.top.action.as_deref(), Some("peers -C /home/ann/repo land"));
    assert_eq!(attention.others[0].why, "a start would refuse: git is missing; install it (and 1 more)");
    super::unreadable::damage(&world);
    let attention = LoopRow::read(&mut world.disk(), &asked).attention;
    assert_eq!(attention.top.code, "journal-damaged");
    assert_eq!(attention.top.action.as_deref(), Some("peers -C /home/ann/repo state check"));
}

#[test]
fn a_name_or_path_that_cannot_be_typed_gives_no_command() {
    let world = stopped(StopReason::ParkedProof);
    let mut asked = asked(&world, Lock::Free);
    asked.spelling =
        Spelling::Ctl { name: "billing".into(), dir: "/srv/a\u{202e}b".into(), config_dir: None };
    assert_eq!(LoopRow::read(&mut world.disk(), &asked).attention.top.action, None);
    asked.spelling = Spelling::Ctl { name: "b".into(), dir: "/srv/a b;c".into(), config_dir: None };
    let action = LoopRow::read(&mut world.disk(), &asked).attention.top.action;
    assert_eq!(
        action.as_deref(),
        Some("peers -C '/srv/a b;c' goals edit --config, then peers-ctl resume b --start")
    );
}

#[test]
fn a_run_that_worked_elsewhere_is_gone_on_with_there() {
    let mut world = World::running();
    let mut record = run_record(&world.run);
    record.workdir = "/home/ann/tree of it".into();
    runs::write(world.store.disk(), &record).unwrap();
    let asked = world.asked(Lock::Free);
    let view = world.read(&asked);
    assert_eq!(said(&view.attention), (Level::Act, "crashed", Some("peers -C '/home/ann/tree of it' run")));
}
