//! One loop: its tabs.

use peers_view::{BudgetView, Cell, LoopView, Page, PeerRow, Sourced, TickRow, Tone, fold};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::parts::{bar, frame, long, short, strip, tick_sign, used};
use super::{Hits, first_shown, gates, text};
use crate::host::LiveLine;
use crate::loops::{OneLoop, Source};
use crate::model::{Model, Tab};
use crate::theme::{Theme, sign, tone_of};

/// Hours of which the spending is drawn.
const HOURS: usize = 24;
/// Ticks of a peer that are drawn.
const WINDOW: usize = 12;

pub(super) fn draw(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let [head, tabs, body] =
        Layout::vertical([Constraint::Length(2), Constraint::Length(1), Constraint::Min(1)]).areas(area);
    header(model, frame_, head);
    tab_line(model, frame_, tabs, hits);
    let one = &model.one;
    match one.tab {
        Tab::Overview | Tab::Gates | Tab::Ticks | Tab::Bugs => match &one.standing {
            Source::Coming => hits.body = text::nothing(frame_, body, ("", "reading ..."), theme),
            Source::Unreadable(why) => hits.body = text::unreadable(frame_, body, ("", why), theme),
            Source::Here(report) => match one.tab {
                Tab::Gates => gates::draw(model, frame_, body, &report.view, hits),
                Tab::Ticks => ticks(model, frame_, body, hits),
                Tab::Bugs => bugs(model, frame_, body, &report.view, hits),
                _ => overview(model, frame_, body, &report.view, hits),
            },
        },
        Tab::Live => live(model, frame_, body, hits),
        Tab::Diff => diff(model, frame_, body, hits),
        Tab::Reviews | Tab::Plan | Tab::Logs | Tab::Config => {
            let title = match one.tab {
                Tab::Logs => format!("log: {}", one.log_kind.word()),
                tab => tab.title().get(2..).unwrap_or_default().to_lowercase(),
            };
            if let Some(source) = one.text() {
                text::source(model, frame_, body, (&title, source), hits);
            }
        }
    }
}

/// Which loop, how it stands, and what it asks for.
fn header(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    let faint = theme.tone(Tone::Faint);
    let name = Cell::cut(Tone::Strong, &model.one.name, 40);
    let mut spans =
        vec![Span::styled(format!(" {} ", name.text()), theme.tone(Tone::Strong).patch(theme.accent()))];
    let mut second = Vec::new();
    if let Some(row) = model.row(&model.one.name) {
        let level = row.attention.level();
        spans.push(Span::styled(format!("{} ", sign(level)), theme.tone(tone_of(level))));
        let outcome = row.outcome.as_deref().map(|outcome| format!(" ({outcome})")).unwrap_or_default();
        spans.push(Span::raw(format!("{}{outcome}", row.state.word())));
        let run =
            row.run_id.as_ref().map(|run| format!("  run {}", run.as_str().get(..8).unwrap_or(run.as_str())));
        spans.push(Span::styled(run.unwrap_or_default(), faint));
        let kind = row.kind.as_deref().map(|kind| format!("  {kind}")).unwrap_or_default();
        spans.push(Span::styled(kind, faint));
        if let Some(up) = row.uptime_s {
            spans.push(Span::styled(format!("  up {}", long(up)), faint));
        }
        if let (Some(peer), Some(age)) = (&row.current_peer, row.tick_age_s) {
            spans.push(Span::raw(format!("  {peer} for {}", short(age))));
        }
        let top = &row.attention.top;
        let action = top.action.as_deref().map(|action| format!(" → {action}")).unwrap_or_default();
        let cell = Cell::cut(tone_of(level), format!(" {}{action}", top.why), usize::from(area.width));
        second.push(Span::styled(cell.text().to_owned(), theme.tone(tone_of(level))));
    } else if model.snapshot.is_some() {
        spans.push(Span::styled("is not in the registry any more", theme.tone(Tone::Bad)));
    }
    frame.render_widget(Paragraph::new(vec![Line::from(spans), Line::from(second)]), area);
}

