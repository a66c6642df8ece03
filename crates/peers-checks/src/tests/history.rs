//! Checks of what commits did: dependencies, sizes of fixes, documents.

use super::World;
use crate::{Outcome, Verdict};

const PASS: Verdict = Verdict::Pass;
const FAIL: Verdict = Verdict::Fail;

fn messages(outcome: &Outcome) -> Vec<&str> {
    outcome.report.findings.iter().map(|finding| finding.message.as_str()).collect()
}

const REASON: &str = "the standard library cannot read this format";

#[test]
fn row_18_a_new_dependency_with_a_reason_passes_whatever_its_spelling() {
    let world = World::new();
    world.commit("tool", &[("pyproject.toml", "[project]\ndependencies = []\n[tool.x]\na = 1\n")]);
    assert_eq!(world.check("deps-justified").report.verdict, PASS);
    let message = format!("add\n\nDependency-Justification: pyyaml {REASON}\n");
    world.commit(&message, &[("pyproject.toml", "[project]\ndependencies = [\"PyYAML>=6\"]\n")]);
    let outcome = world.check("deps-justified");
    assert_eq!((outcome.report.verdict, outcome.report.counts["added"]), (PASS, 1));
}

#[test]
fn row_19_a_new_dependency_without_one_fails_and_is_named() {
    let world = World::new();
    let message = format!("add\n\nDependency-Justification: a: {REASON}\n");
    world.commit(&message, &[("package.json", "{\"dependencies\": {\"a\": \"1\", \"b\": \"1\"}}")]);
    assert_eq!(messages(&world.check("deps-justified")), ["`b` is new, and no commit says why"]);
    world.commit("why b\n\nDependency-Justification: b needed\n", &[]);
    assert_eq!(
        messages(&world.check("deps-justified")),
        ["`b` is new, and its reason has 6 characters, of 20"]
    );
    let world = World::new();
    world.commit("no newline", &[("requirements.txt", "flask")]);
    assert_eq!(world.check("deps-justified").report.verdict, FAIL);
    world.commit("broken", &[("Cargo.toml", "[dependencies\n")]);
    assert!(world.check("deps-justified").report.findings.iter().any(|f| f.kind == "unreadable"));
}

/// A manifest of each language with one dependency, what the name of it is, and the manifest without.
const MANIFESTS: [(&str, &str, &str, &str); 5] = [
    (
        "pyproject.toml",
        "[project]\ndependencies = []\n",
        "[project]\ndependencies = [\"Left_Pad>=1\"]\n",
        "left-pad",
    ),
    ("requirements.txt", "", "left-pad==1", "left-pad"),
    ("package.json", "{}", "{\"devDependencies\": {\"@a/left-pad\": \"1\"}}", "@a/left-pad"),
    ("Cargo.toml", "[dependencies]\n", "[dependencies]\nleft_pad = \"1\"", "left-pad"),
    ("go.mod", "module a\n", "module a\nrequire example.com/left-pad v1.0.0", "example.com/left-pad"),
];

#[test]
fn row_18_and_19_a_dependency_is_named_with_its_reason_in_each_language() {
    for (path, before, after, name) in MANIFESTS {
        let mut world = World::new();
        world.commit("before", &[(path, before)]);
        world.base_here();
        assert_eq!(world.check("deps-justified").report.verdict, PASS, "{path}");
        world.commit("add", &[(path, after)]);
        assert_eq!(world.check("deps-justified").report.verdict, FAIL, "{path}");
        world.commit(&format!("why another\n\nDependency-Justification: other {REASON}\n"), &[]);
        assert_eq!(world.check("deps-justified").report.verdict, FAIL, "{path}");
        world.commit(&format!("why\n\nDependency-Justification: {name} {REASON}\n"), &[]);
        assert_eq!(world.check("deps-justified").report.verdict, PASS, "{path}");
    }
}

#[test]
fn row_20_a_new_version_or_a_new_place_is_no_new_dependency() {
    for (path, before, after) in [
        ("package.json", "{\"dependencies\": {\"a\": \"1\"}}", "{\"devDependencies\": {\"a\": \"2\"}}"),
        ("Cargo.toml", "[dependencies]\na = \"1\"\n", "[dependencies]\na = { version = \"2\" }\n"),
        ("go.mod", "module x\nrequire example.com/a v1\n", "module x\nrequire (\n\texample.com/a v2\n)\n"),
        ("requirements.txt", "a==1\n", "a==2\n"),
    ] {
        let mut world = World::new();
        world.commit("before", &[(path, before)]);
        world.base_here();
        world.commit("after", &[(path, after)]);
        assert_eq!(world.check("deps-justified").report.verdict, PASS, "{path}");
    }
}

#[test]
fn deps_without_a_base_cannot_be_measured() {
    let world = World::new();
    let outcome = world.without_store("deps-justified");
    assert_eq!((outcome.report.verdict, outcome.exit_code()), (Verdict::Error, 3));
}

fn resolves(subject: &str) -> String {
    format!("{subject}\n\n{{\"status\": \"fixed\", \"note\": \"x\"}}\n\nBug-Resolves: BUG-1\nPeer: claude\n")
}

