//! The table of advice: (stop reason, facts) to why, what is said and what is typed, for both readers.

use super::row::row;
use super::*;
use std::fmt::Write as _;

/// What happened in a tick.
type Change<'a> = &'a dyn Fn(&mut TickRecord);

/// A world that stopped after these ticks of claude.
fn stopped(reason: StopReason, budget: &str, ticks: &[Change]) -> World {
    let mut world = World::running();
    world.budget(budget);
    for (n, change) in (1..).zip(ticks) {
        world.tick(n, "claude", *change);
    }
    world.exit(reason, "what it said");
    world
}

fn fails(tick: &mut TickRecord) {
    fail(tick, TickOutcome::PeerFailed);
    tick.exit.class = ExitClass::Nonzero;
}

fn killed(tick: &mut TickRecord) {
    fails(tick);
    (tick.exit.class, tick.exit.signal) = (ExitClass::Signal, Some(11));
}

/// Each way in which a loop stops, with what makes it advise something else.
fn table() -> Vec<World> {
    let well: Change = &|_| {};
    let budget = |kind, budget| stopped(StopReason::Budget(kind), budget, &[well]);
    let peer = |change: Change| stopped(StopReason::PeerUnavailable(name("claude")), "{}", &[change]);
    let api = |api| peer(&|tick: &mut TickRecord| refuse(tick, api));
    let plain = [
        StopReason::Complete,
        StopReason::MaxTicks,
        StopReason::Drained,
        StopReason::Interrupted(15),
        StopReason::LockHeld,
        StopReason::StuckGate(goal("tests-pass")),
        StopReason::StuckSkeptic,
        StopReason::StuckIdle,
        StopReason::StuckPhase,
        StopReason::Checkpoint,
        StopReason::ParkedBlocked,
        StopReason::ParkedProof,
        StopReason::Unjudged(goal("lint-clean")),
        StopReason::PeerUnavailable(name("claude")),
        StopReason::PeerUnavailable(name("codex")),
        StopReason::AllPeersDegraded,
        StopReason::GoalMutation("goals.yaml".into()),
        StopReason::Tamper(TamperKind::History),
        StopReason::Error(ErrorKind::DiskFull),
        StopReason::Error(ErrorKind::Git),
    ];
    let mut worlds: Vec<World> =
        plain.into_iter().map(|reason| stopped(reason, "{max_iterations: 10}", &[well])).collect();
    worlds.extend(vec![
        budget(BudgetKind::MaxIterations, "{max_iterations: 1}"),
        budget(BudgetKind::MaxIterations, "{max_iterations: 9}"),
        budget(BudgetKind::MaxRuntime, "{max_runtime_s: 60}"),
        budget(BudgetKind::MaxUsd, "{max_usd: 0.5}"),
        budget(BudgetKind::MaxTokens, "{max_tokens: 1000}"),
        budget(BudgetKind::MaxWall, "{}"),
        budget(BudgetKind::Deadline, "{}"),
        budget(BudgetKind::PerPeer, "{}"),
        budget(BudgetKind::NoProgress, "{}"),
        budget(BudgetKind::MaxConsecutiveFailures, "{}"),
        stopped(StopReason::Budget(BudgetKind::MaxConsecutiveFailures), "{}", &[&killed, &killed]),
        stopped(StopReason::StuckSkeptic, "{}", &[&|tick| tick.skeptic = Some(SkepticVerdict::Found)]),
        stopped(StopReason::AllPeersDegraded, "{}", &[&fails]),
        api(ApiClass::Auth),
        api(ApiClass::Quota),
        api(ApiClass::UsageCap),
        api(ApiClass::Transient),
        api(ApiClass::Other),
        peer(&|tick| {
            refuse(tick, ApiClass::None);
            tick.exit.class = ExitClass::SpawnFail;
        }),
        peer(&|tick| {
            refuse(tick, ApiClass::UsageCap);
            tick.exit.resets_at = Some(Timestamp::from_millis(9_223_372_036_854));
        }),
    ]);
    let mut blocked = World::running();
    for (tick, peer) in [(1, "claude"), (2, "codex")] {
        blocked.tick(tick, peer, |tick| block(tick, "no database"));
    }
    blocked.exit(StopReason::ParkedBlocked, "");
    let (mut refuted, mut held) = (World::running(), World::running());
    refuted.tick(1, "claude", well);
    refuted.gates(1, vec![judged("lint-clean", 'b', Verdict::Pass)]);
    refuted.append(proof(vec![judged("lint-clean", 'b', red("needs a cache"))]));
    refuted.exit(StopReason::StuckGate(goal("lint-clean")), "needs a cache");
    let way = format!("`git fetch {}` takes it back, then start again", "z".repeat(200));
    held.exit(StopReason::Tamper(TamperKind::Git), &format!("`x` is no commit\n{way}"));
    worlds.extend([blocked, refuted, held]);
    worlds
}

