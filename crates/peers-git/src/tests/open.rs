//! Opening repositories, good and bad.

use std::path::Path;

use super::{Fixture, fifo, git_in, link, put};
use crate::{BusyState, GitError, PeerRepo, PlainHead, RepoError, Unlocked};

fn fails(fixture: &Fixture) -> RepoError {
    PeerRepo::open(&fixture.work).err().expect("it must not open")
}

#[test]
fn a_plain_repository_opens_and_knows_its_places() {
    let fixture = Fixture::new();
    let repo = fixture.open();
    assert_eq!(repo.work_dir(), fixture.work);
    assert_eq!(repo.common_dir(), fixture.work.join(".git"));
    assert!(repo.preflight().is_empty());
    assert_eq!(PeerRepo::find_top(&fixture.work.join(".git")), Some(fixture.work.clone()));
}

#[test]
fn no_repository_a_bare_one_and_a_subdirectory_are_told_apart() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.work.join("sub")).unwrap();
    assert!(matches!(PeerRepo::open(&fixture.work.join("sub")), Err(RepoError::NotARepo { .. })));
    assert!(matches!(PeerRepo::open(&fixture.path("nowhere")), Err(RepoError::NotARepo { .. })));
    git_in(fixture.dir.path(), fixture.dir.path(), &["init", "-q", "--bare", "bare.git"]);
    assert!(matches!(PeerRepo::open(&fixture.path("bare.git")), Err(RepoError::Bare { .. })));
    fixture.git(&["config", "core.bare", "true"]);
    assert!(matches!(fails(&fixture), RepoError::Bare { .. }));
}

#[test]
fn a_redirected_work_tree_is_refused() {
    let fixture = Fixture::new();
    let elsewhere = fixture.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    fixture.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);
    assert!(matches!(fails(&fixture), RepoError::Redirected { .. }));
}

#[test]
fn a_git_file_that_leads_elsewhere_is_refused() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    std::fs::rename(fixture.work.join(".git"), fixture.path("real.git")).unwrap();
    for target in [fixture.path("real.git"), other.work.join(".git")] {
        put(&fixture.work.join(".git"), format!("gitdir: {}\n", target.display()).as_bytes());
        assert!(matches!(fails(&fixture), RepoError::Redirected { .. }));
        fixture.remove(".git");
    }
    link(other.work.join(".git").to_str().unwrap(), &fixture.work.join(".git"));
    assert!(matches!(fails(&fixture), RepoError::Redirected { .. }));
}

#[test]
fn a_linked_worktree_opens_with_the_recorded_common_directory_only() {
    let fixture = Fixture::new();
    let linked = fixture.path("linked");
    fixture.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let repo = PeerRepo::open_known(&linked, &fixture.work.join(".git")).unwrap();
    assert_eq!(repo.git_dir(), fixture.work.join(".git/worktrees/linked"));
    assert_eq!(repo.facts().head().unwrap().branch.as_deref(), Some("refs/heads/linked"));
    let other = Fixture::new();
    let wrong = PeerRepo::open_known(&linked, &other.work.join(".git"));
    assert!(matches!(wrong, Err(RepoError::Redirected { .. })));
}

#[test]
fn a_damaged_configuration_or_head_is_corrupt() {
    let fixture = Fixture::new();
    let config = fixture.read(".git/config");
    fixture.write(".git/config", "[core\n");
    assert!(matches!(fails(&fixture), RepoError::Corrupt { .. }));
    fixture.write(".git/config", config);
    fixture.write(".git/HEAD", "garbage\n");
    let head = PeerRepo::open(&fixture.work).map_err(GitError::from).and_then(|repo| repo.facts().head());
    assert!(matches!(head, Err(GitError::Repo(RepoError::Corrupt { .. } | RepoError::NotARepo { .. }))));
}

#[test]
fn an_extension_that_nobody_knows_is_refused_by_its_name() {
    let fixture = Fixture::new();
    fixture.write(".git/config", "[core]\nrepositoryformatversion = 1\n[extensions]\nunheardOf = true\n");
    let error = fails(&fixture);
    assert!(matches!(error, RepoError::UnsupportedExtension { .. }), "{error:?}");
    assert!(error.to_string().to_lowercase().contains("unheardof"), "{error}");
    // One that is known is no reason.
    fixture.write(".git/config", "[core]\nrepositoryformatversion = 1\n[extensions]\nnoop = true\n");
    assert_eq!(fixture.open().facts().head().unwrap().branch.as_deref(), Some("refs/heads/main"));
}

