//! The blocks of a tick that can be shortened. Each renderer keeps to the limit that it is given.

use std::fmt::Write as _;

use peers_model::PeerName;

use super::fence::Fence;
use super::input::{
    BugLine, GateLine, GateState, InboxItem, LastHandoff, PeerMessage, PromptInput, ReviewAsk,
};
use super::share::share;
use super::stable;
use super::text::{self, fit};

/// A rendered block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// Ends in a line end, or is empty.
    pub(crate) text: String,
    /// What was left out, if anything.
    pub(crate) cut: Option<String>,
    /// How many of the input's items it shows; only messages use it.
    pub(crate) shown: usize,
}

/// The kinds of blocks, in their order in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Gates,
    Reviews,
    Notes,
    Diagnostics,
    Warnings,
    Bugs,
    Tree,
    Handoff,
    Inbox,
    Messages,
}

impl Part {
    /// Instructions, before the data.
    pub(crate) const ASKED: [Self; 2] = [Self::Gates, Self::Reviews];
    /// Fenced material.
    pub(crate) const DATA: [Self; 8] = [
        Self::Notes,
        Self::Diagnostics,
        Self::Warnings,
        Self::Bugs,
        Self::Tree,
        Self::Handoff,
        Self::Inbox,
        Self::Messages,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::Reviews => "reviews",
            Self::Notes => "notes",
            Self::Diagnostics => "diagnostics",
            Self::Warnings => "warnings",
            Self::Bugs => "bugs",
            Self::Tree => "tree",
            Self::Handoff => "last-handoff",
            Self::Inbox => "inbox",
            Self::Messages => "messages",
        }
    }

    /// Most bytes, even when there is room.
    pub(crate) fn cap(self) -> usize {
        const KIB: usize = 1024;
        match self {
            Self::Gates | Self::Reviews => 8 * KIB,
            Self::Notes | Self::Diagnostics | Self::Messages => 16 * KIB,
            Self::Warnings | Self::Bugs => 4 * KIB,
            Self::Tree => 3 * KIB,
            Self::Handoff => 7 * KIB,
            Self::Inbox => 12 * KIB,
        }
    }

    /// Renders in at most `limit` bytes; empty when there is nothing to say.
    pub(crate) fn render(self, input: &PromptInput, fence: &Fence, limit: usize) -> Block {
        match self {
            Self::Gates => gates(&input.gates, input.stuck_after, fence, limit),
            Self::Reviews => reviews(&input.reviews, &input.me, fence, limit),
            Self::Notes => notes(&input.notes, fence, limit),
            Self::Diagnostics => diagnostics(&input.gates, fence, limit),
            Self::Warnings => warnings(&input.warnings, fence, limit),
            Self::Bugs => bugs(&input.open_bugs, fence, limit),
            Self::Tree => tree(input.git_state.as_deref(), (&input.dirty, &input.operators), fence, limit),
            Self::Handoff => handoff(input.last_handoff.as_ref(), fence, limit),
            Self::Inbox => inbox(&input.inbox, fence, limit),
            Self::Messages => messages(&input.messages, fence, limit),
        }
    }
}

fn nothing_fits(what: &str) -> Block {
    Block { cut: Some(format!("{what}: all left out")), ..Block::default() }
}

fn left_out(what: &str, count: usize, of: usize) -> Option<String> {
    (count > 0).then(|| format!("{what}: {count} of {of} left out"))
}

/// Worst first: red ones by how often they were red, then those that could not be judged.
fn worst_first(gates: &[GateLine]) -> Vec<&GateLine> {
    let rank = |gate: &GateLine| match gate.state {
        GateState::Fail | GateState::Timeout | GateState::ProofFailed => 0,
        GateState::Error => 1,
        GateState::Skipped | GateState::Unknown => 2,
        GateState::Pass => 3,
    };
    let mut sorted: Vec<&GateLine> = gates.iter().collect();
    sorted.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.reds.cmp(&a.reds)));
    sorted
}

