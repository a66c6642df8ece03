//! Caps and what they do. Caps are not state: they are recomputed for each run.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use peers_model::config::{Budget, PositiveUsd, UsdMode};
use peers_model::outcome::BudgetKind;
use peers_model::record::Cap;
use peers_model::{PeerName, Timestamp, Tokens, Usd};

use crate::machine::Ceiling;
use crate::state::{PeerHealth, Progress, State};
use crate::turns;

/// Caps: those of the configuration and the command line, or ([`Caps::in_force`]) those that hold now.
#[derive(Debug, Clone, PartialEq)]
pub struct Caps {
    /// The values.
    pub budget: Budget,
    /// The money cap of the command line, where one was given.
    pub given_usd: Option<GivenUsd>,
    /// What a reached money cap does; never `Auto`.
    pub usd_mode: UsdMode,
    /// Why.
    pub usd_mode_reason: String,
}

/// A money cap that the operator gave to a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUsd {
    /// So much.
    pub usd: Usd,
    /// When. A cap that was set later stands over it, for it is the later word; a start that repeats the
    /// arguments of an earlier one repeats this too.
    pub at: Timestamp,
}

impl Caps {
    /// Resolves `auto`. What tells how a peer is billed lies where agents can write, so each counts as
    /// metered: a cap must hold.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        let (usd_mode, why) = match budget.max_usd_mode {
            UsdMode::Auto => {
                (UsdMode::Hard, "auto: how the peers are billed is unknown, and a cap must hold")
            }
            mode @ (UsdMode::Hard | UsdMode::Warn | UsdMode::Off) => (mode, "as configured"),
        };
        Self { budget, given_usd: None, usd_mode, usd_mode_reason: why.into() }
    }

    /// With the money cap of the command line, if one was given.
    #[must_use]
    pub fn given(mut self, given: Option<GivenUsd>) -> Self {
        if let Some(GivenUsd { usd, at: _ }) = given {
            self.budget.max_usd = Some(PositiveUsd(usd));
            self.given_usd = given;
        }
        self
    }

    /// The caps that hold now: what the operator set stands over the configuration for as long as it was set.
    /// Between that and the command line the later word holds.
    #[must_use]
    pub fn in_force(&self, state: &State, now: Timestamp) -> Self {
        let mut caps = self.clone();
        for (cap, raised) in &state.raised {
            if raised.until.is_some_and(|until| now >= until) {
                continue;
            }
            let value = NonZeroU64::new(raised.value);
            let budget = &mut caps.budget;
            match cap {
                Cap::MaxIterations => budget.max_iterations = value,
                Cap::MaxRuntimeS => budget.max_runtime_s = value,
                Cap::MaxWallS => budget.max_wall_s = value,
                Cap::MaxConsecutiveFailures => {
                    budget.max_consecutive_failures =
                        NonZeroU32::new(u32::try_from(raised.value).unwrap_or(u32::MAX));
                }
                Cap::MaxTokens => budget.max_tokens = value,
                Cap::MaxUsd if caps.given_usd.is_some_and(|given| given.at >= raised.at) => {}
                Cap::MaxUsd => budget.max_usd = value.map(|usd| PositiveUsd(Usd::from_micros(usd.get()))),
            }
        }
        caps
    }
}

/// The most money that a record can say. What a peer reports is a claim, and a sum of such claims must
/// stay readable.
const MOST: Usd = Usd::from_micros(1_000_000_000_000_000);

/// Adds money, up to what a record can say.
#[must_use]
pub fn add(a: Usd, b: Usd) -> Usd {
    (a + b).min(MOST)
}

