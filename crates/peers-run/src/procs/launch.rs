//! From what the configuration says of a peer to a child that can be started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::rc::Rc;

use peers_core::machine::RunPeer;
use peers_model::TickNo;
use peers_model::config::{PeerSpec, Price};
use peers_model::outcome::ErrorKind;
use peers_sys::FileError;
use peers_sys::redact::Rules;
use peers_sys::spawn::{Spawn, SpawnError, Stdin, resolve_program};
use peers_sys::term;
use peers_tools::{Ask, CommandPlan, PlanError, PlanWarning, Tool, ToolKind, adapter};
use thiserror::Error;

use super::{Book, Site};
use crate::env::{self, PeerIdentity, Turn};
use crate::outlets::{Lost, Outlet};
use crate::tool_spec::tool_spec;

/// A peer that can be started.
pub(super) struct Launch {
    pub(super) spawn: Spawn,
    /// What to write to its standard input.
    pub(super) stdin: Option<String>,
    pub(super) tool: &'static dyn Tool,
    pub(super) argv: Vec<String>,
    /// The model that its command line asks for.
    pub(super) asked: Option<String>,
    /// The directory in which its tool keeps its sessions, where that is not the operator's.
    pub(super) state: Option<PathBuf>,
    /// What must not reach a log.
    pub(super) rules: Rules,
    /// Gone when this is dropped.
    pub(super) _prompt: Option<PromptFile>,
}

/// Why a peer cannot be started.
#[derive(Debug, Error)]
pub(super) enum LaunchError {
    /// The configuration does not name it.
    #[error("no peer `{0}` is configured")]
    Unknown(String),
    /// Its command makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Its program is not there, or cannot be run.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// The sandbox has no ways out any more.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A file of ours could not be written, which is not the peer's fault.
    #[error("prepare the start of a peer")]
    Scratch(#[from] FileError),
}

impl LaunchError {
    /// What kind of failure of ours it is; `None` where the peer itself cannot be started.
    pub(super) fn ours(&self) -> Option<ErrorKind> {
        match self {
            Self::Scratch(error) if error.is_disk_full() => Some(ErrorKind::DiskFull),
            Self::Scratch(_) => Some(ErrorKind::Io),
            Self::Lost(_) => Some(ErrorKind::Sandbox),
            Self::Unknown(_) | Self::Plan(_) | Self::Program(_) => None,
        }
    }

    /// The exit code that a shell would give for it.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Unknown(_) | Self::Plan(_) | Self::Scratch(_) | Self::Lost(_) => 126,
        }
    }
}

/// The prompt in a private file.
pub(super) struct PromptFile {
    site: Rc<Site>,
    name: String,
}

impl Drop for PromptFile {
    fn drop(&mut self) {
        // A file that stays lies in a private directory that is emptied at the next start.
        let _removed = self.site.spec.scratch.remove_file(&self.name);
    }
}

/// What its command line tells of a peer before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Its tokens will be known, and what its service says of limits.
    pub tokens: bool,
    /// What it cost will be known.
    pub money: bool,
    /// Both as far as the agent tells them.
    pub vague: bool,
    /// The switch without which neither is.
    pub missing: Option<&'static str>,
    /// What to do where a part stays unknown, and no switch is missing.
    pub remedy: Option<String>,
    /// Other doubts about the command, one sentence each.
    pub doubts: Vec<String>,
}

/// Looks at the command line of a peer. Nothing is started, and the prompt does not matter. `prices`: what
/// the operator says that models cost.
#[must_use]
pub fn outlook(peer: &PeerSpec, prices: &BTreeMap<String, Price>) -> Outlook {
    let spec = tool_spec(peer);
    let tool = adapter(&spec.kind);
    let tokens = tool.structured(&spec.argv);
    // Codex counts tokens and names no price; the table has one for the model that it is asked for, or not.
    let asked = tool.model_asked(&spec);
    let has_price = || asked.as_deref().is_some_and(|model| super::prices(prices).find(model).is_some());
    let money = tokens && (spec.kind != ToolKind::Codex || has_price());
    let mut outlook = Outlook { tokens, money, ..Outlook::default() };
    // A command that cannot be planned is an error of the configuration, which others report.
    let plan = tool.plan(&spec, &Ask { prompt: String::new(), prompt_file: Some(String::new()) });
    for warning in plan.map(|plan| plan.warnings).unwrap_or_default() {
        match warning {
            PlanWarning::NoStructuredOutput { hint, .. } => outlook.missing = Some(hint),
            PlanWarning::AgentsOwnAccount { .. } => {
                outlook.vague = true;
                outlook.doubts.push(warning.to_string());
            }
            PlanWarning::PromptInArgv | PlanWarning::PromptSpilled { .. } | PlanWarning::NeedsVerbose => {
                outlook.doubts.push(warning.to_string());
            }
        }
    }
    outlook.remedy = match outlook.missing {
        Some(_) => None,
        None if !tokens => Some(ALWAYS_HOLDS.to_owned()),
        None => (!money).then(|| priced(asked.as_deref())),
    };
    outlook
}

