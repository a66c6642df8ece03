//! What a red gate or a failed turn says of itself, boiled down to what helps.

use peers_core::failed::BY_PROCESS;
use peers_core::test_output::cause;
use peers_model::outcome::{ExitClass, StopReason};
use peers_model::record::TickRecord;
use peers_sys::term;

/// Terminal cells of the last words of a process.
const COMPLAINT: usize = 200;

/// What is kept of a stop for people; in short where it is what a gate said.
pub(crate) fn stop_detail(reason: Option<&StopReason>, detail: &str) -> String {
    match reason {
        Some(StopReason::StuckGate(_) | StopReason::Unjudged(_)) => cause(detail),
        // What to do stands on a line of its own.
        Some(StopReason::Tamper(_)) => detail.replace('\n', "; "),
        _ => detail.to_owned(),
    }
}

/// What a process that failed said last on standard error.
#[must_use]
pub fn complaint(tick: &TickRecord) -> Option<String> {
    // Where the stream told why, the rest of what was printed only leads astray.
    let told = tick.exit.matched.as_ref().is_some_and(|matched| matched.source.starts_with("structured"));
    if tick.success || told || tick.exit.class == ExitClass::Ok {
        return None;
    }
    let last = tick.exit.stderr_tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map(|line| term::line(line, COMPLAINT))
}

/// A reason that is kept without its turn; nothing where it only repeats the word for the process.
pub(crate) fn known_reason(reason: Option<&str>) -> Option<&str> {
    reason.filter(|reason| !reason.starts_with(BY_PROCESS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_gate_said_is_shortened_in_the_detail_of_a_stop() {
        let raw = "pass_when returned False; exit_code=1; stdout-tail='x'; stderr-tail=''";
        let gate = || peers_model::GoalId::new("real").unwrap();
        for reason in [StopReason::StuckGate(gate()), StopReason::Unjudged(gate())] {
            assert_eq!(stop_detail(Some(&reason), raw), "x (exit_code=1)");
        }
        assert_eq!(stop_detail(Some(&StopReason::Drained), raw), raw);
        assert_eq!(stop_detail(None, raw), raw);
    }
}
