//! Command line of codex. Most settings travel as `-c key=value`, where the value is a TOML scalar.

use crate::argv::{asked, check, deliver, has_option, insert, insert_position, option_values};
use crate::tool::{Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, Tool, ToolKind, ToolSpec};

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

#[cfg(test)]
mod tests {
    use peers_model::config::Permissions;

    use super::*;
    use crate::tool::PromptMode;

    fn spec(argv: &[&str]) -> ToolSpec {
        ToolSpec {
            kind: ToolKind::Codex,
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            prompt_mode: PromptMode::Stdin,
            model: None,
            reasoning: None,
            provider: None,
            permissions: Permissions::default(),
        }
    }

    fn plan(spec: &ToolSpec) -> Vec<String> {
        Codex.plan(spec, &Ask { prompt: "p".to_owned(), prompt_file: None }).expect("plan").argv
    }

    #[test]
    fn settings_go_directly_after_the_program_when_it_is_codex() {
        let mut spec = spec(&["/usr/bin/codex", "exec", "--json", "-"]);
        spec.model = Some("gpt-5".to_owned());
        spec.reasoning = Some("high".to_owned());
        let want = ["-c", "model=\"gpt-5\"", "-c", "model_reasoning_effort=\"high\"", "exec", "--json", "-"];
        assert_eq!(plan(&spec)[1..], want);
    }

    #[test]
    fn a_wrapper_gets_them_before_the_prompt() {
        let mut spec = spec(&["npx", "codex", "exec", "{PROMPT}", "x"]);
        spec.prompt_mode = PromptMode::ArgvSubstitute;
        spec.model = Some("m".to_owned());
        assert_eq!(plan(&spec), ["npx", "codex", "exec", "-c", "model=\"m\"", "p", "x"]);
    }

    #[test]
    fn an_explicit_model_wins_in_every_form() {
        for own in [&["-m", "x"][..], &["--model=x"], &["-c", "model=\"x\""], &["--config=model = 'x'"]] {
            let argv: Vec<&str> = ["codex"].iter().chain(own).copied().collect();
            let mut spec = spec(&argv);
            spec.model = Some("gpt-5".to_owned());
            assert_eq!(plan(&spec), spec.argv, "{own:?}");
        }
    }

    #[test]
    fn keys_are_compared_whole() {
        let mut spec = spec(&["codex", "-c", "model_reasoning_summary=\"auto\"", "-c", "review_model=\"x\""]);
        spec.model = Some("m".to_owned());
        spec.reasoning = Some("low".to_owned());
        assert_eq!(plan(&spec).len(), spec.argv.len() + 4);
    }

    #[test]
    fn injected_values_are_escaped() {
        let mut spec = spec(&["codex"]);
        spec.model = Some("a\"b\\c\u{1}".to_owned());
        assert_eq!(plan(&spec)[2], "model=\"a\\\"b\\\\c\\u0001\"");
    }

    #[test]
    fn openrouter_adds_only_what_is_absent() {
        let mut spec = spec(&["codex", "-c", "model_providers.openrouter.env_key='MY_KEY'"]);
        spec.provider = Some("openrouter".to_owned());
        let argv = plan(&spec).join(" ");
        assert!(argv.contains("model_provider=\"openrouter\"") && argv.contains("base_url="), "{argv}");
        assert_eq!(argv.matches("env_key").count(), 1, "{argv}");
        assert_eq!(Codex.required_env(&spec), ["MY_KEY"]);
    }

    #[test]
    fn another_provider_in_argv_switches_the_routing_off() {
        let mut spec = spec(&["codex", "--config", "model_provider = \"azure\""]);
        spec.provider = Some("openrouter".to_owned());
        assert_eq!(plan(&spec), spec.argv);
        assert!(Codex.required_env(&spec).is_empty());
    }

    #[test]
    fn an_unsupported_value_is_refused() {
        let mut spec = spec(&["codex"]);
        spec.reasoning = Some("max".to_owned());
        let ask = Ask { prompt: String::new(), prompt_file: None };
        assert!(matches!(Codex.plan(&spec, &ask), Err(PlanError::Unsupported { field: "reasoning", .. })));
    }
}
