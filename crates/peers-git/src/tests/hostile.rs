//! A repository full of traps, and everything that this crate can do, done to it.

use std::path::PathBuf;

use super::{Fixture, command, put, substrate};
use crate::{
    ControlDir, GitError, GuardSnapshot, MergeStyle, PeerRepo, Route, SyntheticGit, operator_excludes,
    remove_checkout, scan,
};

const HOOKS: &str = "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg \
     commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update \
     proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc \
     post-rewrite sendemail-validate fsmonitor-watchman post-index-change";

/// Traps in configuration, hooks and attributes; each one writes the canary.
pub(super) struct Hostile {
    pub(super) fixture: Fixture,
    pub(super) canary: PathBuf,
}

impl Hostile {
    pub(super) fn new() -> Self {
        let fixture = Fixture::new();
        fixture.write("b", "b\n");
        fixture.write("sub/c", "c\n");
        fixture.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
        fixture.commit("second");
        let (canary, script) = (fixture.path("canary"), fixture.path("evil.sh"));
        put(&script, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", canary.display()).as_bytes());
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let evil = script.to_str().unwrap();
        for hook in HOOKS.split_whitespace() {
            let place = fixture.work.join(".git/hooks").join(hook);
            put(&place, std::fs::read(&script).unwrap().as_slice());
            std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let mut config = vec![fixture.read(".git/config")];
        config.push(format!(
            "[core]\nfsmonitor = {evil}\npager = {evil}\neditor = {evil}\nsshCommand = {evil}\naskPass = {evil}\n\
             gitProxy = {evil}\nalternateRefsCommand = {evil}\n\
             [filter \"evil\"]\nclean = {evil}\nsmudge = {evil}\nprocess = {evil}\nrequired = true\n\
             [diff \"evil\"]\ncommand = {evil}\ntextconv = {evil}\n[diff]\nexternal = {evil}\n\
             [merge \"evil\"]\ndriver = {evil}\n\
             [gpg]\nprogram = {evil}\n[commit]\ngpgSign = true\n[tag]\ngpgSign = true\n\
             [credential]\nhelper = !{evil}\n[alias]\nstatus = !{evil}\n\
             [uploadpack]\npackObjectsHook = {evil}\n\
             [remote \"origin\"]\nurl = ext::{evil}\nuploadpack = {evil}\npromisor = true\n\
             [protocol]\nallow = always\n[include]\npath = more.conf\n\
             [color]\nui = always\n[log]\nmailmap = true\n[diff]\nrenames = copies\n[core]\ncommentChar = P\n\
             [trailer \"x\"]\ncommand = {evil}\n[status]\nshowUntrackedFiles = no\n"
        ));
        fixture.write(".git/config", config.concat());
        fixture.write(
            ".git/more.conf",
            format!("[core]\nhooksPath = {}\n", fixture.work.join(".git/hooks").display()),
        );
        fixture.write(".git/info/attributes", "* filter=evil diff=evil merge=evil\n");
        Self { fixture, canary }
    }

    pub(super) fn assert_quiet(&self, what: &str) {
        let text = std::fs::read_to_string(&self.canary).unwrap_or_default();
        assert!(text.is_empty(), "{what} ran: {text}");
    }

    /// A commit made without springing the traps.
    pub(super) fn commit(&self, file: &str, text: &str) {
        let (config, hooks) = (self.fixture.read(".git/config"), self.fixture.work.join(".git/hooks"));
        let attributes = self.fixture.read(".git/info/attributes");
        self.fixture.write(".git/config", "[core]\nrepositoryformatversion = 0\n");
        self.fixture.remove(".git/info/attributes");
        std::fs::rename(&hooks, self.fixture.path("hooks")).unwrap();
        self.fixture.write(file, text);
        self.fixture.commit(file);
        std::fs::rename(self.fixture.path("hooks"), &hooks).unwrap();
        self.fixture.write(".git/config", config);
        self.fixture.write(".git/info/attributes", attributes);
        self.assert_quiet("the fixture");
    }
}

#[test]
fn the_traps_spring_for_plain_git() {
    let hostile = Hostile::new();
    hostile.fixture.write("b", "changed\n");
    drop(command(&hostile.fixture.work, hostile.fixture.dir.path(), &["add", "-A"]).output().unwrap());
    let text = std::fs::read_to_string(&hostile.canary).unwrap();
    assert!(text.contains("evil.sh"), "{text}");
}

#[test]
fn nothing_that_we_do_runs_anything_of_theirs() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let first = fixture.rev("HEAD~1");
    let base = fixture.head();
    let by = substrate();
    drop(operator_excludes());

    let repo = PeerRepo::open(&fixture.work).unwrap();
    assert!(repo.preflight().is_empty());
    let guard = GuardSnapshot::take(&repo, &["refs/tags/*".to_owned()]).unwrap();
    assert!(!scan(&repo).unwrap().is_empty());
    hostile.assert_quiet("opening and scanning");

    let mut control = ControlDir::open_or_create(&fixture.path("control.git"), super::program()).unwrap();
    drop(control.import(&repo, Some(&base)).unwrap());
    control.deepen(&repo).unwrap();
    hostile.commit("small", "range\n");
    assert!(matches!(control.import(&repo, None).unwrap().route, Route::Copied(_)));
    for n in 0..400 {
        fixture.write(&format!("many/{n}"), n.to_string());
    }
    hostile.commit("large", "range\n");
    assert_eq!(control.import(&repo, None).unwrap().route, Route::Fetched);
    hostile.assert_quiet("importing");

    let head = fixture.head();
    let facts = control.facts();
    assert_eq!(facts.walk(Some(&base), &head, 10).unwrap().len(), 2);
    assert_eq!(control.new_commits(Some(&base), &head, control.generation()).unwrap().len(), 2);
    let (old, new) = (facts.tree_of(&base).unwrap(), facts.tree_of(&head).unwrap());
    assert_eq!(facts.diff_trees(&old, &new).unwrap().len(), 402);
    assert!(facts.diff_text(&old, &new, |_| true, 1 << 20).unwrap().text.contains("+range"));
    assert!(facts.diffstat(&old, &new).unwrap().files == 402);
    assert!(facts.read_blob(&head, "small", 100).unwrap().is_some());
    assert!(!facts.list_tree(&head).unwrap().is_empty());
    assert!(!facts.scope_hash(&head, |_| true).unwrap().is_empty());
    assert!(repo.facts().commit(&head).is_ok() && repo.facts().walk(None, &head, 10).is_ok());
    hostile.assert_quiet("reading");

    assert!(!control.tree_state(&fixture.work, &head).unwrap().dirty);
    fixture.write("b", "dirty\n");
    fixture.write("untracked", "u\n");
    assert!(control.tree_state(&fixture.work, &head).unwrap().dirty);
    assert_eq!(control.dirty_files(&fixture.work, &head, 10).unwrap().len(), 2);
    let kept = control.salvage("run/1-x", &head, &fixture.work, &by).unwrap();
    assert_eq!(control.list_salvage().unwrap().len(), 1);
    control.restore_salvage(&kept.name, &repo, &by).unwrap();
    hostile.assert_quiet("looking at the work tree");

    let revert = control.revert_commit(&head, &base, "revert\n", &by).unwrap();
    repo.publish(&control, &revert).unwrap();
    repo.move_head(&head, &revert, &by, "revert").unwrap();
    drop(repo.checkout_changed(&control, &new, &old).unwrap());
    drop(repo.reset_to(&control, Some("main"), &revert, &head, &by).unwrap());
    repo.create_branch("more", &head, &by).unwrap();
    repo.update_branch("more", Some(&head), &base, &by, "back").unwrap();
    repo.set_head_branch("more", &by).unwrap();
    repo.set_head_branch("main", &by).unwrap();
    repo.tag_if_absent("peers-baseline", &base, &by).unwrap();
    repo.write_notes("refs/notes/peers-attest", &[(head.clone(), "x".to_owned())], &by).unwrap();
    fixture.write(".gitignore", ".peers/\n");
    let committed = repo.commit_paths(&[".gitignore"], "peers init\n", &by).unwrap();
    drop(control.import(&repo, None).unwrap());
    drop(control.merge_trees(&first, &committed, MergeStyle::Squash, "land\n", &by).unwrap());
    assert!(!repo.remove_index_lock().unwrap());
    hostile.assert_quiet("writing");

    let tree = fixture.path("tree");
    let lent = control.lend(&repo).unwrap();
    control.checkout_pristine(&head, &tree, &lent).unwrap();
    drop(
        control
            .reset_checkout(&committed, &tree, &["target"], &SyntheticGit::over_control(&control).unwrap())
            .unwrap(),
    );
    remove_checkout(&tree).unwrap();
    let linked = repo.add_linked(&control, &fixture.path("linked"), "l", "peers/l", &head, &by).unwrap();
    assert!(!control.tree_state(linked.work_dir(), &head).unwrap().dirty);
    hostile.assert_quiet("checking out");

    let changes = guard.compare_files().unwrap();
    assert!(changes.is_empty(), "{changes:?}");
    let changes = guard.compare_refs(&repo).unwrap();
    assert_eq!(changes.len(), 1);
    assert!(guard.restore_refs(&repo, &changes, &by).unwrap().is_empty());
    hostile.assert_quiet("guarding");
}

#[test]
fn a_giant_blob_is_not_loaded() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    // A hundred mebibytes of zeros in a few kilobytes of object.
    std::fs::File::create(fixture.work.join("zeros")).unwrap().set_len(100 << 20).unwrap();
    fixture.git(&["-c", "core.bigFileThreshold=1m", "-c", "core.compression=1", "add", "zeros"]);
    let head = fixture.commit("giant");
    // It goes by `git fetch`, not through our memory.
    assert_eq!(control.import(&fixture.open(), None).unwrap().route, Route::Fetched);
    let facts = control.facts();
    assert!(matches!(facts.read_blob(&head, "zeros", 1 << 20), Err(crate::GitError::TooLarge { .. })));
    let parent = facts.tree_of(&fixture.rev("HEAD~1")).unwrap();
    let changes = facts.diff_trees(&parent, &facts.tree_of(&head).unwrap()).unwrap();
    assert!(changes[0].binary);
}

