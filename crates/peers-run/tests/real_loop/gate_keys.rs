//! What the keys of gates do in a whole run: `strict_tree`, `cacheable`, `needs`, `tree: copy`, `setup`.

use peers_model::verdict::Judged;

use crate::world::{World, program};
use peers_model::record::Record;

impl World {
    /// All verdicts outside of proofs, in the order in which they were recorded.
    fn verdicts(&self, goal: &str) -> Vec<Judged> {
        let of = |record| match record {
            Record::Gates(gates) => gates.verdicts,
            Record::Tick(tick) => tick.verdicts,
            _ => Vec::new(),
        };
        self.records().into_iter().flat_map(of).filter(|judged| judged.goal.as_str() == goal).collect()
    }

    fn ignoring_runs(&self) {
        self.put(".gitignore", ".peers/\nruns-*\nbuilt/\n");
        self.commit("Ignore what gates count");
    }
}

const FIX: &[&str] = &["write: {path: fixed, text: 'yes'}", "handoff"];

#[test]
fn with_strict_tree_a_gate_that_changes_the_work_tree_is_red_and_named() {
    let w = World::new();
    w.config("goals: {strict_tree: true}\nskeptic: {enabled: false}\n");
    w.goals(
        "- {id: formats, type: hard, cmd: 'echo x >> formatted', pass_when: exit_code == 0}\n\
         - {id: tests, type: hard, cmd: 'test -f fixed', pass_when: exit_code == 0}\n",
    );
    w.play("idle", &[FIX]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let last = w.verdicts("formats").pop().unwrap();
    assert_eq!(last.verdict.word(), "fail");
    let said = last.verdict.diagnostic().to_owned();
    assert!(said.starts_with("the gate changed the work tree (`strict_tree`): formatted"), "{said}");
    assert!(w.verdicts("tests").iter().all(|j| !j.verdict.diagnostic().contains("strict_tree")));
}

#[test]
fn without_strict_tree_a_gate_that_changes_the_work_tree_is_warned_about_and_completes_nothing() {
    let w = World::new();
    w.config("skeptic: {enabled: false}\n");
    w.gate("echo x >> formatted; test -f fixed");
    w.play("idle", &[FIX]);
    let ran = w.run(&["--max-ticks=1"]);
    ran.stopped("max_ticks", 0);
    assert!(w.verdicts("tests").iter().all(|j| !j.verdict.diagnostic().contains("strict_tree")));
}

#[test]
fn a_forged_kept_answer_halts_the_run_that_meets_it_and_a_proof_never_asks_it() {
    let w = World::new();
    w.goals("- {id: tests, type: hard, cmd: 'test -f fixed', pass_when: exit_code == 0, cacheable: true}\n");
    let file = w.store().join("verdicts.json");
    let forge = format!("shell: 'echo forged > {}'", file.display());
    w.play("idle", &[&[forge.as_str()]]);
    w.run(&["--max-ticks=2"]).stopped("tamper:store", 5);
    assert!(w.exit().detail.contains("verdicts.json"), "{}", w.exit().detail);
    // The next run finds a file that it cannot use, and runs the gate.
    w.play("idle", &[&[], FIX]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
}

#[test]
fn what_a_killed_run_left_of_a_copy_is_not_taken_over() {
    let w = World::new();
    w.ignoring_runs();
    w.goals("- {id: tests, type: hard, cmd: 'test ! -e target/stale && test -f fixed', pass_when: exit_code == 0, tree: copy}\n");
    let stale = w.place().cache_dir().join("gate-tree/tree/target");
    std::fs::create_dir_all(&stale).unwrap();
    std::fs::write(stale.join("stale"), "x").unwrap();
    w.play("idle", &[FIX]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn row_69_setup_makes_what_a_clean_checkout_lacks() {
    let w = World::new();
    w.ignoring_runs();
    w.config("setup: {commands: [{cmd: 'mkdir -p built && : > built/dep'}]}\nskeptic: {enabled: false}\n");
    std::fs::create_dir(w.repo().join("built")).unwrap();
    w.put("built/dep", "the operator's own");
    w.goals(
        "- {id: tests, type: hard, cmd: 'test -f built/dep && test -f fixed', pass_when: exit_code == 0}\n",
    );
    w.play("idle", &[FIX]);
    w.run(&["--max-ticks=1"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn row_69_a_setup_that_fails_makes_the_proof_red_and_the_next_turn_can_mend_it() {
    let w = World::new();
    w.config("setup: {commands: [{cmd: 'test -f lock || { echo no lock file >&2; exit 1; }'}]}\nskeptic: {enabled: false}\n");
    w.gate("test -f fixed");
    w.play("idle", &[FIX, &["write: {path: lock, text: 'x'}", "handoff: Lock"]]);
    w.run(&["--max-ticks=2"]).stopped("complete", 0);
    assert!(w.prompt(2).contains("ended with exit code 1: no lock file"), "{}", w.prompt(2));
    assert_eq!(w.proofs().iter().map(|proof| proof.passed).collect::<Vec<_>>(), [false, true]);
    w.settled();
}

#[test]
fn row_69_what_setup_left_is_made_anew_where_a_gate_reached_for_it() {
    // The first gate looks for the kept copy, and writes into it, or makes an empty directory there.
    for reached in ["echo bad > {}", "mkdir {}-told"] {
        reached_for(reached);
    }
}

fn reached_for(how: &str) {
    let w = World::new();
    let count = w.path("setups");
    w.config(&format!(
        "setup: {{commands: [{{cmd: 'echo x >> {}; echo good > dep'}}]}}\nskeptic: {{enabled: false}}\n",
        count.display(),
    ));
    let reach = format!(
        "test -f fixed && {{ test ! -e dep || find \"$(cd ../.. && pwd)\" -name dep -path '*setup*' -exec sh -c '{how}' \\; ; true; }}"
    );
    w.goals(&format!(
        "- {{id: a, type: hard, cmd: {reach:?}, pass_when: exit_code == 0}}\n\
         - {{id: b, type: hard, needs: [a], cmd: 'test -f fixed && test ! -e dep-told && {{ test ! -e dep || grep good dep; }}', pass_when: exit_code == 0}}\n"
    ));
    w.play("idle", &[FIX]);
    w.run(&["--max-ticks=1"]).stopped("complete", 0);
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 2);
}

#[test]
fn no_gate_of_the_copy_finds_what_another_one_left_there() {
    let w = World::new();
    w.config("skeptic: {enabled: false}\n");
    w.put("code", "bad\n");
    w.commit("Code");
    w.goals(
        "- {id: lint, type: hard, tree: copy, cmd: 'echo good > code; : > made', pass_when: exit_code == 0}\n\
         - {id: tests, type: hard, tree: copy, needs: [lint], cmd: 'grep good code', pass_when: exit_code == 0}\n\
         - {id: made, type: hard, tree: copy, needs: [lint], cmd: 'test -f made', pass_when: exit_code == 0}\n",
    );
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let words = |gate: &str| w.verdicts(gate)[0].verdict.word();
    assert_eq!([words("lint"), words("tests"), words("made")], ["pass", "fail", "fail"]);
}

#[test]
fn what_setup_made_in_a_copy_is_made_again_when_it_was_taken_away() {
    let w = World::new();
    w.config("setup: {commands: [{cmd: 'echo x > made'}]}\nskeptic: {enabled: false}\n");
    let gate = |id: &str| {
        format!("- {{id: {id}, type: hard, tree: copy, cmd: 'test -f made', pass_when: exit_code == 0}}\n")
    };
    w.goals(
        &(gate("one")
            + &gate("two")
            + "- {id: tests, type: hard, cmd: 'false', pass_when: exit_code == 0}\n"),
    );
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(["one", "two"].iter().all(|gate| w.verdicts(gate)[0].verdict.is_pass()));
}

#[test]
fn row_65_where_peers_are_unconfined_expensive_gates_run_between_turns_and_that_is_said() {
    let w = World::new();
    w.config("pipeline_gates: true\nskeptic: {enabled: false}\n");
    w.goals("- {id: tests, type: hard, cmd: 'test -f fixed', pass_when: exit_code == 0, expensive: true}\n");
    w.play("idle", &[FIX]);
    let ran = w.run(&["--max-ticks=1"]);
    ran.stopped("complete", 0);
    assert!(format!("{ran:?}").contains("expensive gates run between turns"), "{ran:?}");
    let (gates, turn) = (w.verdicts("tests"), w.tick(1));
    assert!(
        gates.iter().all(|judged| judged.at.head == turn.head_before || judged.at.head == turn.head_after)
    );
    w.settled();
}

#[test]
fn a_review_that_passes_names_a_file_that_is_there() {
    let w = World::new();
    w.config("skeptic: {enabled: false}\n");
    w.goals(
        "- {id: tests, type: hard, cmd: 'false', pass_when: exit_code == 0}\n\
         - {id: read, type: soft, prompt: Read it, reviewer: other, review_interval: 1}\n",
    );
    let code: &[&str] = &["write: {path: src/a.py, text: 'a = 1'}", "handoff: Write code"];
    let nowhere: &[&str] =
        &["review: {goal: read, pass: true, checked: ['b.py:1 read', all of it]}", "handoff"];
    let bare: &[&str] = &["review: {goal: read, pass: true}", "handoff"];
    let there: &[&str] =
        &["review: {goal: read, pass: true, checked: ['all', 'src/a.py:1 read']}", "handoff"];
    w.play("idle", &[code, nowhere, bare, there]);
    w.run(&["--max-ticks=4"]).stopped("max_ticks", 0);
    for n in [2, 3] {
        let tick = w.tick(n);
        assert!(tick.reviews.is_empty(), "{n}: {:?}", tick.reviews);
        let prompt = w.prompt(n + 1);
        assert!(prompt.contains("`checked` names no existing file"), "{n}: {prompt}");
    }
    assert_eq!(w.tick(4).reviews.len(), 1);
}

#[test]
fn globs_that_hold_no_file_or_a_link_are_no_scope_of_a_kept_answer() {
    for (paths, linked, again) in [("src", false, false), ("src", true, true), ("gone/**", false, true)] {
        let w = World::new();
        w.ignoring_runs();
        w.put("lib/a.py", "a = 1\n");
        w.put("src/b.py", "b = 1\n");
        if linked {
            std::os::unix::fs::symlink("../lib", w.repo().join("src/lib")).unwrap();
        }
        w.commit("Source");
        let counter = w.path("runs-src");
        w.goals(&format!(
            "- {{id: src, type: hard, cmd: 'echo x >> {}', pass_when: exit_code == 0, cacheable: true, paths: ['{paths}']}}\n\
             - {{id: tests, type: hard, cmd: 'false', pass_when: exit_code == 0}}\n",
            counter.display()
        ));
        w.play("idle", &[]);
        let runs = || std::fs::read_to_string(&counter).unwrap().lines().count();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        w.put("lib/a.py", "a = 2\n");
        w.commit("Change what may lie behind");
        let first = runs();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        assert_eq!(runs() > first, again, "{paths} {linked}");
    }
}

#[test]
fn progress_counts_all_gates_with_one_clock_though_they_run_one_by_one() {
    let w = World::new();
    w.config("");
    let held = w.path("held");
    w.fifo("held");
    let gate = |id: &str, more: &str| {
        format!(
            "- {{id: {id}, type: hard, cmd: 'cat {}', pass_when: exit_code == 0{more}}}\n",
            held.display()
        )
    };
    w.goals(&format!("{}{}{}", gate("a", ""), gate("b", ", tree: copy"), gate("c", ", tree: copy")));
    let said = |more: &[&str]| {
        let mut command = w.bare(program());
        command.arg("verify").arg(w.repo()).arg(&held).args(more);
        World::out(command).stdout
    };
    let expected = "a: 0 of 3, one clock\nb: 1 of 3, one clock\nc: 2 of 3, one clock\npass pass pass\n";
    assert_eq!(said(&[]), expected);
    assert_eq!(said(&["--pristine"]), expected);
}
