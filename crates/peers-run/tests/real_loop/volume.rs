//! Much of something, and bytes that are no text.

use peers_model::record::TickOutcome;

use crate::world::{FIX, World, sh};

/// A message of raw bytes, by way of a file, handed to git as it is.
fn raw_commit(make: &str) -> String {
    sh(&format!(
        "{make} > ../message; git add -A; git -c i18n.commitEncoding=binary commit -q --no-verify --allow-empty --cleanup=verbatim -F ../message"
    ))
}

#[test]
fn a_message_that_is_no_text_is_still_a_handoff() {
    let w = World::new();
    let make = "printf 'Fix \\377\\376 it\\n\\n## Self-Review\\nRead \\300 it again, every line of it.\\n\\nSelf-Review: pass\\nPeer-Status: handoff\\nPeer: ann\\n'";
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", &raw_commit(make)]]);
    w.run(&["--max-ticks=2"]).stopped("complete", 0);
    assert!(w.tick(1).success, "{:?}", w.tick(1));
    assert!(w.prompt(2).contains("Fix"));
    w.settled();
}

#[test]
fn names_with_control_bytes_reach_no_prompt_and_no_terminal_as_they_are() {
    let w = World::new();
    let names = sh(
        "printf x > \"$(printf 'a\\033[31mred.py')\"; printf x > \"$(printf 'new\\nline.py')\"; printf x > \"$(printf 'bad\\377name.py')\"",
    );
    let dirty = sh(
        "printf y > \"$(printf 'dirty\\033]0;title\\007.py')\"; printf y > \"$(printf 'two\\nlines.py')\"",
    );
    w.play("idle", &[&[&names, "handoff: Odd names", &dirty]]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert_eq!(w.tick(1).outcome, TickOutcome::Handoff);
    assert!(w.tick(1).dirty);
    let prompt = w.prompt(2);
    let bad: Vec<char> = prompt.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect();
    assert!(bad.is_empty(), "{bad:?}");
    for warning in w.tick(1).warnings_emitted {
        assert!(!warning.chars().any(char::is_control), "{warning:?}");
    }
    w.settled();
}

#[test]
fn odd_things_in_the_work_tree_stop_nothing() {
    let w = World::new();
    let odd = sh(concat!(
        "mkfifo pipe; ln -s /dev/zero zero; ln -s loop loop; ln -s / root; git init -q nested; ",
        "echo x > nested/file; mkdir -p locked; echo x > locked/file; chmod 000 locked; ",
        "d=deep; for i in $(seq 100); do d=$d/d; done; mkdir -p $d; echo x > $d/file; ",
        "truncate -s 1T sparse"
    ));
    w.play("idle", &[&[&odd, "write: {path: fixed, text: 'yes'}", "handoff: {files: [fixed]}"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert!(tick.success && tick.dirty, "{tick:?}");
    w.settled();
}

#[test]
fn a_revert_of_committed_control_files_leaves_the_real_ones_alone() {
    let w = World::new();
    let honest: &[&str] = &["write: {path: a.py, text: 'a = 1'}", "handoff"];
    w.play(
        "idle",
        &[
            honest,
            &[
                "git: [add, -f, .peers]",
                "commit: Steal",
                "rewrite: {reset: 2, mode: soft}",
                "commit: All in one",
            ],
        ],
    );
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert_eq!(w.tick(2).outcome, TickOutcome::Corrected);
    assert!(w.has(".peers/goals.yaml") && w.has(".peers/config.yaml"));
    w.settled();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
}

/// Two ticks go on as usual in a repository with ten thousand references, which `make` makes of their names.
fn two_ticks_beside_many_references(make: impl FnOnce(&World, Vec<String>)) {
    let w = World::new();
    make(&w, (0..10_000).map(|n| format!("refs/heads/many/{}/b{n}", n % 20)).collect());
    let refs = || w.git(&["for-each-ref", "refs/heads/many"]);
    let before = refs();
    assert_eq!(before.lines().count(), 10_000);
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff"], FIX]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.ticks().iter().map(|tick| tick.outcome).collect::<Vec<_>>(), [TickOutcome::Handoff; 2]);
    assert_eq!(refs(), before);
    w.settled();
}

#[test]
fn ten_thousand_loose_references_change_nothing() {
    two_ticks_beside_many_references(|w, names| {
        let commit = w.head();
        for name in &names {
            w.put(&format!(".git/{name}"), &format!("{commit}\n"));
        }
    });
}

#[test]
fn ten_thousand_packed_references_change_nothing() {
    two_ticks_beside_many_references(|w, mut names| {
        let commit = w.head();
        names.sort();
        let lines: String = names.iter().flat_map(|name| [&*commit, " ", name, "\n"]).collect();
        w.put(".git/packed-refs", &format!("# pack-refs with: peeled fully-peeled sorted \n{lines}"));
    });
}

#[test]
fn a_repository_with_an_odd_path_is_one_like_any_other() {
    let w = World::named("an operator's \"r\u{e9}po\" $HOME *");
    let honest: &[&str] = &["write: {path: a.py, text: 'a = 1'}", "handoff"];
    w.play("idle", &[honest, &["rewrite: amend"], &["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=3", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn a_commit_that_git_itself_would_refuse_is_never_built_on() {
    for body in [
        "tree $(git rev-parse HEAD^{tree})\\nparent $(git rev-parse HEAD)\\nauthor nobody 1 +0000\\ncommitter nobody 1 +0000\\n\\nFix it",
        "tree $(git rev-parse HEAD^{tree})\\nparent $(git rev-parse HEAD)\\nauthor A <a@b> 99999999999999999999 +0000\\ncommitter A <a@b> 1 +0000\\n\\nFix it",
        "tree $(git rev-parse HEAD^{tree})\\nparent 1111111111111111111111111111111111111111\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\n\\nFix it",
    ] {
        let w = World::new();
        let before = w.head();
        let make = sh(&format!(
            "c=$(printf \"{body}\\n\\nSelf-Review: pass\\nPeer-Status: handoff\\nPeer: ann\\n\" | git hash-object -t commit -w --stdin --literally) && echo $c > .git/refs/heads/main"
        ));
        w.play(
            "idle",
            &[&["write: {path: fixed, text: 'yes'}", "git: [add, -A]", "git: [commit, -q, -m, x]", &make]],
        );
        w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
        let tick = w.tick(1);
        assert_eq!(
            (w.head().as_str(), tick.success, tick.commits.len()),
            (before.as_str(), false, 0),
            "{tick:?}"
        );
        assert!(!w.has("fixed"));
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        w.settled();
    }
}
