//! Taking commits out of a turn.

use peers_model::CommitId;

use super::Stage;
use crate::tests::{Fixture, git_in, put};
use crate::{TurnFailure, TurnGit};

fn ids(commits: &[CommitId]) -> Vec<String> {
    let mut ids: Vec<String> = commits.iter().map(ToString::to_string).collect();
    ids.sort();
    ids
}

#[test]
fn what_was_committed_comes_in_as_the_turns_and_stays_there_when_asked_again() {
    let mut stage = Stage::new();
    let from = stage.fixture.head();
    drop(stage.make());
    let one = stage.work("x", "1\n");
    let two = stage.work("y", "2\n");
    let accepted = stage.accepted();
    assert_eq!((&accepted.tip, ids(&accepted.new)), (&two, ids(&[one, two.clone()])));
    let before = accepted.before;
    let new = |stage: &Stage| {
        let found = stage.control.new_commits(Some(&from), &two, before).unwrap();
        found.iter().filter(|commit| !commit.known).count()
    };
    assert_eq!(new(&stage), 2);
    // A crash here: the next process harvests again.
    drop(accepted);
    stage.control = stage.fixture.control();
    let accepted = stage.accepted();
    assert_eq!((accepted.tip.clone(), accepted.before, new(&stage)), (two, before, 2));
    accepted.git.discard().unwrap();
    assert!(TurnGit::find(&stage.scratch).unwrap().is_none());
    assert_eq!(stage.fixture.head(), from);
}

#[test]
fn a_large_turn_comes_by_a_fetch() {
    let mut stage = Stage::new();
    drop(stage.make());
    for n in 0..400 {
        stage.fixture.write(&format!("many/{n}"), n.to_string());
    }
    let tip = stage.work("last", "x\n");
    assert_eq!(stage.accepted().tip, tip);
    assert!(stage.control.facts().read_blob(&tip, "many/399", 10).unwrap().is_some());
}

#[test]
fn commits_that_were_there_before_are_nobodys_when_they_come_with_a_merge() {
    let mut stage = Stage::new();
    let fixture = &stage.fixture;
    let from = fixture.head();
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.write("theirs", "t\n");
    let theirs = fixture.commit("theirs");
    fixture.git(&["update-ref", "refs/remotes/origin/x", "HEAD"]);
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["branch", "-q", "-D", "side"]);
    drop(stage.make());
    stage.run(&["merge", "-q", "--no-ff", "-m", "merge", "origin/x"]);
    let accepted = stage.accepted();
    let found = stage.control.new_commits(Some(&from), &accepted.tip, accepted.before).unwrap();
    let known = |id: &CommitId| found.iter().find(|commit| commit.fact.id == *id).unwrap().known;
    assert!(known(&theirs) && !known(&accepted.tip));
    assert_eq!(accepted.new, std::slice::from_ref(&accepted.tip));
}

#[test]
fn nothing_else_of_what_references_name_is_brought_in() {
    let mut stage = Stage::new();
    let fixture = &stage.fixture;
    fixture.git(&["checkout", "-q", "-b", "side"]);
    let theirs = fixture.commit("theirs");
    fixture.git(&["update-ref", "refs/remotes/origin/x", "HEAD"]);
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["branch", "-q", "-D", "side"]);
    drop(stage.make());
    stage.work("x", "x\n");
    assert_eq!(stage.harvest().kept, []);
    assert!(!stage.control.facts().has(&theirs));
}

