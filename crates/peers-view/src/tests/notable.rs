//! What must not be overlooked, and what comes next.

use super::*;

use peers_store::Disk as _;

const PREWARN: &str =
    "weakened tests: 3 fewer assertions in tests/a.rs; the next turn of that kind is reverted";

fn accepted(rules: Option<peers_model::record::Rules>) -> Record {
    let digests = |goals: &str| Digests { goals: goals.into(), config: "same".into() };
    Record::Operator(OperatorRecord {
        op: OperatorOp::Accepted {
            old: digests("old"),
            new: digests("new"),
            note: None,
            rules: rules.map(Box::new),
        },
        by: "ann".into(),
    })
}

#[test]
fn goals_that_were_accepted_while_a_run_was_live_are_named_everywhere_with_what_changed() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let mut fewer = rules();
    fewer.gates.remove(1);
    fewer.gates[0].digest = "another".into();
    fewer.gates.push(super::gate("new-one"));
    world.append(accepted(Some(fewer)));
    world.exit(StopReason::Complete, "");
    let what = "goals or config accepted while run 00000000000000aa was live, during tick 1 of claude or the gates after it, by `ann`: goals changed; 1 gate gone: lint-clean; 1 gate redefined: tests-pass; 1 gate new: new-one";
    let view = world.view();
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains(&format!("look at:   {what}\n")), "{text}");
    assert!(closing(&view).contains(&format!("  - {what}")), "{:?}", closing(&view));
    let report = report_markdown(&world.report());
    assert!(
        report.contains("## Look at this first\n") && report.contains("1 gate gone: lint-clean"),
        "{report}"
    );
    let json: serde_json::Value = serde_json::from_str(&status_json(&view)).unwrap();
    assert_eq!(json["notable"]["value"]["accepted"][0]["after"], 1);
}

#[test]
fn what_the_operator_accepts_while_nothing_runs_needs_no_second_look() {
    let mut world = World::running();
    world.append(accepted(None));
    assert!(world.text().contains("look at:   goals or config accepted while run"), "{}", world.text());
    assert!(world.text().contains("before the first tick"), "{}", world.text());
    world.exit(StopReason::Drained, "");
    world.alone(accepted(None));
    assert!(!world.text().contains("look at:"), "{}", world.text());
}

#[test]
fn what_is_accepted_between_a_killed_run_and_its_recovery_is_named() {
    let mut world = World::running();
    world.alone(accepted(None));
    let text = world.text();
    assert!(text.contains("accepted after run 00000000000000aa was killed and before what"), "{text}");
}

#[test]
fn a_turn_that_weakened_tests_and_stands_is_named_until_it_is_acknowledged_or_undone() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        tick.prewarned = true;
        tick.warnings_emitted = vec!["something else".into(), PREWARN.into()];
    });
    world.tick(2, "codex", |tick| {
        tick.prewarned = true;
        tick.corrected = Some(peers_model::record::CorrectionKind::Revert);
    });
    world.exit(StopReason::Complete, "");
    let line = "tick 1 of claude weakened tests: 3 fewer assertions in tests/a.rs; the next turn of that kind is reverted";
    let view = world.view();
    assert!(status_text(&view, Colour::Plain).contains(&format!("look at:   {line}\n")));
    assert_eq!(
        closing(&view),
        ["look at this before you trust the result:".to_owned(), format!("  - {line}")]
    );
    world.alone(operator(OperatorOp::Ack { target: AckTarget::Weakening(TickNo(1)), reason: "ok".into() }));
    assert_eq!(closing(&world.view()), Vec::<String>::new());
    let report = world.report();
    assert!(report_markdown(&report).contains("tick 1 of claude weakened tests (acknowledged)"));
    assert!(is_harmless(&report_json(&report)));
    let undone = OperatorOp::Undone {
        run: world.run.clone(),
        from: commit('b'),
        to: commit('a'),
        salvage: "x".into(),
    };
    world.alone(operator(undone));
    let report = world.report();
    assert!(!report_markdown(&report).contains("Look at this first"));
}

