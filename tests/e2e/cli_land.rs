//! `peers land`, `peers undo` and `peers salvage`.

use crate::support::{Ended, World, goals, program};

/// A run on the branch `work` with two ticks, its gate green.
fn on_a_branch(gate: &str) -> World {
    let world = World::ready(gate);
    world.peers(&["run", "--max-ticks", "2", "--branch", "work"]).exits(0);
    assert_eq!(world.git(&["branch", "--show-current"]), "work");
    world
}

#[test]
fn a_green_branch_is_landed_and_recorded() {
    let world = on_a_branch("true");
    let tip = world.head();
    world.peers(&["land"]).exits(0).out_has("`main` is at ").out_has("2 commits of `work`");
    assert_eq!(world.git(&["rev-parse", "main"]), tip);
    assert_eq!(world.records("operator").pop().unwrap()["op"], "landed");
    world.peers(&["land"]).exits(1);
}

#[test]
fn a_red_gate_on_the_merged_tree_moves_nothing() {
    // Each side alone is green.
    let world = on_a_branch("! { test -e ann.txt && test -e op.txt; }");
    world.git(&["checkout", "-q", "main"]);
    world.write("op.txt", "");
    let main = world.commit("Mine");
    let done = world.peers(&["land", "--json"]).exits(1).json("peers.land/1");
    assert_eq!((&done["result"], &done["gates"][0]["id"]), (&"refused".into(), &"real".into()));
    assert_eq!(world.head(), main);
}

#[test]
fn a_gate_that_changes_what_a_build_tool_does_in_the_next_one_lands_nothing() {
    let world = World::ready("true");
    std::fs::create_dir(world.path("home/.cargo")).unwrap();
    let at = world.path("home/.cargo/config.toml");
    let at = at.display();
    let change = format!("case $PWD in */proof-*) echo a > {at};; esac");
    let gates = [("lint", change), ("next", format!("cat {at}")), ("z", format!("rm -f {at}"))];
    let gates: Vec<_> = gates.iter().map(|(id, cmd)| (*id, cmd.as_str())).collect();
    world.accept_goals(&gates);
    let main = world.head();
    world.peers(&["run", "--max-ticks", "1", "--branch", "work"]).exits(0);
    world.peers(&["land"]).exits(5).err_has("tamper:tool-home: ");
    assert_eq!(world.git(&["rev-parse", "main"]), main);
}

#[test]
fn a_merge_is_made_and_the_work_tree_that_has_the_branch_follows() {
    let world = on_a_branch("test -e ann.txt || test ! -e op.txt");
    let tip = world.head();
    world.git(&["checkout", "-q", "main"]);
    world.write("op.txt", "mine");
    let main = world.commit("Mine");
    world.peers(&["land"]).exits(0);
    assert_eq!(world.git(&["rev-parse", "HEAD^1", "HEAD^2"]), format!("{main}\n{tip}"));
    assert!(world.at("ann.txt").exists() && world.at("op.txt").exists());
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn squash_makes_one_commit_and_a_dirty_target_is_refused() {
    let world = on_a_branch("true");
    world.git(&["checkout", "-q", "main"]);
    let main = world.head();
    world.write("dirty.txt", "");
    world.peers(&["land", "--squash"]).exits(4);
    std::fs::remove_file(world.at("dirty.txt")).unwrap();
    world.peers(&["land", "--squash"]).exits(0);
    assert_eq!(world.git(&["rev-parse", "HEAD^"]), main);
    assert_eq!(world.git(&["log", "-1", "--format=%an"]), "peers-substrate");
}

#[test]
fn a_conflict_names_the_paths() {
    let world = on_a_branch("true");
    world.git(&["checkout", "-q", "main"]);
    world.write("ann.txt", "mine\n");
    let main = world.commit("Mine");
    let done = world.peers(&["land"]).exits(1);
    assert_eq!(done.out, "ann.txt\n");
    assert_eq!(world.head(), main);
}

#[test]
fn a_proposal_moves_nothing_and_needs_a_branch_of_its_own() {
    let world = on_a_branch("true");
    let main = world.git(&["rev-parse", "main"]);
    world.peers(&["land", "--pr"]).exits(0).out_has("- [x] real");
    assert_eq!(world.git(&["rev-parse", "main"]), main);
    assert!(World::ready("true").peers(&["land"]).exits(1).err.contains("--branch"));
}

#[test]
fn a_run_that_is_not_complete_is_landed_with_a_word() {
    let world = on_a_branch("true");
    let proposed = world.peers(&["land", "--pr"]).exits(0);
    proposed.out_has("**This run did not end complete**: `max_ticks");
    proposed.out_has("Missing for `complete`:\n\n- `");
    let proposed = world.peers(&["land", "--pr", "--json"]).exits(0).json("peers.land/1");
    assert_eq!(proposed["caveats"]["complete"], false);
    assert!(!proposed["caveats"]["missing"].as_array().unwrap().is_empty(), "{proposed}");
    let done = world.peers(&["land"]).exits(0);
    done.err_has("warning: this run did not end complete: max_ticks");
    done.err_has("missing for `complete`:\n  - ");
    world.peers(&["status"]).exits(0).out_has("landed:    ").out_lacks("next step");
    assert!(world.peers(&["report"]).exits(0).out.contains("**Landed** at "));
}

#[test]
fn a_worktree_leaves_the_checkout_alone() {
    let world = World::ready("true");
    let before = world.head();
    let dir = world.path("apart");
    world.peers(&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()]).exits(0);
    assert_eq!((world.head(), world.git(&["status", "--porcelain"])), (before, String::new()));
    assert!(dir.join("ann.txt").exists() && !world.at("ann.txt").exists());
    let on = format!("`peers -C {} run`", dir.canonicalize().unwrap().display());
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains(&on) && status.contains("on peers/"), "{status}");
    let there = Ended::of(&world.command(program()).arg("status").current_dir(&dir).output().unwrap());
    there.out_has("next step: `peers run` goes on; `peers land`");
    let again = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    again.err_has("this one works here. To go on there: ").err_has(&on);
    world.peers(&["undo", "last"]).exits(0);
    let done = world.peers(&["-C", dir.to_str().unwrap(), "run", "--max-ticks", "1"]).exits(0);
    done.err_lacks("To go on there");
    world.peers(&["land"]).exits(0);
    let landed = world.head();
    assert!(world.at("ann.txt").exists(), "main is checked out here and follows");
    let undone = world.peers(&["undo", "last"]).exits(0).err;
    let revert = undone.split("`git ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    world.git(&revert.split(' ').collect::<Vec<_>>());
    assert!(!world.git(&["diff", &format!("{landed}^"), "--stat"]).contains("txt"), "{undone}");
    assert!(undone.contains("landed in `main`, which keeps it"), "{undone}");
}

