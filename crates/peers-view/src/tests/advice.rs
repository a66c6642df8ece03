//! The table of advice: (stop reason, facts) to why, what is said and what is typed, for both readers.

use peers_model::Timestamp;
use peers_model::outcome::{ApiClass, BudgetKind, ErrorKind, ExitClass, StopReason, TamperKind};
use peers_model::record::{SkepticVerdict, TickOutcome, TickRecord};
use peers_store::runs;

use super::row::row;
use super::{World, goal, name};
use crate::{Cause, Spelling};

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
    (tick.success, tick.outcome, tick.exit.class) = (false, TickOutcome::PeerFailed, ExitClass::Nonzero);
}

fn killed(tick: &mut TickRecord) {
    fails(tick);
    (tick.exit.class, tick.exit.signal) = (ExitClass::Signal, Some(11));
}

fn refused(api: ApiClass) -> impl Fn(&mut TickRecord) {
    move |tick| {
        fails(tick);
        (tick.outcome, tick.exit.api) = (TickOutcome::NeedsOperator, api);
    }
}

const LOG_IN: &str = "log `claude` in (start `claude` and type `/login`, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN), ask it for a word with `peers doctor --live`, then `peers run`";

/// What stopped, the end of why, what is said to who has `peers` alone, what is typed by name.
type Case<'a> = (World, &'a str, &'a str, &'a str);

fn table() -> Vec<Case<'static>> {
    let plain = |reason| stopped(reason, "{max_iterations: 10}", &[&|_| {}]);
    let budget = |kind, budget| stopped(StopReason::Budget(kind), budget, &[&|_| {}]);
    let peer = |api| {
        let ticks: [Change; 1] = [&refused(api)];
        stopped(StopReason::PeerUnavailable(name("claude")), "{}", &ticks)
    };
    vec![
        (
            plain(StopReason::MaxTicks),
            "max_ticks: what it said",
            "`peers run` goes on, or leave it as it is",
            "peers-ctl start billing",
        ),
        (
            plain(StopReason::Drained),
            "drained: what it said",
            "`peers run` goes on",
            "peers-ctl start billing",
        ),
        (
            budget(BudgetKind::MaxIterations, "{max_iterations: 1}"),
            "1 of 1",
            "1 of 1 are used up: raise `budget.max_iterations` in .peers/config.yaml (`peers goals edit --config`), or leave it as it is",
            "peers-ctl budget raise billing --ticks +1, then peers-ctl resume billing --start",
        ),
        (
            budget(BudgetKind::MaxIterations, "{max_iterations: 9}"),
            "1 of 9: raised since, and not started",
            "`peers run` goes on",
            "peers-ctl resume billing --start",
        ),
        (
            stopped(StopReason::Budget(BudgetKind::MaxConsecutiveFailures), "{}", &[&killed, &killed]),
            "claude was killed by SIGSEGV twice in a row",
            "find out why the last turns failed (`peers replay 2`), then `peers run`: a new run counts anew",
            "peers-ctl replay billing --from-tick 2",
        ),
        (
            budget(BudgetKind::Deadline, "{}"),
            "budget:deadline",
            "set a later `budget.deadline` in .peers/config.yaml, or none (`peers goals edit --config`), or leave it as it is",
            "peers -C /home/ann/repo goals edit --config",
        ),
        (
            stopped(StopReason::StuckSkeptic, "{}", &[&|tick| tick.skeptic = Some(SkepticVerdict::Found)]),
            "stuck:skeptic: what it said",
            "read the last ticks with `peers replay 1`; the skeptic gave no usable verdict",
            "peers-ctl replay billing --from-tick 1",
        ),
        (
            plain(StopReason::StuckIdle),
            "stuck:idle: what it said",
            "see what is missing (`peers report`), help or change the goals, then `peers run`",
            "peers-ctl report billing",
        ),
        (
            plain(StopReason::Unjudged(goal("lint-clean"))),
            "unjudged:lint-clean: what it said",
            "fix the gate's command or its tool (`peers verify --only lint-clean` judges it again), then `peers run`",
            "peers -C /home/ann/repo verify --only lint-clean",
        ),
        (
            peer(ApiClass::Auth),
            "peer-unavailable:claude: what it said",
            LOG_IN,
            "claude, then /login, then peers-ctl resume billing --start",
        ),
        (
            peer(ApiClass::Quota),
            "peer-unavailable:claude: what it said",
            "buy credit for the account of `claude`, or give it another model or tool (`peers goals edit --config`), ask it for a word with `peers doctor --live`, then `peers run`",
            "peers-ctl doctor billing --live",
        ),
        (
            stopped(StopReason::AllPeersDegraded, "{}", &[&fails]),
            "peer-unavailable:all-peers-degraded: what it said",
            "read .peers/HALTED.md and why turns fail (`peers replay 1`), fix the cause, then `peers run`",
            "peers-ctl replay billing --from-tick 1",
        ),
        (
            plain(StopReason::Tamper(TamperKind::History)),
            "tamper:history: what it said",
            "find out who changed it before you run again; `peers report` names the tick",
            "peers-ctl report billing",
        ),
        (
            plain(StopReason::Error(ErrorKind::DiskFull)),
            "error:disk-full: what it said",
            "free some disk space (`df -h .`), then `peers run`",
            "df -h /home/ann/repo, then peers-ctl start billing",
        ),
        (
            plain(StopReason::Error(ErrorKind::Git)),
            "error:git: what it said",
            "`peers run` goes on: the journal knows where it stopped; if it repeats, report it",
            "peers-ctl start billing",
        ),
    ]
}

