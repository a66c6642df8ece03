//! `peers status`.

use super::*;

#[test]
fn a_directory_without_anything_reads_as_empty_not_as_broken() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new();
    let view = LoopView::read(&mut disk(&dir), &world.asked(Lock::Free));
    assert_eq!(view.liveness, Sourced::Fresh(Liveness::Fresh));
    assert_eq!(view.project, Sourced::Missing);
    assert!(status_text(&view, Colour::Plain).contains("project:   the store does not say"));
}

#[test]
fn a_command_that_holds_the_lock_is_named_and_no_run_is_said_to_run() {
    let world = World::running();
    let lock = Lock::Command { pid: Some(9), command: "land".into() };
    let view = world.read(&world.asked(lock));
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("state:     `peers land` is at work, process 9\n"), "{text}");
    assert!(!text.contains("next step") && view.exit_code() == 0, "{text}");
}

#[test]
fn a_move_that_was_cut_short_is_an_alert_with_the_command_that_finishes_it() {
    use peers_model::record::{BranchMove, MoveKind, OperatorOp, OperatorRecord, Record};
    for (kind, says) in [
        (MoveKind::Land, "a landing was cut short: `peers land` finishes it"),
        (MoveKind::Undo, "an undo was cut short: `peers undo 00000000000000aa` finishes it"),
    ] {
        let mut world = World::running();
        let what = BranchMove {
            kind,
            run: world.run.clone(),
            branch: "main".into(),
            from: commit('a'),
            to: commit('b'),
            workdir: None,
        };
        let op = OperatorRecord { op: OperatorOp::Moving(what), by: "ann".into() };
        world.store.append(Timestamp::from_millis(world.now), None, &[Record::Operator(op)]).unwrap();
        assert!(world.text().contains(&format!("alert:     {says}\n")), "{}", world.text());
        let lock = Lock::Command { pid: None, command: "land".into() };
        let view = world.read(&world.asked(lock));
        assert!(view.alerts.is_empty(), "it is being finished");
    }
}

#[test]
fn what_a_start_would_refuse_for_is_an_alert_and_comes_before_the_next_step() {
    let mut world = World::running();
    world.exit(StopReason::MaxTicks, "");
    let mut asked = world.asked(Lock::Free);
    asked.refusals = vec!["x is gone; put it back".into()];
    asked.git = Sourced::Unreadable("x is gone".into());
    let view = world.read(&asked);
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("alert:     a start would refuse: x is gone; put it back\n"), "{text}");
    assert!(!text.contains("the repository cannot be read"), "said once: {text}");
    assert!(
        text.contains(
            "next step: `peers doctor` shows what prevents a start; fix that, then `peers run` goes on"
        ),
        "{text}"
    );
}

#[test]
fn what_a_start_would_refuse_for_does_not_stand_before_a_step_that_starts_no_run() {
    let refused = |world: &World| {
        let mut asked = world.asked(Lock::Free);
        asked.refusals = vec!["x is gone".into()];
        next_step(&world.read(&asked)).unwrap()
    };
    let world = complete_on_a_branch();
    assert_eq!(refused(&world), "`peers land` takes the branch `work` home");
    for (reason, runs) in [
        (StopReason::Unjudged(super::goal("x")), true),
        (StopReason::Budget(BudgetKind::MaxWall), true),
        (StopReason::Budget(BudgetKind::MaxTokens), false),
    ] {
        let mut world = World::running();
        world.budget("{max_tokens: 1}");
        world.tick(1, "claude", |_| {});
        world.exit(reason, "");
        assert_eq!(refused(&world).starts_with("`peers doctor` shows what prevents a start"), runs);
    }
}

#[test]
fn a_run_that_died_before_its_first_record_has_crashed_too() {
    let mut world = World::new();
    let record = run_record(&world.run);
    runs::write(world.store.disk(), &record).unwrap();
    assert!(matches!(world.view().liveness, Sourced::Fresh(Liveness::Crashed { .. })));
}

#[test]
fn a_loop_that_began_while_it_was_looked_at_has_not_crashed() {
    let world = World::running();
    let held = Lock::Held { pid: Some(7), run_id: None };
    let view = LoopView::settled(&mut world.disk(), &world.asked(Lock::Free), || held.clone());
    assert!(matches!(view.liveness, Sourced::Fresh(Liveness::Running { .. })));
    let view = LoopView::settled(&mut world.disk(), &world.asked(Lock::Free), || Lock::Free);
    assert!(matches!(view.liveness, Sourced::Fresh(Liveness::Crashed { .. })));
}