fn gates(all: &[GateLine], stuck_after: u32, fence: &Fence, limit: usize) -> Block {
    const ABOUT: usize = 160;
    if all.is_empty() {
        return Block::default();
    }
    let count = |test: fn(GateState) -> bool| all.iter().filter(|g| test(g.state)).count();
    let sorted = worst_first(all);
    let mut lines = vec![
        "## Gates".to_owned(),
        String::new(),
        format!(
            "{} red, {} that could not be judged, {} not judged yet, {} green. A gate is green only when our own run of it passes.",
            count(GateState::is_red),
            count(|s| s == GateState::Error),
            count(|s| matches!(s, GateState::Skipped | GateState::Unknown)),
            count(|s| s == GateState::Pass),
        ),
    ];
    if all.iter().any(|g| g.state == GateState::ProofFailed) {
        lines.push(
            "`proof-failed`: green in this work tree, red in a clean checkout. Look for a file that is not committed or a \
             dependency that only this tree has."
                .into(),
        );
    }
    let threshold = if stuck_after == 0 { 10 } else { stuck_after.div_ceil(2) };
    let stuck: Vec<String> = sorted
        .iter()
        .filter(|g| g.state.is_red() && g.reds >= threshold)
        .map(|g| format!("`{}` ({} times)", g.id, g.reds))
        .collect();
    if !stuck.is_empty() {
        let shown = stuck.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let more = stuck.len().saturating_sub(5);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!(
            "Stuck: {shown}{tail} red in a row. What was tried does not work. Change the strategy: question the diagnosis, \
             reproduce it in the smallest way, read the code underneath."
        ));
    }
    lines.push(String::new());
    let mut green = Vec::new();
    for gate in &sorted {
        let GateLine { id, about, state, diagnostic: _, reds, was, exempt } = gate;
        let changed = was.filter(|was| was != state);
        if *state == GateState::Pass && changed.is_none() {
            green.push(format!("`{id}`"));
            continue;
        }
        let mut line = format!("- `{id}`: {}", state.word());
        if let Some(was) = changed {
            let _infallible = write!(line, " (was {})", was.word());
        }
        if state.is_red() && *reds > 1 {
            let _infallible = write!(line, ", {reds} times in a row");
        }
        if *exempt {
            line.push_str(", judged in this work tree only");
        }
        if let Some(about) = about.as_deref().map(|a| fence.safe_line(a, ABOUT)).filter(|a| !a.is_empty()) {
            let _infallible = write!(line, ": {about}");
        }
        lines.push(line);
    }
    // Green gates share lines, of a length that keeps cutting fine-grained.
    for some in green.chunks(8) {
        lines.push(format!("- green: {}", some.join(", ")));
    }
    let (text, omitted) = fit(&lines, limit, |n| format!("- (and {n} more lines)"));
    if text.is_empty() {
        return nothing_fits("gates");
    }
    Block { text, cut: left_out("gates: lines", omitted, lines.len()), shown: 0 }
}

fn reviews(asked: &[ReviewAsk], me: &PeerName, fence: &Fence, limit: usize) -> Block {
    if asked.is_empty() {
        return Block::default();
    }
    let mut head = "## Reviews asked of you in this turn\n\n".to_owned();
    head.push_str(&stable::REVIEW.replace("{me}", me.as_str()));
    head.push('\n');
    // Every id is named, even when its instruction or what was found for it has to be shortened.
    let titles: Vec<String> = asked.iter().map(|r| format!("- `{}`: ", r.id)).collect();
    let found: Vec<Found> = asked.iter().map(|ask| Found::new(ask, fence)).collect();
    let fixed: usize = head.len()
        + titles.iter().map(|t| t.len() + 1).sum::<usize>()
        + found.iter().map(|found| found.overhead(fence)).sum::<usize>();
    let Some(room) = limit.checked_sub(fixed) else {
        let lines: Vec<String> = titles.iter().map(|t| t.trim_end_matches([':', ' ']).to_owned()).collect();
        let (ids, omitted) = fit(&lines, limit.saturating_sub(head.len()), |n| format!("- (and {n} more)"));
        if ids.is_empty() {
            return nothing_fits("reviews");
        }
        let cut = Some(format!("reviews: instructions and {omitted} of {} ids left out", asked.len()));
        return Block { text: head + &ids, cut, shown: 0 };
    };
    let texts: Vec<String> = asked.iter().map(|r| fence.safe(r.prompt.trim())).collect();
    let wants: Vec<usize> =
        texts.iter().zip(&found).flat_map(|(text, found)| [text.len(), found.body.len()]).collect();
    let sizes = share(room, &wants);
    let mut shortened = 0;
    for (((title, text), found), size) in titles.iter().zip(&texts).zip(&found).zip(sizes.chunks_exact(2)) {
        let [for_text, for_body] = *size else { continue };
        shortened += usize::from(for_text < text.len()) + usize::from(for_body < found.body.len());
        head.push_str(title);
        head.push_str(&text::head_and_tail(text, for_text));
        head.push('\n');
        found.push_to(&mut head, fence, for_body);
    }
    let cut = (shortened > 0).then(|| format!("reviews: {shortened} texts shortened"));
    Block { text: head, cut, shown: 0 }
}

