//! What a turn begins with.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Stage;
use crate::tests::{Fixture, command, git_in, put};
use crate::{GitError, PeerRepo, TurnGit};

#[test]
fn a_turn_begins_clean_and_git_has_nothing_to_read_again() {
    let stage = Stage::new();
    stage.age();
    drop(stage.make());
    // It names each file whose stamp in the index is not that of the file.
    assert_eq!(stage.run(&["diff-files"]), "");
    assert_eq!(stage.run(&["status", "--porcelain"]), "");
    assert_eq!(stage.run(&["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(stage.run(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    stage.run(&["fsck", "--strict"]);
    let commit = stage.work("new", "n\n");
    let who = stage.run(&["log", "-1", "--format=%an <%ae> %cn"]);
    assert_eq!(who, "alpha <alpha@peers.local> alpha\n");
    assert_ne!(stage.fixture.head(), commit, "the checkout is where it was");
    assert_eq!(stage.fixture.git(&["status", "--porcelain"]), "?? new\n");
}

#[test]
fn files_have_the_owner_that_is_seen_inside() {
    let stage = Stage::new();
    let tip = stage.fixture.head();
    drop(stage.make_by(&tip, |spec| spec.owner = Some((4242, 4343))));
    let shown = stage.run(&["ls-files", "--debug", "a"]);
    assert!(shown.contains("uid: 4242\tgid: 4343"), "{shown}");
}

#[test]
fn what_an_earlier_turn_left_is_modified_or_untracked_and_never_staged() {
    let stage = Stage::new();
    stage.fixture.write("a", "left\n");
    stage.fixture.write("new", "left\n");
    stage.fixture.git(&["add", "-A"]);
    drop(stage.make());
    assert_eq!(stage.run(&["status", "--porcelain"]), " M a\n?? new\n");
    stage.run(&["commit", "-q", "--allow-empty", "-m", "plain"]);
    assert_eq!(stage.run(&["show", "--name-only", "--format="]), "");
}

#[test]
fn five_thousand_files_are_clean_too() {
    let fixture = Fixture::new();
    // And the one that is there already.
    for n in 0..4_999 {
        fixture.write(&format!("d{}/f{n}", n % 50), format!("{n}\n"));
    }
    fixture.commit("many");
    let stage = Stage::over(fixture);
    stage.age();
    drop(stage.make());
    assert_eq!(stage.run(&["diff-files"]), "");
}

#[test]
fn references_are_shown_when_their_objects_are_there() {
    let stage = Stage::new();
    let fixture = &stage.fixture;
    fixture.git(&["tag", "-a", "-m", "t", "v1"]);
    fixture.git(&["branch", "other", "HEAD~1"]);
    fixture.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    fixture.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    fixture.git(&["notes", "add", "-m", "n"]);
    fixture.git(&["update-ref", "refs/peers/hidden", "HEAD"]);
    let gone = "1234567890123456789012345678901234567890";
    put(&fixture.work.join(".git/refs/heads/gone"), format!("{gone}\n").as_bytes());
    drop(stage.make());
    let shown = stage.run(&["for-each-ref", "--format=%(refname)"]);
    let expected = "refs/heads/main\nrefs/heads/other\nrefs/notes/commits\nrefs/remotes/origin/HEAD\n\
                    refs/remotes/origin/main\nrefs/tags/v1\n";
    assert_eq!(shown, expected);
    assert_eq!(stage.run(&["describe"]), "v1\n");
}

#[test]
fn the_operators_settings_come_with_their_includes_and_without_tokens() {
    let stage = Stage::new();
    let fixture = &stage.fixture;
    let more = fixture.path("more.conf");
    put(&more, b"[filter \"keep\"]\n\tclean = cat\n[http]\n\textraHeader = s3cret\n");
    fixture.git(&["config", "include.path", more.to_str().unwrap()]);
    fixture.git(&["config", "remote.origin.url", "https://ann:s3cret@host.org/p.git"]);
    fixture.git(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    fixture.git(&["config", "core.hooksPath", "/s3cret"]);
    let global = fixture.path("global.conf");
    put(&global, b"[core]\n\tautocrlf = input\n[user]\n\tname = s3cret\n[credential]\n\thelper = s3cret\n");
    let files = [global];
    let tip = fixture.head();
    drop(stage.make_by(&tip, |spec| spec.config_files = &files));
    let config = stage.run(&["config", "--list", "--local"]);
    assert!(!config.contains("s3cret"), "{config}");
    for line in [
        "filter.keep.clean=cat",
        "remote.origin.url=https://host.org/p.git",
        "core.autocrlf=input",
        "gc.auto=0",
        "commit.gpgsign=false",
    ] {
        assert!(config.lines().any(|found| found == line), "{line}: {config}");
    }
    let pushed = stage.agent(&["push", "origin", "main"]).output().unwrap();
    assert!(!pushed.status.success());
}

#[test]
fn a_tip_that_is_in_our_copy_alone_is_brought_in() {
    let mut stage = Stage::new();
    let base = stage.fixture.commit("base");
    stage.control =
        crate::ControlDir::open_or_create(&stage.fixture.path("other.git"), crate::tests::program()).unwrap();
    // Our copy begins at the base.
    drop(stage.control.import(&stage.peer(), Some(&base)).unwrap());
    let parent = stage.fixture.rev("HEAD");
    let tip = stage.control.revert_commit(&parent, &base, "ours\n", &stage.by).unwrap();
    drop(stage.make_at(&tip));
    assert_eq!(stage.run(&["log", "--format=%s"]), "ours\nbase\nsecond\nfirst\n");
    stage.run(&["fsck"]);
    assert_eq!(stage.run(&["rev-parse", "main"]).trim(), tip.as_str());
}

#[test]
fn the_history_of_a_shallow_checkout_ends_where_it_ends_there() {
    let origin = Stage::new();
    origin.fixture.commit("third");
    let clone = Fixture::unborn();
    let url = format!("file://{}", origin.fixture.work.display());
    clone.git(&["pull", "-q", "--depth=2", &url, "main"]);
    let mut control = clone.control();
    drop(control.import(&clone.open(), Some(&clone.head())).unwrap());
    let mut stage = Stage::with(clone, control);
    drop(stage.make());
    assert_eq!(stage.run(&["log", "--format=%s"]), "third\nsecond\n");
    stage.work("x", "x\n");
    stage.run(&["gc", "-q"]);
    stage.run(&["rebase", "-q", "--force-rebase", "HEAD~1"]);
    assert!(stage.harvest().outcome.is_ok());
}

#[test]
fn what_git_was_told_not_to_look_at_stays_so() {
    let fixture = Fixture::new();
    fixture.write("dir/b", "b\n");
    fixture.write("out/x", "x\n");
    let tip = fixture.commit("out");
    let stage = Stage::over(fixture);
    let fixture = &stage.fixture;
    fixture.git(&["sparse-checkout", "set", "dir"]);
    fixture.git(&["update-index", "--assume-unchanged", "dir/b"]);
    assert!(!fixture.exists("out/x"));
    drop(stage.make_at(&tip));
    fixture.write("a", "changed\n");
    fixture.write("dir/b", "unseen\n");
    stage.run(&["commit", "-q", "-a", "-m", "all"]);
    assert_eq!(stage.run(&["show", "--name-status", "--format="]), "M\ta\n");
    assert_eq!(stage.run(&["sparse-checkout", "list"]), "dir\n");
}

#[test]
fn hooks_run_only_where_they_are_asked_for() {
    let stage = Stage::new();
    let fixture = &stage.fixture;
    let tip = fixture.head();
    let hook = |at: &Path, text: &str| {
        put(at, text.as_bytes());
        std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let hooks = fixture.work.join(".git/hooks");
    hook(&hooks.join("pre-commit"), "#!/bin/sh\nexit 1\n");
    hook(&hooks.join("post-commit"), "#!/bin/sh\ntouch ran.log\n");
    let commit = |stage: &Stage| {
        stage.agent(&["commit", "-q", "--allow-empty", "-m", "x"]).output().unwrap().status.success()
    };
    stage.make().git.discard().unwrap();
    drop(stage.make());
    assert!(commit(&stage));
    stage.found().discard().unwrap();
    drop(stage.make_by(&tip, |spec| spec.commit_hooks = true));
    assert!(!commit(&stage) && !fixture.exists("ran.log"));
    // One in the work tree needs what lies beside it.
    stage.found().discard().unwrap();
    fixture.git(&["config", "core.hooksPath", ".husky/_"]);
    hook(&fixture.work.join(".husky/_/pre-commit"), "#!/bin/sh\n. \"$(dirname \"$0\")/h\"\n");
    hook(&fixture.work.join(".husky/_/h"), "touch husky.log\n");
    drop(stage.make_by(&tip, |spec| spec.commit_hooks = true));
    assert!(commit(&stage) && fixture.exists("husky.log"));
}

#[test]
fn what_is_to_be_mounted_is_listed_and_has_its_place() {
    let origin = Fixture::new();
    let mut stage = Stage::new();
    let fixture = &stage.fixture;
    let borrowed = Fixture::new();
    let store = borrowed.work.join(".git/objects");
    put(&fixture.work.join(".git/objects/info/alternates"), format!("{}\n", store.display()).as_bytes());
    fixture.git(&["submodule", "--quiet", "add", origin.work.to_str().unwrap(), "sub"]);
    let config = fixture.work.join(".git/modules/sub/config");
    git_in(&fixture.work.join("sub"), fixture.dir.path(), &["config", "http.extraHeader", "s3cret"]);
    fixture.commit("sub");
    put(&fixture.work.join(".git/lfs/objects/x"), b"");
    std::fs::create_dir(fixture.work.join("inner")).unwrap();
    git_in(&fixture.work.join("inner"), fixture.dir.path(), &["init", "-q"]);
    drop(stage.control.import(&stage.peer(), None).unwrap());
    let made = stage.make();
    let dot_git = stage.fixture.work.join(".git");
    let at = |inside: &Path| made.mounts.iter().find(|mount| mount.inside == inside);
    let run = Path::new("/run/peers");
    let git = at(&dot_git).unwrap();
    assert_eq!((git.outside.clone(), git.writable), (stage.git_dir(), true));
    assert!(made.mounts.iter().filter(|mount| mount.writable).count() == 1);
    assert_eq!(at(&run.join("objects")).unwrap().outside, dot_git.join("objects"));
    assert_eq!(at(&run.join("objects.1")).unwrap().outside, store);
    assert_eq!(std::fs::read(&at(&run.join("objects/info/alternates")).unwrap().outside).unwrap(), b"");
    assert_eq!(at(&run.join("lfs")).unwrap().outside, dot_git.join("lfs"));
    assert_eq!(
        std::fs::read_to_string(stage.git_dir().join("objects/info/alternates")).unwrap(),
        "/run/peers/objects\n/run/peers/objects.1\n"
    );
    let module = dot_git.join("modules/sub");
    assert_eq!(at(&module).unwrap().outside, module);
    assert!(stage.git_dir().join("modules/sub").is_dir(), "a place to mount it");
    let filtered = std::fs::read_to_string(&at(&config).unwrap().outside).unwrap();
    assert!(filtered.contains("worktree") && !filtered.contains("s3cret"), "{filtered}");
    let inner = stage.fixture.work.join("inner/.git");
    assert_eq!(at(&inner).unwrap().outside, inner);
}

#[test]
fn in_a_linked_worktree_a_file_names_the_mounted_directory() {
    let stage = Stage::new();
    let repo = stage.peer();
    let tip = stage.fixture.head();
    let dir = stage.fixture.path("linked");
    let linked = repo.add_linked(&stage.control, &dir, "l", "peers/l", &tip, &stage.by).unwrap();
    let spec = crate::TurnSpec { branch: Some("peers/l"), ..stage.spec(&tip) };
    let made = TurnGit::make(&stage.scratch, &stage.control, &linked, &spec).unwrap();
    let [git, file, ..] = made.mounts.as_slice() else { panic!() };
    assert_eq!(git.inside, Path::new("/run/peers/git"));
    assert_eq!(file.inside, dir.join(".git"));
    assert_eq!(std::fs::read_to_string(&file.outside).unwrap(), "gitdir: /run/peers/git\n");
    assert!(matches!(PeerRepo::open(&dir), Ok(found) if found.work_dir() == linked.work_dir()));
}

#[test]
fn a_turn_waits_for_the_one_before_and_what_a_crash_left_half_made_goes() {
    let stage = Stage::new();
    drop(stage.make());
    let tip = stage.fixture.head();
    let spec = stage.spec(&tip);
    let again = TurnGit::make(&stage.scratch, &stage.control, &stage.peer(), &spec);
    assert!(matches!(again, Err(GitError::Exists { .. })));
    // The record is written last.
    std::fs::remove_file(stage.fixture.path("scratch/turn-git.json")).unwrap();
    put(&stage.git_dir().join("hooks/pre-commit"), b"#!/bin/sh\nexit 1\n");
    assert!(TurnGit::find(&stage.scratch).unwrap().is_none());
    drop(TurnGit::make(&stage.scratch, &stage.control, &stage.peer(), &spec).unwrap());
    assert!(!stage.git_dir().join("hooks").exists());
    assert!(
        command(&stage.fixture.work, stage.fixture.dir.path(), &["status"])
            .output()
            .unwrap()
            .status
            .success()
    );
}