#[test]
fn gates_that_run_are_what_the_loop_does_whether_a_turn_is_open_or_not() {
    let world = World::running();
    let held = Lock::Held { pid: Some(7), run_id: None };
    let text = |gates: bool| {
        let mut asked = world.asked(held.clone());
        // A minute and three seconds before.
        asked.gates_since = gates.then(|| Timestamp::from_millis(asked.now.as_millis() - 63_000));
        status_text(&world.read(&asked), Colour::Plain)
    };
    let since = Timestamp::from_millis(world.now + 120_000 - 63_000).to_string();
    let clock = since.split_once('T').unwrap().1[..5].to_owned();
    assert!(text(true).contains(&format!(", gates since {clock} UTC (1m 3s) (process 7)\n")));
    assert!(text(false).contains(", between turns: a look at the repository"));
}

#[test]
fn a_verdict_about_another_tree_is_stale() {
    let mut world = World::running();
    world.gates(0, vec![judged("tests-pass", 'a', Verdict::Pass)]);
    world.tick(1, "claude", |_| {});
    let view = world.view();
    let gates = &view.core.value().unwrap().gates;
    assert_eq!((gates[0].state, gates[0].stale), ("pass", Some(true)));
    assert_eq!((gates[1].state, gates[1].stale), ("unknown", None));
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("  pass     tests-pass  at aaaaaaaa, stale\n"), "{text}");
}

#[test]
fn git_facts_decide_what_is_stale_and_dirty() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.gates(1, vec![judged("tests-pass", 'b', Verdict::Pass)]);
    let mut asked = world.asked(Lock::Free);
    asked.git = Sourced::Fresh(GitFacts {
        head_tree: Some(super::tree('2')),
        worktree: Some(super::tree('3')),
        dirty: Some(Paths { first: vec![" M src/a.rs".into()], count: 1, more: false }),
        ..GitFacts::new(commit('c'))
    });
    let view = world.read(&asked);
    let core = view.core.value().unwrap();
    assert_eq!((core.gates[0].stale, core.clean), (Some(true), Some(false)));
    let text = status_text(&view, Colour::Plain);
    assert!(
        text.contains(
            "head:      cccccccc (detached or not known)\nworks in:  /home/ann/repo\nwork tree: 1 uncommitted path:  M src/a.rs\n"
        ),
        "{text}"
    );
}

#[test]
fn while_a_turn_runs_nobody_claims_that_the_tree_is_clean() {
    let mut world = World::running();
    let said = |world: &World| {
        let view = world.view_held();
        let text = status_text(&view, Colour::Plain);
        let json: Value = serde_json::from_str(&status_json(&view)).unwrap();
        let line = text.lines().find(|line| line.starts_with("work tree:")).unwrap().to_owned();
        (line, json["loop"]["value"]["clean"].clone())
    };
    let untold = |why: &str| (format!("work tree: not looked at {why}"), Value::Null);
    assert_eq!(said(&world), untold("before a turn of this run ended"));
    world.begin_tick(1, "claude");
    assert_eq!(said(&world), untold("while a turn runs"));
    let lock = Lock::Held { pid: Some(7), run_id: None };
    let report = crate::report_markdown(&crate::Report::read(&mut world.disk(), &world.asked(lock)));
    assert!(report.contains(", work tree not looked at while a turn runs\n"), "{report}");
    world.end_tick(1, "claude", |_| {});
    assert_eq!(said(&world), ("work tree: clean".to_owned(), true.into()));
    world.begin_tick(2, "codex");
    assert_eq!(said(&world), untold("while a turn runs"));
    world.end_tick(2, "codex", |_| {});
    world.exit(StopReason::MaxTicks, "");
    // What an earlier run left says nothing about what there is for this one.
    world.now += 1000;
    world.another_run("00000000000000bb");
    assert_eq!(said(&world), untold("before a turn of this run ended"));
}

#[test]
fn what_the_last_turn_left_uncommitted_stays_missing_while_the_next_one_runs() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.dirty = true);
    world.begin_tick(2, "codex");
    let view = world.view_held();
    let core = view.core.value().unwrap();
    assert_eq!(core.clean, None);
    let texts: Vec<&str> = core.converge.missing.iter().map(|missing| missing.text.as_str()).collect();
    assert!(texts.contains(&"the last turn left uncommitted changes"), "{texts:?}");
}

