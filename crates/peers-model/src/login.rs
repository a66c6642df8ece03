//! How an operator logs the known tools in.

/// What is typed to log the tool of this name in, one step after the other; `None` where only its own manual knows.
#[must_use]
pub fn typed(tool: &str) -> Option<&'static str> {
    match tool {
        "claude" => Some("claude, then /login"),
        "codex" => Some("codex login"),
        "opencode" => Some("opencode auth login"),
        _ => None,
    }
}

/// How the tool of this name is logged in, to follow words such as `log in: `; `None` where only its own manual
/// knows.
#[must_use]
pub fn how(tool: &str) -> Option<&'static str> {
    match tool {
        "claude" => {
            Some("start `claude` and type `/login`, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN")
        }
        "codex" => Some("`codex login`, or set CODEX_API_KEY"),
        "opencode" => Some("`opencode auth login`"),
        _ => None,
    }
}
