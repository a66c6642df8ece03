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
fn row_70_a_locked_index_refuses_the_undoing_before_anything_moves() {
    let w = World::new();
    w.play("idle", &[FIX]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    let before = w.head();
    fs::write(w.repo().join(".git/index.lock"), "").unwrap();
    command(&w, "undo").refused(4, "index.lock");
    untouched(&w, &before);
    fs::remove_file(w.repo().join(".git/index.lock")).unwrap();
    assert_eq!(command(&w, "undo").code, 0);
    assert_eq!((w.has("fixed"), w.status(), landed(&w).len()), (false, String::new(), 1));
    assert_eq!(w.git(&["rev-parse", "HEAD"]), w.tick(1).head_before.as_str());
}

/// Runs the command that is named in what was said, after `before` and up to the next backtick.
fn pasted(ran: &Ran, before: &str) {
    let rest = ran.stderr.split_once(before).unwrap_or_else(|| panic!("`{before}` is not in {ran:#?}")).1;
    let line = rest.split('`').next().unwrap();
    let done = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
}

#[test]
fn a_locked_branch_refuses_landing_and_undoing_before_anything_else_is_said() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    // As one leaves it that is killed while it moves the branch; and what half of it looks like.
    begun(&w, &run.run_id, &before, &w.tick(1).head_after);
    fs::write(w.repo().join(".git/index.lock"), "peers\n").unwrap();
    fs::write(w.repo().join(".git/refs/heads/main.lock"), "").unwrap();
    w.put("fixed", "half");
    for what in ["land", "undo"] {
        command(&w, what).refused(4, "refs/heads/main.lock");
    }
    assert!(moving(&w).is_some());
    pasted(&command(&w, "land"), "remove it: `");
    fs::remove_file(w.repo().join("fixed")).unwrap();
    let ran = command(&w, "land");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        (w.get("fixed").as_str(), w.status(), w.has(".git/index.lock")),
        ("yes", String::new(), false)
    );
}

#[test]
fn a_lock_of_the_branch_comes_before_uncommitted_changes() {
    let w = finished();
    fs::write(w.repo().join(".git/refs/heads/main.lock"), "").unwrap();
    w.put("mine", "x");
    let ran = command(&w, "land");
    ran.refused(4, "nothing was moved; if no git runs there, remove it: `rm ");
    assert!(!ran.stderr.contains("uncommitted"), "{ran:?}");
}

#[test]
fn a_landing_that_was_cut_short_stays_open_where_its_branch_was_renamed_and_the_way_back_is_named() {
    for new in ["trunk", "it's", "main/x"] {
        let w = finished();
        let (before, run) = (w.head(), w.runs().pop().unwrap());
        let tip = w.tick(1).head_after;
        begun(&w, &run.run_id, &before, &tip);
        w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
        fs::write(w.repo().join(".git/index.lock"), "peers\n").unwrap();
        w.put("fixed", "ye");
        w.git(&["branch", "-m", "main", new]);
        let named = format!("`{new}`");
        for what in ["land", "undo"] {
            command(&w, what).refused(4, "the branch `main` does not exist now").refused(4, &named);
        }
        fs::remove_file(w.repo().join(".git/index.lock")).unwrap();
        w.run(&["--max-ticks=1"]).refused(4, &named);
        assert!(moving(&w).is_some(), "{new}");
        pasted(&command(&w, "land"), "start this again: `");
        let ran = command(&w, "land");
        assert_eq!(ran.code, 0, "{new}: {ran:?}");
        assert_eq!(
            (w.get("fixed").as_str(), w.status(), landed(&w).len()),
            ("yes", String::new(), 1),
            "{new}"
        );
        assert!(moving(&w).is_none());
    }
}

