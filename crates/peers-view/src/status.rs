//! `peers status`.

use peers_core::state::{LastRun, PeerState};
use peers_core::test_output::last_words;
use peers_model::Timestamp;

use crate::advice::Attention;
use crate::closing::{self, next_step};
use crate::converge::{planted_words, unproved};
use crate::gates::GateRow;
use crate::json;
use crate::live::{Stamp, live_words};
use crate::liveness::Liveness;
use crate::loopview::{Core, LoopView};
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::peers::PeerRow;
use crate::sourced::Sourced;
use crate::ticks::outcome_word;
use crate::words::{self, ago, count, count_of, duration_ms};

/// Bugs shown.
const BUGS: usize = 10;
/// Warnings shown.
const WARNINGS: usize = 5;
/// Wasted turns shown.
const WASTED: usize = 3;
/// Uncommitted paths shown.
const DIRTY: usize = 10;
/// Terminal cells of a diagnostic.
const DIAGNOSTIC: usize = 120;

/// The status for a terminal. Ends in a newline.
#[must_use]
pub fn status_text(view: &LoopView, colour: Colour) -> String {
    let mut page = Page::new();
    head(&mut page, view);
    match &view.core {
        Sourced::Fresh(core) => body(&mut page, view, core),
        Sourced::Stale { value, why } => {
            page.field("journal", Tone::Bad, format!("unreadable: {why}"));
            page.say("           what follows is from before the damage");
            body(&mut page, view, value);
        }
        Sourced::Missing => page.field("journal", Tone::Care, "missing"),
        Sourced::Unreadable(why) => page.field("journal", Tone::Bad, format!("unreadable: {why}")),
    }
    bugs(&mut page, view);
    ticks(&mut page, view);
    warnings(&mut page, view);
    page.text(colour)
}

/// The status for programs, schema `peers.status/1`.
#[must_use]
pub fn status_json(view: &LoopView) -> String {
    #[derive(serde::Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        view: &'a LoopView,
        attention: &'a Attention,
        next_step: Option<String>,
        unconfined: bool,
    }
    json::document(
        "peers.status/1",
        &Document {
            view,
            attention: &view.attention,
            next_step: next_step(view),
            unconfined: !matches!(view.confinement, crate::liveness::Confinement::Confined { .. }),
        },
    )
}

fn head(page: &mut Page, view: &LoopView) {
    let next = next_step(view);
    // Who has many projects looks for that alone; how this one stands is in the line above then.
    let first =
        view.spelling.is_by_name() && !matches!(view.liveness.value(), Some(Liveness::Running { .. }));
    if let Some(next) = next.as_ref().filter(|_| first) {
        page.whole("next step", Tone::Care, next);
    }
    match &view.project {
        Sourced::Fresh(project) | Sourced::Stale { value: project, .. } => {
            page.field("project", Tone::Plain, &project.path);
        }
        Sourced::Missing => page.field("project", Tone::Care, "the store does not say"),
        Sourced::Unreadable(why) => page.field("project", Tone::Bad, format!("unreadable: {why}")),
    }
    let (tone, text) = live_words(view, Stamp::Ago);
    page.field("state", tone, text);
    if let Some(landed) = &view.landed {
        page.field("landed", Tone::Good, format!("{} {}", ago(view.at, landed.ts), landed.words()));
    }
    if let Some(undone) = &view.undone {
        page.field("undone", Tone::Care, format!("{} {}", ago(view.at, undone.ts), undone.words()));
    }
    if let Some(next) = next.filter(|_| !first) {
        page.whole("next step", Tone::Care, next);
    }
    for line in closing::notable(view) {
        page.field("look at", Tone::Bad, line);
    }
    if let Some(why) = view.notable.why() {
        page.field("look at", Tone::Bad, format!("the journal cannot be looked through: {why}"));
    }
    if !view.setup.unaccepted.is_empty() && !matches!(view.liveness.value(), Some(Liveness::Fresh)) {
        let files = view.setup.unaccepted.join(" and ");
        let differ = if view.setup.unaccepted.len() == 1 { "differs" } else { "differ" };
        page.field(
            "look at",
            Tone::Care,
            view.says("{} {} from what was accepted: `peers goals diff`", &[&files, differ]),
        );
    }
    let tone = match view.confinement {
        crate::liveness::Confinement::Confined { .. } => Tone::Plain,
        _ => Tone::Care,
    };
    page.blank();
    page.field("sandbox", tone, view.confinement.words());
    for alert in &view.alerts {
        let tone = if alert.is_damage() { Tone::Bad } else { Tone::Care };
        // With long paths a command at its end would be cut.
        page.whole("alert", tone, &alert.text);
    }
    if let Some(why) = view.run.why() {
        page.field("alert", Tone::Bad, format!("run records are unreadable: {why}"));
    }
}

