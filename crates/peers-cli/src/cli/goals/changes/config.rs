//! The same for `config.yaml`.

use peers_model::config::{
    Budget, BugHunt, Config, GoalSettings, Health, Hook, HookCommand, Hooks, Observability, PeerSpec,
    Permissions, PromptMode, PromptSettings, Role, Setup, SkepticSettings, Verify, VerifyCommand,
};
use peers_sys::term::quoted;
use serde::Serialize;

use super::{Change, Effect, wider_by};

/// Collects the changes of one file.
struct Book<'a>(&'a mut Vec<Change>);

impl Book<'_> {
    fn push(&mut self, effect: Effect, about: &str) {
        self.0.push(Change::new(effect, about));
    }

    /// A key whose value means neither more nor less proof.
    fn value<T: PartialEq + Serialize>(&mut self, key: &str, was: &T, is: &T) {
        if was != is {
            self.push(Effect::Other, &format!("`{key}` is {}, not {}", shown(is), shown(was)));
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
}

/// A value as it stands in the file.
fn shown<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value).unwrap_or_default() {
        serde_json::Value::Null => "none".to_owned(),
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
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
    // In full, here and below, so that a new key does not build until there is a line about it. The older
    // form `tools` was made `peers` by the reader.
    let Config {
        driver,
        comm,
        peers: _,
        tools: _,
        health: _,
        budget: _,
        goals: _,
        bug_hunt: _,
        max_retries,
        recovery_interval,
        verify: _,
        observability: Observability { tee_stream },
        skeptic: _,
        on_peer_unavailable,
        rate_limit_max_wait_s,
        prices,
        prompt: PromptSettings { max_bytes },
        setup: _,
        pipeline_gates,
        hooks: _,
    } = new;
    peers(&old.peers, &new.peers, &mut book);
    verify(&old.verify, &new.verify, &mut book);
    setup(&old.setup, &new.setup, &mut book);
    hooks(&old.hooks, &new.hooks, &mut book);
    goals(&old.goals, &new.goals, &mut book);
    skeptic(&old.skeptic, &new.skeptic, &mut book);
    bug_hunt(&old.bug_hunt, &new.bug_hunt, &mut book);
    health(&old.health, &new.health, &mut book);
    budget(&old.budget, &new.budget, &mut book);
    book.value("driver", &old.driver, driver);
    book.value("comm", &old.comm, comm);
    book.value("max_retries", &old.max_retries, max_retries);
    book.value("recovery_interval", &old.recovery_interval, recovery_interval);
    book.value("on_peer_unavailable", &old.on_peer_unavailable, on_peer_unavailable);
    book.value("rate_limit_max_wait_s", &old.rate_limit_max_wait_s, rate_limit_max_wait_s);
    book.value("prices", &old.prices, prices);
    book.value("observability.tee_stream", &old.observability.tee_stream, tee_stream);
    book.value("prompt.max_bytes", &old.prompt.max_bytes, max_bytes);
    book.value("pipeline_gates", &old.pipeline_gates, pipeline_gates);
}

