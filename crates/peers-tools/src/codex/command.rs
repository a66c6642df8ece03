//! Command line of codex. Most settings travel as `-c key=value`, where the value is a TOML scalar.

use crate::argv::{asked, check, deliver, has_option, insert, insert_position, option_values};
use crate::tool::{
    Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, StatePlace, Tool, ToolKind, ToolSpec,
};

const OPENROUTER: &str = "openrouter";
const OPENROUTER_KEY: &str = "OPENROUTER_API_KEY";

/// The adapter for codex.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Tool for Codex {
    fn kind(&self) -> ToolKind {
        ToolKind::Codex
    }

    fn plan(&self, spec: &ToolSpec, ask: &Ask) -> Result<CommandPlan, PlanError> {
        check(spec)?;
        let mut argv = spec.argv.clone();
        let mut settings: Vec<(&str, &str)> = Vec::new();
        let own_model = has_option(&argv, &["-m", "--model"]) || setting(&argv, "model").is_some();
        if let Some(model) = spec.model.as_deref().filter(|_| !own_model) {
            settings.push(("model", model));
        }
        let own_effort = setting(&argv, "model_reasoning_effort").is_some();
        if let Some(effort) = spec.reasoning.as_deref().filter(|_| !own_effort) {
            settings.push(("model_reasoning_effort", effort));
        }
        if routes_to_openrouter(spec) {
            settings.extend(openrouter(&argv));
        }
        let options = settings
            .into_iter()
            .flat_map(|(key, value)| ["-c".to_owned(), format!("{key}={}", toml_string(value))])
            .collect();
        let program = argv.first().map_or("", String::as_str);
        let at = if program.rsplit('/').next() == Some("codex") { 1 } else { insert_position(&argv) };
        insert(&mut argv, at, options);
        let structured = self.structured(&argv);
        let mut plan = deliver(spec, argv, ask)?;
        // Its own login does not hold the key of another provider.
        plan.env_from = self.required_env(spec).into_iter().map(|name| (name.clone(), name)).collect();
        if !structured {
            let tool = spec.kind.name().to_owned();
            plan.warnings.push(PlanWarning::NoStructuredOutput { tool, hint: "--json" });
        }
        Ok(plan)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(super::decode::CodexDecoder::new())
    }

    fn structured(&self, argv: &[String]) -> bool {
        has_option(argv, &["--json"])
    }

    fn state(&self) -> &'static [StatePlace] {
        const STATE: &[StatePlace] = &[StatePlace::named(".codex", "CODEX_HOME")];
        STATE
    }

    fn login_env(&self) -> LoginEnv {
        LoginEnv { names: &[], prefixes: &["OPENAI_", "CODEX_"] }
    }

    fn model_asked(&self, spec: &ToolSpec) -> Option<String> {
        asked(spec, &["-m", "--model"], setting(&spec.argv, "model"))
    }

    fn required_env(&self, spec: &ToolSpec) -> Vec<String> {
        if !routes_to_openrouter(spec) {
            return Vec::new();
        }
        let own = setting(&spec.argv, "model_providers.openrouter.env_key");
        vec![own.unwrap_or_else(|| OPENROUTER_KEY.to_owned())]
    }
}

/// The peer asks for openrouter and its argv does not select another provider.
fn routes_to_openrouter(spec: &ToolSpec) -> bool {
    spec.provider.as_deref() == Some(OPENROUTER)
        && setting(&spec.argv, "model_provider").is_none_or(|own| own == OPENROUTER)
}

fn openrouter(argv: &[String]) -> Vec<(&'static str, &'static str)> {
    let all = [
        ("model_provider", OPENROUTER),
        ("model_providers.openrouter.name", OPENROUTER),
        ("model_providers.openrouter.base_url", "https://openrouter.ai/api/v1"),
        ("model_providers.openrouter.env_key", OPENROUTER_KEY),
    ];
    // A whole table in argv may hold any of the fields; adding to it would override the operator.
    let table = setting(argv, "model_providers.openrouter").is_some();
    all.into_iter()
        .filter(|(key, _)| setting(argv, key).is_none() && !(table && key.starts_with("model_providers.")))
        .collect()
}

/// The last value that argv sets for `key` by `-c` or `--config`, unquoted.
fn setting(argv: &[String], key: &str) -> Option<String> {
    option_values(argv, &["-c", "--config"])
        .filter_map(|text| text.split_once('='))
        .filter(|(name, _)| name.trim() == key)
        .map(|(_, value)| toml_scalar(value.trim()))
        .last()
}

/// A basic TOML string.
fn toml_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.extend(format!("\\u{:04X}", u32::from(c)).chars()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text of a TOML string, or any other scalar as it stands. Only what names and keys need.
fn toml_scalar(text: &str) -> String {
    if let Some(literal) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return literal.to_owned();
    }
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(basic) => basic.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}
