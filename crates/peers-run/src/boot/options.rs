//! What a start was asked, and what a loop goes by because of it and of the operator's files.

use std::path::{Path, PathBuf};

use peers_core::budget::{Caps, GivenUsd};
use peers_core::machine::{After, LoopConfig};
use peers_model::config::Config;
use peers_model::goal::GateRun;
use peers_model::record::{GateRule, Rules};
use peers_model::{Backend, GoalId, RunId, RunRequest};
use peers_modes::setup::{installed, usual};
use peers_sys::SafeDir;
use peers_sys::env::Env;

use super::load::{Loaded, course_rules, rules};

/// What `peers run` was asked.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The work tree.
    pub target: PathBuf,
    /// What the operator asked for.
    pub request: RunRequest,
    /// A turn that ran outside, to be taken in first ([`super::outside`]).
    pub after: Option<After>,
    /// Nobody watches: without a wall it does not start.
    pub unattended: bool,
    /// How long a `setup` that failed in a clean checkout waits before it is tried once more; absent = 30 s.
    pub setup_pause: Option<std::time::Duration>,
    /// The command line, for the run record.
    pub argv: Vec<String>,
    /// What becomes a child; absent = this program.
    pub stub: Option<PathBuf>,
}

/// What a loop goes by, as the operator's files and the command line have it.
#[must_use]
pub fn configured(loaded: &Loaded, options: &RunOptions, run_id: &RunId, wall: Backend) -> LoopConfig {
    let mut cfg = LoopConfig {
        run_id: run_id.clone(),
        pid: peers_sys::identity::ProcIdentity::known_pid(),
        version: env!("CARGO_PKG_VERSION").into(),
        goals: loaded.goals.clone(),
        rules: Rules {
            course: course_rules(&loaded.course, loaded.quiet_ticks),
            ..rules(&loaded.config, &loaded.goals, &options.request)
        },
        course: loaded.course.clone(),
        checkpoint: options.request.checkpoint,
        digests: loaded.digests.clone(),
        caps: caps(&loaded.config, given(options)),
        after: options.after.clone(),
        max_ticks: options.request.max_ticks,
        stuck_after: 0,
        stuck_gates: Vec::new(),
        idle_after: 0,
        trial_s: 0,
        anyway: options.request.anyway,
        setup_hint: None,
        soft_required: true,
        overlap: false,
        strict_tree: false,
        setup_paths: Vec::new(),
        allow_no_gates: options.request.allow_no_gates,
        comm: loaded.config.comm,
        prompt_max: 0,
        max_wait_s: 0,
        idle_s: 0,
        absolute_s: 0,
        sandbox: wall.name().into(),
        torn: None,
        uncommitted: Vec::new(),
    };
    settings(&mut cfg, &loaded.config);
    cfg
}

/// The settings that a reload may change: those of the configuration, and over them what the command line
/// asked for.
pub(super) fn settings(cfg: &mut LoopConfig, config: &Config) {
    cfg.caps = caps(config, cfg.caps.given_usd);
    cfg.stuck_after = config.goals.stuck_halt_after;
    cfg.stuck_gates = watched(config, &cfg.rules.gates);
    cfg.idle_after = config.goals.idle_halt_after;
    cfg.trial_s = config.goals.trial_s;
    cfg.soft_required = config.goals.soft_consensus_required;
    cfg.strict_tree = config.goals.strict_tree;
    // Beside a peer that can write where gates run, nothing can be measured.
    cfg.overlap = config.pipeline_gates && is_confined(&cfg.sandbox);
    cfg.setup_paths.clone_from(&config.setup.paths);
    cfg.comm = config.comm;
    cfg.prompt_max = usize::try_from(config.prompt.max_bytes.get()).unwrap_or(usize::MAX);
    cfg.max_wait_s = config.rate_limit_max_wait_s.get().into();
    cfg.idle_s = config.health.idle_timeout_s.get().into();
    cfg.absolute_s = config.health.absolute_max_runtime_s.get().into();
}

/// The command that usually sets up a checkout of this project, where `setup` does not have it.
pub(super) fn setup_hint(loaded: &Loaded, work_dir: &Path, env: &Env) -> Option<String> {
    let commands: Vec<&str> = loaded
        .goals
        .iter()
        .filter_map(|goal| match &goal.gate()?.run {
            GateRun::Shell { cmd, .. } => Some(cmd.as_str()),
            GateRun::Check { .. } => None,
        })
        .collect();
    let line = usual(&SafeDir::open_shared(work_dir).ok()?, &commands, &installed(env))?;
    (!loaded.config.setup.commands.iter().any(|command| command.cmd.contains(&line))).then_some(line)
}

/// The gates that stop a run in which they stay red: those that the operator names, else those of his own with the
/// usual names.
fn watched(config: &Config, gates: &[GateRule]) -> Vec<GoalId> {
    if let Some(named) = &config.goals.stuck_halt_gates {
        return named.clone();
    }
    let own = gates.iter().filter(|gate| !gate.shipped).map(|gate| gate.id.clone());
    own.filter(|id| USUALLY_WATCHED.contains(&id.as_str())).collect()
}

