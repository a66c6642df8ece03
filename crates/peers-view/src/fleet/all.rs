//! Many loops at once, as they were read together.

use peers_model::{Timestamp, Usd};
use serde::Serialize;

use crate::advice::Level;
use crate::json::{self, Envelope};
use crate::row::{LoopRow, LoopState, RowWarning};
use crate::{Tone, count};

/// Rows that were read together.
#[derive(Debug, Clone, Copy)]
pub struct Fleet<'a> {
    /// When.
    pub now: Timestamp,
    /// The rows, in the order in which they are shown.
    pub rows: &'a [LoopRow],
    /// What is wrong besides what the rows say themselves.
    pub warnings: &'a [FleetWarning],
}

/// Something that is wrong with what many loops were read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetWarning {
    /// Which, one word.
    pub code: String,
    /// For people. Untrusted text in parts.
    pub message: String,
    /// The project, if it is about one.
    pub project: Option<String>,
}

/// The most urgent first, then by name.
pub fn sort_by_attention(rows: &mut [LoopRow]) {
    rows.sort_by(|a, b| (a.attention.level(), &a.name).cmp(&(b.attention.level(), &b.name)));
}

/// How many loops stand how, and what they cost together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// All.
    pub loops: u64,
    /// Those that need somebody.
    pub act: u64,
    /// Those that run.
    pub running: u64,
    /// Those that are worth a look.
    pub watch: u64,
    /// Those that are done.
    pub done: u64,
    /// Those that crashed.
    pub crashed: u64,
    /// What is known of their cost together.
    pub usd: Usd,
    /// What is known of what they cost in an hour together.
    pub usd_per_h: Usd,
    /// They cost at least that much.
    pub at_least: bool,
}

impl Summary {
    /// Of these rows.
    #[must_use]
    pub fn of(rows: &[LoopRow]) -> Self {
        let n = |wanted: &dyn Fn(&LoopRow) -> bool| {
            u64::try_from(rows.iter().filter(|row| wanted(row)).count()).unwrap_or(u64::MAX)
        };
        let money = |of: &dyn Fn(&LoopRow) -> Option<Usd>| rows.iter().filter_map(of).sum();
        Self {
            loops: n(&|_| true),
            act: n(&|row| row.attention.level() == Level::Act),
            running: n(&|row| row.state == LoopState::Running),
            watch: n(&|row| row.attention.level() == Level::Watch),
            done: n(&|row| row.attention.level() == Level::Done),
            crashed: n(&|row| row.state == LoopState::Crashed),
            usd: money(&|row| row.cost?.usd),
            usd_per_h: money(&|row| row.cost?.usd_per_h),
            at_least: rows.iter().any(|row| row.cost.is_none_or(|cost| cost.at_least)),
        }
    }

    /// The same in words, what matters most first.
    #[must_use]
    pub fn cells(&self) -> Vec<(Tone, String)> {
        let mut cells = vec![(Tone::Strong, count(self.loops, "loop"))];
        let need = if self.act == 1 { "needs you" } else { "need you" };
        let states = [
            (self.act, Tone::Bad, "▲", need),
            (self.running, Tone::Plain, "●", "run"),
            (self.watch, Tone::Care, "◐", "watch"),
            (self.done, Tone::Good, "✓", "done"),
            (self.crashed, Tone::Bad, "✗", "crashed"),
        ];
        let some = states.into_iter().filter(|(n, ..)| *n > 0);
        cells.extend(some.map(|(n, tone, sign, word)| (tone, format!("{sign}{n} {word}"))));
        if self.usd > Usd::ZERO {
            let least = if self.at_least { "+" } else { "" };
            let per_h = Some(self.usd_per_h).filter(|usd| *usd > Usd::ZERO);
            let burn = per_h.map(|usd| format!(" ({usd}/h)")).unwrap_or_default();
            cells.push((Tone::Plain, format!("{}{least}{burn}", self.usd)));
        }
        cells
    }
}

/// The rows for programs, schema `peers-ctl.dashboard/1`.
#[must_use]
pub fn dashboard_json(fleet: &Fleet<'_>) -> String {
    json::document("peers-ctl.dashboard/1", &document(fleet))
}

/// The same on one line: one frame of a stream.
#[must_use]
pub fn dashboard_line(fleet: &Fleet<'_>) -> String {
    json::line("peers-ctl.dashboard/1", &document(fleet))
}

fn document<'a>(fleet: &Fleet<'a>) -> impl Serialize + use<'a> {
    #[derive(Serialize)]
    struct Data<'a> {
        summary: Summary,
        projects: &'a [LoopRow],
    }
    let of_row = |row: &'a LoopRow| {
        row.warnings.iter().map(|RowWarning { code, message }| FleetWarning {
            code: (*code).to_owned(),
            message: message.clone(),
            project: Some(row.name.clone()),
        })
    };
    Envelope {
        generated_at: fleet.now,
        data: Data { summary: Summary::of(fleet.rows), projects: fleet.rows },
        warnings: fleet
            .warnings
            .iter()
            .cloned()
            .chain(fleet.rows.iter().flat_map(of_row))
            .collect::<Vec<_>>(),
    }
}

/// `7/9`, or with reviews `7/9 1/2`; `?` where it is not known.
pub(super) fn gates_cell(row: &LoopRow) -> String {
    let Some(gates) = &row.gates else { return "?".to_owned() };
    let hard = format!("{}/{}", gates.hard.green, gates.hard.total);
    match gates.soft.total {
        0 => hard,
        total => format!("{hard} {}/{total}", gates.soft.green),
    }
}

/// `$1.50`, `$1.50+` where it is more, `?` where it is not known.
pub(super) fn cost_cell(row: &LoopRow) -> String {
    let Some(cost) = row.cost else { return "?".to_owned() };
    match (cost.usd, cost.at_least) {
        (None, _) => "?".to_owned(),
        (Some(usd), false) => usd.to_string(),
        (Some(usd), true) => format!("{usd}+"),
    }
}
