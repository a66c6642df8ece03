//! Tests of `create` on real directories and repositories.

mod aside;
mod faults;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use peers_model::exit;

use super::*;
use crate::Field;
use crate::fault::plan::{self, Cut};
use crate::world::{World, git, mode, snapshot};

/// Options for a directory of the world.
fn options(world: &World, name: &str) -> ProjectOptions {
    ProjectOptions { target: world.root.join("projects").join(name), ..ProjectOptions::default() }
}

/// A world with a place for projects.
fn world() -> World {
    let world = World::new();
    world.dir("projects");
    world
}

fn new(world: &World, options: &ProjectOptions) -> Result<(Created, Vec<Notice>), ScaffoldError> {
    let mut notices = Vec::new();
    let created = create(options, &world.env, &mut |notice| notices.push(notice))?;
    Ok((created, notices))
}

/// Refused, and nothing was written.
fn refused(world: &World, options: &ProjectOptions) -> (u8, String) {
    let before = snapshot(&world.root);
    let error = new(world, options).map(drop).unwrap_err();
    assert_eq!(snapshot(&world.root), before, "a refusal wrote something: {error}");
    (error.exit(), error.to_string())
}

/// A project that can be worked on: committed, accepted, and nothing of ours lies around.
fn finished(world: &World, path: &Path) {
    assert!(world.agrees(path), "not accepted");
    assert_eq!(git(path, &["status", "--porcelain"]), "");
    assert_eq!(git(path, &["rev-parse", "peers-baseline"]), world.base(path).unwrap());
    for place in snapshot(&world.root).keys() {
        assert!(!place.to_string_lossy().contains(".peers-new-"), "{}", place.display());
    }
}

fn log(path: &Path) -> Vec<String> {
    git(path, &["log", "--format=%s", "--reverse"]).lines().map(str::to_owned).collect()
}

const SCAFFOLD: &str = "initial scaffold";
const IGNORE: &str = "peers init: ignore .peers/";

