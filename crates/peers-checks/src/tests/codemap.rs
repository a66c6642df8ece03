//! The map of the public surface, in each language.

use super::World;
use crate::Verdict::{Fail, Pass};
use crate::codemap::{AGENTS, MAP, Outlines, Refreshed, agents, refresh};
use crate::{CouldNot, Outcome, Verdict};

const SUMMARY: &str = "Adds two prices and rounds the sum to cents";

/// A source with a public function of two parameters, and what it is called.
const SOURCES: [(&str, &str, &str); 5] = [
    ("shop/price.py", "def total(a, b):\n    return a + b\n", "shop.price.total"),
    ("src/price.js", "export function total(a, b) {\n  return a + b;\n}\n", "price.total"),
    (
        "src/price.ts",
        "export function total(a: number, b: number): number {\n  return a + b;\n}\n",
        "price.total",
    ),
    ("src/price.rs", "pub fn total(a: u8, b: u8) -> u8 {\n    a + b\n}\n", "price.total"),
    (
        "price/price.go",
        "package price\n\nfunc Total(a int, b int) int {\n\treturn a + b\n}\n",
        "price.price.Total",
    ),
];

fn refreshed(world: &World, before: Option<&str>) -> Result<Refreshed, CouldNot> {
    refresh(&world.cx(), before, &mut Outlines::default())
}

/// A project with a source and a map that is true and has summaries.
fn mapped(path: &str, text: &str) -> (World, String) {
    let world = World::new();
    world.commit("source", &[(path, text)]);
    let made = refreshed(&world, None).unwrap();
    assert!(made.unreadable.is_empty() && made.blank == made.entries, "{made:?}");
    let map = made.text.replace("summary: \"\"", &format!("summary: \"{SUMMARY}\""));
    world.commit("map", &[(MAP, &map)]);
    (world, map)
}

fn verdict(world: &World, check: &str) -> Verdict {
    world.check(check).report.verdict
}

fn kinds(outcome: &Outcome) -> Vec<&'static str> {
    outcome.report.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn row_34_each_entry_is_there_of_its_kind_in_its_file_at_its_line() {
    for (path, text, id) in SOURCES {
        let (world, map) = mapped(path, text);
        assert_eq!(verdict(&world, "codemap-grounded"), Pass, "{path}");
        let line = if text.starts_with("package") { 3 } else { 1 };
        let at = |was: &str, is: &str| {
            assert!(map.contains(was), "{was}: {map}");
            world.commit("edited", &[(MAP, &map.replace(was, is))]);
            kinds(&world.check("codemap-grounded"))
        };
        assert_eq!(at("kind: function", "kind: class"), ["kind"], "{path}");
        assert_eq!(at(&format!("\"{id}\""), "\"shop.invented\""), ["unknown"], "{path}");
        for bad in ["/etc/passwd", "../x"] {
            assert_eq!(at(&format!("\"{path}\""), &format!("\"{bad}\"")), ["file", "file"], "{path}");
        }
        let wrong = format!("kind: function\n  file: \"{path}\"\n  line: {line}");
        assert_eq!(at(&wrong, &wrong.replace(&format!("line: {line}"), "line: 7")), ["line"], "{path}");
        // What moved is put right, and its summary stays.
        world.commit("wrong", &[(MAP, &map.replace("line: 3", "line: 7").replace("line: 1", "line: 9"))]);
        let text = std::fs::read_to_string(world.work.join(MAP)).unwrap();
        let again = refreshed(&world, Some(&text)).unwrap();
        assert_eq!((again.text.as_str(), again.blank, again.stale.len()), (map.as_str(), 0, 0), "{path}");
    }
}

#[test]
fn row_35_parameters_agree_and_nothing_public_is_left_out() {
    for (path, text, id) in SOURCES {
        let (world, map) = mapped(path, text);
        for check in ["codemap-signatures", "codemap-complete"] {
            assert_eq!(verdict(&world, check), Pass, "{check} {path}");
        }
        // As people write it: with types and defaults.
        let typed = map.replace("(a, b)", "(a: int, b: Map<x, y> = {1, 2})");
        world.commit("typed", &[(MAP, &typed)]);
        assert_eq!(verdict(&world, "codemap-signatures"), Pass, "{path}");
        for (is, due) in [("(a, c)", Fail), ("(a, b, c)", Fail), ("(b, a)", Fail)] {
            world.commit("signature", &[(MAP, &map.replace("(a, b)", is))]);
            assert_eq!(verdict(&world, "codemap-signatures"), due, "{path} {is}");
        }
        let unknown = map.replace(&format!("\"{id}\""), "\"gone\"");
        world.commit("gone", &[(MAP, &unknown)]);
        assert_eq!(verdict(&world, "codemap-signatures"), Pass, "{path}: told by another check");
        assert_eq!(kinds(&world.check("codemap-complete")), ["missing"], "{path}");
        world.commit("broken", &[(MAP, &map), (path, "(((((")]);
        assert!(kinds(&world.check("codemap-complete")).contains(&"unreadable"), "{path}");
    }
    let (world, map) = mapped(SOURCES[0].0, SOURCES[0].1);
    world.commit("more", &[(SOURCES[0].0, "def total(a, c):\n    return a\n")]);
    assert_eq!(refreshed(&world, Some(&map)).unwrap().stale, ["shop.price.total"]);
}

