//! `peers-ctl review`: the newest handoffs, what they say of themselves and what others say of them.
//!
//! Which commit is a handoff, and whose, is taken from the journal; of git only the message is asked.

use std::collections::VecDeque;

use peers_git::Facts;
use peers_model::handoff::HandoffClaim;
use peers_model::record::{Line, Record, TickRecord};
use peers_model::trailer::Message;
use peers_model::{CommitId, GoalId, PeerName, TickNo, Timestamp};
use peers_store::journal::{Journal, JournalError};
use peers_store::{Disk, Position};
use peers_sys::term;
use serde::Serialize;

use crate::json;
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::words::{ago, count_of};

/// Handoffs that can be asked for.
const MOST: usize = 100;
/// Sections of one message.
const SECTIONS: usize = 32;
/// Reviews of one handoff.
const REVIEWS: usize = 100;
/// Lines of one section that are shown.
const LINES: usize = 200;

/// Which handoffs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffsAsked {
    /// Those of one peer alone.
    pub peer: Option<PeerName>,
    /// How many of the newest; one where it is zero.
    pub newest: usize,
}

/// A handoff and what was said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Handoff {
    /// The commit.
    pub sha: CommitId,
    /// Whose, by the record of its turn.
    pub peer: PeerName,
    /// In which tick.
    pub tick: TickNo,
    /// When that ended.
    pub ts: Timestamp,
    /// HEAD before the turn.
    pub from: CommitId,
    /// Its message; absent where the repository was not asked or does not have it.
    pub message: Option<HandoffMessage>,
    /// What the other peers said of it until its author's next turn.
    pub reviews: Vec<PeerReview>,
    /// Reviews that were left out.
    pub reviews_left_out: u64,
}

/// The message of a handoff. All of it is untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandoffMessage {
    /// Its first line.
    pub subject: String,
    /// What stands before its first section.
    pub body: String,
    /// Its sections, `## TITLE`.
    pub sections: Vec<Section>,
    /// It names another peer than the one whose turn it was: it is not what it says.
    pub claims_other: Option<String>,
    /// It says that it hands over.
    pub says_handoff: bool,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// Its text.
    pub text: String,
}

/// What a peer said of the work of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeerReview {
    /// Who, by the record.
    pub peer: PeerName,
    /// In which tick.
    pub tick: TickNo,
    /// When that ended.
    pub ts: Timestamp,
    /// Of which soft goal.
    pub goal: GoalId,
    /// The answer.
    pub pass: bool,
    /// The commit that holds it.
    pub sha: CommitId,
    /// Notes. Untrusted text.
    pub notes: String,
}

/// The newest handoffs, the newest first. `git` looks up their messages.
///
/// # Errors
/// [`JournalError`] when the journal is damaged: a review behind the damage would be missing.
pub fn handoffs<D: Disk>(
    disk: &mut D,
    asked: &HandoffsAsked,
    git: Option<&Facts<'_>>,
) -> Result<Vec<Handoff>, JournalError> {
    let mut found: VecDeque<Open> = VecDeque::new();
    let most = asked.newest.clamp(1, MOST);
    Journal::open(disk, &Position::default(), false, |read| {
        take(&mut found, &read.line, asked.peer.as_ref(), most);
        Ok::<(), JournalError>(())
    })?;
    let mut handoffs: Vec<Handoff> = found.into_iter().map(|open| open.handoff).collect();
    handoffs.reverse();
    for handoff in &mut handoffs {
        let fact = git.and_then(|git| git.commit(&handoff.sha).ok());
        handoff.message = fact.map(|fact| message(&fact.message, &handoff.peer));
    }
    Ok(handoffs)
}

/// A handoff of which more may be said.
struct Open {
    handoff: Handoff,
    /// Its author has had another turn.
    over: bool,
}

fn take(found: &mut VecDeque<Open>, line: &Line, peer: Option<&PeerName>, most: usize) {
    let Record::Tick(tick) = &line.record else { return };
    for open in found.iter_mut().filter(|open| !open.over) {
        if open.handoff.peer == tick.peer {
            open.over = true;
            continue;
        }
        for review in &tick.reviews {
            if open.handoff.reviews.len() >= REVIEWS {
                open.handoff.reviews_left_out += 1;
                continue;
            }
            open.handoff.reviews.push(PeerReview {
                peer: tick.peer.clone(),
                tick: tick.iteration,
                ts: line.ts,
                goal: review.goal.clone(),
                pass: review.pass,
                sha: review.sha.clone(),
                notes: review.notes.clone(),
            });
        }
    }
    let Some(sha) = handed_over(tick).filter(|_| peer.is_none_or(|peer| *peer == tick.peer)) else { return };
    let handoff = Handoff {
        sha: sha.clone(),
        peer: tick.peer.clone(),
        tick: tick.iteration,
        ts: line.ts,
        from: tick.head_before.clone(),
        message: None,
        reviews: Vec::new(),
        reviews_left_out: 0,
    };
    found.push_back(Open { handoff, over: false });
    if found.len() > most {
        found.pop_front();
    }
}

