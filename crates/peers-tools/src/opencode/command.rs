//! Command line of opencode.

use crate::argv::{asked, check, deliver, has_option, insert, insert_position, option_values};
use crate::tool::{Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, Tool, ToolKind, ToolSpec};

/// The adapter for opencode.
#[derive(Debug, Clone, Copy)]
pub struct Opencode;

impl Tool for Opencode {
    fn kind(&self) -> ToolKind {
        ToolKind::Opencode
    }

    fn plan(&self, spec: &ToolSpec, ask: &Ask) -> Result<CommandPlan, PlanError> {
        check(spec)?;
        let mut argv = spec.argv.clone();
        let mut options = Vec::new();
        if let Some(model) = spec.model.as_ref().filter(|_| !has_option(&argv, &["-m", "--model"])) {
            options.extend(["-m".to_owned(), model.clone()]);
        }
        if let Some(variant) = spec.reasoning.as_ref().filter(|_| !has_option(&argv, &["--variant"])) {
            options.extend(["--variant".to_owned(), variant.clone()]);
        }
        let at = insert_position(&argv);
        insert(&mut argv, at, options);
        let structured = self.structured(&argv);
        let mut plan = deliver(spec, argv, ask)?;
        if !structured {
            let tool = spec.kind.name().to_owned();
            plan.warnings.push(PlanWarning::NoStructuredOutput { tool, hint: "--format json" });
        }
        Ok(plan)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(super::decode::OpencodeDecoder::new())
    }

    fn structured(&self, argv: &[String]) -> bool {
        option_values(argv, &["--format"]).last() == Some("json")
    }

    fn login_env(&self) -> LoginEnv {
        LoginEnv { names: &[], prefixes: &["OPENCODE_"] }
    }

    fn model_asked(&self, spec: &ToolSpec) -> Option<String> {
        asked(spec, &["-m", "--model"], None)
    }

    fn required_env(&self, _spec: &ToolSpec) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use peers_model::config::Permissions;

    use super::*;
    use crate::tool::PromptMode;

    fn plan(argv: &str, model: Option<&str>, reasoning: Option<&str>, provider: Option<&str>) -> String {
        let spec = ToolSpec {
            kind: ToolKind::Opencode,
            argv: argv.split(' ').map(str::to_owned).collect(),
            prompt_mode: if argv.contains("{PROMPT}") {
                PromptMode::ArgvSubstitute
            } else {
                PromptMode::Stdin
            },
            model: model.map(str::to_owned),
            reasoning: reasoning.map(str::to_owned),
            provider: provider.map(str::to_owned),
            permissions: Permissions::default(),
        };
        match Opencode.plan(&spec, &Ask { prompt: "p".to_owned(), prompt_file: None }) {
            Ok(plan) => plan.argv.join(" "),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn model_and_variant_go_before_the_prompt() {
        let got = plan("opencode run --format json {PROMPT}", Some("a/b"), Some("high"), None);
        assert_eq!(got, "opencode run --format json -m a/b --variant high p");
    }

    #[test]
    fn explicit_switches_win() {
        for argv in ["opencode run -m x", "opencode run --model=x"] {
            assert_eq!(plan(argv, Some("a/b"), None, None), argv);
        }
    }

    #[test]
    fn a_provider_is_refused() {
        assert!(plan("opencode run", None, None, Some("openrouter")).starts_with("error:"));
    }
}