/// What tests are usually called.
const USUALLY_WATCHED: [&str; 2] = ["tests-pass", "no-prior-regression"];

/// Whether agents cannot write in the trees of ours that gates read.
fn is_confined(backend: &str) -> bool {
    Backend::named(backend).is_some_and(|backend| backend != Backend::None)
}

/// The money cap of the command line.
fn given(options: &RunOptions) -> Option<GivenUsd> {
    let RunRequest { max_usd, max_usd_since, .. } = options.request;
    let at = || max_usd_since.unwrap_or_else(peers_sys::clock::now);
    max_usd.map(|usd| GivenUsd { usd, at: at() })
}

fn caps(config: &Config, given: Option<GivenUsd>) -> Caps {
    Caps::new(config.budget.clone()).given(given)
}

#[cfg(test)]
mod tests {
    use peers_model::Usd;
    use peers_model::goal::Course;

    use super::*;

    fn config(budget: &str) -> Config {
        let peers = "peers:\n- {name: ann, argv: [a]}\n- {name: bob, argv: [b]}\n";
        peers_store::load::load_config(&format!("{peers}budget: {{{budget}}}\n")).unwrap()
    }

    #[test]
    fn a_cap_of_the_command_line_stands_over_every_configuration_that_comes() {
        let asked = Usd::from_f64(3.0);
        let request = RunRequest { max_usd: asked, ..RunRequest::default() };
        let options = RunOptions { request, ..RunOptions::default() };
        for budget in ["", "max_usd: 9.0"] {
            let caps = caps(&config(budget), given(&options));
            assert_eq!(caps.budget.max_usd.map(|usd| usd.0), asked, "{budget}");
        }
    }

    #[test]
    fn a_cap_that_is_taken_out_of_the_configuration_is_gone() {
        assert!(caps(&config("max_usd: 9.0"), None).budget.max_usd.is_some());
        assert!(caps(&config(""), None).budget.max_usd.is_none());
    }

    /// All that a configuration decides of a loop, as text.
    fn decided(rest: &str) -> String {
        let peers = "peers:\n- {name: ann, argv: [a]}\n- {name: bob, argv: [b]}\n";
        let config = peers_store::load::load_config(&format!("{peers}{rest}\n"));
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        let digests = peers_model::record::Digests::default();
        let loaded = Loaded {
            config,
            goals: Vec::new(),
            course: Course::default(),
            quiet_ticks: 5,
            digests,
            accepted: None,
            damaged: None,
        };
        let run = RunId::new("0123456789abcdef").unwrap();
        format!("{:?}", configured(&loaded, &RunOptions::default(), &run, Backend::None))
    }

    #[test]
    fn a_key_of_the_configuration_that_is_changed_changes_the_loop() {
        let before = decided("");
        for (rest, shows) in [
            ("comm: hybrid", "comm: Hybrid"),
            ("max_retries: 4", "max_retries: 4"),
            ("recovery_interval: 5", "recovery_interval: 5"),
            ("on_peer_unavailable: continue", "continue_without_peer: true"),
            ("skeptic: {enabled: false}", "skeptic_rounds: 0"),
            ("skeptic: {rounds: 2}", "skeptic_rounds: 2"),
            ("skeptic: {max_attempts: 9}", "skeptic_attempts: 9"),
            ("prompt: {max_bytes: 7000}", "prompt_max: 7000"),
            ("goals: {stuck_halt_after: 7}", "stuck_after: 7"),
            ("goals: {stuck_halt_gates: [mine]}", "stuck_gates: [GoalId(\"mine\")]"),
            ("goals: {soft_consensus_required: false}", "soft_required: false"),
            ("rate_limit_max_wait_s: 60", "max_wait_s: 60"),
            ("budget: {max_tokens_since_progress: 7}", "max_tokens_since_progress: Some(7)"),
            ("health: {idle_timeout_s: 61}", "idle_s: 61"),
            ("health: {absolute_max_runtime_s: 62}", "absolute_s: 62"),
            ("budget: {max_iterations: null}", "max_iterations: None"),
            ("budget: {max_runtime_s: 63}", "max_runtime_s: Some(63)"),
            ("budget: {max_wall_s: 64}", "max_wall_s: Some(64)"),
            ("budget: {deadline: 2026-03-04T18:00:00+01:00}", "deadline: Some(Timestamp(1772643600000))"),
            ("budget: {max_consecutive_failures: 6}", "max_consecutive_failures: Some(6)"),
            ("budget: {max_tokens: 65}", "max_tokens: Some(65)"),
            ("budget: {max_usd: 1.5}", "max_usd: Some(PositiveUsd(Usd(1500000)))"),
            ("budget: {max_usd_mode: Warn}", "usd_mode: Warn"),
            (
                "budget: {per_peer: {ann: {max_tokens: 9}}}",
                "per_peer: {PeerName(\"ann\"): PeerBudget { max_tokens: Some(9)",
            ),
        ] {
            let after = decided(rest);
            assert!(!before.contains(shows) && after.contains(shows), "{rest}: {after}");
        }
    }
}