/// The commit with which a turn was handed over.
fn handed_over(tick: &TickRecord) -> Option<&CommitId> {
    tick.commits.last().filter(|_| tick.success)
}

fn message(text: &str, peer: &PeerName) -> HandoffMessage {
    let parsed = Message::parse(text);
    let claim = HandoffClaim::read(&parsed);
    let named = parsed.trailers.last("Peer").filter(|name| *name != peer.as_str());
    let mut body = String::new();
    let mut sections: Vec<Section> = Vec::new();
    // The subject is told by itself.
    let rest = parsed.body.trim_start();
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    for line in rest.lines() {
        match line.strip_prefix("## ") {
            Some(title) if sections.len() < SECTIONS => {
                sections.push(Section { title: title.trim().to_owned(), text: String::new() });
            }
            _ => {
                let text = sections.last_mut().map_or(&mut body, |section| &mut section.text);
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    let trimmed = |text: &str| text.trim_matches('\n').trim_end().to_owned();
    HandoffMessage {
        subject: parsed.subject.to_owned(),
        body: trimmed(&body),
        sections: sections
            .into_iter()
            .map(|section| Section { text: trimmed(&section.text), ..section })
            .collect(),
        claims_other: named.map(str::to_owned),
        says_handoff: claim.is_handoff(),
    }
}

/// The handoffs for programs, schema `peers-ctl.review/1`.
#[must_use]
pub fn handoffs_json(handoffs: &[Handoff], now: Timestamp) -> String {
    #[derive(Serialize)]
    struct Data<'a> {
        handoffs: &'a [Handoff],
    }
    json::enveloped("peers-ctl.review/1", now, Data { handoffs }, [(); 0])
}

/// The handoffs for people. Ends in a newline.
#[must_use]
pub fn handoffs_text(handoffs: &[Handoff], now: Timestamp, colour: Colour) -> String {
    handoffs_page(handoffs, now).text(colour)
}

/// The same as lines.
#[must_use]
pub fn handoffs_page(handoffs: &[Handoff], now: Timestamp) -> Page {
    let mut page = Page::new();
    for (at, handoff) in handoffs.iter().enumerate() {
        if at > 0 {
            page.blank();
        }
        one(&mut page, handoff, now);
    }
    page
}

fn one(page: &mut Page, handoff: &Handoff, now: Timestamp) {
    let Handoff { sha, peer, tick, ts, from, message, reviews, reviews_left_out } = handoff;
    page.field("handoff", Tone::Strong, format!("{} of {peer}, tick {tick}, {}", sha.short(), ago(now, *ts)));
    page.field("changes", Tone::Plain, format!("{} -> {}", from.short(), sha.short()));
    match message {
        None => page.field("subject", Tone::Care, "the repository does not have it"),
        Some(message) => {
            page.field("subject", Tone::Plain, &message.subject);
            if let Some(other) = &message.claims_other {
                let text = format!("it says that it is by `{other}`; by the record it is by {peer}");
                page.field("look at", Tone::Bad, text);
            }
            if !message.says_handoff {
                page.field("look at", Tone::Care, "its message does not say that it hands over");
            }
            text(page, &message.body);
            for section in &message.sections {
                page.heading(&section.title);
                text(page, &section.text);
            }
        }
    }
    page.blank();
    if reviews.is_empty() {
        page.say("no other peer has reviewed it yet");
        return;
    }
    let against = reviews.iter().filter(|review| !review.pass).count();
    let title = format!("{} of others, {against} against", count_of(reviews, "review"));
    page.tell(Tone::Strong, title);
    for review in reviews {
        let (tone, word) = if review.pass { (Tone::Good, "pass") } else { (Tone::Bad, "fail") };
        page.line(&[
            plain(format!("  {} in tick {}: ", review.peer, review.tick)),
            Cell::new(tone, word),
            plain(format!(", {} ({})", review.goal, review.sha.short())),
        ]);
        text(page, &review.notes);
    }
    if *reviews_left_out > 0 {
        page.say(format!("  and {reviews_left_out} more"));
    }
}

/// Foreign text, marked as such line by line.
fn text(page: &mut Page, text: &str) {
    let shown = term::block(text);
    let lines: Vec<&str> = shown.trim().lines().collect();
    for line in lines.iter().take(LINES) {
        page.line(&[faint("  | "), plain(line)]);
    }
    if lines.len() > LINES {
        page.say(format!("  and {} more lines", lines.len() - LINES));
    }
}
