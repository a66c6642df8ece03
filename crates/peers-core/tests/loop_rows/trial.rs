//! Gates are tried in a clean checkout before a turn is paid for, and a proof that cannot be run is nobody's fault.

use peers_core::machine::{Effect, Notice, Phase, Purpose, StopRequest};
use peers_model::outcome::StopReason;
use peers_model::record::{Record, TrialRecord};
use peers_model::verdict::Place;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn};

fn tried(gate: Gate) -> Bench {
    let mut bench = Bench::bare("ann bob");
    bench.gate("own", gate);
    bench.cfg.trial_s = 600;
    bench.cfg.max_ticks = Some(12);
    bench.habit = Habit::Good("start");
    bench
}

fn trials(bench: &Bench) -> Vec<&TrialRecord> {
    bench.log.iter().filter_map(|r| if let Record::Trial(trial) = r { Some(trial) } else { None }).collect()
}

fn detail(bench: &Bench) -> String {
    let Some(Record::Exit(exit)) = bench.log.last() else { panic!("no exit record") };
    exit.detail.clone()
}

fn is_trial(phase: &Phase) -> bool {
    matches!(phase, Phase::Proving(.., Purpose::Trial))
}

#[test]
fn a_gate_that_is_green_here_alone_parks_before_a_turn_and_says_what_to_write() {
    for gate in [Gate::ProofRed, Gate::ProofCannot, Gate::ProofNotSetUp] {
        let mut bench = tried(gate);
        assert_eq!(bench.run(), StopReason::ParkedProof, "{gate:?}");
        assert!(bench.ticks().is_empty(), "no turn was paid for");
        let said = detail(&bench);
        assert!(said.starts_with("`own` passes in the work tree and not in a clean checkout of "), "{said}");
        assert!(said.contains("`setup: {commands: [{cmd: npm ci}]}`"), "{said}");
        assert_eq!(trials(&bench)[0].only_here.len(), 1);
        assert!(bench.m.state.proofs.verdicts.is_empty(), "a trial proves nothing");
    }
    // The line is one of YAML whatever the command is.
    let mut bench = tried(Gate::ProofRed);
    bench.cfg.setup_hint = Some("pip install -e '.[test]'".into());
    assert_eq!(bench.run(), StopReason::ParkedProof);
    let said = detail(&bench);
    assert!(said.contains(r#"`setup: {commands: [{cmd: "pip install -e '.[test]'"}]}`"#), "{said}");
}

#[test]
fn a_gate_whose_command_is_found_nowhere_stops_each_start_before_a_turn_until_it_is() {
    let mut bench = tried(Gate::NotFound);
    let unjudged = StopReason::Unjudged("own".parse().unwrap());
    assert_eq!((bench.run(), bench.run()), (unjudged.clone(), unjudged));
    assert_eq!((trials(&bench).len(), bench.ticks().len()), (2, 0));
    assert!(detail(&bench).starts_with("its command cannot be run"), "{}", detail(&bench));
    // Red for another cause is what agents mend, and what is still to be written is passed over on demand.
    bench.gate("own", Gate::Red);
    bench.cfg.max_ticks = Some(1);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    bench.gate("own", Gate::NotFound);
    bench.cfg.anyway = true;
    assert_eq!(bench.run(), StopReason::MaxTicks);
}

#[test]
fn a_setup_that_fails_where_all_is_red_anyway_is_told_before_a_turn_is_paid_for() {
    let mut bench = tried(Gate::NotSetUp);
    bench.cfg.max_ticks = Some(1);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    let says = |said: &String| said.contains("before `setup` works") && said.ends_with("does not: it is red");
    let told = |effect: &Effect| matches!(effect, Effect::Tell(Notice::Warning(said)) if says(said));
    let at = bench.effects.iter().position(told).unwrap();
    let paid = bench.effects.iter().position(|effect| matches!(effect, Effect::RunPeer(_))).unwrap();
    assert!(at < paid);
}

#[test]
fn one_that_is_green_there_too_is_not_tried_again_and_still_proved() {
    let mut bench = tried(Gate::Green);
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!((trials(&bench).len(), bench.judged(Place::Pristine).len()), (1, 2));
}

#[test]
fn what_was_parked_is_tried_again_at_the_next_start_and_passed_over_on_demand() {
    let mut bench = tried(Gate::ProofRed);
    bench.cfg.max_ticks = Some(1);
    assert_eq!(bench.run(), StopReason::ParkedProof);
    assert_eq!(bench.run(), StopReason::ParkedProof);
    assert_eq!(trials(&bench).len(), 2);
    bench.habit = Habit::Busy;
    bench.cfg.anyway = true;
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!((trials(&bench).len(), bench.ticks().len()), (2, 1));
}

#[test]
fn ctrl_c_skips_it_the_time_limit_ends_it_and_another_signal_stops() {
    for by_limit in [false, true] {
        let mut bench = tried(Gate::ProofRed);
        bench.begin();
        bench.until_phase(is_trial);
        if by_limit {
            let until = bench
                .effects
                .iter()
                .find_map(|e| if let Effect::SetTimer(at) = e { Some(*at) } else { None });
            assert_eq!(until, Some(bench.now.plus(std::time::Duration::from_mins(10))));
            bench.feed(peers_core::machine::Event::Timer);
        } else {
            bench.stop(StopRequest::Graceful(2));
        }
        assert!(is_trial(&bench.m.phase) && bench.effects.last() == Some(&Effect::CancelGates));
        // It answers with what there is by then.
        bench.until_phase(|phase| matches!(phase, Phase::Running { .. }));
        assert!(trials(&bench)[0].cut && trials(&bench)[0].only_here.is_empty());
    }
    let mut bench = tried(Gate::ProofRed);
    bench.begin();
    bench.until_phase(is_trial);
    bench.stop(StopRequest::Graceful(15));
    assert_eq!(bench.finish(), StopReason::Interrupted(15));
    assert!(trials(&bench).is_empty());
    // No tick is there to wait for.
    let mut bench = tried(Gate::ProofRed);
    bench.begin();
    bench.until_phase(is_trial);
    bench.stop(StopRequest::AfterTick);
    assert!(matches!(bench.m.phase, Phase::Stopped(_)) && bench.effects.contains(&Effect::CancelGates));
}

#[test]
fn a_proof_that_cannot_be_run_parks_at_once_and_is_no_red_of_the_peers() {
    let cases: [(Gate, &str); 2] = [
        (Gate::ProofNotFound, "its command could not be run (exit code 127)"),
        (Gate::ProofNotSetUp, "`setup` failed twice"),
    ];
    for (gate, why) in cases {
        let mut bench = tried(Gate::Green);
        bench.begin();
        bench.until_phase(|phase| matches!(phase, Phase::Running { .. }));
        bench.gate("own", gate);
        assert_eq!(bench.finish(), StopReason::ParkedProof);
        let said = detail(&bench);
        assert!(said.contains(why) && said.contains("npm ci"), "{said}");
        assert_eq!(bench.ticks().len(), 1, "the skeptic's");
    }
    // As it was before the first turn.
    let mut bench = tried(Gate::ProofRed);
    assert_eq!(bench.run(), StopReason::ParkedProof);
    bench.cfg.anyway = true;
    assert_eq!(bench.run(), StopReason::ParkedProof);
    assert_eq!(bench.ticks().len(), 1);
    assert!(detail(&bench).contains("as before the first turn"), "{}", detail(&bench));
}

#[test]
fn a_proof_that_is_red_for_a_change_of_the_peers_is_theirs() {
    // Its command runs, and answers no.
    let mut bench = tried(Gate::Green);
    bench.cfg.max_ticks = Some(3);
    bench.begin();
    bench.until_phase(|phase| matches!(phase, Phase::Running { .. }));
    bench.gate("own", Gate::ProofRed);
    assert_eq!(bench.finish(), StopReason::MaxTicks);
    // `setup` fails by manifests that a turn changed.
    let mut bench = tried(Gate::Green);
    bench.cfg.max_ticks = Some(3);
    bench.begin();
    bench.until_phase(|phase| matches!(phase, Phase::Running { .. }));
    bench.gate("own", Gate::ProofNotSetUp);
    bench.world.manifests = "changed";
    assert_eq!(bench.finish(), StopReason::MaxTicks);
}

#[test]
fn a_proof_that_an_earlier_run_left_red_is_proved_before_a_turn_is_paid_for() {
    let mut bench = tried(Gate::ProofRed);
    bench.cfg.trial_s = 0;
    bench.cfg.max_ticks = Some(3);
    bench.plays([Turn::skeptic()]);
    assert_eq!(bench.judged(Place::Pristine).len(), 1, "within a run an unchanged tree is not proved twice");
    bench.gate("own", Gate::Green);
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.ticks().len(), 3, "no further turn");
}
