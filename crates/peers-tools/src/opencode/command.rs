//! Command line of opencode.

use crate::argv::{asked, check, deliver, has_option, insert, insert_position, option_values};
use crate::tool::{
    Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, StatePlace, Tool, ToolKind, ToolSpec,
};

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

    fn state(&self) -> &'static [StatePlace] {
        const STATE: &[StatePlace] = &[
            StatePlace::new(".config/opencode"),
            StatePlace::new(".local/share/opencode"),
            StatePlace::new(".local/state/opencode"),
            StatePlace::new(".cache/opencode"),
        ];
        STATE
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
