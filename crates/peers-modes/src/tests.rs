//! The modes that ship, and those of an operator.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use peers_model::exit;
use peers_model::goal::{CHECK_NAMES, GoalType};
use peers_store::load;
use peers_sys::env::Env;

use crate::shipped::SHIPPED;
use crate::{
    Bundle, CONFIG, Files, Library, Merged, Origin, config_with_budget, goals_with_modes, merge, names,
};

/// An operator whose modes lie in a directory.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn mode(&self, dir: &str, mode: &str, goals: &str) -> &Self {
        self.file(&format!("{dir}/mode.yaml"), mode.as_bytes())
            .file(&format!("{dir}/goals.yaml"), goals.as_bytes())
    }

    fn file(&self, path: &str, bytes: &[u8]) -> &Self {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    fn library(&self) -> Library {
        Library::load(&Env::from_pairs([("PEERS_MODES_DIR", self.dir.path().canonicalize().unwrap())]))
    }

    /// The names of the stack, or the message and the exit code.
    fn stack(&self, asked: &str) -> Result<Vec<String>, (String, u8)> {
        let library = self.library();
        let told = |error: crate::ModeError| (error.to_string(), error.exit());
        let asked = names(&[asked.to_owned()]).map_err(told)?;
        let stack = library.resolve(&asked, &[]).map_err(told)?;
        merge(&stack).map_err(told)?;
        Ok(stack.iter().map(|bundle| bundle.mode.name.clone()).collect())
    }
}

fn gate(id: &str, cmd: &str) -> String {
    format!("goals:\n- {{id: {id}, type: hard, cmd: '{cmd}', pass_when: exit_code == 0}}\n")
}

fn shipped() -> Library {
    Library::load(&Env::from_pairs([("HOME", "/nonexistent")]))
}

#[test]
fn every_file_below_modes_ships_and_every_mode_is_valid() {
    fn below(dir: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                below(&entry.path(), &format!("{path}/"), found);
            } else {
                found.insert(path);
            }
        }
    }
    let mut there = BTreeSet::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modes"), "", &mut there);
    let library = shipped();
    assert_eq!(library.notes, Vec::<String>::new());
    let ours: BTreeSet<String> = library
        .bundles()
        .flat_map(|bundle| bundle.files.keys().map(|file| format!("{}/{file}", bundle.mode.name)))
        .collect();
    assert_eq!(ours, there);
    assert_eq!(library.bundles().count(), SHIPPED.len());
}

#[test]
fn the_prompts_that_ship_are_short_used_and_name_no_way_around_a_gate() {
    let around = [
        "waive",
        "allowlist",
        "no-verify",
        "skip-reason",
        "justified",
        "goal-proposal",
        "config.yaml",
        ".peers",
    ];
    for bundle in shipped().bundles() {
        for (file, bytes) in bundle.files.iter().filter(|(file, _)| file.starts_with("prompts/")) {
            let text = std::str::from_utf8(bytes).unwrap();
            let of = format!("{}/{file}", bundle.mode.name);
            assert!((200..=1_200).contains(&text.len()), "{of} has {} bytes", text.len());
            assert!(text.lines().all(|line| line.len() <= 112 && line.trim_end() == line), "{of}");
            let lower = text.to_lowercase();
            assert_eq!(around.iter().find(|word| lower.contains(*word)), None, "{of}");
            assert!(!lower.contains("above"), "{of}: what the check found stands below it");
            if bundle.course.phases.iter().any(|phase| phase.prompt == text) {
                continue;
            }
            assert!(text.replace('\n', " ").contains("Pass "), "{of} does not say when it passes");
            assert!(
                bundle.goals.iter().any(|goal| goal.prompt.as_deref() == Some(text)),
                "{of} is of no goal or phase"
            );
        }
    }
}

#[test]
fn what_is_required_comes_first_and_each_mode_once() {
    let home = Home::new();
    assert_eq!(home.stack("thorough, ,audit,audit-deep").unwrap(), ["audit", "thorough", "audit-deep"]);
    assert_eq!(home.stack("describe").unwrap(), ["describe"]);
}

