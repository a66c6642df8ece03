//! What of goals and configuration runs other programs as the operator, and the yes that it needs.

use std::collections::BTreeSet;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_model::config::{Config, Hook, Permissions};
use peers_model::exit;
use peers_model::goal::{GateRun, Goal, GoalKind};
use peers_sys::digest::sha256_hex;
use serde::Serialize;

use super::changes::Change;

/// One thing that runs, or that what runs is given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Item {
    kind: &'static str,
    values: Vec<String>,
}

/// The widening set of a pair of files: whoever accepts it lets these run as himself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Widening {
    items: BTreeSet<Item>,
}

impl Widening {
    /// Everything of it that the files hold. A new key that lets something run gets a line here, and one in
    /// `changes`.
    pub(super) fn of(config: &Config, goals: &[Goal]) -> Self {
        let mut items = BTreeSet::new();
        let mut add = |kind, values: Vec<String>| items.insert(Item { kind, values });
        for peer in &config.peers {
            let mut values = vec![
                peer.name.to_string(),
                peer.tool_name().to_owned(),
                peer.provider.clone().unwrap_or_default(),
            ];
            values.extend(peer.argv.iter().cloned());
            add("peer", values);
            if peer.tool_name() == "acp" && peer.permissions.unwrap_or_default() == Permissions::Allow {
                add("permissions", vec![peer.name.to_string()]);
            }
        }
        for command in &config.verify.commands {
            add("verify", vec![command.cmd.clone()]);
        }
        for command in &config.setup.commands {
            add("setup", vec![command.cmd.clone()]);
        }
        for hook in Hook::ALL {
            for command in config.hooks.of(hook) {
                let mut values = vec![hook.word().to_owned()];
                values.extend(command.cmd.iter().cloned());
                add("hook", values);
            }
        }
        for name in &config.goals.env {
            add("env", vec![name.clone()]);
        }
        for goal in goals {
            if let GoalKind::Hard(hard) = &goal.kind
                && let GateRun::Shell { cmd, .. } = &hard.run
            {
                add("gate", vec![cmd.clone()]);
            }
            if let GoalKind::Hard(hard) = &goal.kind {
                for name in &hard.env {
                    add("env", vec![name.clone()]);
                }
            }
        }
        Self { items }
    }

    /// Whether this holds something that the other does not.
    pub(super) fn exceeds(&self, other: &Self) -> bool {
        !self.items.is_subset(&other.items)
    }

    /// What stands for exactly this set.
    pub(super) fn digest(&self) -> String {
        // A list of texts always becomes JSON.
        sha256_hex(&serde_json::to_vec(&self.items).unwrap_or_default())
    }
}

/// Characters that a person can be expected to read before a yes.
const READABLE: usize = 20_000;

/// How the yes can be given.
pub(super) struct Asked<'a> {
    /// What the yes is to.
    pub(super) to: To,
    /// What stands for exactly that.
    pub(super) digest: String,
    /// The digest that the command was given.
    pub(super) given: Option<&'a str>,
    /// Shown before the question, in full.
    pub(super) changes: Vec<&'a Change>,
    /// A terminal may be asked.
    pub(super) can_answer: bool,
    /// What to do without one.
    pub(super) remedy: Step,
}

/// What a yes is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// Other commands run.
    Commands,
    /// An edit, which may also let other commands run.
    Edit {
        /// Other commands run.
        wider: bool,
    },
}

impl To {
    fn what(self) -> &'static str {
        match self {
            Self::Commands => "set of commands",
            Self::Edit { .. } => "edit",
        }
    }

    fn question(self) -> &'static str {
        match self {
            Self::Commands | Self::Edit { wider: true } => {
                "This runs as you, on this machine. Type `yes` to accept it: "
            }
            Self::Edit { wider: false } => "This is what the edit changes. Type `yes` to accept it: ",
        }
    }

    fn unasked(self) -> &'static str {
        match self {
            Self::Commands => {
                "these files let other commands run as you, which needs a `yes` typed on a terminal or the digest of what runs"
            }
            Self::Edit { .. } => {
                "this edit also allows something new: type `yes` on a terminal, or pass `--widen` with its digest"
            }
        }
    }
}

