//! What stands in front of a screen.

use peers_view::{Cell, Page, Tone};
use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Wrap};

use super::Hits;
use super::parts::frame;
use super::text;
use crate::actions::shown;
use crate::dialog::{Choice, Confirm, Dialog, Form};
use crate::host::TickText;
use crate::keys::{Spot, TABLE};
use crate::loops::Source;
use crate::model::Model;
use crate::theme::Theme;

pub(super) fn draw(model: &Model, frame_: &mut Frame<'_>, area: Rect, hits: &mut Hits) {
    let theme = model.options.theme;
    match &model.dialog {
        None | Some(Dialog::Line { search: false, .. }) => {}
        Some(Dialog::Line { search: true, input }) => {
            let text = format!(" search: {}█", input.value());
            let line = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
            frame_.render_widget(Clear, line);
            frame_.render_widget(Paragraph::new(Span::styled(text, theme.accent())), line);
        }
        Some(Dialog::Help { scroll }) => {
            let lines = help(model.spot(), theme);
            let all = lines.len();
            let height = u16::try_from(all).unwrap_or(u16::MAX).saturating_add(2);
            let inner = window(frame_, area, ("keys here; Enter closes", (80, height)), theme);
            frame_.render_widget(Paragraph::new(lines.into_iter().skip(*scroll).collect::<Vec<_>>()), inner);
            hits.front = inner.height;
            hits.front_most = all.saturating_sub(usize::from(inner.height));
        }
        Some(Dialog::Palette(palette)) => {
            let found = palette.found(model.spot());
            let inner = window(frame_, area, ("commands", (60, 20)), theme);
            let mut lines =
                vec![Line::from(Span::styled(format!("> {}█", palette.input.value()), theme.accent()))];
            let room = usize::from(inner.height.saturating_sub(1));
            let first = super::first_shown(palette.at, found.len(), room);
            lines.extend(found.iter().enumerate().skip(first).take(room).map(|(n, binding)| {
                let key = binding.keys.first().copied().unwrap_or_default();
                let style = if n == palette.at { theme.chosen() } else { theme.tone(Tone::Plain) };
                Line::from(Span::styled(format!(" {key:>5}  {:<48}", binding.about), style))
            }));
            frame_.render_widget(Paragraph::new(lines), inner);
        }
        Some(Dialog::Confirm(one)) => confirm(one, frame_, area, theme),
        Some(Dialog::Choice(one)) => choice(one, frame_, area, theme),
        Some(Dialog::Form(one)) => form(model, one, frame_, area),
        Some(Dialog::Running(all)) => {
            let inner = window(frame_, area, ("at work", (76, 6)), theme);
            let lines: Vec<Line<'static>> = all.iter().map(|argv| command(argv, theme)).collect();
            frame_.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), inner);
        }
        Some(Dialog::Output(output)) => {
            let space = Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 };
            frame_.render_widget(Clear, space);
            let title = Cell::cut(Tone::Plain, &output.title, usize::from(space.width).saturating_sub(6));
            (hits.front, hits.front_most) =
                text::page(frame_, space, (title.text(), &output.page), output.scroll, theme);
        }
        Some(Dialog::Tick { tick, what, scroll }) => {
            frame_.render_widget(Clear, area);
            let others: Vec<&str> =
                TickText::ALL.iter().filter(|one| *one != what).map(|one| one.word()).collect();
            let title = format!("tick {tick}: {}  (Tab: {})", what.word(), others.join(", "));
            (hits.front, hits.front_most) = match &model.one.tick_text {
                Source::Here(page) => text::page(frame_, area, (&title, page), *scroll, theme),
                Source::Coming => (text::nothing(frame_, area, (&title, "reading ..."), theme), 0),
                Source::Unreadable(why) => (text::unreadable(frame_, area, (&title, why), theme), 0),
            };
        }
    }
}

/// An empty window in the middle, at most so large.
fn window(
    frame_: &mut Frame<'_>,
    area: Rect,
    (title, (width, height)): (&str, (u16, u16)),
    theme: Theme,
) -> Rect {
    let [across] =
        Layout::horizontal([Constraint::Max(width.min(area.width))]).flex(Flex::Center).areas(area);
    let [space] =
        Layout::vertical([Constraint::Max(height.min(area.height))]).flex(Flex::Center).areas(across);
    frame_.render_widget(Clear, space);
    let title = Cell::cut(Tone::Plain, title, usize::from(space.width).saturating_sub(6));
    let block = frame(title.text(), theme, true);
    let inner = block.inner(space);
    frame_.render_widget(block, space);
    inner
}