fn body(page: &mut Page, view: &LoopView, core: &Core) {
    // Before the first run there is nothing to measure anything by.
    if core.run.is_none() {
        return;
    }
    let head = core.head.as_ref().map_or("no commit known", |head| head.short());
    let branch = core.branch.as_deref().map_or(" (detached or not known)".to_owned(), |b| format!(" on {b}"));
    page.field("head", Tone::Plain, format!("{head}{branch}"));
    if let Some(dir) = &core.workdir {
        let own = view.project.value().is_some_and(|project| project.path != *dir);
        let what = match (view.gone, own) {
            (true, _) => " (removed)",
            (false, true) => " (a worktree of its own)",
            (false, false) => "",
        };
        page.field("works in", Tone::Plain, format!("{dir}{what}"));
    }
    match (core.clean, core.dirty.is_empty()) {
        (Some(false), true) => page.field("work tree", Tone::Care, "has uncommitted changes"),
        (_, false) => {
            page.field("work tree", Tone::Care, dirty(core));
            if let Some(paths) = excluded(core) {
                page.say(format!("  ignored only in .git/info/exclude, which does not count here: {paths}"));
            }
        }
        (Some(true), true) => page.field("work tree", Tone::Plain, "clean"),
        (None, true) => page.field("work tree", Tone::Faint, unseen(view)),
    }
    let turn = core.turn.as_ref().map(|peer| format!("; {peer} is next")).filter(|_| core.open.is_none());
    page.field("ticks", Tone::Plain, format!("{}{}", core.ticks, turn.unwrap_or_default()));
    converge(page, view, core);
    gates(page, core);
    reviews(page, core);
    peers(page, view, core);
    budget(page, core);
}

/// Why nobody knows whether the work tree is clean.
pub(crate) fn unseen(view: &LoopView) -> &'static str {
    match view.liveness.value() {
        Some(Liveness::Running { turn: Some(_), .. }) => "not looked at while a turn runs",
        Some(Liveness::Running { .. }) => "not looked at before a turn of this run ended",
        _ => "not looked at",
    }
}

/// `2 uncommitted paths: a, b`.
pub(crate) fn dirty(core: &Core) -> String {
    let total = core.dirty_count.unwrap_or_default();
    let least = if core.dirty_more { "more than " } else { "" };
    let paths = words::list_of(&core.dirty, DIRTY, (total, core.dirty_more));
    format!("{least}{}: {paths}", count(total, "uncommitted path"))
}

/// The paths that only `.git/info/exclude` ignores, if there are any.
pub(crate) fn excluded(core: &Core) -> Option<String> {
    let total = (core.excluded_count, core.dirty_more);
    (!core.excluded.is_empty()).then(|| words::list_of(&core.excluded, DIRTY, total))
}

fn converge(page: &mut Page, view: &LoopView, core: &Core) {
    if core.converge.complete {
        page.field("complete", Tone::Good, "nothing is missing");
    } else {
        let things = count_of(&core.converge.missing, "thing");
        let verb = if core.converge.missing.len() == 1 { "is" } else { "are" };
        page.field("complete", Tone::Care, format!("{things} {verb} missing"));
        for missing in &core.converge.missing {
            page.say(format!("  - {}", missing.text));
        }
    }
    if let Some(course) = &core.converge.course {
        page.field("phase", Tone::Plain, course);
    }
    if let Some(standstill) = core.converge.standstill {
        page.field("progress", Tone::Care, standstill.words());
    }
    if let Some(planted) = &view.planted {
        page.say(format!("  {}", planted_words(planted)));
    }
    if let Some(unproved) = unproved(&core.converge) {
        page.say(format!("  {unproved}"));
    }
}