fn tab_line(model: &Model, frame: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let full: usize = Tab::ALL.iter().map(|tab| tab.title().len() + 2).sum();
    let tight = full > usize::from(area.width);
    let mut x = area.x;
    for tab in Tab::ALL {
        let here = tab == model.one.tab;
        let text = if tight { format!("{} ", tab.title()) } else { format!(" {} ", tab.title()) };
        let width = u16::try_from(text.len()).unwrap_or_default().min(area.right().saturating_sub(x));
        let cell = Rect { x, width, ..area };
        let style = if here { theme.chosen() } else { theme.tone(Tone::Faint) };
        frame.render_widget(Paragraph::new(Span::styled(text, style)), cell);
        hits.tabs.push((cell, tab));
        x = x.saturating_add(width);
    }
}

fn overview(model: &Model, frame_: &mut Frame<'_>, area: Rect, view: &LoopView, hits: &mut Hits) {
    let theme = model.options.theme;
    let Some(core) = view.core.value() else {
        let why = view.core.why().unwrap_or("the journal is missing");
        hits.body = text::unreadable(frame_, area, ("journal", why), theme);
        return;
    };
    let wide = area.width >= 100;
    let [top, bottom] = if area.height >= 18 {
        Layout::vertical([Constraint::Percentage(55), Constraint::Percentage(45)]).areas(area)
    } else {
        Layout::vertical([Constraint::Min(3), Constraint::Length(area.height / 3)]).areas(area)
    };
    let columns = [Constraint::Percentage(50), Constraint::Percentage(50)];
    let [left, right] = Layout::horizontal(columns).areas(top);
    gates::table(model, frame_, left, view, false);
    let peers = u16::try_from(core.peers.len()).unwrap_or(4).clamp(1, 6) + 2;
    let [who, money] = Layout::vertical([Constraint::Length(peers), Constraint::Min(3)]).areas(right);
    self::peers(&model.one, frame_, who, (&core.peers, view), theme);
    budget(&model.one, frame_, money, &core.budget, theme);
    let [missing, newest] = if wide {
        Layout::horizontal(columns).areas(bottom)
    } else {
        Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(bottom)
    };
    standing(model, frame_, missing, view);
    let block = frame("last ticks", theme, false);
    let inner = block.inner(newest);
    frame_.render_widget(block, newest);
    let ticks = model.one.ticks();
    let lines: Vec<Line<'static>> = ticks
        .iter()
        .take(usize::from(inner.height))
        .map(|tick| tick_line(tick, model, inner.width))
        .collect();
    frame_.render_widget(Paragraph::new(lines), inner);
    hits.body = area.height;
}

/// What is missing for `complete`, and how far the plan is.
fn standing(model: &Model, frame_: &mut Frame<'_>, area: Rect, view: &LoopView) {
    let theme = model.options.theme;
    let Some(core) = view.core.value() else { return };
    let mut page = Page::default();
    if let Some(plan) = model.row(&model.one.name).and_then(|row| row.plan) {
        let percent = plan.done.saturating_mul(100).checked_div(plan.total).unwrap_or_default();
        let blocked = if plan.blocked > 0 { format!(", {} blocked", plan.blocked) } else { String::new() };
        let cells = usize::from(area.width).saturating_sub(30).clamp(4, 20);
        page.line(&[
            Cell::new(Tone::Strong, "plan "),
            Cell::new(Tone::Good, bar(percent, cells)),
            Cell::new(Tone::Plain, format!(" {} of {} steps{blocked}", plan.done, plan.total)),
        ]);
    }
    if let Some(why) = view.core.why() {
        page.tell(Tone::Bad, format!("the journal is damaged: {why}"));
    }
    if core.converge.complete {
        page.tell(Tone::Good, "✓ nothing is missing for `complete`");
    }
    for missing in &core.converge.missing {
        page.tell(Tone::Plain, format!("- {}", missing.text));
    }
    if let Some(course) = &core.converge.course {
        page.tell(Tone::Faint, format!("phase: {course}"));
    }
    for alert in &view.alerts {
        page.line(&[Cell::whole(Tone::Care, format!("! {}", alert.text))]);
    }
    for warning in core.warnings.iter().rev().take(3) {
        page.tell(Tone::Faint, format!("tick {}: {}", warning.tick, warning.text));
    }
    let block = frame("missing for complete", theme, false);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    text::lines(frame_, inner, &page, 0, theme);
}

