//! `peers replay N`.

use super::*;

fn get(world: &World, tick: u64) -> Option<Replay> {
    replay(&mut world.disk(), TickNo(tick), None).unwrap()
}

fn three_ticks() -> World {
    let mut world = World::running();
    world.gates(0, vec![judged("tests-pass", 'a', red("x"))]);
    world.tick(1, "claude", |_| {});
    world.begin_tick(2, "codex");
    world.append(Record::PeerSpawned(PeerSpawned {
        tick: TickNo(2),
        pid: 77,
        start_time: 1,
        boot_id: "b".into(),
    }));
    world.end_tick(2, "codex", |tick| tick.verdicts = vec![judged("tests-pass", 'b', Verdict::Pass)]);
    world.gates(2, vec![judged("lint-clean", 'b', Verdict::Pass)]);
    world.tick(3, "claude", |_| {});
    world
}

#[test]
fn a_tick_has_its_records_and_what_followed_it() {
    let replay = get(&three_ticks(), 2).unwrap();
    let events: Vec<&str> = replay.records.iter().map(|line| line.record.event()).collect();
    assert_eq!(events, ["tick-started", "peer-spawned", "tick", "gates"]);
}

#[test]
fn the_state_before_and_after_is_the_fold_up_to_there() {
    let world = three_ticks();
    let second = get(&world, 2).unwrap();
    assert_eq!(second.before.ticks, TickNo(1));
    assert_eq!(second.after.as_ref().unwrap().ticks, TickNo(2));
    assert_eq!(get(&world, 1).unwrap().before.ticks, TickNo(0));
    let third = get(&world, 3).unwrap();
    assert_eq!(third.after.as_deref(), Some(world.store.state()));
    insta::assert_snapshot!(replay_text(&second, Colour::Plain));
}

#[test]
fn what_a_turn_is_warned_of_is_told_as_the_run_tells_it() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        tick.warnings_emitted = vec![
            "output was longer than the capture; its middle was dropped".into(),
            "processes of this turn could not be ended: [\u{1b}[31m77]".into(),
        ];
    });
    let replay = get(&world, 1).unwrap();
    let told: Vec<String> = crate::warnings(replay.record().unwrap()).collect();
    assert_eq!(told[1], "warning: processes of this turn could not be ended: [77]");
    let text = replay_text(&replay, Colour::Plain);
    assert!(text.contains(&format!("{}\n", told.join("\n"))), "{text}");
    assert!(is_harmless(&text));
}

#[test]
fn gates_are_counted_as_the_run_counts_them() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let verdicts = vec![judged("tests-pass", 'b', Verdict::Pass), judged("lint-clean", 'b', Verdict::Pass)];
    let counted = GatesRecord { iteration: TickNo(1), took_ms: 100, verdicts, green: Some(2), of: Some(3) };
    let old = GatesRecord { green: None, of: None, ..counted.clone() };
    world.append(Record::Gates(counted.clone()));
    world.append(Record::Gates(old));
    let none = GatesRecord { verdicts: Vec::new(), ..counted.clone() };
    world.append(Record::Gates(none.clone()));
    let text = replay_text(&get(&world, 1).unwrap(), Colour::Plain);
    assert!(text.contains("gates              2 of 3 gates green in 100ms\n"), "{text}");
    assert!(text.contains("gates              2 of 2 gates green in 100ms\n"), "{text}");
    assert!(text.contains("gates              no verdict stands, after 100ms\n"), "{text}");
    let coloured = replay_text(&get(&world, 1).unwrap(), Colour::Ansi);
    let line = coloured.lines().find(|line| line.contains("no verdict stands")).unwrap();
    assert!(!line.contains("\u{1b}[32m"), "nothing is green where nothing was judged: {line}");
}

#[test]
fn a_hook_that_failed_is_listed_with_the_tick_it_was_about() {
    let mut world = World::running();
    let failed = |hook, tick, times| {
        Record::HookFailed(HookFailed { tick: TickNo(tick), hook, what: "`x` died".into(), times })
    };
    world.append(failed(Hook::PreTurn, 1, 1));
    world.tick(1, "claude", |_| {});
    world.append(failed(Hook::PostTurn, 1, 1));
    world.append(failed(Hook::PreTurn, 2, 1));
    world.tick(2, "codex", |_| {});
    world.append(failed(Hook::PostGate, 1, 4));
    world.append(failed(Hook::PostTurn, 2, 2));
    let of = |tick: u64| -> Vec<String> {
        let told = |line: &Line| match &line.record {
            Record::HookFailed(failed) => format!("{:?} {} {}", failed.hook, failed.tick, failed.times),
            record => record.event().to_owned(),
        };
        get(&world, tick).unwrap().records.iter().map(told).collect()
    };
    assert_eq!(of(1), ["PreTurn 1 1", "tick-started", "tick", "PostTurn 1 1", "PostGate 1 4"]);
    assert_eq!(of(2), ["PreTurn 2 1", "tick-started", "tick", "PostTurn 2 2"]);
}

