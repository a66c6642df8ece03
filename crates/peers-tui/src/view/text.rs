//! Screens and tabs that are text.

use peers_view::{Cell, Page, Tone, fold};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Scrollbar, ScrollbarOrientation, ScrollbarState};

use super::Hits;
use super::parts::frame;
use crate::host::Event;
use crate::loops::Source;
use crate::model::Model;
use crate::theme::{self, Theme};

/// A page from a line on, in a frame that says how far it goes: its height, and the last line from which on it fills
/// that.
pub(super) fn page(
    frame_: &mut Frame<'_>,
    area: Rect,
    (title, page): (&str, &Page),
    scroll: usize,
    theme: Theme,
) -> (u16, usize) {
    let block = frame(title, theme, true);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    lines(frame_, inner, page, scroll, theme);
    let most = page.last_top(usize::from(inner.width), usize::from(inner.height));
    bar(frame_, area, (most, scroll));
    (inner.height, most)
}

/// The lines of a page from one on, folded.
pub(super) fn lines(frame: &mut Frame<'_>, area: Rect, page: &Page, scroll: usize, theme: Theme) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = page.lines().skip(scroll).take(height).flat_map(|cells| fold(cells, width)).take(height);
    let lines: Vec<Line<'static>> = rows.map(|cells| theme::line(&cells, theme)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// How far one is, where not all of it fits.
fn bar(frame: &mut Frame<'_>, area: Rect, (most, scroll): (usize, usize)) {
    if most == 0 {
        return;
    }
    let mut state = ScrollbarState::new(most).position(scroll);
    let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight).begin_symbol(None).end_symbol(None);
    let inside = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
    frame.render_stateful_widget(bar, inside, &mut state);
}

/// What was read, or that it is not there, or why not.
pub(super) fn source(
    model: &Model,
    frame_: &mut Frame<'_>,
    area: Rect,
    (title, source): (&str, &Source<Page>),
    hits: &mut Hits,
) {
    let theme = model.options.theme;
    let scroll = if model.screen == crate::model::Screen::Loop { model.one.scroll } else { model.scroll };
    let Some(text) = here(frame_, area, (title, source), hits, theme) else { return };
    (hits.body, hits.most) = if text.is_empty() {
        (nothing(frame_, area, (title, "nothing is there"), theme), 0)
    } else {
        page(frame_, area, (title, text), scroll, theme)
    };
}

/// What was read; where there is none yet, the frame says so, or why not.
pub(super) fn here<'a, T>(
    frame_: &mut Frame<'_>,
    area: Rect,
    (title, source): (&str, &'a Source<T>),
    hits: &mut Hits,
    theme: Theme,
) -> Option<&'a T> {
    hits.body = match source {
        Source::Here(value) => return Some(value),
        Source::Coming => nothing(frame_, area, (title, "reading ..."), theme),
        Source::Unreadable(why) => unreadable(frame_, area, (title, why), theme),
    };
    None
}

/// A frame with one faint line in it.
pub(super) fn nothing(frame_: &mut Frame<'_>, area: Rect, (title, text): (&str, &str), theme: Theme) -> u16 {
    let block = frame(title, theme, false);
    let inner = block.inner(area);
    frame_.render_widget(
        Paragraph::new(Span::styled(format!(" {text}"), theme.tone(Tone::Faint))).block(block),
        area,
    );
    inner.height
}

/// That something cannot be read: never shown as if nothing were there.
pub(super) fn unreadable(
    frame_: &mut Frame<'_>,
    area: Rect,
    (title, why): (&str, &str),
    theme: Theme,
) -> u16 {
    let block = frame(title, theme, true);
    let inner = block.inner(area);
    let mut text = Page::default();
    text.tell(Tone::Bad, "✗ this cannot be read");
    text.tell(Tone::Plain, why);
    frame_.render_widget(block, area);
    lines(frame_, inner, &text, 0, theme);
    inner.height
}

