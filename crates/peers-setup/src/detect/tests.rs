//! Tests of `detect`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use peers_core::dsl::{Evidence, Expr};
use peers_model::GoalId;
use peers_model::goal::{GateRun, Goal, GoalKind, HardGoal};
use peers_store::load;
use peers_sys::dir::SafeDir;
use tempfile::TempDir;

use super::{Detected, Proposal, commented, detect, entries};

fn tree(files: &[(&str, &str)]) -> TempDir {
    let tmp = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(tmp.path(), path, text);
    }
    tmp
}

fn put(top: &Path, path: &str, text: &str) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn look(tmp: &TempDir) -> Detected {
    detect(&SafeDir::open_shared(tmp.path()).unwrap(), &[])
}

fn found(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let proposals = look(&tree(files)).proposals;
    proposals.into_iter().map(|proposal| (proposal.id, proposal.cmd)).collect()
}

fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(id, cmd)| ((*id).to_owned(), (*cmd).to_owned())).collect()
}

const NPM: &str =
    r#"{"scripts": {"test": "vitest run", "lint": "eslint ."}, "devDependencies": {"vitest": "1"}}"#;

#[test]
fn nothing_is_proposed_where_nothing_is() {
    assert_eq!(look(&tree(&[("README.md", "# x\n"), ("src/main.c", "")])), Detected::default());
}

#[test]
fn a_cargo_workspace_is_tested_as_a_whole() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"),
        ("Cargo.lock", ""),
        ("a/Cargo.toml", "[package]\nname = \"a\"\n"),
        ("rustfmt.toml", ""),
    ];
    assert_eq!(
        found(&files),
        rows(&[
            ("tests-pass", "cargo test --workspace --locked"),
            ("lint-clean", "cargo clippy --workspace --all-targets --locked -- -D warnings"),
            ("format-clean", "cargo fmt --all --check"),
        ])
    );
}

#[test]
fn a_lock_file_that_no_checkout_has_is_not_asked_for() {
    let files = [("Cargo.toml", "[package]\n"), ("Cargo.lock", ""), (".gitignore", "/target\nCargo.lock\n")];
    assert_eq!(found(&files).first().unwrap().1, "cargo test");
}

