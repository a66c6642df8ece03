//! Tests of `peers init` on real repositories.

mod gates;
mod modes;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use peers_model::exit;
use peers_store::load;

use super::*;
use crate::world::{World, git, mode, snapshot};
use crate::{Change, Field};

fn has(report: &InitReport, action: Action, what: &str) -> bool {
    report.changes.iter().any(|change| change.action == action && change.what == what)
}

#[test]
fn a_fresh_repository_is_set_up_accepted_tagged_and_clean() {
    let world = World::new();
    let repo = world.repo("repo");
    let head = git(&repo, &["rev-parse", "HEAD"]);
    let report = world.init(&repo);
    assert_eq!(report.outcome, Outcome::Fresh);
    assert_eq!(report.peers_dir, repo.join(".peers"));
    assert!(report.notes.is_empty(), "{:?}", report.notes);
    for (path, expected) in [("", 0o700), ("log", 0o700), ("inbox", 0o700)] {
        assert_eq!(mode(repo.join(".peers").join(path)), expected, "{path}");
    }
    for path in ["config.yaml", "goals.yaml", "log/runs.jsonl"] {
        assert_eq!(mode(repo.join(".peers").join(path)), 0o600, "{path}");
    }
    assert_eq!(std::fs::read(repo.join(".peers/log/runs.jsonl")).unwrap(), b"");
    assert_eq!(mode(report.store.clone()), 0o700);
    assert_eq!(git(&repo, &["rev-parse", "peers-baseline"]), head);
    assert_eq!(world.base(&repo).unwrap(), head);
    assert_eq!(report.base.unwrap().as_str(), head);
    let accepted = world.accepted(&repo).unwrap();
    assert_eq!((accepted.by.as_str(), accepted.note.as_deref()), ("op", Some("peers init")));
    assert!(world.agrees(&repo));
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    let message = git(&repo, &["log", "-1", "--format=%an <%ae> %cn%n%B"]);
    assert_eq!(
        message,
        "peers-init <peers-init@local> peers-init\npeers init: ignore .peers/\n\nPeer: peers-init"
    );
    assert_eq!(report.commit.unwrap().as_str(), git(&repo, &["rev-parse", "HEAD"]));
    assert_eq!(git(&repo, &["show", "--name-only", "--format="]), ".gitignore");
}

#[test]
fn what_is_laid_down_can_be_loaded() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let read = |name: &str| std::fs::read_to_string(repo.join(".peers").join(name)).unwrap();
    let config = load::load_config(&read("config.yaml")).unwrap();
    load::load_goals(&read("goals.yaml"), config.peers.len(), &["self-review", "bug-ledger"]).unwrap();
}

#[test]
fn the_patterns_shown_in_the_template_are_the_built_in_ones() {
    use peers_tools::patterns::{DEFAULT_ERROR_PATTERNS, DEFAULT_HALT_PATTERNS};
    let shown: Vec<_> = peers_modes::CONFIG
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#   - '")?.strip_suffix('\''))
        .collect();
    let built_in: Vec<_> = DEFAULT_ERROR_PATTERNS.into_iter().chain(DEFAULT_HALT_PATTERNS).collect();
    assert_eq!(shown, built_in);
}

#[test]
fn a_second_init_is_a_refusal_that_changes_nothing() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let error = world.refused(&repo, |_| {});
    assert_eq!(error.exit(), exit::CONFLICT);
    assert!(error.hint().unwrap().to_string().contains("--upgrade"));
}