#[test]
fn what_cannot_be_asked_for_is_refused_with_its_exit_code() {
    let home = Home::new();
    home.mode("a", "name: a\nrequires: [b]\n", "goals: []\n")
        .mode("b", "name: b\nrequires: [c]\n", "goals: []\n")
        .mode("c", "name: c\nrequires: [b]\n", "goals: []\n")
        .mode("lost", "name: lost\nrequires: [nothing]\n", "goals: []\n")
        .mode("loner", "name: loner\nconflicts: [one]\n", "goals: []\n")
        .mode("one", "name: one\n", &gate("same", "true"))
        .mode("two", "name: two\n", &gate("same", "false"))
        .mode("three", "name: three\n", &gate("same", "true"));
    for (asked, exit, message) in [
        (" ,,", exit::USAGE, "--modes names no mode"),
        (
            "describe,audit",
            exit::USAGE,
            "the mode `describe` stacks with no other, and `audit` was asked for too",
        ),
        (
            "audit,one,document",
            exit::USAGE,
            "the mode `document` stacks with no other, and `audit`, `one` were asked for too",
        ),
        ("one,loner", exit::USAGE, "the modes `loner` and `one` do not stack"),
        (
            "audti",
            exit::INVALID,
            "unknown mode `audti`; available: a, audit, audit-deep, b, c, describe, document, ",
        ),
        ("a", exit::INVALID, "modes require each other: b -> c -> b"),
        ("lost", exit::INVALID, "the mode `lost` requires `nothing`, which does not exist"),
        ("one,two", exit::INVALID, "the modes `one` and `two` have different goals with the id `same`"),
    ] {
        let (told, code) = home.stack(asked).unwrap_err();
        assert_eq!((told.starts_with(message), code), (true, exit), "{asked}: {told}");
    }
    assert_eq!(home.stack("one,three").unwrap(), ["one", "three"], "equal goals count once");
}

#[test]
fn a_mode_of_the_operator_replaces_the_one_that_ships_and_that_is_said() {
    let home = Home::new();
    home.mode("mine", "name: audit\nversion: 7\ndescription: Mine\n", &gate("x", "true"));
    let library = home.library();
    let found = library.named("audit").unwrap();
    assert_eq!((found.mode.version, found.origin), (7, Origin::User { shadows: true }));
    assert_eq!(library.notes, ["the mode `audit` of yours replaces the one that ships"]);
    assert_eq!(library.named("describe").unwrap().origin, Origin::BuiltIn);
}

#[test]
fn a_bundle_that_is_not_valid_is_left_out_with_the_reason() {
    for (mode, goals, why) in [
        ("version: 1\n", "goals: []\n", "name"),
        ("name: x\nrequire: [a]\n", "goals: []\n", "require"),
        ("name: ../x\n", "goals: []\n", "no name of a mode"),
        ("name: x\nversion: one\n", "goals: []\n", "mode.yaml:2:10: expected a whole number"),
        ("name: x\nrequires: audit\n", "goals: []\n", "expected a list"),
        ("name: x\nlanguages: [cobol]\n", "goals: []\n", "not `cobol`"),
        ("name: x\nbudget: {max_runtime: soon}\n", "goals: []\n", "a time such as"),
        ("name: x\nexclusive: true\nrequires: [audit]\n", "goals: []\n", "requires no other"),
        ("name: x\n", "goals:\n- {id: a, type: hard, chek: self-review}\n", "line 2: goal `a`"),
        ("name: x\n", "goals:\n- {id: a, type: hard, check: nothing}\n", "nothing"),
        (
            "name: x\n",
            "goals:\n- {id: a, type: hard, check: self-review}\n- {id: a, type: hard, check: bug-ledger}\n",
            "line 3",
        ),
        (
            "name: x\n",
            "goals:\n- {id: a, type: soft, reviewer: other, prompt: prompts/a.md}\n",
            "prompts/a.md is missing",
        ),
    ] {
        let files: Files = [("mode.yaml", mode), ("goals.yaml", goals)]
            .map(|(name, text)| (name.to_owned(), text.into()))
            .into();
        let told = Bundle::read(files, Origin::BuiltIn).unwrap_err();
        assert!(told.contains(why), "{mode}{goals}: {told}");
    }
    let home = Home::new();
    home.mode("ok", "name: ok\n", "goals: []\n")
        .file("no-mode/goals.yaml", b"goals: []\n")
        .file("bad/mode.yaml", b"name: [\n");
    let library = home.library();
    assert!(library.named("ok").is_ok());
    assert_eq!(library.notes.len(), 1, "{:?}", library.notes);
    assert!(library.notes[0].starts_with("left out bad: "), "{:?}", library.notes);
}

#[test]
fn links_and_what_is_too_large_or_too_much_are_refused() {
    let home = Home::new();
    let root = home.dir.path();
    for name in ["link", "large", "many"] {
        home.mode(name, &format!("name: {name}\n"), "goals: []\n");
    }
    std::os::unix::fs::symlink("/etc/passwd", root.join("link/README.md")).unwrap();
    std::os::unix::fs::symlink(root.join("link"), root.join("alias")).unwrap();
    home.file("large/mode.yaml", format!("name: large\n#{}\n", "x".repeat(64 * 1024)).as_bytes());
    for n in 0..256 {
        home.file(&format!("many/docs/{n}.md"), b"x");
    }
    let library = home.library();
    let told = library.notes.join("\n");
    assert!(library.bundles().all(|bundle| bundle.origin == Origin::BuiltIn), "{told}");
    for why in [
        "left out alias: it is a symbolic link",
        "left out link: README.md is a symbolic link",
        "left out large: ",
        "left out many: it has more than 256 files",
    ] {
        assert!(told.contains(why), "{why}:\n{told}");
    }
}

