//! Where agents work.

use std::fs;

use crate::world::{FIX, World, files};

#[test]
fn row_70_a_branch_whose_name_is_taken_stops_the_start() {
    let w = World::new();
    w.git(&["branch", "work"]);
    w.run(&["--branch=work"]).refused(4, "work");
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert!(w.lines().is_empty());
}

#[test]
fn row_70_a_run_on_a_new_branch_leaves_the_old_one_where_it_was() {
    let w = World::new();
    let before = w.head();
    w.play("idle", &[FIX]);
    w.run(&["--branch=work", "--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/work");
    assert_eq!(w.git(&["rev-parse", "main"]), before);
    assert_eq!(w.git(&["rev-parse", "work"]), w.tick(1).head_after.as_str());
    let run = w.runs().pop().unwrap();
    assert_eq!(
        (run.branch.as_deref(), run.into.as_deref(), run.own_branch),
        (Some("work"), Some("main"), true)
    );
    w.settled();
}

#[test]
fn row_70_a_run_in_a_worktree_of_its_own_leaves_the_checkout_untouched() {
    let w = World::new();
    w.put("draft.py", "x = 1\n");
    let (head, status) = (w.head(), w.status());
    let peers = |w: &World| files(&w.repo().join(".peers"));
    let (before, control) = (w.git(&["ls-files", "-s"]), peers(&w));
    w.play("idle", &[FIX]);
    w.run(&["--worktree", "--max-ticks=2"]).stopped("complete", 0);
    assert_eq!((w.head(), w.status(), w.git(&["ls-files", "-s"])), (head.clone(), status, before));
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert!(!w.has("fixed"));
    assert_eq!(peers(&w), control);
    let run = w.runs().pop().unwrap();
    let there = std::path::PathBuf::from(&run.workdir);
    assert!(!there.starts_with(w.repo()));
    assert_eq!(fs::read_to_string(there.join("fixed")).unwrap(), "yes");
    assert!(!there.join("draft.py").exists(), "it starts from the commit");
    assert_eq!(w.git_in(&there, &["symbolic-ref", "--short", "HEAD"]), format!("peers/{}", run.run_id));
    assert_eq!(run.base.unwrap().as_str(), head);
    w.settled_at(&there);
}

#[test]
fn row_70_a_worktree_can_be_gone_on_in_and_shares_lock_and_journal() {
    let w = World::new();
    let dir = w.path("elsewhere");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff"], FIX]);
    w.run(&[&format!("--worktree={}", dir.display()), "--max-ticks=1"]).stopped("max_ticks", 0);
    let held = w.place().lock("run").unwrap();
    w.run_in(&dir, &[]).refused(4, "holds the lock");
    drop(held);
    w.run_in(&dir, &["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.ticks().len(), 2);
    w.settled_at(&dir);
}
