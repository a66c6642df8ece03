//! Tests of `watch`.

use proptest::prelude::*;

use super::*;

const LIMITS: WatchLimits = WatchLimits {
    idle: ms(1000),
    absolute: ms(2000),
    budget: None,
    hang: None,
    grace: ms(500),
    drain: ms(200),
    kill_wait: ms(100),
    tail_quiet: ms(300),
    halt_quiet: ms(400),
};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn bytes(n: u64) -> WatchIn {
    WatchIn::Bytes { stream: Stream::Out, n }
}

const CLOSED_OUT: WatchIn = WatchIn::PipesClosed { stream: Stream::Out };
const CLOSED_ERR: WatchIn = WatchIn::PipesClosed { stream: Stream::Err };
const ERROR: WatchIn = WatchIn::PatternHit { halt: false };
const HALT: WatchIn = WatchIn::PatternHit { halt: true };
const GRACEFUL: WatchIn = WatchIn::Stop(StopHow::Graceful);
const NOW: WatchIn = WatchIn::Stop(StopHow::Now);

const TERM: WatchAct = WatchAct::SignalGroup(WatchSignal::Term);
const KILL: WatchAct = WatchAct::SignalGroup(WatchSignal::Kill);

/// Drives a watch and keeps what it asked for.
struct Drive {
    watch: Watch,
    now: u64,
    acts: Vec<(u64, WatchAct)>,
}

impl Drive {
    fn new() -> Self {
        Self { watch: Watch::new(LIMITS, Mono::from_millis(0)), now: 0, acts: Vec::new() }
    }

    fn started() -> Self {
        Self::new().at(0, WatchIn::Started)
    }

    /// Feeds an input at a time, after the deadlines that are due before it.
    fn at(mut self, time: u64, input: WatchIn) -> Self {
        while let Some(due) = self.watch.poll_deadline().filter(|d| d.as_millis() < time) {
            self.put(due.as_millis(), WatchIn::Deadline);
        }
        self.put(time, input);
        self
    }

    fn put(&mut self, time: u64, input: WatchIn) {
        self.now = time;
        self.watch.on(Mono::from_millis(time), input);
        while let Some(act) = self.watch.poll_action() {
            self.acts.push((time, act));
        }
        if let Some(deadline) = self.watch.poll_deadline() {
            assert!(
                deadline.as_millis() > time,
                "a deadline that is due was not taken: {deadline:?} at {time}"
            );
        }
    }

    /// Lets time pass until it is over.
    fn finish(mut self) -> (WatchOutcome, Vec<(u64, WatchAct)>) {
        for _ in 0..16 {
            let Some(due) = self.watch.poll_deadline() else { break };
            self.put(due.as_millis().max(self.now), WatchIn::Deadline);
        }
        let outcome = self.watch.outcome().expect("it ends when every deadline fires");
        (outcome, self.acts)
    }
}

fn end(drive: Drive) -> EndReason {
    drive.finish().0.end
}

fn acts(drive: Drive) -> Vec<(u64, WatchAct)> {
    drive.finish().1
}

#[test]
fn a_child_that_exits_is_swept_reaped_and_reported() {
    let drive =
        Drive::started().at(10, bytes(5)).at(20, CLOSED_OUT).at(20, CLOSED_ERR).at(30, WatchIn::Exited);
    let (outcome, acts) = drive.finish();
    assert_eq!(acts, [(30, WatchAct::SweepGroup), (30, WatchAct::Reap), (30, WatchAct::Report)]);
    assert_eq!(
        outcome,
        WatchOutcome {
            end: EndReason::Exited,
            exit_seen: true,
            killed: false,
            drained: true,
            took: ms(30),
            quiet: ms(20),
            open_tools: 0,
            halt_seen: false,
            bytes_out: 5,
            bytes_err: 0,
        }
    );
}

