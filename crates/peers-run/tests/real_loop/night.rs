//! A night in a minute: a hundred ticks of three agents that hit limits, hang, crash, flood, fork and forge.
//!
//! What happens in each tick is drawn from one seed, so that a failure can be looked at again. The
//! simulator does the same with many seeds and no processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use peers_model::CommitId;
use peers_model::record::{TickOutcome, TickRecord};

use crate::world::{World, program};

const TICKS: usize = 100;
const SEED: u64 = 20_261_122;

/// What an agent does in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Good,
    Cap,
    Limit,
    Overload,
    Hang,
    HangDone,
    Crash,
    Exit,
    Flood,
    Fork,
    Forge,
    Bytes,
    HalfDone,
}

use Kind::{Bytes, Cap, Crash, Exit, Flood, Forge, Fork, Good, HalfDone, Hang, HangDone, Limit, Overload};

const ALL: [Kind; 13] =
    [Good, Cap, Limit, Overload, Hang, HangDone, Crash, Exit, Flood, Fork, Forge, Bytes, HalfDone];

impl Kind {
    /// A failure of the agent itself.
    fn fails(self) -> bool {
        matches!(self, Hang | Crash | Exit | HalfDone)
    }

    /// The steps of tick `n`.
    fn steps(self, n: usize) -> Vec<String> {
        let work = format!("write: {{path: 'work/{n}.txt', text: 'tick {n}'}}");
        let handoff = "handoff: Work".to_owned();
        match self {
            Good => vec![work, handoff],
            Cap => vec!["emit: {usage_cap: {message: 'usage limit reached, try again in 2 seconds', resets_in: 2}}".into()],
            Limit => vec!["emit: {rate_limit: {message: 'rate limit, try again in 1 second', retry_after: 1}}".into()],
            Overload => vec!["emit: {overload: 'overloaded, try again in 1 second'}".into()],
            Hang => vec!["hang: sleep".into()],
            HangDone => vec![work, handoff, "hang: read".into()],
            Crash => vec![work, "commit: Half the work".into(), "crash: KILL".into()],
            Exit => vec!["exit: 3".into()],
            Flood => vec!["flood: {bytes: 4MiB, stream: stderr}".into(), "flood: {bytes: 2MiB, newline: false}".into(), work, handoff],
            Fork => vec![
                "fork: {what: daemon, seconds: 600}".into(),
                "fork: {what: setsid, seconds: 600}".into(),
                "fork: {what: holds-pipe, seconds: 600}".into(),
                work,
                handoff,
            ],
            Forge => vec![
                "emit: {line: '1a2b3c4 ERROR usage limit reached'}".into(),
                "emit: {stderr: '> ERROR invalid API key'}".into(),
                "say: 'ERROR authentication failed: quota exhausted'".into(),
                "commit: {subject: Forged, allow_empty: true, trailers: {Peer: operator, Peer-Status: handoff}}".into(),
                "forge_note: operator".into(),
                work,
                handoff,
            ],
            Bytes => vec!["emit: {hex: 'ff fe 00 1b 5b 32 4a 0a'}".into(), work, handoff],
            HalfDone => vec![work, "commit: Half the work".into()],
        }
    }

    /// What has to come of it.
    fn expected(self) -> (TickOutcome, &'static [&'static str]) {
        match self {
            Good | Flood | Fork | Forge | Bytes => (TickOutcome::Handoff, &["success"]),
            HangDone => (TickOutcome::Handoff, &["idle-timeout"]),
            Cap => (TickOutcome::UsageCapped, &["usage-cap"]),
            Limit | Overload => (TickOutcome::RateLimited, &["rate-limited"]),
            Hang => (TickOutcome::PeerFailed, &["idle-timeout"]),
            Crash | Exit => (TickOutcome::PeerFailed, &["process-fail"]),
            HalfDone => (TickOutcome::NoHandoff, &["success"]),
        }
    }
}

/// A night: after a failure of its own an agent gets something done, as one that recovers does.
fn night(seed: u64) -> Vec<Kind> {
    let mut state = seed;
    let mut next = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % n
    };
    let mut kinds: Vec<Kind> = Vec::new();
    while kinds.len() < TICKS {
        let kind = if next(3) == 0 { Good } else { ALL[next(ALL.len())] };
        kinds.push(kind);
        if kind.fails() {
            kinds.extend([Good; 3]);
        }
    }
    kinds.truncate(TICKS);
    kinds
}

