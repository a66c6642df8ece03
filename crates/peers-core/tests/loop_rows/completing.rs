//! What `complete` rests on: each test takes away exactly one thing.

use peers_core::board::GateBoard;
use peers_core::converge::{self, Standing};
use peers_core::machine::{Event, Phase};
use peers_core::prompt::GateState;
use peers_model::goal::TreeChoice;
use peers_model::outcome::{BudgetKind, StopReason};
use peers_model::record::Record;
use peers_model::verdict::{Judged, Place, TreeKey};

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, goal, tree};

impl Bench {
    fn standing(&self) -> Standing {
        converge::standing(&self.cfg, &self.m.state, &self.world.facts(&self.m.state))
    }

    /// Runs to the tick cap, which must not be `complete`, and says how far it got.
    fn incomplete(&mut self) -> Standing {
        assert_eq!(self.run(), StopReason::MaxTicks);
        assert!(self.exits().iter().all(|e| e.reason != StopReason::Complete && e.proof.is_none()));
        self.standing()
    }
}

#[test]
fn with_everything_in_place_it_completes() {
    let mut bench = Bench::converging();
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.standing(), Standing::Complete);
    assert_eq!(bench.order(), "ann bob bob", "the work, the review, the skeptic, who is not the author");
    assert_eq!(bench.exits()[0].proof.as_ref().unwrap().tree, tree("good"));
}

#[test]
fn complete_is_impossible_without_a_real_gate() {
    let mut bench = Bench::converging();
    bench.rule("tests-pass").shipped = true;
    assert_eq!(bench.incomplete(), Standing::NoRealGate);
}

#[test]
fn complete_is_impossible_without_green_at_the_final_tree() {
    let mut bench = Bench::converging();
    // Green at one tree on the way, which is not where it ends.
    bench.play([Turn::handoff("good")]);
    bench.habit = Habit::Good("worse");
    assert_eq!(bench.incomplete(), Standing::Red);
    assert!(bench.tick(1).verdicts.iter().any(|v| v.verdict.is_pass()), "it was green once");
}

#[test]
fn complete_is_impossible_while_one_of_many_gates_is_red_or_unjudged() {
    for odd in [Gate::Red, Gate::Cannot] {
        let mut bench = Bench::converging().up_to(2);
        bench.gate("lint-clean", odd);
        assert_eq!(bench.run().exit_code() != 0, odd == Gate::Cannot);
        assert_eq!(bench.standing(), Standing::Red);
    }
}

#[test]
fn complete_is_impossible_without_a_green_proof() {
    let mut bench = Bench::converging();
    bench.habit = Habit::Good("start");
    bench.gate("tests-pass", Gate::ProofRed);
    assert_eq!(bench.incomplete(), Standing::Red);
    assert_eq!(bench.judged(Place::Pristine).len(), 1);
}

#[test]
fn complete_is_impossible_without_a_fresh_soft_consensus() {
    let mut bench = Bench::converging();
    bench.habit = Habit::NoReview("good");
    assert_eq!(bench.incomplete(), Standing::SoftPending(vec![goal("docs-read")]));
}

#[test]
fn complete_is_impossible_when_a_scope_cannot_be_read() {
    let mut bench = Bench::converging();
    assert_eq!(bench.run(), StopReason::Complete);
    let mut facts = bench.world.facts(&bench.m.state);
    facts.scopes.clear();
    assert!(matches!(converge::standing(&bench.cfg, &bench.m.state, &facts), Standing::SoftPending(_)));
}

#[test]
fn complete_is_impossible_without_a_clean_skeptic() {
    let mut bench = Bench::converging();
    bench.habit = Habit::NoSkeptic("good");
    assert_eq!(bench.run(), StopReason::StuckSkeptic);
    assert_eq!(bench.standing(), Standing::SkepticOwed);
    assert!(bench.judged(Place::Pristine).is_empty(), "nothing was to be proved yet");
}

#[test]
fn complete_is_impossible_without_a_clean_work_tree() {
    let mut bench = Bench::converging();
    bench.habit = Habit::Untidy("good");
    bench.gate("tests-pass", Gate::Green);
    assert_eq!(bench.incomplete(), Standing::Dirty);
}