/// What the check of a review found, as the reviewer reads it.
#[derive(Default)]
struct Found {
    /// Above it; empty without a check.
    says: String,
    /// Of the fence.
    label: String,
    /// What is in the fence; empty = there is none.
    body: String,
}

impl Found {
    fn new(ask: &ReviewAsk, fence: &Fence) -> Self {
        let Some(findings) = &ask.findings else { return Self::default() };
        let says = match findings.state {
            GateState::Pass => "found nothing here",
            GateState::Fail => "found something here; judge it as well",
            GateState::Timeout | GateState::Error | GateState::Skipped => "could not tell",
            GateState::ProofFailed | GateState::Unknown => return Self::default(),
        };
        let says = format!("  The check `{}` {says}.\n", findings.check);
        let body = match findings.state {
            GateState::Pass => String::new(),
            _ => text::head_and_tail(fence.safe(&findings.text).trim(), peers_model::limits::DIAGNOSTIC),
        };
        Self { says, label: format!("check {} for {}", findings.check, ask.id), body }
    }

    /// What it takes beside its body, bytes.
    fn overhead(&self, fence: &Fence) -> usize {
        let around = if self.body.is_empty() { 0 } else { fence.overhead(&self.label) };
        self.says.len() + around
    }

    fn push_to(&self, text: &mut String, fence: &Fence, size: usize) {
        text.push_str(&self.says);
        if !self.body.is_empty() {
            text.push_str(&fence.wrap(&self.label, &text::head_and_tail(&self.body, size)));
        }
    }
}

fn diagnostics(all: &[GateLine], fence: &Fence, limit: usize) -> Block {
    const HEAD: &str = "## What the gates said\n\n";
    /// Less of a diagnostic than this tells nothing.
    const LEAST: usize = 160;
    let sorted: Vec<&GateLine> = worst_first(all)
        .into_iter()
        .filter(|g| g.state != GateState::Pass && !g.diagnostic.trim().is_empty())
        .collect();
    if sorted.is_empty() {
        return Block::default();
    }
    let items: Vec<(String, String)> = sorted
        .iter()
        .map(|g| {
            let body = text::head_and_tail(fence.safe(&g.diagnostic).trim(), peers_model::limits::DIAGNOSTIC);
            (format!("gate {} {}", g.id, g.state.word()), body)
        })
        .collect();
    let more = |n: usize| format!("({n} more gates are not shown here.)\n");
    let reserve = HEAD.len() + more(items.len()).len();
    let Some(room) = limit.checked_sub(reserve) else { return nothing_fits("diagnostics") };
    let mut needed = 0;
    let shown: Vec<&(String, String)> = items
        .iter()
        .take_while(|(label, body)| {
            needed += fence.overhead(label) + body.len().min(LEAST);
            needed <= room
        })
        .collect();
    if shown.is_empty() {
        return nothing_fits("diagnostics");
    }
    let overhead: usize = shown.iter().map(|(label, _)| fence.overhead(label)).sum();
    let wants: Vec<usize> = shown.iter().map(|(_, body)| body.len()).collect();
    let mut text = HEAD.to_owned();
    let mut shortened = 0;
    for ((label, body), size) in shown.iter().zip(share(room - overhead, &wants)) {
        shortened += usize::from(size < body.len());
        text.push_str(&fence.wrap(label, &text::head_and_tail(body, size)));
    }
    let omitted = items.len() - shown.len();
    if omitted > 0 {
        text.push_str(&more(omitted));
    }
    let cut = (shortened + omitted > 0)
        .then(|| format!("diagnostics: {shortened} shortened, {omitted} of {} left out", items.len()));
    Block { text, cut, shown: 0 }
}

