//! Cheats that are seen and honest work that is not, one table of each for each language.

use super::{ChangedText, Weaker, weaker};

mod go;
mod javascript;
mod python;
mod rust;

/// What was done, before and after. A line `=== PATH` begins another file; without one all of it is the usual file.
type Row = (&'static str, &'static str, &'static str);

fn files<'t>(usual: &'t str, text: &'t str) -> Vec<(&'t str, &'t str)> {
    if !text.starts_with("=== ") {
        return vec![(usual, text)];
    }
    text.split("=== ").skip(1).filter_map(|part| part.split_once('\n')).collect()
}

fn found(usual: &str, before: &str, after: &str) -> Vec<Weaker> {
    let (before, after) = (files(usual, before), files(usual, after));
    let mut paths: Vec<&str> = before.iter().chain(&after).map(|(path, _)| *path).collect();
    paths.sort_unstable();
    paths.dedup();
    let changed: Vec<ChangedText<'_>> = paths
        .iter()
        .map(|path| {
            let is = |file: &&(&str, &str)| file.0 == *path;
            ChangedText {
                path,
                before: before.iter().find(is).map(|(_, text)| text.as_bytes()),
                after: after.iter().find(is).map(|(_, text)| text.as_bytes()),
            }
        })
        .collect();
    weaker(&changed)
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
        ("def test_a():\n    assert f() == 1\n    assert g() == 2\n", "1 0 0 0 0 false"),
        ("def test_a():\n    assert f() == 1\n\n\ndef test_b():\n    assert h()\n", "0 1 0 0 0 false"),
        (
            "def test_a():\n    assert f() == 1\n    assert g()\n\n\ndef test_b():\n    assert h()\n",
            "0 0 1 0 0 false",
        ),
        ("def test_a(:\n", "0 0 0 0 0 true"),
    ] {
        let [one] = &found("tests/test_a.py", two, after)[..] else { panic!("{after}") };
        let Weaker { path, tests, assertions, looser, cases, skips, unreadable } = one;
        assert_eq!(path, "tests/test_a.py");
        assert_eq!(format!("{tests} {assertions} {looser} {cases} {skips} {unreadable}"), due, "{after}");
    }
}
