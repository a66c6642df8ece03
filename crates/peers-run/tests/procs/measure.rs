//! The measuring of changed tests by a child.

use std::path::PathBuf;

use peers_code::{ChangedFile, Side};
use peers_model::weakening::{Weakened, Weakening};
use peers_run::measure::Measurer;
use peers_sys::spawn::StubProgram;

use crate::stage::child_program;

fn measured(program: impl Into<PathBuf>, after: &str) -> Option<Vec<Vec<Weakening>>> {
    measured_by(&Measurer::new(StubProgram::at(child_program()), program.into()), after)
}

fn measured_by(measurer: &Measurer, after: &str) -> Option<Vec<Vec<Weakening>>> {
    let side = |text: &str| Side::Text(text.to_owned());
    let before = side("def test_a():\n    assert f() == 1\n");
    let file = ChangedFile { path: "tests/test_a.py".into(), before, after: side(after), told: false };
    let answers = measurer.measure(&[vec![file], Vec::new()]).ok()?;
    Some(answers.into_iter().map(|answer| answer.found).collect())
}

fn is(what: Weakened) -> Vec<Vec<Weakening>> {
    vec![vec![what.at("tests/test_a.py")], Vec::new()]
}

#[test]
fn a_child_measures_what_it_is_given() {
    assert_eq!(
        measured(child_program(), "def test_a():\n    f()\n"),
        Some(is(Weakened::Assertions { lost: 1 }))
    );
    let long = format!("def test_a():\n    assert f() == 1\n{}", "x = 1\n".repeat(20_000));
    assert_eq!(measured(child_program(), &long), Some(vec![Vec::new(), Vec::new()]));
}

#[test]
fn what_a_child_gives_no_answer_about_can_no_longer_be_read() {
    const AS_BEFORE: &str = "def test_a():\n    assert f() == 1\n";
    // The last one never stops talking.
    for program in ["/bin/false", "/bin/true", "/bin/echo", "/usr/bin/yes"] {
        assert_eq!(measured(program, AS_BEFORE), Some(is(Weakened::Unreadable)), "{program}");
    }
    let hasty = Measurer::new(StubProgram::at(child_program()), child_program());
    let hasty = Measurer { limit: std::time::Duration::ZERO, ..hasty };
    assert_eq!(measured_by(&hasty, AS_BEFORE), Some(is(Weakened::Unreadable)));
    assert_eq!(measured("/nowhere/peers", ""), None, "not to be able to ask is nobody's doing");
}

#[test]
fn nothing_is_started_where_nothing_is_to_be_measured() {
    let nowhere = Measurer::new(StubProgram::at("/nowhere"), "/nowhere".into());
    assert_eq!(nowhere.measure(&[Vec::new()]).map(|answers| answers.len()).ok(), Some(1));
}
