//! Colours and signs. A colour never says anything alone: a sign or a word stands beside it.

use peers_view::{Cell, Level, Tone};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// A look by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// For a dark terminal.
    #[default]
    Dark,
    /// For a light one.
    Light,
    /// Without colours.
    Mono,
    /// Without a character that is not ASCII.
    Ascii,
}

/// How things look.
#[derive(Debug, Clone, Copy, Default)]
pub struct Theme {
    name: ThemeName,
    /// `NO_COLOR` is set.
    plain: bool,
}

impl Theme {
    /// This look; `plain` takes its colours away.
    #[must_use]
    pub fn new(name: ThemeName, plain: bool) -> Self {
        Self { name, plain }
    }

    /// What a tone looks like.
    pub(crate) fn tone(self, tone: Tone) -> Style {
        let light = self.name == ThemeName::Light;
        let (good, bad, care, faint) = if light {
            (
                Color::Rgb(0, 110, 30),
                Color::Rgb(180, 0, 20),
                Color::Rgb(140, 90, 0),
                Color::Rgb(110, 110, 110),
            )
        } else {
            (Color::Green, Color::LightRed, Color::Yellow, Color::DarkGray)
        };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => Style::new().fg(good),
            Tone::Bad => Style::new().fg(bad).add_modifier(Modifier::BOLD),
            Tone::Care => Style::new().fg(care),
            Tone::Faint => Style::new().fg(faint),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// The tab or way that is chosen.
    pub(crate) fn chosen(self) -> Style {
        let turned = Style::new().add_modifier(Modifier::REVERSED);
        if self.plain { turned } else { self.accent().patch(turned) }
    }

    /// Marks the row that is chosen: with a colour behind it where there is one, and its first cell turned round.
    pub(crate) fn choose(self, buffer: &mut Buffer, row: Rect) {
        let behind = match self.name {
            _ if self.plain => None,
            ThemeName::Mono => None,
            ThemeName::Light => Some(Color::Rgb(214, 224, 240)),
            ThemeName::Dark | ThemeName::Ascii => Some(Color::Indexed(237)),
        };
        let first = Rect { width: row.width.min(1), ..row };
        match behind {
            Some(colour) => {
                buffer.set_style(row, Style::new().bg(colour));
                buffer.set_style(first, Style::new().add_modifier(Modifier::REVERSED));
            }
            None => buffer.set_style(row, Style::new().add_modifier(Modifier::REVERSED)),
        }
    }

    /// The frame of what has the keys.
    pub(crate) fn accent(self) -> Style {
        let light = self.name == ThemeName::Light;
        Style::new().fg(if light { Color::Blue } else { Color::Cyan })
    }

    /// Puts the look on what was drawn: takes colours and signs away that it does not have.
    pub(crate) fn finish(self, buffer: &mut Buffer) {
        let mono = self.plain || self.name == ThemeName::Mono;
        if !mono && self.name != ThemeName::Ascii {
            return;
        }
        for cell in &mut buffer.content {
            if mono {
                cell.fg = Color::Reset;
                cell.bg = Color::Reset;
            }
            if self.name == ThemeName::Ascii && !cell.symbol().is_ascii() {
                let sign = cell.symbol().chars().next().map_or(" ", ascii);
                cell.set_symbol(sign);
            }
        }
    }
}

/// What stands for a sign that is not ASCII.
fn ascii(sign: char) -> &'static str {
    match sign {
        '─' | '━' | '═' | '—' | '–' | '▃' | '▂' => "-",
        '│' | '┃' | '║' | '▏' | '▌' => "|",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╰' | '╯' => {
            "+"
        }
        '▲' => "!",
        '◐' => "~",
        '●' | '•' | '▶' => "*",
        '✓' | '↓' | '▾' => "v",
        '✗' | '×' => "x",
        '○' | '·' | '…' => ".",
        '→' | '›' | '▸' => ">",
        '←' | '‹' => "<",
        '↑' | '▴' => "^",
        '■' | '█' | '▓' | '▇' | '▆' => "#",
        '▅' | '▄' => "=",
        '▁' | '░' => "_",
        '“' | '”' | '„' => "\"",
        '’' | '‘' => "'",
        _ => "?",
    }
}

/// The sign of a level.
pub(crate) fn sign(level: Level) -> &'static str {
    match level {
        Level::Act => "▲",
        Level::Watch => "◐",
        Level::Ok => "●",
        Level::Done => "✓",
        Level::Idle => "○",
    }
}

/// What a level is, for its colour.
pub(crate) fn tone_of(level: Level) -> Tone {
    match level {
        Level::Act => Tone::Bad,
        Level::Watch => Tone::Care,
        Level::Ok => Tone::Plain,
        Level::Done => Tone::Good,
        Level::Idle => Tone::Faint,
    }
}

/// Pieces as a line of the screen.
pub(crate) fn line(cells: &[Cell], theme: Theme) -> Line<'static> {
    let spans = cells.iter().map(|cell| Span::styled(cell.text().to_owned(), theme.tone(cell.tone())));
    Line::from(spans.collect::<Vec<_>>())
}
