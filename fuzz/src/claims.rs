//! Commit messages: trailers, `## Section` JSON blocks, and what is claimed in them.
//!
//! The input is the message. One that starts with the byte 0x01 is put behind a line of 66 KiB, so
//! that only its end is read.

use peers_model::bug::BugClaims;
use peers_model::claim::CommitClaims;
use peers_model::handoff::{ClaimedPeer, HandoffClaim, PeerStatus, SelfReviewMark};
use peers_model::limits;
use peers_model::review::{ReviewClaim, SKEPTIC_EXCLUSIONS};
use peers_model::trailer::{Message, Trailer, Trailers, json_objects, list_items};

use crate::dsl::depth;

/// Puts one message through everything.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let message = match text.strip_prefix('\u{1}') {
        Some(rest) => format!("{}\n{rest}", "x".repeat(66 * 1024)),
        None => text.into_owned(),
    };
    taken_apart(&message);
    objects(&message);
    claimed(&message);
}

fn taken_apart(message: &str) {
    let parsed = Message::parse(message);
    assert_eq!(parsed, Message::parse(message), "reading is deterministic");
    let cap = usize::try_from(limits::COMMIT_MESSAGE).expect("small");
    assert_eq!(parsed.cut, message.len() > cap);
    assert!(parsed.body.len() <= cap.min(message.len()));
    assert!(message.contains(parsed.body), "the body is a piece of the message");
    assert!(!parsed.subject.contains('\n') && parsed.subject == parsed.subject.trim());
    for trailer in &parsed.trailers {
        one_trailer(trailer);
    }
    printed(&parsed.trailers);
    if !message.contains('\r') && !parsed.cut {
        let dos = message.replace('\n', "\r\n");
        if dos.len() <= cap {
            assert_eq!(Trailers::parse(&dos), parsed.trailers, "line ends make no difference");
        }
    }
    for name in ["Review", "Bug-Report", "Self-Review", "Skeptic"] {
        assert_eq!(parsed.has_section(name), parsed.sections(name).next().is_some());
        for section in parsed.sections(name) {
            assert!(parsed.body.contains(section));
            assert!(!section.lines().any(|line| line.starts_with("## ")), "a section ends at a heading");
        }
    }
}

/// What was read can be written, and is read again as it was.
fn one_trailer(trailer: &Trailer) {
    let again = Trailer::new(trailer.key(), trailer.value()).expect("a trailer that was read can be written");
    assert_eq!(&again, trailer);
    assert!(!trailer.value().contains('\n') && trailer.value() == trailer.value().trim());
}

fn printed(trailers: &Trailers) {
    let text = format!("subject\n\n{trailers}");
    if text.len() <= usize::try_from(limits::COMMIT_MESSAGE).expect("small") {
        assert_eq!(&Trailers::parse(&text), trailers, "printed trailers are read again");
    }
}

fn objects(text: &str) {
    let found = json_objects(text);
    assert_eq!(found, json_objects(text));
    assert!(found.len() <= 256);
    for object in &found {
        let deepest = object.values().map(depth).max().unwrap_or(0);
        assert!(deepest < limits::JSON_DEPTH, "{deepest} deep");
        let printed = serde_json::to_string(object).expect("an object is printable");
        let again = json_objects(&printed);
        assert_eq!(again.len(), 1, "a printed object is read as one: {printed}");
        assert!(again[0].keys().eq(object.keys()));
    }
    for item in list_items(text) {
        assert!(item.chars().any(char::is_alphabetic) && !item.contains('\n'));
    }
}

fn claimed(message: &str) {
    let claims = CommitClaims::read(message);
    assert_eq!(claims, CommitClaims::read(message), "claims are a function of the message");
    let parsed = Message::parse(message);
    assert!(claims.subject.chars().count() <= 200);
    handoff(claims.handoff.unverified(), &parsed);
    bugs(claims.bugs.unverified(), message, &parsed);
    for review in claims.reviews.iter().flatten() {
        one_review(review.unverified(), &parsed);
    }
    let skeptic = claims.skeptic.unverified();
    if skeptic.is_clean() {
        assert!(skeptic.has_section && skeptic.excluded >= SKEPTIC_EXCLUSIONS);
        assert!(parsed.trailers.last("Skeptic").is_some_and(|v| v.eq_ignore_ascii_case("clean")));
    }
    // A warning costs a line; a message cannot make us say much more than it says itself.
    let said: usize = claims.warnings.iter().map(String::len).sum();
    assert!(said <= 4096 + 32 * message.len(), "{said} bytes of warnings about {} bytes", message.len());
    assert!(claims.warnings.iter().all(|w| w.len() <= limits::WARNING), "{:?}", claims.warnings);
}

fn handoff(claim: &HandoffClaim, message: &Message<'_>) {
    let said =
        |key: &str, word: &str| message.trailers.last(key).is_some_and(|v| v.eq_ignore_ascii_case(word));
    assert_eq!(claim.is_handoff(), said("Peer-Status", "handoff") && said("Self-Review", "pass"));
    assert_eq!(claim.has_self_review_section(), message.has_section("Self-Review"));
    let short = |text: &str| text.chars().count() <= 80;
    if let Some(ClaimedPeer::Malformed(text)) = &claim.peer {
        assert!(short(text));
    }
    if let Some(PeerStatus::Other(text)) = &claim.status {
        assert!(short(text));
    }
    if let Some(SelfReviewMark::Other(text)) = &claim.self_review {
        assert!(short(text));
    }
}

fn bugs(claims: &BugClaims, message: &str, parsed: &Message<'_>) {
    if !BugClaims::may_be_in(message) && !parsed.cut {
        // The subject of the old form has no trailer and is found by its `BUG-` all the same.
        assert_eq!(claims, &BugClaims::default(), "a message without `bug-` claims nothing");
    }
    let named = parsed.trailers.all("Bug-Report").count();
    assert!(claims.reports.len() + claims.flags.len() <= named + usize::from(parsed.cut));
    for report in &claims.reports {
        if report.id.is_err() || report.body.is_err() {
            assert!(report.blocks() && claims.blocks(), "what cannot be read blocks");
        }
        if let Ok(body) = &report.body {
            assert_eq!(body.severity.blocks() || report.id.is_err(), report.blocks());
            let texts = [&body.fix_by, &body.location, &body.file, &body.function, &body.cwe];
            assert!(body.title.chars().count() <= 300);
            assert!(texts.into_iter().flatten().all(|t| t.chars().count() <= 300));
            assert!(body.description.iter().all(|t| t.chars().count() <= 4096));
        }
    }
    let notes = claims.resolutions.iter().filter_map(|r| r.body.as_ref()).map(|b| &b.note);
    let reasons = claims.deferrals.iter().filter_map(|d| d.reason.as_ref());
    assert!(
        notes
            .chain(reasons)
            .chain(claims.waivers.iter().map(|w| &w.reason))
            .all(|t| t.chars().count() <= 4096)
    );
    if !claims.waivers.is_empty() {
        assert!(parsed.trailers.last("Peer").is_some_and(|p| !p.is_empty()), "an unsigned waiver counts");
    }
}

fn one_review(review: &ReviewClaim, message: &Message<'_>) {
    assert!(message.has_section("Review"));
    assert!(message.trailers.all("Peer-Review-Of").any(|v| v == review.goal.as_str()));
    assert!(review.notes.len() <= limits::NOTES);
    for list in [&review.checked, &review.issues] {
        assert!(list.len() <= 50 && list.iter().all(|t| !t.is_empty() && t.chars().count() <= 300));
    }
}