fn gates(page: &mut Page, core: &Core) {
    if core.gates.is_empty() {
        return;
    }
    page.blank();
    match how_far(&core.gates) {
        Some(far) => page.line(&[Cell::new(Tone::Strong, "gates "), faint(far)]),
        None => page.tell(Tone::Strong, "gates"),
    }
    // Those of no group first: below a heading they would look like part of that group.
    let mut groups: Vec<Option<&str>> = vec![None];
    for gate in &core.gates {
        let group = gate.group.as_deref();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        if let Some(name) = group {
            page.tell(Tone::Faint, format!("  {name}"));
        }
        gates_of(page, core.gates.iter().filter(|gate| gate.group.as_deref() == group));
    }
}

/// How many are green here, where weights tell more than the table.
fn how_far(gates: &[GateRow]) -> Option<String> {
    if gates.iter().all(|gate| gate.weight == 1) {
        return None;
    }
    let weight = |green: bool| -> u64 {
        gates.iter().filter(|gate| !green || gate.is_green()).map(|gate| u64::from(gate.weight)).sum()
    };
    Some(format!("{} of {} by weight", weight(true), weight(false)))
}

fn gates_of<'a>(page: &mut Page, gates: impl Iterator<Item = &'a GateRow>) {
    page.table(
        2,
        gates.map(|gate| {
            let tone = match gate.state {
                "pass" if gate.is_green() => Tone::Good,
                "pass" | "unknown" | "skipped" => Tone::Faint,
                "error" => Tone::Care,
                _ => Tone::Bad,
            };
            let mut about = Vec::new();
            if let Some(at) = &gate.at {
                about.push(format!("at {}", at.head.short()));
            }
            if gate.stale == Some(true) {
                about.push("stale".to_owned());
            }
            if gate.reds > 1 {
                about.push(format!("{} in a row", count(gate.reds.into(), "red tick")));
            }
            if gate.errors > 1 {
                about.push(format!("{} in a row", count(gate.errors.into(), "error")));
            }
            if gate.cached {
                about.push("kept answer".to_owned());
            }
            if gate.flaky {
                about.push(format!("flaky: {}", count(gate.attempts.into(), "attempt")));
            }
            if gate.exempt {
                about.push("live only".to_owned());
            }
            vec![
                Cell::new(tone, gate.state),
                plain(gate.id.as_str()),
                faint(about.join(", ")),
                Cell::cut(Tone::Plain, last_words(&gate.diagnostic), DIAGNOSTIC),
            ]
        }),
    );
}

fn reviews(page: &mut Page, core: &Core) {
    if core.soft.is_empty() {
        return;
    }
    page.heading("reviews");
    page.table(
        2,
        core.soft.iter().map(|row| {
            let stale = match row.stale {
                0 => String::new(),
                n => format!(" ({} out of date)", count(u64::try_from(n).unwrap_or(u64::MAX), "review")),
            };
            vec![
                Cell::new(if row.ok { Tone::Good } else { Tone::Care }, row.share()),
                plain(row.id.as_str()),
                faint(&row.rule),
                plain(format!("{}{stale}", row.why)),
            ]
        }),
    );
}

