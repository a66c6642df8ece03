//! A `test` target of make.

use super::{Aim, Place};

pub(super) fn look(place: &mut Place<'_>) {
    // The order in which make looks for them.
    let Some(file) = place.first(&["GNUmakefile", "makefile", "Makefile"]) else { return };
    let Some(text) = place.text(file) else { return };
    if !text.lines().any(is_test_rule) {
        return;
    }
    place.propose(Aim::Tests, "make", "make test", "exit_code == 0", file);
}

/// Whether a line begins a rule that makes `test`.
fn is_test_rule(line: &str) -> bool {
    if line.starts_with(['\t', ' ', '#']) {
        return false;
    }
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let assigns = rest.starts_with('=') || rest.starts_with(":=") || targets.contains('=');
    !assigns && targets.split_whitespace().any(|target| target == "test")
}
