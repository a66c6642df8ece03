//! Why a turn failed, in words.

use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::TickRecord;

use crate::apply::bounded;

/// How a turn is named that failed for no reason but the end of its process; its classification follows.
pub const BY_PROCESS: &str = "run classification ";

/// Why a turn was no success: the recorded reason, or how its process ended.
#[must_use]
pub fn why(tick: &TickRecord) -> Option<String> {
    let reason = tick.soft_fail_reason.as_ref()?;
    if !reason.starts_with(BY_PROCESS) {
        return Some(reason.clone());
    }
    if let Some(said) = refusal(tick) {
        return Some(said);
    }
    Some(match (tick.exit.class, tick.exit.code, tick.exit.signal) {
        (ExitClass::SpawnFail, ..) => "its program did not start".to_owned(),
        (ExitClass::Signal, _, Some(signal)) => format!("its process died of signal {signal}"),
        (ExitClass::Idle, ..) => "its process was silent for too long and was ended".to_owned(),
        (ExitClass::Absolute, ..) => "its process reached its time limit and was ended".to_owned(),
        (ExitClass::Hopeless, ..) => "its stream said that going on is of no use, so it was ended".to_owned(),
        (ExitClass::Budget, ..) => "a cap or the run's time was used up, so it was ended".to_owned(),
        (ExitClass::Pattern, ..) => by_pattern(tick)
            .unwrap_or_else(|| "its process printed what `health` calls an error and was ended".to_owned()),
        (ExitClass::Nonzero | ExitClass::Signal, Some(code), _) => {
            format!("its process ended with exit code {code}")
        }
        (ExitClass::Ok | ExitClass::Nonzero | ExitClass::Signal | ExitClass::Interrupted, ..) => {
            format!("its process ended as {}", tick.classification)
        }
    })
}

/// What its service said, where the stream of the tool told it: the process only ended for it.
fn refusal(tick: &TickRecord) -> Option<String> {
    let matched = tick.exit.matched.as_ref().filter(|matched| matched.source.starts_with("structured"))?;
    let said = bounded(matched.snippet.trim(), 200);
    (tick.exit.api != ApiClass::None && !said.is_empty()).then(|| format!("its service refused it: {said}"))
}

/// Which pattern of the operator's matched, and the line: the pattern itself says less.
pub(crate) fn by_pattern(tick: &TickRecord) -> Option<String> {
    let matched = tick.exit.matched.as_ref()?;
    let key = bounded(matched.key.as_ref()?, 60);
    Some(format!("its output matched `{key}`: {}", bounded(matched.snippet.trim(), 200)))
}