#[test]
fn a_name_that_is_free_becomes_a_repository_that_is_set_up() {
    let world = world();
    let asked = ProjectOptions {
        spec: Some("Count lines.\nOf files.".to_owned()),
        driver: Some(Driver::Hooks),
        language: Some(Language::Rust),
        gates: Gates::Detected,
        settings: vec![PeerSetting { field: Field::Model, text: "claude=opus".to_owned() }],
        ..options(&world, "neu ☂")
    };
    let (created, notices) = new(&world, &asked).unwrap();
    let path = world.root.join("projects/neu ☂");
    assert_eq!((created.how, &created.path, notices), (How::Made, &path, vec![]));
    finished(&world, &path);
    assert_eq!(log(&path), [SCAFFOLD, IGNORE]);
    assert_eq!(created.first_commit.unwrap().as_str(), git(&path, &["rev-parse", "HEAD~1"]));
    assert_eq!(git(&path, &["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(git(&path, &["show", "--name-only", "--format=", "HEAD~1"]), "README.md\nSPEC.md");
    assert_eq!(std::fs::read_to_string(path.join("README.md")).unwrap(), "# neu ☂\n\nWhat neu ☂ is for.\n");
    assert_eq!(std::fs::read_to_string(path.join("SPEC.md")).unwrap(), "Count lines.\nOf files.");
    let config = std::fs::read_to_string(path.join(".peers/config.yaml")).unwrap();
    assert!(config.contains("model: opus") && config.contains("driver: hooks"), "{config}");
    let goals = std::fs::read_to_string(path.join(".peers/goals.yaml")).unwrap();
    assert!(goals.contains("\n    cmd: cargo test\n") && !goals.contains("placeholder"), "{goals}");
    // As a directory that the operator made.
    assert_eq!(mode(path.clone()), mode(world.dir("projects/plain")));
}

#[test]
fn an_identity_is_written_only_where_none_is_inherited() {
    let who = peers_git::Identity { name: "Ann".to_owned(), email: "ann@example.org".to_owned() };
    for inherited in [None, Some(who)] {
        let world = world();
        let projects = SafeDir::open_shared(world.dir("projects")).unwrap();
        let asked = asked::Asked { spec: None, modes: None, planned: None };
        let mut ignored = |_| {};
        let mut filler = Filler::of(asked, &world.env, &mut ignored, inherited.clone());
        let aside = Aside::make(&projects, "a".as_ref()).unwrap();
        assert_eq!(mode(aside.tree().path().parent().unwrap().to_owned()), 0o700);
        filler.build(&aside, "a".as_ref()).unwrap();
        let tree = aside.tree().path();
        let config = std::fs::read_to_string(tree.join(".git/config")).unwrap();
        let author = git(tree, &["log", "-1", "--format=%an <%ae>"]);
        if inherited.is_some() {
            assert!(!config.contains("[user]"), "{config}");
            assert_eq!(author, "Ann <ann@example.org>");
        } else {
            assert!(config.contains("name = op\n"), "{config}");
            assert_eq!(author, "op <operator@local>");
        }
    }
}

#[test]
fn an_empty_directory_is_filled_without_a_flag() {
    let world = world();
    let asked = options(&world, "empty");
    std::fs::create_dir(&asked.target).unwrap();
    let (created, _) = new(&world, &asked).unwrap();
    assert_eq!(created.how, How::Filled);
    finished(&world, &asked.target);
    assert_eq!(log(&asked.target), [SCAFFOLD, IGNORE]);
}

#[test]
fn a_directory_with_files_needs_a_flag_and_keeps_all_of_them() {
    let world = world();
    let mut asked = options(&world, "files");
    let path = asked.target.clone();
    std::fs::create_dir(&path).unwrap();
    for (name, text) in [
        ("README.md", "mine"),
        (".gitignore", "/out\n"),
        ("out", "ignored"),
        ("src.rs", "fn main() {}"),
        (".env", "A=1"),
        (
            "key.txt",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----\n",
        ),
    ] {
        std::fs::write(path.join(name), text).unwrap();
    }
    std::fs::write(path.join("large.bin"), vec![0; 6 << 20]).unwrap();
    let (exit, text) = refused(&world, &asked);
    assert_eq!((exit, text), (exit::CONFLICT, format!("{} is not empty", path.display())));
    asked.into_nonempty = true;
    let (created, notices) = new(&world, &asked).unwrap();
    assert_eq!(created.how, How::Filled);
    finished(&world, &path);
    assert_eq!(std::fs::read_to_string(path.join("README.md")).unwrap(), "mine");
    assert_eq!(
        git(&path, &["ls-tree", "-r", "--name-only", "HEAD~1"]),
        ".env\n.gitignore\nREADME.md\nkey.txt\nlarge.bin\nsrc.rs"
    );
    let told: Vec<_> = notices.iter().map(|notice| (notice.code, notice.message.as_str())).collect();
    assert_eq!(
        told,
        [
            ("secret", "the first commit has what looks like a secret; agents will read it: .env, key.txt"),
            ("large", "the first commit has files of more than 5 MiB: large.bin"),
        ]
    );
}

#[test]
fn a_repository_with_a_commit_is_adopted_without_a_flag_and_nothing_of_it_changes() {
    let world = world();
    let path = world.repo("projects/old");
    std::fs::write(path.join("open.txt"), "not committed").unwrap();
    let head = git(&path, &["rev-parse", "HEAD"]);
    let (created, notices) = new(&world, &options(&world, "old")).unwrap();
    assert_eq!((created.how, created.first_commit, notices), (How::Adopted, None, vec![]));
    assert!(world.agrees(&path));
    assert_eq!(log(&path), ["first", IGNORE]);
    assert_eq!(git(&path, &["rev-parse", "HEAD~1"]), head);
    assert_eq!(git(&path, &["status", "--porcelain"]), "?? open.txt");
    assert!(!path.join("README.md").exists());

    let (exit, text) = refused(&world, &options(&world, "old"));
    assert_eq!((exit, text), (exit::CONFLICT, format!("{} is set up for peers already", path.display())));
    let tested = ProjectOptions { gates: Gates::Tests("make".to_owned()), ..options(&world, "old") };
    let error = new(&world, &tested).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "--test: goals.yaml exists and is kept; add the gate there");
    assert!(error.hint().unwrap().to_string().starts_with("`peers-ctl add "));
    let again = ProjectOptions { overwrite_peers: true, ..options(&world, "old") };
    let (created, _) = new(&world, &again).unwrap();
    assert_eq!(created.init.outcome, crate::Outcome::Rebuilt);
    assert!(world.agrees(&path));

    let spec = ProjectOptions { spec: Some("x".to_owned()), ..options(&world, "old") };
    assert_eq!(refused(&world, &spec).0, exit::USAGE);
}

#[test]
fn a_repository_without_a_commit_gets_its_first_one() {
    let world = world();
    let path = world.dir("projects/unborn");
    git(&path, &["init", "-q", "-b", "trunk"]);
    let (created, _) = new(&world, &options(&world, "unborn")).unwrap();
    assert_eq!(created.how, How::Begun);
    finished(&world, &path);
    assert_eq!(git(&path, &["symbolic-ref", "--short", "HEAD"]), "trunk");
    assert_eq!(log(&path), [SCAFFOLD, IGNORE]);

    let path = world.dir("projects/staged");
    git(&path, &["init", "-q", "-b", "main"]);
    std::fs::write(path.join("a"), "a").unwrap();
    let (exit, text) = refused(&world, &options(&world, "staged"));
    assert_eq!((exit, text), (exit::CONFLICT, format!("{} is not empty", path.display())));
    let flagged = ProjectOptions { into_nonempty: true, ..options(&world, "staged") };
    new(&world, &flagged).unwrap();
    finished(&world, &path);
}

#[test]
fn gates_that_cannot_be_are_refused_before_anything_is_begun() {
    let world = world();
    std::fs::write(world.dir("projects/files").join("x"), "x").unwrap();
    for name in ["new", "files"] {
        for gates in [Gates::Detected, Gates::Tests(String::new())] {
            let asked = ProjectOptions { gates, into_nonempty: true, ..options(&world, name) };
            let (done, places) = plan::run(None, || new(&world, &asked));
            assert!(done.unwrap().is_err());
            assert_eq!(places, Vec::<String>::new(), "{name}");
        }
    }
}

/// A repository with goals and configuration in its history.
fn clone(world: &World) -> PathBuf {
    let path = world.repo("projects/cloned");
    let peers = world.dir("projects/cloned/.peers");
    std::fs::write(peers.join("goals.yaml"), "goals: []\n").unwrap();
    std::fs::write(peers.join("config.yaml"), peers_modes::CONFIG).unwrap();
    git(&path, &["add", "-f", ".peers"]);
    git(&path, &["commit", "-q", "-m", "goals"]);
    path
}

#[test]
fn a_clone_that_brings_goals_along_keeps_them_for_its_operator() {
    let world = world();
    let path = clone(&world);
    let (created, _) = new(&world, &options(&world, "cloned")).unwrap();
    assert_eq!(created.how, How::Adopted);
    assert!(world.accepted(&path).is_none());
    let told = |note: &peers_model::command::Step| {
        note.to_string().starts_with("not accepted: goals.yaml and config.yaml were there before")
    };
    assert!(created.init.notes.iter().any(told), "{:?}", created.init.notes);
}

#[test]
fn what_cannot_become_a_project_is_refused_before_anything_is_written() {
    let world = world();
    let projects = world.root.join("projects");
    std::fs::write(projects.join("file"), "x").unwrap();
    symlink("nowhere", projects.join("dangling")).unwrap();
    let readme = world.dir("projects/readme");
    symlink("/etc/passwd", readme.join("README.md")).unwrap();
    let directory = world.dir("projects/directory");
    std::fs::create_dir(directory.join("README.md")).unwrap();
    std::fs::write(world.dir("projects/directory2").join("x"), "x").unwrap();
    let spec = world.dir("projects/spec");
    std::fs::write(spec.join("SPEC.md"), "other").unwrap();
    let linked = world.dir("projects/linked");
    symlink(&directory, linked.join(".peers")).unwrap();
    git(&linked, &["init", "-q"]);
    let inner = world.repo("projects/outer").join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("x"), "x").unwrap();
    world.dir("projects/outer/empty");
    let with = |name: &str, change: &dyn Fn(&mut ProjectOptions)| {
        let mut asked = ProjectOptions { into_nonempty: true, ..options(&world, name) };
        change(&mut asked);
        refused(&world, &asked)
    };
    let same = |_: &mut ProjectOptions| {};
    let rows = [
        (with("file", &same), exit::USAGE, "is not a directory"),
        (with("dangling", &same), exit::USAGE, "is not a directory"),
        (with("file/x", &same), exit::USAGE, "is not a directory"),
        (with("no/x", &same), exit::USAGE, "does not exist"),
        (with("no/..", &same), exit::USAGE, "does not exist"),
        (with("a\nb", &same), exit::INVALID, "has a line break in it"),
        (with(".git", &same), exit::REFUSED, "lies inside a git directory"),
        (with("readme", &same), exit::REFUSED, "is a symbolic link"),
        (with("directory", &same), exit::REFUSED, "is not a regular file"),
        (with("spec", &|o| o.spec = Some("x y".to_owned())), exit::CONFLICT, "exists with other content"),
        (with("linked", &same), exit::REFUSED, ".peers is a symbolic link"),
        (with("outer/inner", &same), exit::INVALID, "lies inside the repository"),
        (with("outer/empty", &same), exit::INVALID, "lies inside the repository"),
        (with("outer/new", &same), exit::INVALID, "outer/new lies inside the repository"),
        (with("new", &|o| o.spec = Some(" ".to_owned())), exit::USAGE, "--spec says nothing"),
        (with("new", &|o| o.spec = Some("./absent.md".to_owned())), exit::USAGE, "does not exist"),
        (with("new", &|o| o.gates = Gates::Detected), exit::NEGATIVE, "no manifest of a known stack"),
        (
            with("new", &|o| o.gates = Gates::Tests(String::new())),
            exit::USAGE,
            "--test: the command is empty",
        ),
        (with("directory2", &|o| o.gates = Gates::Detected), exit::NEGATIVE, "no manifest of a known stack"),
        (with("new", &|o| o.spec = Some("/etc".to_owned())), exit::USAGE, "is not a file"),
        (
            with("new", &|o| {
                o.settings = vec![PeerSetting { field: Field::Model, text: "gemini=x".to_owned() }];
            }),
            exit::USAGE,
            "no peer has the name or tool",
        ),
    ];
    for ((code, text), expected, says) in rows {
        assert!(code == expected && text.contains(says), "{code} {text} (expected {expected} {says})");
    }
}

#[test]
fn row_41_a_plan_goes_with_the_mode_implement_alone() {
    let world = world();
    let plan = world.root.join("PLAN.md");
    let good = "# F\n## Meta\nsurfaces: cli\nacceptance: true\n## Steps\n- [ ] [STEP-1] a\n  - touches: b\n";
    std::fs::write(&plan, good).unwrap();
    let with = |plan: Option<&PathBuf>, modes: Option<&str>, spec: Option<&str>| {
        let asked = ProjectOptions {
            plan: plan.cloned(),
            modes: modes.map(|modes| vec![modes.to_owned()]),
            spec: spec.map(str::to_owned),
            ..options(&world, "new")
        };
        refused(&world, &asked)
    };
    assert_eq!(with(Some(&plan), None, Some("x")).0, exit::USAGE);
    assert_eq!(
        with(None, Some("implement"), None),
        (exit::USAGE, "the mode `implement` needs a plan".to_owned())
    );
    let (code, text) = with(Some(&plan), None, None);
    assert!(
        code == exit::USAGE && text.starts_with("--plan goes with the mode `implement`"),
        "{code} {text}"
    );
    assert_eq!(with(Some(&plan), Some("implement,audit"), None).0, exit::USAGE);

    std::fs::write(&plan, good.replace("acceptance: true", "surfaces: web").replace("- touches: b", ""))
        .unwrap();
    let (code, text) = with(Some(&plan), Some("implement"), None);
    assert_eq!(code, exit::INVALID);
    for part in [
        "is not a valid plan: line 2: `acceptance`",
        "line 4: `surfaces` stands in line 3",
        "line 6: STEP-1 says no files",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let link = world.root.join("link.md");
    symlink(&plan, &link).unwrap();
    assert_eq!(with(Some(&link), None, None).0, exit::REFUSED);
    assert_eq!(with(Some(&world.root.join("absent")), None, None).0, exit::USAGE);
}

#[test]
fn row_41_a_plan_is_committed_and_frozen_with_its_commands() {
    let world = world();
    let plan = world.root.join("plan.md");
    let text = "# F\n## Meta\nsurfaces: cli\nacceptance: cargo test\ne2e: ./try\nacceptance_files: tests/**\n\
                ## Steps\n- [ ] [STEP-1] a\n  - touches: b\n";
    std::fs::write(&plan, text).unwrap();
    let path = world.repo("projects/repo");
    let asked = |at_base: &str| {
        let mut planned = Planned::read(&plan).unwrap();
        planned.at_base = at_base.to_owned();
        ProjectOptions {
            plan: Some(plan.clone()),
            modes: Some(vec!["implement".to_owned()]),
            planned: Some(planned),
            ..options(&world, "repo")
        }
    };
    let (code, why) = refused(&world, &asked("exit 1"));
    assert!(code == exit::INVALID && why.contains("`tests/**` takes no file of HEAD"), "{why}");
    std::fs::create_dir(path.join("tests")).unwrap();
    std::fs::write(path.join("tests/a.rs"), "frozen\n").unwrap();
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-qm", "tests"]);
    new(&world, &asked("exit 1")).unwrap();
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    assert_eq!(git(&path, &["show", "HEAD:PLAN.md"]), text.trim_end());
    let store = world.place(&path).store_dir().to_owned();
    let stored = |name: &str| std::fs::read_to_string(store.join("contracts").join(name)).unwrap();
    assert_eq!(stored("PLAN.original.md"), text);
    assert_eq!(stored("acceptance.sh"), "#!/bin/sh\nset -e\ncargo test\n");
    assert_eq!(stored("e2e.sh"), "#!/bin/sh\nset -e\n./try\n");
    assert_eq!(stored("files/tests/a.rs"), "frozen\n");
    let journal = std::fs::read_to_string(store.join("journal/000001.jsonl")).unwrap();
    for part in ["\"op\":\"contract\"", "\"contract\":\"init\"", "\"at_base\":\"exit 1\""] {
        assert!(journal.contains(part), "{part}: {journal}");
    }
    for copy in
        ["PLAN.original.md", "contracts/acceptance.sh", "contracts/e2e.sh", "contracts/files/tests/a.rs"]
    {
        assert_eq!(mode(path.join(".peers").join(copy)) & 0o777, 0o444, "{copy}");
    }
    // Without a commit there is nothing to freeze, and nothing is made.
    let nowhere = world.root.join("projects/new");
    let (code, why) = refused(&world, &ProjectOptions { target: nowhere.clone(), ..asked("") });
    assert!(code == exit::INVALID && why.contains("takes no file of HEAD"), "{why}");
    assert!(!nowhere.exists());
    // Another plan is no reason to lose the one that is there.
    let other = world.repo("projects/other");
    std::fs::write(other.join("PLAN.md"), "mine\n").unwrap();
    let asked = ProjectOptions { target: other, ..asked("") };
    assert_eq!(refused(&world, &asked).0, exit::CONFLICT);
}

#[test]
fn row_42_modes_that_are_none_are_refused() {
    let world = world();
    let path = world.repo("projects/repo");
    world.init(&path);
    for (modes, code, says) in [
        (",, ,", exit::USAGE, "--modes names no mode"),
        (
            "describe,audit",
            exit::USAGE,
            "the mode `describe` stacks with no other, and `audit` was asked for too",
        ),
        (
            "adit",
            exit::INVALID,
            "unknown mode `adit`; available: audit, audit-deep, describe, document, implement, thorough",
        ),
    ] {
        let asked = ProjectOptions { modes: Some(vec![modes.to_owned()]), ..options(&world, "repo") };
        assert_eq!(refused(&world, &asked), (code, says.to_owned()), "{modes}");
    }
}

#[test]
fn a_spec_is_the_text_of_a_file_or_the_text_itself() {
    let world = world();
    let file = world.root.join("wanted.md");
    std::fs::write(&file, "From a file.\n").unwrap();
    let text = |name: &str, spec: &str| {
        let asked = ProjectOptions { spec: Some(spec.to_owned()), ..options(&world, name) };
        new(&world, &asked).unwrap();
        std::fs::read_to_string(asked.target.join("SPEC.md")).unwrap()
    };
    assert_eq!(text("a", &file.to_string_lossy()), "From a file.\n");
    assert_eq!(text("b", "Count words."), "Count words.");
    assert_eq!(text("c", "./this\nhas lines"), "./this\nhas lines");
    std::fs::create_dir_all(world.root.join("home")).unwrap();
    std::fs::write(world.root.join("home/spec.md"), "At home.").unwrap();
    assert_eq!(text("d", "~/spec.md"), "At home.");
}

#[test]
fn a_store_of_a_directory_that_was_there_before_is_not_taken_over() {
    let world = world();
    let asked = options(&world, "again");
    new(&world, &asked).unwrap();
    std::fs::remove_dir_all(&asked.target).unwrap();
    // Something else, so that the new directory is another one.
    world.dir("projects/filler");
    let (code, text) = refused(&world, &asked);
    assert!(code == exit::REFUSED && text.contains("belongs to an earlier project at"), "{code} {text}");
    new(&world, &ProjectOptions { overwrite_peers: true, ..asked.clone() }).unwrap();
    finished(&world, &asked.target);
}

/// A repository whose set-up was killed before anything was accepted.
fn half(world: &World, name: &str) -> PathBuf {
    let path = world.repo(&format!("projects/{name}"));
    let other = world.repo("projects/counted");
    let (_, places) = plan::run(None, || world.init(&other));
    let accept = places.iter().position(|place| place == "goals.yaml and config.yaml").unwrap() + 1;
    let (done, _) = plan::run(Some((accept, Cut::Kill)), || world.init(&path));
    assert!(done.is_none());
    path
}

#[test]
fn an_interrupted_set_up_is_completed_but_nothing_of_somebody_else_is_accepted() {
    let world = world();
    let path = half(&world, "half");
    std::fs::write(path.join(".peers/goals.yaml"), "goals: []\n").unwrap();
    let (created, _) = new(&world, &options(&world, "half")).unwrap();
    assert_eq!((created.how, created.init.outcome), (How::Completed, crate::Outcome::Upgraded));
    assert!(world.accepted(&path).is_none());
    assert!(
        created
            .init
            .notes
            .iter()
            .map(ToString::to_string)
            .any(|note| note.starts_with("not accepted: goals.yaml"))
    );
    assert_eq!(refused(&world, &options(&world, "half")).0, exit::CONFLICT);
}

#[test]
fn what_init_lays_down_is_accepted_unseen_only_where_nothing_ran() {
    for ran in [false, true] {
        let world = world();
        let path = half(&world, "half");
        if ran {
            std::fs::create_dir(world.place(&path).store_dir().join("journal")).unwrap();
            assert_eq!(refused(&world, &options(&world, "half")).0, exit::CONFLICT);
        }
        world.upgrade(&path);
        assert_eq!(world.accepted(&path).is_some(), !ran);
    }
}

#[test]
fn a_half_finished_set_up_takes_no_gate_that_it_was_not_begun_with() {
    let world = World::new();
    world.dir("projects");
    half(&world, "half");
    let asked = ProjectOptions { gates: Gates::Tests("true".to_owned()), ..options(&world, "half") };
    let (code, text) = refused(&world, &asked);
    assert!(code == exit::USAGE && text.contains("goals.yaml exists and is kept"), "{code} {text}");
}

#[test]
fn other_settings_than_those_of_a_half_finished_set_up_are_refused() {
    let world = world();
    half(&world, "half");
    let settings = vec![PeerSetting { field: Field::Model, text: "m".to_owned() }];
    let asked = ProjectOptions { settings, ..options(&world, "half") };
    let (code, text) = refused(&world, &asked);
    assert!(code == exit::USAGE && text.contains("config.yaml exists and is kept"), "{code} {text}");
}
