//! The static table of adapters.

use crate::acp::Acp;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::generic::Generic;
use crate::opencode::Opencode;
use crate::tool::{Tool, ToolKind};

/// The adapter that serves `kind`.
#[must_use]
pub fn adapter(kind: &ToolKind) -> &'static dyn Tool {
    match kind {
        ToolKind::Claude => &Claude,
        ToolKind::Codex => &Codex,
        ToolKind::Opencode => &Opencode,
        ToolKind::Acp => &Acp,
        ToolKind::Other(_) => &Generic,
    }
}

#[cfg(test)]
mod tests {
    use peers_model::config::Permissions;

    use super::*;
    use crate::tool::{Ask, CommandPlan, PlanError, PromptMode, ToolSpec};

    #[test]
    fn each_kind_finds_its_adapter() {
        for name in ["claude", "codex", "opencode", "acp"] {
            let kind = ToolKind::from_name(name);
            assert_eq!(adapter(&kind).kind(), kind);
        }
        assert_eq!(adapter(&ToolKind::from_name("aider")).kind(), ToolKind::Other(String::new()));
    }

    /// What is written for the first tool that `argv` names, with its model, reasoning and provider.
    fn spec(argv: &str, fields: [&str; 3]) -> ToolSpec {
        let words: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        let base = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
        let kinds = words.iter().map(|word| ToolKind::from_name(&base(word)));
        let known = kinds.into_iter().find(|kind| !matches!(kind, ToolKind::Other(_)));
        let [model, reasoning, provider] = fields.map(|text| (!text.is_empty()).then(|| text.to_owned()));
        let prompt_mode =
            if argv.contains("{PROMPT}") { PromptMode::ArgvSubstitute } else { PromptMode::Stdin };
        ToolSpec {
            kind: known.unwrap_or_else(|| ToolKind::from_name(&words[0])),
            argv: words,
            prompt_mode,
            model,
            reasoning,
            provider,
            permissions: Permissions::default(),
        }
    }

    fn plan(spec: &ToolSpec) -> Result<CommandPlan, PlanError> {
        adapter(&spec.kind).plan(spec, &Ask { prompt: "P".to_owned(), prompt_file: None })
    }

    fn planned(argv: &str, fields: [&str; 3]) -> CommandPlan {
        plan(&spec(argv, fields)).unwrap()
    }

    #[test]
    fn what_a_tool_cannot_be_told_is_refused() {
        for (argv, fields, of) in [
            ("codex exec -", ["", "max", ""], "reasoning"),
            ("opencode run", ["", "", "openrouter"], "provider"),
            ("aider", ["x", "", ""], "model"),
            ("aider", ["", "x", ""], "reasoning"),
            ("aider", ["", "", "x"], "provider"),
        ] {
            let refused = plan(&spec(argv, fields));
            assert!(matches!(refused, Err(PlanError::Unsupported { field, .. }) if field == of), "{argv}");
        }
        assert!(planned("aider", ["", "", ""]).warnings.is_empty());
    }