#[test]
fn a_renamed_branch_that_somebody_went_on_with_is_named_too() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    let tip = w.tick(1).head_after;
    begun(&w, &run.run_id, &before, &tip);
    w.git(&["reset", "-q", "--hard", tip.as_str()]);
    w.git(&["branch", "-m", "main", "trunk"]);
    w.git(&["commit", "-q", "--allow-empty", "-m", "More"]);
    pasted(&command(&w, "land"), "start this again: `");
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((landed(&w).len(), w.git(&["log", "-1", "--format=%s", "main"])), (1, "More".into()));
}

#[test]
fn a_landing_that_was_cut_short_and_whose_branch_was_deleted_is_done_anew_once_it_is_made_again() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    begun(&w, &run.run_id, &before, &w.tick(1).head_after);
    w.git(&["checkout", "-q", "--orphan", "other"]);
    w.git(&["commit", "-q", "-m", "Other"]);
    w.git(&["branch", "-D", "main"]);
    let ran = command(&w, "land");
    ran.refused(4, "nor one where it was");
    assert!(moving(&w).is_some());
    pasted(&ran, "start this again: `");
    assert_eq!(w.git(&["rev-parse", "main"]), before);
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!(landed(&w).len(), 1);
}

#[test]
fn the_name_of_a_run_s_branch_that_was_renamed_is_found_by_its_commit() {
    for what in ["land", "undo"] {
        let w = finished();
        let (old, head) = (w.runs().pop().unwrap().branch.unwrap(), w.tick(1).head_after);
        w.git(&["branch", "-m", &old, "mine"]);
        let ran = command(&w, what);
        ran.refused(3, &format!("there is no branch `{old}`")).refused(3, "`mine`");
        pasted(&ran, "if it was renamed: `");
        assert_eq!(w.git(&["rev-parse", &format!("refs/heads/{old}")]), head.as_str());
        assert_eq!(command(&w, what).code, 0, "{what}");
        assert_eq!(landed(&w).len(), 1);
    }
}

#[test]
fn the_commits_of_a_run_s_branch_that_was_deleted_come_back_by_the_command_that_is_named() {
    for prune in [false, true] {
        let w = finished();
        let run = w.runs().pop().unwrap();
        let (old, head) = (run.branch.unwrap(), w.tick(1).head_after);
        w.git(&["worktree", "remove", "--force", &run.workdir]);
        w.git(&["branch", "-q", "-D", &old]);
        if prune {
            w.git(&["reflog", "expire", "--expire=now", "--all"]);
            w.git(&["gc", "-q", "--prune=now"]);
        }
        let ran = command(&w, "land");
        pasted(ran.refused(3, "makes it again"), "hint: `");
        assert_eq!(w.git(&["rev-parse", &format!("refs/heads/{old}")]), head.as_str(), "{prune}");
        assert_eq!(command(&w, "land").code, 0);
    }
}

#[test]
fn where_the_branch_that_a_run_started_from_was_renamed_its_new_name_is_offered() {
    let w = finished();
    w.git(&["branch", "-m", "main", "trunk"]);
    command(&w, "land").refused(3, "there is no branch `main`").refused(3, " land --into trunk`");
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
fn row_70_a_landing_that_was_cut_short_before_it_moved_anything_is_done_anew() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    let tip = w.tick(1).head_after;
    begun(&w, &run.run_id, &before, &tip);
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((w.has("fixed"), w.status(), landed(&w).len()), (true, String::new(), 1));
}

#[test]
fn a_landing_that_was_cut_short_is_finished_where_the_project_is_now() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    let tip = w.tick(1).head_after;
    begun_in(&w, (MoveKind::Land, &run.run_id), (&before, tip.as_str()), &w.path("before it was moved"));
    w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
    w.run(&["--max-ticks=1"]).refused(4, "`peers land` finishes it");
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((w.get("fixed").as_str(), w.status(), landed(&w).len()), ("yes", String::new(), 1));
    assert!(moving(&w).is_none());
}

