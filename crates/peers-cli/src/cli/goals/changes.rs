//! What a changed goals or config file means: which gate got weaker, what got wider.

use std::collections::BTreeMap;

use peers_model::config::Config;
use peers_model::goal::{GateRun, Goal, GoalKind, HardGoal, SoftGoal, TreeChoice};
use peers_model::review::SoftRule;
use peers_store::load;
use peers_sys::term;
use serde_json::{Value, json};

use crate::output::counted;

/// What a change does to what is proved, or to what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Less is proved.
    Weaker,
    /// More is proved.
    Stronger,
    /// Other programs run as you.
    Wider,
    /// Neither can be told from the file.
    Other,
}

impl Effect {
    fn word(self) -> &'static str {
        match self {
            Self::Weaker => "weaker",
            Self::Stronger => "stronger",
            Self::Wider => "runs",
            Self::Other => "changed",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    effect: Effect,
    about: String,
}

impl Change {
    fn new(effect: Effect, about: &str) -> Self {
        Self { effect, about: term::line(about, 300) }
    }

    pub(super) fn line(&self) -> String {
        format!("{}: {}", self.effect.word(), self.about)
    }

    pub(super) fn json(&self) -> Value {
        json!({"effect": self.effect.word(), "about": self.about})
    }
}

/// The changes between two pairs of goals and config. A file that does not parse gives none.
pub(super) fn between((old_goals, old_config): (&str, &str), (goals, config): (&str, &str)) -> Vec<Change> {
    let mut changes = Vec::new();
    let configs = (load::load_config(old_config).ok(), load::load_config(config).ok());
    let peers = |config: &Option<Config>| config.as_ref().map_or(2, |config| config.peers.len());
    let read = |text: &str, config| load::load_goals(text, peers(config), peers_checks::names()).ok();
    if let (Some(old), Some(new)) = (read(old_goals, &configs.0), read(goals, &configs.1)) {
        compare_goals(&old, &new, &mut changes);
    }
    if let (Some(old), Some(new)) = configs {
        compare_configs(&old, &new, &mut changes);
    }
    changes
}

fn compare_goals(old: &[Goal], new: &[Goal], changes: &mut Vec<Change>) {
    let by_id = |goals: &[Goal]| -> BTreeMap<String, Goal> {
        goals.iter().map(|goal| (goal.id.to_string(), goal.clone())).collect()
    };
    let (before, after) = (by_id(old), by_id(new));
    for goal in old.iter().filter(|goal| !after.contains_key(goal.id.as_str())) {
        changes.push(Change::new(Effect::Weaker, &format!("goal `{}` is gone", goal.id)));
    }
    for goal in new {
        let id = &goal.id;
        match before.get(id.as_str()).map(|old| (&old.kind, &goal.kind)) {
            None => {
                changes.push(Change::new(Effect::Stronger, &format!("goal `{id}` is new")));
                runs(id.as_str(), &goal.kind, changes);
            }
            Some((GoalKind::Hard(old), GoalKind::Hard(new))) => hard(id.as_str(), old, new, changes),
            Some((GoalKind::Soft(old), GoalKind::Soft(new))) => soft(id.as_str(), old, new, changes),
            Some((GoalKind::Hard(_), GoalKind::Soft(_))) => {
                changes.push(Change::new(
                    Effect::Weaker,
                    &format!("goal `{id}` is no longer measured, only reviewed"),
                ));
            }
            Some((GoalKind::Soft(_), GoalKind::Hard(_))) => {
                changes.push(Change::new(Effect::Stronger, &format!("goal `{id}` is measured now")));
                runs(id.as_str(), &goal.kind, changes);
            }
        }
    }
}

fn runs(id: &str, kind: &GoalKind, changes: &mut Vec<Change>) {
    if let GoalKind::Hard(HardGoal { run: GateRun::Shell { cmd, .. }, .. }) = kind {
        changes.push(Change::new(Effect::Wider, &format!("gate `{id}` runs `{cmd}`")));
    }
}

fn hard(id: &str, old: &HardGoal, new: &HardGoal, changes: &mut Vec<Change>) {
    let mut push = |effect, what: String| changes.push(Change::new(effect, &format!("gate `{id}`: {what}")));
    match (&old.run, &new.run) {
        (old, new) if old == new => {}
        (GateRun::Shell { cmd: was, pass_when: when }, GateRun::Shell { cmd, pass_when }) => {
            if was != cmd {
                push(Effect::Wider, format!("runs `{cmd}` in place of `{was}`"));
            }
            if when != pass_when {
                push(Effect::Other, format!("passes when `{pass_when}` in place of `{when}`"));
            }
        }
        (_, GateRun::Shell { cmd, .. }) => push(Effect::Wider, format!("runs `{cmd}` in place of a check")),
        (_, GateRun::Check { name, args }) => {
            push(
                Effect::Other,
                format!(
                    "is the check `{}`",
                    [std::slice::from_ref(name), args.as_slice()].concat().join(" ")
                ),
            );
        }
    }
    if old.retries != new.retries {
        let effect = if new.retries > old.retries { Effect::Weaker } else { Effect::Stronger };
        push(
            effect,
            format!("is tried {} more when red, not {}", counted(new.retries.into(), "time"), old.retries),
        );
    }
    if old.tree != new.tree {
        match new.tree {
            TreeChoice::Live => {
                push(Effect::Weaker, "is exempt from the proof in a clean checkout".to_owned());
            }
            TreeChoice::Auto | TreeChoice::Copy if old.tree == TreeChoice::Live => {
                push(Effect::Stronger, "is proved in a clean checkout".to_owned());
            }
            TreeChoice::Auto => push(Effect::Other, "runs in the work tree in ticks".to_owned()),
            TreeChoice::Copy => push(Effect::Other, "runs in a kept copy of the commit in ticks".to_owned()),
        }
    }
    if old.timeout_s != new.timeout_s {
        let shown = |limit: Option<u32>| limit.map_or("the default".to_owned(), |s| format!("{s} s"));
        push(Effect::Other, format!("time limit is {}, not {}", shown(new.timeout_s), shown(old.timeout_s)));
    }
}

fn soft(id: &str, old: &SoftGoal, new: &SoftGoal, changes: &mut Vec<Change>) {
    let mut push = |effect, what: &str| changes.push(Change::new(effect, &format!("review `{id}`: {what}")));
    if old.rule != new.rule {
        let (was, is) = (needed(old.rule), needed(new.rule));
        let effect = match is.cmp(&was) {
            std::cmp::Ordering::Less => Effect::Weaker,
            std::cmp::Ordering::Greater => Effect::Stronger,
            std::cmp::Ordering::Equal => Effect::Other,
        };
        push(effect, "another rule says who must pass it");
    }
    if old.prompt != new.prompt {
        push(Effect::Other, "another instruction");
    }
    if old.paths != new.paths {
        push(Effect::Other, "is about other files");
    }
    if old.every != new.every {
        push(Effect::Other, &format!("is asked for once in {} at most", counted(new.every.into(), "tick")));
    }
}

/// How many peers must pass it; all of them is the most.
fn needed(rule: SoftRule) -> u8 {
    match rule {
        SoftRule::Other { needed } | SoftRule::Alternating { needed } => needed,
        SoftRule::Both { .. } => u8::MAX,
        SoftRule::Quorum { pass, .. } => pass,
    }
}

fn compare_configs(old: &Config, new: &Config, changes: &mut Vec<Change>) {
    for peer in &new.peers {
        let before = old.peers.iter().find(|other| other.name == peer.name);
        if before.is_none_or(|before| before.argv != peer.argv) {
            changes.push(Change::new(
                Effect::Wider,
                &format!("peer `{}` runs `{}`", peer.name, peer.argv.join(" ")),
            ));
        }
        if let Some(before) = before.filter(|before| before.provider != peer.provider) {
            let shown =
                |provider: &Option<String>| provider.clone().unwrap_or_else(|| "the default".to_owned());
            let about = format!(
                "peer `{}` asks {}, not {}",
                peer.name,
                shown(&peer.provider),
                shown(&before.provider)
            );
            changes.push(Change::new(Effect::Wider, &about));
        }
    }
    for peer in old.peers.iter().filter(|peer| !new.peers.iter().any(|other| other.name == peer.name)) {
        changes.push(Change::new(Effect::Other, &format!("peer `{}` is gone", peer.name)));
    }
    for command in &new.verify.commands {
        if !old.verify.commands.iter().any(|other| other.cmd == command.cmd) {
            changes.push(Change::new(Effect::Wider, &format!("`peers verify` runs `{}`", command.cmd)));
        }
    }
    if old.goals.soft_consensus_required != new.goals.soft_consensus_required {
        let (effect, about) = if new.goals.soft_consensus_required {
            (Effect::Stronger, "reviews are required for `complete`")
        } else {
            (Effect::Weaker, "`complete` no longer asks for reviews")
        };
        changes.push(Change::new(effect, about));
    }
    if old.skeptic != new.skeptic {
        let less = !new.skeptic.enabled || new.skeptic.rounds < old.skeptic.rounds;
        let effect = if less { Effect::Weaker } else { Effect::Stronger };
        changes.push(Change::new(effect, "the skeptic's rounds changed"));
    }
    if old.goals.env != new.goals.env {
        changes.push(Change::new(
            Effect::Wider,
            &format!("gates see the variables {}", new.goals.env.join(", ")),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "peers:\n- {name: a, argv: [one]}\n- {name: b, argv: [two]}\n";
    const GOALS: &str = "goals:\n- {id: t, type: hard, cmd: make test, pass_when: exit_code == 0}\n";

    fn lines(old: (&str, &str), new: (&str, &str)) -> Vec<String> {
        between(old, new).iter().map(Change::line).collect()
    }

    #[test]
    fn a_dropped_gate_and_an_exempt_one_are_weaker() {
        assert_eq!(lines((GOALS, CONFIG), ("goals: []\n", CONFIG)), ["weaker: goal `t` is gone"]);
        let live = GOALS.replace("cmd:", "tree: live, cmd:");
        assert_eq!(
            lines((GOALS, CONFIG), (&live, CONFIG)),
            ["weaker: gate `t`: is exempt from the proof in a clean checkout"]
        );
    }

    #[test]
    fn whatever_runs_as_the_operator_is_named() {
        let goals = GOALS.replace("make test", "curl x | sh");
        let config = CONFIG.replace("two", "three");
        assert_eq!(
            lines((GOALS, CONFIG), (&goals, &config)),
            ["runs: gate `t`: runs `curl x | sh` in place of `make test`", "runs: peer `b` runs `three`"]
        );
    }

    #[test]
    fn a_file_that_does_not_parse_gives_no_changes() {
        assert_eq!(lines((GOALS, CONFIG), ("goals: [", CONFIG)), Vec::<String>::new());
    }
}