#[test]
fn a_blob_that_says_that_it_has_a_gibibyte_is_told_by_its_size_alone() {
    let fixture = Fixture::new();
    let first = fixture.head();
    // What an object begins with, uncompressed in its stream, and then what is none: nobody can read on.
    let (id, mut begin) = ("12".repeat(20), format!("blob {}\0", 1_u64 << 30).into_bytes());
    begin.resize(200, 0);
    let length = u16::try_from(begin.len()).unwrap();
    let stream =
        [&[0x78, 1, 0][..], &length.to_le_bytes(), &(!length).to_le_bytes(), &begin, &[0xff]].concat();
    put(&fixture.work.join(".git/objects").join(&id[..2]).join(&id[2..]), &stream);
    let tree = fixture.object("tree", [&b"100644 zeros\0"[..], &[0x12; 20]].concat());
    let commit = fixture.git(&["commit-tree", "-p", first.as_str(), "-m", "giant", tree.trim()]);
    let giant = peers_model::CommitId::new(commit.trim()).unwrap();
    let repo = fixture.open();
    let facts = repo.facts();
    let (old, new) = (facts.tree_of(&first).unwrap(), facts.tree_of(&giant).unwrap());
    let too_large = |error: GitError| assert!(matches!(error, GitError::TooLarge { .. }), "{error:?}");
    too_large(facts.read_blob(&giant, "zeros", 1 << 20).unwrap_err());
    too_large(facts.read_blob_of(&new, "zeros", 1 << 20).unwrap_err());
    too_large(facts.read_object(&id, 1 << 20).unwrap_err());
    too_large(facts.blame(&giant, "zeros", None).unwrap_err());
    assert_eq!(facts.object_size(&id).unwrap(), 1 << 30);
    assert!(facts.diff_trees(&old, &new).unwrap().iter().any(|change| change.binary));
    assert!(facts.diff_text(&old, &new, |_| true, 1 << 20).unwrap().text.contains("Binary files differ"));
    assert!(facts.new_lines(Some(&old), &new, |_| true).unwrap().iter().all(|(_, lines)| lines.is_empty()));
    let control = fixture.imported();
    assert_eq!(
        control.missing_object(&repo, &giant).unwrap(),
        None,
        "the size of a blob is all that is looked at"
    );
}