/// What to cap where a peer tells nothing, or what it likes.
pub const ALWAYS_HOLDS: &str = "cap what always holds: `max_iterations`, `max_runtime_s`, `deadline`";

/// Cells of a model's name that are shown.
const NAME: usize = 80;

/// How the tokens of a tool get a price that names neither a price nor a model.
fn priced(asked: Option<&str>) -> String {
    let model = asked.map(|model| term::line(model, NAME));
    match model {
        None => "set its `model: NAME` in `.peers/config.yaml` (`peers goals edit --config`): tokens are priced by the model that is asked for, and none is".to_owned(),
        Some(model) => format!(
            "write what the model `{model}` costs under `prices` in `.peers/config.yaml` (`peers goals edit --config`): the built-in table does not have it"
        ),
    }
}

/// The environment variables of the operator's without which a peer cannot work.
#[must_use]
pub fn required_env(peer: &PeerSpec) -> Vec<String> {
    let spec = tool_spec(peer);
    adapter(&spec.kind).required_env(&spec)
}

pub(super) fn launch(site: &Rc<Site>, book: &Book, ask: &RunPeer) -> Result<Launch, LaunchError> {
    let peer = book.config.peers.iter().find(|p| p.name == ask.peer);
    let Some(peer) = peer else { return Err(LaunchError::Unknown(ask.peer.to_string())) };
    let scratch = &site.spec.scratch;
    let spec = tool_spec(peer);
    let tool = adapter(&spec.kind);
    let name = format!("prompt-{}-{}-{}.txt", site.spec.run_id, ask.tick, peer.name);
    let place = scratch.path().join(&name).into_os_string().into_string().ok();
    site.spec.outlets.see_to()?;
    let plan = tool.plan(&spec, &Ask { prompt: ask.prompt.clone(), prompt_file: place })?;
    let plan = led(site, peer, plan)?;
    for warning in &plan.warnings {
        tracing::debug!(peer = %peer.name, %warning, "command of a peer");
    }
    let prompt = match &plan.spill {
        None => None,
        Some(text) => {
            let file = PromptFile { site: Rc::clone(site), name: name.clone() };
            scratch.publish_unsynced(&name, text.as_bytes())?;
            Some(file)
        }
    };
    let file = prompt.as_ref().map(|file| scratch.path().join(&file.name));
    let spawn = spawn(site, (peer, file), ask.tick, &plan)?;
    let rules = rules(site, &plan);
    let asked = tool.model_asked(&spec);
    let CommandPlan { argv, stdin, .. } = plan;
    let outlet = site.spec.outlets.of(&peer.name);
    let state = outlet.and_then(|outlet| outlet.led).map(|led| led.state);
    Ok(Launch { spawn, stdin, tool, argv, asked, state, rules, _prompt: prompt })
}

/// The plan as it is behind the wall: where a proxy has the login, the tool is led to it.
pub(super) fn led(site: &Site, peer: &PeerSpec, mut plan: CommandPlan) -> Result<CommandPlan, FileError> {
    if let Some(led) = site.spec.outlets.of(&peer.name).and_then(|outlet| outlet.led) {
        led.lead(adapter(&tool_spec(peer).kind), &mut plan)?;
    }
    Ok(plan)
}

