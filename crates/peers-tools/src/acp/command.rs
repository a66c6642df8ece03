//! Command line of the bridge to an agent that speaks the Agent Client Protocol.

use peers_model::config::Permissions;

use crate::argv::{check, deliver};
use crate::registry::adapter;
use crate::tool::{
    Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, PromptMode, StatePlace, Tool, ToolKind,
    ToolSpec,
};

/// By this argument our program is asked to be the bridge.
const BRIDGE: &str = "__acp";

/// The adapter for agents that speak the Agent Client Protocol. It adds nothing to argv.
#[derive(Debug, Clone, Copy)]
pub struct Acp;

impl Tool for Acp {
    fn kind(&self) -> ToolKind {
        ToolKind::Acp
    }

    fn plan(&self, spec: &ToolSpec, ask: &Ask) -> Result<CommandPlan, PlanError> {
        let tool = || spec.kind.name().to_owned();
        if spec.prompt_mode != PromptMode::Stdin {
            return Err(PlanError::OnlyStdin { tool: tool() });
        }
        check(spec)?;
        if let Some(model) = &spec.model {
            return Err(PlanError::Unsupported { tool: tool(), field: "model", value: model.clone() });
        }
        let mut plan = deliver(spec, spec.argv.clone(), ask)?;
        let answer = match spec.permissions {
            Permissions::Allow => "allow",
            Permissions::Reject => "reject",
        };
        plan.bridge = Some([BRIDGE, "--permissions", answer, "--"].map(str::to_owned).to_vec());
        plan.warnings.push(PlanWarning::AgentsOwnAccount { tool: tool() });
        Ok(plan)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(super::decode::AcpDecoder::new())
    }

    fn structured(&self, _argv: &[String]) -> bool {
        true
    }

    fn login_env(&self) -> LoginEnv {
        LoginEnv { names: &[], prefixes: &[] }
    }

    /// By the first word of the program's file name: `claude-code-acp` gets what claude gets.
    fn login_env_for(&self, argv: &[String]) -> LoginEnv {
        match behind(argv) {
            kind @ (ToolKind::Claude | ToolKind::Codex | ToolKind::Opencode) => adapter(&kind).login_env(),
            ToolKind::Other(name) if name == "gemini" => {
                LoginEnv { names: &["GOOGLE_API_KEY"], prefixes: &["GEMINI_"] }
            }
            ToolKind::Acp | ToolKind::Other(_) => self.login_env(),
        }
    }

    fn state_for(&self, argv: &[String]) -> &'static [StatePlace] {
        const GEMINI: &[StatePlace] = &[StatePlace::new(".gemini")];
        match behind(argv) {
            kind @ (ToolKind::Claude | ToolKind::Codex | ToolKind::Opencode) => adapter(&kind).state(),
            ToolKind::Other(name) if name == "gemini" => GEMINI,
            ToolKind::Acp | ToolKind::Other(_) => self.state(),
        }
    }

    /// The agent's own configuration chooses it.
    fn model_asked(&self, _spec: &ToolSpec) -> Option<String> {
        None
    }

    fn required_env(&self, _spec: &ToolSpec) -> Vec<String> {
        Vec::new()
    }
}

/// The tool that a program belongs to, by the first word of its file's name.
fn behind(argv: &[String]) -> ToolKind {
    let file = argv.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    ToolKind::from_name(file.split(['-', '_', '.']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ToolSpec {
        ToolSpec {
            kind: ToolKind::Acp,
            argv: vec!["opencode".to_owned(), "acp".to_owned()],
            prompt_mode: PromptMode::Stdin,
            model: None,
            reasoning: None,
            provider: None,
            permissions: Permissions::Allow,
        }
    }

    fn plan(spec: &ToolSpec) -> Result<CommandPlan, PlanError> {
        Acp.plan(spec, &Ask { prompt: "do it".to_owned(), prompt_file: None })
    }

    #[test]
    fn the_bridge_gets_the_prompt_and_the_agents_own_argv_stays_as_it_is() {
        let allowed = plan(&spec()).unwrap();
        assert_eq!((allowed.argv, allowed.stdin.as_deref()), (spec().argv, Some("do it")));
        assert_eq!(allowed.bridge.unwrap(), ["__acp", "--permissions", "allow", "--"]);
        let rejected = plan(&ToolSpec { permissions: Permissions::Reject, ..spec() }).unwrap();
        assert_eq!(rejected.bridge.unwrap(), ["__acp", "--permissions", "reject", "--"]);
    }

    #[test]
    fn what_the_protocol_has_no_place_for_is_an_error() {
        let value = Some("x".to_owned());
        for (wrong, words) in [
            (ToolSpec { prompt_mode: PromptMode::File, ..spec() }, "prompt"),
            (ToolSpec { prompt_mode: PromptMode::ArgvSubstitute, ..spec() }, "prompt"),
            (ToolSpec { model: value.clone(), ..spec() }, "model `x`"),
            (ToolSpec { reasoning: value.clone(), ..spec() }, "reasoning `x`"),
            (ToolSpec { provider: value, ..spec() }, "provider `x`"),
            (ToolSpec { argv: Vec::new(), ..spec() }, "empty"),
        ] {
            let error = plan(&wrong).unwrap_err().to_string();
            assert!(error.contains("`acp`") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_known_program_gets_its_own_login_and_no_other_gets_any() {
        let passes = |program: &str, name: &str| Acp.login_env_for(&[program.to_owned()]).passes(name);
        for (program, name) in [
            ("opencode", "OPENCODE_CONFIG"),
            ("/opt/bin/claude-code-acp", "ANTHROPIC_API_KEY"),
            ("codex-acp", "OPENAI_API_KEY"),
            ("gemini", "GEMINI_API_KEY"),
        ] {
            assert!(passes(program, name), "{program}");
            assert!(!passes("goose", name) && !passes("npx", name), "{name}");
        }
        assert!(!passes("opencode", "ANTHROPIC_API_KEY"));
    }
}
