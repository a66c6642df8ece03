//! Tests of `peers deinit` on real repositories.

use std::os::unix::fs::symlink;

use peers_model::exit;

use super::*;
use crate::world::{World, git};

#[test]
fn deinit_takes_back_what_init_did_and_leaves_the_store() {
    let world = World::new();
    let repo = world.repo("repo");
    let before = git(&repo, &["rev-parse", "HEAD^{tree}"]);
    let report = world.init(&repo);
    let undone = world.deinit(&repo, false).unwrap();
    assert!(!repo.join(".peers").exists() && !repo.join(".gitignore").exists());
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    assert_eq!(git(&repo, &["rev-parse", "HEAD^{tree}"]), before);
    assert!(report.store.join("accepted.json").exists());
    assert!(undone.notes.iter().map(ToString::to_string).any(|note| note.contains("--purge")));
    let error = world.deinit(&repo, false).unwrap_err();
    assert_eq!(error.exit(), exit::NEGATIVE);
    world.init(&repo);
    assert!(world.agrees(&repo));
}

#[test]
fn deinit_removes_its_line_alone() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::write(repo.join(".gitignore"), "target\r\n").unwrap();
    git(&repo, &["add", ".gitignore"]);
    git(&repo, &["commit", "-q", "-m", "rules"]);
    world.init(&repo);
    assert_eq!(std::fs::read(repo.join(".gitignore")).unwrap(), b"target\r\n.peers/\r\n");
    world.deinit(&repo, false).unwrap();
    assert_eq!(std::fs::read(repo.join(".gitignore")).unwrap(), b"target\r\n");
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
}

#[test]
fn purge_removes_everything_of_ours_and_nothing_else() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.init(&repo);
    world.force(&repo);
    let place = world.place(&repo);
    std::fs::create_dir_all(place.cache_dir().join("trees/1")).unwrap();
    std::fs::create_dir_all(place.cli_data_dir().join("claude")).unwrap();
    let neighbour = world.dir("state/peers/0123456789abcdef");
    let dry =
        deinit(&DeinitOptions { target: repo.clone(), purge: true, dry_run: true }, &world.env).unwrap();
    assert!(report.store.exists() && repo.join(".peers").exists());
    let real = world.deinit(&repo, true).unwrap();
    assert_eq!(dry.changes, real.changes);
    assert!(!report.store.exists() && !place.cache_dir().exists() && !place.cli_data_dir().exists());
    assert!(neighbour.exists());
    let left: Vec<_> = std::fs::read_dir(&repo).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().starts_with(".peers")), "{left:?}");
}

#[test]
fn deinit_works_where_the_repository_was_tampered_with() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    std::fs::rename(repo.join(".git"), world.root.join("git")).unwrap();
    symlink(world.root.join("git"), repo.join(".git")).unwrap();
    let report = world.deinit(&repo, false).unwrap();
    assert!(!repo.join(".peers").exists());
    assert!(
        report.notes.iter().map(ToString::to_string).any(|note| note.contains("redirected")),
        "{:?}",
        report.notes
    );
}

#[test]
fn deinit_refuses_a_symlink() {
    let world = World::new();
    let repo = world.repo("repo");
    let victim = world.dir("victim");
    std::fs::write(victim.join("keep"), "").unwrap();
    symlink(&victim, repo.join(".peers")).unwrap();
    assert_eq!(world.deinit(&repo, true).unwrap_err().exit(), exit::REFUSED);
    assert!(victim.join("keep").exists());
}

#[test]
fn an_ignore_file_that_cannot_be_read_stays_and_is_told() {
    for kind in ["hard link", "directory", "fifo", "huge"] {
        let world = World::new();
        let repo = world.repo("repo");
        world.init(&repo);
        let ignore = repo.join(".gitignore");
        match kind {
            "hard link" => std::fs::hard_link(&ignore, world.root.join("other")).unwrap(),
            "huge" => {
                let file = std::fs::OpenOptions::new().write(true).open(&ignore).unwrap();
                file.set_len(2 * 1024 * 1024).unwrap();
            }
            _ => {
                std::fs::remove_file(&ignore).unwrap();
                let made = match kind {
                    "fifo" => std::process::Command::new("mkfifo").arg(&ignore).status().unwrap().success(),
                    _ => std::fs::create_dir(&ignore).is_ok(),
                };
                assert!(made);
            }
        }
        let report = world.deinit(&repo, true).unwrap();
        assert!(
            report.notes.iter().map(ToString::to_string).any(|n| n.contains(".gitignore stays as it is")),
            "{:?}",
            report.notes
        );
        assert!(!repo.join(".peers").exists() && !report.store.exists(), "{kind}");
        assert!(ignore.symlink_metadata().is_ok(), "{kind}");
    }
}