#[test]
fn a_landing_that_was_cut_short_is_recorded_though_its_work_tree_is_gone_or_of_somebody_else() {
    for gone in [true, false] {
        let w = finished();
        let (before, run) = (w.head(), w.runs().pop().unwrap());
        let tip = w.tick(1).head_after;
        let there = w.path("there");
        if !gone {
            w.git(&["clone", "-q", ".", there.to_str().unwrap()]);
            fs::write(there.join(".git/index.lock"), "peers\n").unwrap();
        }
        begun_in(&w, (MoveKind::Land, &run.run_id), (&before, tip.as_str()), &there);
        w.git(&["checkout", "-q", "--detach"]);
        w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
        let ran = command(&w, "land");
        assert_eq!(ran.code, 0, "{gone}: {ran:?}");
        assert!(matches!(&landed(&w)[..], [OperatorOp::Landed { commit, .. }] if *commit == tip), "{gone}");
        assert!(moving(&w).is_none() && w.status().is_empty(), "{gone}");
        assert!(gone || there.join(".git/index.lock").exists(), "it is not ours");
        assert!(!there.join("fixed").exists());
    }
}

#[test]
fn a_work_tree_that_cannot_be_read_is_named_with_the_way_on_and_the_landing_goes_on_without_it() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    let tip = w.tick(1).head_after;
    let there = w.path("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join(".git"), "nonsense").unwrap();
    begun_in(&w, (MoveKind::Land, &run.run_id), (&before, tip.as_str()), &there);
    w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
    let ran = command(&w, "land");
    assert!(ran.stderr.contains("move that work tree out of the way"), "{ran:?}");
    assert!(moving(&w).is_some());
    fs::rename(&there, w.path("aside")).unwrap();
    assert_eq!(command(&w, "land").code, 0);
    assert_eq!((w.get("fixed").as_str(), moving(&w)), ("yes", None));
}

#[test]
fn an_undo_that_was_cut_short_before_it_moved_anything_needs_no_work_tree() {
    let w = World::new();
    w.play("idle", &[FIX]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    let (tip, run) = (w.head(), w.runs().pop().unwrap());
    let base = w.tick(1).head_before;
    begun_in(&w, (MoveKind::Undo, &run.run_id), (&tip, base.as_str()), &w.path("gone"));
    let ran = command(&w, "undo");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((w.head(), w.has("fixed"), w.status()), (base.to_string(), false, String::new()));
    assert!(moving(&w).is_none());
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
fn a_run_closes_a_move_of_which_nothing_was_made() {
    let w = finished();
    let (before, run) = (w.head(), w.runs().pop().unwrap());
    begun_in(&w, (MoveKind::Land, &run.run_id), (&before, w.tick(1).head_after.as_str()), &w.path("gone"));
    w.play("idle", &[&["handoff: Look"]]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
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
fn a_file_that_a_landing_was_killed_in_the_middle_of_is_written_out_by_the_next_one() {
    for part in ["", "ye"] {
        let w = finished();
        let (before, run) = (w.head(), w.runs().pop().unwrap());
        let tip = w.tick(1).head_after;
        begun(&w, &run.run_id, &before, &tip);
        w.git(&["update-ref", "refs/heads/main", tip.as_str()]);
        w.put("fixed", part);
        let ran = command(&w, "land");
        assert_eq!(ran.code, 0, "{part:?}: {ran:?}");
        assert_eq!((w.get("fixed").as_str(), w.status()), ("yes", String::new()), "{part:?}");
    }
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

#[test]
fn a_tip_that_is_taken_as_it_is_stays_its_peers() {
    let w = finished();
    assert_eq!(command(&w, "land").code, 0);
    let mut authors = Authors::default();
    for record in w.records() {
        authors.take(&record);
    }
    let head = peers_model::CommitId::new(w.head()).unwrap();
    assert!(matches!(authors.of(&head), Some(peers_store::Author::Peer { .. })));
}