#[test]
fn a_script_is_proposed_only_where_it_is_one() {
    let npm = |test: &str| format!(r#"{{"scripts": {{"test": {test}}}}}"#);
    for test in [
        r#""echo \"Error: no test specified\" && exit 1""#,
        r#""""#,
        r#""jest || true""#,
        r#""echo ok""#,
        "7",
        "null",
        "[\"x\"]",
    ] {
        assert_eq!(found(&[("package.json", &npm(test))]), rows(&[]), "{test}");
    }
    assert_eq!(found(&[("package.json", &npm("\"jest\""))]), rows(&[("tests-pass", "npm test")]));
}

#[test]
fn the_lock_file_says_who_runs_scripts_and_no_gate_installs() {
    for (lock, test, lint) in [
        ("package-lock.json", "npm test", "npm run lint"),
        ("pnpm-lock.yaml", "pnpm test", "pnpm run lint"),
        ("yarn.lock", "yarn test", "yarn run lint"),
        ("bun.lock", "bun run test", "bun run lint"),
    ] {
        let wanted = rows(&[("tests-pass", test), ("lint-clean", lint)]);
        assert_eq!(found(&[("package.json", NPM), (lock, "")]), wanted, "{lock}");
    }
}

#[test]
fn types_are_checked_where_typescript_is_a_dependency() {
    let package = r#"{"devDependencies": {"typescript": "5"}}"#;
    assert_eq!(found(&[("package.json", package)]), rows(&[]));
    let files = [("package.json", package), ("tsconfig.json", "{}"), ("package-lock.json", "{}")];
    assert_eq!(found(&files), rows(&[("types-check", "npx --no-install tsc --noEmit")]));
}

#[test]
fn the_parts_of_a_workspace_are_run_from_its_root() {
    let root = r#"{"workspaces": ["packages/*"]}"#;
    let files = [("package.json", root), ("package-lock.json", "{}"), ("packages/a/package.json", NPM)];
    assert_eq!(
        found(&files),
        rows(&[
            ("tests-pass", "npm run test --workspaces --if-present"),
            ("lint-clean", "npm run lint --workspaces --if-present"),
        ])
    );
}

#[test]
fn python_is_tested_by_what_it_is_set_up_with() {
    let ini = "[tool.pytest.ini_options]\n";
    assert_eq!(found(&[("pyproject.toml", ini)]), rows(&[("tests-pass", "python3 -m pytest")]));
    assert_eq!(found(&[("pyproject.toml", "[project]\nname = 'x'\n")]), rows(&[]));
    let tests = [("pyproject.toml", "[project]\n"), ("tests/unit/test_x.py", "def test_x():\n    pass\n")];
    assert_eq!(found(&tests), rows(&[("tests-pass", "python3 -m pytest")]));
    let venv = [("pyproject.toml", ini), (".venv/pyvenv.cfg", "")];
    assert_eq!(found(&venv), rows(&[("tests-pass", ".venv/bin/python -m pytest")]));
    let uv = [("pyproject.toml", ini), ("uv.lock", "")];
    assert_eq!(found(&uv), rows(&[("tests-pass", "uv run --frozen pytest")]));
    let poetry = [("pyproject.toml", "[tool.poetry]\n[tool.pytest.ini_options]\n[tool.ruff.lint]\n")];
    assert_eq!(
        found(&poetry),
        rows(&[("tests-pass", "poetry run pytest"), ("lint-clean", "poetry run ruff check ."),])
    );
    let tox = [("tox.ini", "[tox]\nenv_list = py3\n"), ("setup.py", "")];
    assert_eq!(found(&tox), rows(&[("tests-pass", "tox")]));
    let loose = [("requirements.txt", "flask\npytest==8\n"), ("docs/requirements.txt", "pytest\n")];
    assert_eq!(found(&loose), rows(&[("tests-pass", "python3 -m pytest")]));
}

const UNITTEST: &str =
    "import unittest\n\nclass X(unittest.TestCase):\n    def test_x(self):\n        pass\n";

#[test]
fn python_is_tested_by_unittest_where_nothing_says_that_it_uses_pytest() {
    let test = ("tests/test_x.py", UNITTEST);
    let of = |more: &[(&str, &str)]| found(&[&[("setup.py", "")], more].concat());
    let within = rows(&[("tests-pass", "python3 -m unittest discover -s tests")]);
    let pytest = rows(&[("tests-pass", "python3 -m pytest")]);
    assert_eq!(of(&[test]), within);
    assert_eq!(
        of(&[test, ("tests/__init__.py", "")]),
        rows(&[("tests-pass", "python3 -m unittest discover")])
    );
    assert_eq!(
        of(&[test, ("uv.lock", "")]),
        rows(&[("tests-pass", "uv run --frozen python -m unittest discover -s tests")])
    );
    for said in [
        ("pyproject.toml", "[project.optional-dependencies]\ntest = ['pytest>=8']\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("tox.ini", "[pytest]\n"),
        ("requirements-test.txt", "pytest\n"),
        ("conftest.py", ""),
        ("tests/conftest.py", ""),
        ("tests/test_y.py", "from unittest import mock\nimport pytest\n"),
        ("tests/test_y.py", "from unittest import mock\n\ndef test_y():\n    pass\n"),
    ] {
        assert_eq!(of(&[test, said]), pytest, "{said:?}");
    }
    // What unittest does not find, or what is none of its tests.
    for other in [
        ("tests/unit/test_x.py", UNITTEST),
        ("tests/x_test.py", UNITTEST),
        ("tests/test_x.py", "import unittest_data\n# no TestCase\n"),
        ("tests/test_x.py", ""),
    ] {
        assert_eq!(of(&[other]), rows(&[]), "{other:?}");
    }
    let nested = [("tests/unit/test_x.py", UNITTEST), ("tests/unit/__init__.py", "")];
    assert_eq!(of(&nested), within);
}

#[test]
fn unittest_is_not_green_where_no_test_ran() {
    let proposals = look(&tree(&[("setup.py", ""), ("tests/test_x.py", UNITTEST)])).proposals;
    let pass_when = Expr::parse(&proposals[0].pass_when).unwrap();
    let green = |stderr: &str| {
        let evidence = Evidence {
            exit_code: 0,
            signal: None,
            timed_out: false,
            stdout: "",
            stderr,
            json: &|_| Err(String::new()),
        };
        pass_when.eval(&evidence).unwrap()
    };
    assert!(green("..\n----\nRan 2 tests in 0.000s\n\nOK\n") && green("Ran 1 test in 0.1s\n"));
    assert!(!green("Ran 0 tests in 0.000s\n\nOK\n"));
}

#[test]
fn pytest_is_not_green_where_every_test_is_skipped() {
    let proposals = look(&tree(&[("pytest.ini", "[pytest]\n")])).proposals;
    let pass_when = Expr::parse(&proposals[0].pass_when).unwrap();
    let green = |stdout: &str| {
        let evidence = Evidence {
            exit_code: 0,
            signal: None,
            timed_out: false,
            stdout,
            stderr: "",
            json: &|_| Err(String::new()),
        };
        pass_when.eval(&evidence).unwrap()
    };
    assert!(green("== 3 passed, 1 skipped in 0.02s ==\n") && green("10 passed in 1s\n"));
    assert!(!green("== 1 skipped in 0.01s ==\n") && !green("1 xpassed in 0.01s\n"));
}

#[test]
fn go_and_make_are_found() {
    let files =
        [("go.mod", "module x\n"), ("Makefile", ".PHONY: test\nall:\n\tgo build\ntest: all\n\tgo test\n")];
    assert_eq!(
        found(&files),
        rows(&[
            ("tests-pass", "go test ./..."),
            ("lint-clean", "go vet ./..."),
            ("tests-pass-make", "make test")
        ])
    );
    for text in ["test := x\n", "test = x: y\n", ".PHONY: test\n", "\ttest: x\n", "tests: x\n", "# test: x\n"]
    {
        assert_eq!(found(&[("Makefile", text)]), rows(&[]), "{text}");
    }
}

#[test]
fn several_stacks_are_found_three_directories_deep_with_ids_of_their_own() {
    let files = [
        ("Cargo.toml", "[package]\n"),
        ("web/package.json", NPM),
        ("a/b/c/go.mod", "module x\n"),
        ("a/b/c/d/go.mod", "module y\n"),
        ("node_modules/x/package.json", NPM),
        ("vendor/x/go.mod", "module z\n"),
        (".hidden/go.mod", "module z\n"),
        ("target/package.json", NPM),
    ];
    let ids: Vec<String> = found(&files).into_iter().map(|(id, _)| id).collect();
    assert_eq!(
        ids,
        [
            "tests-pass",
            "lint-clean",
            "tests-pass-web",
            "lint-clean-web",
            "tests-pass-a-b-c",
            "lint-clean-a-b-c"
        ]
    );
    let tmp = tree(&files);
    let gate = |id: &str, cmd: &str| Goal {
        id: GoalId::new(id).unwrap(),
        description: None,
        group: None,
        weight: 1,
        kind: GoalKind::Hard(HardGoal::new(GateRun::Shell {
            cmd: cmd.to_owned(),
            pass_when: "exit_code == 0".to_owned(),
        })),
    };
    let taken = [gate("tests-pass", "other")];
    let found = detect(&SafeDir::open_shared(tmp.path()).unwrap(), &taken);
    assert_eq!(found.proposals.first().unwrap().id, "tests-pass-rust");
    assert_eq!(found.proposals.get(2).unwrap().cmd, "cd web && npm test");
    assert_eq!(found.proposals.get(2).unwrap().why, "web/package.json");
}

#[test]
fn links_and_what_is_too_large_or_no_manifest_are_not_read() {
    let outside = tree(&[("go.mod", "module x\n"), ("package.json", NPM)]);
    let tmp = tempfile::tempdir().unwrap();
    symlink(outside.path().join("go.mod"), tmp.path().join("go.mod")).unwrap();
    symlink(outside.path().join("package.json"), tmp.path().join("package.json")).unwrap();
    symlink(outside.path(), tmp.path().join("linked")).unwrap();
    symlink(".", tmp.path().join("round")).unwrap();
    put(tmp.path(), "big/package.json", &format!("{{\"x\": \"{}\"}}", "y".repeat(1_100_000)));
    put(tmp.path(), "deep/package.json", &"[".repeat(100_000));
    put(tmp.path(), "list/package.json", "[1]");
    fs::write(tmp.path().join("list/Cargo.toml"), b"\xff\xfe[package\n").unwrap();
    fs::create_dir_all(tmp.path().join("dir/package.json/go.mod")).unwrap();
    let found = look(&tmp);
    assert_eq!(found.proposals, Vec::<Proposal>::new());
    for told in ["package.json was not read", "big/package.json", "deep/package.json", "list/package.json"] {
        assert!(
            found.notes.iter().map(ToString::to_string).any(|note| note.contains(told)),
            "{told}: {:?}",
            found.notes
        );
    }
}

#[test]
fn names_inject_nothing_into_the_shell_the_yaml_or_the_terminal() {
    let names =
        ["it's", "a\"b", "x: y # z", "$(reboot)", "-rf", "ü", "line\nbreak", "esc\u{1b}[31m", "{a}", "%0"];
    let tmp = tempfile::tempdir().unwrap();
    for name in names {
        put(tmp.path(), &format!("{name}/go.mod"), "module x\n");
    }
    let found = look(&tmp);
    assert_eq!(found.proposals.len(), 2 * (names.len() - 2));
    assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
    let text = entries(&found.proposals);
    assert!(text.bytes().all(|b| b == b'\n' || (b' '..=b'~').contains(&b)), "{text}");
    let goals = load::load_goals(&format!("goals:\n{text}"), 2, &[]).unwrap_or_else(|e| panic!("{e}"));
    for (goal, proposal) in goals.iter().zip(&found.proposals) {
        let GoalKind::Hard(HardGoal { run: GateRun::Shell { cmd, .. }, .. }) = &goal.kind else { panic!() };
        assert_eq!(cmd, &proposal.cmd);
        let words = cmd.split(" && ").next().unwrap().strip_prefix("cd ").unwrap().to_owned();
        let said = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("printf %s {words}")])
            .output()
            .unwrap();
        let dir = String::from_utf8(said.stdout).unwrap();
        let dir = dir.strip_prefix("./").unwrap_or(&dir).to_owned();
        assert_eq!(format!("{dir}/go.mod"), proposal.why);
    }
    let comments = commented(&found.proposals);
    assert!(comments.lines().all(|line| line.starts_with("  # ")), "{comments}");
    let all = load::load_goals(&peers_modes::goals_with(&comments), 2, &["self-review", "bug-ledger"]);
    assert_eq!(all.unwrap_or_else(|e| panic!("{e}")).len(), 6);
}

