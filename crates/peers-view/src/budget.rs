//! What was spent, of what.

use peers_core::budget::Caps;
use peers_core::state::{State, Wasted};
use peers_model::config::{Config, PositiveUsd, UsdMode};
use peers_model::{PeerName, Timestamp, Tokens, Usd};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::sourced::Sourced;
use crate::words;

/// The budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetView {
    /// One row for each thing that can run out.
    pub rows: Vec<BudgetRow>,
    /// Whether the caps could be read; the rows have none otherwise.
    pub caps: Sourced<()>,
    /// What a reached money cap does.
    pub usd_mode: Option<UsdMode>,
    /// Why.
    pub usd_mode_reason: Option<String>,
    /// Peers' run time, milliseconds.
    pub peer_ms: u64,
    /// Gates' run time, milliseconds.
    pub gate_ms: u64,
    /// Failed turns' run time, milliseconds.
    pub wasted_ms: u64,
    /// The last failed turns, at most twenty.
    pub wasted: Vec<Wasted>,
    /// Turns whose cost nobody knows; tokens and money are at least what is shown.
    pub unknown_usage: u64,
    /// Some turns told no money: what is shown is the least.
    pub usd_is_least: bool,
}

/// One thing that can run out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRow {
    /// What, for people.
    pub name: String,
    /// The key of its cap below `budget`.
    pub key: String,
    /// Whose own cap it is; of everybody together where absent.
    pub peer: Option<PeerName>,
    /// Spent so far.
    pub spent: Amount,
    /// The cap; absent when there is none.
    pub cap: Option<Amount>,
}

/// An amount with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it; times are in milliseconds")]
pub enum Amount {
    Count(u64),
    Millis(u64),
    Tokens(Tokens),
    Usd(Usd),
}

impl Amount {
    fn raw(self) -> u64 {
        match self {
            Self::Count(n) | Self::Millis(n) | Self::Tokens(Tokens(n)) => n,
            Self::Usd(usd) => usd.as_micros(),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Count(_) => "count",
            Self::Millis(_) => "ms",
            Self::Tokens(_) => "tokens",
            Self::Usd(_) => "usd",
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.raw() == 0
    }

    /// For people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Count(n) | Self::Tokens(Tokens(n)) => words::thousands(n),
            Self::Millis(ms) => words::duration_ms(ms),
            Self::Usd(usd) => usd.to_string(),
        }
    }
}

impl Serialize for Amount {
    /// A number in the unit of the row.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(n) | Self::Millis(n) => serializer.serialize_u64(*n),
            Self::Tokens(tokens) => tokens.serialize(serializer),
            Self::Usd(usd) => usd.serialize(serializer),
        }
    }
}

impl BudgetRow {
    /// Whole per cent of the cap.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        words::percent(self.spent.raw(), self.cap?.raw())
    }
}

impl BudgetView {
    /// The row shows at least what was spent: the cost of some turns is not known.
    #[must_use]
    pub fn is_least(&self, row: &BudgetRow) -> bool {
        if row.peer.is_some() {
            // What is not known may be its.
            return self.unknown_usage > 0 || (row.spent.is_zero() && self.usd_is_least);
        }
        match row.key.as_str() {
            "max_tokens" => self.unknown_usage > 0,
            "max_usd" => self.usd_is_least,
            _ => false,
        }
    }

    /// That the money cap counts less than what is spent, if there is one and some turns told no cost.
    #[must_use]
    pub fn uncounted(&self) -> Option<String> {
        let row = self.rows.iter().find(|row| row.key == "max_usd")?;
        row.cap.filter(|_| self.unknown_usage > 0 && self.usd_mode != Some(UsdMode::Off))?;
        let (turns, spent) = (words::count(self.unknown_usage, "turn"), row.spent.words());
        Some(format!("the cost of {turns} is not known: the money cap counts only what is, {spent} so far"))
    }

    /// What was spent, for people; unknown is not zero.
    pub(crate) fn spent_words(&self, row: &BudgetRow) -> String {
        match (self.is_least(row), row.spent.raw()) {
            (false, _) => row.spent.words(),
            (true, 0) => "unknown".to_owned(),
            (true, _) => format!("at least {}", row.spent.words()),
        }
    }
}

/// The caps of single peers that are in force.
fn own(state: &State, caps: &Caps) -> Vec<BudgetRow> {
    let mut rows = Vec::new();
    for (peer, cap) in &caps.budget.per_peer {
        let health = state.health(peer);
        let row = |what: &str, cap: &str, spent, most| BudgetRow {
            name: format!("{what} of {peer}"),
            key: format!("per_peer.{peer}.{cap}"),
            peer: Some(peer.clone()),
            spent,
            cap: Some(most),
        };
        if let Some(most) = cap.max_tokens {
            rows.push(row(
                "tokens",
                "max_tokens",
                Amount::Tokens(health.tokens),
                Amount::Tokens(Tokens(most.get())),
            ));
        }
        if let Some(most) = cap.max_usd.filter(|_| caps.usd_mode == UsdMode::Hard) {
            rows.push(row("money", "max_usd", Amount::Usd(health.usd), Amount::Usd(most.0)));
        }
    }
    rows
}

