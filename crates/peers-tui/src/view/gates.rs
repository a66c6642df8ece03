//! Gates: what each says, and how it came to say so, tick by tick.

use peers_model::GoalId;
use peers_view::{Cell, Core, GateMark, GateRow, GateTick, LoopView, Page, Tone, fold};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::parts::{frame, short};
use super::{Hits, first_shown, text};
use crate::model::Model;

/// Cells of the column of names: as many as the longest takes, of a narrow list at most a third.
fn names<'a>(ids: impl Iterator<Item = &'a GoalId>, width: u16) -> usize {
    let longest = ids.map(|id| Cell::new(Tone::Plain, id).width()).max().unwrap_or_default();
    longest.min(usize::from(width / 3).max(20))
}

/// A name in its column.
fn named(id: &GoalId, width: usize) -> String {
    format!("{:<width$}", Cell::cut(Tone::Plain, id, width).text())
}

pub(super) fn draw(model: &Model, frame_: &mut Frame<'_>, area: Rect, view: &LoopView, hits: &mut Hits) {
    let theme = model.options.theme;
    let Some(core) = view.core.value() else {
        let why = view.core.why().unwrap_or("the journal is missing");
        hits.body = text::unreadable(frame_, area, ("gates", why), theme);
        return;
    };
    let count = u16::try_from(core.gates.len()).unwrap_or(u16::MAX);
    let picture = count.saturating_add(4).min(area.height / 2).max(5);
    let [above, below] = Layout::vertical([Constraint::Min(4), Constraint::Length(picture)]).areas(area);
    if let Some((list, first)) = table(model, frame_, above, view, true) {
        hits.list = Some((list, first));
        hits.body = list.height;
    }
    heat(model, frame_, below, &core.gates);
}

/// The gates as a table; with `whole` one of them is chosen and told in full.
pub(super) fn table(
    model: &Model,
    frame_: &mut Frame<'_>,
    area: Rect,
    view: &LoopView,
    whole: bool,
) -> Option<(Rect, usize)> {
    let theme = model.options.theme;
    let core = view.core.value()?;
    let then = model.one.gates_then().filter(|_| model.one.scrub.is_some());
    let green = core.gates.iter().filter(|gate| gate.state == "pass").count();
    let title = match then {
        Some(then) => {
            let green = then.gates.values().filter(|mark| **mark == GateMark::Pass).count();
            let age = short(model.now.since(then.ts).as_secs());
            format!("gates at tick {}, {age} ago: {green} of {} green", then.tick, then.gates.len())
        }
        None => format!("gates: {green} of {} green", core.gates.len()),
    };
    let block = frame(title, theme, whole);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    if core.gates.is_empty() && core.soft.is_empty() {
        let text = Span::styled(" no gate is known; they are once a run has begun", theme.tone(Tone::Faint));
        frame_.render_widget(Paragraph::new(text), inner);
        return None;
    }
    // Of a tick of the past only verdicts are known.
    let now = if then.is_some() { " now" } else { "" };
    let all = core.gates.len() + core.soft.len();
    let at = if whole { model.one.at } else { 0 };
    let (said, least) =
        if whole && inner.height >= 8 { (told(core, at, now), 3) } else { (Page::default(), 0) };
    let rows = said.lines().flat_map(|line| fold(line, usize::from(inner.width))).count();
    let below = u16::try_from(rows).unwrap_or(u16::MAX).max(least).min(inner.height / 2);
    let [list, more] = Layout::vertical([Constraint::Min(1), Constraint::Length(below)]).areas(inner);
    text::lines(frame_, more, &said, 0, theme);
    let first = first_shown(at, all, usize::from(list.height));
    let ids = core.gates.iter().map(|gate| &gate.id).chain(core.soft.iter().map(|soft| &soft.id));
    let width = names(ids, list.width);
    for (line, n) in list.rows().zip(first..all) {
        let spans = if let Some(gate) = core.gates.get(n) {
            gate_line(gate, width, then, model)
        } else if let Some(soft) = core.soft.get(n - core.gates.len()) {
            let (sign, tone) = if soft.ok { ("✓", Tone::Good) } else { ("·", Tone::Care) };
            vec![
                Span::styled(format!("{sign} {} ", named(&soft.id, width)), theme.tone(tone)),
                Span::raw(format!("{}/{} reviews{now}  ", soft.have, soft.need)),
                Span::styled(Cell::new(Tone::Faint, &soft.why).text().to_owned(), theme.tone(Tone::Faint)),
            ]
        } else {
            Vec::new()
        };
        frame_.render_widget(Paragraph::new(Line::from(spans)), line);
        if whole && n == at {
            theme.choose(frame_.buffer_mut(), line);
        }
    }
    Some((list, first))
}

/// One of them in full, as it is now.
fn told(core: &Core, at: usize, now: &str) -> Page {
    let mut page = Page::default();
    if let Some(gate) = core.gates.get(at) {
        let log = gate.log.as_deref().map(|log| format!("; its output: {log}")).unwrap_or_default();
        let proof = match &gate.proof {
            Some(proof) if proof.current => format!("in a clean checkout: {}", proof.state),
            Some(_) => "proved, but not as it is now".to_owned(),
            None => "not proved in a clean checkout".to_owned(),
        };
        page.tell(Tone::Strong, format!("{}{now}: {proof}{log}", gate.id));
        page.tell(Tone::Plain, peers_view::cause(&gate.diagnostic));
    } else if let Some(soft) = at.checked_sub(core.gates.len()).and_then(|at| core.soft.get(at)) {
        page.tell(
            Tone::Strong,
            format!("{}{now}: {} of {} reviews, {}", soft.id, soft.have, soft.need, soft.rule),
        );
        page.tell(Tone::Plain, &soft.why);
    }
    page
}