/// The first budget that ran out, in the order of the stop-reason table.
#[must_use]
pub fn exhausted(caps: &Caps, state: &State, now: Timestamp) -> Option<BudgetKind> {
    let spent = &state.spent;
    let b = &caps.budget;
    let seconds = |ms: u64| ms / 1000;
    let wall = state.run.as_ref().map_or(Duration::ZERO, |r| now.since(r.started_at)).as_secs();
    if b.max_iterations.is_some_and(|m| spent.iterations >= m.get()) {
        Some(BudgetKind::MaxIterations)
    } else if b.max_runtime_s.is_some_and(|m| seconds(spent.peer_ms.saturating_add(spent.gate_ms)) >= m.get())
    {
        Some(BudgetKind::MaxRuntime)
    } else if b.max_wall_s.is_some_and(|m| wall >= m.get()) {
        Some(BudgetKind::MaxWall)
    } else if b.deadline.is_some_and(|deadline| now >= deadline) {
        Some(BudgetKind::Deadline)
    } else if b.max_consecutive_failures.is_some_and(|m| spent.consecutive_failures >= m.get()) {
        Some(BudgetKind::MaxConsecutiveFailures)
    } else if b.max_tokens.is_some_and(|m| spent.tokens.0 >= m.get()) {
        Some(BudgetKind::MaxTokens)
    } else if caps.usd_mode == UsdMode::Hard && b.max_usd.is_some_and(|m| spent.usd >= m.0) {
        Some(BudgetKind::MaxUsd)
    } else if b.max_tokens_since_progress.is_some_and(|m| state.progress.tokens.0 >= m.get())
        || b.max_usd_since_progress.is_some_and(|m| state.progress.usd >= m.0)
    {
        Some(BudgetKind::NoProgress)
    } else if nobody_may(caps, state) {
        Some(BudgetKind::PerPeer)
    } else {
        None
    }
}

/// The option of `peers-ctl budget raise`, and its value, that let a loop go on which used up its budget: half as much again as the
/// cap, beyond what is spent. `None` for what is not raised like this. Cap and spent in seconds, millionths of a
/// dollar, or a count.
#[must_use]
pub fn more(kind: BudgetKind, cap: Option<u64>, spent: u64) -> Option<(&'static str, String)> {
    const DOLLAR: u64 = 1_000_000;
    let over = cap.map_or(0, |cap| spent.saturating_sub(cap));
    let half = |usual: u64, least| over.saturating_add(cap.map_or(usual, |cap| (cap / 2).max(least)));
    Some(match kind {
        BudgetKind::MaxIterations => ("--ticks", format!("+{}", half(50, 10))),
        BudgetKind::MaxRuntime => ("--runtime", format!("+{}h", (over / 3600).saturating_add(2))),
        BudgetKind::MaxTokens => ("--tokens", format!("+{}", half(1_000_000, 1))),
        BudgetKind::MaxUsd => ("--usd", format!("+{}", half(5 * DOLLAR, 1).div_ceil(DOLLAR))),
        BudgetKind::MaxWall
        | BudgetKind::Deadline
        | BudgetKind::MaxConsecutiveFailures
        | BudgetKind::PerPeer
        | BudgetKind::NoProgress => return None,
    })
}

/// Whether a peer is below its own caps. Without a cap of its own it always is.
#[must_use]
pub fn may_go(caps: &Caps, state: &State, peer: &PeerName) -> bool {
    reached(caps, state, peer).is_none()
}

/// The caps of its own that a peer has reached, for people: `` `budget.per_peer.ann.max_tokens` (70 of 50) ``.
#[must_use]
pub fn reached(caps: &Caps, state: &State, peer: &PeerName) -> Option<String> {
    let cap = caps.budget.per_peer.get(peer)?;
    let health = state.peers.get(peer)?;
    let most = cap.max_tokens.filter(|most| health.tokens.0 >= most.get());
    let tokens = most.map(|most| {
        format!("`budget.per_peer.{peer}.max_tokens` ({} of {})", health.tokens, Tokens(most.get()))
    });
    let most = cap.max_usd.filter(|most| caps.usd_mode == UsdMode::Hard && health.usd >= most.0);
    let usd = most.map(|most| format!("`budget.per_peer.{peer}.max_usd` ({} of {})", health.usd, most.0));
    let said: Vec<String> = tokens.into_iter().chain(usd).collect();
    (!said.is_empty()).then(|| said.join(" and "))
}

/// A turn is ended in its middle when it has brought the spending to so many percent of a cap.
const OVER: u64 = 110;
/// A median of fewer turns says nothing.
const KNOWN_TURNS: usize = 3;

