//! How an operator logs the known tools in.

/// How a tool is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// What is typed, one after the other.
    pub typed: &'static [&'static str],
    /// The variables with a key that do as well.
    pub keys: Option<&'static str>,
}

/// How the tool of this name is logged in; `None` where only its own manual knows.
#[must_use]
pub fn of(tool: &str) -> Option<Login> {
    let (typed, keys): (&[&str], _) = match tool {
        "claude" => (&["claude", "/login"], Some("ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN")),
        "codex" => (&["codex login"], Some("CODEX_API_KEY")),
        "opencode" => (&["opencode auth login"], None),
        _ => return None,
    };
    Some(Login { typed, keys })
}

/// The same, to follow words such as `log in: `.
#[must_use]
pub fn how(tool: &str) -> Option<String> {
    let Login { typed, keys } = of(tool)?;
    let typed = match typed {
        [program, then] => format!("start `{program}` and type `{then}`"),
        typed => format!("`{}`", typed.join("`, `")),
    };
    Some(keys.map_or(typed.clone(), |keys| format!("{typed}, or set {keys}")))
}