#[test]
fn the_digest_is_of_every_file_and_of_its_name() {
    let read = |files: &[(&str, &str)]| {
        let given = [("mode.yaml", "name: x\n"), ("goals.yaml", "goals: []\n")];
        let files =
            given.iter().chain(files).map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        Bundle::read(files.collect(), Origin::BuiltIn).unwrap().sha256
    };
    let digests: BTreeSet<_> =
        [read(&[]), read(&[("a.md", "")]), read(&[("b.md", "")]), read(&[("a.md", "x")])].into();
    assert_eq!(digests.len(), 4);
    assert_eq!(read(&[("a.md", "x")]), read(&[("a.md", "x")]));
}

fn merged(asked: &[&str]) -> Merged {
    let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
    merge(&shipped().resolve(&asked, &[]).unwrap()).unwrap()
}

#[test]
fn merged_goals_are_valid_and_say_the_same_as_the_bundles() {
    for asked in [&["audit"][..], &["thorough"], &["thorough", "audit-deep"], &["describe"], &["document"]] {
        let merged = merged(asked);
        let gates = "  - {id: tests-pass, type: hard, cmd: make, pass_when: exit_code == 0}\n";
        let text = goals_with_modes(gates, &merged.text(&[]));
        let goals = load::load_goals(&text, 2, &CHECK_NAMES).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(goals.len(), merged.goals.len() + 1, "{text}");
        for (_, goal) in &merged.goals {
            let one = format!("goals:\n{}", merged.text(&without(&merged, goal.id.as_str())));
            let again = super::bundle::goals(&one.replace("needs:", "# needs:")).unwrap().remove(0);
            assert_eq!(
                (again.prompt, again.check, again.cmd),
                (goal.prompt.clone(), goal.check.clone(), goal.cmd.clone()),
                "{one}"
            );
        }
        assert!(crate::goals_with_task(&text).contains("\n  - id: task-done\n"), "{text}");
    }
}

#[test]
fn whatever_a_goal_says_is_the_same_once_it_was_written_and_read() {
    for text in [
        "plain words",
        "No",
        "true",
        "Null",
        "off",
        "nan",
        "12",
        "1e3",
        ".5",
        "- list",
        "a: b",
        "a #b",
        "it's",
        "'quoted'",
        "\"double\"",
        "trailing ",
        " leading",
        "two\nlines\n",
        "no end\nof line",
        "\nfirst empty\n",
        "ends empty\n\n",
        "  indented\nfirst\n",
        "blank  \nat the end\n",
        "tab\tin it\nand more\n",
        "ünicode \u{2028} and \u{1f600}",
        "{a: b}",
        "[x]",
        "a\\b",
        "%x",
        "@x",
        "`x`",
        "!x",
        "&x",
        "*x",
        "|",
        ">",
        "?",
        "one\n\nthree\n",
        "cr\r\nlf\r\n",
    ] {
        let json = serde_json::json!({"goals": [{"id": "x", "type": "soft", "reviewer": "other", "prompt": text,
            "description": text, "paths": ["a/**", "it's"]}]});
        let goal = crate::goals(&json.to_string()).unwrap().remove(0);
        let merged = Merged { goals: vec![("m".to_owned(), goal)], ..Merged::default() };
        let written = merged.text(&[]);
        let again = crate::goals(&format!("goals:\n{written}"))
            .unwrap_or_else(|e| panic!("{text:?}: {e}\n{written}"))
            .remove(0);
        let said = (again.prompt.as_deref(), again.description.as_deref(), again.paths.len());
        assert_eq!(said, (Some(text), Some(text), 2), "{written}");
    }
}

/// All ids but this one.
fn without(merged: &Merged, id: &str) -> Vec<String> {
    merged.goals.iter().map(|(_, goal)| goal.id.to_string()).filter(|other| other != id).collect()
}

#[test]
fn a_stack_takes_the_largest_caps_and_they_get_into_the_configuration() {
    let merged = merged(&["audit-deep", "thorough"]);
    let config = load::load_config(&config_with_budget(CONFIG, merged.budget)).unwrap();
    assert_eq!(config.budget.max_iterations.map(std::num::NonZero::get), Some(200));
    let names: Vec<&str> = merged.applied.iter().map(|applied| applied.name.as_str()).collect();
    assert_eq!(names, ["audit", "audit-deep", "thorough"]);
    assert!(config_with_budget(CONFIG, merged.budget).contains("\n  max_runtime_s: 28800\n"));
    let gates = merged.goals.iter().filter(|(_, goal)| goal.r#type == GoalType::Hard).count();
    assert_eq!(merged.applied.iter().map(|applied| applied.gates.len()).sum::<usize>(), gates);
}

#[test]
fn a_mode_for_some_languages_refuses_the_others() {
    let home = Home::new();
    home.mode("py", "name: py\nlanguages: [python]\n", "goals: []\n");
    let library = home.library();
    let of = |language: &[&str]| {
        library.resolve(&["py".to_owned()], language).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!((of(&[]), of(&["python"])), (Ok(()), Ok(())));
    assert_eq!(of(&["python", "go"]).unwrap_err(), "the mode `py` is for python, not for go");
}