#[test]
fn a_descendant_that_holds_a_pipe_costs_the_drain_limit_and_no_more() {
    let drive = Drive::started().at(30, WatchIn::Exited).at(40, CLOSED_OUT).at(150, bytes(9));
    let (outcome, acts) = drive.finish();
    assert_eq!(acts.last(), Some(&(230, WatchAct::Report)));
    assert!(acts.contains(&(230, WatchAct::StopReading)));
    assert_eq!((outcome.drained, outcome.took), (false, ms(30)));
    assert_eq!(outcome.bytes_out, 9, "late output is kept");
}

#[test]
fn row_17_silence_ends_the_child_by_the_ladder() {
    let drive = Drive::started().at(400, bytes(1));
    let (outcome, acts) = drive.finish();
    let wanted = [
        (700, WatchAct::ScanTail(Stream::Out)),
        (1400, TERM),
        (1900, KILL),
        (2000, WatchAct::SweepGroup),
        (2000, WatchAct::StopReading),
        (2000, WatchAct::Report),
    ];
    assert_eq!(acts, wanted);
    assert_eq!(outcome.end, EndReason::Idle);
    assert_eq!((outcome.exit_seen, outcome.killed, outcome.quiet), (false, true, ms(1000)));
}

#[test]
fn row_18_output_and_activity_reset_the_idle_clock_and_nothing_else_does() {
    let mut noisy = Drive::started();
    for at in [900, 1800] {
        noisy = noisy.at(at, bytes(1));
    }
    assert_eq!(end(noisy), EndReason::Absolute);
    let mut active = Drive::started();
    for (at, input) in [(900, WatchIn::Activity), (1700, WatchIn::ToolBegun)] {
        active = active.at(at, input);
    }
    assert_eq!(end(active), EndReason::Absolute);
    for input in [bytes(0), WatchIn::Deadline, CLOSED_OUT, WatchIn::Started, HALT] {
        let (outcome, acts) = Drive::started().at(550, input).finish();
        let first = acts.iter().find(|(_, act)| *act == TERM).expect("it is ended");
        assert!(first.0 <= 1000, "{input:?}: {outcome:?}");
    }
}

#[test]
fn an_error_pattern_ends_the_child_at_once() {
    let drive = Drive::started().at(100, ERROR);
    assert_eq!(acts(drive)[0], (100, TERM));
    assert_eq!(end(Drive::started().at(100, ERROR)), EndReason::Pattern { halt: false });
}

#[test]
fn a_halt_pattern_is_confirmed_by_silence() {
    let (outcome, acts) = Drive::started().at(100, bytes(9)).at(100, HALT).finish();
    assert_eq!(acts.iter().find(|(_, a)| *a == TERM), Some(&(500, TERM)));
    assert_eq!((outcome.end, outcome.halt_seen), (EndReason::Pattern { halt: true }, false));
}

#[test]
fn a_child_that_talks_on_after_a_halt_pattern_is_not_ended_for_it() {
    let mut drive = Drive::started().at(100, HALT);
    for at in [300, 600, 900, 1200] {
        drive = drive.at(at, bytes(1));
    }
    let (outcome, acts) = drive.at(1300, WatchIn::Exited).finish();
    assert!(!acts.iter().any(|(_, a)| matches!(a, WatchAct::SignalGroup(_))));
    assert_eq!((outcome.end, outcome.halt_seen), (EndReason::Exited, true));
}

#[test]
fn row_26_an_unterminated_line_is_scanned_before_the_idle_kill_however_short_the_idle_limit() {
    for idle in [20, 1000] {
        let limits = WatchLimits { idle: ms(idle), ..LIMITS };
        let mut drive = Drive::with(limits);
        drive.put(5, WatchIn::Bytes { stream: Stream::Err, n: 3 });
        let acts = acts(drive);
        let scan =
            acts.iter().position(|(_, a)| *a == WatchAct::ScanTail(Stream::Err)).expect("it is scanned");
        let term = acts.iter().position(|(_, a)| *a == TERM).expect("it is ended");
        assert!(scan < term && acts[scan].0 < acts[term].0, "idle {idle}: {acts:?}");
        assert_eq!(acts.iter().filter(|(_, a)| matches!(a, WatchAct::ScanTail(_))).count(), 1);
    }
}