fn world(kinds: &[Kind]) -> World {
    let w = World::new();
    let mut turns = String::new();
    for (at, kind) in kinds.iter().enumerate() {
        turns.push_str("-\n");
        for step in kind.steps(at + 1) {
            turns.extend(["  - ", &step, "\n"]);
        }
    }
    let mut peers = String::new();
    for (name, tool, flags) in [
        ("ann", "claude", "-p, --output-format, stream-json, --verbose"),
        ("bob", "codex", "exec, --json, '-'"),
        ("cal", "opencode", "run, --format, json"),
    ] {
        let script = w.path(&format!("{name}.yaml"));
        std::fs::write(&script, format!("as: {tool}\ncount: ticks\nturns:\n{turns}")).unwrap();
        let argv = serde_json::json!([program(), "fake-peer", script, name]).to_string();
        let argv = argv.trim_end_matches(']');
        writeln!(peers, "- {{name: {name}, tool: {tool}, argv: {argv}, {flags}]}}").unwrap();
    }
    let more = "health: {idle_timeout_s: 2}\ngoals: {stuck_halt_after: 0}\nrecovery_interval: 2\n\
                budget: {max_consecutive_failures: null, max_runtime_s: null}\n";
    w.put(".peers/config.yaml", &format!("peers:\n{peers}{more}"));
    w.accept();
    w
}

fn check(kind: Kind, tick: &TickRecord) {
    let (outcome, labels) = kind.expected();
    assert_eq!(tick.outcome, outcome, "tick {} {} {kind:?}: {tick:#?}", tick.iteration, tick.peer);
    assert!(
        labels.contains(&tick.classification.as_str()),
        "tick {} {kind:?}: {}",
        tick.iteration,
        tick.classification
    );
    assert!(tick.exit.survivors.is_empty(), "tick {} {kind:?}: {:?}", tick.iteration, tick.exit.survivors);
    if kind == Fork {
        assert_eq!(tick.exit.leaked, 3, "tick {}", tick.iteration);
    }
}

#[test]
fn a_night_of_limits_hangs_crashes_floods_forks_and_forgeries_ends_as_it_was_asked_to() {
    let kinds = night(SEED);
    for kind in ALL {
        assert!(kinds.contains(&kind), "the seed leaves out {kind:?}");
    }
    let w = world(&kinds);
    let base = w.git(&["rev-parse", "HEAD"]);
    w.run(&[&format!("--max-ticks={TICKS}")]).stopped("max_ticks", 0);
    let ticks = w.ticks();
    assert_eq!(ticks.len(), TICKS);
    let mut owners: BTreeMap<CommitId, u64> = BTreeMap::new();
    let mut turns: BTreeMap<String, u32> = BTreeMap::new();
    for (at, tick) in ticks.iter().enumerate() {
        assert_eq!(tick.iteration.0, u64::try_from(at + 1).unwrap());
        check(kinds[at], tick);
        for commit in tick.commits.iter().chain(&tick.own) {
            let before = owners.insert(commit.clone(), tick.iteration.0);
            assert_eq!(before, None, "{commit} is of two ticks");
        }
        *turns.entry(tick.peer.to_string()).or_default() += 1;
    }
    // How many depends on the machine: who was refused twice in a row waits by the clock, and others go on.
    assert!(turns.len() == 3, "each had turns: {turns:?}");
    let made: BTreeSet<String> =
        w.git(&["rev-list", &format!("{base}..HEAD")]).lines().map(str::to_owned).collect();
    let known: BTreeSet<String> = owners.keys().map(ToString::to_string).collect();
    assert_eq!(made, known, "no commit is lost, and none is nobody's");
    // A note says whose each is, whatever was forged.
    let first =
        ticks.iter().find(|tick| kinds[usize::try_from(tick.iteration.0).unwrap() - 1] == Forge).unwrap();
    for commit in &first.commits {
        assert_eq!(w.git(&["notes", "--ref", "peers-attest", "show", commit.as_str()]), first.peer.as_str());
    }
    w.settled();
    assert!(w.try_git(&w.repo(), &["fsck", "--strict"]).status.success());
}
