//! One loop as a row.

use super::*;
use std::io::Write as _;

/// What is asked about a project called `billing`, two minutes later.
pub(super) fn asked(world: &World, lock: Lock) -> Asked {
    let path = "/home/ann/repo".to_owned();
    let spelling = Spelling::Ctl { name: "billing".into(), dir: path.clone(), config_dir: None };
    let listed = Listed { name: "billing".into(), path, managed: true, ..Listed::default() };
    let now = Timestamp::from_millis(world.now + 120_000);
    let mut asked = Asked::of_row(now, lock, listed, spelling);
    asked.boot_id = Some(super::BOOT.into());
    asked.version = "0.1.0".into();
    // The clock of these journals stands still while nothing is written.
    asked.heard = Some(now);
    asked
}

pub(super) fn lock(world: &World) -> Lock {
    Lock::Held { pid: Some(7), run_id: Some(world.run.to_string()) }
}

/// While nothing runs.
pub(super) fn row(world: &World) -> LoopRow {
    LoopRow::read(&mut world.disk(), &asked(world, Lock::Free))
}

/// While it runs.
pub(super) fn held(world: &World) -> LoopRow {
    LoopRow::read(&mut world.disk(), &asked(world, lock(world)))
}

fn json(row: &LoopRow) -> Value {
    serde_json::to_value(row).unwrap()
}

#[test]
fn a_loop_that_runs_shows_what_it_does() {
    let mut world = World::running();
    world.gates(0, vec![judged("tests-pass", 'a', Verdict::Pass), judged("lint-clean", 'a', red("x"))]);
    world.tick(1, "claude", |_| {});
    world.gates(1, vec![judged("tests-pass", 'b', Verdict::Pass), judged("lint-clean", 'b', red("x"))]);
    world.begin_tick(2, "codex");
    let row = held(&world);
    assert!(row.warnings.is_empty(), "{:?}", row.warnings);
    // The one tick took three minutes, so an hour has twenty of them.
    insta::assert_snapshot!(serde_json::to_string_pretty(&row).unwrap());
}

#[test]
fn the_newest_eight_ticks_are_shown_and_of_a_stopped_loop_nothing_burns() {
    let mut world = World::running();
    for tick in 1..=12 {
        world.tick(tick, "claude", |_| {});
    }
    world.exit(StopReason::MaxTicks, "");
    let row = row(&world);
    let ticks: Vec<u64> = row.recent.unwrap().iter().map(|tick| tick.tick.0).collect();
    assert_eq!(ticks, (5..=12).collect::<Vec<_>>());
    assert_eq!(
        (row.state, row.outcome.as_deref(), row.phase),
        (LoopState::Stopped, Some("limit"), "stopped")
    );
    assert_eq!(row.cost.unwrap().usd_per_h, None);
    assert_eq!(row.budget.unwrap().usd.eta_s, None);
    assert_eq!((row.pid, row.uptime_s, row.tick_age_s), (None, None, None));
    assert_eq!(row.last_event.unwrap().kind, "exit");
}

#[test]
fn ticks_with_long_records_are_found_further_back() {
    let mut world = World::running();
    for tick in 1..=9 {
        world.tick(tick, "claude", |tick| tick.exit.stdout_tail = "x".repeat(30_000));
    }
    assert_eq!(row(&world).recent.unwrap().len(), 8);
}

#[test]
fn an_unknown_cost_is_unknown_and_never_nothing() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.exit.usage = Usage::default());
    let value = json(&held(&world));
    assert_eq!(value["cost"], json!({"usd": null, "usd_per_h": null, "tokens": null, "at_least": true}));
    assert_eq!(value["budget"]["usd"], json!({"used": null, "max": 5, "pct": null, "eta_s": null}));
    world.tick(2, "claude", |tick| {
        tick.exit.usage = Usage { tokens: Some(Tokens(10)), usd: Some(Usd::from_micros(1_000_000)) };
    });
    let value = json(&held(&world));
    assert_eq!((&value["cost"]["usd"], &value["cost"]["at_least"]), (&json!(1.0), &json!(true)));
}

#[test]
fn before_the_first_run_there_is_nothing_to_count() {
    let row = row(&World::new());
    assert_eq!(row.state, LoopState::Fresh);
    assert_eq!((row.ticks, row.run_id.clone(), row.last_event.clone()), (Some(TickNo(0)), None, None));
    assert_eq!(row.recent.as_deref(), Some(&[][..]));
    assert!(row.warnings.is_empty(), "{:?}", row.warnings);
}