#[test]
fn a_dry_run_says_what_it_would_do_and_does_nothing() {
    let world = World::new();
    let repo = world.repo("repo");
    let stamp = regex::Regex::new(r"bak-[0-9]{8}T[0-9]{6}Z").unwrap();
    for existing in [Existing::Refuse, Existing::Force, Existing::Upgrade] {
        let before = snapshot(&world.root);
        let mut dry = world
            .try_init(&repo, |o| {
                o.existing = existing;
                o.dry_run = true;
                o.driver = Some(Driver::Hooks);
            })
            .unwrap();
        assert_eq!(snapshot(&world.root), before, "{existing:?}");
        assert!(dry.dry_run);
        // The real thing reports the same.
        let real = world
            .try_init(&repo, |o| {
                o.existing = existing;
                o.driver = Some(Driver::Hooks);
            })
            .unwrap();
        dry.dry_run = false;
        dry.commit.clone_from(&real.commit);
        let unstamped = |report: &InitReport| stamp.replace_all(&format!("{report:#?}"), "bak").into_owned();
        assert_eq!(unstamped(&dry), unstamped(&real), "{existing:?}");
        if existing == Existing::Refuse {
            world.deinit(&repo, true).unwrap();
            git(&repo, &["tag", "-d", "peers-baseline"]);
        }
    }
}

#[test]
fn force_keeps_a_copy_of_everything_and_the_anchor() {
    let world = World::new();
    let repo = world.repo("repo");
    let first = world.init(&repo);
    let base = world.base(&repo);
    let mark = "# mine\n";
    std::fs::write(repo.join(".peers/goals.yaml"), mark).unwrap();
    std::fs::create_dir_all(first.store.join("journal")).unwrap();
    std::fs::write(first.store.join("journal/000001.jsonl"), "line\n").unwrap();
    std::fs::write(first.store.join("snapshot.json"), "{}").unwrap();
    std::fs::create_dir_all(first.store.join("git/control.git")).unwrap();
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "work"]);
    let report = world.force(&repo);
    assert_eq!(report.outcome, Outcome::Rebuilt);
    let backup = std::fs::read_dir(&repo)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".peers.bak-"))
        .unwrap();
    assert_eq!(std::fs::read_to_string(backup.join("goals.yaml")).unwrap(), mark);
    assert_eq!(std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap(), peers_modes::GOALS);
    let stored =
        first.store.join(backup.file_name().unwrap().to_str().unwrap().trim_start_matches(".peers."));
    assert!(
        report
            .notes
            .iter()
            .map(ToString::to_string)
            .any(|note| note.ends_with(&format!("is kept in {}", stored.display()))),
        "{:?}",
        report.notes
    );
    assert!(stored.join("journal/000001.jsonl").exists() && stored.join("snapshot.json").exists());
    assert!(stored.join("accepted.json").exists() && stored.join("accepted/goals.yaml").exists());
    assert!(!first.store.join("journal").exists() && first.store.join("git/control.git").exists());
    assert!(world.agrees(&repo));
    assert_eq!(world.base(&repo), base, "the anchor stays");
    assert_eq!(git(&repo, &["rev-parse", "peers-baseline"]), base.unwrap());
    assert_eq!(git(&repo, &["status", "--porcelain"]), "", "the copy does not make the tree dirty");
}

#[test]
fn force_takes_a_new_anchor_only_when_the_old_commit_is_gone() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    std::fs::remove_dir_all(repo.join(".git")).unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "another history"]);
    let head = git(&repo, &["rev-parse", "HEAD"]);
    let upgraded = world.upgrade(&repo);
    assert_ne!(upgraded.base.unwrap().as_str(), head);
    // The ignore line is in the work tree, and not in this history.
    let head = git(&repo, &["rev-parse", "HEAD"]);
    assert_eq!(upgraded.commit.unwrap().as_str(), head);
    assert_eq!(world.force(&repo).base.unwrap().as_str(), head);
    assert_eq!(git(&repo, &["rev-parse", "peers-baseline"]), head);
}

#[test]
fn copies_of_set_ups_that_were_never_finished_are_removed_before_finished_ones() {
    let world = World::new();
    let repo = world.repo("repo");
    let store = world.init(&repo).store;
    std::fs::write(repo.join(".peers/goals.yaml"), "# mine\n").unwrap();
    world.force(&repo);
    for _ in 0..5 {
        // As on a full disk: nothing was accepted any more.
        std::fs::remove_file(store.join("accepted.json")).unwrap();
        world.force(&repo);
    }
    let copies = std::fs::read_dir(&repo).unwrap().map(|entry| entry.unwrap().path());
    let copies: Vec<_> = copies
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".peers.bak-"))
        .collect();
    let mine =
        |path: &std::path::PathBuf| std::fs::read_to_string(path.join("goals.yaml")).unwrap() == "# mine\n";
    assert_eq!((copies.len(), copies.iter().filter(|path| mine(path)).count()), (3, 1));
}

