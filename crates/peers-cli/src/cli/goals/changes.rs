//! What a changed goals or config file means: which gate got weaker, what got wider.

use std::collections::BTreeMap;

use peers_core::dsl::{Comparison, Expr};
use peers_model::GoalId;
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

    /// Whether it belongs to what needs a yes of its own.
    pub(super) fn widens(&self) -> bool {
        self.effect == Effect::Wider
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
    // In full, so that a new field does not build until there is a line about it.
    let HardGoal {
        run: was_run,
        timeout_s: was_timeout,
        retries: was_retries,
        tree: was_tree,
        cacheable: was_cacheable,
        expensive: was_expensive,
        serial: was_serial,
        needs: was_needs,
        paths: was_paths,
        env: was_env,
        cwd: was_cwd,
    } = old;
    let HardGoal { run, timeout_s, retries, tree, cacheable, expensive, serial, needs, paths, env, cwd } =
        new;
    what_runs(was_run, run, &mut push);
    field(*was_retries, *retries, &mut push, |was, is| {
        let effect = if is > was { Effect::Weaker } else { Effect::Stronger };
        (effect, format!("is tried {} more when red, not {was}", counted(is.into(), "time")))
    });
    field(*was_tree, *tree, &mut push, |was, is| match (was == TreeChoice::Live, is == TreeChoice::Live) {
        (false, true) => (Effect::Weaker, "is exempt from the proof in a clean checkout".to_owned()),
        (true, false) => (Effect::Stronger, "is proved in a clean checkout".to_owned()),
        _ => (Effect::Other, format!("runs in the tree `{}`, not `{}`", word(&is), word(&was))),
    });
    field(*was_timeout, *timeout_s, &mut push, |was, is| {
        let shown = |limit: Option<u32>| limit.map_or("the default".to_owned(), |s| format!("{s} s"));
        (Effect::Other, format!("time limit is {}, not {}", shown(is), shown(was)))
    });
    let either = |is: bool, yes: &str, no: &str| if is { yes.to_owned() } else { no.to_owned() };
    field(*was_cacheable, *cacheable, &mut push, |_, is| {
        let effect = if is { Effect::Weaker } else { Effect::Stronger };
        (effect, either(is, "a green answer may outlive the run", "no green answer outlives the run"))
    });
    field(*was_expensive, *expensive, &mut push, |_, is| {
        (Effect::Other, either(is, "runs in a kept copy of the commit in ticks", "is no longer expensive"))
    });
    field(*was_serial, *serial, &mut push, |_, is| {
        (Effect::Other, either(is, "runs alone", "runs beside other gates"))
    });
    field(was_needs, needs, &mut push, |was, is| {
        let shown = |ids: &[GoalId]| match ids {
            [] => "nothing".to_owned(),
            ids => ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        (Effect::Other, format!("needs {}, not {}", shown(is), shown(was)))
    });
    field(was_paths, paths, &mut push, |_, is| {
        let about = if is.is_empty() { "the whole tree".to_owned() } else { is.join(", ") };
        (Effect::Other, format!("a kept answer is about {about}"))
    });
    field(was_env, env, &mut push, |_, is| {
        let shown = if is.is_empty() { "no further variables".to_owned() } else { is.join(", ") };
        (Effect::Wider, format!("asks for {shown}"))
    });
    field(was_cwd, cwd, &mut push, |_, is| {
        (Effect::Other, format!("starts in {}", is.as_deref().unwrap_or("the top of the tree")))
    });
}

/// One field of a gate: nothing where it stayed, else what the change means.
fn field<T: PartialEq>(
    was: T,
    is: T,
    push: &mut dyn FnMut(Effect, String),
    says: impl FnOnce(T, T) -> (Effect, String),
) {
    if was != is {
        let (effect, what) = says(was, is);
        push(effect, what);
    }
}

/// A word as it stands in the file.
fn word<T: serde::Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn what_runs(old: &GateRun, new: &GateRun, push: &mut dyn FnMut(Effect, String)) {
    match (old, new) {
        (GateRun::Shell { cmd: was, pass_when: when }, GateRun::Shell { cmd, pass_when }) => {
            if was != cmd {
                push(Effect::Wider, format!("runs `{cmd}` in place of `{was}`"));
            }
            if let Some(effect) = condition(when, pass_when) {
                push(effect, format!("passes when `{pass_when}` in place of `{when}`"));
            }
        }
        (GateRun::Check { .. }, GateRun::Shell { cmd, .. }) => {
            push(Effect::Wider, format!("runs `{cmd}` in place of a check"));
        }
        (old, GateRun::Check { name, args }) => {
            if old != new {
                let shown = [std::slice::from_ref(name), args.as_slice()].concat().join(" ");
                push(Effect::Other, format!("is the check `{shown}`"));
            }
        }
    }
}

/// What another condition means; `None` where it is the same in other words.
fn condition(old: &str, new: &str) -> Option<Effect> {
    let (Ok(old), Ok(new)) = (Expr::parse(old), Expr::parse(new)) else {
        return (old != new).then_some(Effect::Other);
    };
    match old.compare(&new) {
        Comparison::Same => None,
        Comparison::Weaker => Some(Effect::Weaker),
        Comparison::Stronger => Some(Effect::Stronger),
        Comparison::Changed => Some(Effect::Other),
    }
}

fn soft(id: &str, old: &SoftGoal, new: &SoftGoal, changes: &mut Vec<Change>) {
    let mut push = |effect, what: &str| changes.push(Change::new(effect, &format!("review `{id}`: {what}")));
    // A new field does not build until there is a line about it.
    let SoftGoal { prompt: _, rule: _, every: _, paths: _ } = new;
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
        if let Some(before) = before.filter(|before| before.tool_name() != peer.tool_name()) {
            let about = format!(
                "peer `{}` is run as `{}`, with the login of that tool, not as `{}`",
                peer.name,
                peer.tool_name(),
                before.tool_name()
            );
            changes.push(Change::new(Effect::Wider, &about));
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
    for command in &new.setup.commands {
        if !old.setup.commands.iter().any(|other| other.cmd == command.cmd) {
            changes.push(Change::new(Effect::Wider, &format!("`setup` runs `{}`", command.cmd)));
        }
    }
    for command in &old.setup.commands {
        if !new.setup.commands.iter().any(|other| other.cmd == command.cmd) {
            changes.push(Change::new(Effect::Other, &format!("`setup` no longer runs `{}`", command.cmd)));
        }
    }
    if old.goals.strict_tree != new.goals.strict_tree {
        let (effect, about) = if new.goals.strict_tree {
            (Effect::Stronger, "a gate that changes the work tree is red")
        } else {
            (Effect::Weaker, "a gate that changes the work tree is warned of, and no longer red")
        };
        changes.push(Change::new(effect, about));
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
    fn another_condition_is_weaker_stronger_changed_or_no_change_at_all() {
        let with = |when: &str| GOALS.replace("exit_code == 0", when);
        let effect = |old: &str, new: &str| {
            let found = lines((&with(old), CONFIG), (&with(new), CONFIG));
            found.first().map(|line| line.split(':').next().unwrap_or_default().to_owned())
        };
        let both = "exit_code == 0 and len(stdout) > 3";
        assert_eq!(effect("exit_code == 0", "exit_code  ==  0"), None);
        assert_eq!(effect(both, "len(stdout) > 3 and exit_code == 0"), None);
        assert_eq!(effect(both, "exit_code == 0"), Some("weaker".into()));
        assert_eq!(effect("exit_code == 0", both), Some("stronger".into()));
        assert_eq!(effect(both, "exit_code == 0 and len(stdout) > 2"), Some("weaker".into()));
        assert_eq!(effect("exit_code == 0", "exit_code != 0"), Some("changed".into()));
        assert_eq!(
            lines((&with(both), CONFIG), (&with("exit_code == 0"), CONFIG)),
            [format!("weaker: gate `t`: passes when `exit_code == 0` in place of `{both}`")]
        );
    }

    #[test]
    fn further_attempts_and_time_limits_are_told() {
        let more = GOALS.replace("cmd:", "retry_on_fail: 2, timeout_s: 9, cmd:");
        assert_eq!(
            lines((GOALS, CONFIG), (&more, CONFIG)),
            [
                "weaker: gate `t`: is tried 2 times more when red, not 0",
                "changed: gate `t`: time limit is 9 s, not the default"
            ]
        );
        assert_eq!(lines((&more, CONFIG), (GOALS, CONFIG)).len(), 2);
    }

    #[test]
    fn a_file_that_does_not_parse_gives_no_changes() {
        assert_eq!(lines((GOALS, CONFIG), ("goals: [", CONFIG)), Vec::<String>::new());
    }
}
