//! Screens and tabs that are text.

use peers_view::{Cell, Page, Tone, fold};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Scrollbar, ScrollbarOrientation, ScrollbarState};

use super::Hits;
use super::parts::frame;
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
    event_lines(model, frame_, inner, model.scroll);
}

/// Below so many cells an event is told without its kind.
const NARROW: u16 = 80;

/// The newest events that fit, leaving out so many of the newest.
pub(super) fn event_lines(model: &Model, frame: &mut Frame<'_>, area: Rect, skip: usize) {
    let theme = model.options.theme;
    if model.events.is_empty() {
        let text = Span::styled(" nothing has happened yet", theme.tone(Tone::Faint));
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let shown = model.events.iter().rev().skip(skip).take(usize::from(area.height));
    let mut lines: Vec<Line<'static>> = shown
        .map(|event| {
            let at = event.ts.to_string();
            let mut spans = vec![
                Span::styled(format!("{} ", at.get(11..19).unwrap_or_default()), theme.tone(Tone::Faint)),
                Span::styled(
                    format!("{:<12} ", Cell::cut(Tone::Plain, &event.name, 12).text()),
                    theme.accent(),
                ),
            ];
            // Where there is little room what kind it is goes; the text says it too.
            let skip = usize::from(area.width < NARROW && event.cells.len() > 1);
            spans.extend(theme::line(event.cells.get(skip..).unwrap_or_default(), theme).spans);
            Line::from(spans)
        })
        .collect();
    lines.reverse();
    frame.render_widget(Paragraph::new(lines), area);
}
