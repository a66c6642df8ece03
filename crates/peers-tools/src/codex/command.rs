//! Command line of codex. Most settings travel as `-c key=value`, where the value is a TOML scalar.

use crate::argv::{asked, check, deliver, has_option, insert, insert_position, option_values};
use crate::lead::{Own, SettingsFile, Wanted, Way, first_keys, is_safe};
use crate::tool::{
    Ask, CommandPlan, Decoder, LoginEnv, PlanError, PlanWarning, StatePlace, Tool, ToolKind, ToolSpec,
};

const OPENROUTER: &str = "openrouter";
const OPENROUTER_KEY: &str = "OPENROUTER_API_KEY";
const OPENROUTER_URL: &str = "https://openrouter.ai/api/v1";

/// The variable from which it takes what it shows the proxy.
const BEARER: &str = "PEERS_MODEL_BEARER";
/// Settings by which it asks another service than the usual ones.
const ELSEWHERE: [&str; 5] =
    ["model_provider", "profile", "chatgpt_base_url", "openai_base_url", "oss_provider"];
/// Settings that say how it works and name no program, no place and no secret.
const TAKEN: [&str; 5] =
    ["model", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "service_tier"];
/// Reached for nothing that a turn needs.
const QUIET: &str = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n";

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
        let at = place_of_options(&argv);
        insert(&mut argv, at, options(settings));
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

    fn settings(&self) -> Option<SettingsFile> {
        Some(SettingsFile { name: "config.toml", variable: "CODEX_HOME", below: ".codex" })
    }

    fn services(&self, spec: &ToolSpec, own: Own<'_>) -> Vec<Wanted> {
        if routes_to_openrouter(spec) {
            let usual = setting(&spec.argv, "model_providers.openrouter").is_none()
                && ["base_url", "env_key"]
                    .iter()
                    .all(|key| setting(&spec.argv, &format!("model_providers.openrouter.{key}")).is_none());
            return usual.then(|| Wanted::usual(OPENROUTER)).into_iter().collect();
        }
        let by_argv = ELSEWHERE.iter().any(|key| setting(&spec.argv, key).is_some())
            || has_option(&spec.argv, &["-p", "--profile", "--oss", "--local-provider"]);
        if by_argv || !first_keys(own.settings.unwrap_or_default(), &ELSEWHERE).is_empty() {
            return Vec::new();
        }
        let usual = Wanted::usual("openai");
        match (own.var)("OPENAI_BASE_URL") {
            // The proxy puts what is asked for behind it, and that begins with `/v1`.
            Some(url) => match url.trim_end_matches('/').strip_suffix("/v1") {
                Some(url) if is_safe(url) => vec![Wanted { url: Some(url.to_owned()), ..usual }],
                Some(_) | None => Vec::new(),
            },
            // As it does itself.
            None if (own.var)("CODEX_API_KEY").is_some() => vec![usual],
            None => vec![Wanted::usual("chatgpt"), usual],
        }
    }

    fn lead(&self, plan: &mut CommandPlan, way: Way<'_>, own: Own<'_>) {
        let Way { service, proxy, bearer, state } = way;
        let mut key = BEARER;
        if service == OPENROUTER {
            // Named in the plan already.
            let usual = toml_string(OPENROUTER_URL);
            let led = toml_string(&format!("{proxy}/{service}/api/v1"));
            for arg in &mut plan.argv {
                *arg = arg.replace(&usual, &led);
            }
            key = OPENROUTER_KEY;
        } else {
            let below = if service == "chatgpt" { "/backend-api/codex" } else { "/v1" };
            let settings = [
                ("model_provider", "peers"),
                ("model_providers.peers.name", "peers"),
                ("model_providers.peers.base_url", &format!("{proxy}/{service}{below}")),
                ("model_providers.peers.env_key", BEARER),
                ("model_providers.peers.wire_api", "responses"),
            ];
            let at = place_of_options(&plan.argv);
            insert(&mut plan.argv, at, options(settings));
        }
        plan.env_from.clear();
        plan.env_add
            .extend([(key.to_owned(), bearer.to_owned()), ("CODEX_HOME".to_owned(), state.to_owned())]);
        plan.redactions.push(bearer.to_owned());
        let taken = first_keys(own.settings.unwrap_or_default(), &TAKEN);
        let taken: Vec<String> = taken.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        plan.state = vec![("config.toml", taken.concat() + QUIET)];
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

/// Settings as options.
fn options<'s>(settings: impl IntoIterator<Item = (&'s str, &'s str)>) -> Vec<String> {
    let option = |(key, value)| ["-c".to_owned(), format!("{key}={}", toml_string(value))];
    settings.into_iter().flat_map(option).collect()
}

