//! Loops and runs side by side, for people and programs.

use peers_model::money::thousands;
use serde::{Serialize, Serializer};

use super::measured::Measured;
use crate::fleet::FleetWarning;
use crate::json;
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::words::duration_ms;

/// One loop, or one run of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareInput {
    /// The project's name, and its run where one was asked for: `billing`, `billing@00000000000000aa`.
    pub name: String,
    /// The group to whose median it belongs; absent where it stands for itself.
    pub group: Option<String>,
    /// What it amounts to.
    pub measured: Measured,
}

/// Loops side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What is compared, the first is what the others are measured by.
    pub columns: Vec<CompareColumn>,
    /// What of it.
    pub rows: Vec<CompareRow>,
}

/// A loop, a run, or the median of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompareColumn {
    /// Its title.
    pub name: String,
    /// Whose median it is; one where it is none.
    pub members: Vec<String>,
}

/// One measure of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareRow {
    /// Which, one word.
    pub key: &'static str,
    /// `count`, `ms`, `percent`, `tokens`, `usd` or `text`.
    pub unit: Unit,
    /// By column; absent where it is not known.
    pub values: Vec<Option<Value>>,
    /// By column: it is at least that much.
    pub at_least: Vec<bool>,
    /// How much more than in the first column; absent where either is not known, and of texts.
    pub deltas: Vec<Option<f64>>,
}

/// What a measure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Unit {
    Count,
    Ms,
    Percent,
    Tokens,
    Usd,
    Text,
}

/// A measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, always finite.
    Number(f64),
    /// A word.
    Text(String),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => n.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Takes one measure of a loop.
type Take = fn(&Measured) -> Option<Value>;

/// The measures, in the order in which they are shown.
const ROWS: [(&str, Unit, Take); 21] = [
    ("iterations", Unit::Count, |m| count(Some(m.iterations))),
    ("runtime", Unit::Ms, |m| count(Some(m.runtime_ms))),
    ("runtime-of-cap", Unit::Percent, |m| count(m.runtime_pct)),
    ("wasted", Unit::Ms, |m| count(Some(m.wasted_ms))),
    ("tokens", Unit::Tokens, |m| count(m.tokens.map(|tokens| tokens.0))),
    ("usd", Unit::Usd, |m| m.usd.map(|usd| Value::Number(usd.as_f64()))),
    ("bugs", Unit::Count, |m| count(m.bugs_total)),
    ("bugs-open", Unit::Count, |m| count(m.bugs.map(|bugs| bugs.total()))),
    ("bugs-crit", Unit::Count, |m| count(m.bugs.map(|bugs| bugs.open.crit))),
    ("bugs-high", Unit::Count, |m| count(m.bugs.map(|bugs| bugs.open.high))),
    ("bugs-med", Unit::Count, |m| count(m.bugs.map(|bugs| bugs.open.med))),
    ("bugs-low", Unit::Count, |m| count(m.bugs.map(|bugs| bugs.open.low))),
    ("bugs-info", Unit::Count, |m| count(m.bugs.map(|bugs| bugs.open.info))),
    ("success", Unit::Count, |m| count(Some(m.success))),
    ("no-handoff", Unit::Count, |m| count(Some(m.no_handoff))),
    ("idle-timeouts", Unit::Count, |m| count(Some(m.idle_timeouts))),
    ("api-errors", Unit::Count, |m| count(Some(m.api_errors))),
    ("degraded", Unit::Count, |m| count(Some(m.degraded))),
    ("ticks-to-convergence", Unit::Count, |m| count(m.ticks_to_convergence)),
    ("clean", Unit::Count, |m| count(Some(m.clean.into()))),
    ("stop", Unit::Text, |m| m.stop.as_ref().map(|stop| Value::Text(stop.to_string()))),
];

fn count(n: Option<u64>) -> Option<Value> {
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "display only")]
    n.map(|n| Value::Number(n as f64))
}