#[test]
fn a_head_elsewhere_fails_the_turn_and_loses_nothing() {
    let cases: [(&[&[&str]], &str); 4] = [
        (&[&["checkout", "-q", "-b", "feature"]], "`refs/heads/feature`"),
        (&[&["checkout", "-q", "--detach"]], "a commit"),
        (&[&["checkout", "-q", "--orphan", "lone"]], "`refs/heads/lone`"),
        (&[&["symbolic-ref", "HEAD", "refs/heads/none"]], "no commit yet"),
    ];
    for (moves, told) in cases {
        let mut stage = Stage::new();
        drop(stage.make());
        let on_branch = stage.work("before", "b\n");
        for args in moves {
            stage.run(args);
        }
        let after = if told.contains("no commit") { None } else { Some(stage.work("after", "a\n")) };
        let git = stage.git_dir();
        let before = stage.fixture.head();
        let harvest = stage.harvest();
        let TurnFailure { why, aside } = harvest.outcome.unwrap_err();
        assert!(why.contains(told), "{why}");
        assert_eq!(stage.fixture.head(), before);
        assert!(!git.exists() && aside.unwrap().join(".git/HEAD").exists());
        for commit in after.iter().chain([&on_branch]) {
            assert!(stage.control.facts().has(commit), "{moves:?}");
            let kept = stage.control.list_salvage().unwrap();
            let covered = |tip: &CommitId| stage.control.facts().is_ancestor(commit, tip).unwrap();
            assert!(kept.iter().any(|kept| covered(&kept.commit)), "{moves:?}");
        }
        drop(stage.make());
        assert_eq!(stage.run(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    }
}

#[test]
fn rewritten_history_fails_the_turn_and_is_kept() {
    for args in [&["commit", "-q", "--amend", "-m", "changed"][..], &["reset", "-q", "--soft", "HEAD~1"]] {
        let mut stage = Stage::new();
        drop(stage.make());
        stage.run(args);
        let tip = stage.work("more", "m\n");
        let (why, _) = stage.failed();
        assert!(why.contains("history was rewritten"), "{why}");
        assert_eq!(stage.control.list_salvage().unwrap()[0].commit, tip);
    }
}

#[test]
fn squashing_the_turns_own_commits_is_fine() {
    let mut stage = Stage::new();
    drop(stage.make());
    stage.work("x", "1\n");
    stage.work("y", "2\n");
    stage.run(&["reset", "-q", "--soft", "HEAD~2"]);
    stage.run(&["commit", "-q", "-m", "one"]);
    let accepted = stage.accepted();
    assert_eq!(accepted.new, std::slice::from_ref(&accepted.tip));
}

#[test]
fn other_branches_tags_and_stashes_are_kept_and_told() {
    let mut stage = Stage::new();
    stage.fixture.git(&["branch", "old"]);
    drop(stage.make());
    stage.run(&["checkout", "-q", "-b", "side"]);
    let side = stage.work("side", "s\n");
    stage.run(&["tag", "-a", "-m", "t", "v9"]);
    stage.run(&["checkout", "-q", "main"]);
    stage.run(&["branch", "-f", "old", "side"]);
    stage.run(&["branch", "same"]);
    stage.fixture.write("a", "stashed\n");
    stage.run(&["stash", "-q"]);
    let tip = stage.work("x", "x\n");
    let harvest = stage.harvest();
    let accepted = harvest.outcome.unwrap();
    assert_eq!(accepted.tip, tip);
    let told: Vec<_> = harvest.kept.iter().map(|kept| (kept.name.as_str(), kept.salvage.is_some())).collect();
    let expected = [
        ("refs/heads/old", true),
        ("refs/heads/same", false),
        ("refs/heads/side", false),
        ("refs/tags/v9", false),
        ("stash-0", true),
    ];
    assert_eq!(told, expected, "one copy is enough");
    let kept = stage.control.list_salvage().unwrap();
    assert!(kept.iter().any(|kept| kept.commit == side));
    assert_eq!(stage.control.imported_branches().unwrap().len(), 2, "none of them is in the checkout");
}

#[test]
fn commits_of_the_operator_meanwhile_are_nobodys() {
    let mut stage = Stage::new();
    let from = stage.fixture.head();
    drop(stage.make());
    let work = stage.work("x", "x\n");
    stage.fixture.git(&["commit", "-q", "--allow-empty", "-m", "operator"]);
    let theirs = stage.fixture.head();
    let accepted = stage.accepted();
    assert_eq!((&accepted.tip, &accepted.new), (&work, &vec![work.clone()]));
    let found = stage.control.new_commits(Some(&from), &theirs, accepted.before).unwrap();
    assert!(found.iter().all(|commit| commit.known));
}

#[test]
fn a_checkout_that_is_packed_and_pruned_meanwhile_does_not_end_a_turn() {
    let mut stage = Stage::new();
    let fixture = &stage.fixture;
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.commit("gone");
    fixture.git(&["checkout", "-q", "main"]);
    drop(stage.make());
    stage.work("x", "x\n");
    let fixture = &stage.fixture;
    fixture.git(&["branch", "-q", "-D", "side"]);
    fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    stage.work("y", "y\n");
    let accepted = stage.accepted();
    assert_eq!(accepted.new.len(), 2);
    accepted.git.discard().unwrap();
    drop(stage.make());
    assert_eq!(stage.run(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
}

#[test]
fn what_people_do_with_git_works_in_a_turn_and_leaves_nothing_behind() {
    let mut stage = Stage::new();
    let origin = Fixture::new();
    stage.fixture.git(&["submodule", "--quiet", "add", origin.work.to_str().unwrap(), "sub"]);
    stage.fixture.commit("sub");
    drop(stage.control.import(&stage.peer(), None).unwrap());
    stage.fixture.git(&["tag", "-a", "-m", "t", "v1"]);
    let entries = |stage: &Stage| {
        let names = std::fs::read_dir(stage.fixture.work.join(".git")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = entries(&stage);
    drop(stage.make());
    stage.work("x", "1\n");
    stage.work("y", "2\n");
    assert!(stage.run(&["describe"]).starts_with("v1-2-"));
    stage.run(&["rebase", "-q", "--force-rebase", "HEAD~2"]);
    stage.run(&["repack", "-q", "-ad"]);
    stage.run(&["gc", "-q", "--prune=now"]);
    stage.run(&["commit-graph", "write", "--reachable"]);
    stage.run(&["multi-pack-index", "write"]);
    let place = stage.fixture.path("elsewhere");
    stage.run(&["worktree", "add", "-q", place.to_str().unwrap(), "HEAD"]);
    drop(stage.agent(&["submodule", "update", "--init"]).output().unwrap());
    assert_eq!(stage.run(&["status", "--porcelain"]), "");
    let tip = CommitId::new(stage.run(&["rev-parse", "HEAD"]).trim()).unwrap();
    let published = stage.publish();
    assert_eq!(published.moved, None);
    assert_eq!((stage.fixture.head(), entries(&stage)), (tip, before));
    assert_eq!((stage.status(), stage.fixture.git(&["fsck"])), (String::new(), String::new()));
}

#[test]
fn a_submodule_at_a_commit_that_only_the_turn_has_fails_it() {
    let mut stage = Stage::new();
    let origin = Fixture::new();
    stage.fixture.git(&["submodule", "--quiet", "add", origin.work.to_str().unwrap(), "sub"]);
    stage.fixture.commit("sub");
    drop(stage.control.import(&stage.peer(), None).unwrap());
    drop(stage.make());
    let known = origin.head();
    let entry = |id: &str| format!("160000,{id},sub");
    let bump = |stage: &Stage, id: &str| {
        stage.run(&["update-index", "--cacheinfo", &entry(id)]);
        stage.run(&["commit", "-q", "--allow-empty", "-m", "bump"]);
    };
    bump(&stage, "1234567890123456789012345678901234567890");
    let (why, _) = stage.failed();
    assert!(why.contains("submodule `sub`"), "{why}");
    // One that the checkout's own submodule has is fine.
    let sub = stage.fixture.work.join("sub");
    put(&sub.join("a"), b"changed\n");
    git_in(&sub, stage.fixture.dir.path(), &["commit", "-q", "-a", "-m", "theirs"]);
    let theirs = git_in(&sub, stage.fixture.dir.path(), &["rev-parse", "HEAD"]);
    assert_ne!(theirs.trim(), known.as_str());
    drop(stage.make());
    bump(&stage, theirs.trim());
    drop(stage.accepted());
}