#[test]
fn before_the_first_run_the_accepted_goals_are_counted() {
    let mut world = World::new();
    let hard = |id: &str| format!("- {{id: {id}, type: hard, cmd: 'true', pass_when: exit_code == 0}}\n");
    let soft = "- {id: docs-read, type: soft, reviewer: other, prompt: Is it said?}\n";
    world.accept_goals(&format!("goals:\n{}{}{soft}", hard("a"), hard("b")));
    let value = json(&row(&world));
    assert_eq!(value["gates"]["hard"], json!({"green": 0, "total": 2, "stuck": []}));
    assert_eq!(value["gates"]["soft"], json!({"green": 0, "total": 1}));
    world.accept_goals("goals: nonsense\n");
    assert_eq!(json(&row(&world))["gates"], Value::Null, "what cannot be read is not a number");
}

#[test]
fn a_project_that_is_not_set_up_has_that_as_its_next_step() {
    let world = World::new();
    let mut asked = asked(&world, Lock::Free);
    asked.listed.bare = true;
    let row = LoopRow::unseen(&asked);
    assert_eq!((row.state, row.state_word(), row.ticks), (LoopState::Fresh, "not set up", None));
    assert_eq!((row.attention.top.code, row.attention.level()), ("not-set-up", crate::Level::Act));
    assert_eq!(row.attention.top.action.as_deref(), Some("peers -C /home/ann/repo init"));
    assert!(row.warnings.is_empty(), "{:?}", row.warnings);
}

#[test]
fn a_green_of_another_definition_and_one_that_a_clean_checkout_refuted_do_not_count() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.gates(1, vec![judged("tests-pass", 'b', Verdict::Pass), judged("lint-clean", 'b', Verdict::Pass)]);
    let green = |world: &World| held(world).gates.unwrap().hard.green;
    assert_eq!(green(&world), 2);
    world.append(proof(vec![judged("tests-pass", 'b', red("no file"))]));
    assert_eq!(green(&world), 1);
    world.exit(StopReason::MaxTicks, "");
    world.another_run("00000000000000bb");
    assert_eq!(green(&world), 0, "nothing was measured in this run yet");
}

#[test]
fn gates_that_stay_red_are_named() {
    let mut world = World::running();
    for tick in 1..=4 {
        world.tick(tick, "claude", |_| {});
        world.gates(tick, vec![judged("tests-pass", 'b', red("x"))]);
    }
    assert_eq!(json(&held(&world))["gates"]["hard"]["stuck"], json!([{"id": "tests-pass", "ticks": 4}]));
}

#[test]
fn what_git_says_is_taken_from_the_caller_and_whose_a_commit_is_from_the_records() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let mut asked = asked(&world, Lock::Free);
    let at = Timestamp::from_millis(asked.now.as_millis() - 60_000);
    let head = |c: char| Sourced::Fresh(HeadFact { sha: commit(c), subject: "Say hello".into(), at });
    asked.head = head('b');
    let commit_of = |asked: &Asked| LoopRow::read(&mut world.disk(), asked).last_commit.unwrap();
    let known = commit_of(&asked);
    assert_eq!((known.subject.as_deref(), known.peer), (Some("Say hello"), Some(name("claude"))));
    // A commit that says that it is younger than its record is as old as that.
    assert_eq!(known.age_s, Some(120));
    asked.head = head('c');
    let row = LoopRow::read(&mut world.disk(), &asked);
    assert_eq!(row.last_commit.unwrap().peer, None);
    assert_eq!(row.warnings[0].code, "head-moved");
    asked.head = Sourced::Unreadable("no repository".into());
    let row = LoopRow::read(&mut world.disk(), &asked);
    assert_eq!((row.warnings[0].code, row.warnings[0].message.as_str()), ("git", "no repository"));
    assert_eq!(row.last_commit.unwrap().subject, None);
}