/// What happens in all loops, the newest below.
pub(super) fn events(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    let title = match model.scroll {
        0 => "events".to_owned(),
        n => format!("events, {n} newer below"),
    };
    let block = frame(title, theme, true);
    let inner = block.inner(area);
    frame_.render_widget(block, area);
    hits.body = inner.height;
    hits.events = true;
    if model.events.is_empty() {
        no_events(frame_, inner, theme);
        return;
    }
    let rows =
        |n: usize| model.events.get(n).map(|event| event_rows(event, inner.width, theme)).unwrap_or_default();
    hits.most = tail(frame_, inner, (model.events.len(), rows), model.scroll);
}

/// What of so many things is the newest, each in its rows and below the one before it, leaving out so many; and how
/// many can be left out.
pub(super) fn tail(
    frame: &mut Frame<'_>,
    area: Rect,
    (all, rows): (usize, impl Fn(usize) -> Vec<Line<'static>>),
    skip: usize,
) -> usize {
    let height = usize::from(area.height);
    let mut filled = 0;
    let oldest = (0..all).take_while(|n| {
        filled += rows(*n).len();
        filled <= height
    });
    let most = all.saturating_sub(oldest.count().max(1));
    let newest = (0..all).rev().skip(skip.min(most));
    let mut lines: Vec<Line<'static>> = newest.flat_map(|n| rows(n).into_iter().rev()).take(height).collect();
    lines.reverse();
    frame.render_widget(Paragraph::new(lines), area);
    most
}

/// Below so many cells an event is told without its kind.
const NARROW: u16 = 80;

/// The newest events that fit, each on one line.
pub(super) fn newest_events(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    if model.events.is_empty() {
        no_events(frame, area, theme);
        return;
    }
    let shown = model.events.iter().rev().take(usize::from(area.height));
    let one_line = |event: &Event| {
        let mut spans = event_head(event, theme).to_vec();
        let mut left = usize::from(area.width).saturating_sub(spans.iter().map(Span::width).sum());
        for cell in event_cells(event, area.width) {
            let cell = Cell::cut(cell.tone(), cell.text(), left);
            left = left.saturating_sub(cell.width());
            spans.extend(theme::line(&[cell], theme).spans);
        }
        Line::from(spans)
    };
    let mut lines: Vec<Line<'static>> = shown.map(one_line).collect();
    lines.reverse();
    frame.render_widget(Paragraph::new(lines), area);
}

fn no_events(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let text = Span::styled(" nothing has happened yet", theme.tone(Tone::Faint));
    frame.render_widget(Paragraph::new(text), area);
}

/// When it was, and in which loop.
fn event_head(event: &Event, theme: Theme) -> [Span<'static>; 2] {
    let at = event.ts.to_string();
    [
        Span::styled(format!("{} ", at.get(11..19).unwrap_or_default()), theme.tone(Tone::Faint)),
        Span::styled(format!("{:<12} ", Cell::cut(Tone::Plain, &event.name, 12).text()), theme.accent()),
    ]
}

/// What it was. Where there is little room what kind it is goes; the text says it too.
fn event_cells(event: &Event, width: u16) -> &[Cell] {
    let skip = usize::from(width < NARROW && event.cells.len() > 1);
    event.cells.get(skip..).unwrap_or_default()
}

/// One event, its text folded.
fn event_rows(event: &Event, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let head = event_head(event, theme);
    let beside: usize = head.iter().map(Span::width).sum();
    let cells = event_cells(event, width);
    let rows = fold(cells, usize::from(width).saturating_sub(beside).max(1));
    let lines = rows.iter().enumerate().map(|(n, row)| {
        let mut spans = if n == 0 { head.to_vec() } else { vec![Span::raw(" ".repeat(beside))] };
        spans.extend(theme::line(row, theme).spans);
        Line::from(spans)
    });
    lines.collect()
}