#[test]
fn what_is_proposed_is_valid_and_nothing_to_warn_of() {
    let tmp = tree(&[
        ("Cargo.toml", "[package]\n"),
        ("go.mod", "module x\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n"),
        ("package.json", NPM),
        ("mocha/package.json", r#"{"scripts": {"test": "mocha"}}"#),
        ("tap/package.json", r#"{"scripts": {"test": "node --test"}}"#),
        ("none/package.json", r#"{"scripts": {"test": "jest --passWithNoTests"}}"#),
        ("Makefile", "test:\n\ttrue\n"),
    ]);
    let proposals = look(&tmp).proposals;
    assert_eq!(proposals.len(), 12, "{proposals:?}");
    let text = entries(&proposals);
    let goals = load::load_goals(&format!("goals:\n{text}"), 2, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(load::goal_warnings(&goals), Vec::<String>::new());
    // As comments they are the same, once the signs are gone.
    let bare: String = commented(&proposals)
        .lines()
        .flat_map(|line| [line.replacen("# ", "", 1), "\n".to_owned()])
        .collect();
    let bare = bare
        .lines()
        .filter(|line| !line.trim_start().starts_with("From "))
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(load::load_goals(&format!("goals:\n{bare}"), 2, &[]).unwrap_or_else(|e| panic!("{e}")), goals);
}

#[test]
fn a_run_of_no_tests_is_red_where_the_tool_tells() {
    let judge = |files: &[(&str, &str)], stdout: &str, stderr: &str| {
        let proposals = look(&tree(files)).proposals;
        let expr = Expr::parse(&proposals.first().unwrap().pass_when).unwrap();
        let none = |_: &str| Err("no file".to_owned());
        expr.eval(&Evidence { exit_code: 0, signal: None, timed_out: false, stdout, stderr, json: &none })
            .unwrap()
    };
    let cargo = [("Cargo.toml", "[package]\n")];
    let line = |n: u32| format!("\nrunning {n} tests\n\ntest result: ok. {n} passed; 0 failed; 0 ignored\n");
    assert!(!judge(&cargo, &line(0), "") && !judge(&cargo, "", ""));
    assert!(judge(&cargo, &format!("{}{}", line(0), line(12)), ""));
    let go = [("go.mod", "module x\n")];
    assert!(!judge(&go, "?   \tx\t[no test files]\n", ""));
    assert!(!judge(&go, "ok  \tx\t0.003s [no tests to run]\nok  \ty\t(cached) [no tests to run]\n", ""));
    assert!(judge(&go, "?   \tx\t[no test files]\nok  \tx/y\t0.003s\n", ""));
    assert!(judge(&go, "ok  \tx/y\t(cached)\n", ""));
    let npm = |test: &str| format!(r#"{{"scripts": {{"test": "{test}"}}}}"#);
    let mocha = npm("mocha --recursive");
    assert!(!judge(&[("package.json", &mocha)], "\n  0 passing (1ms)\n", ""));
    assert!(judge(&[("package.json", &mocha)], "\n  10 passing (4ms)\n", ""));
    let tap = npm("node --test");
    assert!(!judge(&[("package.json", &tap)], "# tests 0\n# pass 0\n", ""));
    assert!(
        judge(&[("package.json", &tap)], "# tests 3\n# pass 3\n", "")
            && judge(&[("package.json", &tap)], "\u{2139} pass 3\n", "")
    );
    let jest = npm("jest --passWithNoTests");
    assert!(!judge(&[("package.json", &jest)], "No tests found, exiting with code 0\n", ""));
    assert!(judge(&[("package.json", &jest)], "", "Tests:       3 passed, 3 total\n"));
}

#[test]
fn what_stands_in_the_goals_is_named_and_not_proposed_again() {
    let tmp = tree(&[("Cargo.toml", "[package]\nname = \"a\"\n"), ("Cargo.lock", "")]);
    let work = SafeDir::open_shared(tmp.path()).unwrap();
    let first = detect(&work, &[]).proposals;
    assert!(first.len() > 1, "{first:?}");
    let goals: Vec<Goal> = first
        .iter()
        .map(|proposal| {
            let (cmd, pass_when) = (proposal.cmd.clone(), format!(" {}\n", proposal.pass_when));
            let kind = GoalKind::Hard(HardGoal::new(GateRun::Shell { cmd, pass_when }));
            let id = GoalId::new(proposal.id.as_str()).unwrap();
            Goal { id, description: None, group: None, weight: 1, kind }
        })
        .collect();
    let all = detect(&work, &goals);
    assert_eq!((all.proposals.as_slice(), all.there.len()), (&[][..], goals.len()));
    let rest = detect(&work, &goals[..1]);
    assert_eq!(rest.proposals.len(), first.len() - 1);
    assert_eq!(rest.there.into_iter().collect::<Vec<_>>(), ["tests-pass"]);
}

#[test]
fn the_usual_gates_of_each_language_can_be_taken_over() {
    for language in super::Language::ALL {
        let proposals = super::usual(language);
        assert_eq!(proposals.len(), 1, "{language:?}");
        let text = entries(&proposals);
        let goals = load::load_goals(&format!("goals:\n{text}"), 2, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(goals.len(), 1);
        let whole = peers_modes::goals_with(&commented(&proposals));
        assert!(whole.contains(proposals[0].cmd.as_str()), "{whole}");
        load::load_goals(&whole, 2, &["self-review", "bug-ledger"]).unwrap_or_else(|e| panic!("{e}"));
    }
}