    /// Each row: what is written, the fields, what comes of it.
    #[test]
    fn model_reasoning_and_provider_become_arguments_only_where_they_are_absent() {
        let router = "-c model_provider=\"openrouter\" -c model_providers.openrouter.name=\"openrouter\" \
             -c model_providers.openrouter.base_url=\"https://openrouter.ai/api/v1\" \
             -c model_providers.openrouter.env_key=\"OPENROUTER_API_KEY\"";
        let with_router = format!("codex {router} exec -");
        let elsewhere = "codex exec -c model_provider=\"azure\" -";
        for (argv, fields, expected) in [
            ("claude -p", ["", "", ""], "claude -p"),
            ("claude -p", ["opus", "high", ""], "claude -p --model opus --effort high"),
            ("claude -p {PROMPT} --x", ["opus", "", ""], "claude -p --model opus P --x"),
            ("claude --model own -p", ["opus", "max", ""], "claude --model own -p --effort max"),
            ("claude --model=own --effort=low", ["opus", "max", ""], "claude --model=own --effort=low"),
            ("claude --models own", ["opus", "", ""], "claude --models own --model opus"),
            ("claude -p", ["", "", "anthropic"], "claude -p"),
            (
                "codex exec -",
                ["m", "low", ""],
                "codex -c model=\"m\" -c model_reasoning_effort=\"low\" exec -",
            ),
            ("/opt/codex exec -", ["m", "", ""], "/opt/codex -c model=\"m\" exec -"),
            ("npx codex exec {PROMPT}", ["m", "", ""], "npx codex exec -c model=\"m\" P"),
            ("codex exec -m own", ["m", "", ""], "codex exec -m own"),
            ("codex exec --model=own", ["m", "", ""], "codex exec --model=own"),
            ("codex exec --config model=own", ["m", "", ""], "codex exec --config model=own"),
            ("codex exec -c xmodel=own", ["m", "", ""], "codex -c model=\"m\" exec -c xmodel=own"),
            (
                "codex exec -c model_x=\"model=1\"",
                ["m", "", ""],
                "codex -c model=\"m\" exec -c model_x=\"model=1\"",
            ),
            ("codex exec -", ["a\"b\\c\u{1}", "", ""], "codex -c model=\"a\\\"b\\\\c\\u0001\" exec -"),
            ("codex exec -", ["", "", "openai"], "codex exec -"),
            ("codex exec -", ["", "", "openrouter"], with_router.as_str()),
            (elsewhere, ["", "", "openrouter"], elsewhere),
            ("opencode run", ["a/b", "high", ""], "opencode run -m a/b --variant high"),
            ("opencode run -m own --variant low", ["a/b", "high", ""], "opencode run -m own --variant low"),
            ("opencode run {PROMPT}", ["a/b", "", ""], "opencode run -m a/b P"),
        ] {
            assert_eq!(planned(argv, fields).argv.join(" "), expected, "{argv} {fields:?}");
        }
    }

    #[test]
    fn the_model_asked_for_is_the_one_that_the_command_line_ends_up_with() {
        for (argv, field, expected) in [
            ("claude -p", None, None),
            ("claude -p", Some("opus"), Some("opus")),
            ("claude --model own -p", Some("opus"), Some("own")),
            ("claude --model=a --model=own", None, Some("own")),
            ("claude -m own", None, None),
            ("claude --fallback-model own", Some("opus"), Some("opus")),
            ("codex exec -", Some("m"), Some("m")),
            ("codex exec -m own -c model=other", Some("m"), Some("own")),
            ("codex -c model=\"own\" exec", Some("m"), Some("own")),
            ("codex --config=model='own' exec", None, Some("own")),
            ("codex -c model_x=own exec -- -m no", None, None),
            ("opencode run -m a/b", Some("c/d"), Some("a/b")),
            ("opencode run", Some("c/d"), Some("c/d")),
            ("aider --model own", None, None),
            ("codex exec -m", Some("m"), None),
        ] {
            let spec = spec(argv, [field.unwrap_or_default(), "", ""]);
            assert_eq!(adapter(&spec.kind).model_asked(&spec).as_deref(), expected, "{argv}");
        }
    }

    #[test]
    fn a_provider_of_another_house_brings_its_key_and_only_that() {
        let key = |name: &str| (name.to_owned(), "OPENROUTER_API_KEY".to_owned());
        let claude = planned("claude -p", ["", "", "openrouter"]);
        assert_eq!(claude.env_from, [key("ANTHROPIC_AUTH_TOKEN")]);
        let asked = spec("claude -p", ["", "", "openrouter"]);
        assert_eq!(adapter(&asked.kind).required_env(&asked), ["OPENROUTER_API_KEY"]);
        let set: Vec<_> =
            claude.env_add.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(set, [("ANTHROPIC_BASE_URL", "https://openrouter.ai/api"), ("ANTHROPIC_API_KEY", "")]);
        let codex = planned("codex exec -", ["", "", "openrouter"]);
        assert_eq!(codex.env_from, [key("OPENROUTER_API_KEY")], "codex reads the key itself");
        let own =
            planned("codex exec -c model_providers.openrouter.env_key=\"MINE\"", ["", "", "openrouter"]);
        assert_eq!(own.env_from, [("MINE".to_owned(), "MINE".to_owned())]);
        let elsewhere = planned("codex exec --config model_provider=azure -", ["", "", "openrouter"]);
        assert_eq!(elsewhere.env_from, [], "another provider switches the routing off");
        for argv in ["codex exec -", "claude -p", "opencode run"] {
            let plain = planned(argv, ["m", "low", ""]);
            assert!(plain.env_from.is_empty() && plain.env_add.is_empty(), "{argv}");
        }
    }
}