#[test]
fn more_uncommitted_paths_than_are_named_are_counted() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let shown = |files: usize| {
        let dirty: Vec<DirtyFile> = (0..files)
            .map(|n| DirtyFile { status: DirtyStatus::Added, path: format!("{n:04}.log") })
            .collect();
        let mut git = GitFacts::new(commit('a'));
        git.take_dirty(&dirty, "*.log\n");
        let mut asked = world.asked(Lock::Free);
        asked.git = Sourced::Fresh(git);
        let view = world.read(&asked);
        let json: Value = serde_json::from_str(&status_json(&view)).unwrap();
        let report = crate::Report::read(&mut world.disk(), &asked);
        (status_text(&view, Colour::Plain), crate::report_markdown(&report), json["loop"]["value"].clone())
    };
    let (text, report, json) = shown(120);
    for told in [&text, &report] {
        assert!(told.contains("120 uncommitted paths: ?? 0000.log, "), "{told}");
        assert!(told.contains("0009.log and 110 more"), "{told}");
    }
    assert!(text.contains("does not count here: 0000.log, ") && text.matches(" and 110 more").count() == 2);
    assert_eq!((&json["dirty_count"], &json["dirty_more"]), (&120.into(), &false.into()));
    assert_eq!((json["dirty"].as_array().unwrap().len(), &json["excluded_count"]), (30, &120.into()));
    let (text, _, json) = shown(GitFacts::COUNTED + 1);
    assert!(text.contains("more than 1,000 uncommitted paths: ?? 0000.log, "), "{text}");
    assert!(text.contains("0009.log and more than 990 more"), "{text}");
    assert_eq!((&json["dirty_count"], &json["dirty_more"]), (&1000.into(), &true.into()));
    let (text, _, json) = shown(0);
    assert!(text.contains("work tree: clean"), "{text}");
    assert_eq!((&json["dirty_count"], &json["dirty_more"]), (&0.into(), &false.into()));
    assert_eq!(serde_json::to_value(world.view().core.value().unwrap()).unwrap()["dirty_count"], Value::Null);
}

#[test]
fn a_peer_at_its_own_cap_has_a_row_and_is_not_next_and_the_stop_names_its_cap() {
    let mut world = World::running();
    world.budget("{per_peer: {claude: {max_tokens: 1000, max_usd: 3}}}");
    let next = |world: &World| world.view().core.value().unwrap().turn.clone().unwrap().to_string();
    world.tick(1, "claude", |_| {});
    world.tick(2, "codex", |_| {});
    assert_eq!(next(&world), "codex");
    let text = world.text();
    for line in [
        "ticks:     2; codex is next",
        "tokens of claude   1,500  of 1,000  150%",
        "money of claude    $0.50  of $3.00  16%",
        "has reached its own cap",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json: Value = world.json();
    let core = &json["loop"]["value"];
    assert_eq!((&core["turn"], &core["peers"][0]["capped"]), (&"codex".into(), &true.into()));
    let rows = core["budget"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "per_peer.claude.max_tokens").unwrap();
    assert_eq!((&row["peer"], &row["spent"], &row["cap"]), (&"claude".into(), &1500.into(), &1000.into()));
    world.exit(StopReason::Budget(BudgetKind::PerPeer), "claude reached its cap");
    let text = world.text();
    assert!(text.contains("raise `budget.per_peer.claude.max_tokens` in .peers/config.yaml"), "{text}");
    world.budget("{max_usd_mode: warn, per_peer: {claude: {max_usd: 0.1}}}");
    assert_eq!(next(&world), "claude", "a cap that does not bind holds nobody up");
    assert!(!world.text().contains("money of claude"));
}

#[test]
fn the_last_ticks_are_there_newest_first() {
    let mut world = World::running();
    for tick in 1..=12 {
        world.tick(tick, if tick % 2 == 1 { "claude" } else { "codex" }, |_| {});
    }
    let view = world.view();
    let ticks: Vec<u64> = view.journal.value().unwrap().ticks.iter().map(|tick| tick.tick.0).collect();
    assert_eq!(ticks, (3..=12).collect::<Vec<_>>());
    let text = status_text(&view, Colour::Plain);
    assert!(
        text.contains("last ticks\n  tick 12  codex   handoff  2m ago in 3m\n  tick 11  claude"),
        "{text}"
    );
    assert!(text.contains("journal:   25 records\n"), "{text}");
}

#[test]
fn the_json_has_a_schema_and_says_unconfined() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let text = status_json(&world.view_held());
    assert!(is_harmless(&text));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "peers.status/1");
    assert_eq!(json["unconfined"], true);
    world.amend(|record| (record.sandbox, record.tier) = ("bwrap".into(), 2));
    assert_eq!(world.json()["unconfined"], false);
    assert_eq!(
        world.view().confinement,
        Confinement::Confined { backend: "bwrap".into(), tier: 2, credentials: BTreeMap::default() }
    );
    assert_eq!(json["liveness"]["value"]["kind"], "running");
    assert_eq!(json["loop"]["source"], "fresh");
    assert_eq!(json["loop"]["value"]["gates"][0]["id"], "tests-pass");
    assert_eq!(json["loop"]["value"]["budget"]["rows"][0]["percent"], 10);
    assert_eq!(json["journal"]["value"]["ticks"][0]["outcome"], "handoff");
    assert_eq!(json["bugs"]["source"], "missing");
}