fn warnings(all: &[String], fence: &Fence, limit: usize) -> Block {
    const HEAD: &str = "## Warnings of the loop\n\n";
    const LABEL: &str = "warnings";
    const EACH: usize = 400;
    /// Warnings shown at most, and how many of them are the oldest.
    const SHOWN: usize = 50;
    const OLDEST: usize = 5;
    let mut unique: Vec<(String, usize)> = Vec::new();
    for raw in all {
        let line = fence.safe_line(raw, EACH);
        match unique.iter_mut().find(|(known, _)| *known == line) {
            Some((_, times)) => *times += 1,
            None => unique.push((line, 1)),
        }
    }
    let lines: Vec<String> = unique
        .into_iter()
        .map(
            |(line, times)| if times > 1 { format!("- {line} ({times} times)") } else { format!("- {line}") },
        )
        .collect();
    if lines.is_empty() {
        return Block::default();
    }
    let total = lines.len();
    let Some(room) = limit.checked_sub(HEAD.len() + fence.overhead(LABEL)) else {
        return nothing_fits("warnings");
    };
    // The first ones and the newest ones; the gap grows until the rest fits.
    for shown in (1..=total.min(SHOWN)).rev() {
        let first = shown.min(OLDEST);
        let last = shown - first;
        let gap = total - shown;
        let mut picked: Vec<&str> = lines.iter().take(first).map(String::as_str).collect();
        let marker = format!("- ({gap} warnings left out here)");
        if gap > 0 {
            picked.push(&marker);
        }
        picked.extend(lines.iter().skip(total - last).map(String::as_str));
        let body = picked.join("\n");
        if body.len() <= room {
            let text = format!("{HEAD}{}", fence.wrap(LABEL, &body));
            return Block { text, cut: left_out("warnings", gap, total), shown: 0 };
        }
    }
    nothing_fits("warnings")
}

fn bugs(all: &[BugLine], fence: &Fence, limit: usize) -> Block {
    const HEAD: &str = "## Open bugs that need you\n\n";
    const LABEL: &str = "bugs";
    let rank = |bug: &BugLine| {
        ["crit", "high", "med", "low", "info"]
            .iter()
            .position(|s| s.eq_ignore_ascii_case(&bug.severity))
            .unwrap_or(5)
    };
    let mut sorted: Vec<&BugLine> = all.iter().collect();
    sorted.sort_by_key(|bug| rank(bug));
    let lines: Vec<String> = sorted
        .iter()
        .map(|bug| {
            let BugLine { id, severity, title, location, reporter, needs } = bug;
            format!(
                "- {id} [{}] {}; at {}; reported by {}; needs: {}",
                fence.safe_line(severity, 12),
                fence.safe_line(title, 160),
                fence.safe_line(location, 160),
                fence.safe_line(reporter, 40),
                fence.safe_line(needs, 120),
            )
        })
        .collect();
    fenced_lines("bugs", HEAD, LABEL, &lines, fence, limit)
}

fn tree(
    git_state: Option<&str>,
    (dirty, operators): (&[String], &[String]),
    fence: &Fence,
    limit: usize,
) -> Block {
    const HEAD: &str = "## The work tree is not clean\n\nSomebody before you left this. Commit what belongs to the work, \
                        remove the rest; nothing is complete while it stays. Lines that begin with `operator:` were there \
                        before the run began: never change or remove those, and commit one only if the work needs it.\n\n";
    const LABEL: &str = "git status";
    const LINES: usize = 30;
    let mut lines: Vec<String> = Vec::new();
    if let Some(state) = git_state {
        lines.push(format!("left in progress: {}", fence.safe_line(state, 200)));
    }
    let all = dirty.len() + operators.len();
    let own = operators.iter().map(|line| format!("operator: {}", fence.safe_line(line, 200)));
    lines.extend(dirty.iter().map(|line| fence.safe_line(line, 200)).chain(own).take(LINES));
    if all > LINES {
        lines.push(format!("(and {} more)", all - LINES));
    }
    let mut block = fenced_lines("tree", HEAD, LABEL, &lines, fence, limit);
    if block.cut.is_none() {
        block.cut = left_out("tree", all.saturating_sub(LINES), all);
    }
    block
}

fn handoff(last: Option<&LastHandoff>, fence: &Fence, limit: usize) -> Block {
    const REVIEW: usize = 4096;
    const DIFFSTAT: usize = 2048;
    const TITLES: &str = "\n\nself-review:\n\n\nchanged:\n";
    let Some(LastHandoff { peer, sha, subject, self_review, diffstat }) = last else {
        return Block::default();
    };
    let head = format!("## The last handoff: `{peer}`, commit {}\n\n", sha.short());
    let label = "handoff";
    let subject = fence.safe_line(subject, 200);
    let review = fence.safe(self_review.trim());
    let changed = fence.safe(diffstat.trim_end());
    let fixed = head.len() + fence.overhead(label) + TITLES.len() + "subject: ".len() + subject.len();
    let Some(room) = limit.checked_sub(fixed) else { return nothing_fits("last-handoff") };
    let sizes = share(room, &[review.len().min(REVIEW), changed.len().min(DIFFSTAT)]);
    let (review_size, changed_size) = match sizes.as_slice() {
        [a, b] => (*a, *b),
        _ => (0, 0),
    };
    let body = format!(
        "subject: {subject}\n\nself-review:\n{}\n\nchanged:\n{}",
        text::head_and_tail(&review, review_size),
        text::head_and_tail(&changed, changed_size),
    );
    let cut = (review_size < review.len() || changed_size < changed.len())
        .then(|| "last-handoff: shortened".into());
    Block { text: format!("{head}{}", fence.wrap(label, &body)), cut, shown: 0 }
}

