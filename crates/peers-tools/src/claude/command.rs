//! Command line of Claude Code.

use crate::argv::{asked, check, deliver, has_option, insert, insert_position, option_values};
use crate::lead::{Own, SettingsFile, Wanted, Way, is_safe, members};
use crate::tool::{
    Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, StatePlace, Tool, ToolKind, ToolSpec,
};

/// Variables and settings with which it asks another service than the Messages API, or another way of logging in.
const ELSEWHERE: [&str; 5] = [
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_UNIX_SOCKET",
];
/// Settings that say how it works and name no program, no place and no secret.
const TAKEN: [&str; 7] = [
    "model",
    "effortLevel",
    "alwaysThinkingEnabled",
    "outputStyle",
    "language",
    "includeCoAuthoredBy",
    "attribution",
];

/// The adapter for Claude Code.
#[derive(Debug, Clone, Copy)]
pub struct Claude;

impl Tool for Claude {
    fn kind(&self) -> ToolKind {
        ToolKind::Claude
    }

    fn plan(&self, spec: &ToolSpec, ask: &Ask) -> Result<CommandPlan, PlanError> {
        check(spec)?;
        let mut argv = spec.argv.clone();
        let mut options = Vec::new();
        for (name, value) in [("--model", &spec.model), ("--effort", &spec.reasoning)] {
            if let Some(value) = value.as_ref().filter(|_| !has_option(&argv, &[name])) {
                options.extend([name.to_owned(), value.clone()]);
            }
        }
        let at = insert_position(&argv);
        insert(&mut argv, at, options);
        let structured = self.structured(&argv);
        let streams = option_values(&argv, &["--output-format"]).last() == Some("stream-json");
        let needs_verbose = streams && !argv.iter().any(|arg| arg == "--verbose");
        let mut plan = deliver(spec, argv, ask)?;
        if spec.provider.as_deref() == Some("openrouter") {
            plan.env_add = vec![
                ("ANTHROPIC_BASE_URL".to_owned(), "https://openrouter.ai/api".to_owned()),
                ("ANTHROPIC_API_KEY".to_owned(), String::new()),
            ];
            plan.env_from = vec![("ANTHROPIC_AUTH_TOKEN".to_owned(), "OPENROUTER_API_KEY".to_owned())];
        }
        if !structured {
            plan.warnings.push(PlanWarning::NoStructuredOutput {
                tool: spec.kind.name().to_owned(),
                hint: "--output-format stream-json --verbose",
            });
        }
        if needs_verbose {
            plan.warnings.push(PlanWarning::NeedsVerbose);
        }
        Ok(plan)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(super::decode::ClaudeDecoder::new())
    }

    fn structured(&self, argv: &[String]) -> bool {
        matches!(option_values(argv, &["--output-format"]).last(), Some("json" | "stream-json"))
    }