/// The commands of a cause: those that are typed, and those that its sentence only speaks of.
fn commands(cause: &Cause) -> Vec<String> {
    let typed = cause.action.iter().flat_map(|action| action.split(", then ")).map(str::to_owned);
    let said = cause.next.iter().flat_map(|next| next.split('`').skip(1).step_by(2)).map(str::to_owned);
    typed.chain(said).collect()
}

#[test]
fn one_state_has_one_advice_which_each_reader_gets_in_commands_of_his_own() {
    for (world, why, said, typed) in table() {
        let (ctl, alone) = (row(&world).attention.top, world.view().attention.top);
        assert!(alone.why.contains(why), "{alone:?}");
        assert_eq!((alone.level, alone.code, &alone.why), (ctl.level, ctl.code, &ctl.why));
        assert_eq!(alone.next.as_deref(), Some(said));
        assert_eq!(ctl.action.as_deref(), Some(typed), "{why}");
        for cause in [&ctl, &alone] {
            let (next, action) = (cause.next.as_ref().unwrap(), cause.action.as_ref().unwrap());
            for command in action.split(", then ") {
                assert!(next.contains(&format!("`{command}`")), "{command} is not in: {next}");
            }
        }
        let foreign = commands(&ctl).into_iter().find(|command| command.starts_with("peers run"));
        assert_eq!(foreign, None, "{ctl:?}");
    }
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
    for (world, ..) in table() {
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
fn a_limit_that_ends_by_itself_has_its_time() {
    let until = Timestamp::from_millis(9_223_372_036_854);
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        refused(ApiClass::UsageCap)(tick);
        tick.exit.resets_at = Some(until);
    });
    world.exit(StopReason::PeerUnavailable(name("claude")), "");
    for top in [row(&world).attention.top, world.view().attention.top] {
        assert_eq!(top.wait_until, Some(until));
        let next = top.next.unwrap();
        assert!(next.starts_with("wait until 2262-") && next.contains(", then `peers"), "{next}");
    }
}

#[test]
fn a_peer_that_dies_of_the_same_again_is_named_while_the_loop_runs() {
    let why = |ticks: &[(&str, Change)]| {
        let mut world = World::running();
        world.budget("{max_iterations: 10}");
        for (n, (peer, change)) in (1..).zip(ticks) {
            world.tick(n, peer, *change);
        }
        super::row::held(&world).attention.top.why
    };
    let well: Change = &|_| {};
    let error: Change = &|tick| {
        fails(tick);
        tick.soft_fail_reason = Some("no such model".into());
    };
    let twice = "claude was killed by SIGSEGV twice in a row";
    assert_eq!(why(&[("claude", &killed), ("codex", well), ("claude", &killed), ("codex", well)]), twice);
    let thrice = [("claude", error), ("codex", well), ("claude", error), ("codex", well), ("claude", error)];
    assert_eq!(why(&thrice), "claude failed with the same error 3 times in a row: no such model");
    let recovered = why(&[("claude", &killed), ("claude", &killed), ("claude", well), ("codex", well)]);
    assert!(!recovered.contains("SIGSEGV"), "{recovered}");
    let differs = why(&[("claude", error), ("codex", well), ("claude", &killed)]);
    assert!(!differs.contains("SIGSEGV"), "{differs}");
}

#[test]
fn a_command_goes_on_where_and_as_the_run_worked() {
    let mut world = stopped(StopReason::StuckIdle, "{}", &[&|_| {}]);
    let mut record = runs::all(world.store.disk()).unwrap().pop().unwrap();
    record.workdir = "/data/apart".into();
    record.request.max_usd = peers_model::Usd::from_f64(20.5);
    runs::write(world.store.disk(), &record).unwrap();
    let next = world.view().attention.top.next.unwrap();
    assert!(next.contains("(`peers report`)"), "{next}");
    assert!(next.ends_with("then `peers -C /data/apart run --max-usd 20.50`"), "{next}");
    let mut asked = world.asked(crate::Lock::Free);
    asked.spelling = Spelling::Loop { dir: Some("../repo".into()) };
    let next = crate::LoopView::read(&mut world.disk(), &asked).attention.top.next.unwrap();
    assert!(next.contains("(`peers -C ../repo report`)"), "{next}");
}
