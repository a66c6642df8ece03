//! All loops: which of them needs somebody, why, and what helps.

use peers_view::{Cell, LoopRow, LoopState, Tone};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::parts::{eighth, frame, long, short, strip, used};
use super::{Hits, first_shown, text};
use crate::actions::key_for;
use crate::dialog::Dialog;
use crate::filter::{self, Shown, Sort};
use crate::keys;
use crate::model::Model;
use crate::theme::{self, Theme, sign, tone_of};

/// Below so many lines there is no room for a preview.
const PREVIEW_FROM: u16 = 30;
/// Lines of the preview.
const PREVIEW: u16 = 10;
/// Cells that a reason has at least before columns leave.
const WHY: u16 = 34;

/// A column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    State,
    Why,
    Gates,
    Plan,
    Ticks,
    Commit,
    Cost,
    Budget,
}

impl Column {
    const ALL: [Self; 9] = [
        Self::Name,
        Self::State,
        Self::Why,
        Self::Gates,
        Self::Plan,
        Self::Ticks,
        Self::Commit,
        Self::Cost,
        Self::Budget,
    ];
    /// Those that leave for want of room, the first of them first.
    const LEAVES: [Self; 5] = [Self::Plan, Self::Ticks, Self::Budget, Self::Cost, Self::Commit];

    fn title(self) -> &'static str {
        match self {
            Self::Name => "  NAME",
            Self::State => "STATE",
            Self::Why => "WHY → KEY",
            Self::Gates => "GATES",
            Self::Plan => "PLAN",
            Self::Ticks => "TICKS8",
            Self::Commit => "COMMIT",
            Self::Cost => "COST",
            Self::Budget => "BUDGET",
        }
    }

    fn sort(self) -> Option<Sort> {
        Some(match self {
            Self::Name => Sort::Name,
            Self::State => Sort::State,
            Self::Why => Sort::Attention,
            Self::Commit => Sort::Commit,
            Self::Cost => Sort::Cost,
            Self::Budget => Sort::Budget,
            Self::Gates | Self::Plan | Self::Ticks => return None,
        })
    }

    /// Cells that it takes; the reason takes the rest.
    fn width(self, name: u16) -> u16 {
        match self {
            Self::Name => name,
            Self::State => 10,
            Self::Why => 0,
            Self::Gates | Self::Cost => 9,
            Self::Plan | Self::Commit | Self::Budget => 6,
            Self::Ticks => 8,
        }
    }
}

pub(super) fn draw(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let preview = !model.no_preview && area.height + 2 >= PREVIEW_FROM;
    let [bar, table, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(if preview { PREVIEW } else { 0 }),
    ])
    .areas(area);
    filter_line(model, frame_, bar);
    list(model, frame_, table, hits);
    if preview {
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(52), Constraint::Percentage(48)]).areas(below);
        self::preview(model, frame_, left);
        let block = frame("events", model.options.theme, false);
        let inner = block.inner(right);
        frame_.render_widget(block, right);
        text::newest_events(model, frame_, inner);
        hits.events = true;
    }
}

