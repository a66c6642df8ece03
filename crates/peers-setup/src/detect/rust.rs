//! Cargo.

use super::{Aim, Around, Place, has_table};

const FILE: &str = "Cargo.toml";
pub(super) const STACK: &str = "Rust";
// Each test binary says how many passed; `ok. 0 passed` alone is a run of nothing.
pub(super) const PASSED: &str = "exit_code == 0 and regex('(?m)^test result: ok[.] [1-9]', stdout)";

pub(super) fn look(place: &mut Place<'_>, around: &mut Around) {
    if around.cargo {
        return;
    }
    let Some(text) = place.text(FILE) else { return };
    let workspace = has_table(&text, "workspace");
    if !workspace && !has_table(&text, "package") {
        return;
    }
    around.cargo = workspace;
    let all = if workspace { " --workspace" } else { "" };
    let locked = if place.has("Cargo.lock") && !place.ignores("Cargo.lock") { " --locked" } else { "" };
    place.propose(Aim::Tests, STACK, &format!("cargo test{all}{locked}"), PASSED, FILE);
    let lint = format!("cargo clippy{all} --all-targets{locked} -- -D warnings");
    place.propose(Aim::Lint, STACK, &lint, "exit_code == 0", FILE);
    if let Some(file) = place.first(&["rustfmt.toml", ".rustfmt.toml"]) {
        place.propose(Aim::Format, STACK, "cargo fmt --all --check", "exit_code == 0", file);
    }
}
