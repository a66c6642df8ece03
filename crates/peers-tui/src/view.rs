//! Draws the model. Nothing here changes anything; what was drawn where goes back as [`Hits`].

mod dialogs;
mod fleet;
mod gates;
mod one;
mod parts;
mod text;

use std::time::Duration;

use peers_view::{LoopRow, Summary, Tone};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::filter::Sort;
use crate::keys::{Action, TABLE};
use crate::model::{Model, Screen, Tab};

/// What is older than this is no picture of now, and the header says so. A look is shown every ten seconds at least.
const OLD: Duration = Duration::from_secs(30);
/// The smallest terminal that shows more than a word of regret.
const LEAST: (u16, u16) = (40, 10);

/// What was drawn, and where: for the mouse, and for how far a page is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    /// Cells of a line.
    pub(crate) width: u16,
    /// Rows of the body, and of the text in front of it.
    pub(crate) body: u16,
    pub(crate) front: u16,
    /// How far the text of the body can be scrolled, and that in front of it.
    pub(crate) most: usize,
    pub(crate) front_most: usize,
    /// Rows that can be chosen, and the first that is shown.
    pub(crate) list: Option<(Rect, usize)>,
    pub(crate) tabs: Vec<(Rect, Tab)>,
    pub(crate) heads: Vec<(Rect, Sort)>,
    /// Events are on the screen.
    pub(crate) events: bool,
}

/// Draws everything.
pub(crate) fn draw(model: &Model, frame: &mut Frame<'_>) -> Hits {
    let area = frame.area();
    let mut hits = Hits::default();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text =
            format!("{}x{} is too small: peers needs {}x{}", area.width, area.height, LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text), area);
        model.options.theme.finish(frame.buffer_mut());
        return hits;
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(area);
    header(model, frame, head);
    (hits.width, hits.body) = (area.width, body.height);
    match model.screen {
        Screen::Fleet => fleet::draw(model, frame, body, &mut hits),
        Screen::Loop => one::draw(model, frame, body, &mut hits),
        Screen::Events => text::events(model, frame, body, &mut hits),
        Screen::Doctor => text::source(model, frame, body, ("doctor", &model.doctor), &mut hits),
        Screen::Compare => text::source(model, frame, body, ("compare", &model.compare), &mut hits),
    }
    footer(model, frame, foot);
    if model.dialog.is_some() {
        dialogs::draw(model, frame, area, &mut hits);
    }
    model.options.theme.finish(frame.buffer_mut());
    hits
}

/// All loops in one line.
fn header(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    let strong = theme.tone(Tone::Strong);
    let mut spans = vec![Span::styled(" peers ", strong.patch(theme.accent()))];
    let rows: &[LoopRow] =
        model.snapshot.as_ref().map(|snapshot| snapshot.rows.as_slice()).unwrap_or_default();
    if model.options.only.is_none() && model.snapshot.is_some() {
        for (n, (tone, text)) in Summary::of(rows).cells().into_iter().enumerate() {
            let (gap, style) = if n == 0 { (" ", theme.tone(Tone::Plain)) } else { ("  ", theme.tone(tone)) };
            spans.push(Span::styled(format!("{gap}{text}"), style));
        }
    }
    if let Some(name) = &model.options.only {
        spans.push(Span::raw(format!(" {name}")));
    }
    let old = model.snapshot.as_ref().map(|snapshot| model.now.since(snapshot.at)).filter(|old| *old > OLD);
    if let Some(old) = old {
        let text = format!("  as of {} ago", parts::short(old.as_secs()));
        spans.push(Span::styled(text, theme.tone(Tone::Care)));
    }
    if model.options.read_only {
        spans.push(Span::styled("  read-only", theme.tone(Tone::Care)));
    }
    let at = model.now.to_string();
    let time = at.get(11..19).unwrap_or_default();
    let clock = format!("{time}Z ");
    let width = u16::try_from(clock.len()).unwrap_or_default();
    let [left, right] = Layout::horizontal([Constraint::Min(1), Constraint::Length(width)]).areas(area);
    frame.render_widget(Paragraph::new(Line::from(spans)), left);
    frame.render_widget(Paragraph::new(Span::styled(clock, theme.tone(Tone::Faint))), right);
}

/// What to know, or which keys do what.
fn footer(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    let told = model.note.as_deref().map(|note| (Tone::Care, note));
    let told = told.or(model.unread.as_deref().map(|why| (Tone::Bad, why)));
    if let Some((tone, text)) = told {
        let cell = peers_view::Cell::cut(tone, text, usize::from(area.width).saturating_sub(2));
        frame
            .render_widget(Paragraph::new(Span::styled(format!(" {}", cell.text()), theme.tone(tone))), area);
        return;
    }
    let mut spans = Vec::new();
    let mut left = usize::from(area.width);
    for (key, about) in hints(model) {
        let needed = key.chars().count() + about.chars().count() + 3;
        if needed > left {
            break;
        }
        left -= needed;
        spans.push(Span::styled(format!(" {key}"), theme.tone(Tone::Strong)));
        spans.push(Span::styled(format!(" {about} "), theme.tone(Tone::Faint)));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// The keys that are worth a place, the most useful first.
fn hints(model: &Model) -> Vec<(&'static str, &'static str)> {
    let spot = model.spot();
    let first: &[Action] = match (spot.screen, spot.tab) {
        (Screen::Fleet, _) => &[
            Action::Help,
            Action::Fix,
            Action::Open,
            Action::NextAct,
            Action::Filter,
            Action::Start,
            Action::Stop,
            Action::Resume,
            Action::Mark,
            Action::Events,
            Action::Palette,
            Action::Quit,
        ],
        (Screen::Loop, Tab::Gates | Tab::Overview) => &[
            Action::Help,
            Action::Fix,
            Action::Back,
            Action::Earlier,
            Action::Later,
            Action::Newest,
            Action::Stop,
            Action::Resume,
            Action::DiffOf,
            Action::Palette,
            Action::Quit,
        ],
        (Screen::Loop, Tab::Ticks) => {
            &[Action::Help, Action::Open, Action::DiffOf, Action::LiveOf, Action::Back, Action::Quit]
        }
        (Screen::Loop, Tab::Live) => &[
            Action::Help,
            Action::Follow,
            Action::Kinds,
            Action::Search,
            Action::Earlier,
            Action::Back,
            Action::Quit,
        ],
        (Screen::Loop, Tab::Diff) => &[
            Action::Help,
            Action::Open,
            Action::Earlier,
            Action::Later,
            Action::Search,
            Action::Back,
            Action::Quit,
        ],
        (Screen::Loop, Tab::Logs) => {
            &[Action::Help, Action::NextLog, Action::Search, Action::Back, Action::Quit]
        }
        _ => &[Action::Help, Action::Back, Action::Search, Action::Palette, Action::Quit],
    };
    let hint = |action: &Action| {
        let found = TABLE.iter().find(|one| one.action == *action && one.counts(spot))?;
        Some((*found.keys.first()?, found.about))
    };
    first.iter().filter_map(hint).collect()
}

/// The first row that is shown of so many, so that the chosen one is among them.
fn first_shown(at: usize, all: usize, height: usize) -> usize {
    at.saturating_sub(height / 2).min(all.saturating_sub(height))
}