#[test]
fn only_three_copies_are_kept() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let other = repo.join(".peers.bak-mine");
    std::fs::create_dir(&other).unwrap();
    let copies = || {
        let mut names: Vec<_> = std::fs::read_dir(&repo)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".peers.bak-20"))
            .collect();
        names.sort();
        names
    };
    let mut seen = Vec::new();
    for _ in 0..5 {
        world.force(&repo);
        seen.extend(copies().last().cloned());
    }
    assert_eq!(copies(), seen[2..]);
    assert!(other.exists(), "a name that is not ours stays");
}

#[test]
fn force_without_a_store_or_with_a_foreign_one_starts_anew() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.init(&repo);
    std::fs::rename(&report.store, world.root.join("lost")).unwrap();
    world.force(&repo);
    assert!(world.agrees(&repo));
    // The same path, another directory.
    let aside = world.root.join("aside");
    std::fs::rename(&repo, &aside).unwrap();
    let repo = world.repo("repo");
    let error = world.refused(&repo, |_| {});
    assert_eq!(error.exit(), exit::REFUSED, "{error}");
    std::fs::create_dir_all(report.store.join("git/control.git")).unwrap();
    let forced = world.force(&repo);
    let moved =
        |item: &str| forced.changes.iter().any(|c| c.action == Action::Move && c.what.starts_with(item));
    assert!(moved("git ->") && moved("project.json ->") && moved("accepted.json ->"), "{forced:?}");
    assert!(!report.store.join("git").exists(), "commits known of the other repository prove nothing here");
    assert!(world.agrees(&repo));
    assert_eq!(world.base(&repo).unwrap(), git(&repo, &["rev-parse", "peers-baseline"]));
}

#[test]
fn upgrade_completes_and_keeps_what_is_the_operators() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.init(&repo);
    std::fs::write(repo.join(".peers/log/runs.jsonl"), "line\n").unwrap();
    std::fs::write(repo.join(".peers/state.json"), "{}").unwrap();
    std::fs::remove_dir(repo.join(".peers/inbox")).unwrap();
    let accepted = std::fs::read(report.store.join("accepted.json")).unwrap();
    let head = git(&repo, &["rev-parse", "HEAD"]);
    let again = world.upgrade(&repo);
    assert_eq!(again.outcome, Outcome::Upgraded);
    assert_eq!(again.changes, [Change { action: Action::Create, what: ".peers/inbox/".into() }]);
    assert_eq!(std::fs::read(repo.join(".peers/log/runs.jsonl")).unwrap(), b"line\n");
    assert!(repo.join(".peers/state.json").exists());
    assert_eq!(std::fs::read(report.store.join("accepted.json")).unwrap(), accepted);
    assert_eq!(git(&repo, &["rev-parse", "HEAD"]), head);
    assert_eq!(world.upgrade(&repo).changes, []);
}

#[test]
fn upgrade_never_accepts_what_somebody_changed() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.init(&repo);
    let accepted = std::fs::read(report.store.join("accepted.json")).unwrap();
    std::fs::write(repo.join(".peers/goals.yaml"), "goals: []\n").unwrap();
    let again = world.try_init(&repo, |o| {
        o.existing = Existing::Upgrade;
        o.driver = Some(Driver::Sessions);
    });
    let again = again.unwrap();
    assert!(
        again
            .notes
            .iter()
            .map(ToString::to_string)
            .any(|note| note.starts_with("not accepted: goals.yaml differs")),
        "{:?}",
        again.notes
    );
    assert_eq!(std::fs::read(report.store.join("accepted.json")).unwrap(), accepted);
    assert!(!world.agrees(&repo));
}