/// Each peer, how it is, and how its last turns went.
fn peers(
    one: &OneLoop,
    frame_: &mut Frame<'_>,
    area: Rect,
    (rows, view): (&[PeerRow], &LoopView),
    theme: Theme,
) {
    let block = frame("peers", theme, false);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    let newest = one.ticks();
    let line = |peer: &PeerRow| {
        let word = peer.state.word();
        let tone = match word {
            "healthy" => Tone::Good,
            "degraded" => Tone::Care,
            _ => Tone::Bad,
        };
        let mut mine: Vec<TickRow> = newest
            .iter()
            .filter(|tick| tick.peer == peer.name)
            .take(WINDOW)
            .map(|tick| (*tick).clone())
            .collect();
        mine.reverse();
        let turn = if peer.has_turn { "▶" } else { " " };
        let mut spans = vec![
            Span::styled(
                format!("{turn}{:<10} ", Cell::cut(Tone::Plain, &peer.name, 10).text()),
                theme.accent(),
            ),
            Span::styled(format!("{word:<9} "), theme.tone(tone)),
        ];
        spans.extend(strip(&mine, theme));
        let why = peer.reason.as_deref().filter(|_| word != "healthy").map(str::to_owned);
        let waits = peer.waits_until.filter(|until| *until > view.at).map(|until| {
            let until = until.to_string();
            format!("waits until {}Z", until.get(11..16).unwrap_or_default())
        });
        let more = [waits, why, peer.blocked_on.clone()].into_iter().flatten().collect::<Vec<_>>().join("; ");
        spans
            .push(Span::styled(format!(" {}", Cell::new(Tone::Faint, more).text()), theme.tone(Tone::Faint)));
        Line::from(spans)
    };
    frame_.render_widget(Paragraph::new(rows.iter().map(line).collect::<Vec<_>>()), inner);
}

/// What was spent of each cap, and when.
fn budget(one: &OneLoop, frame_: &mut Frame<'_>, area: Rect, budget: &BudgetView, theme: Theme) {
    let block = frame("budget", theme, false);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    let hourly = spent_by_hour(one);
    let draws = inner.height >= 6 && hourly.iter().any(|(_, micros)| *micros > 0);
    let [table, chart] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(if draws { 3 } else { 0 })]).areas(inner);
    let mut lines = Vec::new();
    if let Some(why) = budget.caps.why() {
        lines.push(Line::from(Span::styled(
            Cell::new(Tone::Bad, format!("caps cannot be read: {why}")).text().to_owned(),
            theme.tone(Tone::Bad),
        )));
    }
    let (names, cells) = if inner.width < 48 { (12, 4) } else { (18, 8) };
    for row in &budget.rows {
        let of = match (row.cap, &budget.caps) {
            (Some(cap), _) => format!(" of {}", cap.words()),
            (None, Sourced::Fresh(())) => String::new(),
            (None, _) => " of ?".to_owned(),
        };
        let name = Cell::cut(Tone::Plain, &row.name, names);
        let mut spans = vec![Span::raw(format!("{:<names$} ", name.text()))];
        if let Some(percent) = row.percent() {
            let share = format!("{} {percent:>3}% ", bar(percent, cells));
            spans.push(Span::styled(share, used(percent, theme)));
        }
        spans.push(Span::styled(format!("{}{of}", row.words()), theme.tone(Tone::Faint)));
        lines.push(Line::from(spans));
    }
    frame_.render_widget(Paragraph::new(lines), table);
    if draws {
        let [title, graph] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(chart);
        let hours = hourly.len();
        let text = format!("spent by hour, the last {hours}h");
        frame_.render_widget(Paragraph::new(Span::styled(text, theme.tone(Tone::Faint))), title);
        let data: Vec<u64> = hourly.iter().map(|(_, micros)| *micros).collect();
        frame_.render_widget(Sparkline::default().data(data).style(theme.accent()), graph);
    }
}

/// Millionths of a dollar of each of the last hours in which there were ticks, oldest first.
fn spent_by_hour(one: &OneLoop) -> Vec<(i64, u64)> {
    const HOUR: i64 = 3_600_000;
    let ticks = one.ticks();
    let Some(newest) = ticks.first().map(|tick| tick.ts.as_millis() / HOUR) else { return Vec::new() };
    let oldest = ticks.last().map_or(newest, |tick| tick.ts.as_millis() / HOUR);
    let from = oldest.max(newest.saturating_sub(i64::try_from(HOURS).unwrap_or(24) - 1));
    (from..=newest)
        .map(|hour| {
            let of_hour = ticks.iter().filter(|tick| tick.ts.as_millis() / HOUR == hour);
            (
                hour,
                of_hour
                    .filter_map(|tick| tick.usd)
                    .map(peers_model::Usd::as_micros)
                    .fold(0, u64::saturating_add),
            )
        })
        .collect()
}

