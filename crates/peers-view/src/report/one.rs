//! `peers report`: the outcome first, then how it came about.

use peers_core::test_output::last_words;
use peers_model::Timestamp;
use peers_model::outcome::StopReason;
use peers_store::Disk;
use serde::Serialize;

use super::past::{self, TEXT};
use crate::advice::{Attention, Level, is_alarming, level_of};
use crate::asked::Asked;
use crate::closing::next_step;
use crate::history::{ExitRow, GateHistory, History, PeerCost, When};
use crate::json;
use crate::live::{Stamp, live_words};
use crate::liveness::Liveness;
use crate::loopview::{Core, LoopView, REFUSED};
use crate::markdown::{Document, code};
use crate::notable::Notable;
use crate::peers::PeerRow;
use crate::sourced::Sourced;
use crate::status::{dirty, excluded, unseen};
use crate::words::{count, duration_ms, percent, thousands};

/// Bugs in a report.
const BUGS: usize = 200;

/// A loop as it is and as it came to be so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// As it is.
    pub view: LoopView,
    /// As it came to be.
    pub history: Sourced<History>,
}

impl Report {
    /// Reads both. Writes nothing.
    pub fn read<D: Disk>(disk: &mut D, asked: &Asked) -> Self {
        Self { view: LoopView::read(disk, asked), history: History::read(disk) }
    }
}

/// The report for programs, schema `peers.report/1`.
#[must_use]
pub fn report_json(report: &Report) -> String {
    json::document("peers.report/1", &document(report))
}

/// The report with its outcome.
pub(super) fn document(report: &Report) -> impl Serialize + use<'_> {
    #[derive(Serialize)]
    struct Outcome<'a> {
        text: String,
        kind: Option<&'static str>,
        attention: &'a Attention,
        next_step: Option<String>,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        outcome: Outcome<'a>,
        #[serde(flatten)]
        report: &'a Report,
    }
    let live = report.view.liveness.value();
    let kind = live.map(|live| match live {
        Liveness::Stopped { reason, .. } => reason.outcome(),
        Liveness::Running { .. } => "running",
        Liveness::Command { .. } => "command",
        Liveness::Fresh => "fresh",
        Liveness::Crashed { .. } => "killed",
    });
    let outcome = Outcome {
        text: live_words(&report.view, Stamp::Absolute).1,
        kind,
        attention: &report.view.attention,
        next_step: next_step(&report.view),
    };
    Document { outcome, report }
}

/// The report for people, as it stands in `REPORT.md`. Foreign texts stand in code spans.
#[must_use]
pub fn report_markdown(report: &Report) -> String {
    let view = &report.view;
    let mut doc = Document::title("peers report");
    result(&mut doc, report);
    let history = report.history.value().map(|history| &history.notable);
    if let Some(notable) = history.or(view.notable.value()) {
        look_at(&mut doc, notable);
    }
    match &view.core {
        Sourced::Fresh(core) => standing(&mut doc, report, core),
        Sourced::Stale { value, why } => {
            doc.paragraph(&format!(
                "**The journal cannot be read to its end**: {}. What follows is from before.",
                code(why, 300)
            ));
            standing(&mut doc, report, value);
        }
        Sourced::Missing => doc.paragraph("There is no journal."),
        Sourced::Unreadable(why) => {
            doc.paragraph(&format!("**The journal cannot be read**: {}", code(why, 300)));
        }
    }
    bugs(&mut doc, view);
    match &report.history {
        Sourced::Fresh(history) => past::section(&mut doc, history),
        Sourced::Stale { value, why } => {
            doc.paragraph(&format!("**The history ends where the journal is damaged**: {}", code(why, 300)));
            past::section(&mut doc, value);
        }
        Sourced::Missing => {}
        Sourced::Unreadable(why) => {
            doc.paragraph(&format!("**The history cannot be read**: {}", code(why, 300)));
        }
    }
    warnings(&mut doc, view);
    if let Some(history) = report.history.value() {
        past::again(&mut doc, history, view.run.value());
    }
    doc.finish()
}