#[test]
fn upgrade_and_a_later_init_bring_back_what_was_accepted() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let goals = "goals: []\n";
    let config = std::fs::read(repo.join(".peers/config.yaml")).unwrap();
    let mut disk = world.place(&repo).open_store_disk().unwrap();
    accept::write(&mut disk, goals.as_bytes(), &config, peers_model::Timestamp::from_millis(0), "op", None)
        .unwrap();
    std::fs::remove_file(repo.join(".peers/goals.yaml")).unwrap();
    let report = world.upgrade(&repo);
    assert!(has(&report, Action::Restore, ".peers/goals.yaml"), "{report:?}");
    assert_eq!(std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap(), goals);
    std::fs::remove_dir_all(repo.join(".peers")).unwrap();
    let report = world.init(&repo);
    assert_eq!(report.outcome, Outcome::Fresh);
    assert_eq!(std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap(), goals);
    assert!(world.agrees(&repo));
    assert_eq!(world.accepted(&repo).unwrap().at.as_millis(), 0, "nothing new was accepted");
}

#[test]
fn a_damaged_acceptance_does_not_lock_the_operator_out() {
    let world = World::new();
    let repo = world.repo("repo");
    let store = world.init(&repo).store;
    std::fs::remove_dir_all(repo.join(".peers")).unwrap();
    std::fs::write(store.join("accepted/goals.yaml"), "other\n").unwrap();
    let report = world.init(&repo);
    assert!(
        report.notes.iter().map(ToString::to_string).any(|n| n.contains("accepted/goals.yaml")),
        "{:?}",
        report.notes
    );
    assert_eq!(std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap(), peers_modes::GOALS);
    assert!(world.agrees(&repo));
}

#[test]
fn upgrade_without_a_store_is_refused() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.init(&repo);
    std::fs::rename(&report.store, world.root.join("lost")).unwrap();
    let error = world.refused(&repo, |o| o.existing = Existing::Upgrade);
    assert_eq!(error.exit(), exit::REFUSED);
    assert!(error.hint().unwrap().to_string().contains("peers store attach"));
}

#[test]
fn goals_that_came_along_with_a_clone_stay_and_wait_to_be_accepted() {
    for existing in [Existing::Refuse, Existing::Upgrade] {
        let world = World::new();
        let repo = world.repo("repo");
        world.init(&repo);
        std::fs::write(repo.join(".peers/goals.yaml"), "goals: []\n").unwrap();
        git(&repo, &["add", "-f", ".peers/goals.yaml", ".peers/config.yaml"]);
        git(&repo, &["commit", "-q", "-m", "goals"]);
        git(&world.root, &["clone", "-q", "repo", "clone"]);
        let clone = world.root.join("clone");
        let hint = world.place(&clone).open_view_disk().err().unwrap().hint().unwrap().to_string();
        assert!(hint.starts_with("`peers init` makes one"), "{hint}");
        let dry = world.try_init(&clone, |o| (o.existing, o.dry_run) = (existing, true)).unwrap();
        assert_eq!(dry.outcome, Outcome::Fresh);

        let report = world.try_init(&clone, |o| o.existing = existing).unwrap();
        assert_eq!(report.outcome, Outcome::Fresh);
        assert_eq!(std::fs::read(clone.join(".peers/goals.yaml")).unwrap(), b"goals: []\n");
        assert_eq!(git(&clone, &["status", "--porcelain"]), "");
        assert!(world.accepted(&clone).is_none());
        let note = "not accepted: goals.yaml and config.yaml were there before";
        assert!(
            report.notes.iter().map(ToString::to_string).any(|n| n.starts_with(note)),
            "{:?}",
            report.notes
        );
        assert!(world.place(&clone).open_store_disk().is_ok());
        assert_eq!(world.refused(&clone, |_| {}).exit(), exit::CONFLICT, "it is set up now");
    }
}

