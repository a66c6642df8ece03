//! Who pays, as far as names and files tell. Given names and bytes, reads nothing.
//!
//! For people. No cap rests on it: agents that are not confined can write those files, and there are logins
//! that it does not know.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::lenient::{Shape, Text, parse_line};
use crate::tool::{ToolKind, ToolSpec};

/// How a tool is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Billing {
    /// By use, through an API key.
    Metered,
    /// By a subscription.
    Subscription,
    /// Nobody can tell.
    Unknown,
}

/// What was found on the machine. A file that is no regular, unlinked file of at most 1 MiB is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthProbe {
    /// Names of variables that are set and not blank in the peer's environment.
    pub env: BTreeSet<String>,
    /// Contents of the files named by [`auth_files`], by the same name.
    pub files: BTreeMap<&'static str, Vec<u8>>,
}

/// The files that tell how `kind` is logged in, relative to the operator's home.
#[must_use]
pub fn auth_files(kind: &ToolKind) -> &'static [&'static str] {
    match kind {
        ToolKind::Claude => &[CLAUDE_CREDENTIALS, CLAUDE_SETTINGS],
        ToolKind::Codex => &[CODEX_AUTH],
        ToolKind::Opencode | ToolKind::Acp | ToolKind::Other(_) => &[],
    }
}

const CLAUDE_CREDENTIALS: &str = ".claude/.credentials.json";
const CLAUDE_SETTINGS: &str = ".claude.json";
const CODEX_AUTH: &str = ".codex/auth.json";

/// How the tool of `spec` is paid for.
#[must_use]
pub fn billing(spec: &ToolSpec, probe: &AuthProbe) -> Billing {
    if spec.provider.as_deref() == Some("openrouter") {
        return Billing::Metered;
    }
    match &spec.kind {
        ToolKind::Claude => claude(probe),
        ToolKind::Codex => codex(probe),
        ToolKind::Opencode | ToolKind::Acp | ToolKind::Other(_) => Billing::Unknown,
    }
}

fn claude(probe: &AuthProbe) -> Billing {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Settings {
        #[serde(rename = "userID")]
        user_id: Option<serde::de::IgnoredAny>,
        #[serde(rename = "hasOpusPlanDefault")]
        plan: Option<serde::de::IgnoredAny>,
        #[serde(rename = "passesEligibilityCache")]
        passes: Option<serde::de::IgnoredAny>,
    }
    if probe.env.contains("ANTHROPIC_API_KEY") {
        return Billing::Metered;
    }
    let logged_in = probe.env.contains("CLAUDE_CODE_OAUTH_TOKEN")
        || probe.files.contains_key(CLAUDE_CREDENTIALS)
        || probe.files.get(CLAUDE_SETTINGS).and_then(|bytes| parse_line::<Settings>(bytes)).is_some_and(
            |settings| settings.user_id.is_some() || settings.plan.is_some() || settings.passes.is_some(),
        );
    if logged_in { Billing::Subscription } else { Billing::Unknown }
}

fn codex(probe: &AuthProbe) -> Billing {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Auth {
        #[serde(rename = "auth_mode")]
        mode: Text<32>,
        tokens: Shape<Tokens>,
        #[serde(rename = "OPENAI_API_KEY")]
        key: Text<8>,
    }
    #[derive(Default, Deserialize)]
    struct Tokens {}
    // Its own provider takes the first one alone; a configured provider may name the second.
    if ["CODEX_API_KEY", "OPENAI_API_KEY"].iter().any(|name| probe.env.contains(*name)) {
        return Billing::Metered;
    }
    let Some(auth) = probe.files.get(CODEX_AUTH).and_then(|bytes| parse_line::<Auth>(bytes)) else {
        return Billing::Unknown;
    };
    match auth.mode.as_str().to_ascii_lowercase().as_str() {
        "chatgpt" | "oauth" => return Billing::Subscription,
        "apikey" | "api_key" | "api-key" => return Billing::Metered,
        _ => {}
    }
    let has_key = !auth.key.as_str().trim().is_empty();
    match (has_key, auth.tokens) {
        (true, _) => Billing::Metered,
        (false, Shape::Object(_)) => Billing::Subscription,
        (false, Shape::Text(_) | Shape::Neither) => Billing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use peers_model::config::Permissions;

    use super::*;
    use crate::tool::PromptMode;

    fn spec(name: &str) -> ToolSpec {
        ToolSpec {
            kind: ToolKind::from_name(name),
            argv: vec![name.to_owned()],
            prompt_mode: PromptMode::Stdin,
            model: None,
            reasoning: None,
            provider: None,
            permissions: Permissions::default(),
        }
    }

    fn with_file(name: &'static str, text: &str) -> AuthProbe {
        AuthProbe { files: [(name, text.as_bytes().to_vec())].into(), ..AuthProbe::default() }
    }

    fn with_env(name: &str) -> AuthProbe {
        AuthProbe { env: [name.to_owned()].into(), ..AuthProbe::default() }
    }

    #[test]
    fn claude_is_metered_by_key_and_subscribed_by_login() {
        let claude = spec("claude");
        assert_eq!(billing(&claude, &with_env("ANTHROPIC_API_KEY")), Billing::Metered);
        assert_eq!(billing(&claude, &with_file(CLAUDE_CREDENTIALS, "x")), Billing::Subscription);
        assert_eq!(
            billing(&claude, &with_file(CLAUDE_SETTINGS, "{\"userID\":\"u\"}")),
            Billing::Subscription
        );
        assert_eq!(billing(&claude, &with_file(CLAUDE_SETTINGS, "{\"theme\":1}")), Billing::Unknown);
        assert_eq!(billing(&claude, &AuthProbe::default()), Billing::Unknown);
    }

    #[test]
    fn codex_follows_its_auth_file() {
        let codex = spec("codex");
        for (text, want) in [
            ("{\"auth_mode\":\"chatgpt\",\"OPENAI_API_KEY\":\"k\"}", Billing::Subscription),
            ("{\"auth_mode\":\"apikey\"}", Billing::Metered),
            ("{\"OPENAI_API_KEY\":null,\"tokens\":{\"id\":1}}", Billing::Subscription),
            ("{\"OPENAI_API_KEY\":\"k\",\"tokens\":{}}", Billing::Metered),
            ("{}", Billing::Unknown),
            ("not json", Billing::Unknown),
        ] {
            assert_eq!(billing(&codex, &with_file(CODEX_AUTH, text)), want, "{text}");
        }
        for name in ["CODEX_API_KEY", "OPENAI_API_KEY"] {
            assert_eq!(billing(&codex, &with_env(name)), Billing::Metered);
        }
    }

    #[test]
    fn openrouter_is_metered_and_other_tools_are_unknown() {
        let routed = ToolSpec { provider: Some("openrouter".to_owned()), ..spec("claude") };
        assert_eq!(billing(&routed, &with_file(CLAUDE_CREDENTIALS, "x")), Billing::Metered);
        assert_eq!(billing(&spec("aider"), &with_env("OPENAI_API_KEY")), Billing::Unknown);
    }
}