fn peers(page: &mut Page, view: &LoopView, core: &Core) {
    if core.peers.is_empty() {
        return;
    }
    page.heading("peers");
    page.table(
        2,
        core.peers.iter().map(|peer| {
            let tone = match peer.state {
                PeerState::Healthy => Tone::Good,
                PeerState::Degraded => Tone::Care,
                PeerState::Halted | PeerState::Unavailable => Tone::Bad,
            };
            let last = last_turn(peer, view.at);
            let mut more = Vec::new();
            more.extend(peer.recent_fails());
            if peer.reverted > 0 {
                more.push(format!("{} reverted", count(peer.reverted.into(), "turn")));
            }
            if let Some((until, why)) = peer.waiting(view.at) {
                more.push(format!("waits until {} ({why})", words::ahead(view.at, until)));
            }
            more.extend(peer.blocked(str::to_owned));
            if peer.capped {
                more.push("has reached its own cap".to_owned());
            }
            more.extend(peer.passed_over.as_ref().map(|why| format!("is passed over: {why}")));
            if let Some(reason) = peer.reason.as_ref().filter(|_| peer.state != PeerState::Healthy) {
                more.push(reason.clone());
            }
            let more = if more.is_empty() { String::new() } else { format!("; {}", more.join("; ")) };
            vec![
                Cell::new(tone, peer.state.word()),
                plain(peer.name.as_str()),
                faint(count(peer.ticks, "turn")),
                Cell::cut(Tone::Plain, format!("{last}{more}"), 160),
            ]
        }),
    );
    let ticks = view.journal.value().map(|tail| tail.ticks.as_slice()).unwrap_or_default();
    for peer in &core.peers {
        if let Some(turns) = peer.asked_after {
            page.line(&[
                faint(format!("  {} has a turn again after ", peer.name)),
                plain(view.says("`peers ack blocked:{} --reason TEXT`", &[peer.name.as_str()])),
                faint(format!(", in a new run, or after {}", changes(turns))),
            ]);
        }
        let newest = ticks.iter().rev().find(|tick| tick.peer == peer.name).filter(|tick| tick.failed());
        let Some(tick) = newest else { continue };
        let said = tick
            .complaint
            .as_deref()
            .map(|said| format!("`{}`; ", said.replace('`', "'")))
            .unwrap_or_default();
        page.line(&[
            faint(format!("  {} failed last: ", peer.name)),
            plain(view.says("{}see `peers replay {}`", &[&said, &tick.tick.to_string()])),
        ]);
    }
}

/// After how many turns of others a peer is asked again that says that it is blocked.
fn changes(turns: u32) -> String {
    let done = if turns == 1 { "succeeds and changes" } else { "succeed and change" };
    format!(
        "{} of others that {done} something; earlier if every other peer is waiting",
        count(turns.into(), "more turn")
    )
}

/// `tick 3: no-handoff in 12s, why`: a peer's last turn.
pub(crate) fn last_turn(peer: &PeerRow, now: Timestamp) -> String {
    let Some(last) = &peer.last else { return "no turn yet".to_owned() };
    let why = peer.why_last(now).map(|why| format!(", {why}")).unwrap_or_default();
    format!("tick {}: {} in {}{why}", last.tick, last_outcome(last), duration_ms(last.duration_ms))
}

/// What the loop made of a peer's last turn; what became of its process, where nothing else is known.
fn last_outcome(last: &LastRun) -> &str {
    match last.outcome {
        Some(outcome) => outcome_word(outcome),
        None => &last.classification,
    }
}

fn budget(page: &mut Page, core: &Core) {
    let budget = &core.budget;
    page.heading("budget");
    if let Some(why) = budget.caps.why() {
        page.tell(Tone::Bad, format!("  caps are unreadable: {why}"));
    }
    page.table(
        2,
        budget.rows.iter().map(|row| {
            let of = match (row.cap, &budget.caps) {
                (Some(cap), _) => format!("of {}", cap.words()),
                (None, Sourced::Fresh(())) => "no cap".to_owned(),
                (None, _) => "cap not known".to_owned(),
            };
            let percent = row.percent();
            let tone = match percent {
                Some(100..) => Tone::Bad,
                Some(80..) => Tone::Care,
                _ => Tone::Plain,
            };
            vec![
                plain(row.name.as_str()),
                Cell::new(tone, row.words()),
                faint(of),
                Cell::new(tone, percent.map(|p| format!("{p}%")).unwrap_or_default()),
            ]
        }),
    );
    for set in &budget.set {
        page.say(format!("  set over the configuration: {}", set.told()));
    }
    page.say(format!(
        "  of the run time: peers {}, gates {}",
        duration_ms(budget.peer_ms),
        duration_ms(budget.gate_ms)
    ));
    if let Some(uncounted) = budget.uncounted() {
        page.tell(Tone::Care, format!("  {uncounted}"));
    } else if budget.unknown_usd > 0 {
        page.say(format!("  the cost of {} is not known", count(budget.unknown_usd, "turn")));
    }
    if budget.wasted_ms > 0 {
        let skip = budget.wasted.len().saturating_sub(WASTED);
        let last: Vec<String> = budget
            .wasted
            .iter()
            .skip(skip)
            .map(|w| format!("tick {} {} {}", w.tick, w.peer, duration_ms(w.duration_ms)))
            .collect();
        page.say(format!("  wasted {}; last: {}", duration_ms(budget.wasted_ms), last.join(", ")));
    }
}

