//! `complete` means that a clean checkout passes.

use std::fs;

use peers_model::record::{ProofRecord, Record};

use crate::world::{World, sh};

impl World {
    pub(crate) fn proofs(&self) -> Vec<ProofRecord> {
        self.records()
            .into_iter()
            .filter_map(|r| if let Record::Proof(p) = r { Some(p) } else { None })
            .collect()
    }

    /// A committed rule that git ignores what is built.
    fn ignoring(&self) {
        self.put(".gitignore", ".peers/\nbuilt/\ndeps/\n");
        self.commit("Ignore what is built");
    }
}

#[test]
fn row_68_the_last_allowed_tick_may_converge() {
    let w = World::new();
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=2"]).stopped("complete", 0);
    assert_eq!(w.ticks().len(), 2);
    w.settled();
}

#[test]
fn row_69_a_gate_that_only_an_ignored_file_makes_green_is_no_proof_and_the_loop_goes_on() {
    let w = World::new();
    w.ignoring();
    w.gate("test -f built/out");
    let build: &[&str] =
        &["write: {path: built/out, text: 'x'}", "write: {path: a.py, text: 'a = 1'}", "handoff: Build it"];
    // The second tick is the skeptic's; the third is told.
    let commit: &[&str] = &[&sh("git add -f built/out"), "handoff: Commit what the gate needs"];
    w.play("idle", &[build, &[], commit]);
    w.run(&["--max-ticks=4"]).stopped("complete", 0);
    w.settled();
    let proofs = w.proofs();
    assert_eq!(proofs.iter().map(|p| p.passed).collect::<Vec<_>>(), [false, true], "one for each tree");
    assert!(w.prompt(3).contains("proof-failed"), "{}", w.prompt(3));
    assert!(w.exit().proof.unwrap().exempt.is_empty());
    // Checkouts are gone when nobody needs them.
    let pristine = w.place().cache_dir().join("pristine");
    assert_eq!(fs::read_dir(pristine).unwrap().count(), 0);
}

#[test]
fn what_one_gate_leaves_in_its_clean_checkout_is_not_there_for_the_next() {
    let w = World::new();
    w.ignoring();
    w.goals(
        "- {id: builds, type: hard, cmd: 'mkdir -p built && touch built/out && test -f fixed', pass_when: 'exit_code == 0'}\n\
         - {id: needs-it, type: hard, cmd: 'test -f built/out', pass_when: 'exit_code == 0'}\n",
    );
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("max_ticks", 0);
    let proof = &w.proofs()[0];
    let verdicts: Vec<(&str, bool)> =
        proof.verdicts.iter().map(|j| (j.goal.as_str(), j.verdict.is_pass())).collect();
    assert_eq!((proof.passed, verdicts), (false, vec![("builds", true), ("needs-it", false)]));
}

#[test]
fn what_lies_beside_or_above_a_clean_checkout_is_removed_before_its_gate_runs() {
    let w = World::new();
    let cache = w.place().cache_dir().to_owned();
    let pristine = cache.join("pristine");
    w.gate("test -f fixed && { test -e .peers || test -e ../node_modules/dep || test -e ../../node_modules/dep; }");
    let plant = sh(&format!(
        "for d in {0} {1}; do mkdir -p $d/node_modules/dep; echo x > $d/conftest.py; done",
        pristine.display(),
        cache.display()
    ));
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", plant.as_str(), "handoff"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    assert!(!w.proofs()[0].passed);
    assert_eq!(fs::read_dir(pristine).unwrap().count(), 0);
    assert!(!cache.join("node_modules").exists() && !cache.join("conftest.py").exists());
}

#[test]
fn row_69_each_attempt_of_a_proof_has_a_checkout_and_a_home_of_its_own() {
    let w = World::new();
    let gate = |id: &str, at: &str| {
        format!(
            "- {{id: {id}, type: hard, cmd: 'test -e {at} || {{ mkdir -p {at}; exit 1; }}', pass_when: exit_code == 0, retry_on_fail: 1}}\n"
        )
    };
    w.ignoring();
    w.goals(&(gate("tests", "built/x") + &gate("home", "$HOME/x")));
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    let proof = &w.proofs()[0];
    let told: Vec<_> = proof.verdicts.iter().map(|j| (j.verdict.word(), j.attempts)).collect();
    assert_eq!(told, [("fail", 2), ("fail", 2)]);
}