/// The commands of a cause: those that are typed, and those that its sentence only speaks of.
fn commands(cause: &Cause) -> Vec<String> {
    let typed = cause.action.iter().flat_map(|action| action.split(", then ")).map(str::to_owned);
    let said = cause.next.iter().flat_map(|next| next.split('`').skip(1).step_by(2)).map(str::to_owned);
    typed.chain(said).collect()
}

#[test]
fn one_state_has_one_advice_which_each_reader_gets_in_commands_of_his_own() {
    let mut page = String::new();
    for world in table() {
        let (ctl, alone) = (row(&world).attention.top, world.view().attention.top);
        assert_eq!((alone.level, alone.code, &alone.why), (ctl.level, ctl.code, &ctl.why));
        for cause in [&ctl, &alone] {
            let next = cause.next.as_deref().unwrap_or_default();
            for command in cause.action.iter().flat_map(|action| action.split(", then ")) {
                assert!(next.contains(&format!("`{command}`")), "{command} is not in: {next}");
            }
        }
        let foreign = commands(&ctl).into_iter().find(|command| command.starts_with("peers run"));
        assert_eq!(foreign, None, "{ctl:?}");
        let text = world.text();
        let state = text.lines().find_map(|line| line.strip_prefix("state:     ")).unwrap();
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let (level, code, why) = (alone.level.word(), alone.code, &alone.why);
        let _ = writeln!(page, "{state}\n  {level}, {code}: {why}\n  next:      {}", or(&alone.next));
        let _ = writeln!(page, "  peers:     {}\n  peers-ctl: {}\n", or(&alone.action), or(&ctl.action));
    }
    insta::assert_snapshot!(page);
}

/// The part of a generated reference that is about a command.
fn section<'a>(reference: &'a str, program: &str, words: &[&str]) -> Option<(&'a str, usize)> {
    (1..=words.len().min(2)).rev().find_map(|n| {
        let heading = format!("\n### {program} {}\n", words.get(..n)?.join(" "));
        let (_, rest) = reference.split_once(&heading)?;
        Some((rest.split("\n### ").next()?, n))
    })
}

#[test]
fn every_command_that_the_table_prints_is_in_the_reference_with_its_options() {
    let peers = include_str!("../../../../docs/cli-reference.md");
    let ctl = include_str!("../../../../docs/ctl-reference.md");
    let mut found = 0;
    for world in table() {
        for attention in [row(&world).attention, world.view().attention] {
            for command in commands(&attention.top) {
                let mut words = command.split(' ').peekable();
                let (reference, program) = match words.next() {
                    Some("peers") => (peers, "peers"),
                    Some("peers-ctl") => (ctl, "peers-ctl"),
                    _ => continue,
                };
                let _dir = words.next_if_eq(&"-C").and_then(|_| words.next());
                let words: Vec<&str> = words.collect();
                let (text, verb) = section(reference, program, &words).unwrap_or_else(|| panic!("{command}"));
                let options = words[verb..].iter().filter(|word| word.starts_with("--"));
                for option in options {
                    assert!(text.contains(option), "{command} has no {option}");
                }
                found += 1;
            }
        }
    }
    assert!(found > 40, "{found}");
}

#[test]
fn a_peer_that_dies_of_the_same_again_is_named_while_the_loop_runs() {
    let well: Change = &|_| {};
    let killed: Change = &killed;
    let error: Change = &|tick| {
        fails(tick);
        tick.soft_fail_reason = Some("no such model".into());
    };
    for (ticks, says) in [
        (
            &[("claude", killed), ("codex", well), ("claude", killed), ("codex", well)][..],
            Some("claude was killed by SIGSEGV twice in a row"),
        ),
        (
            &[("claude", error), ("codex", well), ("claude", error), ("codex", well), ("claude", error)],
            Some("claude failed with the same error 3 times in a row: no such model"),
        ),
        (&[("claude", killed), ("claude", killed), ("claude", well), ("codex", well)], None),
        (&[("claude", error), ("codex", well), ("claude", killed)], None),
    ] {
        let mut world = World::running();
        world.budget("{max_iterations: 10}");
        for (n, (peer, change)) in (1..).zip(ticks) {
            world.tick(n, peer, *change);
        }
        let why = super::row::held(&world).attention.top.why;
        assert_eq!(Some(why.as_str()).filter(|why| why.contains("claude ")), says, "{why}");
    }
}

#[test]
fn a_command_goes_on_where_and_as_the_run_worked() {
    let mut world = stopped(StopReason::StuckIdle, "{}", &[&|_| {}]);
    world.amend(|record| {
        record.workdir = "/data/apart".into();
        record.request.max_usd = Usd::from_f64(20.5);
    });
    let next = world.view().attention.top.next.unwrap();
    assert!(next.contains("(`peers report`)"), "{next}");
    assert!(next.ends_with("then `peers -C /data/apart run --max-usd 20.50`"), "{next}");
    let mut asked = world.asked(Lock::Free);
    asked.spelling = Spelling::Loop { dir: Some("../repo".into()) };
    let next = world.read(&asked).attention.top.next.unwrap();
    assert!(next.contains("(`peers -C ../repo report`)"), "{next}");
}
