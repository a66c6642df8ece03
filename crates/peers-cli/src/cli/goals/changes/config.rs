//! The same for `config.yaml`.

use peers_model::PeerName;
use peers_model::config::{Config, Hook, Hooks, PeerSpec, Permissions, PromptMode, Role};
use peers_model::keys::{self, Shape, Table};
use peers_sys::term::quoted;
use serde::Serialize;
use serde_json::Value;

use super::{Change, Effect, wider_by};

/// Keys of which more can be said than their two values.
const IN_WORDS: [&str; 11] = [
    "peers",
    "tools",
    "verify.commands",
    "setup.commands",
    "hooks",
    "goals.env",
    "goals.strict_tree",
    "goals.soft_consensus_required",
    "skeptic.enabled",
    "skeptic.rounds",
    "bug_hunt.test_globs",
];

/// The same of a peer.
const OF_A_PEER: [&str; 5] = ["name", "tool", "argv", "provider", "permissions"];

/// Collects the changes of one file.
struct Book<'a>(&'a mut Vec<Change>);

impl Book<'_> {
    fn push(&mut self, effect: Effect, about: &str) {
        self.0.push(Change::new(effect, about));
    }

    /// Keys whose value means neither more nor less proof, by their declaration, but for those that are told
    /// `in_words`. `of` stands behind their names.
    fn values(
        &mut self,
        table: &'static Table,
        path: &str,
        (was, is): (&Value, &Value),
        (in_words, of): (&[&str], &str),
    ) {
        for key in table.keys {
            let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
            if in_words.contains(&path.as_str()) {
                continue;
            }
            let inner = |value: &Value| value.get(key.name).cloned().unwrap_or_default();
            let (was, is) = (inner(was), inner(is));
            if let Shape::Table(table) = &key.shape {
                self.values(table, &path, (&was, &is), (in_words, of));
            } else if was != is {
                self.push(Effect::Other, &format!("`{path}`{of} is {}, not {}", shown(&is), shown(&was)));
            }
        }
    }

    /// A switch that means more proof when it is on.
    fn switch(&mut self, (was, is): (bool, bool), on: &str, off: &str) {
        match (was, is) {
            (false, true) => self.push(Effect::Stronger, on),
            (true, false) => self.push(Effect::Weaker, off),
            (false, false) | (true, true) => {}
        }
    }

    /// Commands that `who` runs, each known by its `line`. `gone` is what it means that one is no longer there.
    fn commands<T: PartialEq>(
        &mut self,
        (who, rest, gone): (&str, &str, Effect),
        (old, new): (&[T], &[T]),
        line: &dyn Fn(&T) -> String,
    ) {
        let has = |all: &[T], one: &T| all.iter().any(|other| line(other) == line(one));
        for command in new.iter().filter(|command| !has(old, command)) {
            self.0.push(Change::runs(&format!("{who} runs"), &line(command)));
        }
        for command in old.iter().filter(|command| !has(new, command)) {
            self.0.push(Change::of(gone, &format!("{who} no longer runs"), &line(command), None));
        }
        let was: Vec<_> = old.iter().filter(|command| has(new, command)).collect();
        let is: Vec<_> = new.iter().filter(|command| has(old, command)).collect();
        if was != is {
            self.push(Effect::Other, rest);
        }
    }
}

/// A value as it stands in the file.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The same without anything that runs.
pub(super) fn idle(config: &Config) -> Config {
    let mut idle = config.clone();
    idle.peers.clear();
    idle.verify.commands.clear();
    idle.setup.commands.clear();
    idle.hooks = Hooks::default();
    idle.goals.env.clear();
    idle
}

pub(super) fn compare(old: &Config, new: &Config, changes: &mut Vec<Change>) {
    let mut book = Book(changes);
    peers(&old.peers, &new.peers, &mut book);
    book.commands(
        ("`peers verify`", "names, time limits or the order of `verify.commands`", Effect::Weaker),
        (&old.verify.commands, &new.verify.commands),
        &|command| command.cmd.clone(),
    );
    book.commands(
        ("`setup`", "time limits or the order of `setup.commands`", Effect::Other),
        (&old.setup.commands, &new.setup.commands),
        &|command| command.cmd.clone(),
    );
    for hook in Hook::ALL {
        let word = hook.word();
        let rest = format!("time limits or the order of `hooks.{word}`");
        book.commands(
            (&format!("hook `{word}`"), &rest, Effect::Other),
            (old.hooks.of(hook), new.hooks.of(hook)),
            &|command| spelled(&command.cmd),
        );
    }
    proof(old, new, &mut book);
    book.values(keys::of::<Config>(), "", (&json(old), &json(new)), (&IN_WORDS, ""));
}