/// The keys that count there, by what they do.
pub(super) fn help(spot: Spot, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if spot.read_only {
        let text = "read-only: keys that change something are off";
        lines.push(Line::from(Span::styled(text, theme.tone(Tone::Care))));
    }
    let rows: Vec<_> = TABLE.iter().filter(|binding| binding.counts(spot)).collect();
    let (acts, looks): (Vec<_>, Vec<_>) = rows.into_iter().partition(|binding| binding.changes());
    for (title, rows) in [("looking", looks), ("acting", acts)] {
        if rows.is_empty() {
            continue;
        }
        lines.push(Line::from(Span::styled(title, theme.tone(Tone::Strong))));
        for pair in rows.chunks(2) {
            let cell = |binding: &&crate::keys::Binding| {
                vec![
                    Span::styled(format!(" {:>12} ", binding.keys.join(" ")), theme.accent()),
                    Span::raw(format!("{:<24}", binding.about)),
                ]
            };
            lines.push(Line::from(pair.iter().flat_map(cell).collect::<Vec<_>>()));
        }
    }
    lines
}

fn command(argv: &[String], theme: Theme) -> Line<'static> {
    Line::from(Span::styled(
        Cell::whole(Tone::Strong, format!("$ {}", shown(argv))).text().to_owned(),
        theme.tone(Tone::Strong),
    ))
}

fn confirm(one: &Confirm, frame_: &mut Frame<'_>, area: Rect, theme: Theme) {
    let inner = window(frame_, area, (&one.title, (76, 12)), theme);
    let mut page = Page::default();
    for line in &one.lines {
        page.tell(Tone::Plain, line);
    }
    let mut lines: Vec<Line<'static>> = page.lines().map(|cells| crate::theme::line(cells, theme)).collect();
    for line in one.does.lines() {
        let text = Cell::whole(Tone::Strong, format!("$ {line}"));
        lines.push(Line::from(Span::styled(text.text().to_owned(), theme.tone(Tone::Strong))));
    }
    lines.push(Line::default());
    match &one.word {
        Some(word) => {
            let word = Cell::new(Tone::Plain, word);
            let tone = if one.is_given() { Tone::Good } else { Tone::Care };
            lines.push(Line::from(format!("type {} and press Enter; Esc gives up", word.text())));
            lines.push(Line::from(Span::styled(format!("> {}█", one.input.value()), theme.tone(tone))));
        }
        None => lines.push(Line::from(Span::styled("y or Enter: do it    n or Esc: no", theme.accent()))),
    }
    frame_.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), inner);
}

fn choice(one: &Choice, frame_: &mut Frame<'_>, area: Rect, theme: Theme) {
    let rows = u16::try_from(one.ways.len()).unwrap_or(9).saturating_mul(2);
    let inner = window(frame_, area, (&one.title, (76, rows.saturating_add(4))), theme);
    let mut lines = Vec::new();
    for (n, (key, about, does)) in one.ways.iter().enumerate() {
        let style = if n == one.at { theme.chosen() } else { theme.tone(Tone::Plain) };
        let about = Cell::whole(Tone::Plain, about);
        lines.push(Line::from(Span::styled(format!(" {key}  {}", about.text()), style)));
        for line in does.lines().iter().filter(|line| **line != about.text()) {
            let text = Cell::whole(Tone::Faint, format!("    $ {line}"));
            lines.push(Line::from(Span::styled(text.text().to_owned(), theme.tone(Tone::Faint))));
        }
    }
    lines.push(Line::from(Span::styled("its key or Enter: do it    Esc: no", theme.accent())));
    frame_.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), inner);
}

fn form(model: &Model, one: &Form, frame_: &mut Frame<'_>, area: Rect) {
    let theme = model.options.theme;
    let rows = u16::try_from(one.fields.len()).unwrap_or(9);
    let inner = window(frame_, area, (&one.title, (86, rows.saturating_add(6))), theme);
    let mut lines = Vec::new();
    for (n, field) in one.fields.iter().enumerate() {
        let here = n == one.at;
        let value = field.input.value();
        let mut spans = vec![Span::styled(
            format!(" {:<13} ", field.name),
            if here { theme.accent() } else { theme.tone(Tone::Plain) },
        )];
        if value.is_empty() {
            let cursor = if here { "█" } else { "" };
            spans.push(Span::styled(format!("{cursor} {}", field.hint), theme.tone(Tone::Faint)));
        } else {
            let before: String = value.chars().take(field.input.cursor()).collect();
            let after: String = value.chars().skip(field.input.cursor()).collect();
            spans.push(Span::raw(before));
            if here {
                spans.push(Span::styled("█", theme.accent()));
            }
            spans.push(Span::raw(after));
        }
        lines.push(Line::from(spans));
    }
    lines.push(Line::default());
    match (&one.problem, one.command(&model.options)) {
        (Some(why), _) => lines.push(Line::from(Span::styled(format!(" {why}"), theme.tone(Tone::Bad)))),
        (None, Ok((argv, _))) => lines.push(command(&argv, theme)),
        (None, Err(_)) => lines.push(Line::default()),
    }
    lines.push(Line::from(Span::styled(" Tab: next field    Enter: go on    Esc: no", theme.accent())));
    frame_.render_widget(Paragraph::new(lines), inner);
}