#[test]
fn bugs_are_counted_by_severity() {
    let report = |id: &str, severity: &str| LedgerCommit {
        id: commit('c'),
        author: Author::Peer(name("claude")),
        time: Timestamp::from_millis(0),
        message: format!(
            "x\n\n## Bug-Report\n{}\n\nBug-Report: {id}\n",
            json!({"id": id, "severity": severity, "title": "t", "location": "a:1", "fix_by": "x", "description": "long enough to be read"})
        ),
        paths: Vec::new(),
        voided: false,
    };
    let commits = [report("B1", "high"), report("B2", "low"), report("B3", "high")];
    let counts = Counts::of(&Ledger::read(&commits, &BTreeSet::new()));
    assert_eq!(counts.open, OpenBugs { high: 2, low: 1, ..OpenBugs::default() });
    assert_eq!((counts.blocking, counts.total()), (2, 3));
    let world = World::running();
    let mut asked = asked(&world, Lock::Free);
    asked.bugs = Sourced::Fresh(counts);
    let value = json(&LoopRow::read(&mut world.disk(), &asked));
    assert_eq!(
        value["bugs"],
        json!({"open": {"crit": 0, "high": 2, "med": 0, "low": 1, "info": 0}, "blocking": 2})
    );
    asked.bugs = Sourced::Unreadable("the cache is damaged".into());
    let row = LoopRow::read(&mut world.disk(), &asked);
    assert_eq!((row.bugs, row.warnings[0].code), (None, "bugs"));
}

#[test]
fn a_damaged_journal_gives_null_and_no_number() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::MaxTicks, "");
    super::unreadable::damage(&world);
    let row = row(&world);
    let value = json(&row);
    for field in [
        "ticks",
        "iteration",
        "gates",
        "convergence",
        "cost",
        "budget",
        "peers",
        "current_peer",
        "last_commit",
    ] {
        assert_eq!(value[field], Value::Null, "{field}");
    }
    assert_eq!(row.state, LoopState::Stopped, "the run record still says it");
    assert_eq!(row.warnings[0].code, "journal");
    assert_eq!(row.attention.top.code, "journal-damaged");
}

#[test]
fn what_is_from_before_the_damage_is_shown_with_a_warning() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.store.write_snapshot().unwrap();
    world.tick(2, "codex", |tick| tick.tool = "find me".into());
    let path = world.path("store/journal/000001.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("find me", "find us", 1) + "{}\n").unwrap();
    let row = row(&world);
    assert_eq!(row.ticks, Some(TickNo(2)));
    assert!(row.warnings.iter().any(|warning| warning.code == "journal"), "{:?}", row.warnings);
    assert_eq!(row.attention.top.code, "journal-damaged");
}

#[test]
fn an_unreadable_configuration_run_record_or_end_of_the_journal_is_null_with_a_warning() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    std::fs::write(world.path("store/accepted/config.yaml"), "peers: []\n").unwrap();
    std::fs::write(world.path("store/runs/00000000000000aa.json"), "{").unwrap();
    let row = row(&world);
    let codes: Vec<&str> = row.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["run-record", "config"]);
    let value = json(&row);
    assert_eq!(
        (&value["budget"]["usd"]["max"], &value["convergence"]["needed"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!((&value["versions"]["loop"], &value["ticks"]), (&Value::Null, &json!(1)));
    let path = world.path("store/journal/000001.jsonl");
    world.store.write_snapshot().unwrap();
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"{no record\n").unwrap();
    let row = super::row::row(&world);
    assert_eq!(row.last_event, None);
    assert!(row.warnings.iter().any(|warning| warning.code == "journal-end"), "{:?}", row.warnings);
}

#[test]
fn a_journal_that_is_no_directory_of_ours_is_unknown_not_empty() {
    let world = World::running();
    std::fs::remove_dir_all(world.path("store/journal")).unwrap();
    std::fs::write(world.path("store/journal"), "x").unwrap();
    let row = row(&world);
    assert_eq!((row.ticks, row.recent.clone()), (None, None));
    assert_eq!(row.warnings[0].code, "journal");
}

#[test]
fn a_reader_sees_what_a_first_look_sees_whatever_happened_in_between() {
    let mut world = World::running();
    let mut reader = LoopReader::default();
    let mut disk = world.disk();
    let mut step = |world: &World, held: bool, what: &str| {
        let asked = asked(world, if held { lock(world) } else { Lock::Free });
        let again = reader.row(&mut disk, &asked);
        assert_eq!(again, LoopRow::read(&mut world.disk(), &asked), "{what}");
        assert_eq!(reader.row(&mut disk, &asked), again, "{what}, unchanged");
        again
    };
    step(&world, true, "at the start");
    world.begin_tick(1, "claude");
    assert_eq!(step(&world, true, "an open turn").phase, "turn");
    world.end_tick(1, "claude", |_| {});
    world.store.write_snapshot().unwrap();
    world.gates(1, vec![judged("tests-pass", 'b', Verdict::Pass)]);
    assert_eq!(step(&world, true, "a tick").ticks, Some(TickNo(1)));
    let path = world.path("store/journal/000001.jsonl");
    let torn = std::fs::read(&path).unwrap();
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"v\":1").unwrap();
    step(&world, true, "a torn line");
    std::fs::write(&path, &torn).unwrap();
    step(&world, true, "cut again");
    world.exit(StopReason::MaxTicks, "");
    assert_eq!(step(&world, false, "the end").outcome.as_deref(), Some("limit"));
    world.budget("{max_usd: 9.0}");
    assert_eq!(step(&world, false, "another budget").budget.unwrap().usd.max, Some(9.0));
    // A run that never came to its first record.
    let mut record = run_record(&RunId::new("00000000000000cc").unwrap());
    record.started_at = Timestamp::from_millis(world.now + 1);
    step(&world, true, "somebody began");
    runs::write(world.store.disk(), &record).unwrap();
    assert_eq!(step(&world, false, "and is gone").state, LoopState::Crashed);
    std::fs::remove_file(world.path("store/snapshot.json")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, text.split_inclusive('\n').take(2).collect::<String>()).unwrap();
    step(&world, false, "another journal");
}

