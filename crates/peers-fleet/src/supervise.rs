//! Whether a loop that ended is started again: a pure function over what is known of it.

use std::time::Duration;

use peers_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::registry::{Outcome, Phase, Project, RestartPolicy, State};

/// The first wait before a restart; each further one within an hour doubles it.
const FIRST: Duration = Duration::from_secs(30);
/// The longest.
const LONGEST: Duration = Duration::from_mins(30);
/// Restarts in an hour, where the project says no other number.
const MOST: u32 = 5;
/// An hour.
const HOUR: Duration = Duration::from_hours(1);

/// What to do about a loop that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it runs, or nobody asked for it to be started again, or a person has to see to it first.
    Leave,
    /// Start it, but not before this.
    Wait(Timestamp),
    /// Start it.
    Start,
    /// It was started again too often within an hour.
    GiveUp,
}

/// Starts of a loop that were refused, which are no attempts: nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// When the loop ended that was to be started again; those of another end count for nothing.
    pub since: Option<Timestamp>,
    /// The last of them.
    pub at: Timestamp,
    /// How many.
    pub times: u32,
}

/// Whether a loop is to be started again. Only one that died or failed is: one that stopped for a reason waits
/// for whoever that reason is for. The wait counts from its end or the last attempt, whichever was later.
#[must_use]
pub fn supervise(project: &Project, refused: Option<Refused>, now: Timestamp) -> Verdict {
    if project.restart.policy != RestartPolicy::OnCrash || project.state != State::Crashed {
        return Verdict::Leave;
    }
    if project.runtime.as_ref().is_some_and(|runtime| runtime.phase == Phase::Starting) {
        return Verdict::Leave;
    }
    let died = matches!(
        project.outcome,
        Some(Outcome::Killed | Outcome::Lost | Outcome::HostRebooted | Outcome::Error)
    );
    if !died {
        return Verdict::Leave;
    }
    let recent = recent(&project.restart.times, now);
    let done = u32::try_from(recent.len()).unwrap_or(u32::MAX);
    if done >= project.restart.max_per_hour.unwrap_or(MOST) {
        return Verdict::GiveUp;
    }
    let before = done.saturating_add(refused.map_or(0, |refused| refused.times));
    let wait = FIRST.saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX)).min(LONGEST);
    let ended = project.last_stopped_at.unwrap_or(project.added_at);
    // What lies ahead was noted down before the clock was set back.
    let attempts = recent.into_iter().chain(refused.map(|refused| refused.at)).filter(|at| *at <= now);
    let due = attempts.fold(ended, Ord::max).plus(wait);
    if now >= due { Verdict::Start } else { Verdict::Wait(due) }
}

/// The restarts of the last hour. Those that lie ahead were noted down before the clock was set back, and count
/// for nothing.
#[must_use]
pub fn recent(times: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
    times.iter().copied().filter(|at| *at <= now && now.since(*at) < HOUR).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::registry::{ProjectName, Restart};

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(Duration::from_secs(s))
    }

    fn crashed(times: &[u64], outcome: Outcome) -> Project {
        let mut project = Project::new(ProjectName::new("p").unwrap(), Path::new("/p"), None, at(0));
        project.state = State::Crashed;
        project.outcome = Some(outcome);
        project.last_stopped_at = Some(at(10_000));
        let times = times.iter().map(|s| at(*s)).collect();
        project.restart = Restart { policy: RestartPolicy::OnCrash, max_per_hour: None, times };
        project
    }

    #[test]
    fn one_that_died_is_started_after_a_wait_that_doubles() {
        for (times, wait) in [(vec![], 30), (vec![9_000], 60), (vec![8_000, 8_500, 9_000], 240)] {
            let project = crashed(&times, Outcome::Killed);
            assert_eq!(supervise(&project, None, at(10_000)), Verdict::Wait(at(10_000 + wait)), "{times:?}");
            assert_eq!(supervise(&project, None, at(10_000 + wait)), Verdict::Start, "{times:?}");
        }
    }

    #[test]
    fn the_wait_counts_from_the_last_attempt_where_that_was_later_and_grows_with_refusals_too() {
        // It never came up, so it has not ended since.
        let project = crashed(&[10_100], Outcome::Killed);
        assert_eq!(supervise(&project, None, at(10_150)), Verdict::Wait(at(10_160)));
        assert_eq!(supervise(&project, None, at(10_160)), Verdict::Start);
        let project = crashed(&[], Outcome::Killed);
        for (times, wait) in [(1, 60), (2, 120), (5, 960), (40, 1800)] {
            let refused = Some(Refused { since: project.last_stopped_at, at: at(20_000), times });
            assert_eq!(supervise(&project, refused, at(20_001)), Verdict::Wait(at(20_000 + wait)), "{times}");
            assert_eq!(supervise(&project, refused, at(20_000 + wait)), Verdict::Start, "{times}");
        }
        // The clock was set back.
        let project = crashed(&[99_999], Outcome::Killed);
        assert_eq!(supervise(&project, None, at(10_060)), Verdict::Start);
    }

    #[test]
    fn after_five_in_an_hour_a_person_is_needed_until_the_hour_is_over() {
        let project = crashed(&[9_000, 9_100, 9_200, 9_300, 9_400], Outcome::Error);
        assert_eq!(supervise(&project, None, at(12_000)), Verdict::GiveUp);
        assert_eq!(supervise(&project, None, at(9_001 + 3600)), Verdict::Start);
        let mut patient = crashed(&[9_000], Outcome::Error);
        patient.restart.max_per_hour = Some(1);
        assert_eq!(supervise(&patient, None, at(12_000)), Verdict::GiveUp);
    }

    #[test]
    fn restarts_that_were_noted_before_the_clock_was_set_back_count_for_nothing() {
        let project = crashed(&[90_000, 90_100, 90_200, 90_300, 90_400], Outcome::Killed);
        assert_eq!(supervise(&project, None, at(10_029)), Verdict::Wait(at(10_030)));
        assert_eq!(supervise(&project, None, at(10_030)), Verdict::Start);
        assert_eq!(recent(&project.restart.times, at(10_030)), []);
    }

    #[test]
    fn nobody_is_started_who_stopped_for_a_reason_or_was_not_asked_for() {
        for outcome in Outcome::ALL {
            let mut project = crashed(&[], outcome);
            let died =
                [Outcome::Killed, Outcome::Lost, Outcome::HostRebooted, Outcome::Error].contains(&outcome);
            assert_eq!(supervise(&project, None, at(99_999)) == Verdict::Start, died, "{outcome:?}");
            project.state = State::Stopped;
            assert_eq!(supervise(&project, None, at(99_999)), Verdict::Leave, "{outcome:?}");
        }
        let mut never = crashed(&[], Outcome::Killed);
        never.restart.policy = RestartPolicy::Never;
        assert_eq!(supervise(&never, None, at(99_999)), Verdict::Leave);
    }
}