fn filter_line(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    let faint = theme.tone(Tone::Faint);
    let mut spans = vec![Span::styled(" filter: ", faint)];
    if let Some(Dialog::Line { search: false, input }) = &model.dialog {
        spans.push(Span::styled(format!("{}█", input.value()), theme.accent()));
    } else if model.prefs.filter.is_empty() {
        spans.push(Span::styled("none", faint));
    } else {
        spans.push(Span::styled(model.prefs.filter.clone(), theme.accent()));
    }
    let turned = if model.prefs.reversed { "▴" } else { "▾" };
    spans.push(Span::styled(format!("   sort: {}{turned}", model.sort().word()), faint));
    if model.shown != Shown::All {
        spans.push(Span::styled(format!("   view: {}", model.shown.word()), theme.tone(Tone::Care)));
    }
    if !model.marked.is_empty() {
        spans.push(Span::styled(format!("   marked: {}", model.marked.len()), theme.tone(Tone::Strong)));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn list(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let rows = model.rows();
    let all = model.snapshot.as_ref().map_or(0, |snapshot| snapshot.rows.len());
    let title = match (rows.len(), all) {
        (shown, all) if shown < all => format!("fleet: {shown} of {all}"),
        _ => "fleet".to_owned(),
    };
    let block = frame(title, theme, true);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    if rows.is_empty() {
        let text = match (&model.snapshot, all) {
            (None, _) => "reading ...",
            (Some(_), 0) => "no project is registered: N sets one up",
            (Some(_), _) => "no loop fits: Esc shows all",
        };
        frame_
            .render_widget(Paragraph::new(Span::styled(format!(" {text}"), theme.tone(Tone::Faint))), inner);
        return;
    }
    let name =
        rows.iter().map(|row| peers_view::Cell::new(Tone::Plain, &row.name).width()).max().unwrap_or(4);
    let most = if inner.width >= 110 { 24 } else { 14 };
    let name = u16::try_from(name.clamp(4, most) + 3).unwrap_or(20);
    let columns = fitting(inner.width, name);
    let taken: u16 = columns.iter().map(|column| column.width(name) + 1).sum();
    let why = inner.width.saturating_sub(taken);
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(inner);
    // Worked out once: the solver takes longer than all else on this screen.
    let width = |column: &Column| if *column == Column::Why { why } else { column.width(name) };
    let constraints = columns.iter().map(|column| Constraint::Length(width(column)));
    let areas = Layout::horizontal(constraints).spacing(1).split(head);
    for (column, area) in columns.iter().zip(areas.iter().copied()) {
        frame_.render_widget(Paragraph::new(Span::styled(column.title(), theme.tone(Tone::Strong))), area);
        hits.heads.extend(column.sort().map(|sort| (area, sort)));
    }
    let at = rows.iter().position(|row| Some(&row.name) == model.chosen.as_ref());
    let height = usize::from(body.height);
    let first = first_shown(at.unwrap_or_default(), rows.len(), height);
    for (line, (n, row)) in body.rows().zip(rows.iter().enumerate().skip(first)) {
        for (column, area) in columns.iter().zip(areas.iter()) {
            let area = Rect { y: line.y, ..*area };
            let width = usize::from(area.width);
            frame_.render_widget(Paragraph::new(cell(model, *column, row, width)), area);
        }
        if Some(n) == at {
            theme.choose(frame_.buffer_mut(), line);
        }
    }
    hits.body = body.height;
    hits.list = Some((body, first));
}

/// The columns that there is room for.
fn fitting(width: u16, name: u16) -> Vec<Column> {
    let mut columns = Column::ALL.to_vec();
    let taken = |columns: &[Column]| columns.iter().map(|column| column.width(name) + 1).sum::<u16>();
    for leaves in Column::LEAVES {
        if taken(&columns) + WHY <= width {
            break;
        }
        columns.retain(|column| *column != leaves);
    }
    columns
}

fn cell(model: &Model, column: Column, row: &LoopRow, width: usize) -> Line<'static> {
    let theme = model.options.theme;
    let styled = |tone: Tone, text: String| Line::from(Span::styled(text, theme.tone(tone)));
    let unknown = || styled(Tone::Faint, "?".to_owned());
    let level = row.attention.level();
    match column {
        Column::Name => {
            let mark = if model.marked.contains(&row.name) { "•" } else { " " };
            let name = Cell::cut(Tone::Plain, &row.name, width.saturating_sub(3));
            Line::from(vec![
                Span::styled(sign(level), theme.tone(tone_of(level))),
                Span::styled(mark, theme.accent()),
                Span::styled(name.text().to_owned(), theme.tone(tone_of(level))),
            ])
        }
        Column::State => {
            let word = match (row.state, row.outcome.as_deref()) {
                (LoopState::Stopped, Some(outcome)) => outcome.to_owned(),
                (LoopState::Running, _) => "run".to_owned(),
                (state, _) => state.word().to_owned(),
            };
            let tone = match row.state {
                LoopState::Crashed | LoopState::Unknown => Tone::Bad,
                LoopState::Running => Tone::Good,
                LoopState::Stopped | LoopState::Fresh => Tone::Plain,
            };
            styled(tone, Cell::cut(Tone::Plain, word, width).text().to_owned())
        }
        Column::Why => why(model, row, width),
        Column::Gates => {
            let Some(gates) = &row.gates else { return unknown() };
            let soft = match gates.soft.total {
                0 => String::new(),
                total => format!(" {}/{total}", gates.soft.green),
            };
            let tone = if gates.hard.total > 0 && gates.hard.green == gates.hard.total {
                Tone::Good
            } else if gates.hard.stuck.is_empty() {
                Tone::Plain
            } else {
                Tone::Bad
            };
            styled(tone, format!("{}/{}{soft}", gates.hard.green, gates.hard.total))
        }
        Column::Plan => match row.plan {
            Some(plan) => styled(Tone::Plain, format!("{}/{}", plan.done, plan.total)),
            None => styled(Tone::Faint, "-".to_owned()),
        },
        Column::Ticks => match &row.recent {
            Some(ticks) => Line::from(strip(ticks, theme)),
            None => unknown(),
        },
        Column::Commit => {
            let age = row.last_commit.as_ref().and_then(|commit| commit.age_s);
            age.map_or_else(|| styled(Tone::Faint, "-".to_owned()), |age| styled(Tone::Plain, short(age)))
        }
        Column::Cost => match row.cost.map(|cost| (cost.usd, cost.at_least)) {
            Some((Some(usd), least)) => styled(Tone::Plain, format!("{usd}{}", if least { "+" } else { "" })),
            Some((None, _)) | None => unknown(),
        },
        Column::Budget => match filter::used(row) {
            Some(percent) => {
                #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "display only")]
                let share = percent.min(100) as f64 / 100.0;
                Line::from(Span::styled(format!("{}{percent:>3}%", eighth(share)), used(percent, theme)))
            }
            None => styled(Tone::Faint, "-".to_owned()),
        },
    }
}

/// Why it needs somebody and the key that helps, or what it does.
fn why(model: &Model, row: &LoopRow, width: usize) -> Line<'static> {
    let theme = model.options.theme;
    let top = &row.attention.top;
    let tone = tone_of(top.level);
    let key = key_for(row)
        .filter(|_| !model.options.read_only && top.level != peers_view::Level::Ok)
        .map(keys::shown);
    let after = key.map(|key| format!(" → {key}")).unwrap_or_default();
    let text = if top.level == peers_view::Level::Ok { doing(row) } else { top.why.clone() };
    let room = width.saturating_sub(after.chars().count());
    let cell = Cell::cut(tone, text, room);
    let mut spans = vec![Span::styled(cell.text().to_owned(), theme.tone(tone))];
    if !after.is_empty() {
        spans.push(Span::styled(after, theme.accent().add_modifier(Modifier::BOLD)));
    }
    Line::from(spans)
}