impl Serialize for BudgetRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("BudgetRow", 7)?;
        row.serialize_field("name", &self.name)?;
        row.serialize_field("key", &self.key)?;
        row.serialize_field("peer", &self.peer)?;
        row.serialize_field("unit", self.spent.unit())?;
        row.serialize_field("spent", &self.spent)?;
        row.serialize_field("cap", &self.cap)?;
        row.serialize_field("percent", &self.percent())?;
        row.end()
    }
}

/// [`BudgetView::uncounted`] before a run. `max_usd` is the cap of its command line.
#[must_use]
pub fn uncounted(config: &Config, max_usd: Option<Usd>, state: &State) -> Option<String> {
    let mut caps = Caps::new(config.budget.clone());
    if let Some(usd) = max_usd {
        caps.budget.max_usd = Some(PositiveUsd(usd));
    }
    view(state, Sourced::Fresh(caps), Timestamp::default()).uncounted()
}

pub(crate) fn view(state: &State, caps: Sourced<Caps>, now: Timestamp) -> BudgetView {
    let spent = &state.spent;
    let budget = caps.value().map(|caps| &caps.budget);
    let seconds = |s: u64| Amount::Millis(s.saturating_mul(1000));
    let row = |name: &str, key: &str, spent, cap| BudgetRow {
        name: name.to_owned(),
        key: key.to_owned(),
        peer: None,
        spent,
        cap,
    };
    let mut rows = vec![
        row(
            "ticks",
            "max_iterations",
            Amount::Count(spent.iterations),
            budget.and_then(|b| b.max_iterations).map(|n| Amount::Count(n.get())),
        ),
        row(
            "run time",
            "max_runtime_s",
            Amount::Millis(spent.peer_ms.saturating_add(spent.gate_ms)),
            budget.and_then(|b| b.max_runtime_s).map(|n| seconds(n.get())),
        ),
    ];
    if let (Some(cap), Some(run)) = (budget.and_then(|b| b.max_wall_s), &state.run) {
        let wall = u64::try_from(now.since(run.started_at).as_millis()).unwrap_or(u64::MAX);
        rows.push(row("wall time", "max_wall_s", Amount::Millis(wall), Some(seconds(cap.get()))));
    }
    rows.push(row(
        "failures in a row",
        "max_consecutive_failures",
        Amount::Count(spent.consecutive_failures.into()),
        budget.and_then(|b| b.max_consecutive_failures).map(|n| Amount::Count(n.get().into())),
    ));
    let tokens = budget.and_then(|b| b.max_tokens).map(|n| Amount::Tokens(Tokens(n.get())));
    rows.push(row("tokens", "max_tokens", Amount::Tokens(spent.tokens), tokens));
    let usd = budget.and_then(|b| b.max_usd).map(|usd| Amount::Usd(usd.0));
    rows.push(row("money", "max_usd", Amount::Usd(spent.usd), usd));
    let since = &state.progress;
    let tokens = budget.and_then(|b| b.max_tokens_since_progress);
    rows.extend(tokens.map(|n| {
        let cap = Amount::Tokens(Tokens(n.get()));
        row("tokens since progress", "max_tokens_since_progress", Amount::Tokens(since.tokens), Some(cap))
    }));
    let usd = budget.and_then(|b| b.max_usd_since_progress);
    rows.extend(usd.map(|usd| {
        row(
            "money since progress",
            "max_usd_since_progress",
            Amount::Usd(since.usd),
            Some(Amount::Usd(usd.0)),
        )
    }));
    rows.extend(caps.value().into_iter().flat_map(|caps| own(state, caps)));
    let mode = caps.value().filter(|caps| caps.budget.max_usd.is_some());
    BudgetView {
        rows,
        usd_mode: mode.map(|caps| caps.usd_mode),
        usd_mode_reason: mode.map(|caps| caps.usd_mode_reason.clone()),
        caps: caps.map(|_| ()),
        peer_ms: spent.peer_ms,
        gate_ms: spent.gate_ms,
        wasted_ms: spent.wasted_ms,
        wasted: spent.wasted.iter().cloned().collect(),
        unknown_usage: spent.unknown_usage,
        // A tool that counts tokens and names no price has spent something.
        usd_is_least: spent.unknown_usage > 0
            || state.peers.values().any(|peer| peer.tokens > Tokens(0) && peer.usd == Usd::ZERO),
    }
}