#[test]
fn upgrade_adopts_an_ignored_directory_that_was_written_by_hand() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::write(repo.join(".gitignore"), ".peers/\n").unwrap();
    git(&repo, &["add", ".gitignore"]);
    git(&repo, &["commit", "-q", "-m", "ignore"]);
    // What gates of an earlier `peers verify` printed lies there, too.
    std::fs::create_dir_all(repo.join(".peers/log/gates")).unwrap();
    std::fs::write(repo.join(".peers/goals.yaml"), "goals: []\n").unwrap();
    let report = world.upgrade(&repo);
    assert_eq!(report.outcome, Outcome::Fresh);
    assert_eq!(std::fs::read(repo.join(".peers/goals.yaml")).unwrap(), b"goals: []\n");
    assert!(has(&report, Action::Create, ".peers/config.yaml"), "{report:?}");
    let note = "not accepted: goals.yaml was there before";
    assert!(report.notes.iter().map(ToString::to_string).any(|n| n.starts_with(note)), "{:?}", report.notes);
    assert!(world.accepted(&repo).is_none());
}

#[test]
fn one_file_of_a_clone_is_enough_and_settings_of_peers_need_a_new_one() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::create_dir(repo.join(".peers")).unwrap();
    std::fs::write(repo.join(".peers/config.yaml"), peers_modes::CONFIG).unwrap();
    let settings = || vec![PeerSetting { field: Field::Model, text: "claude=m".into() }];
    let error = world.refused(&repo, |o| o.settings = settings());
    assert_eq!(error.exit(), exit::USAGE, "{error}");
    std::fs::remove_file(repo.join(".peers/config.yaml")).unwrap();
    std::fs::write(repo.join(".peers/goals.yaml"), "goals: []\n").unwrap();
    let report = world.try_init(&repo, |o| o.settings = settings()).unwrap();
    assert!(has(&report, Action::Create, ".peers/config.yaml"), "{report:?}");
    assert!(std::fs::read_to_string(repo.join(".peers/config.yaml")).unwrap().contains("model: m"));
    assert!(world.accepted(&repo).is_none());
    let note = "not accepted: goals.yaml was there before";
    assert!(report.notes.iter().map(ToString::to_string).any(|n| n.starts_with(note)), "{:?}", report.notes);
}

#[test]
fn without_a_repository_nothing_is_set_up() {
    let world = World::new();
    let error = world.refused(&world.dir("plain"), |_| {});
    assert_eq!(error.exit(), exit::INVALID, "{error}");
    assert!(error.hint().unwrap().to_string().contains("git init"), "{:?}", error.hint());
}

#[test]
fn without_a_commit_it_works_and_says_what_comes_with_the_first_one() {
    let world = World::new();
    let dir = world.dir("unborn");
    git(&dir, &["init", "-q", "-b", "main"]);
    let report = world.init(&dir);
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    for says in ["the first `peers run` sets the tag peers-baseline", "make it part of the first commit"] {
        assert!(
            report.notes.iter().map(ToString::to_string).any(|note| note.contains(says)),
            "{:?}",
            report.notes
        );
    }
    assert_eq!(std::fs::read(dir.join(".gitignore")).unwrap(), b".peers/\n");
    assert_eq!(git(&dir, &["status", "--porcelain"]), "?? .gitignore");
    git(&dir, &["add", ".gitignore"]);
    git(&dir, &["commit", "-q", "-m", "first"]);
    let head = git(&dir, &["rev-parse", "HEAD"]);
    assert_eq!(world.upgrade(&dir).base.unwrap().as_str(), head);
    assert_eq!(git(&dir, &["rev-parse", "peers-baseline"]), head);
}

#[test]
fn below_the_top_of_a_repository_it_says_where_the_top_is() {
    let world = World::new();
    let repo = world.repo("repo");
    let below = repo.join("src");
    std::fs::create_dir(&below).unwrap();
    let error = world.refused(&below, |_| {});
    assert_eq!(error.exit(), exit::INVALID, "{error}");
    let hint = error.hint().unwrap().to_string();
    assert!(hint.contains(&format!("peers -C {} init", repo.display())), "{hint}");
    assert!(!hint.contains("git init"), "{hint}");
}

