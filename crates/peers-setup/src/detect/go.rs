//! Go.

use super::{Aim, Place};

const FILE: &str = "go.mod";
pub(super) const STACK: &str = "Go";
// A package without tests says `?`, one whose tests are none says so behind its time.
pub(super) const PASSED: &str = "exit_code == 0 and regex('(?m)^ok[[:space:]]+[^[:space:]]+[[:space:]]+([(]cached[)]|[0-9.]+s)$', stdout)";

pub(super) fn look(place: &mut Place<'_>) {
    if !place.has(FILE) {
        return;
    }
    place.propose(Aim::Tests, STACK, "go test ./...", PASSED, FILE);
    let golangci = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];
    let (cmd, file) = match place.first(&golangci) {
        Some(file) => ("golangci-lint run", file),
        None => ("go vet ./...", FILE),
    };
    place.propose(Aim::Lint, STACK, cmd, "exit_code == 0", file);
}