#[test]
fn a_reader_sees_that_a_journal_of_the_same_length_is_another_one() {
    let mut world = World::running();
    world.begin_tick(1, "claude");
    let (mut reader, mut disk) = (LoopReader::default(), world.disk());
    assert!(reader.row(&mut disk, &asked(&world, Lock::Free)).ticks.is_some());
    let path = world.path("store/journal/000001.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, text.replacen("0.1.0", "0.1.1", 1)).unwrap();
    let row = reader.row(&mut disk, &asked(&world, Lock::Free));
    assert_eq!((row.ticks, row.attention.top.code), (None, "journal-damaged"));
}

#[test]
fn what_lies_in_the_repository_counts_only_where_it_is_what_was_accepted() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let accepted = peers_store::accept::read_bytes(&mut world.disk(), "config.yaml").unwrap().unwrap();
    std::fs::write(world.path("peers/goals.yaml"), "goals: []\n").unwrap();
    std::fs::write(world.path("peers/config.yaml"), &accepted).unwrap();
    let cap = |world: &World| row(world).budget.unwrap().usd.max;
    assert_eq!(cap(&world), Some(5.0));
    let text = String::from_utf8(accepted).unwrap();
    std::fs::write(world.path("peers/config.yaml"), text.replace("5.0", "500.0")).unwrap();
    assert_eq!(cap(&world), Some(5.0));
    assert_eq!(row(&world).attention.others.len() + 1, 2, "crashed, and not accepted");
}

#[test]
fn the_newest_run_is_found_by_what_the_journal_names_and_by_what_was_written_last() {
    let mut world = World::running();
    world.exit(StopReason::MaxTicks, "");
    for n in 0..20_u8 {
        let mut old = run_record(&RunId::new(format!("{n:016x}")).unwrap());
        old.started_at = Timestamp::from_millis(i64::from(n));
        (old.ended_at, old.reason) = (Some(old.started_at), Some(StopReason::Drained));
        runs::write(world.store.disk(), &old).unwrap();
    }
    // The last one that was written is an old one.
    assert_eq!(row(&world).outcome.as_deref(), Some("limit"));
    let newest = runs::newest(world.store.disk(), None).unwrap().unwrap();
    assert_eq!(newest.run_id.as_str(), "0000000000000013");
}

#[test]
fn a_row_writes_nothing() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.outcome = TickOutcome::NoHandoff);
    let before = super::listing(world.dir.path());
    let _row = row(&world);
    assert_eq!(super::listing(world.dir.path()), before);
}

#[test]
fn no_text_of_an_agent_is_lost_or_changes_what_a_row_is() {
    let world = super::hostile::world();
    let row = row(&world);
    let text = crate::terminal_safe(&serde_json::to_string(&row).unwrap());
    assert!(super::is_harmless(&text));
    assert_eq!(row.recent.as_ref().unwrap()[0].classification, super::hostile::EVIL);
    assert!(super::is_harmless(&row.last_event.unwrap().text));
}
