//! What a red gate or a failed turn says of itself, boiled down to what helps.

use peers_core::failed::BY_PROCESS;
use peers_core::test_output;
use peers_model::outcome::{ExitClass, StopReason};
use peers_model::record::TickRecord;
use peers_sys::term;

/// Terminal cells of the last words of a process.
const COMPLAINT: usize = 200;

/// What a diagnostic says: the last failure that a known test runner reports in the output, else the last
/// lines that say something, where most programs say what is wrong. One that quotes no output is taken
/// as it is.
#[must_use]
pub fn last_words(diagnostic: &str) -> String {
    let Some((why, out, err)) = tails(diagnostic) else { return diagnostic.trim().to_owned() };
    let lines = test_output::lines(out, err);
    // `pass_when returned False; exit_code=1`: the code is what tells something.
    let why = why.strip_prefix("pass_when returned False; ").unwrap_or(why);
    if lines.is_empty() { why.to_owned() } else { format!("{} ({why})", lines.join(" | ")) }
}

/// A diagnostic that quotes output, in its parts: why, and the tails of both streams.
pub(crate) fn tails(diagnostic: &str) -> Option<(&str, &str, &str)> {
    let (why, tails) = diagnostic.split_once("; stdout-tail='")?;
    let (out, err) = tails.rsplit_once("'; stderr-tail='").unwrap_or((tails, ""));
    Some((why, out, err.strip_suffix('\'').unwrap_or(err)))
}

/// The same on one line.
#[must_use]
pub fn cause(diagnostic: &str) -> String {
    let words = last_words(diagnostic);
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" | ")
}

/// What is kept of a stop for people; in short where it is what a gate said.
pub(crate) fn stop_detail(reason: Option<&StopReason>, detail: &str) -> String {
    match reason {
        Some(StopReason::StuckGate(_) | StopReason::Unjudged(_)) => cause(detail),
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
        assert_eq!(cause("self-review: FAIL\n  x\n"), "self-review: FAIL | x");
    }

    #[test]
    fn a_red_gate_is_known_by_the_last_lines_of_its_output() {
        let said = |out: &str, err: &str| {
            last_words(&format!(
                "pass_when returned False; exit_code=1; stdout-tail='{out}'; stderr-tail='{err}'"
            ))
        };
        assert_eq!(said("a\nb\n\n3 failed\n", ""), "b | 3 failed (exit_code=1)");
        assert_eq!(said("it's fine", "warning\nerror: no\n"), "warning | error: no (exit_code=1)");
        assert_eq!(said("", ""), "exit_code=1");
        assert_eq!(last_words("self-review: FAIL\n  x\n"), "self-review: FAIL\n  x");
        assert_eq!(
            last_words("pass_when error: no file; exit_code=0; stdout-tail='x'; stderr-tail=''"),
            "x (pass_when error: no file; exit_code=0)"
        );
    }
}