fn bugs(page: &mut Page, view: &LoopView) {
    let bugs = match &view.bugs {
        Sourced::Missing => return,
        Sourced::Unreadable(why) => {
            page.blank();
            page.field("bugs", Tone::Bad, format!("unreadable: {why}"));
            return;
        }
        Sourced::Fresh(bugs) | Sourced::Stale { value: bugs, .. } => bugs,
    };
    page.blank();
    let n = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let text =
        format!("{} open, {} of them blocking; {} reported", n(bugs.open), n(bugs.blocking), n(bugs.total));
    page.field("bugs", if bugs.blocking > 0 { Tone::Care } else { Tone::Plain }, text);
    let open: Vec<_> = bugs.rows.iter().filter(|bug| bug.open.is_some()).collect();
    page.table(
        2,
        open.iter().take(BUGS).map(|bug| {
            vec![
                Cell::new(if bug.severity.blocks() { Tone::Bad } else { Tone::Plain }, bug.severity.as_str()),
                plain(bug.id.as_str()),
                faint(bug.location.as_deref().unwrap_or("-")),
                Cell::cut(
                    Tone::Plain,
                    format!("{} ({})", bug.title, bug.open.unwrap_or_default()),
                    DIAGNOSTIC,
                ),
            ]
        }),
    );
    if open.len() > BUGS {
        page.say(format!("  and {} more", open.len() - BUGS));
    }
}

fn ticks(page: &mut Page, view: &LoopView) {
    let tail = match &view.journal {
        Sourced::Fresh(tail) | Sourced::Stale { value: tail, .. } => tail,
        Sourced::Missing => return,
        Sourced::Unreadable(why) => {
            page.blank();
            page.field("last ticks", Tone::Bad, format!("unreadable: {why}"));
            return;
        }
    };
    if !tail.ticks.is_empty() {
        page.heading("last ticks");
        page.table(
            2,
            tail.ticks.iter().rev().map(|tick| {
                vec![
                    plain(format!("tick {}", tick.tick)),
                    plain(tick.peer.as_str()),
                    Cell::new(if tick.success { Tone::Good } else { Tone::Care }, tick.result()),
                    faint(format!("{} in {}", ago(view.at, tick.ts), duration_ms(tick.duration_ms))),
                    Cell::cut(Tone::Plain, tick.reason.as_deref().unwrap_or_default(), DIAGNOSTIC),
                ]
            }),
        );
    }
    let bad = match tail.unreadable {
        0 => String::new(),
        n => format!("; {} of its end cannot be read", count(n, "line")),
    };
    let broken = tail.broken.map(|seq| format!("; damaged at record {seq}")).unwrap_or_default();
    let unread = match view.unverified {
        0 => String::new(),
        n => view.says(
            "; the first {} from the snapshot, not verified here (`peers state check`)",
            &[&words::thousands(n)],
        ),
    };
    let text = format!("{}{bad}{broken}{unread}", count(tail.records, "record"));
    page.blank();
    let tone = if tail.unreadable > 0 || tail.broken.is_some() { Tone::Bad } else { Tone::Plain };
    page.field("journal", tone, text);
}

fn warnings(page: &mut Page, view: &LoopView) {
    let Some(core) = view.core.value().filter(|core| !core.warnings.is_empty()) else { return };
    page.heading("last warnings");
    let skip = core.warnings.len().saturating_sub(WARNINGS);
    for warning in core.warnings.iter().skip(skip) {
        page.line(&[faint(format!("  tick {}: ", warning.tick)), Cell::cut(Tone::Plain, &warning.text, 200)]);
    }
    if core.warnings_waiting > 0 {
        let n = u64::try_from(core.warnings_waiting).unwrap_or(u64::MAX);
        page.say(format!("  {} for the next prompt", count(n, "warning")));
    }
}