#[test]
fn undo_restores_the_base_and_keeps_a_copy() {
    let world = World::ready("true");
    let base = world.head();
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
    let tip = world.head();
    let done = world.peers(&["undo", "last", "--json"]).exits(0).json("peers.undo/1");
    assert_eq!((world.head(), done["commits"].as_u64()), (base, Some(2)));
    assert!(!world.at("ann.txt").exists());
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    let name = done["salvage"].as_str().unwrap().to_owned();
    assert!(world.peers(&["salvage", "list"]).exits(0).out.contains(&name));
    world.peers(&["salvage", "restore", &name]).exits(0);
    assert_eq!(world.git(&["rev-parse", &format!("refs/peers/salvage/{name}")]), tip);
    world.peers(&["salvage", "restore", &name.replace("undo", "udno")]).exits(3).err_has("did you mean");
    world.peers(&["undo", "last"]).exits(1);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn undo_refuses_commits_of_somebody_else_and_unknown_runs() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write("mine.txt", "");
    let tip = world.commit("Mine on top");
    world.peers(&["undo", "last"]).exits(4).err_has("Mine on top");
    assert_eq!(world.head(), tip);
    world.peers(&["undo", "ffffffffffffffff"]).exits(3).err_has("hint: ");
}

#[test]
fn landing_needs_accepted_goals() {
    let world = on_a_branch("true");
    world.write(".peers/goals.yaml", &goals(&[("real", "exit 0")]));
    world.peers(&["land"]).exits(5);
}

#[test]
fn a_sparse_checkout_is_refused_and_a_worktree_beside_it_works_and_lands() {
    let world = World::ready("true");
    world.write("far/away.txt", "x");
    world.commit("More");
    world.git(&["sparse-checkout", "set", "near"]);
    let done = world.peers(&["run", "--max-ticks", "1"]).exits(3);
    done.err_has("`far/away.txt` was left out of this sparse checkout");
    done.err_has("`git sparse-checkout disable`");
    world.peers(&["run", "--max-ticks", "2", "--worktree"]).exits(0);
    world.peers(&["status"]).exits(0).out_has("`far/away.txt` was left out of this sparse checkout");
    world.peers(&["land"]).exits(4).err_has("switch --detach` leaves the branch free");
    world.git(&["switch", "-q", "--detach"]);
    world.peers(&["land"]).exits(0);
    assert!(
        !world.at("far/away.txt").exists()
            && world.git(&["log", "--format=%s", "main"]).contains("Work of ann")
    );
}

#[test]
fn how_a_red_landing_from_a_worktree_goes_on_names_the_worktree() {
    let world = World::ready("! test -e op.txt || ! test -e ann.txt");
    let dir = world.path("apart");
    let run = world.peers(&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()]).exits(0);
    let command = format!("`peers -C {} run`", dir.display());
    let said = format!("hint: {command} goes on; `peers land` merges what it has\n");
    assert!(run.err.contains(&said) && run.err.matches(&command).count() == 1, "{}", run.err);
    world.write("op.txt", "");
    world.commit("Mine");
    world.peers(&["land"]).exits(1).err_has(&format!("hint: {command} on `peers/"));
}