    fn state(&self) -> &'static [StatePlace] {
        const STATE: &[StatePlace] =
            &[StatePlace::named(".claude", "CLAUDE_CONFIG_DIR"), StatePlace::new(".claude.json")];
        STATE
    }

    fn login_env(&self) -> LoginEnv {
        LoginEnv { names: &["IS_SANDBOX"], prefixes: &["ANTHROPIC_", "CLAUDE_"] }
    }

    fn settings(&self) -> Option<SettingsFile> {
        Some(SettingsFile { name: "settings.json", variable: "CLAUDE_CONFIG_DIR", below: ".claude" })
    }

    fn services(&self, spec: &ToolSpec, own: Own<'_>) -> Vec<Wanted> {
        if spec.provider.as_deref() == Some("openrouter") {
            return vec![Wanted::usual("openrouter")];
        }
        let settings = members(own.settings.unwrap_or_default(), &["apiKeyHelper", "env"]);
        let env = settings.get("env").and_then(serde_json::Value::as_object);
        let leads = |name: &String| {
            let name = name.as_str();
            name.starts_with("ANTHROPIC_") && !name.ends_with("_MODEL")
                || ELSEWHERE.contains(&name)
                || name.ends_with("_PROXY")
        };
        let by_settings =
            settings.get("apiKeyHelper").is_some() || env.is_some_and(|env| env.keys().any(leads));
        if by_settings || ELSEWHERE.iter().any(|name| (own.var)(name).is_some()) {
            return Vec::new();
        }
        let url = (own.var)("ANTHROPIC_BASE_URL");
        if url.as_deref().is_some_and(|url| !is_safe(url)) {
            return Vec::new();
        }
        vec![Wanted { service: "anthropic", url }]
    }

    fn lead(&self, plan: &mut CommandPlan, way: Way<'_>, own: Own<'_>) {
        let Way { service, proxy, bearer, state } = way;
        let below = if service == "openrouter" { "/api" } else { "" };
        plan.env_from.clear();
        plan.env_add = [
            ("ANTHROPIC_BASE_URL", format!("{proxy}/{service}{below}")),
            ("ANTHROPIC_AUTH_TOKEN", bearer.to_owned()),
            ("CLAUDE_CONFIG_DIR", state.to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        plan.redactions.push(bearer.to_owned());
        plan.state = vec![("settings.json", members(own.settings.unwrap_or_default(), &TAKEN).to_string())];
    }

    fn model_asked(&self, spec: &ToolSpec) -> Option<String> {
        asked(spec, &["--model"], None)
    }

    fn required_env(&self, spec: &ToolSpec) -> Vec<String> {
        let openrouter = spec.provider.as_deref() == Some("openrouter");
        openrouter.then(|| "OPENROUTER_API_KEY".to_owned()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use peers_model::config::Permissions;

    use super::*;
    use crate::tool::PromptMode;

    fn spec(argv: &str, prompt_mode: PromptMode) -> ToolSpec {
        ToolSpec {
            kind: ToolKind::Claude,
            argv: argv.split(' ').map(str::to_owned).collect(),
            prompt_mode,
            model: None,
            reasoning: None,
            provider: None,
            permissions: Permissions::default(),
        }
    }

    fn ask() -> Ask {
        Ask { prompt: "do it".to_owned(), prompt_file: Some("/scratch/p.txt".to_owned()) }
    }

    fn services(vars: &[&str], settings: &str) -> Vec<Wanted> {
        let vars: Vec<(String, String)> = vars
            .iter()
            .filter_map(|var| var.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let var = |name: &str| vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        Claude.services(&spec("claude", PromptMode::Stdin), Own { var: &var, settings: Some(settings) })
    }

    #[test]
    fn the_proxy_serves_it_unless_its_settings_lead_elsewhere() {
        assert_eq!(services(&[], "{}"), [Wanted::usual("anthropic")]);
        let own = services(
            &["ANTHROPIC_BASE_URL=https://gate.example/a"],
            r#"{"model": "opus", "env": {"X": "1"}}"#,
        );
        assert_eq!(own[0].url.as_deref(), Some("https://gate.example/a"));
        for (vars, settings) in [
            (&["CLAUDE_CODE_USE_BEDROCK=1"][..], "{}"),
            (&["ANTHROPIC_BASE_URL=http://gate.example"], "{}"),
            (&[], r#"{"apiKeyHelper": "/bin/key"}"#),
            (&[], r#"{"env": {"ANTHROPIC_BASE_URL": "https://gate.example"}}"#),
            (&[], r#"{"env": {"HTTPS_PROXY": "http://127.0.0.1:1"}}"#),
        ] {
            assert_eq!(services(vars, settings), [], "{vars:?} {settings}");
        }
    }

    #[test]
    fn led_to_the_proxy_it_has_a_bearer_a_place_of_its_own_and_the_settings_that_matter() {
        let mut plan = Claude.plan(&spec("claude -p", PromptMode::Stdin), &ask()).expect("plan");
        let way = Way { service: "anthropic", proxy: "http://127.0.0.1:8080", bearer: "b-1", state: "/s" };
        let settings = r#"{"model": "opus", "hooks": {"Stop": []}, "env": {"A_KEY": "k"}}"#;
        Claude.lead(&mut plan, way, Own { var: &|_| None, settings: Some(settings) });
        let value =
            |name: &str| plan.env_add.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!(value("ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:8080/anthropic"));
        assert_eq!((value("ANTHROPIC_AUTH_TOKEN"), value("CLAUDE_CONFIG_DIR")), (Some("b-1"), Some("/s")));
        assert_eq!(plan.state, [("settings.json", r#"{"model":"opus"}"#.to_owned())]);
        assert!(plan.redactions.contains(&"b-1".to_owned()));
        let mut spec = spec("claude -p", PromptMode::Stdin);
        spec.provider = Some("openrouter".to_owned());
        let mut plan = Claude.plan(&spec, &ask()).expect("plan");
        Claude.lead(&mut plan, Way { service: "openrouter", ..way }, Own { var: &|_| None, settings: None });
        assert!(plan.env_from.is_empty() && plan.env_add[0].1.ends_with(":8080/openrouter/api"));
    }

    #[test]
    fn no_semantic_field_leaves_argv_untouched() {
        let argv = "claude -p --output-format stream-json --verbose";
        let plan = Claude.plan(&spec(argv, PromptMode::Stdin), &ask()).expect("plan");
        assert_eq!(plan.argv.join(" "), argv);
        assert_eq!((plan.stdin.as_deref(), plan.spill), (Some("do it"), None));
        assert!(plan.warnings.is_empty() && plan.env_add.is_empty());
    }

    #[test]
    fn structured_output_is_seen_in_both_forms_and_the_last_one_counts() {
        let structured = |argv: &str| Claude.structured(&spec(argv, PromptMode::Stdin).argv);
        assert!(structured("claude -p --output-format json"));
        assert!(structured("claude -p --output-format=stream-json"));
        assert!(!structured("claude -p --output-format json --output-format text"));
        assert!(!structured("claude -p"));
        let plan = Claude.plan(&spec("claude -p", PromptMode::Stdin), &ask()).expect("plan");
        assert!(matches!(plan.warnings[..], [PlanWarning::NoStructuredOutput { .. }]));
    }

    #[test]
    fn stream_json_without_verbose_is_warned_about() {
        let spec = spec("claude -p --output-format stream-json", PromptMode::Stdin);
        assert_eq!(Claude.plan(&spec, &ask()).expect("plan").warnings, [PlanWarning::NeedsVerbose]);
    }

    #[test]
    fn a_placeholder_must_fit_the_prompt_mode() {
        let wrong = [
            ("claude {PROMPT}", PromptMode::Stdin),
            ("claude {PROMPT_FILE}", PromptMode::ArgvSubstitute),
            ("claude", PromptMode::ArgvSubstitute),
            ("claude {PROMPT}", PromptMode::File),
            ("claude", PromptMode::File),
            ("", PromptMode::Stdin),
        ];
        for (argv, mode) in wrong {
            assert!(Claude.plan(&spec(argv, mode), &ask()).is_err(), "{argv:?} {mode:?}");
        }
    }

    #[test]
    fn a_long_prompt_spills_to_the_file_and_argv_gets_a_pointer() {
        let spec = spec("claude -p {PROMPT}", PromptMode::ArgvSubstitute);
        let long = Ask { prompt: "x".repeat(100 * 1024), ..ask() };
        let plan = Claude.plan(&spec, &long).expect("plan");
        assert_eq!(plan.spill.as_ref().map(String::len), Some(100 * 1024));
        let pointer = plan.argv.last().expect("pointer");
        assert!(pointer.len() < 300 && pointer.contains("/scratch/p.txt"), "{pointer}");
        assert!(plan.warnings.contains(&PlanWarning::PromptSpilled { bytes: 100 * 1024 }));
        let nowhere = Ask { prompt_file: None, ..long };
        assert_eq!(Claude.plan(&spec, &nowhere), Err(PlanError::NoPromptFile));
    }

    #[test]
    fn a_short_prompt_in_argv_is_substituted_once_and_warned_about() {
        let mut spec = spec("claude -p {PROMPT}", PromptMode::ArgvSubstitute);
        spec.argv.push("again:{PROMPT}".to_owned());
        let echo = Ask { prompt: "say {PROMPT}".to_owned(), prompt_file: None };
        let plan = Claude.plan(&spec, &echo).expect("plan");
        assert_eq!(plan.argv, ["claude", "-p", "say {PROMPT}", "again:say {PROMPT}"]);
        assert!(plan.warnings.contains(&PlanWarning::PromptInArgv));
    }

    #[test]
    fn the_file_mode_spills_and_names_the_file() {
        let spec = spec("claude -p --append-from {PROMPT_FILE}", PromptMode::File);
        let plan = Claude.plan(&spec, &ask()).expect("plan");
        assert_eq!(plan.argv.last().map(String::as_str), Some("/scratch/p.txt"));
        assert_eq!((plan.spill.as_deref(), plan.stdin), (Some("do it"), None));
    }

    #[test]
    fn the_login_passes_only_its_own_names() {
        let env = Claude.login_env();
        for name in ["ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "IS_SANDBOX"] {
            assert!(env.passes(name), "{name}");
        }
        for name in ["OPENAI_API_KEY", "PATH", "CLAUDE", "XANTHROPIC_X"] {
            assert!(!env.passes(name), "{name}");
        }
    }
}