#[test]
fn what_is_not_named_for_want_of_room_is_counted_in_every_view() {
    let mut world = World::running();
    for tick in 1..=107 {
        world.tick(tick, "claude", |record| {
            record.prewarned = true;
            record.warnings_emitted = vec![PREWARN.into()];
        });
    }
    world
        .append(operator(OperatorOp::Ack { target: AckTarget::Weakening(TickNo(2)), reason: "fine".into() }));
    let view = world.view();
    let text = status_text(&view, Colour::Plain);
    assert!(
        text.contains("and 101 weakenings more before that; `peers report` lists the newest of them"),
        "{text}"
    );
    let closing = closing(&view);
    assert!(closing.iter().any(|line| line.contains("and 101 weakenings more")), "{closing:?}");
    let report = world.report();
    assert!(report_markdown(&report).contains("And 6 weakenings more before that"));
    for json in [status_json(&view), report_json(&report)] {
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let found = if json["view"].is_object() { &json["view"]["notable"] } else { &json["notable"] };
        assert_eq!(found["value"]["weakened_left_out"], 6, "{found}");
        assert_eq!(found["value"]["weakened"].as_array().map(Vec::len), Some(100));
    }
}

#[test]
fn a_look_that_ended_before_the_beginning_of_the_journal_says_so() {
    let mut world = World::running();
    world.exit(StopReason::Complete, "");
    let mut view = world.view();
    if let Sourced::Fresh(found) = &mut view.notable {
        found.cut = true;
    }
    let words =
        "only the last 16.0 MiB of the journal were looked through for accepted goals and weakened tests";
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains(words), "{text}");
    assert!(closing(&view).iter().any(|line| line.contains(words)));
}

#[test]
fn a_stop_that_is_not_complete_names_five_missing_things_at_most() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.dirty = true);
    world.exit(StopReason::MaxTicks, "");
    let lines = closing(&world.view());
    assert_eq!(lines[0], "5 things are missing for `complete`:");
    assert_eq!(lines.len(), 6, "{lines:?}");
}

#[test]
fn the_cap_of_the_command_line_is_the_one_that_is_shown() {
    let mut world = World::running();
    let mut record = run_record(&world.run);
    record.request.max_usd = peers_model::Usd::from_f64(0.25);
    runs::write(world.store.disk(), &record).unwrap();
    world.tick(1, "claude", |_| {});
    let text = world.text();
    let money = text.lines().find(|line| line.trim().starts_with("money")).unwrap_or_default();
    assert_eq!(money.split_whitespace().collect::<Vec<_>>(), ["money", "$0.50", "of", "$0.25", "200%"]);
}

#[test]
fn a_run_in_a_worktree_of_its_own_says_where_to_go_on_and_how_to_land() {
    let mut world = World::running();
    let mut record = run_record(&world.run);
    (record.workdir, record.own_branch) = ("/data/it's here".into(), true);
    record.branch = Some("peers/aa".into());
    let mut ended = |world: &mut World, reason: StopReason| {
        world.exit(reason.clone(), "");
        record.ended_at = Some(Timestamp::from_millis(world.now));
        record.reason = Some(reason);
        runs::write(world.store.disk(), &record).unwrap();
    };
    ended(&mut world, StopReason::MaxTicks);
    let text = world.text();
    assert!(text.contains(r"next step: `peers -C '/data/it'\''s here' run` goes on; `peers land`"), "{text}");
    assert!(text.contains("works in:  /data/it's here (a worktree of its own)\n"), "{text}");
    let mut asked = world.asked(Lock::Free);
    asked.here = Some("/data/it's here".into());
    let there = world.read(&asked);
    assert!(!next_step(&there).unwrap().contains("-C"));
    world.start(rules());
    ended(&mut world, StopReason::Complete);
    assert_eq!(next_step(&world.view()).unwrap(), "`peers land` takes the branch `peers/aa` home");
}

#[test]
fn a_crash_names_the_command_that_goes_on_as_the_turn_began() {
    let crashed = |dry_run: bool, open: bool, gone: bool| {
        let mut world = World::new();
        world.start(Rules { dry_run, ..rules() });
        let mut record = run_record(&world.run);
        record.workdir = "/data/x".into();
        runs::write(world.store.disk(), &record).unwrap();
        if open {
            world.begin_tick(1, "claude");
        }
        let mut asked = world.asked(Lock::Free);
        asked.gone = gone;
        next_step(&world.read(&asked)).unwrap()
    };
    assert!(
        crashed(true, true, false).starts_with("`peers -C /data/x run --dry-run` goes on where it worked")
    );
    assert!(crashed(true, false, false).starts_with("`peers -C /data/x run` goes on"));
    assert!(crashed(false, true, false).starts_with("`peers -C /data/x run` goes on"));
    assert!(crashed(false, true, true).contains("worktree add -f"));
    let lost = crashed(false, false, true);
    assert!(lost.contains("`peers land` merges it") && !lost.contains("worktree add"), "{lost}");
}

