//! Go.

use super::{Aim, Gate, Place};

const FILE: &str = "go.mod";
pub(super) const STACK: &str = "Go";
// A package without tests says `?`, one whose tests are none says so behind its time.
pub(super) const PASSED: &str = "exit_code == 0 and regex('(?m)^ok[[:space:]]+[^[:space:]]+[[:space:]]+([(]cached[)]|[0-9.]+s)$', stdout)";

pub(super) fn look(place: &mut Place<'_>) {
    if !place.has(FILE) {
        return;
    }
    place.propose(&Gate {
        aim: Aim::Tests,
        stack: STACK,
        cmd: "go test ./...",
        pass_when: PASSED,
        file: FILE,
    });
    let golangci = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];
    let (cmd, file) = match place.first(&golangci) {
        Some(file) => ("golangci-lint run", file),
        None => ("go vet ./...", FILE),
    };
    place.propose(&Gate { aim: Aim::Lint, stack: STACK, cmd, pass_when: "exit_code == 0", file });
}