/// `codex t12 3m · gates`: what a loop does that needs nobody.
fn doing(row: &LoopRow) -> String {
    let who = row.current_peer.as_ref().map(ToString::to_string);
    let tick = row.iteration.map(|tick| format!("t{tick}"));
    let age = row.tick_age_s.map(short);
    let last = row.last_event.as_ref().map(|last| format!("· {}", last.text));
    let words = [who, tick, age, Some(row.phase.to_owned()), last];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The chosen loop in a few lines.
fn preview(model: &Model, frame_: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    let Some(row) = model.meant() else {
        text::nothing(frame_, area, ("preview", "no loop is chosen"), theme);
        return;
    };
    let block = frame(Cell::cut(Tone::Plain, &row.name, 40).text(), theme, false);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    frame_.render_widget(Paragraph::new(preview_lines(row, usize::from(inner.width), theme)), inner);
}

fn preview_lines(row: &LoopRow, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let top = &row.attention.top;
    let mut lines: Vec<Vec<Cell>> = Vec::new();
    let wrapped = |tone: Tone, text: &str| {
        let cell = Cell::whole(tone, text);
        let chars: Vec<char> = cell.text().chars().collect();
        let pieces = chars.chunks(width.max(10)).take(2);
        pieces.map(|piece| vec![Cell::new(tone, piece.iter().collect::<String>())]).collect::<Vec<_>>()
    };
    lines.extend(wrapped(tone_of(top.level), &format!("{} {}", sign(top.level), top.why)));
    if let Some(action) = &top.action {
        lines.extend(wrapped(Tone::Strong, &format!("→ {action}")));
    }
    for other in row.attention.others.iter().take(2) {
        lines.push(vec![Cell::new(tone_of(other.level), format!("{} {}", sign(other.level), other.why))]);
    }
    for peer in row.peers.iter().flatten().take(3) {
        let tone = if peer.state == "healthy" { Tone::Good } else { Tone::Care };
        let why = peer.unavailable_reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(vec![
            Cell::new(Tone::Plain, format!("{} ({}) ", peer.name, peer.tool)),
            Cell::new(tone, format!("{}{why}", peer.state)),
        ]);
    }
    let stuck = row.gates.iter().flat_map(|gates| &gates.hard.stuck).take(2);
    for gate in stuck {
        let text = format!("gate {} ✗ red for {}", gate.id, peers_view::count(gate.ticks.into(), "tick"));
        lines.push(vec![Cell::new(Tone::Bad, text)]);
    }
    if let Some(bugs) = row.bugs.filter(|bugs| bugs.total() > 0) {
        let text = format!("{} open, {} blocking", peers_view::count(bugs.total(), "bug"), bugs.blocking);
        lines.push(vec![Cell::new(if bugs.blocking > 0 { Tone::Care } else { Tone::Plain }, text)]);
    }
    if let Some(up) = row.uptime_s {
        lines.push(vec![Cell::new(Tone::Faint, format!("running for {}", long(up)))]);
    }
    for warning in row.warnings.iter().take(2) {
        lines.push(vec![Cell::new(Tone::Care, format!("warning: {}", warning.message))]);
    }
    lines.iter().map(|cells| theme::line(cells, theme)).collect()
}
