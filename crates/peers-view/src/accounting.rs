//! What will be known of the peers' use, and which caps therefore bind nobody.

use peers_core::budget::Caps;
use peers_model::Usd;
use peers_model::config::{Config, PeerSpec, UsdMode};
use serde::Serialize;

use crate::words;

/// What will be known of a peer's use while it runs, as its command line tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Accounting {
    /// Its tokens, and what its service says of limits.
    pub tokens: bool,
    /// Its cost.
    pub money: bool,
    /// Both as far as the agent tells them, which its command line does not say.
    pub vague: bool,
    /// The switch without which neither is known.
    pub missing: Option<String>,
    /// What to do where a part stays unknown, and no switch is missing.
    pub remedy: Option<String>,
    /// Other doubts about its command.
    pub doubts: Vec<String>,
}

/// Something to know before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// A cap that is set does not bind somebody.
    pub loud: bool,
    /// For people.
    pub text: String,
}

impl Accounting {
    /// For people.
    #[must_use]
    pub fn words(&self) -> String {
        let known = match (self.tokens, self.money) {
            (true, true) if self.vague => "tokens, cost and limits are known as far as the agent tells them",
            (true, true) => "tokens, cost and limits are known",
            (true, false) => "tokens and limits are known, cost is not",
            (false, _) => "tokens, cost and limits stay unknown",
        };
        match &self.missing {
            Some(switch) => format!("{known}: `{switch}` is missing in argv"),
            None => known.to_owned(),
        }
    }
}

/// What the operator should know of the peers' commands before a run. `accounting` is in the order of
/// the configuration, `max_usd` the cap of the command line.
#[must_use]
pub fn doubts(config: &Config, accounting: &[Accounting], max_usd: Option<Usd>) -> Vec<Doubt> {
    let caps = Caps::new(config.budget.clone());
    let money = max_usd.or(caps.budget.max_usd.map(|usd| usd.0)).filter(|_| caps.usd_mode != UsdMode::Off);
    let mut found = Vec::new();
    for (peer, known) in config.peers.iter().zip(accounting) {
        let own = caps.budget.per_peer.get(&peer.name).copied().unwrap_or_default();
        let of_its_own = |cap: &str| format!("`budget.per_peer.{}.{cap}`", peer.name);
        let mut unbound = Vec::new();
        let global = [
            ("max_usd", money.is_some(), known.money),
            ("max_tokens", caps.budget.max_tokens.is_some(), known.tokens),
            // These stop in every mode.
            ("max_usd_since_progress", caps.budget.max_usd_since_progress.is_some(), known.money),
            ("max_tokens_since_progress", caps.budget.max_tokens_since_progress.is_some(), known.tokens),
        ];
        unbound.extend(
            global.iter().filter(|(_, set, known)| *set && !known).map(|(cap, ..)| format!("`{cap}`")),
        );
        if own.max_usd.is_some() && caps.usd_mode == UsdMode::Hard && !known.money {
            unbound.push(of_its_own("max_usd"));
        }
        if own.max_tokens.is_some() && !known.tokens {
            unbound.push(of_its_own("max_tokens"));
        }
        let loud = !unbound.is_empty();
        if loud || known.missing.is_some() {
            found.push(Doubt { loud, text: unknown(peer, known, &unbound) });
        }
        if own.max_usd.is_some() && caps.usd_mode != UsdMode::Hard {
            let (cap, mode) =
                (of_its_own("max_usd"), if caps.usd_mode == UsdMode::Warn { "warn" } else { "off" });
            let text = format!("{cap} does not bind: `max_usd_mode` is `{mode}`, it binds in `hard` alone");
            found.push(Doubt { loud: true, text });
        }
        let more = known.doubts.iter();
        found.extend(more.map(|doubt| Doubt { loud: false, text: format!("{}: {doubt}", peer.name) }));
    }
    found
}

fn unknown(peer: &PeerSpec, known: &Accounting, unbound: &[String]) -> String {
    let what = if known.tokens { "cost" } else { "tokens, cost and limits" };
    let (name, tool) = (&peer.name, peer.tool_name());
    let so = match unbound.len() {
        0 => String::new(),
        n => format!(", so {} {} not bind it", words::listed(unbound), if n == 1 { "does" } else { "do" }),
    };
    if let Some(switch) = &known.missing {
        return format!(
            "{name} runs {tool} without `{switch}`: its {what} stay unknown{so}; add it to its argv"
        );
    }
    let verb = if known.tokens { "stays" } else { "stay" };
    let remedy = known.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("{name} ({tool}): its {what} {verb} unknown{so}{remedy}")
}
