//! Command line of a program that no adapter knows.

use crate::argv::{check, deliver};
use crate::tool::{Ask, CommandPlan, Decoder, LoginEnv, PlanError, Tool, ToolKind, ToolSpec};

/// The adapter for everything else. It adds nothing to argv and believes nothing of the output.
#[derive(Debug, Clone, Copy)]
pub struct Generic;

impl Tool for Generic {
    fn kind(&self) -> ToolKind {
        ToolKind::Other(String::new())
    }

    fn plan(&self, spec: &ToolSpec, ask: &Ask) -> Result<CommandPlan, PlanError> {
        check(spec)?;
        if let Some(model) = &spec.model {
            let tool = spec.kind.name().to_owned();
            return Err(PlanError::Unsupported { tool, field: "model", value: model.clone() });
        }
        deliver(spec, spec.argv.clone(), ask)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(super::TextDecoder::new(false))
    }

    fn decoder_for(&self, _argv: &[String]) -> Box<dyn Decoder> {
        self.decoder()
    }

    fn structured(&self, _argv: &[String]) -> bool {
        false
    }

    fn login_env(&self) -> LoginEnv {
        LoginEnv { names: &[], prefixes: &[] }
    }

    fn model_asked(&self, _spec: &ToolSpec) -> Option<String> {
        None
    }

    fn required_env(&self, _spec: &ToolSpec) -> Vec<String> {
        Vec::new()
    }
}
