//! Checkouts of ours and linked worktrees.

use super::{Fixture, git_in, link, substrate};
use crate::{GitError, SyntheticGit, remove_checkout};

#[test]
fn a_pristine_checkout_holds_the_commit_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "cache\n");
    fixture.write("bin/run", "#!/bin/sh\n");
    std::fs::set_permissions(
        fixture.work.join("bin/run"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    link("bin/run", &fixture.work.join("link"));
    fixture.write(".gitattributes", "*.bat eol=crlf\n*.c filter=evil\n");
    fixture.write("x.bat", "a\r\nb\r\n");
    fixture.write("x.c", "int x;\n");
    let commit = fixture.commit("all");
    fixture.git(&["tag", "-a", "-m", "v", "v1"]);
    let mut control = fixture.imported();
    fixture.write("cache", "ignored");
    fixture.write("untracked", "u");
    let dir = fixture.path("pristine");
    let lent = control.lend(&fixture.open()).unwrap();
    control.checkout_pristine(&commit, &dir, &lent).unwrap();
    let git = |args: &[&str]| git_in(&dir, fixture.dir.path(), args);
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["rev-parse", "HEAD"]).trim(), commit.as_str());
    assert_eq!(git(&["describe"]).trim(), "v1");
    assert_eq!(git(&["rev-parse", "refs/heads/main"]).trim(), commit.as_str());
    assert_eq!(git(&["log", "--oneline"]).lines().count(), 2);
    assert!(!dir.join("cache").exists() && !dir.join("untracked").exists());
    assert_eq!(std::fs::read(dir.join("x.bat")).unwrap(), b"a\r\nb\r\n");
    assert!(dir.join("link").is_symlink());
    assert_eq!(std::fs::read(dir.join(".git/config")).unwrap(), b"");
    let again = control.checkout_pristine(&commit, &dir, &lent);
    assert!(matches!(again, Err(GitError::Exists { .. })));
    remove_checkout(&dir).unwrap();
    assert!(!dir.exists());
    remove_checkout(&dir).unwrap();
}

#[test]
fn a_checkout_over_the_control_directory_knows_commits_made_there() {
    let fixture = Fixture::new();
    let first = fixture.head();
    fixture.write("a", "two\n");
    let second = fixture.commit("second");
    let mut control = fixture.control();
    drop(control.import(&fixture.open(), Some(&second)).unwrap());
    let made = control.revert_commit(&second, &second, "ours\n", &substrate()).unwrap();
    let dir = fixture.path("tree");
    control.checkout_pristine(&made, &dir, &SyntheticGit::over_control(&control).unwrap()).unwrap();
    assert_eq!(git_in(&dir, fixture.dir.path(), &["log", "--format=%s"]), "ours\nsecond\n");
    assert_eq!(git_in(&dir, fixture.dir.path(), &["status", "--porcelain"]), "");
    assert!(!control.facts().has(&first));
}