#[test]
fn staged_and_unstaged_changes_stay_as_they_are() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::write(repo.join("b.txt"), "b\n").unwrap();
    git(&repo, &["add", "b.txt"]);
    std::fs::write(repo.join("a.txt"), "changed\n").unwrap();
    world.init(&repo);
    assert_eq!(git(&repo, &["show", "--name-only", "--format="]), ".gitignore");
    assert_eq!(git(&repo, &["status", "--porcelain"]), " M a.txt\nA  b.txt");
}

#[test]
fn changes_of_the_ignore_file_are_never_committed_with_ours() {
    let world = World::new();
    let repo = world.repo("repo");
    let head = git(&repo, &["rev-parse", "HEAD"]);
    std::fs::write(repo.join(".gitignore"), "target\n").unwrap();
    let report = world.init(&repo);
    assert_eq!(git(&repo, &["rev-parse", "HEAD"]), head);
    assert_eq!(std::fs::read(repo.join(".gitignore")).unwrap(), b"target\n.peers/\n");
    assert!(
        report.notes.iter().map(ToString::to_string).any(|note| note.contains("not committed")),
        "{:?}",
        report.notes
    );
}

#[test]
fn an_ignore_file_that_lists_us_is_left_alone() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::write(repo.join(".gitignore"), "/.peers\r\n").unwrap();
    let report = world.init(&repo);
    assert_eq!(std::fs::read(repo.join(".gitignore")).unwrap(), b"/.peers\r\n");
    assert_eq!(report.commit, None);
}

