//! Cheats that are seen and honest work that is not, one table of each for each language.

use std::collections::BTreeSet;

use peers_model::weakening::{Weakened, Weakening};

use super::{ChangedFile, Side, weaker};

mod go;
mod javascript;
mod places;
mod python;
mod rust;
mod settings;

/// What was done, before and after. A line `=== PATH` begins another file; without one all of it is the usual file.
type Row = (&'static str, &'static str, &'static str);

fn files<'t>(usual: &'t str, text: &'t str) -> Vec<(&'t str, &'t str)> {
    if !text.starts_with("=== ") {
        return vec![(usual, text)];
    }
    text.split("=== ").skip(1).filter_map(|part| part.split_once('\n')).collect()
}

fn changed(path: &str, before: Option<&str>, after: Option<&str>) -> ChangedFile {
    let side = |text: Option<&str>| text.map_or(Side::Absent, |text| Side::Text(text.to_owned()));
    ChangedFile { path: path.to_owned(), before: side(before), after: side(after), told: false }
}

fn text_of<'t>(files: &[(&str, &'t str)], wanted: &str) -> Option<&'t str> {
    files.iter().find(|(path, _)| *path == wanted).map(|(_, text)| *text)
}

fn found(usual: &str, before: &str, after: &str) -> Vec<Weakening> {
    let (before, after) = (files(usual, before), files(usual, after));
    let paths: BTreeSet<&str> = before.iter().chain(&after).map(|(path, _)| *path).collect();
    let all: Vec<ChangedFile> =
        paths.into_iter().map(|path| changed(path, text_of(&before, path), text_of(&after, path))).collect();
    weaker(&all).found
}

/// All rows at once, so that one run tells all that is wrong.
#[track_caller]
fn table(usual: &str, cheats: &[Row], honest: &[Row]) {
    let mut wrong = Vec::new();
    for (what, before, after) in cheats {
        if found(usual, before, after).is_empty() {
            wrong.push(format!("not seen: {what}"));
        }
        assert_eq!(found(usual, before, before), [], "unchanged: {what}");
    }
    for (what, before, after) in honest {
        let seen = found(usual, before, after);
        if !seen.is_empty() {
            wrong.push(format!("seen: {what}: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cheats.len() >= 12 && honest.len() >= 13, "{} cheats, {} honest", cheats.len(), honest.len());
}

#[test]
fn what_is_weaker_is_counted_by_its_kind() {
    let two = "def test_a():\n    assert f() == 1\n    assert g() == 2\n\n\ndef test_b():\n    assert h()\n";
    for (after, due) in [
        ("def test_a():\n    assert f() == 1\n    assert g() == 2\n", Weakened::Tests { lost: 1 }),
        (
            "def test_a():\n    assert f() == 1\n\n\ndef test_b():\n    assert h()\n",
            Weakened::Assertions { lost: 1 },
        ),
        (
            "def test_a():\n    assert f() == 1\n    assert g()\n\n\ndef test_b():\n    assert h()\n",
            Weakened::Looser { lost: 1 },
        ),
        ("def test_a(:\n", Weakened::Unreadable),
    ] {
        assert_eq!(found("tests/test_a.py", two, after), [due.at("tests/test_a.py")], "{after}");
    }
}