#[test]
fn special_files_where_plain_ones_belong_are_found_without_touching_them() {
    for name in
        ["HEAD", "config", "packed-refs", "index", "refs/heads/main", "refs/x", "logs/HEAD", "shallow"]
    {
        let fixture = Fixture::new();
        let place = fixture.work.join(".git").join(name);
        drop(std::fs::remove_file(&place));
        fifo(&place);
        assert!(matches!(fails(&fixture), RepoError::Unsafe { .. }), "{name}");
    }
}

#[test]
fn symlinks_and_giants_inside_the_git_directory_are_refused() {
    for name in ["logs/HEAD", "refs/heads/x", "config"] {
        let fixture = Fixture::new();
        put(&fixture.path("target"), b"precious\n");
        let place = fixture.work.join(".git").join(name);
        drop(std::fs::remove_file(&place));
        link(fixture.path("target").to_str().unwrap(), &place);
        assert!(matches!(fails(&fixture), RepoError::Unsafe { .. }), "{name}");
    }
    for name in ["config", "refs/heads/x", "HEAD", "info/grafts"] {
        let fixture = Fixture::new();
        put(&fixture.work.join(".git").join(name), b"");
        let file =
            std::fs::OpenOptions::new().write(true).open(fixture.work.join(".git").join(name)).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(matches!(fails(&fixture), RepoError::Unsafe { .. }), "{name}");
    }
}

#[test]
fn references_and_logs_beyond_bounds_are_refused() {
    for (dir, found) in [
        ("refs/remotes/origin", "crowded"),
        ("logs/refs/heads/side", "crowded"),
        (&*format!("refs/heads/{}", "a/".repeat(220)), "deeper"),
        (&*format!("refs/tags/{}", format!("{}/", "x".repeat(250)).repeat(12)), "deeper"),
    ] {
        let fixture = Fixture::new();
        std::fs::create_dir_all(fixture.work.join(".git").join(dir)).unwrap();
        for n in (0..1_001).filter(|_| found == "crowded") {
            fixture.write(&format!(".git/{dir}/r{n}"), format!("{}\n", fixture.head()));
        }
        assert!(fails(&fixture).to_string().contains(found), "{dir}");
    }
}

#[test]
fn a_symlinked_directory_of_references_is_refused() {
    let fixture = Fixture::new();
    let outside = fixture.path("outside");
    std::fs::create_dir(&outside).unwrap();
    link(outside.to_str().unwrap(), &fixture.work.join(".git/refs/evil"));
    assert!(matches!(fails(&fixture), RepoError::Unsafe { .. }));
}

#[test]
fn operations_in_progress_and_locks_are_reported_together() {
    let fixture = Fixture::new();
    fixture.write(".git/MERGE_HEAD", format!("{}\n", fixture.head()));
    fixture.write(".git/index.lock", "");
    let repo = fixture.open();
    assert_eq!(repo.busy(), [BusyState::Merge, BusyState::IndexLock]);
    assert!(repo.remove_index_lock().unwrap());
    assert!(!repo.remove_index_lock().unwrap());
    assert_eq!(repo.preflight().len(), 1);
    fixture.remove(".git/MERGE_HEAD");
    std::fs::create_dir(fixture.work.join(".git/rebase-merge")).unwrap();
    assert_eq!(repo.busy(), [BusyState::Rebase]);
    std::fs::remove_dir(fixture.work.join(".git/rebase-merge")).unwrap();
    fixture.write(".git/BISECT_LOG", "x\n");
    assert_eq!(repo.busy(), [BusyState::Bisect]);
}