#[test]
fn no_commit_uses_the_repositorys_own_excludes() {
    let world = World::new();
    let repo = world.repo("repo");
    let head = git(&repo, &["rev-parse", "HEAD"]);
    world.try_init(&repo, |o| o.no_commit = true).unwrap();
    assert!(!repo.join(".gitignore").exists());
    assert_eq!(git(&repo, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    world.deinit(&repo, false).unwrap();
    assert!(!std::fs::read_to_string(repo.join(".git/info/exclude")).unwrap().contains(".peers"));
}

#[test]
fn links_and_files_in_our_way_are_refused() {
    let world = World::new();
    let repo = world.repo("repo");
    let elsewhere = world.dir("elsewhere");
    symlink(&elsewhere, repo.join(".peers")).unwrap();
    for existing in [Existing::Refuse, Existing::Force, Existing::Upgrade] {
        assert_eq!(world.refused(&repo, |o| o.existing = existing).exit(), exit::REFUSED);
    }
    std::fs::remove_file(repo.join(".peers")).unwrap();
    std::fs::write(repo.join(".peers"), "").unwrap();
    assert_eq!(world.refused(&repo, |_| {}).exit(), exit::CONFLICT);
    for existing in [Existing::Force, Existing::Upgrade] {
        assert_eq!(world.refused(&repo, |o| o.existing = existing).exit(), exit::REFUSED);
    }
    std::fs::remove_file(repo.join(".peers")).unwrap();
    let rules = world.root.join("rules");
    std::fs::write(&rules, "target\n").unwrap();
    symlink(&rules, repo.join(".gitignore")).unwrap();
    assert_eq!(world.refused(&repo, |_| {}).exit(), exit::REFUSED);
    std::fs::write(&rules, ".peers/\n").unwrap();
    world.init(&repo);
    assert_eq!(std::fs::read(&rules).unwrap(), b".peers/\n");
}

#[test]
fn a_symlink_inside_the_control_directory_is_not_written_through() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let victim = world.dir("victim");
    std::fs::remove_dir_all(repo.join(".peers/log")).unwrap();
    symlink(&victim, repo.join(".peers/log")).unwrap();
    let error = world.try_init(&repo, |o| o.existing = Existing::Upgrade).unwrap_err();
    assert_eq!(error.exit(), exit::REFUSED, "{error}");
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn directories_that_are_no_work_place_are_refused() {
    let world = World::new();
    let home = world.dir("home");
    let config = world.dir("home/.config");
    let repo = world.repo("repo");
    let bare = world.dir("bare.git");
    git(&bare, &["init", "-q", "--bare"]);
    for (path, word) in [
        (PathBuf::from("/"), "system"),
        (PathBuf::from("/etc"), "system"),
        (PathBuf::from("/usr"), "system"),
        (home.clone(), "operator"),
        (config, "operator"),
        (peers_sys::env::home_of_user().unwrap(), "operator"),
        (repo.join(".git"), "git directory"),
        (repo.join(".git/hooks"), "git directory"),
        (bare.clone(), "bare"),
        (bare.join("hooks"), "bare"),
    ] {
        let error = world.refused(&path, |_| {});
        assert_eq!(error.exit(), exit::REFUSED, "{}: {error}", path.display());
        assert!(error.to_string().contains(word), "{}: {error}", path.display());
        let hint = error.hint().unwrap_or_default().to_string();
        assert!(hint.starts_with("choose") && !hint.contains("git init"), "{}: {hint}", path.display());
    }
    let link = world.root.join("link");
    symlink(&home, &link).unwrap();
    assert_eq!(world.refused(&link, |_| {}).exit(), exit::REFUSED);
    let nowhere = world.root.join("nowhere");
    assert_eq!(world.refused(&nowhere, |_| {}).exit(), exit::USAGE);
    assert_eq!(world.refused(&repo.join("a.txt"), |_| {}).exit(), exit::USAGE);
}

#[test]
fn hostile_paths_are_only_paths() {
    let world = World::new();
    for name in ["with space", "it's \"quoted\"", "$(touch x)", "-rf", "ünï"] {
        let repo = world.repo(name);
        let report = world.try_init(&repo, |o| o.driver = Some(Driver::Hooks)).unwrap();
        assert!(world.agrees(&repo), "{name:?}");
        assert_eq!(git(&repo, &["status", "--porcelain"]), "", "{name:?}");
        assert!(!report.changes.is_empty());
        world.deinit(&repo, true).unwrap();
        assert!(!repo.join(".peers").exists(), "{name:?}");
    }
    assert!(!world.root.join("x").exists());
}

#[test]
fn a_path_that_cannot_stand_in_a_line_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    for name in [&b"new\nline"[..], b"not\xfftext"] {
        let repo = world.root.join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q"]);
        let error = world.refused(&repo, |_| {});
        assert_eq!(error.exit(), exit::INVALID, "{error}");
        assert_eq!(error.hint(), Some("rename the directory".into()));
    }
}

#[test]
fn a_linked_worktree_shares_the_store_of_its_project() {
    let world = World::new();
    let main = world.repo("main");
    let first = world.init(&main);
    let linked = world.root.join("linked");
    git(&main, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let second = world.init(&linked);
    assert_eq!(first.store, second.store);
    assert_eq!(world.base(&linked), world.base(&main));
    assert!(world.agrees(&linked) && world.agrees(&main));
    let error = world.refused(&linked, |o| o.existing = Existing::Force);
    assert_eq!(error.exit(), exit::INVALID, "{error}");
    assert!(
        error.hint().unwrap().to_string().contains(&format!("peers -C {}", main.display())),
        "{:?}",
        error.hint()
    );
}

#[test]
fn a_tag_that_is_there_is_never_moved() {
    let world = World::new();
    let repo = world.repo("repo");
    let old = git(&repo, &["rev-parse", "HEAD"]);
    git(&repo, &["tag", "peers-baseline"]);
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let head = git(&repo, &["rev-parse", "HEAD"]);
    let report = world.init(&repo);
    assert_eq!(git(&repo, &["rev-parse", "peers-baseline"]), old);
    assert_eq!(world.base(&repo).unwrap(), head);
    assert!(
        report.notes.iter().map(ToString::to_string).any(|note| note.contains("stays there")),
        "{:?}",
        report.notes
    );
}

#[test]
fn a_lost_tag_is_set_again_where_it_was() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let base = world.base(&repo).unwrap();
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "second"]);
    git(&repo, &["tag", "-d", "peers-baseline"]);
    world.upgrade(&repo);
    assert_eq!(git(&repo, &["rev-parse", "peers-baseline"]), base);
}