/// Notes about a step share what room there is, each with its head and its tail.
fn notes(all: &[(PeerName, String)], fence: &Fence, limit: usize) -> Block {
    const HEAD: &str = "## The sealed notes on the step\n\n";
    if all.is_empty() {
        return Block::default();
    }
    let label = |peer: &PeerName| format!("notes of {peer}");
    let texts: Vec<String> = all.iter().map(|(_, text)| fence.safe(text)).collect();
    let fixed: usize = all.iter().map(|(peer, _)| fence.overhead(&label(peer))).sum();
    let Some(room) = limit.checked_sub(HEAD.len() + fixed) else { return nothing_fits("notes") };
    let wants: Vec<usize> = texts.iter().map(String::len).collect();
    let mut block = Block { text: HEAD.to_owned(), ..Block::default() };
    for (((peer, _), text), size) in all.iter().zip(&texts).zip(share(room, &wants)) {
        if size < text.len() {
            block.cut = Some("notes: shortened".to_owned());
        }
        block.text.push_str(&fence.wrap(&label(peer), &text::head_and_tail(text, size)));
    }
    block
}

fn inbox(all: &[InboxItem], fence: &Fence, limit: usize) -> Block {
    const HEAD: &str = "## New commits of the others, newest first\n\n";
    let lines: Vec<String> = all
        .iter()
        .rev()
        .map(|InboxItem { from, subject, sha }| {
            format!("[{from}] {} ({})", fence.safe_line(subject, 200), sha.short())
        })
        .collect();
    fenced_lines("inbox", HEAD, "commits", &lines, fence, limit)
}

/// A heading and one fence with as many lines as fit.
fn fenced_lines(name: &str, head: &str, label: &str, lines: &[String], fence: &Fence, limit: usize) -> Block {
    if lines.is_empty() {
        return Block::default();
    }
    let Some(room) = limit.checked_sub(head.len() + fence.overhead(label)) else { return nothing_fits(name) };
    let (body, omitted) = fit(lines, room, |n| format!("(and {n} more)"));
    if body.is_empty() {
        return nothing_fits(name);
    }
    let text = format!("{head}{}", fence.wrap(label, &body));
    Block { text, cut: left_out(name, omitted, lines.len()), shown: 0 }
}

fn messages(all: &[PeerMessage], fence: &Fence, limit: usize) -> Block {
    const HEAD: &str = "## Messages to you\n\n";
    const EACH_CHARS: usize = 4000;
    const MOST: usize = 20;
    /// A first message that does not fit is cut rather than put off for ever, if this much fits.
    const LEAST: usize = 200;
    if all.is_empty() {
        return Block::default();
    }
    let more = |n: usize| format!("({n} more messages come with your next turn.)\n");
    let mut text = HEAD.to_owned();
    let reserve = more(all.len()).len();
    let (mut shown, mut shortened) = (0, 0);
    for PeerMessage { from, name, text: raw } in all.iter().take(MOST) {
        let label = format!("message from {from}");
        let safe = fence.safe(raw);
        let body =
            format!("file: {}\n\n{}", fence.safe_line(name, 80), text::first_chars(safe.trim(), EACH_CHARS));
        let Some(room) = limit.checked_sub(text.len() + reserve + fence.overhead(&label)) else { break };
        let whole = body.len() <= room;
        if !whole && (shown > 0 || room < LEAST) {
            break;
        }
        shortened +=
            usize::from(!whole || text::first_chars(safe.trim(), EACH_CHARS).len() < safe.trim().len());
        text.push_str(&fence.wrap(&label, &text::head_and_tail(&body, room)));
        shown += 1;
    }
    if shown == 0 {
        return nothing_fits("messages");
    }
    let waiting = all.len() - shown;
    if waiting > 0 {
        text.push_str(&more(waiting));
    }
    let cut = (waiting + shortened > 0)
        .then(|| format!("messages: {shortened} shortened, {waiting} of {} put off", all.len()));
    Block { text, cut, shown }
}