fn tick_line(tick: &TickRow, model: &Model, width: u16) -> Line<'static> {
    let theme = model.options.theme;
    let (sign, tone) = tick_sign(tick);
    let age = short(model.now.since(tick.ts).as_secs());
    let why = tick.reason.as_deref().map(|why| format!(" {why}")).unwrap_or_default();
    let text =
        format!("{} {}  {}{why}", tick.result(), peers_view::duration_ms(tick.duration_ms), tick.cost());
    let room = usize::from(width).saturating_sub(26);
    Line::from(vec![
        Span::styled(format!("{sign} "), theme.tone(tone)),
        Span::raw(format!("{:>4} ", tick.tick)),
        Span::styled(format!("{:<10} ", Cell::cut(Tone::Plain, &tick.peer, 10).text()), theme.accent()),
        Span::styled(format!("{age:>6} "), theme.tone(Tone::Faint)),
        Span::raw(Cell::cut(Tone::Plain, text, room).text().to_owned()),
    ])
}

fn ticks(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let all = model.one.ticks();
    if let Some(why) = model.one.standing.value().and_then(|report| report.history.why()) {
        hits.body = text::unreadable(frame_, area, ("ticks", why), theme);
        return;
    }
    if all.is_empty() {
        hits.body = text::nothing(frame_, area, ("ticks", "no turn has ended yet"), theme);
        return;
    }
    let known = model.one.history().map_or(0, |history| history.ticks);
    let block = frame(format!("ticks: the newest {} of {known}", all.len()), theme, true);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    let height = usize::from(inner.height);
    let first = first_shown(model.one.at, all.len(), height);
    for (line, (n, tick)) in inner.rows().zip(all.iter().enumerate().skip(first)) {
        frame_.render_widget(Paragraph::new(tick_line(tick, model, inner.width)), line);
        if n == model.one.at {
            theme.choose(frame_.buffer_mut(), line);
        }
    }
    hits.body = inner.height;
    hits.list = Some((inner, first));
}

fn bugs(model: &Model, frame_: &mut Frame<'_>, area: Rect, view: &LoopView, hits: &mut Hits) {
    let theme = model.options.theme;
    if let Some(why) = view.bugs.why() {
        hits.body = text::unreadable(frame_, area, ("bugs", why), theme);
        return;
    }
    let Some(bugs) = view.bugs.value().filter(|bugs| bugs.total > 0) else {
        hits.body = text::nothing(frame_, area, ("bugs", "no bug was ever reported"), theme);
        return;
    };
    let title =
        format!("bugs: {} open, {} of them blocking, {} reported", bugs.open, bugs.blocking, bugs.total);
    let block = frame(title, theme, true);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    let mut chosen = Page::default();
    if let Some(bug) = bugs.rows.get(model.one.at) {
        let ended = bug.resolved_by.as_ref().map(|by| format!(", resolved by {by}")).unwrap_or_default();
        let found = format!("{}, found by {} in {}{ended}", bug.id, bug.found_by, bug.found_in.short());
        chosen.field("bug", Tone::Plain, found);
        chosen.field("place", Tone::Plain, bug.location.as_deref().unwrap_or("-"));
        chosen.field("title", Tone::Plain, &bug.title);
    }
    let [inner, below] = Layout::vertical([Constraint::Min(3), Constraint::Length(6)]).areas(inner);
    text::lines(frame_, below, &chosen, 0, theme);
    let first = first_shown(model.one.at, bugs.rows.len(), usize::from(inner.height));
    for (line, (n, bug)) in inner.rows().zip(bugs.rows.iter().enumerate().skip(first)) {
        let (sign, tone) = match (bug.open.is_some(), bug.severity.blocks()) {
            (true, true) => ("✗", Tone::Bad),
            (true, false) => ("·", Tone::Care),
            (false, _) => ("✓", Tone::Faint),
        };
        let status = bug.open.unwrap_or_else(|| bug.status.as_str());
        let at = bug.location.as_deref().unwrap_or("-");
        let spans = vec![
            Span::styled(format!("{sign} {:<8} ", bug.severity.as_str()), theme.tone(tone)),
            Span::raw(format!("{:<12} ", Cell::cut(Tone::Plain, &bug.id, 12).text())),
            Span::styled(
                format!("{:<14} ", Cell::cut(Tone::Plain, status, 14).text()),
                theme.tone(Tone::Faint),
            ),
            Span::raw(format!("{}  ", Cell::new(Tone::Plain, &bug.title).text())),
            Span::styled(
                Cell::new(Tone::Plain, format!("{at}, by {}", bug.found_by)).text().to_owned(),
                theme.tone(Tone::Faint),
            ),
        ];
        frame_.render_widget(Paragraph::new(Line::from(spans)), line);
        if n == model.one.at {
            theme.choose(frame_.buffer_mut(), line);
        }
    }
    hits.body = inner.height;
    hits.list = Some((inner, first));
}

