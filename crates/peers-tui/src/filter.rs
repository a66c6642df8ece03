//! Which loops are shown, and in which order.
//!
//! A filter is words, all of which have to fit: `key:value` about one thing, anything else about the name, the path and
//! the reason. `key:a,b` takes either; a leading `!` or `-` takes those that do not fit.

use std::cmp::Ordering;

use peers_view::{Level, LoopRow};
use serde::{Deserialize, Serialize};

/// What a word of a filter is about.
const KEYS: [&str; 8] = ["state", "level", "code", "label", "peer", "tool", "phase", "name"];

/// A filter that was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    key: Option<&'static str>,
    values: Vec<String>,
    not: bool,
}

impl Filter {
    /// What was typed. Whatever it is, it is a filter: a key that is none is a part of a name.
    pub(crate) fn read(text: &str) -> Self {
        let word = |text: &str| {
            let (not, text) = match text.strip_prefix(['!', '-']) {
                Some(rest) if !rest.is_empty() => (true, rest),
                _ => (false, text),
            };
            let keyed = text.split_once(':').and_then(|(key, value)| {
                let key = KEYS.into_iter().find(|known| *known == key)?;
                Some((key, value))
            });
            let (key, value) = keyed.map_or((None, text), |(key, value)| (Some(key), value));
            let values = value.split(',').filter(|value| !value.is_empty()).map(str::to_lowercase);
            Word { key, values: values.collect(), not }
        };
        Self { words: text.split_whitespace().map(word).filter(|word| !word.values.is_empty()).collect() }
    }

    /// Whether a loop fits.
    pub(crate) fn takes(&self, row: &LoopRow) -> bool {
        self.words.iter().all(|word| word.fits(row) != word.not)
    }
}

impl Word {
    fn fits(&self, row: &LoopRow) -> bool {
        let any = |texts: &[&str]| {
            let has = |value: &String| texts.iter().any(|text| text.to_lowercase().contains(value.as_str()));
            self.values.iter().any(has)
        };
        let top = &row.attention.top;
        let starts = |text: &str| self.values.iter().any(|value| text.starts_with(value.as_str()));
        match self.key {
            None => any(&[&row.name, &row.path, &top.why]),
            Some("state") => starts(row.state.word()) || row.outcome.as_deref().is_some_and(starts),
            Some("level") => starts(top.level.word()),
            Some("code") => any(&[top.code]),
            Some("name") => any(&[&row.name]),
            Some("phase") => starts(row.phase),
            Some("label") => {
                let labels: Vec<String> =
                    row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                any(&labels.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Some(key) => row
                .peers
                .iter()
                .flatten()
                .any(|peer| any(&[if key == "tool" { peer.tool.as_str() } else { peer.name.as_str() }])),
        }
    }
}

/// By what loops are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    #[default]
    Attention,
    Name,
    State,
    Cost,
    Budget,
    Commit,
}

impl Sort {
    const ALL: [Self; 6] = [Self::Attention, Self::Name, Self::State, Self::Cost, Self::Budget, Self::Commit];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Name => "name",
            Self::State => "state",
            Self::Cost => "cost",
            Self::Budget => "budget",
            Self::Commit => "commit",
        }
    }

    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or_default();
        Self::ALL.get(at + 1).copied().unwrap_or_default()
    }

    /// Puts loops in order; those that are equal by their names.
    pub(crate) fn order(self, a: &LoopRow, b: &LoopRow) -> Ordering {
        let usd = |row: &LoopRow| row.cost.and_then(|cost| cost.usd);
        let age =
            |row: &LoopRow| row.last_commit.as_ref().and_then(|commit| commit.age_s).unwrap_or(u64::MAX);
        let first = match self {
            Self::Attention => a.attention.level().cmp(&b.attention.level()),
            Self::Name => Ordering::Equal,
            Self::State => a.state.cmp(&b.state),
            // What costs most comes first.
            Self::Cost => usd(b).cmp(&usd(a)),
            Self::Budget => used(b).cmp(&used(a)),
            Self::Commit => age(a).cmp(&age(b)),
        };
        first.then_with(|| a.name.cmp(&b.name))
    }
}

/// What of its tightest cap is used, whole per cent.
pub(crate) fn used(row: &LoopRow) -> Option<u64> {
    row.budget?.most_pct
}

/// Which loops are shown at once, whatever the filter says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    #[default]
    All,
    Attention,
    Running,
}

impl Shown {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::All => Self::Attention,
            Self::Attention => Self::Running,
            Self::Running => Self::All,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Attention => "need you",
            Self::Running => "running",
        }
    }

    pub(crate) fn takes(self, row: &LoopRow) -> bool {
        match self {
            Self::All => true,
            Self::Attention => row.attention.level() < Level::Ok,
            Self::Running => row.state == peers_view::LoopState::Running,
        }
    }
}
