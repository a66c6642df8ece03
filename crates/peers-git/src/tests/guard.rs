//! Guarding and scanning.

use super::{Fixture, fifo, link, put, substrate};
use crate::{GuardHow, GuardItem, GuardSnapshot, WarningKind, scan};

fn patterns() -> Vec<String> {
    ["refs/tags/peers-baseline", "refs/notes/peers-*", "refs/peers/*"].map(str::to_owned).to_vec()
}

#[test]
fn every_guarded_file_is_compared_and_put_back() {
    let fixture = Fixture::new();
    fixture.write(".git/hooks/pre-commit", "#!/bin/sh\n");
    fixture.write(".git/hooks/update.sample", "s");
    let config = fixture.read(".git/config");
    let before = GuardSnapshot::take(&fixture.open(), &patterns()).unwrap();
    assert!(before.compare_files().unwrap().is_empty());
    fixture.git(&["config", "core.fsmonitor", "evil"]);
    fixture.write(".git/config.worktree", "x");
    fixture.write(".git/hooks/pre-commit", "#!/bin/sh\nevil\n");
    fixture.write(".git/hooks/post-checkout", "evil");
    fixture.write(".git/hooks/update.sample", "harmless");
    fixture.write(".git/info/attributes", "* filter=evil\n");
    fixture.write(".git/info/grafts", "x\n");
    fixture.write(".git/objects/info/alternates", "/tmp\n");
    fixture.write(".git/commondir", "/tmp\n");
    fixture.write(".gitmodules", "x");
    // It is stored and read back, as over a crash.
    let text = serde_json::to_string(&before).unwrap();
    let before: GuardSnapshot = serde_json::from_str(&text).unwrap();
    let changes = before.compare_files().unwrap();
    let names: Vec<_> = changes.iter().map(|change| (change.item.clone(), change.how)).collect();
    let file = |name: &str, how| (GuardItem::File(name.to_owned()), how);
    assert_eq!(
        names,
        [
            file("commondir", GuardHow::Added),
            file("config", GuardHow::Changed),
            file("config.worktree", GuardHow::Added),
            file("hooks/post-checkout", GuardHow::Added),
            file("hooks/pre-commit", GuardHow::Changed),
            file("info/attributes", GuardHow::Added),
            file("info/grafts", GuardHow::Added),
            file("objects/info/alternates", GuardHow::Added),
            (GuardItem::Modules, GuardHow::Added),
        ]
    );
    let left = before.restore_files(&changes).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].item, GuardItem::Modules);
    assert_eq!(fixture.read(".git/config"), config);
    assert_eq!(fixture.read(".git/hooks/pre-commit"), "#!/bin/sh\n");
    assert!(!fixture.exists(".git/hooks/post-checkout") && !fixture.exists(".git/commondir"));
    fixture.remove(".gitmodules");
    assert!(before.compare_files().unwrap().is_empty());
}

#[test]
fn special_files_and_links_in_guarded_places_are_seen_and_removed() {
    let fixture = Fixture::new();
    let before = GuardSnapshot::take(&fixture.open(), &patterns()).unwrap();
    let config = fixture.read(".git/config");
    put(&fixture.path("outside/pre-commit"), b"evil");
    fixture.remove(".git/config");
    fifo(&fixture.work.join(".git/config"));
    drop(std::fs::remove_dir_all(fixture.work.join(".git/hooks")));
    link(fixture.path("outside").to_str().unwrap(), &fixture.work.join(".git/hooks"));
    let changes = before.compare_files().unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(before.restore_files(&changes).unwrap().is_empty());
    assert_eq!(fixture.read(".git/config"), config);
    assert!(fixture.path("outside/pre-commit").exists());
    assert!(before.compare_files().unwrap().is_empty());
    assert!(crate::PeerRepo::open(&fixture.work).is_ok());
}

