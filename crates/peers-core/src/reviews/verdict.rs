//! Whether a soft goal is green, and whom to ask.

use std::collections::BTreeSet;

use peers_model::PeerName;
use peers_model::review::SoftRule;

use super::status::{RosterEntry, SoftStatus, eligible, fresh, objector, passes};

/// How a soft goal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftVerdict {
    /// Reviews that count.
    pub have: u32,
    /// Reviews needed.
    pub need: u32,
    /// It is green.
    pub ok: bool,
    /// Why not, for people; empty when green.
    pub why: String,
}

/// Judges a goal at the scope as it is now. Reviews of another scope do not count; an empty scope
/// means that it could not be taken, and then nothing counts.
#[must_use]
pub fn satisfied(status: &SoftStatus, rule: SoftRule, roster: &[RosterEntry], scope: &str) -> SoftVerdict {
    if scope.is_empty() {
        return verdict(0, 1, Some("what it is about could not be read".to_owned()));
    }
    match rule {
        SoftRule::Other { needed } | SoftRule::Alternating { needed } => {
            distinct(status, roster, scope, u32::from(needed))
        }
        SoftRule::Both { needed: _ } => both(status, roster, scope),
        SoftRule::Quorum { pass, of } => quorum(status, roster, scope, u32::from(pass), usize::from(of)),
    }
}

/// Whether somebody objects to the scope as it is now.
#[must_use]
pub fn objected(status: &SoftStatus, roster: &[RosterEntry], scope: &str) -> bool {
    objector(status, scope, &|name| in_roster(roster, name)).is_some()
}

/// Whether to ask this peer for a review: it may answer, the goal is not green, and an answer of
/// it could help.
#[must_use]
pub fn pending(
    status: &SoftStatus,
    rule: SoftRule,
    roster: &[RosterEntry],
    peer: &PeerName,
    scope: &str,
) -> bool {
    if !eligible(status, rule, roster, peer) || satisfied(status, rule, roster, scope).ok {
        return false;
    }
    let objects = fresh(status, scope).iter().any(|r| r.reviewer == *peer && !r.pass);
    let passed = passes(status, scope, &|name| in_roster(roster, name)).contains(peer);
    match rule {
        SoftRule::Other { needed } => {
            let pointless = Some(peer) == excluded_author(status, roster, scope, u32::from(needed));
            objects || !(pointless || passed)
        }
        // An answer moves the cursor on, even one that cannot count.
        SoftRule::Alternating { .. } => true,
        SoftRule::Both { .. } => {
            let spare = roster.iter().any(|r| r.name == *peer && r.recovery);
            objects || !(spare || passed)
        }
        SoftRule::Quorum { .. } => !fresh(status, scope).iter().any(|r| r.reviewer == *peer && r.pass),
    }
}

/// Who made the newest change of this scope, if it was a peer in its turn.
fn newest_author<'a>(status: &'a SoftStatus, scope: &str) -> Option<&'a PeerName> {
    status.changed.as_ref().filter(|c| c.scope == scope).map(|c| &c.by)
}

/// Distinct passes that are needed: one more than the rule says where what is there may be of any of those who
/// pass it, so that one of them is not its author.
fn needed(status: &SoftStatus, roster: &[RosterEntry], need: u32) -> u32 {
    if !status.strangers {
        return need;
    }
    let all = count(roster.iter().filter(|r| r.counts()).count());
    need.saturating_add(1).min(all).max(need).max(2)
}

/// The author of the newest change, while there are others enough to do without his word.
fn excluded_author<'a>(
    status: &'a SoftStatus,
    roster: &[RosterEntry],
    scope: &str,
    needed: u32,
) -> Option<&'a PeerName> {
    let others_enough = count(roster.iter().filter(|r| r.counts()).count()) > needed;
    // With one review more than the rule asks for, his own is one of them at most.
    newest_author(status, scope).filter(|_| others_enough && !status.strangers)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn in_roster(roster: &[RosterEntry], name: &PeerName) -> bool {
    roster.iter().any(|r| r.name == *name)
}

fn verdict(have: u32, need: u32, why: Option<String>) -> SoftVerdict {
    let why = why.or_else(|| (have < need).then(|| format!("{have} of {need} reviews")));
    SoftVerdict { have, need, ok: why.is_none(), why: why.unwrap_or_default() }
}

fn distinct(status: &SoftStatus, roster: &[RosterEntry], scope: &str, rule: u32) -> SoftVerdict {
    let need = needed(status, roster, rule);
    let known = |name: &PeerName| in_roster(roster, name);
    if let Some(by) = objector(status, scope, &known) {
        return verdict(0, need, Some(format!("{by} objects")));
    }
    let passes = passes(status, scope, &known);
    let without = excluded_author(status, roster, scope, rule);
    let counting = passes.iter().filter(|p| Some(**p) != without).count();
    let only_author = passes.len() == 1 && passes.first().copied() == newest_author(status, scope);
    let why = if counting >= 1 && only_author {
        Some("only the author of the newest change has passed it".to_owned())
    } else {
        None
    };
    verdict(count(counting), need, why)
}

fn both(status: &SoftStatus, roster: &[RosterEntry], scope: &str) -> SoftVerdict {
    let asked: Vec<&PeerName> = roster.iter().filter(|r| r.counts()).map(|r| &r.name).collect();
    let need = count(asked.len()).max(2);
    let known = |name: &PeerName| in_roster(roster, name);
    if let Some(by) = objector(status, scope, &known) {
        return verdict(0, need, Some(format!("{by} objects")));
    }
    let passes = passes(status, scope, &known);
    let missing: Vec<&str> = asked.iter().filter(|p| !passes.contains(*p)).map(|p| p.as_str()).collect();
    let have = count(asked.len() - missing.len());
    // With fewer than two to ask, the word of one who has left since still counts as the second.
    let have = if asked.len() < 2 { have.max(count(passes.len())) } else { have };
    let why = (!missing.is_empty()).then(|| {
        format!("{} {} not passed it", missing.join(", "), if missing.len() == 1 { "has" } else { "have" })
    });
    verdict(have, need, why)
}

fn quorum(status: &SoftStatus, roster: &[RosterEntry], scope: &str, rule: u32, of: usize) -> SoftVerdict {
    let need = needed(status, roster, rule);
    let of = if need > rule { of.max(usize::try_from(need).unwrap_or(usize::MAX)) } else { of };
    let answers: Vec<_> =
        fresh(status, scope).into_iter().filter(|r| in_roster(roster, &r.reviewer)).collect();
    let last = answers.iter().rev().take(of);
    let without = excluded_author(status, roster, scope, rule);
    let passes: BTreeSet<&PeerName> =
        last.clone().filter(|r| r.pass && Some(&r.reviewer) != without).map(|r| &r.reviewer).collect();
    let only_author = passes.len() == 1 && passes.first().copied() == newest_author(status, scope);
    let why = if last.len() < of {
        Some(format!("{} of {of} reviews are in", last.len()))
    } else if only_author {
        Some("only the author of the newest change has passed it".to_owned())
    } else {
        None
    };
    verdict(count(passes.len()), need, why)
}
