//! Small pictures that several screens have.

use std::time::Duration;

use peers_model::time;
use peers_view::{TickRow, Tone};
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::{Block, BorderType, Borders};

use crate::theme::Theme;

/// A frame with a title.
pub(super) fn frame(title: impl Into<String>, theme: Theme, focus: bool) -> Block<'static> {
    let style = if focus { theme.accent() } else { theme.tone(Tone::Faint) };
    Block::new()
        .borders(Borders::ALL)
        .border_type(BorderType::Plain)
        .border_style(style)
        .title(Span::styled(format!(" {} ", title.into()), theme.tone(Tone::Strong)))
}

/// A tick in one sign: how it ended.
pub(super) fn tick_sign(tick: &TickRow) -> (&'static str, Tone) {
    if tick.success {
        ("✓", Tone::Good)
    } else if tick.outcome.is_neutral() {
        ("·", Tone::Faint)
    } else if tick.commits.is_empty() {
        ("✗", Tone::Bad)
    } else {
        // It did something and did not hand over.
        ("~", Tone::Care)
    }
}

/// The newest ticks, each one sign, oldest first.
pub(super) fn strip(ticks: &[TickRow], theme: Theme) -> Vec<Span<'static>> {
    let sign = |tick: &TickRow| {
        let (sign, tone) = tick_sign(tick);
        Span::styled(sign, theme.tone(tone))
    };
    ticks.iter().map(sign).collect()
}

/// `▊`: how much of something is used, in one cell.
const EIGHTHS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A share of a whole as a column one cell wide.
pub(super) fn eighth(share: f64) -> &'static str {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast saturates, and the range is a table's"
    )]
    let at = (share.clamp(0.0, 1.0) * 7.0).round() as usize;
    EIGHTHS.get(at).copied().unwrap_or("█")
}

/// `██████░░░░`: a share of 100 in so many cells.
pub(super) fn bar(percent: u64, cells: usize) -> String {
    let full = usize::try_from(percent.min(100)).unwrap_or(100).saturating_mul(cells).div_ceil(100);
    "█".repeat(full) + &"░".repeat(cells.saturating_sub(full))
}

/// What a share of a cap looks like.
pub(super) fn used(percent: u64, theme: Theme) -> Style {
    theme.tone(match percent {
        90.. => Tone::Bad,
        75.. => Tone::Care,
        _ => Tone::Good,
    })
}

/// `45s`, `18m`, `2h11`, `3d`.
pub(super) fn short(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h{:02}", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `2h 11m`.
pub(super) fn long(seconds: u64) -> String {
    if seconds == 0 { "0s".to_owned() } else { time::human(Duration::from_secs(seconds)) }
}
