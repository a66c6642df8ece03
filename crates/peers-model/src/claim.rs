//! What an agent says, marked as such until somebody checks it.

use crate::bug::BugClaims;
use crate::handoff::HandoffClaim;
use crate::review::{ReviewClaim, ReviewRejection, SkepticClaim, read_reviews};
use crate::trailer::Message;

/// Something that an agent wrote and nobody has verified.
///
/// The only ways in are named so that a reader of the code sees where trust begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claimed<T>(T);

impl<T> Claimed<T> {
    /// Marks a value as a claim.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The claim as it was made.
    pub fn unverified(&self) -> &T {
        &self.0
    }

    /// The claim as it was made, owned.
    pub fn into_unverified(self) -> T {
        self.0
    }

    /// Turns the claim into what `check` makes of it.
    ///
    /// # Errors
    /// Whatever `check` refuses with.
    pub fn verify<U, E>(self, check: impl FnOnce(T) -> Result<U, E>) -> Result<U, E> {
        check(self.0)
    }
}

/// Everything that one commit message claims. Reading it decides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitClaims {
    /// First line, at most 200 characters.
    pub subject: String,
    /// Who and in what state.
    pub handoff: Claimed<HandoffClaim>,
    /// The bug ledger.
    pub bugs: Claimed<BugClaims>,
    /// Reviews of soft goals; those that break the format are rejections.
    pub reviews: Vec<Result<Claimed<ReviewClaim>, ReviewRejection>>,
    /// The skeptic's verdict.
    pub skeptic: Claimed<SkepticClaim>,
    /// There is a `## Review` section.
    pub has_review_section: bool,
    /// The reason of `JUSTIFIED-TEST-ONLY`, whatever its length.
    pub justified_test_only: Option<Claimed<String>>,
    /// What a person or the next prompt should know about the format. Rejected reviews are not
    /// repeated here.
    pub warnings: Vec<String>,
}

impl CommitClaims {
    /// Reads a commit message. Total over any text.
    #[must_use]
    pub fn read(message: &str) -> Self {
        let parsed = Message::parse(message);
        let mut warnings = Vec::new();
        if parsed.cut {
            warnings.push("the message is longer than 64 KiB; only its end was read".to_owned());
        }
        let bugs = BugClaims::read(&parsed);
        warnings.extend(bugs.warnings.iter().cloned());
        let (reviews, malformed) = read_reviews(&parsed);
        warnings.extend(malformed);
        Self {
            subject: parsed.subject.chars().take(200).collect(),
            handoff: Claimed::new(HandoffClaim::read(&parsed)),
            bugs: Claimed::new(bugs),
            reviews: reviews.into_iter().map(|r| r.map(Claimed::new)).collect(),
            skeptic: Claimed::new(SkepticClaim::read(&parsed)),
            has_review_section: parsed.has_section("Review"),
            justified_test_only: justified(&parsed).map(Claimed::new),
            warnings,
        }
    }
}

/// The trailer `JUSTIFIED-TEST-ONLY`, or the last line of the body that starts so.
fn justified(message: &Message<'_>) -> Option<String> {
    const KEY: &str = "JUSTIFIED-TEST-ONLY";
    let line = || {
        message.body.lines().rev().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(KEY).then(|| value.trim())
        })
    };
    message.trailers.last(KEY).or_else(line).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::handoff::{ClaimedPeer, SelfReviewMark};

    #[test]
    fn everything_of_one_commit_is_read_at_once() {
        let message = "Fix the parser\n\n## Self-Review\nchecked\n\n## Bug-Report\n{\"id\":\"B1\",\"severity\":\"high\"}\n\
             \n## Review\n{\"pass\": true, \"checked\": [\"a.rs:1 x\"]}\n\
             \nPeer: claude\nPeer-Status: handoff\nSelf-Review: pass\nBug-Report: B1\nPeer-Review-Of: docs-read\n";
        let claims = CommitClaims::read(message);
        assert_eq!(claims.subject, "Fix the parser");
        let handoff = claims.handoff.unverified();
        assert!(matches!(&handoff.peer, Some(ClaimedPeer::Named(n)) if n.as_str() == "claude"));
        assert_eq!(handoff.self_review, Some(SelfReviewMark::Pass));
        assert_eq!(claims.bugs.unverified().reports.len(), 1);
        assert!(claims.reviews[0].is_ok());
        assert!(claims.has_review_section);
        assert!(claims.warnings.is_empty(), "{:?}", claims.warnings);
    }

    #[test]
    fn what_a_review_names_is_read_from_the_begin_of_its_entries() {
        let named = |entry: &str| {
            let json = serde_json::json!({"pass": true, "checked": [entry]});
            let claims = CommitClaims::read(&format!("s\n\n## Review\n{json}\n\nPeer-Review-Of: g-one\n"));
            let review = claims.reviews[0].as_ref().unwrap().unverified();
            review.named().map(str::to_owned).collect::<Vec<_>>()
        };
        for entry in
            ["src/a.rs:10 x", "src/a.rs", "`src/a.rs` reads well", "./src/a.rs, all", "src/a.rs: all of it"]
        {
            assert!(named(entry).contains(&"src/a.rs".to_owned()), "{entry}: {:?}", named(entry));
        }
        assert!(named("my file.txt:3 x").contains(&"my file.txt".to_owned()));
        assert!(named("src/: all").contains(&"src".to_owned()));
    }

    #[test]
    fn a_justification_is_a_trailer_or_a_line() {
        let read = |m: &str| CommitClaims::read(m).justified_test_only.map(Claimed::into_unverified);
        assert_eq!(
            read("s\n\nJUSTIFIED-TEST-ONLY: the fixture was wrong"),
            Some("the fixture was wrong".into())
        );
        assert_eq!(read("s\n\nJustified-Test-Only: why not\nprose\n\nPeer: a"), Some("why not".into()));
        assert_eq!(read("s\n\nnothing"), None);
    }

    #[test]
    fn a_cut_message_is_said_to_be_cut() {
        let claims = CommitClaims::read(&format!("s\n\n{}\n\nPeer: a\n", "x".repeat(70_000)));
        assert!(claims.warnings.iter().any(|w| w.contains("64 KiB")));
    }

    proptest! {
        #[test]
        fn any_message_gives_claims(text in any::<String>()) {
            let claims = CommitClaims::read(&text);
            prop_assert!(claims.subject.chars().count() <= 200);
        }

        #[test]
        fn any_mix_of_our_own_words_gives_claims(parts in proptest::collection::vec(prop_oneof![
            Just("## Bug-Report\n"), Just("## Review\n"), Just("## Skeptic\n"), Just("## Bug-Resolution\n"),
            Just("{\"id\":\"B\",\"severity\":\"crit\"}\n"), Just("{\"pass\":true"), Just("}\n"), Just("\n\n"),
            Just("Bug-Report: B\n"), Just("Bug-Resolves: B\n"), Just("Peer-Review-Of: g\n"), Just("Peer: a\n"),
            Just("Bug-Reproduce-Waive: B\n"), Just("- x\n"), Just("\""), Just("// "), Just("Skeptic: clean\n"),
        ], 0..30)) {
            let text = parts.concat();
            let claims = CommitClaims::read(&text);
            prop_assert_eq!(claims.bugs.unverified().blocks(), !claims.bugs.unverified().reports.is_empty());
        }
    }
}