/// What was shown in a clean checkout when the newest run ended, if it was. `code` sets the name of its tree.
pub(super) fn proof(report: &Report, code: impl Fn(&str) -> String) -> Option<String> {
    let proof = newest_exit(report)?.proof.as_ref()?;
    let names: Vec<String> = proof.exempt.iter().map(ToString::to_string).collect();
    let but = match names.len() {
        0 => String::new(),
        _ => format!(", but for these, which were judged in the work tree only: {}", names.join(", ")),
    };
    let tree = proof.tree.as_str().get(..12).unwrap_or(proof.tree.as_str());
    Some(format!("Every gate passed in a clean checkout of tree {}{but}", code(tree)))
}

fn result(doc: &mut Document, report: &Report) {
    let view = &report.view;
    let words = live_words(view, Stamp::Absolute).1;
    doc.paragraph(&format!("**{}**: {}", headline(view), code(&words, 300)));
    if let Some(landed) = &view.landed {
        doc.paragraph(&format!("**Landed** at {}: {}", landed.ts, code(&landed.words(), 300)));
    }
    if let Some(undone) = &view.undone {
        doc.paragraph(&format!("**Undone** at {}: {}", undone.ts, code(&undone.words(), 300)));
    }
    if let Some(next) = next_step(view) {
        doc.paragraph(&format!("Next step: {next}"));
    }
    doc.paragraph(&format!("Sandbox: **{}**", view.confinement.words()));
    if let Some(proof) = proof(report, |tree| code(tree, 12)) {
        doc.paragraph(&proof);
    }
    if let Sourced::Fresh(project) = &view.project {
        doc.paragraph(&format!("Repository: {}, read at {}", code(&project.path, 300), view.at));
    }
    for alert in &view.alerts {
        if alert.kind == REFUSED {
            doc.commands("**Alert**:", &alert.text);
        } else {
            doc.paragraph(&format!("**Alert**: {}", code(&alert.text, 600)));
        }
    }
}

/// What must not be overlooked.
fn look_at(doc: &mut Document, notable: &Notable) {
    let Notable {
        accepted,
        accepted_left_out,
        weakened,
        weakened_left_out,
        hooks,
        landed: _,
        undone: _,
        cut,
    } = notable;
    if accepted.is_empty() && weakened.is_empty() && hooks.is_empty() {
        return;
    }
    doc.section("Look at this first");
    for row in accepted {
        doc.item(&format!("{} goals or config {}", row.ts, code(&row.words(), 300)));
    }
    for row in weakened {
        doc.item(&format!("tests or gates were weakened, and that stands: {}", code(&row.words(), 300)));
    }
    for row in hooks {
        doc.item(&format!("{} {}", row.ts, code(&row.words(), 400)));
    }
    if !accepted.is_empty() {
        doc.paragraph(
            "An agent has the rights of the operator here: make sure that you accepted what was accepted during a run.",
        );
    }
    for (n, what) in [(*accepted_left_out, "acceptance"), (*weakened_left_out, "weakening")] {
        if n > 0 {
            doc.paragraph(&format!("And {} more before that; the journal has them all.", count(n, what)));
        }
    }
    if *cut {
        doc.paragraph("Older records were not looked through for this.");
    }
}

fn newest_exit(report: &Report) -> Option<&ExitRow> {
    let stopped = matches!(report.view.liveness.value(), Some(Liveness::Stopped { .. }));
    report.history.value().and_then(|history| history.exits.back()).filter(|_| stopped)
}

pub(crate) fn headline(view: &LoopView) -> &'static str {
    match view.liveness.value() {
        None => "Not known",
        Some(Liveness::Running { .. }) => "Running",
        Some(Liveness::Command { .. }) => "A command is at work",
        Some(Liveness::Fresh) => "No run yet",
        Some(Liveness::Crashed { .. }) => "Crashed",
        Some(Liveness::Stopped { .. }) if view.undone.is_some() => "Undone",
        Some(Liveness::Stopped { reason: StopReason::Complete, .. }) => "Complete",
        Some(live) if is_alarming(live) => "Stopped: look before you do anything else",
        Some(live) if level_of(live) == Level::Act => "Stopped: needs you",
        Some(Liveness::Stopped { .. }) => "Stopped",
    }
}