/// What an agent says, the newest below. Its words, not facts.
fn live(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let one = &model.one;
    let Some(live) = text::here(frame_, area, ("live", &one.live), hits, theme) else { return };
    let follows = match (live.open, one.paused || one.scroll > 0) {
        (false, _) => "is over",
        (true, true) => "paused",
        (true, false) => "follows",
    };
    let title = format!("{} · {} · {follows}", Cell::new(Tone::Plain, &live.head).text(), one.kinds.word());
    let block = frame(title, theme, true);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    hits.body = inner.height;
    let said = one.said();
    if said.is_empty() {
        let text = Span::styled(" it has said nothing of that kind yet", theme.tone(Tone::Faint));
        frame_.render_widget(Paragraph::new(text), inner);
        return;
    }
    let rows = |n: usize| said.get(n).map(|line| live_rows(line, inner.width, theme)).unwrap_or_default();
    hits.most = text::tail(frame_, inner, (said.len(), rows), one.scroll);
}

fn live_rows(line: &LiveLine, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let tone = match line.kind {
        "error" | "retry" => Tone::Bad,
        "tool" => Tone::Strong,
        "result" | "usage" => Tone::Faint,
        "final" => Tone::Good,
        _ => Tone::Plain,
    };
    let kind = Cell::new(Tone::Faint, format!("{:<7}", line.kind));
    let rows = fold(&[kind, Cell::new(tone, line.cell.text())], usize::from(width));
    rows.iter().map(|row| crate::theme::line(row, theme)).collect()
}

fn diff(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let one = &model.one;
    let Some(diff) = text::here(frame_, area, ("diff", &one.diff), hits, theme) else { return };
    if diff.files.is_empty() {
        let title = Cell::new(Tone::Plain, &diff.title);
        hits.body = text::nothing(frame_, area, (title.text(), "it changed nothing"), theme);
        return;
    }
    let side = (area.width / 3).clamp(16, 44);
    let [files, patch] = Layout::horizontal([Constraint::Length(side), Constraint::Min(10)]).areas(area);
    let block =
        frame(peers_view::count(u64::try_from(diff.files.len()).unwrap_or(u64::MAX), "file"), theme, false);
    let inner = block.inner(files);
    frame_.render_widget(block, files);
    let first = first_shown(one.at, diff.files.len(), usize::from(inner.height));
    for (line, (n, file)) in inner.rows().zip(diff.files.iter().enumerate().skip(first)) {
        let tone = match file.change {
            'A' => Tone::Good,
            'D' => Tone::Bad,
            _ => Tone::Care,
        };
        let alone = one.diff_file.as_ref() == Some(&file.path);
        let spans = vec![
            Span::styled(format!("{} ", file.change), theme.tone(tone)),
            Span::styled(
                Cell::new(Tone::Plain, &file.path).text().to_owned(),
                if alone { theme.tone(Tone::Strong) } else { theme.tone(Tone::Plain) },
            ),
        ];
        frame_.render_widget(Paragraph::new(Line::from(spans)), line);
        if n == one.at {
            theme.choose(frame_.buffer_mut(), line);
        }
    }
    let title = Cell::new(Tone::Plain, &diff.title);
    (hits.body, hits.most) = text::page(frame_, patch, (title.text(), &diff.patch), one.scroll, theme);
    hits.list = Some((inner, first));
}
