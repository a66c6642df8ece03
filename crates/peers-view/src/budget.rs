//! What was spent, of what.

use peers_core::budget::{Caps, GivenUsd};
use peers_core::state::{PeerHealth, Raised, State, Wasted};
use peers_model::config::{Config, UsdMode};
use peers_model::record::Cap;
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
    /// The caps that the operator set over the configuration, as far as they hold now.
    pub set: Vec<CapSetByHand>,
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
    /// Turns whose tokens nobody knows.
    pub unknown_usage: u64,
    /// Turns whose cost nobody knows, or not all of it.
    pub unknown_usd: u64,
    /// Some turns told no money, or not all of it: what is shown is the least.
    pub usd_is_least: bool,
}

/// A cap that the operator set over the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CapSetByHand {
    /// Which.
    pub cap: Cap,
    /// Seconds, millionths of a dollar, or a count.
    pub value: u64,
    /// It holds before this instant; absent: for good.
    pub until: Option<Timestamp>,
    /// Login name of who set it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// It was set while the newest run was at work, or after that.
    pub since_run: bool,
}

/// What the operator set over the configuration and holds now.
#[must_use]
pub fn set_by_hand(state: &State, now: Timestamp) -> Vec<CapSetByHand> {
    let held = state.raised.iter().filter(|(_, raised)| raised.until.is_none_or(|until| now < until));
    let begun = state.run.as_ref().map(|run| run.started_at);
    held.map(|(cap, Raised { value, until, at, by })| CapSetByHand {
        cap: *cap,
        value: *value,
        until: *until,
        by: by.clone(),
        at: *at,
        since_run: begun.is_some_and(|begun| *at >= begun),
    })
    .collect()
}

/// The value of a cap, for people.
#[must_use]
pub fn cap_words(cap: Cap, value: u64) -> String {
    match cap {
        Cap::MaxRuntimeS | Cap::MaxWallS => words::duration_ms(value.saturating_mul(1000)),
        Cap::MaxUsd => Usd::from_micros(value).to_string(),
        Cap::MaxIterations | Cap::MaxConsecutiveFailures | Cap::MaxTokens => words::thousands(value),
    }
}

impl CapSetByHand {
    /// `max_iterations 55 until 2026-...`, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { cap, value, until, by: _, at: _, since_run: _ } = self;
        let value = cap_words(*cap, *value);
        let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
        format!("{} {value}{until}", cap.key())
    }

    /// The same with who set it, and when.
    pub(crate) fn told(&self) -> String {
        let during = if self.since_run { ", since the run began" } else { "" };
        format!("{} by {} at {}{during}", self.words(), self.by, self.at)
    }
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
    /// Spent so far, as far as known.
    pub spent: Amount,
    /// What was spent is not known, or not all of it: it is at least that much.
    pub at_least: bool,
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
    pub(crate) fn raw(self) -> u64 {
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
    #[must_use]
    pub fn words(self) -> String {
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
    /// Of everybody together, all of it known.
    fn new(name: &str, key: &str, spent: Amount, cap: Option<Amount>) -> Self {
        Self { name: name.to_owned(), key: key.to_owned(), peer: None, spent, at_least: false, cap }
    }

    /// Whole per cent of the cap; of nothing known there is no share.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        words::percent(self.known()?.raw(), self.cap?.raw())
    }

    /// What was spent; `None` where nothing is known of it.
    #[must_use]
    pub fn known(&self) -> Option<Amount> {
        Some(self.spent).filter(|spent| !(self.at_least && spent.is_zero()))
    }

    /// What was spent, for people; unknown is not zero.
    #[must_use]
    pub fn words(&self) -> String {
        words::at_least(self.known().map(Amount::words), self.at_least)
    }
}

/// What was spent so far, for people; empty while nothing is known. `$1.50, 1,200 tokens`.
#[must_use]
pub fn spend(state: &State) -> String {
    let [money, tokens] = totals(state);
    let money = money.known().filter(|usd| !usd.is_zero()).map(|_| money.words());
    let count = state.spent.tokens.0;
    let tokens = (count > 0).then(|| words::at_least(Some(words::count(count, "token")), tokens.at_least));
    money.into_iter().chain(tokens).collect::<Vec<_>>().join(", ")
}

/// Money and tokens of everybody, without their caps.
pub(crate) fn totals(state: &State) -> [BudgetRow; 2] {
    let sum = |of: fn(&PeerHealth) -> u64| state.peers.values().map(of).fold(0, u64::saturating_add);
    let row = |name: &str, key: &str, spent, vague: u64| BudgetRow {
        // A snapshot may be older than the counts of peers.
        at_least: vague > 0 || state.spent.unknown_usage > 0,
        ..BudgetRow::new(name, key, spent, None)
    };
    [
        row("money", "max_usd", Amount::Usd(state.spent.usd), sum(|peer| peer.vague_usd)),
        row("tokens", "max_tokens", Amount::Tokens(state.spent.tokens), sum(|peer| peer.vague_tokens)),
    ]
}