#[test]
fn there_is_no_tick_that_never_began() {
    let world = three_ticks();
    assert_eq!(get(&world, 4), None);
    assert_eq!(get(&world, 0), None);
    assert_eq!(get(&World::new(), 1), None);
}

#[test]
fn an_open_tick_has_no_state_after_it() {
    let mut world = three_ticks();
    world.begin_tick(4, "codex");
    let open = get(&world, 4).unwrap();
    assert_eq!(open.after, None);
    let text = replay_text(&open, Colour::Plain);
    assert!(
        text.contains("tick:      4 of codex\nresult:    it is open")
            && text.contains("the tick has not ended"),
        "{text}"
    );
}

#[test]
fn prompt_output_and_gate_logs_are_found_by_their_names() {
    let world = three_ticks();
    for (path, text) in [
        ("log/prompts/tick-00002-codex.txt", "prompt"),
        ("log/peers/tick-00002-codex.stdout.log", "out"),
        ("log/gates/tick-00002-tests-pass.log", "g"),
        ("log/peers/tick-00001-claude.stdout.log", "another tick"),
        ("log/peers/tick-00002\u{1b}[31m", "not our form"),
    ] {
        let path = world.path("peers").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", world.path("peers/log/peers/tick-00002-link")).unwrap();
    let replay = get(&world, 2).unwrap();
    let found: Vec<(&str, &str, Option<u64>)> =
        replay.files.iter().map(|file| (file.kind, file.path.as_str(), file.bytes)).collect();
    assert_eq!(
        found,
        [
            ("gate", ".peers/log/gates/tick-00002-tests-pass.log", Some(1)),
            ("output", ".peers/log/peers/tick-00002-codex.stdout.log", Some(3)),
            ("prompt", ".peers/log/prompts/tick-00002-codex.txt", Some(6)),
        ]
    );
}

#[test]
fn damage_behind_a_tick_does_not_concern_it() {
    let mut world = three_ticks();
    world.tick(4, "codex", |tick| tick.tool = "find me".into());
    world.tick(5, "claude", |_| {});
    world.tamper("find me", "find us");
    assert!(get(&world, 2).is_some());
    assert!(get(&world, 4).is_some(), "its own record still reads");
    assert!(replay(&mut world.disk(), TickNo(5), None).is_err());
}

#[test]
fn the_json_has_records_states_and_files() {
    let json: Value = serde_json::from_str(&replay_json(&get(&three_ticks(), 2).unwrap())).unwrap();
    assert_eq!(json["schema"], "peers.replay/1");
    assert_eq!(json["records"][2]["event"], "tick");
    assert_eq!(json["before"]["ticks"], 1);
    assert_eq!(json["after"]["ticks"], 2);
    assert_eq!(json["commits"][0]["origin"], "peer");
}

fn git(dir: &Path, args: &[&str]) -> String {
    let program = Git::locate(&std::env::var_os("PATH").unwrap()).unwrap();
    let mut command = Command::new(program.program());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", dir);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]);
    let output = command.current_dir(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn commits_are_looked_up_where_there_is_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "main", "--template="]);
    std::fs::write(dir.path().join("a"), "one\n").unwrap();
    git(dir.path(), &["add", "-A"]);
    git(dir.path(), &["commit", "-q", "-m", "first"]);
    let before = CommitId::new(git(dir.path(), &["rev-parse", "HEAD"])).unwrap();
    std::fs::write(dir.path().join("a"), "one\ntwo\n").unwrap();
    git(dir.path(), &["commit", "-q", "-a", "-m", "Add \u{1b}[31mtwo\n\nbody"]);
    let after = CommitId::new(git(dir.path(), &["rev-parse", "HEAD"])).unwrap();
    let repo = PeerRepo::open(dir.path()).unwrap();
    let facts = GitFacts::of(&repo).unwrap();
    assert_eq!((facts.head.clone(), facts.branch.as_deref()), (after.clone(), Some("main")));

    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        tick.head_before = before;
        tick.head_after = after.clone();
        tick.commits = vec![after.clone()];
        tick.foreign = vec![super::commit('f')];
    });
    let replay = replay(&mut world.disk(), TickNo(1), Some(&repo.facts())).unwrap().unwrap();
    assert_eq!(replay.diffstat, Some((1, 1, 0)));
    let text = replay_text(&replay, Colour::Plain);
    assert!(text.contains("2 commits: 1 file, +1 -0\n"), "{text}");
    assert!(text.contains(&format!("  {}  peer     Add two\n", after.short())), "{text}");
    assert!(text.contains("  ffffffff  foreign  (not looked up)\n"), "{text}");
    assert!(is_harmless(&text) && is_harmless(&replay_json(&replay)));
}