#[test]
fn looking_writes_nothing() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.store.write_snapshot().unwrap();
    let before = listing(world.dir.path());
    let _view = world.view();
    let _report = world.report();
    let _replay = crate::replay(&mut world.disk(), peers_model::TickNo(1), None).unwrap();
    let _polled = crate::Feed::default().poll(&mut world.disk()).unwrap();
    assert_eq!(listing(world.dir.path()), before);
}

/// A run with a branch of its own that is complete.
fn complete_on_a_branch() -> World {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::Complete, "");
    world.amend(|record| {
        (record.own_branch, record.branch) = (true, Some("work".into()));
    });
    world
}

#[test]
fn a_run_that_was_landed_says_so_and_asks_for_nothing() {
    let mut world = complete_on_a_branch();
    assert!(
        world.text().contains("next step: `peers land` takes the branch `work` home"),
        "{}",
        world.text()
    );
    let run = world.run.clone();
    world.alone(operator(OperatorOp::Landed { run, into: "main".into(), commit: commit('c') }));
    let text = world.text();
    assert!(text.contains("landed:    2m ago into `main` as cccccccc, by `ann`\n"), "{text}");
    assert!(!text.contains("next step"), "{text}");
    let value: Value = world.json();
    assert_eq!((&value["landed"]["into"], &value["next_step"]), (&"main".into(), &Value::Null));
}

#[test]
fn a_run_that_was_undone_says_so_and_asks_for_nothing() {
    let mut world = complete_on_a_branch();
    let (run, salvage) = (world.run.clone(), "undo-1".to_owned());
    world.alone(operator(OperatorOp::Undone { run, from: commit('b'), to: commit('a'), salvage }));
    let text = world.text();
    let line = "undone:    2m ago back to aaaaaaaa, by `ann`; the previous state is saved as undo-1\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("next step"), "{text}");
    let value: Value = world.json();
    assert_eq!((&value["undone"]["by"], &value["next_step"]), (&"ann".into(), &Value::Null));
}

#[test]
fn a_run_without_a_commit_has_nothing_to_land() {
    let mut world = complete_on_a_branch();
    world.amend(|record| {
        record.head.clone_from(&record.base);
    });
    assert!(!world.text().contains("next step"), "{}", world.text());
}

#[test]
fn an_empty_project_says_that_nothing_ran() {
    let view = World::new().view();
    assert_eq!(view.exit_code(), 1);
    insta::assert_snapshot!(status_text(&view, Colour::Plain));
}

#[test]
fn a_loop_that_runs_shows_gates_reviews_peers_budget_ticks_and_warnings() {
    let mut some = super::rules();
    (some.gates[0].group, some.gates[0].weight) = (Some("slow ones".into()), 4);
    let mut world = World::new();
    world.start(some);
    world.tick(1, "claude", |tick| tick.warnings_emitted = vec!["the first".into(), "the second".into()]);
    world
        .gates(1, vec![judged("tests-pass", 'b', red("3 failed")), judged("lint-clean", 'b', Verdict::Pass)]);
    world.tick(2, "codex", |tick| {
        fail(tick, TickOutcome::NoHandoff);
        tick.soft_fail_reason = Some("no commit by peer this turn".into());
        tick.exit.usage = Usage::default();
    });
    world.gates(2, vec![judged("tests-pass", 'b', red("2 failed"))]);
    world.tick(3, "claude", |tick| tick.exit.usage.usd = Some(Usd::from_micros(6_000_000)));
    world.begin_tick(4, "codex");
    let view = world.view_held();
    assert_eq!(view.exit_code(), 0);
    let (plain, ansi) = (status_text(&view, Colour::Plain), status_text(&view, Colour::Ansi));
    // Colour only adds.
    let stripped: Vec<String> = ansi.lines().map(|line| term::inline(line).trim_end().to_owned()).collect();
    assert!(ansi != plain && is_harmless(&plain));
    assert_eq!(stripped, plain.lines().map(str::trim_end).collect::<Vec<_>>());
    insta::assert_snapshot!(plain);
}