#[test]
fn a_dry_run_that_stopped_elsewhere_goes_on_as_one() {
    let stopped = |dry_run: bool| {
        let mut world = World::new();
        world.start(Rules { dry_run, ..rules() });
        world.exit(StopReason::MaxTicks, "");
        let mut record = run_record(&world.run);
        record.workdir = "/data/x".into();
        record.reason = Some(StopReason::MaxTicks);
        runs::write(world.store.disk(), &record).unwrap();
        next_step(&world.view()).unwrap()
    };
    assert!(stopped(true).starts_with("`peers -C /data/x run --dry-run` goes on"), "{}", stopped(true));
    assert!(stopped(false).starts_with("`peers -C /data/x run` goes on"), "{}", stopped(false));
}

#[test]
fn before_the_first_run_the_placeholder_comes_first_then_the_acceptance() {
    let mut world = World::new();
    let put = |world: &mut World, goals: &str| {
        world.store.disk().publish(Area::Peers, "goals.yaml", goals.as_bytes(), false).unwrap();
        let config = world.store.disk().read(Area::Store, "accepted/config.yaml", 1 << 20).unwrap().unwrap();
        world.store.disk().publish(Area::Peers, "config.yaml", &config, false).unwrap();
    };
    put(
        &mut world,
        "goals:\n- {id: placeholder-replace-me, type: hard, cmd: 'false', pass_when: exit_code == 0}\n",
    );
    assert!(
        world.text().contains("next step: replace the gate `placeholder-replace-me`"),
        "{}",
        world.text()
    );
    put(&mut world, "goals:\n- {id: t, type: hard, cmd: make, pass_when: exit_code == 0}\n");
    assert!(world.text().contains("next step: look at what changed in goals.yaml"), "{}", world.text());
    put(&mut world, "goals: []\n");
    assert!(world.text().contains("next step: start with `peers run`\n"), "{}", world.text());
}

#[test]
fn a_review_counts_for_the_content_at_head_alone() {
    let mut world = World::running();
    for (tick, peer) in [(1, "claude"), (2, "codex")] {
        world.tick(tick, peer, |tick| {
            let sha = commit(if peer == "claude" { 'd' } else { 'e' });
            tick.reviews =
                vec![AcceptedReview { goal: goal("docs-read"), pass: true, sha, notes: String::new() }];
            let scope = ScopeMove { before: "one".into(), after: "one".into() };
            tick.scopes = BTreeMap::from([(goal("docs-read"), scope)]);
        });
    }
    let shown = |scope: Option<&str>| {
        let mut asked = world.asked(Lock::Free);
        asked.git = Sourced::Fresh(GitFacts {
            scopes: scope.map(|scope| (goal("docs-read"), scope.to_owned())).into_iter().collect(),
            ..GitFacts::new(commit('b'))
        });
        let view = world.read(&asked);
        let row = view.core.value().unwrap().soft[0].clone();
        (row.ok, row.share(), row.why)
    };
    assert_eq!((shown(Some("one")).0, shown(Some("one")).1.as_str()), (true, "2/2"));
    assert_eq!((shown(Some("two")).0, shown(Some("two")).1.as_str()), (false, "0/2"));
    let (ok, share, why) = shown(None);
    assert!(!ok && share == "0/2" && why.starts_with("stale?"), "{share} {why}");
}

#[test]
fn why_a_peer_fails_stands_beside_it_with_where_to_read_on() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        fail(tick, TickOutcome::PeerFailed);
        tick.exit.class = peers_model::outcome::ExitClass::Nonzero;
        tick.exit.stderr_tail = "first\nno such \u{1b}[2Jmodel\n\n".into();
    });
    let text = world.text();
    assert!(text.contains("  claude failed last: `no such model`; see `peers replay 1`\n"), "{text}");
}

#[test]
fn a_silence_is_shown_against_its_limit() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    let mut asked = world.asked(Lock::Held { pid: None, run_id: None });
    asked.heard = Some(Timestamp::from_millis(world.now));
    let text = status_text(&world.read(&asked), Colour::Plain);
    assert!(text.contains("tick 1 of claude for 2m, silent for 2m (ended after 9s)"), "{text}");
}

