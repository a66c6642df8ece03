//! Bringing a run's branch home, and taking a run back.

use std::fs;
use std::path::Path;
use std::process::Command;

use peers_model::record::{BranchMove, MoveKind, OperatorOp, OperatorRecord, Record};
use peers_model::{CommitId, RunId};
use peers_store::{Authors, Store};

use crate::world::{FIX, Ran, World, program, sh};

fn command(w: &World, what: &str) -> Ran {
    let mut command = w.bare(program());
    command.arg(what).arg(w.repo());
    World::out(command)
}

/// A run that is complete on a branch of its own, in a work tree of its own; `main` stands still.
fn finished() -> World {
    let w = World::new();
    w.play("idle", &[FIX]);
    w.run(&["--worktree", "--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    w
}

fn landed(w: &World) -> Vec<OperatorOp> {
    let op = |r| if let Record::Operator(operator) = r { Some(operator.op) } else { None };
    w.records()
        .into_iter()
        .filter_map(op)
        .filter(|op| matches!(op, OperatorOp::Landed { .. } | OperatorOp::Undone { .. }))
        .collect()
}

/// What is recorded as begun and not as done.
fn moving(w: &World) -> Option<BranchMove> {
    let (store, _) = Store::open(w.disk()).unwrap();
    store.state().moving.as_ref().map(|moving| moving.what.clone())
}

/// Records a landing of `run` into `main` as begun, as one does that is killed in it.
fn begun(w: &World, run: &RunId, from: &str, to: &CommitId) {
    begun_in(w, (MoveKind::Land, run), (from, to.as_str()), &w.repo());
}

/// The same of any move, with the work tree that has `main` checked out.
fn begun_in(w: &World, (kind, run): (MoveKind, &RunId), (from, to): (&str, &str), workdir: &Path) {
    let what = BranchMove {
        kind,
        run: run.clone(),
        branch: "main".into(),
        from: CommitId::new(from).unwrap(),
        to: CommitId::new(to).unwrap(),
        workdir: Some(workdir.to_string_lossy().into_owned()),
    };
    let record = OperatorRecord { op: OperatorOp::Moving(what), by: "test".into() };
    let (mut store, _) = Store::open(w.disk()).unwrap();
    store.append(peers_sys::clock::now(), None, &[Record::Operator(record)]).unwrap();
}

/// Nothing was moved and nothing recorded.
fn untouched(w: &World, before: &str) {
    assert_eq!(w.git(&["rev-parse", "main"]), before);
    assert_eq!(w.status(), "");
    assert!(landed(w).is_empty());
    assert!(moving(w).is_none());
}

#[test]
fn row_70_a_finished_run_is_landed_and_recorded() {
    let w = finished();
    let ran = command(&w, "land");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((w.get("fixed").as_str(), w.status()), ("yes", String::new()));
    assert!(matches!(&landed(&w)[..], [OperatorOp::Landed { commit, .. }] if commit.as_str() == w.head()));
    assert!(!w.has(".git/index.lock") && moving(&w).is_none());
    assert!(command(&w, "land").stdout.contains("Nothing"));
}

#[test]
fn row_70_a_locked_index_refuses_the_landing_before_anything_moves() {
    let w = finished();
    let before = w.head();
    fs::write(w.repo().join(".git/index.lock"), "").unwrap();
    command(&w, "land").refused(4, "index.lock");
    untouched(&w, &before);
    assert!(w.has(".git/index.lock"), "it is not ours");
    fs::remove_file(w.repo().join(".git/index.lock")).unwrap();
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((w.has("fixed"), w.status()), (true, String::new()));
}

#[test]
fn an_undo_says_that_it_finished_a_landing_first() {
    for refused in [false, true] {
        let w = finished();
        let (before, run) = (w.head(), w.runs().pop().unwrap());
        let tip = w.tick(1).head_after;
        begun(&w, &run.run_id, &before, &tip);
        w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
        if refused {
            w.git_in(Path::new(&run.workdir), &["commit", "-q", "--allow-empty", "-m", "One more"]);
        }
        let ran = command(&w, "undo");
        if refused {
            ran.refused(4, "was cut short and is finished now: `main` was moved to ");
        } else {
            assert!(ran.code == 0 && ran.stdout.contains("finished: Some(Finished { kind: Land"), "{ran:?}");
        }
        assert_eq!((w.get("fixed").as_str(), w.status()), ("yes", String::new()));
        assert!(matches!(landed(&w)[0], OperatorOp::Landed { .. }) && moving(&w).is_none());
    }
}

#[test]
fn row_70_a_branch_with_commits_that_no_run_judged_is_not_landed() {
    let w = finished();
    let before = w.head();
    let there = std::path::PathBuf::from(w.runs().pop().unwrap().workdir);
    w.git_in(&there, &["commit", "-q", "--allow-empty", "-m", "One more"]);
    command(&w, "land").refused(4, "no run has judged");
    untouched(&w, &before);
    w.git_in(&there, &["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(command(&w, "land").code, 0);
}

#[test]
fn row_70_a_branch_that_moves_while_the_gates_run_is_not_landed_into() {
    let w = World::new();
    let repo = w.repo();
    // Only the proof of the landing runs where `theirs` is; there the gate moves the branch.
    w.gate(&format!(
        "test -f fixed && if test -f theirs; then c=$(git -C {0} -c user.name=o -c user.email=o@x commit-tree -p main -m Meanwhile main^{{tree}}); git -C {0} update-ref refs/heads/main $c; fi",
        repo.display()
    ));
    w.play("idle", &[FIX]);
    w.run(&["--worktree", "--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    w.put("theirs", "x\n");
    let before = w.commit("Theirs");
    command(&w, "land").refused(4, "refs/heads/main");
    assert_eq!(w.git(&["rev-parse", "main~1"]), before);
    assert_eq!(w.git(&["log", "-1", "--format=%s", "main"]), "Meanwhile");
    assert!(landed(&w).is_empty() && !w.has("fixed"));
    assert!(!w.has(".git/index.lock") && moving(&w).is_none());
}

#[test]
fn row_70_a_landing_that_was_cut_short_is_finished_by_the_next_one() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    let tip = w.tick(1).head_after;
    // What a crash right after the branch was moved leaves.
    begun(&w, &run.run_id, &before, &tip);
    w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
    fs::write(w.repo().join(".git/index.lock"), "peers\n").unwrap();
    let ran = command(&w, "land");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((w.get("fixed").as_str(), w.status(), w.head()), ("yes", String::new(), tip.to_string()));
    assert_eq!(landed(&w).len(), 1);
    assert!(moving(&w).is_none() && !w.has(".git/index.lock"));
}

#[test]
fn a_landing_that_can_go_neither_on_nor_back_stays_open_and_is_finished_by_the_next_one() {
    const LIMIT: usize = 1 << 19;
    let w = World::new();
    w.play("idle", &[&[&sh("head -c 700000 /dev/zero > big"), FIX[0], FIX[1]]]);
    w.run(&["--worktree", "--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    let tip = w.tick(1).head_after;
    // Room for the line of the move, and none for that of the way back.
    let log = w.repo().join(".git/logs/refs/heads/main");
    let line = fs::read_to_string(&log).unwrap().lines().next().unwrap().to_owned();
    let pad = "x".repeat(LIMIT - 200 - line.len() - 1);
    fs::write(&log, format!("{line}{pad}\n")).unwrap();
    let mut limited = w.bare("/bin/sh");
    limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" land \"$1\"", LIMIT / 512));
    limited.arg(program()).arg(w.repo());
    let ran = World::out(limited);
    assert!(ran.code != 0 && ran.stderr.contains("run this again to finish"), "{ran:?}");
    assert_eq!(w.git(&["rev-parse", "main"]), tip.as_str());
    assert!(moving(&w).is_some() && landed(&w).is_empty());
    assert!(!w.has("fixed") && !w.has("big"), "the files are as they were");
    w.run(&["--max-ticks=1"]).refused(4, "`peers land` finishes it");
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((w.get("fixed").as_str(), w.status(), landed(&w).len()), ("yes", String::new(), 1));
    assert!(moving(&w).is_none());
}

#[test]
fn row_70_a_landing_that_was_cut_short_does_not_overwrite_what_was_edited_since() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    let tip = w.tick(1).head_after;
    begun(&w, &run.run_id, &before, &tip);
    w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
    w.put("fixed", "mine\n");
    w.run(&["--max-ticks=1"]).refused(4, "`peers land` finishes it");
    let ran = command(&w, "land");
    let refused = &ran.refused(4, "edited since").stderr;
    assert_eq!(w.get("fixed"), "mine\n");
    let line = refused.split("then `").nth(1).unwrap().split('`').next().unwrap();
    assert!(Command::new("sh").args(["-c", line]).status().unwrap().success(), "{line}");
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((w.get("fixed").as_str(), landed(&w).len()), ("yes", 1));
}

#[test]
fn what_a_gate_finds_beside_the_checkout_of_a_landing_is_removed() {
    let w = World::new();
    w.goals(
        "- {id: plants, type: hard, cmd: 'test -f fixed && mkdir -p ../dep ../../dep', pass_when: 'exit_code == 0'}\n\
         - {id: uses, type: hard, cmd: 'test -f fixed && { test -f .peers/goals.yaml || test ! -e theirs || test -e ../dep -o -e ../../dep; }', pass_when: 'exit_code == 0'}\n",
    );
    w.play("idle", &[FIX]);
    w.run(&["--worktree", "--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    w.put("theirs", "x\n");
    let before = w.commit("Theirs");
    let ran = command(&w, "land");
    assert!(ran.stdout.starts_with("Refused"), "{ran:?}");
    untouched(&w, &before);
}

#[test]
fn a_merge_commit_that_a_landing_made_is_ours() {
    let w = finished();
    w.put("theirs", "x\n");
    w.commit("Theirs");
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!(w.git(&["log", "-1", "--format=%p"]).split(' ').count(), 2);
    let mut authors = Authors::default();
    for record in w.records() {
        authors.take(&record);
    }
    let head = peers_model::CommitId::new(w.head()).unwrap();
    assert_eq!(authors.of(&head), Some(&peers_store::Author::Substrate));
    let work = w.tick(1).commits[0].clone();
    assert!(matches!(authors.of(&work), Some(peers_store::Author::Peer { .. })));
}