#[test]
fn row_21_a_name_that_goes_or_changes_is_announced() {
    for (path, text, id) in SOURCES {
        let mut world = World::new();
        world.commit("source", &[(path, text)]);
        world.base_here();
        assert_eq!(verdict(&world, "api-stable"), Pass, "{path}");
        let fewer = text
            .replace(", b: u8", "")
            .replace(", b: number", "")
            .replace(", b int", "")
            .replace(", b)", ")");
        let other = text.replace("total", "sum").replace("Total", "Sum");
        for (now, due) in [(fewer, vec!["changed"]), (other, vec!["removed", "added"])] {
            world.commit("change", &[(path, &now)]);
            assert_eq!(kinds(&world.check("api-stable")), due, "{path}: {now}");
        }
        let allowed = world.check_with("api-stable", &["--additions", "allow"]);
        assert_eq!(kinds(&allowed), ["removed"], "{path}");
        let name = id.rsplit('.').next().unwrap();
        world.commit(&format!("Say so\n\nBreaking-API: {id}: no\n"), &[]);
        assert_eq!(kinds(&world.check("api-stable")).len(), 2, "{path}: that says nothing");
        world.commit(&format!("Say so\n\nBreaking-API: {name}: call sum instead of it\n"), &[]);
        assert_eq!(kinds(&world.check("api-stable")), ["added"], "{path}");
    }
}

#[test]
fn row_21_files_with_the_same_bytes_and_files_that_nobody_could_read_before_change_nothing() {
    let mut world = World::new();
    let empty = ("a/__init__.py", "");
    world.commit("source", &[empty, ("b/__init__.py", ""), ("b/odd.py", "x = = 1\n")]);
    world.base_here();
    let report = world.check("api-stable").report;
    assert_eq!((report.verdict, report.notes.len()), (Pass, 1), "{report:?}");
    world.commit("broken", &[("b/__init__.py", "x = = 1\n")]);
    assert_eq!(kinds(&world.check("api-stable")), ["unreadable"]);
}

#[test]
fn row_22_without_a_base_the_surface_of_before_is_not_known() {
    let world = World::new();
    world.commit("source", &[(SOURCES[0].0, SOURCES[0].1)]);
    assert_eq!(world.without_store("api-stable").report.verdict, Verdict::Error);
}

#[test]
fn row_36_a_summary_says_something() {
    let (world, map) = mapped(SOURCES[0].0, SOURCES[0].1);
    assert_eq!(verdict(&world, "codemap-summaries"), Pass);
    for bad in
        ["", " ", "TBD", "ok", "todo: write this summary for it", "the shop price of the shop price", "..."]
    {
        world.commit("summary", &[(MAP, &map.replacen(SUMMARY, bad, 1))]);
        assert_eq!(kinds(&world.check("codemap-summaries")), ["summary"], "{bad}");
    }
}

#[test]
fn a_map_that_is_none_fails_and_never_passes_silently() {
    let (world, map) = mapped(SOURCES[0].0, SOURCES[0].1);
    let deep = format!("entries: {}1{}\n", "[".repeat(5000), "]".repeat(5000));
    for bad in [
        "",
        "entries: 3\n",
        deep.as_str(),
        &map.replace("line: 1", "line: true"),
        &map.replace("line: 1", "line: 1.5"),
        &map.replace("line: 1", "line: \"1\""),
        &format!("{map}{}", map.trim_start_matches("entries:\n")),
        "entries: &a [*a]\n",
    ] {
        world.commit("bad", &[(MAP, bad)]);
        for check in ["codemap-grounded", "codemap-summaries", "agents-in-sync", "architecture-grounded"] {
            assert_eq!(verdict(&world, check), Fail, "{check} {bad:.40}");
        }
        assert!(refreshed(&world, Some(bad)).is_err(), "{bad:.40}");
    }
    std::fs::remove_file(world.work.join(MAP)).unwrap();
    std::os::unix::fs::symlink("a.txt", world.work.join(MAP)).unwrap();
    world.commit("link", &[]);
    assert_eq!(verdict(&world, "codemap-grounded"), Fail);
    let empty = World::new();
    empty.commit("map", &[(MAP, "entries: []\n")]);
    assert_eq!(verdict(&empty, "codemap-complete"), Fail);
}

#[test]
fn row_37_the_text_for_agents_is_what_the_map_gives() {
    let (world, map) = mapped(SOURCES[0].0, SOURCES[0].1);
    assert_eq!(verdict(&world, "agents-in-sync"), Fail);
    let due = agents(&map).unwrap();
    assert!(due.contains(&format!("- `total(a, b)` — {SUMMARY}\n")), "{due}");
    world.commit("agents", &[(AGENTS, &due)]);
    assert_eq!(verdict(&world, "agents-in-sync"), Pass);
    for bad in [due.replace('\n', "\r\n"), due.replace("cents", "euros"), format!("{due}more\n")] {
        world.commit("edited", &[(AGENTS, &bad)]);
        assert_eq!(verdict(&world, "agents-in-sync"), Fail);
    }
}

#[test]
fn row_38_what_the_architecture_names_is_there_and_each_subsystem_is_named() {
    let (world, _) = mapped(SOURCES[0].0, SOURCES[0].1);
    for (text, due) in [
        ("# A\n\nPrices are added by [[shop.price.total]].\n", Pass),
        ("# A\n\n```\n[[shop.price.total]]\n```\n", Fail),
        ("# A\n\n[[shop.price]] and [[shop.gone]].\n", Fail),
        ("# A\n\n[[shop.price]]\n\nTODO\n", Fail),
    ] {
        world.commit("document", &[("ARCHITECTURE.md", text)]);
        assert_eq!(verdict(&world, "architecture-grounded"), due, "{text}");
    }
    std::fs::remove_file(world.work.join("ARCHITECTURE.md")).unwrap();
    std::os::unix::fs::symlink("a.txt", world.work.join("ARCHITECTURE.md")).unwrap();
    world.commit("link", &[]);
    assert_eq!(verdict(&world, "architecture-grounded"), Fail);
}