/// Asks for a yes: typed on a terminal, or the digest of exactly this.
///
/// # Errors
/// Exit code 5 without it.
pub(super) fn agreed(cx: &Cx, asked: Asked<'_>) -> Result<(), CommandError> {
    let Asked { to, digest, given, changes, can_answer, remedy } = asked;
    let refused = |message: String| CommandError::new(exit::REFUSED, message);
    if let Some(given) = given {
        if given.trim() == digest {
            return Ok(());
        }
        let what = to.what();
        return Err(refused(format!("`--widen` names another {what}; the digest of this one is {digest}"))
            .hint(remedy));
    }
    if !(can_answer && cx.out.can_ask()) {
        return Err(refused(to.unasked().to_owned()).hint(remedy));
    }
    let texts: Vec<String> = changes.iter().map(|change| change.text()).collect();
    let long: usize = texts.iter().map(|text| text.chars().count()).sum();
    if long > READABLE {
        return Err(refused(format!(
            "what would be accepted is {long} characters long, too long to be read before a `yes`"
        ))
        .hint(remedy));
    }
    for text in texts {
        cx.out.talk(&text);
    }
    let answer = cx.out.ask(to.question())?;
    if answer.as_deref().map(str::trim) == Some("yes") {
        return Ok(());
    }
    Err(refused("nothing was accepted: the answer was not `yes`".to_owned()))
}

#[cfg(test)]
mod tests {
    use peers_store::load;

    use super::*;

    const CONFIG: &str = "peers:\n- {name: a, argv: [one]}\n- {name: b, argv: [two]}\n";
    const GOALS: &str = "goals:\n- {id: t, type: hard, cmd: make test, pass_when: exit_code == 0}\n";

    fn set(config: &str, goals: &str) -> Widening {
        let config = load::load_config(config).unwrap();
        Widening::of(&config, &load::load_goals(goals, 2, &["self-review"]).unwrap())
    }

    #[test]
    fn other_commands_are_wider_and_fewer_are_not() {
        let base = set(CONFIG, GOALS);
        for (config, goals) in [
            (CONFIG.replace("one", "1"), GOALS.to_owned()),
            (CONFIG.replace("argv: [one]", "tool: codex, argv: [one]"), GOALS.to_owned()),
            (CONFIG.replace("name: b", "name: c"), GOALS.to_owned()),
            (CONFIG.replace("argv: [one]", "tool: acp, argv: [one]"), GOALS.to_owned()),
            (CONFIG.to_owned() + "verify: {commands: [{cmd: x}]}\n", GOALS.to_owned()),
            (CONFIG.to_owned() + "hooks: {halt: [{cmd: [x]}]}\n", GOALS.to_owned()),
            (CONFIG.to_owned() + "goals: {env: [CI]}\n", GOALS.to_owned()),
            (CONFIG.to_owned(), GOALS.replace("make test", "make test; x")),
        ] {
            assert!(set(&config, &goals).exceeds(&base), "{config}{goals}");
            assert_ne!(set(&config, &goals).digest(), base.digest(), "{config}{goals}");
        }
        for (config, goals) in [
            (CONFIG.to_owned(), "goals: []\n".to_owned()),
            (CONFIG.to_owned(), GOALS.replace("id: t", "id: u")),
            (CONFIG.to_owned(), GOALS.replace("exit_code == 0", "exit_code == 0 or True")),
            (CONFIG.to_owned() + "max_retries: 3\n", GOALS.to_owned()),
        ] {
            assert!(!set(&config, &goals).exceeds(&base), "{config}{goals}");
        }
    }

    #[test]
    fn the_digest_is_of_what_runs_and_of_nothing_else() {
        let base = set(CONFIG, GOALS).digest();
        assert_eq!(set(&format!("# note\n{CONFIG}max_retries: 3\n"), GOALS).digest(), base);
        assert_eq!(set(CONFIG, &GOALS.replace("exit_code == 0", "exit_code <= 1")).digest(), base);
        // The parts cannot be shifted against each other.
        let one = set(&CONFIG.replace("[one]", "[one, x]"), GOALS);
        assert_ne!(one.digest(), set(&CONFIG.replace("[one]", "[one x]"), GOALS).digest());
    }
}