#[test]
fn locks_of_references_are_reported_each_with_its_path() {
    let fixture = Fixture::new();
    let repo = fixture.open();
    let branch = repo.facts().head().unwrap().branch.unwrap();
    let names = ["HEAD".to_owned(), "packed-refs".to_owned(), branch.clone(), "refs/tags/v1".to_owned()];
    for name in &names {
        fixture.write(&format!(".git/{name}.lock"), "");
    }
    assert_eq!(repo.busy(), [BusyState::RefLock]);
    let mut found: Vec<String> = repo.preflight().iter().map(ToString::to_string).collect();
    found.sort();
    let mut due: Vec<String> = names
        .iter()
        .map(|name| {
            let (dir, lock) = (repo.work_dir().display(), repo.common_dir().join(format!("{name}.lock")));
            format!("the repository at `{dir}` is busy: a reference is locked (`{}`)", lock.display())
        })
        .collect();
    due.sort();
    assert_eq!(found, due);
    assert!(repo.branch_lock(&branch).unwrap().is_some() && repo.branch_lock("other").unwrap().is_none());
}

#[test]
fn a_repository_of_another_user_is_refused() {
    let fixture = Fixture::new();
    let user = Some(rustix::fs::Uid::from_raw(54_321));
    for place in [fixture.work.clone(), fixture.work.join(".git")] {
        // Only root can give files away.
        let Ok(()) = rustix::fs::chown(place, user, None) else { return };
    }
    assert!(matches!(fails(&fixture), RepoError::WrongOwner { .. }));
}

#[test]
fn environment_variables_of_git_are_not_honoured() {
    // The library is opened without the environment; a child process of the test shows that for real,
    // since the environment of a test cannot be changed safely.
    let fixture = Fixture::new();
    let other = Fixture::new();
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new(test)
        .args(["--exact", "tests::open::a_plain_repository_opens_and_knows_its_places"])
        .env("GIT_DIR", other.work.join(".git"))
        .env("GIT_WORK_TREE", &other.work)
        .env("GIT_INDEX_FILE", fixture.path("index"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn locks_of_references_are_found_and_only_they_are_removed() {
    let fixture = Fixture::new();
    assert!(fixture.open().ref_locks().is_empty());
    let locks =
        [".git/HEAD.lock", ".git/packed-refs.lock", ".git/refs/heads/main.lock", ".git/refs/tags/a.lock"];
    for lock in locks {
        fixture.write(lock, "");
    }
    fixture.write(".git/index.lock", "");
    let repo = fixture.open();
    let mut found: Vec<_> = repo.ref_locks();
    found.sort();
    assert_eq!(found, locks.map(|lock| repo.work_dir().join(lock)));
    let before = found.split_off(3);
    let ours = |lock: &Path| lock != before[0];
    assert_eq!(repo.remove_ref_locks(ours), Unlocked { first: found, removed: 3, stuck: None });
    assert_eq!((repo.remove_ref_locks(ours), repo.ref_locks()), (Unlocked::default(), before.clone()));

    // A directory in the place of a lock goes as long as nothing is in it.
    std::fs::create_dir(fixture.work.join(".git/HEAD.lock")).unwrap();
    std::fs::create_dir_all(fixture.work.join(".git/refs/heads/x.lock/y")).unwrap();
    let done = repo.remove_ref_locks(ours);
    assert_eq!(done.first, [repo.work_dir().join(".git/HEAD.lock")]);
    assert_eq!(done.stuck, Some(repo.work_dir().join(".git/refs/heads/x.lock")));
}

#[test]
fn a_plain_head_is_found_loose_packed_or_detached_and_nowhere_else() {
    let fixture = Fixture::new();
    let seen = || PlainHead::of(&fixture.work);
    let loose = seen();
    assert_eq!(loose.as_ref().and_then(|head| head.commit.clone()), Some(fixture.head()));
    fixture.git(&["pack-refs", "--all"]);
    let packed = seen();
    assert_eq!(packed.as_ref().and_then(|head| head.commit.clone()), Some(fixture.head()));
    assert_ne!(loose, packed, "what it stands in changed");
    fixture.git(&["checkout", "-q", "--detach"]);
    assert_eq!(seen().and_then(|head| head.commit), Some(fixture.head()));
    fixture.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    assert_eq!(seen().map(|head| head.commit), Some(None));
    fixture.write(".git/HEAD", "ref: ../../main");
    assert_eq!(seen(), None, "a name that leads away");
    std::fs::rename(fixture.work.join(".git"), fixture.work.join("elsewhere")).unwrap();
    fixture.write(".git", "gitdir: elsewhere");
    assert_eq!(seen(), None, "a repository that lies elsewhere");
}