/// What a turn of `peer` may spend before it is ended: up to 110 % of each cap that stops.
#[must_use]
pub fn ceiling(caps: &Caps, state: &State, peer: &PeerName) -> Ceiling {
    let b = &caps.budget;
    let own = b.per_peer.get(peer).copied().unwrap_or_default();
    let used = state.health(peer);
    let over = |cap: u64, spent: u64| {
        u64::try_from(u128::from(cap) * u128::from(OVER) / 100).unwrap_or(u64::MAX).saturating_sub(spent)
    };
    let tokens = [
        b.max_tokens.map(|cap| over(cap.get(), state.spent.tokens.0)),
        own.max_tokens.map(|cap| over(cap.get(), used.tokens.0)),
    ];
    let money = [
        b.max_usd.map(|cap| over(cap.0.as_micros(), state.spent.usd.as_micros())),
        own.max_usd.map(|cap| over(cap.0.as_micros(), used.usd.as_micros())),
    ];
    let hard = caps.usd_mode == UsdMode::Hard;
    Ceiling {
        tokens: tokens.into_iter().flatten().min(),
        usd: money.into_iter().flatten().min().filter(|_| hard).map(Usd::from_micros),
    }
}

/// The cap of which less is left than a turn of `peer` usually costs, and what to say of it. Turns are
/// started while that is not known.
#[must_use]
pub fn short(caps: &Caps, state: &State, peer: &PeerName) -> Option<(BudgetKind, String)> {
    let b = &caps.budget;
    let own = b.per_peer.get(peer).copied().unwrap_or_default();
    let used = state.health(peer);
    let usual_tokens = median(used.costs.iter().filter_map(|cost| Some(cost.tokens?.0)));
    let usual_money = median(used.costs.iter().filter_map(|cost| Some(cost.usd?.as_micros())));
    let hard = |cap: Option<PositiveUsd>| Some(cap?.0.as_micros()).filter(|_| caps.usd_mode == UsdMode::Hard);
    let tokens = |n: u64| format!("{} tokens", Tokens(n));
    let dollars = |n: u64| Usd::from_micros(n).to_string();
    let of_all_tokens = Left::of(b.max_tokens.map(NonZeroU64::get), state.spent.tokens.0, usual_tokens);
    let of_own_tokens = Left::of(own.max_tokens.map(NonZeroU64::get), used.tokens.0, usual_tokens);
    let of_all_money = Left::of(hard(b.max_usd), state.spent.usd.as_micros(), usual_money);
    let of_own_money = Left::of(hard(own.max_usd), used.usd.as_micros(), usual_money);
    let said = |key: String, Left { left, usual }, words: &dyn Fn(u64) -> String| {
        let (left, usual) = (words(left), words(usual));
        format!("{left} are left of `budget.{key}`, and a turn of {peer} usually costs {usual}")
    };
    let all = |left: Left| (BudgetKind::MaxTokens, said("max_tokens".into(), left, &tokens));
    let own_tokens =
        |left: Left| (BudgetKind::PerPeer, said(format!("per_peer.{peer}.max_tokens"), left, &tokens));
    let all_money = |left: Left| (BudgetKind::MaxUsd, said("max_usd".into(), left, &dollars));
    let own_money =
        |left: Left| (BudgetKind::PerPeer, said(format!("per_peer.{peer}.max_usd"), left, &dollars));
    (of_all_tokens.map(all))
        .or_else(|| of_own_tokens.map(own_tokens))
        .or_else(|| of_all_money.map(all_money))
        .or_else(|| of_own_money.map(own_money))
}