/// Where options of the program itself go.
fn place_of_options(argv: &[String]) -> usize {
    let program = argv.first().map_or("", String::as_str);
    if program.rsplit('/').next() == Some("codex") { 1 } else { insert_position(argv) }
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
        ("model_providers.openrouter.base_url", OPENROUTER_URL),
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

    fn spec(argv: &str, provider: Option<&str>) -> ToolSpec {
        ToolSpec {
            kind: ToolKind::Codex,
            argv: argv.split(' ').map(str::to_owned).collect(),
            prompt_mode: PromptMode::Stdin,
            model: None,
            reasoning: None,
            provider: provider.map(str::to_owned),
            permissions: Permissions::default(),
        }
    }

    fn services(argv: &str, vars: &[(&str, &str)], settings: &str) -> Vec<String> {
        let var =
            |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let found = Codex.services(&spec(argv, None), Own { var: &var, settings: Some(settings) });
        found.into_iter().map(|one| format!("{}{}", one.service, one.url.unwrap_or_default())).collect()
    }

    #[test]
    fn the_proxy_serves_it_unless_its_settings_lead_elsewhere() {
        let argv = "codex exec --json -";
        assert_eq!(
            services(argv, &[], "model = \"gpt-x\"\n[model_providers.x]\nname = \"x\"\n"),
            ["chatgpt", "openai"]
        );
        assert_eq!(services(argv, &[("CODEX_API_KEY", "k")], ""), ["openai"]);
        let url = ("OPENAI_BASE_URL", "https://gate.example/v1");
        assert_eq!(services(argv, &[url], ""), ["openaihttps://gate.example"]);
        let none: [&str; 0] = [];
        for (argv, vars, settings) in [
            (argv, &[][..], "model_provider = \"scripted\"\n"),
            (argv, &[], "profile = 'work'"),
            (argv, &[("OPENAI_BASE_URL", "http://gate.example/v1")], ""),
            (argv, &[("OPENAI_BASE_URL", "https://gate.example/api")], ""),
            ("codex -c model_provider=x exec -", &[], ""),
            ("codex exec --oss -", &[], ""),
        ] {
            assert_eq!(services(argv, vars, settings), none, "{argv} {vars:?} {settings}");
        }
    }

    #[test]
    fn led_to_the_proxy_it_has_a_bearer_a_place_of_its_own_and_the_settings_that_matter() {
        let ask = Ask { prompt: "x".to_owned(), prompt_file: None };
        let way = Way { service: "chatgpt", proxy: "http://127.0.0.1:8080", bearer: "b-1", state: "/s" };
        let led = |argv: &str, provider, service| {
            let mut plan = Codex.plan(&spec(argv, provider), &ask).expect("plan");
            let own = Own { var: &|_| None, settings: Some("model = \"gpt-x\"\nnotify = [\"sh\"]\n") };
            Codex.lead(&mut plan, Way { service, ..way }, own);
            plan
        };
        let plan = led("codex exec --json -", None, "chatgpt");
        let line = plan.argv.join(" ");
        assert!(line.starts_with("codex -c model_provider=\"peers\" "), "{line}");
        assert!(line.contains("base_url=\"http://127.0.0.1:8080/chatgpt/backend-api/codex\""), "{line}");
        assert!(line.ends_with("wire_api=\"responses\" exec --json -"), "{line}");
        assert!(plan.env_add.contains(&(BEARER.to_owned(), "b-1".to_owned())));
        assert!(plan.env_add.contains(&("CODEX_HOME".to_owned(), "/s".to_owned())));
        let (name, text) = &plan.state[0];
        assert_eq!((*name, text.lines().next()), ("config.toml", Some("model = \"gpt-x\"")));
        assert!(!text.contains("notify"), "{text}");
        let line = led("codex exec -", None, "openai").argv.join(" ");
        assert!(line.contains("8080/openai/v1\""), "{line}");
        let plan = led("codex exec -", Some(OPENROUTER), OPENROUTER);
        let line = plan.argv.join(" ");
        assert!(line.contains("8080/openrouter/api/v1\"") && !line.contains(OPENROUTER_URL), "{line}");
        assert!(plan.env_from.is_empty());
        assert!(plan.env_add.contains(&(OPENROUTER_KEY.to_owned(), "b-1".to_owned())));
    }
}
