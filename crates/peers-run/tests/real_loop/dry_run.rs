//! Runs of which nothing stays.

use peers_model::record::CorrectionKind;

use crate::world::{World, sh};

fn index(w: &World) -> String {
    w.git(&["ls-files", "-s"])
}

#[test]
fn row_67_a_dry_run_leaves_head_index_and_files_as_they_were_and_a_copy() {
    let w = World::new();
    let (head, index_before) = (w.head(), index(&w));
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff", "write: {path: left.py, text: 'x'}"]]);
    w.run(&["--dry-run", "--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!((w.head(), index(&w), w.status()), (head, index_before, String::new()));
    assert!(!w.has("fixed") && !w.has("left.py"));
    let tick = w.tick(1);
    assert_eq!((tick.success, tick.corrected), (true, Some(CorrectionKind::Reset)));
    let kept = &w.salvaged()[&tick.salvage.unwrap()];
    assert_eq!(w.git_control(&["show", &format!("{kept}:fixed")]), "yes");
    assert_eq!(w.git_control(&["show", &format!("{kept}:left.py")]), "x");
    w.settled();
}

#[test]
fn row_67_a_dry_run_over_uncommitted_changes_is_refused() {
    let w = World::new();
    w.put("left.py", "x = 1\n");
    w.run(&["--dry-run"]).refused(4, "uncommitted");
    assert!(w.lines().is_empty());
    assert_eq!(w.get("left.py"), "x = 1\n");
}

#[test]
fn row_67_a_dry_run_leaves_nothing_staged_and_the_branch_where_it_was() {
    let w = World::new();
    let (head, index_before) = (w.head(), index(&w));
    let stage = sh("echo x > staged.py; git add staged.py; rm staged.py; git rm -q --cached readme.txt");
    w.play("idle", &[&["switch_branch: side", &stage]]);
    w.run(&["--dry-run", "--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!((w.head(), index(&w), w.status()), (head, index_before, String::new()));
    w.settled();
}

#[test]
fn row_67_a_dry_run_that_was_killed_is_finished_by_the_next_one() {
    let w = World::new();
    let (head, index_before) = (w.head(), index(&w));
    let here = w.fifo("here");
    w.play("idle", &[&["write: {path: left.py, text: 'x'}", &here.tell(), "hang"]]);
    let live = w.start(&["--dry-run"]);
    here.told();
    live.crash();
    assert!(w.has("left.py"));
    w.run(&[]).refused(4, "`peers run --dry-run` takes it up");
    w.play("idle", &[]);
    w.run(&["--dry-run", "--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!((w.head(), index(&w), w.status()), (head, index_before, String::new()));
    w.settled();
}