#[test]
fn between_turns_a_wait_is_named() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        fail(tick, TickOutcome::RateLimited);
    });
    world.append(Record::Cooling(peers_model::record::Cooling {
        peer: name("claude"),
        until: Timestamp::from_millis(world.now + 600_000),
        streak: 1,
        cause: peers_model::record::WaitCause::UsageCap,
        since: None,
    }));
    let view = world.view_held();
    let text = status_text(&view, Colour::Plain);
    let until = Timestamp::from_millis(world.now + 599_000).to_string();
    let clock = &until[11..16];
    assert!(text.contains("between turns: claude waits for its service until "), "{text}");
    assert!(text.contains(&format!("{clock} UTC, ")) && text.contains(" from now (usage cap)"), "{text}");
    assert_eq!(view.core.value().unwrap().turn.as_ref().map(ToString::to_string).as_deref(), Some("codex"));
    // It was refused, which is no failure, and why is told once in a line.
    let row = text.lines().find(|line| line.trim().starts_with("healthy  claude")).unwrap();
    assert!(row.contains("; waits until ") && !row.contains("the service asked to wait"), "{row}");
    assert!(!text.contains("failed last"), "{text}");
    let peers = serde_json::to_value(&view.core.value().unwrap().peers).unwrap();
    assert_eq!(
        (&peers[0]["not_before"], &peers[0]["waits_for"]),
        (&until_json(world.now), &"usage-cap".into())
    );
    let report = report_markdown(&world.report());
    assert!(report.contains("(usage cap)` |"), "{report}");
    // Nor is a turn that was cut short one.
    world.tick(2, "codex", |tick| {
        fail(tick, TickOutcome::Interrupted);
    });
    assert!(!world.text().contains("failed last"), "{}", world.text());
    world.tick(3, "codex", |tick| {
        fail(tick, TickOutcome::PeerFailed);
    });
    assert!(world.text().contains("codex failed last: see `peers replay 3`"), "{}", world.text());
}

/// The end of the wait above, as JSON has it.
fn until_json(now: i64) -> serde_json::Value {
    serde_json::to_value(Timestamp::from_millis(now + 599_000)).unwrap()
}

#[test]
fn what_is_in_the_way_of_a_peer_is_told_once_with_the_command_that_answers() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        block(tick, "no database here");
        tick.soft_fail_reason = Some("it says that it is blocked: no database here".into());
    });
    let text = status_text(&world.view_held(), Colour::Plain);
    let row = text.lines().find(|line| line.trim().starts_with("healthy  claude")).unwrap();
    assert!(row.ends_with("; says since tick 1 that it is blocked: no database here"), "{row}");
    assert_eq!(row.matches("no database here").count(), 1, "{row}");
    assert!(
        text.contains("claude has a turn again after `peers ack blocked:claude --reason TEXT`"),
        "{text}"
    );
    assert!(
        text.contains(" TEXT`, in a new run, or after 1 more turn of others that succeeds and "),
        "{text}"
    );
    assert!(!text.contains("failed last"), "{text}");
}

#[test]
fn how_many_turns_of_others_a_blocked_peer_lacks_is_told() {
    let mut world = World::running();
    let blocked = |tick: &mut TickRecord| {
        block(tick, "no database here");
    };
    let moves = |tick: &mut TickRecord| tick.tree_changed = true;
    let left = |world: &World| world.view_held().core.value().unwrap().peers[0].asked_after;
    world.tick(1, "claude", blocked);
    assert_eq!(left(&world), Some(1));
    world.tick(2, "codex", moves);
    assert_eq!(left(&world), None);
    world.tick(3, "claude", blocked);
    assert_eq!(left(&world), Some(2));
    let text = world.text();
    assert!(
        text.contains("or after 2 more turns of others that succeed and change something; earlier"),
        "{text}"
    );
    world.tick(4, "codex", moves);
    assert_eq!(left(&world), Some(1));
}

