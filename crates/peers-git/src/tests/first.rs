//! Where a history begins.

use peers_model::Timestamp;

use super::{Fixture, fifo, link};
use crate::{Author, GitError, Identity, PeerRepo};

fn ann() -> Author {
    Author::new("Ann", "ann@example.org", Timestamp::from_millis(1_700_000_000_000))
}

#[test]
fn a_made_repository_is_empty_with_its_branch_and_identity_and_no_template() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().canonicalize().unwrap();
    let who = Identity { name: "Ann Ä".to_owned(), email: "ann@example.org".to_owned() };
    let repo = PeerRepo::create(&work, "main", Some(&who)).unwrap();
    assert!(
        matches!(repo.facts().head(), Err(GitError::Repo(crate::RepoError::Unborn { branch, .. })) if branch == "main")
    );
    let git = |args: &[&str]| super::git_in(&work, dir.path(), args);
    assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert_eq!(git(&["config", "--local", "user.name"]), "Ann Ä\n");
    assert_eq!(git(&["config", "--local", "user.email"]), "ann@example.org\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
    let hooks =
        std::fs::read_dir(work.join(".git/hooks")).map(|names| names.map(|name| name.unwrap().file_name()));
    assert!(hooks.is_err() || hooks.unwrap().all(|name| name == "README.sample"));
    let again = PeerRepo::create(&work, "main", None).map(drop);
    assert!(matches!(again, Err(GitError::Exists { .. })), "{again:?}");
    let name = PeerRepo::create(&work, "a..b", None).map(drop);
    assert!(matches!(name, Err(GitError::InvalidName { .. })), "{name:?}");
}

#[test]
fn the_first_commit_has_what_git_add_would_take_and_runs_nothing() {
    let fixture = Fixture::unborn();
    fixture.write(".gitignore", "*.log\n/out/\n");
    fixture.write(".gitattributes", "*.txt text eol=lf\n*.x filter=evil\n");
    fixture.git(&["config", "filter.evil.clean", "touch ran"]);
    fixture.write(".git/hooks/pre-commit", "#!/bin/sh\ntouch ran\n");
    fixture.write("a.txt", "a\r\n");
    fixture.write("b.x", "b");
    fixture.write("x.log", "no");
    fixture.write("out/y", "no");
    fixture.write("dir/.gitignore", "!z.log\n");
    fixture.write("dir/z.log", "yes");
    fixture.write(".peers/config.yaml", "ours");
    fixture.write("local", "no");
    link("a.txt", &fixture.work.join("to"));
    fifo(&fixture.work.join("pipe"));
    let excludes = fixture.path("excludes");
    std::fs::write(&excludes, "local\n").unwrap();
    let repo = fixture.open();
    let first = repo.commit_first("one\n\nmore", &ann(), Some(&excludes)).unwrap();
    assert_eq!((first.left_out.len(), first.unrepresentable.len()), (0, 0));
    assert_eq!(first.commit, fixture.head());
    assert_eq!(
        fixture.git(&["ls-tree", "-r", "--name-only", "HEAD"]),
        ".gitattributes\n.gitignore\na.txt\nb.x\ndir/.gitignore\ndir/z.log\nto\n"
    );
    assert_eq!(fixture.git(&["show", "HEAD:a.txt"]), "a\n");
    assert_eq!(fixture.git(&["log", "--format=%an <%ae> %cn %s|%P"]), "Ann <ann@example.org> Ann one|\n");
    assert_eq!(fixture.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert_eq!(fixture.git(&["diff", "--cached", "--name-only"]), "");
    assert!(!fixture.exists("ran"));
    let again = repo.commit_first("two", &ann(), None).map(drop);
    assert!(matches!(again, Err(GitError::Exists { .. })), "{again:?}");
}