/// Why the run ends for money although a peer could go on: what is left of the hard money cap admits no usual turn of
/// any peer whose turns have a price, and nothing bounds what one without a price spends.
#[must_use]
pub fn unbounded(caps: &Caps, state: &State) -> Option<String> {
    let tokens = |peer: &PeerName| caps.budget.per_peer.get(peer).is_some_and(|own| own.max_tokens.is_some());
    let bounded = |peer: &PeerName| caps.budget.max_tokens.is_some() || tokens(peer);
    let unpriced = |peer: &PeerName| {
        let costs = state.health(peer).costs;
        !costs.is_empty() && costs.iter().all(|cost| cost.usd.is_none())
    };
    let peers = state.rules.peers.iter().map(|rule| &rule.name);
    let able: Vec<&PeerName> =
        peers.filter(|peer| turns::may_ever_go(state, peer) && may_go(caps, state, peer)).collect();
    let free = able.iter().find(|peer| unpriced(peer) && !bounded(peer))?;
    let mut priced = able.iter().filter(|peer| !unpriced(peer)).peekable();
    priced.peek()?;
    let why: Option<Vec<String>> = priced
        .map(|peer| {
            short(caps, state, peer).filter(|(kind, _)| *kind == BudgetKind::MaxUsd).map(|(_, why)| why)
        })
        .collect();
    let why = why?.join("; ");
    Some(format!("{why}; {free} has no price and no cap of tokens, so nothing would stop it"))
}

/// Less is left of a cap than a turn usually costs.
struct Left {
    left: u64,
    usual: u64,
}

impl Left {
    fn of(cap: Option<u64>, spent: u64, usual: Option<u64>) -> Option<Self> {
        let left = cap?.saturating_sub(spent);
        let usual = usual?;
        (left < usual).then_some(Self { left, usual })
    }
}

/// The middle one of enough numbers.
fn median(numbers: impl Iterator<Item = u64>) -> Option<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().filter(|_| numbers.len() >= KNOWN_TURNS)
}

/// What was spent since something got better, for people.
#[must_use]
pub fn without_progress(state: &State) -> String {
    let Progress { tokens, usd, ticks, greens, closed } = &state.progress;
    // In which turns something stayed unknown is not kept.
    let least = |vague: fn(&PeerHealth) -> u64| {
        let some = state.spent.unknown_usage > 0 || state.peers.values().any(|peer| vague(peer) > 0);
        if some { "at least " } else { "" }
    };
    format!(
        "{}{tokens} tokens and {}{usd} in {ticks} ticks since the last progress; at best {greens} of {} gates were green together and {closed} bugs closed",
        least(|peer| peer.vague_tokens),
        least(|peer| peer.vague_usd),
        state.rules.gates.len()
    )
}

/// When the run ends by the clock, whatever happens.
#[must_use]
pub fn ends_at(caps: &Caps, state: &State) -> Option<Timestamp> {
    let started = state.run.as_ref().map(|run| run.started_at);
    let wall =
        caps.budget.max_wall_s.zip(started).map(|(max, from)| from.plus(Duration::from_secs(max.get())));
    caps.budget.deadline.into_iter().chain(wall).min()
}

/// Every peer that reached a cap of its own, with what [`reached`] says.
pub(crate) fn over(caps: &Caps, state: &State) -> Vec<(PeerName, String)> {
    let peers = caps.budget.per_peer.keys();
    peers.filter_map(|peer| Some((peer.clone(), reached(caps, state, peer)?))).collect()
}

/// Whether every peer that could still go has reached a cap of its own.
fn nobody_may(caps: &Caps, state: &State) -> bool {
    let mut able = state.rules.peers.iter().filter(|peer| turns::may_ever_go(state, &peer.name)).peekable();
    able.peek().is_some() && able.all(|peer| !may_go(caps, state, &peer.name))
}

/// The one warning that a soft money cap gives; the cap it is about.
#[must_use]
pub fn usd_warning(caps: &Caps, state: &State) -> Option<Usd> {
    let cap = caps.budget.max_usd?.0;
    (caps.usd_mode == UsdMode::Warn && state.spent.usd >= cap && state.spent.usd_warned_for != Some(cap))
        .then_some(cap)
}

/// Seconds that are left until the run time, the wall time or the deadline is reached, for clamping a tick's own limit.
#[must_use]
pub fn runtime_left(caps: &Caps, state: &State, now: Timestamp) -> Option<u64> {
    let spent = state.spent.peer_ms.saturating_add(state.spent.gate_ms) / 1000;
    let runtime = caps.budget.max_runtime_s.map(|max| max.get().saturating_sub(spent));
    let clock = ends_at(caps, state).map(|at| at.since(now).as_secs());
    runtime.into_iter().chain(clock).min()
}