/// The program of a plan, in the environment of its peer.
pub(super) fn spawn(
    site: &Site,
    (peer, prompt): (&PeerSpec, Option<PathBuf>),
    tick: TickNo,
    plan: &CommandPlan,
) -> Result<Spawn, LaunchError> {
    let scratch = &site.spec.scratch;
    let tool = adapter(&tool_spec(peer).kind);
    let config = format!("gitconfig-{}", peer.name);
    scratch.publish_unsynced(&config, &env::peer_git_config(&peer.name, &site.spec.repo))?;
    let turn = Turn { run: &site.spec.run_id, tick, git_config: &scratch.path().join(config) };
    let outlet = site.spec.outlets.of(&peer.name);
    let who = PeerIdentity {
        name: &peer.name,
        project: &site.spec.project,
        login: tool.login_env_for(&peer.argv),
        led: outlet.as_ref().is_some_and(|outlet| outlet.led.is_some()),
    };
    let mut vars = env::of_peer(&site.host, &site.spec.chosen, turn, who, plan);
    let through = outlet.is_some_and(|outlet| outlet.sockets.is_some());
    if through {
        vars.extend(Outlet::vars().into_iter().map(|(name, value)| (name.into(), value.into())));
    }
    let empty = || PlanError::EmptyArgv { tool: peer.tool_name().to_owned() };
    let (program, args) = plan.argv.split_first().ok_or_else(empty)?;
    let repo = PathBuf::from(&site.spec.repo);
    if through || plan.bridge.is_some() {
        // Without this only the relay or the bridge would know that there is nothing to start.
        let path = vars.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        if !site.has_image() {
            resolve_program(OsStr::new(program), path, &repo)?;
        }
    }
    let mut spawn = if let Some(bridge) = &plan.bridge {
        let mut spawn = Spawn::new(site.spec.stub.clone(), &site.spec.program, repo);
        spawn.args = bridge.iter().chain(&plan.argv).map(Into::into).collect();
        spawn
    } else {
        let mut spawn = Spawn::new(site.spec.stub.clone(), program, repo);
        spawn.args = args.iter().map(Into::into).collect();
        spawn
    };
    spawn.env = vars;
    spawn.stdin = if plan.stdin.is_some() { Stdin::Piped } else { Stdin::Null };
    Ok(site.confine_peer(spawn, peer, prompt)?)
}

fn rules(site: &Site, plan: &CommandPlan) -> Rules {
    let copied = plan.env_from.iter().filter_map(|(_, source)| site.host.operator(source)?.to_str());
    let more: Vec<&str> = plan.redactions.iter().map(String::as_str).chain(copied).collect();
    if more.is_empty() {
        return site.rules.clone();
    }
    Rules::new(site.secrets.iter().map(String::as_str).chain(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tool: &str, argv: &str) -> Outlook {
        let yaml = format!(
            "peers:\n- {{name: ann, tool: {tool}, argv: [{argv}]}}\n- {{name: ben, tool: plain, argv: [x]}}\n"
        );
        let config = peers_store::load::load_config(&yaml).unwrap();
        outlook(&config.peers[0], &config.prices)
    }

    #[test]
    fn a_tool_that_is_not_asked_for_structured_output_tells_nothing_and_the_switch_is_named() {
        for (tool, argv) in [("claude", "claude, -p"), ("codex", "codex, exec, '-'"), ("opencode", "x, run")]
        {
            let found = of(tool, argv);
            assert!(!found.tokens && !found.money && found.missing.is_some(), "{tool}: {found:?}");
        }
        let found = of("claude", "claude, -p, --output-format, stream-json");
        assert!(found.tokens && found.money && found.missing.is_none());
        assert!(found.doubts.iter().any(|doubt| doubt.contains("--verbose")), "{found:?}");
    }

    #[test]
    fn codex_tells_tokens_and_no_money_and_an_unknown_tool_neither() {
        let codex = of("codex", "codex, exec, --json, '-'");
        assert_eq!((codex.tokens, codex.money, codex.missing), (true, false, None));
        assert!(codex.remedy.unwrap().starts_with("set its `model: NAME` in `.peers/config.yaml` "));
        let odd = of("codex", "codex, exec, --json, -m, \"own\\emodel\", '-'");
        let remedy = odd.remedy.filter(|_| !odd.money).unwrap();
        assert!(remedy.starts_with("write what the model `own") && !remedy.contains('\u{1b}'), "{remedy}");
        assert!(
            of("codex", "codex, exec, --json, -m, gpt-5, '-'").money,
            "the table knows what that model costs"
        );
        assert_eq!(of("codex", "codex, exec, --json, -m, gpt-5, '-'").remedy, None);
        assert_eq!(of("codex", "codex, exec").remedy, None, "a switch is missing");
        let acp = of("acp", "opencode, acp");
        assert_eq!((acp.tokens, acp.money, acp.vague, acp.doubts.len()), (true, true, true, 1));
        let other = of("plain", "agent, --json");
        assert_eq!(other, Outlook { remedy: Some(ALWAYS_HOLDS.to_owned()), ..Outlook::default() });
    }
}