fn peers(old: &[PeerSpec], new: &[PeerSpec], book: &mut Book<'_>) {
    for peer in new {
        let PeerSpec { name, tool: _, argv, prompt_mode, role, model, reasoning, provider, permissions } =
            peer;
        let before = old.iter().find(|other| other.name == *name);
        if before.is_none_or(|before| before.argv != *argv) {
            let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
            book.0.push(Change::runs(&format!("peer `{name}` runs"), &words.join(" ")));
        }
        let Some(before) = before else {
            added(peer, book);
            continue;
        };
        if before.tool_name() != peer.tool_name() {
            let about = format!(
                "peer `{name}` is run as `{}`, with the login of that tool, not as `{}`",
                peer.tool_name(),
                before.tool_name()
            );
            book.push(Effect::Wider, &about);
        }
        if before.provider != *provider {
            let named =
                |provider: &Option<String>| provider.clone().unwrap_or_else(|| "the default".to_owned());
            let about = format!("peer `{name}` asks {}, not {}", named(provider), named(&before.provider));
            book.push(Effect::Wider, &about);
        }
        if before.permissions.unwrap_or_default() != permissions.unwrap_or_default() {
            book.push(permitted(*permissions), &format!("peer `{name}` is {}", answered(*permissions)));
        }
        book.value(&format!("prompt_mode` of peer `{name}"), &before.prompt_mode, prompt_mode);
        book.value(&format!("role` of peer `{name}"), &before.role, role);
        book.value(&format!("model` of peer `{name}"), &before.model, model);
        book.value(&format!("reasoning` of peer `{name}"), &before.reasoning, reasoning);
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

/// An agent that is allowed what it asks for can do more than one that is not.
fn permitted(permissions: Option<Permissions>) -> Effect {
    match permissions.unwrap_or_default() {
        Permissions::Allow => Effect::Wider,
        Permissions::Reject => Effect::Other,
    }
}

fn answered(permissions: Option<Permissions>) -> &'static str {
    match permissions.unwrap_or_default() {
        Permissions::Allow => "allowed the tools that it asks for",
        Permissions::Reject => "refused the tools that it asks for",
    }
}

/// What a new peer is besides its program.
fn added(peer: &PeerSpec, book: &mut Book<'_>) {
    let PeerSpec { name, tool: _, argv: _, prompt_mode, role, model, reasoning, provider, permissions } =
        peer;
    if peer.tool_name() != name.as_str() {
        let tool = format!("peer `{name}` is run as `{}`, with the login of that tool", peer.tool_name());
        book.push(Effect::Wider, &tool);
    }
    if let Some(provider) = provider {
        book.push(Effect::Wider, &format!("peer `{name}` asks {provider}"));
    }
    if permissions.is_some() {
        book.push(permitted(*permissions), &format!("peer `{name}` is {}", answered(*permissions)));
    }
    book.value(&format!("prompt_mode` of peer `{name}"), &PromptMode::default(), prompt_mode);
    book.value(&format!("role` of peer `{name}"), &Role::default(), role);
    book.value(&format!("model` of peer `{name}"), &None, model);
    book.value(&format!("reasoning` of peer `{name}"), &None, reasoning);
}

fn verify(old: &Verify, new: &Verify, book: &mut Book<'_>) {
    let Verify { timeout_s, commands } = new;
    book.value("verify.timeout_s", &old.timeout_s, timeout_s);
    for command in commands {
        if !old.commands.iter().any(|other| other.cmd == command.cmd) {
            book.0.push(Change::runs("`peers verify` runs", &command.cmd));
        }
    }
    for command in &old.commands {
        if !commands.iter().any(|other| other.cmd == command.cmd) {
            book.0.push(Change::of(Effect::Weaker, "`peers verify` no longer runs", &command.cmd, None));
        }
    }
    let rest = |commands: &[VerifyCommand], others: &[VerifyCommand]| -> Vec<_> {
        let kept = commands.iter().filter(|command| others.iter().any(|other| other.cmd == command.cmd));
        kept.map(|VerifyCommand { name, cmd, timeout_s }| (cmd.clone(), name.clone(), *timeout_s)).collect()
    };
    if rest(&old.commands, commands) != rest(commands, &old.commands) {
        book.push(Effect::Other, "names, time limits or the order of `verify.commands`");
    }
}

fn setup(old: &Setup, new: &Setup, book: &mut Book<'_>) {
    let Setup { commands, paths } = new;
    for command in commands {
        if !old.commands.iter().any(|other| other.cmd == command.cmd) {
            book.0.push(Change::runs("`setup` runs", &command.cmd));
        }
    }
    for command in &old.commands {
        if !commands.iter().any(|other| other.cmd == command.cmd) {
            book.0.push(Change::of(Effect::Other, "`setup` no longer runs", &command.cmd, None));
        }
    }
    let rest = |these: &Setup, those: &Setup| -> Vec<_> {
        let kept =
            these.commands.iter().filter(|one| those.commands.iter().any(|other| other.cmd == one.cmd));
        kept.cloned().collect()
    };
    if rest(old, new) != rest(new, old) {
        book.push(Effect::Other, "time limits or the order of `setup.commands`");
    }
    book.value("setup.paths", &old.paths, paths);
}

fn hooks(old: &Hooks, new: &Hooks, book: &mut Book<'_>) {
    for hook in Hook::ALL {
        let (old, new) = (old.of(hook), new.of(hook));
        let word = hook.word();
        let has = |all: &[HookCommand], one: &HookCommand| all.iter().any(|other| other.cmd == one.cmd);
        let line =
            |command: &HookCommand| command.cmd.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        for command in new.iter().filter(|command| !has(old, command)) {
            book.0.push(Change::runs(&format!("hook `{word}` runs"), &line(command)));
        }
        for command in old.iter().filter(|command| !has(new, command)) {
            let about = format!("hook `{word}` no longer runs");
            book.0.push(Change::of(Effect::Other, &about, &line(command), None));
        }
        let rest = |these: &[HookCommand], those: &[HookCommand]| -> Vec<_> {
            these.iter().filter(|command| has(those, command)).cloned().collect()
        };
        if rest(old, new) != rest(new, old) {
            book.push(Effect::Other, &format!("time limits or the order of `hooks.{word}`"));
        }
    }
}

fn goals(old: &GoalSettings, new: &GoalSettings, book: &mut Book<'_>) {
    let GoalSettings {
        timeout_s,
        convergence_n,
        stuck_halt_after,
        stuck_halt_gates,
        idle_halt_after,
        trial_s,
        soft_consensus_required,
        env,
        parallel,
        strict_tree,
    } = new;
    book.switch(
        (old.strict_tree, *strict_tree),
        "a gate that changes the work tree is red",
        "a gate that changes the work tree is warned of, and no longer red",
    );
    book.switch(
        (old.soft_consensus_required, *soft_consensus_required),
        "reviews are required for `complete`",
        "`complete` no longer asks for reviews",
    );
    if old.env != *env {
        let names = if env.is_empty() { "of no further name".to_owned() } else { env.join(", ") };
        book.push(wider_by(&old.env, env), &format!("gates see the variables {names}"));
    }
    book.value("goals.timeout_s", &old.timeout_s, timeout_s);
    book.value("goals.convergence_n", &old.convergence_n, convergence_n);
    book.value("goals.stuck_halt_after", &old.stuck_halt_after, stuck_halt_after);
    book.value("goals.stuck_halt_gates", &old.stuck_halt_gates, stuck_halt_gates);
    book.value("goals.idle_halt_after", &old.idle_halt_after, idle_halt_after);
    book.value("goals.trial_s", &old.trial_s, trial_s);
    book.value("goals.parallel", &old.parallel, parallel);
}

fn skeptic(old: &SkepticSettings, new: &SkepticSettings, book: &mut Book<'_>) {
    let SkepticSettings { enabled, rounds, max_attempts } = new;
    book.switch(
        (old.enabled, *enabled),
        "a skeptic looks before `complete`",
        "no skeptic looks before `complete` any more",
    );
    if old.rounds != *rounds {
        let effect = if *rounds < old.rounds { Effect::Weaker } else { Effect::Stronger };
        book.push(effect, &format!("`skeptic.rounds` is {rounds}, not {}", old.rounds));
    }
    book.value("skeptic.max_attempts", &old.max_attempts, max_attempts);
}

fn bug_hunt(old: &BugHunt, new: &BugHunt, book: &mut Book<'_>) {
    let BugHunt { test_globs } = new;
    for glob in old.test_globs.iter().filter(|glob| !test_globs.contains(glob)) {
        let about = format!(
            "`bug_hunt.test_globs`: `{glob}` is gone, so what happens to these tests is not measured"
        );
        book.push(Effect::Weaker, &about);
    }
    // More is measured, and more files can reproduce a bug.
    for glob in test_globs.iter().filter(|glob| !old.test_globs.contains(glob)) {
        book.push(Effect::Other, &format!("`bug_hunt.test_globs`: `{glob}` holds tests, too"));
    }
}

fn health(old: &Health, new: &Health, book: &mut Book<'_>) {
    let Health {
        idle_timeout_s,
        absolute_max_runtime_s,
        hang_kill_s,
        buf_cap_bytes,
        error_patterns,
        halt_patterns,
    } = new;
    book.value("health.idle_timeout_s", &old.idle_timeout_s, idle_timeout_s);
    book.value("health.absolute_max_runtime_s", &old.absolute_max_runtime_s, absolute_max_runtime_s);
    book.value("health.hang_kill_s", &old.hang_kill_s, hang_kill_s);
    book.value("health.buf_cap_bytes", &old.buf_cap_bytes, buf_cap_bytes);
    book.value("health.error_patterns", &old.error_patterns, error_patterns);
    book.value("health.halt_patterns", &old.halt_patterns, halt_patterns);
}

fn budget(old: &Budget, new: &Budget, book: &mut Book<'_>) {
    let Budget {
        max_iterations,
        max_runtime_s,
        max_wall_s,
        deadline,
        max_consecutive_failures,
        max_tokens,
        max_usd,
        max_usd_mode,
        max_tokens_since_progress,
        max_usd_since_progress,
        per_peer,
    } = new;
    book.value("budget.max_iterations", &old.max_iterations, max_iterations);
    book.value("budget.max_runtime_s", &old.max_runtime_s, max_runtime_s);
    book.value("budget.max_wall_s", &old.max_wall_s, max_wall_s);
    book.value("budget.deadline", &old.deadline, deadline);
    book.value("budget.max_consecutive_failures", &old.max_consecutive_failures, max_consecutive_failures);
    book.value("budget.max_tokens", &old.max_tokens, max_tokens);
    book.value("budget.max_usd", &old.max_usd, max_usd);
    book.value("budget.max_usd_mode", &old.max_usd_mode, max_usd_mode);
    book.value("budget.max_tokens_since_progress", &old.max_tokens_since_progress, max_tokens_since_progress);
    book.value("budget.max_usd_since_progress", &old.max_usd_since_progress, max_usd_since_progress);
    book.value("budget.per_peer", &old.per_peer, per_peer);
}