#[test]
fn a_gate_tree_is_reset_except_for_what_it_may_keep() {
    let fixture = Fixture::new();
    fixture.write("src/x", "1\n");
    fixture.write("src/same", "same\n");
    fixture.write("target/tracked", "t\n");
    let one = fixture.commit("one");
    fixture.write("src/x", "2\n");
    fixture.write("new", "n\n");
    let two = fixture.commit("two");
    let control = fixture.imported();
    let dir = fixture.path("gate");
    let git = SyntheticGit::over_control(&control).unwrap();
    control.checkout_pristine(&one, &dir, &git).unwrap();
    let time = |name: &str| std::fs::metadata(dir.join(name)).unwrap().modified().unwrap();
    let same = time("src/same");
    // What a gate may have done, on purpose or not.
    std::fs::create_dir_all(dir.join("target/debug")).unwrap();
    std::fs::write(dir.join("target/debug/out"), "cache").unwrap();
    std::fs::write(dir.join("target/tracked"), "changed").unwrap();
    std::fs::write(dir.join("a"), "uno\n").unwrap();
    std::fs::create_dir_all(dir.join("junk/.git/deep")).unwrap();
    std::fs::create_dir_all(dir.join("src/.git")).unwrap();
    std::fs::remove_dir_all(dir.join(".git")).unwrap();
    link("/etc", &dir.join(".git"));
    link("/etc", &dir.join("etc"));
    let report = control.reset_checkout(&two, &dir, &["target"], &git).unwrap();
    assert!(report.blocked.is_empty());
    let run = |args: &[&str]| git_in(&dir, fixture.dir.path(), args);
    assert_eq!(run(&["status", "--porcelain"]), "?? target/debug/\n");
    assert_eq!(run(&["rev-parse", "HEAD"]).trim(), two.as_str());
    assert_eq!(std::fs::read(dir.join("target/debug/out")).unwrap(), b"cache");
    assert_eq!(time("src/same"), same, "an unchanged file is not written again");
    assert!(std::path::Path::new("/etc/passwd").exists());
    // Same size, same time as before, and the stamps of our own index: the content still counts.
    let before = time("a");
    std::fs::write(dir.join("a"), "uno\n").unwrap();
    std::fs::File::options().write(true).open(dir.join("a")).unwrap().set_modified(before).unwrap();
    drop(control.reset_checkout(&two, &dir, &[], &git).unwrap());
    assert_eq!(std::fs::read(dir.join("a")).unwrap(), b"one\n");
    assert!(!dir.join("target/debug").exists());
}

#[test]
fn a_hard_link_into_a_gate_tree_does_not_survive_a_reset() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let dir = fixture.path("gate");
    let git = SyntheticGit::over_control(&control).unwrap();
    control.checkout_pristine(&fixture.head(), &dir, &git).unwrap();
    std::fs::remove_file(dir.join("a")).unwrap();
    super::put(&fixture.path("other"), b"one\n");
    std::fs::hard_link(fixture.path("other"), dir.join("a")).unwrap();
    drop(control.reset_checkout(&fixture.head(), &dir, &[], &git).unwrap());
    super::put(&fixture.path("other"), b"later\n");
    assert_eq!(std::fs::read(dir.join("a")).unwrap(), b"one\n");
}

#[test]
fn removal_does_not_follow_symlinks_and_opens_closed_directories() {
    let fixture = Fixture::new();
    let dir = fixture.path("tree");
    super::put(&fixture.path("outside/precious"), b"p");
    super::put(&dir.join("closed/inner/file"), b"x");
    link(fixture.path("outside").to_str().unwrap(), &dir.join("link"));
    std::fs::set_permissions(dir.join("closed"), std::os::unix::fs::PermissionsExt::from_mode(0o500))
        .unwrap();
    remove_checkout(&dir).unwrap();
    assert!(!dir.exists() && fixture.path("outside/precious").exists());
}

#[test]
fn a_linked_worktree_is_made_used_and_removed() {
    let fixture = Fixture::new();
    fixture.write("dir/x", "x\n");
    let at = fixture.commit("x");
    let control = fixture.imported();
    let repo = fixture.open();
    let dir = fixture.path("agents");
    let linked = repo.add_linked(&control, &dir, "00aa", "peers/00aa", &at, &substrate()).unwrap();
    assert_eq!(linked.common_dir(), repo.common_dir());
    assert_eq!(linked.facts().head().unwrap().branch.as_deref(), Some("refs/heads/peers/00aa"));
    let git = |args: &[&str]| git_in(&dir, fixture.dir.path(), args);
    assert_eq!(git(&["status", "--porcelain"]), "");
    std::fs::write(dir.join("dir/x"), "changed\n").unwrap();
    git(&["commit", "-q", "-am", "work in there"]);
    assert!(fixture.git(&["worktree", "list"]).contains("peers/00aa"));
    assert_eq!(fixture.head(), at, "the operator's checkout is where it was");
    // Everything else works on it too.
    let mut control = fixture.control();
    let imported = control.import(&linked, None).unwrap();
    assert_eq!(imported.head, fixture.rev("peers/00aa"));
    assert!(!control.tree_state(&dir, &imported.head).unwrap().dirty);
    drop(linked.reset_to(&control, Some("peers/00aa"), &imported.head, &at, &substrate()).unwrap());
    assert_eq!(git(&["status", "--porcelain"]), "");
}