fn mark_sign(mark: Option<GateMark>) -> (&'static str, Tone) {
    match mark {
        Some(GateMark::Pass) => ("■", Tone::Good),
        Some(GateMark::Fail) => ("✗", Tone::Bad),
        Some(GateMark::Error) => ("?", Tone::Care),
        None => ("·", Tone::Faint),
    }
}

/// One gate: how it stands, or how it stood then.
fn gate_line(gate: &GateRow, width: usize, then: Option<&GateTick>, model: &Model) -> Vec<Span<'static>> {
    let theme = model.options.theme;
    let (sign, tone, word) = match then {
        Some(then) => {
            let mark = then.gates.get(&gate.id).copied();
            let (sign, tone) = mark_sign(mark);
            let word = match mark {
                Some(GateMark::Pass) => "pass",
                Some(GateMark::Fail) => "fail",
                Some(GateMark::Error) => "error",
                None => "not yet",
            };
            (sign, tone, word)
        }
        None => match gate.state {
            "pass" if gate.stale == Some(false) => ("✓", Tone::Good, gate.state),
            "pass" => ("✓", Tone::Faint, gate.state),
            "unknown" | "skipped" => ("·", Tone::Faint, gate.state),
            "error" => ("?", Tone::Care, gate.state),
            _ => ("✗", Tone::Bad, gate.state),
        },
    };
    let mut about = Vec::new();
    if then.is_none() {
        if gate.stale == Some(true) {
            about.push("stale".to_owned());
        }
        if gate.reds > 1 {
            about.push(format!("stuck×{}", gate.reds));
        }
        if gate.cached {
            about.push("kept".to_owned());
        }
        if gate.flaky {
            about.push("flaky".to_owned());
        }
        if gate.exempt {
            about.push("live only".to_owned());
        }
        about.push(peers_view::duration_ms(gate.duration_ms));
        let said = peers_view::cause(&gate.diagnostic);
        if gate.state != "pass" && !said.is_empty() {
            about.push(said);
        }
    }
    vec![
        Span::styled(format!("{sign} {} ", named(&gate.id, width)), theme.tone(tone)),
        Span::styled(format!("{word:<8} "), theme.tone(tone)),
        Span::styled(Cell::new(Tone::Plain, about.join(", ")).text().to_owned(), theme.tone(Tone::Faint)),
    ]
}

/// Ticks from left to right, gates from top to bottom; a mark below says which tick is looked at.
fn heat(model: &Model, frame_: &mut Frame<'_>, area: Rect, gates: &[GateRow]) {
    let theme = model.options.theme;
    let Some(history) = model.one.history() else {
        let why = model.one.standing.value().and_then(|report| report.history.why());
        match why {
            Some(why) => text::unreadable(frame_, area, ("timeline", why), theme),
            None => text::nothing(frame_, area, ("timeline", "no turn has ended yet"), theme),
        };
        return;
    };
    let block = frame("timeline: ■ pass  ✗ fail  ? could not judge  · not yet", theme, false);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    let width = names(gates.iter().map(|gate| &gate.id), inner.width).max("tick".len());
    let room = usize::from(inner.width).saturating_sub(width + 2);
    let all = history.gate_ticks.len();
    let looked = model.one.scrub.and_then(|tick| history.gate_ticks.iter().position(|one| one.tick == tick));
    let first = first_shown(looked.unwrap_or(all), all, room);
    let ticks: Vec<_> = history.gate_ticks.iter().skip(first).take(room).collect();
    let mut lines = Vec::new();
    let height = usize::from(inner.height.saturating_sub(1));
    let from = first_shown(model.one.at.min(gates.len()), gates.len(), height);
    for gate in gates.iter().skip(from).take(height) {
        let mut spans = vec![Span::raw(format!("{}  ", named(&gate.id, width)))];
        spans.extend(ticks.iter().map(|tick| {
            let (sign, tone) = mark_sign(tick.gates.get(&gate.id).copied());
            let style = theme.tone(tone);
            Span::styled(
                sign,
                if Some(tick.tick) == model.one.scrub { style.patch(theme.chosen()) } else { style },
            )
        }));
        lines.push(Line::from(spans));
    }
    let (oldest, newest) = (ticks.first(), ticks.last());
    let mut foot = format!("{:<width$}  ", "tick");
    match looked.and_then(|at| at.checked_sub(first)) {
        Some(at) => {
            let tick = model.one.scrub.map(|tick| format!("▲{tick}")).unwrap_or_default();
            foot.push_str(&" ".repeat(at));
            foot.push_str(&tick);
        }
        None => {
            if let (Some(oldest), Some(newest)) = (oldest, newest) {
                let words = format!("{} to {}, [ goes back", oldest.tick, newest.tick);
                foot.push_str(&words);
            }
        }
    }
    lines.push(Line::from(Span::styled(foot, theme.tone(Tone::Faint))));
    frame_.render_widget(Paragraph::new(lines), inner);
}
