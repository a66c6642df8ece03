//! `self-review`: who hands over has looked at the work, and says so in the commit.

use peers_core::bugs::Author;
use peers_model::bug::reason_chars;
use peers_model::check::{self, Args};
use peers_model::claim::CommitClaims;
use peers_model::handoff::{HandoffClaim, PeerStatus, SelfReviewMark};
use peers_model::{CommitId, PeerName};

use crate::attribution::Whose;
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

/// Characters that a section must have, runs of blanks counted as one.
const MIN_SECTION: usize = 80;
/// Digits of a commit's id that name it.
const MIN_NAME: usize = 7;

pub(crate) const CHECK: Check = Check {
    name: check::SELF_REVIEW.name,
    about: "Every handoff of a peer carries its author's review",
    args: check::SELF_REVIEW.args,
    run,
};

fn run(cx: &CheckCx, args: &Args) -> Report {
    judge(cx, args.is_on("all-since-base")).unwrap_or_else(Report::from)
}

/// A commit of a peer that says something about a handoff or a review.
struct Said {
    id: CommitId,
    peer: PeerName,
    claim: HandoffClaim,
}

impl Said {
    fn hands_over(&self) -> bool {
        self.claim.status == Some(PeerStatus::Handoff)
    }

    fn section(&self) -> &str {
        self.claim.self_review_section.as_deref().unwrap_or_default()
    }

    fn has_full_section(&self) -> bool {
        reason_chars(self.section()) >= MIN_SECTION
    }

    fn is_complete(&self) -> bool {
        self.claim.is_handoff() && self.has_full_section()
    }
}

fn judge(cx: &CheckCx, all: bool) -> Result<Report, CouldNot> {
    let attribution = cx.attribution().map_err(Clone::clone)?;
    let whose = Whose::new(cx, attribution)?;
    let (mut said, mut unknown, mut of_peers) = (Vec::new(), Vec::new(), 0_usize);
    let commits = cx.commits()?;
    let looked_at = commits.len();
    for commit in commits {
        match whose.author(&commit.id) {
            Author::Peer(peer) if !whose.is_voided(&commit.id) => {
                of_peers += 1;
                let claim = CommitClaims::read(&commit.message).handoff.into_unverified();
                if claim.status.is_some() || claim.self_review_section.is_some() {
                    said.push(Said { id: commit.id, peer, claim });
                }
            }
            // What was taken back hands nothing over.
            Author::Peer(_) | Author::Operator | Author::Substrate | Author::Foreign => {}
            Author::Unattributed => unknown.push(commit.id),
        }
    }
    let handoffs: Vec<usize> =
        (0..said.len()).filter(|at| said.get(*at).is_some_and(Said::hands_over)).collect();
    let asked: &[usize] = match handoffs.split_last() {
        Some((_, rest)) if !all => handoffs.get(rest.len()..).unwrap_or_default(),
        _ => &handoffs,
    };
    let mut findings: Vec<Finding> = asked.iter().filter_map(|at| defect(&said, *at)).collect();
    let bad = findings.len();
    if of_peers > 0 && handoffs.is_empty() {
        let what =
            "no commit of a peer hands over: one must carry `Peer-Status: handoff` and `Self-Review: pass`";
        findings.push(Finding::about(cx.head(), "no-handoff", what));
    }
    let certain = !findings.is_empty();
    let blind = of_peers > 0 && !unknown.is_empty();
    if blind {
        let what = "the loop did not see this commit arrive, so its author is unknown";
        findings.extend(unknown.iter().map(|id| Finding::about(id, "unattributed", what)));
    }
    let mut report = if certain {
        let summary = match (bad, asked.len()) {
            (0, _) => "no handoff since the base".to_owned(),
            (bad, 1) => format!("{bad} of 1 handoff has no full self-review"),
            (bad, n) => {
                format!("{bad} of {n} handoffs {} no full self-review", if bad == 1 { "has" } else { "have" })
            }
        };
        Report::new(Verdict::Fail, summary)
    } else if blind {
        let n = unknown.len();
        let commits = if n == 1 { "commit is" } else { "commits are" };
        Report::new(Verdict::Error, format!("{n} {commits} of unknown origin"))
    } else if of_peers == 0 {
        Report::new(Verdict::Pass, "no commit of a peer since the base")
    } else {
        let n = asked.len();
        Report::new(Verdict::Pass, format!("{n} {} reviewed", if n == 1 { "handoff" } else { "handoffs" }))
    };
    report.hint = hint(certain, blind, bad);
    report.findings = findings;
    report.count("commits", looked_at);
    report.count("commits_of_peers", of_peers);
    report.count("handoffs", handoffs.len());
    report.count("unattributed", unknown.len());
    Ok(report)
}

fn hint(certain: bool, blind: bool, bad: usize) -> Option<String> {
    if certain && bad > 0 {
        Some(format!(
            "history stays as it is: commit a `## Self-Review` section of at least {MIN_SECTION} characters that names \
             the commit; the peer that made it must do it"
        ))
    } else if blind && !certain {
        Some("a commit that appears while no peer is alive becomes the operator's when the next turn or run begins".to_owned())
    } else {
        None
    }
}

/// What is wrong with a handoff, unless its peer has made it good since.
fn defect(said: &[Said], at: usize) -> Option<Finding> {
    let handoff = said.get(at)?;
    let later = || said.iter().skip(at + 1).filter(|s| s.peer == handoff.peer);
    let made_good = || later().any(|s| s.has_full_section() && names(s.section(), &handoff.id));
    let (kind, what) = match &handoff.claim.self_review {
        None => ("missing-trailer", "has no `Self-Review: pass`".to_owned()),
        Some(SelfReviewMark::Other(mark)) => {
            // An honest doubt is answered by work that its author stands behind.
            if later().any(Said::is_complete) {
                return None;
            }
            ("not-passed", format!("says `Self-Review: {mark}`"))
        }
        Some(SelfReviewMark::Pass) if !handoff.claim.has_self_review_section() => {
            ("missing-section", "has no `## Self-Review` section".to_owned())
        }
        Some(SelfReviewMark::Pass) if !handoff.has_full_section() => {
            let n = reason_chars(handoff.section());
            ("short-section", format!("has a `## Self-Review` section of {n} characters, of {MIN_SECTION}"))
        }
        Some(SelfReviewMark::Pass) => return None,
    };
    if made_good() {
        return None;
    }
    Some(Finding::about(&handoff.id, kind, &format!("this handoff of {} {what}", handoff.peer)))
}

/// Whether the text holds the id, or a beginning of it that is long enough to mean it.
fn names(text: &str, id: &CommitId) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() >= MIN_NAME)
        .any(|word| id.as_str().starts_with(&word.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_named_by_enough_of_its_id() {
        let id = CommitId::new(format!("abc1234{}", "0".repeat(33))).unwrap();
        assert!(names("makes good ABC1234.", &id));
        assert!(!names("abc123 abd1234", &id));
    }
}