#[test]
fn a_graceful_stop_gives_grace_and_a_second_request_kills() {
    assert_eq!(acts(Drive::started().at(100, GRACEFUL))[..2], [(100, TERM), (600, KILL)]);
    let twice = Drive::started().at(100, GRACEFUL).at(200, NOW);
    assert_eq!(acts(twice)[..2], [(100, TERM), (200, KILL)]);
    assert_eq!(end(Drive::started().at(100, GRACEFUL).at(200, NOW)), EndReason::StoppedNow);
    assert_eq!(end(Drive::started().at(100, GRACEFUL).at(200, GRACEFUL)), EndReason::StoppedGraceful);
}

#[test]
fn stop_now_while_ending_escalates_and_keeps_the_first_reason() {
    let drive = Drive::started().at(1100, NOW);
    assert_eq!(acts(drive)[..2], [(1000, TERM), (1100, KILL)]);
    assert_eq!(end(Drive::started().at(1100, NOW)), EndReason::Idle);
}

#[test]
fn an_end_decided_before_the_start_signals_the_child_once_it_is_there() {
    let stopped = Drive::new().at(5, GRACEFUL).at(10, WatchIn::Started);
    assert_eq!(acts(stopped)[..3], [(5, TERM), (10, TERM), (505, KILL)]);
    let killed = Drive::new().at(5, NOW).at(10, WatchIn::Started);
    assert_eq!(acts(killed)[..2], [(5, KILL), (10, KILL)]);
    let (outcome, _) = Drive::new().finish();
    assert_eq!(
        (outcome.end, outcome.exit_seen),
        (EndReason::Idle, false),
        "a start that never comes ends too"
    );
}