impl BudgetView {
    /// That a money cap counts less than what is spent, if there is one and some turns told no cost.
    #[must_use]
    pub fn uncounted(&self) -> Option<String> {
        let capped = |key: &str| self.rows.iter().find(|row| row.key == key && row.cap.is_some());
        let over_all = capped("max_usd").filter(|_| self.usd_mode != Some(UsdMode::Off));
        let row = over_all.or_else(|| capped("max_usd_since_progress"))?;
        if self.unknown_usd == 0 {
            return None;
        }
        let turns = words::count(self.unknown_usd, "turn");
        let since = if over_all.is_some() { "so far" } else { "since progress" };
        let spent = if row.spent.is_zero() { "nothing".to_owned() } else { row.spent.words() };
        Some(format!("the cost of {turns} is not known: the money cap counts only what is, {spent} {since}"))
    }
}

/// The caps of single peers that are in force.
fn own(state: &State, caps: &Caps) -> Vec<BudgetRow> {
    let mut rows = Vec::new();
    for (peer, cap) in &caps.budget.per_peer {
        let health = state.health(peer);
        let row = |what: &str, cap: &str, spent, vague, most| BudgetRow {
            peer: Some(peer.clone()),
            at_least: vague > 0,
            ..BudgetRow::new(
                &format!("{what} of {peer}"),
                &format!("per_peer.{peer}.{cap}"),
                spent,
                Some(most),
            )
        };
        rows.extend(cap.max_tokens.map(|most| {
            let most = Amount::Tokens(Tokens(most.get()));
            row("tokens", "max_tokens", Amount::Tokens(health.tokens), health.vague_tokens, most)
        }));
        rows.extend(cap.max_usd.filter(|_| caps.usd_mode == UsdMode::Hard).map(|most| {
            row("money", "max_usd", Amount::Usd(health.usd), health.vague_usd, Amount::Usd(most.0))
        }));
    }
    rows
}

impl Serialize for BudgetRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("BudgetRow", 8)?;
        row.serialize_field("name", &self.name)?;
        row.serialize_field("key", &self.key)?;
        row.serialize_field("peer", &self.peer)?;
        row.serialize_field("unit", self.spent.unit())?;
        row.serialize_field("spent", &self.known())?;
        row.serialize_field("at_least", &self.at_least)?;
        row.serialize_field("cap", &self.cap)?;
        row.serialize_field("percent", &self.percent())?;
        row.end()
    }
}

/// [`BudgetView::uncounted`] before a run. `max_usd` is the cap of its command line.
#[must_use]
pub fn uncounted(config: &Config, max_usd: Option<Usd>, state: &State) -> Option<String> {
    let at = Timestamp::default();
    let caps = Caps::new(config.budget.clone()).given(max_usd.map(|usd| GivenUsd { usd, at }));
    view(state, Sourced::Fresh(caps), Timestamp::default()).uncounted()
}

pub(crate) fn view(state: &State, caps: Sourced<Caps>, now: Timestamp) -> BudgetView {
    let spent = &state.spent;
    let budget = caps.value().map(|caps| &caps.budget);
    let seconds = |s: u64| Amount::Millis(s.saturating_mul(1000));
    let row = BudgetRow::new;
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
    let [money, tokens] = totals(state);
    let (money_least, tokens_least) = (money.at_least, tokens.at_least);
    let cap = budget.and_then(|b| b.max_tokens).map(|n| Amount::Tokens(Tokens(n.get())));
    rows.push(BudgetRow { cap, ..tokens });
    let cap = budget.and_then(|b| b.max_usd).map(|usd| Amount::Usd(usd.0));
    rows.push(BudgetRow { cap, ..money });
    let since = &state.progress;
    // In which turns something stayed unknown is not kept; before the first one nothing is.
    let some = since.ticks > 0;
    let cap = budget.and_then(|b| b.max_tokens_since_progress).map(|n| Amount::Tokens(Tokens(n.get())));
    rows.extend(cap.map(|_| BudgetRow {
        at_least: some && tokens_least,
        ..row("tokens since progress", "max_tokens_since_progress", Amount::Tokens(since.tokens), cap)
    }));
    let cap = budget.and_then(|b| b.max_usd_since_progress).map(|usd| Amount::Usd(usd.0));
    rows.extend(cap.map(|_| BudgetRow {
        at_least: some && money_least,
        ..row("money since progress", "max_usd_since_progress", Amount::Usd(since.usd), cap)
    }));
    rows.extend(caps.value().into_iter().flat_map(|caps| own(state, caps)));
    let mode = caps.value().filter(|caps| caps.budget.max_usd.is_some());
    BudgetView {
        rows,
        set: set_by_hand(state, now),
        usd_mode: mode.map(|caps| caps.usd_mode),
        usd_mode_reason: mode.map(|caps| caps.usd_mode_reason.clone()),
        caps: caps.map(|_| ()),
        peer_ms: spent.peer_ms,
        gate_ms: spent.gate_ms,
        wasted_ms: spent.wasted_ms,
        wasted: spent.wasted.iter().cloned().collect(),
        unknown_usage: spent.unknown_usage,
        unknown_usd: state
            .peers
            .values()
            .map(|peer| peer.vague_usd)
            .fold(0, u64::saturating_add)
            .max(spent.unknown_usage),
        usd_is_least: money_least,
    }
}
