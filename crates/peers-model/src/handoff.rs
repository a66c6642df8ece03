//! What a commit says about who made it and whether the turn is over.

use crate::ids::PeerName;
use crate::trailer::Message;

/// The handoff trailers of one commit. Claims only: who really made a commit is known from the tick.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandoffClaim {
    /// `Peer:`, the last one.
    pub peer: Option<ClaimedPeer>,
    /// `Peer-Status:`, the last one.
    pub status: Option<PeerStatus>,
    /// `Self-Review:`, the last one.
    pub self_review: Option<SelfReviewMark>,
    /// `Blocked-On:`, the last one, on one line, at most 200 characters. Untrusted.
    pub blocked_on: Option<String>,
    /// The text of the first `## Self-Review` section, trimmed. Untrusted.
    pub self_review_section: Option<String>,
}

/// The value of `Peer:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimedPeer {
    /// A possible peer name.
    Named(PeerName),
    /// No possible peer name; at most 80 characters of it.
    Malformed(String),
}

/// The value of `Peer-Status:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerStatus {
    /// `handoff`: the turn is over.
    Handoff,
    /// `blocked`: something outside of the repository is in the way.
    Blocked,
    /// Anything else; at most 80 characters of it.
    Other(String),
}

/// The value of `Self-Review:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelfReviewMark {
    /// `pass`.
    Pass,
    /// Anything else; at most 80 characters of it.
    Other(String),
}

impl HandoffClaim {
    /// Reads the handoff trailers of a message.
    #[must_use]
    pub fn read(message: &Message<'_>) -> Self {
        let trailers = &message.trailers;
        let short = |text: &str| text.chars().take(80).collect::<String>();
        Self {
            peer: trailers.last("Peer").map(|v| match PeerName::new(v) {
                Ok(name) => ClaimedPeer::Named(name),
                Err(_) => ClaimedPeer::Malformed(short(v)),
            }),
            status: trailers.last("Peer-Status").map(|v| {
                if v.eq_ignore_ascii_case("handoff") {
                    PeerStatus::Handoff
                } else if v.eq_ignore_ascii_case("blocked") {
                    PeerStatus::Blocked
                } else {
                    PeerStatus::Other(short(v))
                }
            }),
            self_review: trailers.last("Self-Review").map(|v| {
                if v.eq_ignore_ascii_case("pass") {
                    SelfReviewMark::Pass
                } else {
                    SelfReviewMark::Other(short(v))
                }
            }),
            blocked_on: trailers
                .last("Blocked-On")
                .map(|v| {
                    v.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect::<String>()
                })
                .filter(|v| !v.trim().is_empty()),
            self_review_section: message.sections("Self-Review").next().map(|s| s.trim().to_owned()),
        }
    }

    /// Whether the commit hands the turn over: `Peer-Status: handoff` with `Self-Review: pass`.
    #[must_use]
    pub fn is_handoff(&self) -> bool {
        self.status == Some(PeerStatus::Handoff) && self.self_review == Some(SelfReviewMark::Pass)
    }

    /// What the commit says is in its peer's way: `Peer-Status: blocked` with a `Blocked-On:` that says what.
    #[must_use]
    pub fn blocked(&self) -> Option<&str> {
        self.blocked_on.as_deref().filter(|_| self.status == Some(PeerStatus::Blocked))
    }

    /// Whether there is a `## Self-Review` section, empty or not.
    #[must_use]
    pub fn has_self_review_section(&self) -> bool {
        self.self_review_section.is_some()
    }

    /// Whether `Peer:` names this peer exactly.
    #[must_use]
    pub fn names(&self, peer: &PeerName) -> bool {
        matches!(&self.peer, Some(ClaimedPeer::Named(name)) if name == peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> HandoffClaim {
        HandoffClaim::read(&Message::parse(text))
    }

    #[test]
    fn a_handoff_needs_both_marks() {
        assert!(read("s\n\nPeer: a\nPeer-Status: handoff\nSelf-Review: pass\n").is_handoff());
        assert!(!read("s\n\nPeer-Status: handoff\n").is_handoff());
        assert!(!read("s\n\nSelf-Review: pass\n").is_handoff());
        assert!(!read("s\n\nPeer-Status: working\nSelf-Review: pass\n").is_handoff());
    }

    #[test]
    fn who_is_blocked_says_by_what() {
        let said = read("s\n\nPeer-Status: Blocked\nBlocked-On: no licence\u{7} for the compiler\n");
        assert_eq!(said.blocked(), Some("no licence  for the compiler"));
        assert!(!said.is_handoff());
        assert_eq!(read("s\n\nPeer-Status: blocked\n").blocked(), None);
        assert_eq!(read("s\n\nPeer-Status: blocked\nBlocked-On: \n").blocked(), None);
        assert_eq!(read("s\n\nPeer-Status: handoff\nBlocked-On: x\n").blocked(), None);
    }

    #[test]
    fn row_10_needs_review_is_no_handoff() {
        let claim = read("s\n\nPeer-Status: handoff\nSelf-Review: needs-review\n");
        assert!(!claim.is_handoff());
        assert_eq!(claim.self_review, Some(SelfReviewMark::Other("needs-review".into())));
    }

    #[test]
    fn row_13_a_later_fail_after_pass_is_honoured() {
        assert!(!read("s\n\nPeer-Status: handoff\nSelf-Review: pass\nSelf-Review: fail\n").is_handoff());
        assert!(read("s\n\nPeer-Status: handoff\nSelf-Review: fail\nSelf-Review: pass\n").is_handoff());
    }

    #[test]
    fn row_15_another_name_is_seen_as_another_name() {
        let a = PeerName::new("a").unwrap();
        assert!(read("s\n\nPeer: a\n").names(&a));
        assert!(!read("s\n\nPeer: A\n").names(&a));
        assert!(!read("s\n\nPeer: a\nPeer: b\n").names(&a));
        assert_eq!(read("s\n\nPeer: a b\n").peer, Some(ClaimedPeer::Malformed("a b".into())));
    }

    #[test]
    fn the_self_review_section_ends_before_the_trailers() {
        let claim = read("s\n\n## self-review\n\nPeer-Status: handoff\nSelf-Review: pass\n");
        assert_eq!(claim.self_review_section.as_deref(), Some(""));
        assert!(claim.has_self_review_section());
        assert!(!read("s\n\nSelf-Review: pass\n").has_self_review_section());
    }
}