#[test]
fn of_causes_in_one_instant_the_one_with_precedence_gives_the_reason_in_any_order() {
    // Silence and the total limit are both due at 1000 for this child.
    let limits = WatchLimits { absolute: ms(1000), ..LIMITS };
    let causes = [
        (NOW, EndReason::StoppedNow),
        (GRACEFUL, EndReason::StoppedGraceful),
        (WatchIn::Exited, EndReason::Exited),
        (ERROR, EndReason::Pattern { halt: false }),
        (WatchIn::Deadline, EndReason::Idle),
    ];
    for (rank, (first, wanted)) in causes.iter().enumerate() {
        for (second, _) in &causes[rank..] {
            for pair in [[first, second], [second, first]] {
                let mut drive = Drive::with(limits);
                for input in pair {
                    drive.put(1000, *input);
                }
                assert_eq!(end(drive), *wanted, "{pair:?}");
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_is_not_believed() {
    let mut watch = Watch::new(LIMITS, Mono::from_millis(5000));
    watch.on(Mono::from_millis(5000), WatchIn::Started);
    watch.on(Mono::from_millis(10), bytes(1));
    assert_eq!(watch.poll_deadline(), Some(Mono::from_millis(5300)));
}

#[test]
fn a_flood_cannot_starve_the_total_limit() {
    let mut drive = Drive::started();
    for at in 1..=30 {
        drive.put(at * 100, bytes(1_000_000));
    }
    assert!(drive.acts.contains(&(2000, TERM)), "{:?}", drive.acts);
}

/// What must hold for every run, however it went.
fn check(inputs: &[WatchIn], outcome: &WatchOutcome, acts: &[(u64, WatchAct)]) {
    let at = |wanted: WatchAct| acts.iter().position(|(_, act)| *act == wanted);
    let count = |wanted: WatchAct| acts.iter().filter(|(_, act)| *act == wanted).count();
    assert_eq!(count(WatchAct::Report), 1);
    assert_eq!(at(WatchAct::Report), Some(acts.len() - 1), "nothing follows the report");
    assert_eq!(count(WatchAct::Reap), usize::from(outcome.exit_seen));
    assert_eq!(count(WatchAct::SweepGroup), 1);
    if let Some(reap) = at(WatchAct::Reap) {
        assert!(at(WatchAct::SweepGroup).is_some_and(|sweep| sweep < reap));
        let later = acts.iter().skip(reap).any(|(_, act)| matches!(act, WatchAct::SignalGroup(_)));
        assert!(!later, "no signal after the leader was reaped");
    }
    if let Some(kill) = at(KILL) {
        assert!(at(TERM).is_some_and(|term| term < kill) || inputs.contains(&NOW), "{acts:?}");
        assert!(outcome.killed);
    }
    assert_eq!(count(WatchAct::StopReading), usize::from(!outcome.drained));
    match outcome.end {
        EndReason::StoppedNow => assert!(inputs.contains(&NOW)),
        EndReason::StoppedGraceful => assert!(inputs.contains(&GRACEFUL)),
        EndReason::Exited => assert!(outcome.exit_seen),
        EndReason::Pattern { halt: false } => assert!(inputs.contains(&ERROR)),
        EndReason::Pattern { halt: true } => assert!(inputs.contains(&HALT)),
        EndReason::Hopeless => assert!(inputs.contains(&WatchIn::Hopeless)),
        EndReason::Budget => assert!(inputs.contains(&WatchIn::Spent)),
        EndReason::Hung => panic!("nothing checked it"),
        EndReason::Idle | EndReason::Absolute => {}
    }
}

const ALPHABET: [WatchIn; 15] = [
    WatchIn::Started,
    bytes(7),
    WatchIn::Bytes { stream: Stream::Err, n: 1 },
    WatchIn::Activity,
    WatchIn::ToolBegun,
    ERROR,
    HALT,
    WatchIn::Hopeless,
    WatchIn::Spent,
    WatchIn::Exited,
    CLOSED_OUT,
    CLOSED_ERR,
    GRACEFUL,
    NOW,
    WatchIn::Deadline,
];

#[test]
fn every_short_sequence_of_inputs_ends_properly() {
    fn go(prefix: &mut Vec<(u64, WatchIn)>, depth: usize, seen: &mut u32) {
        let mut drive = Drive::new();
        let mut now = 0;
        for (step, input) in prefix.iter() {
            now += step;
            drive = drive.at(now, *input);
        }
        let inputs: Vec<WatchIn> = prefix.iter().map(|(_, input)| *input).collect();
        let (outcome, acts) = drive.finish();
        check(&inputs, &outcome, &acts);
        *seen += 1;
        if depth == 0 {
            return;
        }
        for input in ALPHABET {
            for step in [0, 450] {
                prefix.push((step, input));
                go(prefix, depth - 1, seen);
                prefix.pop();
            }
        }
    }
    let mut seen = 0;
    go(&mut Vec::new(), 3, &mut seen);
    let inputs = 2 * u32::try_from(ALPHABET.len()).unwrap();
    assert_eq!(seen, 1 + inputs + inputs.pow(2) + inputs.pow(3));
}

proptest! {
    #[test]
    fn any_sequence_of_inputs_ends_properly(
        steps in prop::collection::vec((0_u64..700, prop::sample::select(ALPHABET.to_vec())), 0..40),
        punctual in any::<bool>(),
    ) {
        let mut drive = Drive::new();
        let mut now = 0;
        for (step, input) in &steps {
            now += step;
            if punctual {
                drive = drive.at(now, *input);
            } else {
                drive.put(now, *input);
            }
        }
        let inputs: Vec<WatchIn> = steps.iter().map(|(_, input)| *input).collect();
        let before = drive.now;
        let (outcome, acts) = drive.finish();
        check(&inputs, &outcome, &acts);
        let last = acts.last().map_or(0, |(at, _)| *at);
        prop_assert!(last <= before.max(now) + 2000 + 500 + 100 + 200, "bounded by the limits");
    }
}

impl Drive {
    fn with(limits: WatchLimits) -> Self {
        let watch = Watch::new(limits, Mono::from_millis(0));
        Self { watch, now: 0, acts: Vec::new() }.at(0, WatchIn::Started)
    }

    fn asked(&self, act: WatchAct) -> Vec<u64> {
        self.acts.iter().filter(|(_, done)| *done == act).map(|(at, _)| *at).collect()
    }
}

const PATIENT: WatchLimits =
    WatchLimits { idle: ms(60_000), absolute: ms(90_000), hang: Some(ms(10_000)), ..LIMITS };
const STILL: WatchIn = WatchIn::Probed { still: true };
const MOVES: WatchIn = WatchIn::Probed { still: false };

#[test]
fn row_21_two_looks_apart_that_find_nothing_moving_end_a_silent_child() {
    let drive = Drive::with(PATIENT).at(10_000, WatchIn::Deadline);
    assert_eq!(drive.asked(WatchAct::Probe), [10_000]);
    let drive = drive.at(10_100, STILL).at(12_000, WatchIn::Deadline);
    assert_eq!(drive.asked(WatchAct::Probe), [10_000], "the second look is two seconds after the first");
    let drive = drive.at(12_100, WatchIn::Deadline).at(12_200, STILL);
    assert_eq!(drive.asked(WatchAct::Probe), [10_000, 12_100]);
    assert_eq!(drive.asked(TERM), [12_200]);
    let drive = drive.at(12_300, WatchIn::Exited).at(12_301, CLOSED_OUT).at(12_302, CLOSED_ERR);
    assert_eq!(drive.watch.outcome().unwrap().end, EndReason::Hung);
}

#[test]
fn row_21_a_sign_of_life_between_two_looks_keeps_it() {
    let drive = Drive::with(PATIENT).at(10_000, WatchIn::Deadline).at(10_100, STILL);
    let drive =
        drive.at(12_100, WatchIn::Deadline).at(12_200, MOVES).at(14_700, WatchIn::Deadline).at(14_800, STILL);
    assert!(drive.asked(TERM).is_empty());
    // Output starts the silence anew.
    let drive = drive.at(15_000, bytes(1)).at(24_999, WatchIn::Deadline);
    assert_eq!(drive.asked(WatchAct::Probe).len(), 3);
    let drive = drive.at(25_000, WatchIn::Deadline).at(25_100, STILL);
    assert!(drive.asked(TERM).is_empty(), "what was seen before the output does not count");
}

#[test]
fn nobody_is_looked_at_without_the_limit_and_a_look_that_is_not_answered_is_asked_again() {
    let drive = Drive::with(WatchLimits { hang: None, ..PATIENT }).at(59_000, WatchIn::Deadline);
    assert!(drive.asked(WatchAct::Probe).is_empty());
    let drive = Drive::with(PATIENT).at(15_000, WatchIn::Deadline);
    assert_eq!(drive.asked(WatchAct::Probe), [10_000, 12_000, 14_000]);
}

#[test]
fn a_hopeless_stream_and_a_cap_end_a_child_that_runs_and_no_other() {
    for (input, end) in [(WatchIn::Hopeless, EndReason::Hopeless), (WatchIn::Spent, EndReason::Budget)] {
        let drive = Drive::started().at(100, input);
        assert_eq!(drive.asked(TERM), [100]);
        let drive = drive.at(200, WatchIn::Exited).at(201, CLOSED_OUT).at(202, CLOSED_ERR);
        assert_eq!(drive.watch.outcome().unwrap().end, end);
        let late =
            Drive::started().at(100, WatchIn::Exited).at(101, input).at(102, CLOSED_OUT).at(103, CLOSED_ERR);
        assert_eq!(late.watch.outcome().unwrap().end, EndReason::Exited);
    }
}