#[test]
fn why_a_peer_is_not_healthy_is_told_once() {
    let mut world = World::running();
    for tick in 1..=3 {
        world.tick(tick, "claude", |tick| {
            fail(tick, TickOutcome::NoHandoff);
            tick.commits.clear();
            tick.soft_fail_reason = Some("no commit by peer this turn".into());
        });
    }
    let text = world.text();
    let row = text.lines().find(|line| line.trim().starts_with("degraded  claude")).unwrap();
    assert_eq!(row.matches("no commit by peer this turn").count(), 1, "{row}");
    assert_eq!(row.matches("turns failed").count() + row.matches("turns 3 failed").count(), 1, "{row}");
}

#[test]
fn a_line_that_does_not_continue_the_one_before_is_damage_even_behind_a_snapshot() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.store.write_snapshot().unwrap();
    assert!(world.text().contains("journal:   3 records; the first 3 from the snapshot, not verified here"));
    world.tamper("\"prompt_bytes\":4096", "\"prompt_bytes\":4097");
    let view = world.view();
    assert_eq!(view.exit_code(), 3);
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("alert:     the journal is damaged: record 3 does not continue"), "{text}");
    assert!(text.contains("; damaged at record 3"), "{text}");
}

#[test]
fn a_snapshot_that_does_not_fit_the_journal_is_named() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.store.write_snapshot().unwrap();
    let path = world.path("store/snapshot.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let changed =
        text.replacen("\"seq\":3", "\"seq\":3,\"x\":0", 1).replacen("\"offset\":", "\"offset\":1", 1);
    std::fs::write(&path, changed).unwrap();
    let view = world.view();
    assert!(view.alerts.iter().any(|alert| alert.kind == "snapshot"), "{:?}", view.alerts);
    assert_eq!(view.unverified, 0);
}

#[test]
fn a_turn_that_failed_by_its_process_says_how_that_ended() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        fail(tick, TickOutcome::PeerFailed);
        tick.classification = "process-fail".into();
        tick.soft_fail_reason = Some("run classification process-fail".into());
        tick.exit.class = peers_model::outcome::ExitClass::Nonzero;
        tick.exit.code = Some(4);
    });
    let text = world.text();
    assert!(text.contains("its process ended with exit code 4"), "{text}");
    assert!(!text.contains("run classification"), "{text}");
}

#[test]
fn a_turn_that_committed_weakened_tests_of_nobody_known_is_named_until_it_is_acknowledged() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        tick.warnings_emitted = vec![format!("{}1 fewer tests in tests/a.py", peers_core::cheat::TAKEN_OVER)];
    });
    world.exit(StopReason::Complete, "");
    let line = "tick 1 of claude committed weakened tests that had been left uncommitted: 1 fewer tests in tests/a.py";
    assert_eq!(
        closing(&world.view()),
        ["look at this before you trust the result:".to_owned(), format!("  - {line}")]
    );
    let op = OperatorOp::Ack { target: AckTarget::Weakening(TickNo(1)), reason: "mine".into() };
    world.alone(operator(op));
    assert_eq!(closing(&world.view()), Vec::<String>::new());
}

#[test]
fn hooks_that_failed_in_the_newest_run_are_named_with_their_last_failure() {
    let mut world = World::running();
    let failed = |hook, tick, times, what: &str| {
        Record::HookFailed(HookFailed { tick: TickNo(tick), hook, what: what.into(), times })
    };
    world.tick(1, "claude", |_| {});
    world.append(failed(Hook::PostTurn, 1, 1, "`note` ended with exit code 1"));
    world.append(failed(Hook::PreGate, 1, 7, "`warm` died of signal 9"));
    world.append(failed(Hook::PostTurn, 2, 1, "`note` ended with exit code 3"));
    let seen = [
        "hook `pre_gate` failed 7 times, last in tick 1: `warm` died of signal 9",
        "hook `post_turn` failed 2 times, last in tick 2: `note` ended with exit code 3",
    ];
    let (text, report) = (world.text(), report_markdown(&world.report()));
    for line in seen {
        assert!(text.contains(&format!("look at:   {line}\n")), "{text}");
        assert!(report.contains(&line.replace('`', "'")), "{report}");
    }
    assert!(!text.contains("exit code 1"), "{text}");
    world.exit(StopReason::MaxTicks, "");
    world.append(failed(Hook::Halt, 2, 1, "`told` ended with exit code 70"));
    assert!(
        world.text().contains("look at:   hook `halt` failed in tick 2: `told` ended with exit code 70\n")
    );
    world.another_run("00000000000000bb");
    assert!(!world.text().contains("hook `"), "a new run begins anew");
}