/// Puts them side by side. Those of one group become one column, where the group is named first.
#[must_use]
pub fn compare(inputs: &[CompareInput]) -> Comparison {
    let mut groups: Vec<(Option<&str>, Vec<&CompareInput>)> = Vec::new();
    for input in inputs {
        let group = input.group.as_deref();
        match groups.iter_mut().find(|(name, _)| name.is_some() && *name == group) {
            Some((_, members)) => members.push(input),
            None => groups.push((group, vec![input])),
        }
    }
    let title = |(group, members): &(Option<&str>, Vec<&CompareInput>)| {
        let own = members.first().map(|input| input.name.clone()).unwrap_or_default();
        group.map_or(own, str::to_owned)
    };
    let columns = groups
        .iter()
        .map(|group| CompareColumn {
            name: title(group),
            members: group.1.iter().map(|input| input.name.clone()).collect(),
        })
        .collect();
    let rows = ROWS.iter().map(|(key, unit, take)| {
        let values: Vec<Option<Value>> = groups
            .iter()
            .map(|(_, members)| middle(members.iter().filter_map(|input| take(&input.measured)).collect()))
            .collect();
        let first = values.first().cloned().flatten();
        let delta = |value: &Option<Value>| match (value, &first) {
            // Amounts of money are exact to a millionth of a dollar.
            (Some(Value::Number(n)), Some(Value::Number(by))) => Some(((n - by) * 1e6).round() / 1e6),
            _ => None,
        };
        let least = |measured: &Measured| match unit {
            Unit::Tokens => measured.at_least.tokens && measured.tokens.is_some(),
            Unit::Usd => measured.at_least.usd && measured.usd.is_some(),
            Unit::Count | Unit::Ms | Unit::Percent | Unit::Text => false,
        };
        let at_least =
            groups.iter().map(|(_, members)| members.iter().any(|input| least(&input.measured))).collect();
        CompareRow { key, unit: *unit, deltas: values.iter().map(delta).collect(), values, at_least }
    });
    Comparison { rows: rows.collect(), columns }
}

/// The median of numbers; of words the one that is there most often.
fn middle(values: Vec<Value>) -> Option<Value> {
    let mut numbers = Vec::new();
    let mut words: Vec<(usize, String)> = Vec::new();
    for value in values {
        match value {
            Value::Number(n) if n.is_finite() => numbers.push(n),
            Value::Number(_) => {}
            Value::Text(text) => match words.iter_mut().find(|(_, word)| *word == text) {
                Some((n, _)) => *n += 1,
                None => words.push((1, text)),
            },
        }
    }
    numbers.sort_by(f64::total_cmp);
    let at = |n: usize| numbers.get(n).copied();
    let half = numbers.len() / 2;
    let median = match numbers.len() % 2 {
        1 => at(half),
        _ => half.checked_sub(1).and_then(at).zip(at(half)).map(|(a, b)| f64::midpoint(a, b)),
    };
    let word = words.into_iter().rev().max_by_key(|(n, _)| *n).map(|(_, word)| word);
    median.map(Value::Number).or(word.map(Value::Text))
}

impl Unit {
    /// For people.
    fn words(self, value: &Value) -> String {
        let n = match value {
            Value::Text(text) => return text.clone(),
            Value::Number(n) => *n,
        };
        match self {
            Self::Ms => duration_ms(whole(n)),
            Self::Tokens => thousands(whole(n)),
            Self::Usd => format!("${n:.2}"),
            Self::Percent => format!("{n}%"),
            Self::Count | Self::Text => format!("{n}"),
        }
    }

    /// How much more, for people; nothing where it is the same.
    fn delta(self, delta: f64) -> Option<String> {
        let sign = match delta {
            n if n > 0.0 => '+',
            n if n < 0.0 => '-',
            _ => return None,
        };
        Some(format!("{sign}{}", self.words(&Value::Number(delta.abs()))))
    }
}

fn whole(n: f64) -> u64 {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast saturates"
    )]
    let whole = n.round() as u64;
    whole
}

/// The comparison for people: what differs from the first column stands in brackets. Ends in a newline.
#[must_use]
pub fn compare_text(comparison: &Comparison, colour: Colour) -> String {
    compare_page(comparison).text(colour)
}

/// The same as lines.
#[must_use]
pub fn compare_page(comparison: &Comparison) -> Page {
    let mut page = Page::new();
    let mut rows = Vec::new();
    let mut head = vec![Cell::new(Tone::Strong, "")];
    head.extend(comparison.columns.iter().map(|column| match column.members.len() {
        0 | 1 => Cell::new(Tone::Strong, &column.name),
        n => Cell::new(Tone::Strong, format!("{} (median of {n})", column.name)),
    }));
    rows.push(head);
    for row in &comparison.rows {
        // What nobody knows of anybody says nothing.
        if row.values.iter().all(Option::is_none) {
            continue;
        }
        let mut cells = vec![faint(row.key)];
        for ((value, delta), least) in row.values.iter().zip(&row.deltas).zip(&row.at_least) {
            let least = if *least { "+" } else { "" };
            let said = value.as_ref().map_or_else(|| "?".to_owned(), |value| row.unit.words(value));
            let more = delta.and_then(|delta| row.unit.delta(delta)).map(|more| format!(" ({more})"));
            cells.push(plain(format!("{said}{least}{}", more.unwrap_or_default())));
        }
        rows.push(cells);
    }
    page.table(0, rows);
    page
}

/// The comparison for programs, schema `peers-ctl.compare/1`, with what is left out of it as `warnings`.
#[must_use]
pub fn compare_json(
    comparison: &Comparison,
    warnings: &[FleetWarning],
    now: peers_model::Timestamp,
) -> String {
    json::enveloped("peers-ctl.compare/1", now, comparison, warnings)
}