/// The words of a command line.
fn spelled(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// What is proved, and what gates see.
fn proof(old: &Config, new: &Config, book: &mut Book<'_>) {
    book.switch(
        (old.goals.strict_tree, new.goals.strict_tree),
        "a gate that changes the work tree is red",
        "a gate that changes the work tree is warned of, and no longer red",
    );
    book.switch(
        (old.goals.soft_consensus_required, new.goals.soft_consensus_required),
        "reviews are required for `complete`",
        "`complete` no longer asks for reviews",
    );
    let env = &new.goals.env;
    if old.goals.env != *env {
        let names = if env.is_empty() { "of no further name".to_owned() } else { env.join(", ") };
        book.push(wider_by(&old.goals.env, env), &format!("gates see the variables {names}"));
    }
    book.switch(
        (old.skeptic.enabled, new.skeptic.enabled),
        "a skeptic looks before `complete`",
        "no skeptic looks before `complete` any more",
    );
    let (was, is) = (old.skeptic.rounds, new.skeptic.rounds);
    if was != is {
        let effect = if is < was { Effect::Weaker } else { Effect::Stronger };
        book.push(effect, &format!("`skeptic.rounds` is {is}, not {was}"));
    }
    let (was, is) = (&old.bug_hunt.test_globs, &new.bug_hunt.test_globs);
    for glob in was.iter().filter(|glob| !is.contains(glob)) {
        let about = format!(
            "`bug_hunt.test_globs`: `{glob}` is gone, so what happens to these tests is not measured"
        );
        book.push(Effect::Weaker, &about);
    }
    // More is measured, and more files can reproduce a bug.
    for glob in is.iter().filter(|glob| !was.contains(glob)) {
        book.push(Effect::Other, &format!("`bug_hunt.test_globs`: `{glob}` holds tests, too"));
    }
}

fn peers(old: &[PeerSpec], new: &[PeerSpec], book: &mut Book<'_>) {
    for peer in new {
        let name = &peer.name;
        let before = old.iter().find(|other| other.name == *name);
        if before.is_none_or(|before| before.argv != peer.argv) {
            book.0.push(Change::runs(&format!("peer `{name}` runs"), &spelled(&peer.argv)));
        }
        let nobody = nobody(name);
        let was = before.unwrap_or(&nobody);
        // What a new peer is not is not said of it.
        let not = |what: &str| if before.is_some() { format!(", not {what}") } else { String::new() };
        if was.tool_name() != peer.tool_name() {
            let as_what = not(&format!("as `{}`", was.tool_name()));
            let tool = peer.tool_name();
            let about = format!("peer `{name}` is run as `{tool}`, with the login of that tool{as_what}");
            book.push(Effect::Wider, &about);
        }
        if was.provider != peer.provider {
            let named = |peer: &PeerSpec| peer.provider.clone().unwrap_or_else(|| "the default".to_owned());
            book.push(Effect::Wider, &format!("peer `{name}` asks {}{}", named(peer), not(&named(was))));
        }
        let answer = |peer: &PeerSpec| peer.permissions.unwrap_or_default();
        if answer(was) != answer(peer) || (before.is_none() && peer.permissions.is_some()) {
            // An agent that is allowed what it asks for can do more than one that is not.
            let (effect, answered) = match answer(peer) {
                Permissions::Allow => (Effect::Wider, "allowed"),
                Permissions::Reject => (Effect::Other, "refused"),
            };
            book.push(effect, &format!("peer `{name}` is {answered} the tools that it asks for"));
        }
        let of = format!(" of peer `{name}`");
        book.values(keys::of::<PeerSpec>(), "", (&json(was), &json(peer)), (&OF_A_PEER, &of));
    }
    for peer in old.iter().filter(|peer| !new.iter().any(|other| other.name == peer.name)) {
        book.push(Effect::Other, &format!("peer `{}` is gone", peer.name));
    }
    let both = |these: &[PeerSpec], those: &[PeerSpec]| -> Vec<String> {
        let in_those = |peer: &&PeerSpec| those.iter().any(|other| other.name == peer.name);
        these.iter().filter(in_those).map(|peer| peer.name.to_string()).collect()
    };
    if both(old, new) != both(new, old) {
        book.push(Effect::Other, "the peers take their turns in another order");
    }
}

/// A peer of which nothing is said.
fn nobody(name: &PeerName) -> PeerSpec {
    PeerSpec {
        name: name.clone(),
        tool: None,
        argv: Vec::new(),
        prompt_mode: PromptMode::default(),
        role: Role::default(),
        model: None,
        reasoning: None,
        provider: None,
        permissions: None,
    }
}