fn standing(doc: &mut Document, report: &Report, core: &Core) {
    doc.section("Where it stands");
    let head = core.head.as_ref().map_or("not known", |head| head.short());
    let branch = core.branch.as_deref().map(|b| format!(" on {}", code(b, 80))).unwrap_or_default();
    let clean = match core.clean {
        Some(true) => "clean",
        Some(false) => "with uncommitted changes",
        None => &format!("work tree {}", unseen(&report.view)),
    };
    doc.item(&format!("HEAD `{head}`{branch}, {clean}"));
    if !core.dirty.is_empty() {
        doc.item(&code(&dirty(core), 600));
    }
    if let Some(paths) = excluded(core) {
        let paths = code(&paths, 600);
        doc.item(&format!("ignored only in `.git/info/exclude`, which does not count here: {paths}"));
    }
    if let Some(dir) = &core.workdir {
        doc.item(&format!("works in {}", code(dir, 300)));
    }
    doc.item(&format!("{} completed", count(core.ticks.0, "tick")));
    if let Some(turn) = core.turn.as_ref().filter(|_| core.open.is_none()) {
        doc.item(&format!("next turn: {turn}"));
    }
    if core.converge.complete {
        doc.item("nothing is missing for `complete`");
    }
    for missing in &core.converge.missing {
        doc.item(&format!("missing for `complete`: {}", missing.text));
    }
    gates(doc, report, core);
    reviews(doc, core);
    budget(doc, report, core);
    peers(doc, report, core);
}

fn gates(doc: &mut Document, report: &Report, core: &Core) {
    if core.gates.is_empty() {
        return;
    }
    doc.section("Gates");
    let past = report.history.value().map(|history| &history.gates);
    let nothing = GateHistory::default();
    let when = |at: Option<When>| at.map_or_else(|| "never".to_owned(), |at| format!("tick {}", at.tick));
    let rows = core.gates.iter().map(|gate| {
        let history = past.and_then(|past| past.get(&gate.id)).unwrap_or(&nothing);
        let mut state = gate.state.to_owned();
        for (set, word) in
            [(gate.stale == Some(true), " (stale)"), (gate.exempt, " (live only)"), (gate.flaky, " (flaky)")]
        {
            if set {
                state.push_str(word);
            }
        }
        let at = gate.at.as_ref().map(|at| format!("`{}`", at.head.short())).unwrap_or_default();
        vec![
            gate.id.to_string(),
            state,
            at,
            when(history.first_red),
            when(history.last_green),
            format!("{}/{}/{}", history.green, history.red, history.errors),
            duration_ms(history.took_ms),
            code(&last_words(&gate.diagnostic), 120),
        ]
    });
    let head =
        ["gate", "state", "at", "first red", "last green", "green/red/error", "run time", "diagnostic"];
    doc.table(&head, rows);
}

fn reviews(doc: &mut Document, core: &Core) {
    if core.soft.is_empty() {
        return;
    }
    doc.section("Reviews");
    doc.table(
        &["goal", "passed", "who", "they differ", "what is missing"],
        core.soft.iter().map(|row| {
            let split = if row.split { "yes" } else { "" };
            vec![row.id.to_string(), row.share(), row.rule.clone(), split.to_owned(), code(&row.why, TEXT)]
        }),
    );
}

fn budget(doc: &mut Document, report: &Report, core: &Core) {
    doc.section("Budget");
    if let Some(why) = core.budget.caps.why() {
        doc.paragraph(&format!("The caps cannot be read: {}", code(why, 300)));
    }
    doc.table(
        &["what", "spent", "cap", ""],
        core.budget.rows.iter().map(|row| {
            let cap = match (row.cap, &core.budget.caps) {
                (Some(cap), _) => cap.words(),
                (None, Sourced::Fresh(())) => "no cap".to_owned(),
                (None, _) => "not known".to_owned(),
            };
            let percent = row.percent().map(|p| format!("{p}%")).unwrap_or_default();
            vec![row.name.clone(), row.words(), cap, percent]
        }),
    );
    if !core.budget.set.is_empty() {
        doc.paragraph("Set over the configuration:");
    }
    for set in &core.budget.set {
        doc.item(&code(&set.told(), 300));
    }
    if core.budget.unknown_usd > 0 {
        let turns = count(core.budget.unknown_usd, "turn");
        let shown = |key: &str| core.budget.rows.iter().any(|row| row.key == key && row.known().is_some());
        let tokens = core.budget.unknown_usage > 0 && shown("max_tokens");
        let least = match (tokens, shown("max_usd")) {
            (true, true) => ", so tokens and money are at least that much",
            (true, false) => ", so tokens are at least that much",
            (false, true) => ", so money is at least that much",
            (false, false) => "",
        };
        doc.paragraph(&format!("The cost of {turns} is not known{least}."));
    }
    let Some((wasted, all)) = report.history.value().map(History::waste).filter(|(wasted, _)| *wasted > 0)
    else {
        return;
    };
    let share = percent(wasted, all).map(|share| format!(" ({share}%)")).unwrap_or_default();
    doc.paragraph(&format!(
        "Of {} that turns took, {}{share} were wasted: those turns failed.",
        duration_ms(all),
        duration_ms(wasted)
    ));
}