#[test]
fn complete_is_impossible_on_verdicts_measured_while_the_tree_moved() {
    let mut bench = Bench::green().up_to(1);
    bench.cfg.rules.skeptic_rounds = 0;
    // Three runs in a row during which the tree changed; then it lies still, where it was.
    bench.world.restless = 3;
    bench.play([Turn::nothing()]);
    bench.begin();
    bench.until(|b| b.m.state.open.is_some());
    assert_eq!(bench.judged(Place::Live).len(), 3);
    assert!(bench.prompts()[0].contains("a gate changes the work tree each time it runs"));
    assert_eq!(bench.finish(), StopReason::Complete);
    assert_eq!(bench.judged(Place::Live).len(), 4, "a pass that belongs to no tree is not kept");
    let counted =
        |r: &Record| if let Record::Gates(g) = r { Some((g.verdicts.len(), g.green, g.of)) } else { None };
    let counted: Vec<_> = bench.log.iter().filter_map(counted).collect();
    assert_eq!(counted, [(0, None, None), (1, Some(1), Some(1))], "nor is it counted");
}

#[test]
fn a_gate_is_counted_green_only_at_the_tree_that_was_judged() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.gate("lint-clean", Gate::Green);
    bench.run();
    let (rules, board) = (&bench.m.state.rules, &bench.m.state.board);
    let key = board.gates.values().find_map(|standing| standing.last.as_ref()).unwrap().at.clone();
    assert_eq!(board.greens_at(rules, &key), 1);
    assert_eq!(board.greens_at(rules, &TreeKey { tree: tree("elsewhere"), ..key }), 0);
}

#[test]
fn row_68_the_last_allowed_tick_may_complete() {
    let mut bench = Bench::green().up_to(1);
    assert_eq!(bench.run(), StopReason::Complete);
    let mut bench = Bench::green();
    bench.budget(|b| b.max_iterations = std::num::NonZeroU64::new(1));
    assert_eq!(bench.run(), StopReason::Complete);
    let mut bench = Bench::green();
    bench.budget(|b| b.max_tokens = std::num::NonZeroU64::new(1));
    assert_eq!(bench.run(), StopReason::Complete);
}

#[test]
fn row_68_but_a_skeptic_that_is_still_owed_gets_no_tick_beyond_the_cap() {
    let mut bench = Bench::green();
    bench.budget(|b| b.max_iterations = std::num::NonZeroU64::new(1));
    bench.play([Turn::says("", "")]);
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    assert_eq!(bench.ticks().len(), 1);
}

#[test]
fn row_68_goals_edited_in_the_last_tick_are_a_mutation_not_a_limit_nor_complete() {
    for habit in [Habit::Good("start"), Habit::NoSkeptic("start")] {
        let mut bench = Bench::green().up_to(1);
        bench.habit = habit;
        bench.begin();
        bench.until(|b| b.m.state.open.is_some());
        let what = "changed".to_owned();
        bench.world.mutation = Some(peers_core::machine::Mutation { file: "goals.yaml".into(), what });
        assert_eq!(bench.finish(), StopReason::GoalMutation("goals.yaml".into()));
    }
}

#[test]
fn row_69_a_red_proof_is_told_and_the_loop_goes_on() {
    let mut bench = Bench::green().up_to(4);
    bench.gate("tests-pass", Gate::ProofRed);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.ticks().len(), 4);
    let word = GateState::ProofFailed.word();
    assert!(!bench.prompts()[0].contains(&format!("`tests-pass`: {word}")));
    assert!(bench.prompts()[1].contains(&format!("`tests-pass`: {word}")));
    assert!(bench.prompts()[1].contains("it is red"), "with what it said there");
    assert!(!bench.started()[1].skeptic, "an ordinary turn: there is something to do");
}

#[test]
fn row_69_an_unchanged_tree_is_not_proved_twice_but_a_changed_one_is() {
    let mut bench = Bench::green().up_to(3);
    bench.gate("tests-pass", Gate::ProofRed);
    bench.run();
    assert_eq!(bench.judged(Place::Pristine).len(), 1, "new commits, the same tree");
    bench.run();
    assert_eq!(bench.judged(Place::Pristine).len(), 2, "once in a new run, before a turn is paid for");
    bench.habit = Habit::Good("changed");
    bench.cfg.max_ticks = Some(6);
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Running { .. }));
    bench.gate("tests-pass", Gate::Green);
    assert_eq!(bench.finish(), StopReason::Complete);
    assert_eq!(bench.judged(Place::Pristine).len(), 4);
}

#[test]
fn row_69_a_gate_that_reads_history_is_proved_at_its_head() {
    let mut bench = Bench::green();
    bench.gate("tests-pass", Gate::ProofRed);
    bench.gate("bugs-closed", Gate::Green);
    bench.rule("bugs-closed").reads_history = true;
    bench.cfg.max_ticks = Some(2);
    bench.run();
    bench.gate("tests-pass", Gate::Green);
    bench.rule("tests-pass").digest = "as defined later".into();
    assert_eq!(bench.run(), StopReason::Complete);
    let proofs = bench.judged(Place::Pristine);
    assert_eq!(proofs.len(), 2);
    assert_eq!(proofs[1].0, [goal("tests-pass"), goal("bugs-closed")], "the head is another one");
}