#[test]
fn row_26_a_fix_that_is_too_large_fails_in_one_file_and_over_several() {
    let lines = |n: usize| "x\n".repeat(n);
    let world = World::new();
    world.commit(&resolves("fix"), &[("a.py", &lines(250))]);
    assert_eq!(
        messages(&world.check("resolve-size")),
        ["250 lines in one commit that resolves a bug, of 200"]
    );
    let world = World::new();
    let each = lines(150);
    world.commit(&resolves("fix"), &[("a.py", &each), ("b.py", &each), ("c.py", &each)]);
    assert_eq!(messages(&world.check("resolve-size")), ["450 lines resolve BUG-1, of 400"]);
    let world = World::new();
    world.commit(&resolves("fix"), &[("a.py", &each), ("tests/test_a.py", &lines(300))]);
    assert_eq!(world.check("resolve-size").report.verdict, PASS);
}

#[test]
fn row_27_a_waiver_needs_a_reason_and_comes_after_the_fix() {
    let long = "the generated table must be replaced as a whole, in one piece";
    let waive = |id: &str, reason: &str| {
        format!("waive\n\n{{\"reason\": \"{reason}\"}}\n\nDiff-Size-Waive: {}:a.py\nPeer: codex\n", &id[..8])
    };
    let big = "x\n".repeat(250);
    let world = World::new();
    let fix = world.commit(&resolves("fix"), &[("a.py", &big)]);
    world.commit(&waive(fix.as_str(), "too short"), &[]);
    assert_eq!(world.check("resolve-size").report.verdict, FAIL);
    world.commit(&waive(fix.as_str(), long), &[]);
    assert_eq!(world.check("resolve-size").report.verdict, PASS);
    let later = world.commit(&resolves("again"), &[("a.py", "")]);
    assert_eq!(
        messages(&world.check("resolve-size")),
        ["250 lines in one commit that resolves a bug, of 200", "500 lines resolve BUG-1, of 400",]
    );
    assert_ne!(later, fix);
    assert_eq!(world.without_store("resolve-size").report.verdict, FAIL);
}

fn documents(of_each: &str) -> Vec<(&'static str, String)> {
    let section = |name: &str| format!("## {name}\n\n{of_each} {name}.\n\n");
    let document = |title: &str, names: &[&str]| {
        let body: String = names.iter().map(|name| section(name)).collect::<Vec<_>>().concat();
        format!("# {title}\n\n{body}{}\n", distinct(title))
    };
    vec![
        ("SPEC.md", document("Spec", &["Threat Model", "Invariants", "API"])),
        ("ARCHITECTURE.md", document("Architecture", &["Components", "Data Flow"])),
        ("DESIGN.md", document("Design", &["Decisions", "Tradeoffs"])),
    ]
}

/// Sentences none of which stands there twice.
fn distinct(title: &str) -> String {
    (0..15)
        .map(|n| format!("{title} says that part {n} does what number {n} needs.\n"))
        .collect::<Vec<_>>()
        .concat()
}

const SAID: &str = "What it is, why it is so, and what would break if it were not, for the part";

fn commit_all(world: &World, message: &str, files: &[(&'static str, String)]) {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    world.commit(message, &files);
}

#[test]
fn row_32_documents_that_are_missing_short_links_or_without_sections_fail() {
    let world = World::new();
    commit_all(&world, "docs", &documents(SAID));
    for check in ["docs-present", "docs-sections"] {
        assert_eq!(world.check(check).report.verdict, PASS, "{:?}", world.check(check));
    }
    world.commit("short", &[("SPEC.md", &"x".repeat(499))]);
    assert_eq!(messages(&world.check("docs-present")), ["has 499 bytes, of 500"]);
    assert_eq!(messages(&world.check("docs-sections"))[0], "has no section `## Threat Model`");
    std::fs::remove_file(world.work.join("SPEC.md")).unwrap();
    std::os::unix::fs::symlink("DESIGN.md", world.work.join("SPEC.md")).unwrap();
    world.commit("link", &[]);
    assert_eq!(messages(&world.check("docs-present")), ["is not a regular file"]);
    std::fs::remove_file(world.work.join("SPEC.md")).unwrap();
    commit_all(&world, "thin", &documents("x"));
    assert!(
        messages(&world.check("docs-sections")).iter().all(|message| message.contains(" characters, of 50"))
    );
    let padded = "The same sentence stands here again and again.\n".repeat(20);
    world.commit("padded", &[("DESIGN.md", &padded)]);
    assert!(
        messages(&world.check("docs-present")).iter().any(|message| message.contains("stand there already"))
    );
}

#[test]
fn row_33_documents_converge_by_small_changes_of_each_peer() {
    let touch = |world: &mut World, peer: &str, text: &str| {
        let spec = std::fs::read_to_string(world.work.join("SPEC.md")).unwrap();
        world.turn_with(peer, "touch", &[("SPEC.md", &(spec + text))]);
    };
    let mut world = World::running();
    commit_all(&world, "docs", &documents(SAID));
    touch(&mut world, "claude", "One more.\n");
    assert_eq!(world.check("docs-converged").report.verdict, FAIL);
    touch(&mut world, "claude", "And another.\n");
    assert_eq!(world.check("docs-converged").report.verdict, FAIL, "two of one peer are one");
    touch(&mut world, "codex", "Agreed.\n");
    assert_eq!(world.check("docs-converged").report.verdict, PASS);
    touch(&mut world, "claude", "## New\n\nA section.\n");
    assert_eq!(messages(&world.check("docs-converged")), ["this change to the documents adds a section"]);
    world.turn_with("codex", "cut", &[("SPEC.md", "# Spec\n")]);
    assert!(messages(&world.check("docs-converged"))[0].contains("lines away"));
}