#[test]
fn a_removed_hook_directory_is_filled_again() {
    let fixture = Fixture::new();
    fixture.write(".git/hooks/pre-push", "#!/bin/sh\n");
    let before = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    std::fs::remove_dir_all(fixture.work.join(".git/hooks")).unwrap();
    fixture.write(".git/hooks", "now a file");
    let changes = before.compare_files().unwrap();
    assert!(before.restore_files(&changes).unwrap().is_empty());
    assert_eq!(fixture.read(".git/hooks/pre-push"), "#!/bin/sh\n");
    assert!(before.compare_files().unwrap().is_empty());
}

#[test]
fn a_git_directory_that_was_swapped_is_noticed() {
    let fixture = Fixture::new();
    let before = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    std::fs::rename(fixture.work.join(".git"), fixture.work.join(".git2")).unwrap();
    fixture.git(&["init", "-q"]);
    let changes = before.compare_files().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!((&changes[0].item, changes[0].restorable), (&GuardItem::GitDir, false));
    assert_eq!(before.restore_files(&changes).unwrap(), changes);
}

#[test]
fn guarded_references_are_put_back_and_replacements_dropped() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let second = fixture.commit("second");
    fixture.git(&["tag", "peers-baseline", first.as_str()]);
    fixture.git(&["update-ref", "refs/peers/salvage/x", first.as_str()]);
    fixture.git(&["tag", "other"]);
    let before = GuardSnapshot::take(&fixture.open(), &patterns()).unwrap();
    fixture.git(&["tag", "-f", "peers-baseline", second.as_str()]);
    fixture.git(&["update-ref", "-d", "refs/peers/salvage/x"]);
    fixture.git(&["notes", "--ref=peers-attest", "add", "-m", "forged"]);
    fixture.git(&["replace", second.as_str(), first.as_str()]);
    fixture.git(&["tag", "-f", "other", first.as_str()]);
    let repo = fixture.open();
    let changes = before.compare_refs(&repo).unwrap();
    assert_eq!(changes.len(), 4, "{changes:?}");
    assert!(before.restore_refs(&repo, &changes, &substrate()).unwrap().is_empty());
    assert!(before.compare_refs(&repo).unwrap().is_empty());
    assert_eq!(fixture.rev("refs/tags/peers-baseline"), first);
    assert_eq!(fixture.git(&["for-each-ref", "refs/notes", "refs/replace"]), "");
    assert_eq!(fixture.rev("refs/tags/other"), first, "not ours to guard");
}

#[test]
fn a_scan_names_what_would_run_redirect_or_hide() {
    let fixture = Fixture::new();
    fixture.commit("second");
    assert!(scan(&fixture.open()).unwrap().is_empty());
    put(&fixture.path("extra"), b"[alias]\n\ty = log\n");
    for (key, value) in [
        ("filter.x.smudge", "evil"),
        ("diff.y.textconv", "evil"),
        ("merge.z.driver", "evil"),
        ("core.fsmonitor", "evil"),
        ("core.hooksPath", "/tmp"),
        ("core.sshCommand", "evil"),
        ("alias.st", "!evil"),
        ("alias.co", "checkout"),
        ("include.path", fixture.path("extra").to_str().unwrap()),
        ("url.x.insteadOf", "y"),
        ("status.showUntrackedFiles", "no"),
        ("remote.origin.promisor", "true"),
    ] {
        fixture.git(&["config", key, value]);
    }
    fixture.write(".git/hooks/pre-commit", "x");
    fixture.write(".git/info/attributes", "* filter=x\n");
    fixture.git(&["replace", "--graft", "HEAD"]);
    fixture.git(&["update-index", "--assume-unchanged", "a"]);
    let found = scan(&fixture.open()).unwrap();
    let count = |kind| found.iter().filter(|warning| warning.kind == kind).count();
    assert_eq!(count(WarningKind::Driver), 3);
    assert_eq!(count(WarningKind::Program), 3);
    assert_eq!(count(WarningKind::ShellAlias), 1);
    assert_eq!(count(WarningKind::Include), 1);
    assert_eq!(count(WarningKind::Redirect), 2);
    assert_eq!(count(WarningKind::Hides), 1);
    assert_eq!(count(WarningKind::Hook), 1);
    assert_eq!(count(WarningKind::File), 1);
    assert_eq!(count(WarningKind::Replace), 1);
    assert_eq!(count(WarningKind::IndexFlags), 1);
}