#[test]
fn nothing_happens_while_a_run_holds_the_lock() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let lock = world.place(&repo).lock("run").unwrap();
    for existing in [Existing::Force, Existing::Upgrade] {
        assert_eq!(world.refused(&repo, |o| o.existing = existing).exit(), exit::CONFLICT);
    }
    assert_eq!(world.deinit(&repo, false).unwrap_err().exit(), exit::CONFLICT);
    drop(lock);
    let old = std::fs::File::create(repo.join(".peers/run.lock")).unwrap();
    old.lock().unwrap();
    assert_eq!(world.refused(&repo, |o| o.existing = Existing::Force).exit(), exit::CONFLICT);
    assert_eq!(world.deinit(&repo, true).unwrap_err().exit(), exit::CONFLICT);
    assert!(repo.join(".peers/config.yaml").exists());
}

#[test]
fn hooks_of_the_repository_do_not_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let repo = world.repo("repo");
    let ran = world.root.join("ran");
    for hook in ["pre-commit", "commit-msg", "post-commit", "reference-transaction"] {
        let path = repo.join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\ntouch '{}'\nexit 1\n", ran.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert!(world.init(&repo).commit.is_some());
    assert!(!ran.exists());
}

#[test]
fn a_driver_is_written_into_the_config_and_accepted() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.try_init(&repo, |o| o.driver = Some(Driver::Hooks)).unwrap();
    let read = || std::fs::read_to_string(repo.join(".peers/config.yaml")).unwrap();
    assert_eq!(load::load_config(&read()).unwrap().driver, Driver::Hooks);
    assert_eq!(report.hooks.as_deref(), Some(".peers/hooks"));
    for name in ["README.md", "claude-stop-hook.json", "codex-hooks.json"] {
        assert_eq!(mode(repo.join(".peers/hooks").join(name)), 0o600);
    }
    let report = world
        .try_init(&repo, |o| {
            o.existing = Existing::Upgrade;
            o.driver = Some(Driver::Sessions);
        })
        .unwrap();
    assert!(has(&report, Action::Accept, "goals.yaml and config.yaml"));
    assert_eq!(load::load_config(&read()).unwrap().driver, Driver::Sessions);
    assert!(world.agrees(&repo));
    // A snippet that was changed is laid down again.
    std::fs::write(repo.join(".peers/hooks/codex-hooks.json"), "{}").unwrap();
    let report = world.upgrade(&repo);
    assert!(has(&report, Action::Edit, ".peers/hooks/codex-hooks.json"), "{report:?}");
}

#[test]
fn reports_can_be_shown_as_json() {
    let world = World::new();
    let repo = world.repo("repo");
    let value = serde_json::to_value(world.init(&repo)).unwrap();
    assert_eq!(value["outcome"], "fresh");
    assert_eq!(value["changes"][0]["action"], "create");
}

#[test]
fn an_upgrade_commits_an_ignore_line_that_was_left_but_nothing_of_somebody_else() {
    for (old, commits) in [("", true), ("mine\n", false)] {
        let world = World::new();
        let repo = world.repo("repo");
        let before = world.init(&repo);
        git(&repo, &["reset", "-q", "--hard", "HEAD~1"]);
        let line = peers_modes::ignore::added(old.as_bytes());
        std::fs::write(repo.join(".gitignore"), line).unwrap();
        let upgraded = world.upgrade(&repo);
        assert_eq!(upgraded.commit.is_some(), commits, "{old}");
        assert_eq!(git(&repo, &["status", "--porcelain"]).is_empty(), commits);
        assert_eq!(upgraded.base, before.base);
    }
}