fn peers(doc: &mut Document, report: &Report, core: &Core) {
    if core.peers.is_empty() {
        return;
    }
    doc.section("Peers");
    let cost = report.history.value().map(|history| &history.cost);
    let rows = core.peers.iter().map(|peer| {
        let cost = cost.and_then(|cost| cost.get(&peer.name)).cloned().unwrap_or_default();
        vec![
            peer.name.to_string(),
            peer.state.word().to_owned(),
            format!("{} of {}", cost.handoffs, cost.ticks),
            duration_ms(cost.ms),
            duration_ms(cost.wasted_ms),
            cost_words(&cost),
            code(&idle_words(peer, report.view.at), TEXT),
        ]
    });
    let head = ["peer", "state", "handoffs", "run time", "of it wasted", "cost", "why not at work"];
    doc.table(&head, rows);
}

/// Why a peer has no turn, or is not healthy. Times stand whole, since the report is kept.
pub(crate) fn idle_words(peer: &PeerRow, now: Timestamp) -> String {
    let waits = peer.waiting(now).map(|(until, why)| format!("waits until {until} ({why})"));
    [peer.reason.clone(), waits, peer.blocked(str::to_owned)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

/// Unknown is not zero.
fn cost_words(cost: &PeerCost) -> String {
    let PeerCost { unknown, unknown_usd, at_least, ticks, .. } = cost;
    let (tokens, usd) = (cost.tokens.unwrap_or_default(), cost.usd.unwrap_or_default());
    if *ticks == 0 {
        return "nothing yet".to_owned();
    }
    let share = |known: String, unknown: u64, what: &str| match unknown {
        // Of a turn that was cut off the rest is not known.
        0 if *at_least > 0 => format!("at least {known}"),
        0 => known,
        n if n >= *ticks => format!("{what} unknown"),
        n => format!("at least {known} ({} unknown)", count(n, "turn")),
    };
    let words = format!("{} tokens", thousands(tokens.0));
    format!("{}, {}", share(words, *unknown, "tokens"), share(usd.to_string(), *unknown_usd, "money"))
}

fn bugs(doc: &mut Document, view: &LoopView) {
    let bugs = match &view.bugs {
        Sourced::Missing => return,
        Sourced::Unreadable(why) => {
            doc.section("Bugs");
            doc.paragraph(&format!("The ledger cannot be read: {}", code(why, 300)));
            return;
        }
        Sourced::Fresh(bugs) | Sourced::Stale { value: bugs, .. } => bugs,
    };
    doc.section("Bugs");
    doc.paragraph(&format!(
        "{} reported, {} open, {} of them blocking.",
        bugs.total, bugs.open, bugs.blocking
    ));
    if bugs.rows.is_empty() {
        return;
    }
    doc.table(
        &["bug", "severity", "found", "resolved", "counts as", "title"],
        bugs.rows.iter().take(BUGS).map(|bug| {
            let fixed = match (&bug.resolved_in, &bug.resolved_by) {
                (Some(commit), Some(by)) => format!("{} `{}` by {by}", bug.status.as_str(), commit.short()),
                _ => bug.status.as_str().to_owned(),
            };
            vec![
                bug.id.to_string(),
                bug.severity.as_str().to_owned(),
                format!("`{}` by {}", bug.found_in.short(), bug.found_by),
                fixed,
                bug.open.map_or_else(|| "closed".to_owned(), |why| format!("open: {why}")),
                code(&bug.title, 80),
            ]
        }),
    );
    let left_out = bugs.total.saturating_sub(bugs.rows.len().min(BUGS));
    if left_out > 0 {
        doc.paragraph(&format!("And {left_out} more."));
    }
}

fn warnings(doc: &mut Document, view: &LoopView) {
    let Some(core) = view.core.value().filter(|core| !core.warnings.is_empty()) else { return };
    doc.section("Last warnings");
    for warning in &core.warnings {
        doc.item(&format!("tick {}: {}", warning.tick, code(&warning.text, 200)));
    }
}