#[test]
fn row_69_a_gate_that_cannot_be_judged_in_a_clean_checkout_parks() {
    let mut bench = Bench::green();
    bench.gate("tests-pass", Gate::ProofCannot);
    let reason = bench.run();
    assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("parked:proof", 11));
    assert!(bench.exits()[0].detail.contains("`tests-pass` could not be judged"));
    assert_eq!(bench.ticks().len(), 1);
}

#[test]
fn row_69_after_parking_the_operator_who_starts_it_again_is_believed() {
    let mut bench = Bench::green();
    bench.gate("tests-pass", Gate::ProofCannot);
    bench.gate("lint-clean", Gate::Green);
    assert_eq!(bench.run(), StopReason::ParkedProof);
    bench.gate("tests-pass", Gate::Green);
    assert_eq!(bench.run(), StopReason::Complete, "could-not-judge is no answer to be kept");
    assert_eq!(bench.ticks().len(), 1);
    assert_eq!(
        bench.judged(Place::Pristine)[1].0,
        [goal("tests-pass")],
        "what was green is not proved again"
    );
}

#[test]
fn row_69_a_proof_that_setup_lost_stands_in_its_run_and_is_taken_again_in_the_next() {
    let mut bench = Bench::green().up_to(3);
    bench.gate("tests-pass", Gate::ProofNotSetUp);
    bench.gate("lint-clean", Gate::Green);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.judged(Place::Pristine).len(), 1);
    bench.gate("tests-pass", Gate::Green);
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.judged(Place::Pristine)[1].0, [goal("tests-pass")]);
}

#[test]
fn row_69_a_gate_marked_live_is_exempt_and_named() {
    let mut bench = Bench::green().up_to(2);
    bench.gate("tests-pass", Gate::ProofRed);
    bench.gate("lint-clean", Gate::Green);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    // The operator marks it; whether or not that changes its digest, the old red no longer speaks.
    bench.rule("tests-pass").tree = TreeChoice::Live;
    assert_eq!(bench.run(), StopReason::Complete);
    let proof = bench.exits().last().unwrap().proof.clone().unwrap();
    assert_eq!(proof.exempt, [goal("tests-pass")]);
    assert!(
        bench.judged(Place::Pristine).iter().skip(1).all(|(gates, _)| !gates.contains(&goal("tests-pass")))
    );
}

#[test]
fn row_69_proofs_and_live_verdicts_never_stand_in_for_each_other() {
    let mut bench = Bench::green();
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Proving(..)));
    assert_eq!(bench.standing(), Standing::ProofOwed, "green where people work is no proof");
    let live = bench.m.state.board.clone();
    let (gates, key) = bench.judged(Place::Pristine).pop().unwrap();
    let red = || Gate::Red.judge(&key, Place::Pristine);
    let verdicts =
        gates.iter().map(|id| Judged::new(id.clone(), key.clone(), Place::Pristine, red())).collect();
    bench.feed(Event::Judged { verdicts, took_ms: 1, moved: false, changed: String::new() });
    let of = |board: &GateBoard| board.gates.values().map(|g| (g.last.clone(), g.reds)).collect::<Vec<_>>();
    assert_eq!(of(&bench.m.state.board), of(&live), "and a red proof is no red in the work tree");
    assert_eq!(bench.standing(), Standing::Red);
}

#[test]
fn a_gate_that_reads_history_is_not_asked_about_commits_that_no_record_names_yet() {
    let mut bench = Bench::green();
    bench.gate("tests-pass", Gate::Red);
    bench.gate("bugs-closed", Gate::Red);
    bench.rule("bugs-closed").reads_history = true;
    bench.habit = Habit::Good("changed");
    bench.cfg.max_ticks = Some(1);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    let asked: Vec<_> = bench.judged(Place::Live).into_iter().map(|(gates, _)| gates.len()).collect();
    // Before the turn both, right after it the one that reads files alone, after its record both again.
    assert_eq!(asked[..2], [2, 1], "{asked:?}");
    assert_eq!(bench.judged(Place::Live)[1].0, [goal("tests-pass")]);
    assert!(bench.judged(Place::Live)[2..].iter().any(|(gates, _)| gates.contains(&goal("bugs-closed"))));
}
