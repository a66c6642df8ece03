//! The services that are known: hosts, paths, logins. Their token endpoints are not documented and have moved before,
//! so [`crate::auth::Oauth`] can be replaced.

/// A service of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// The Messages API, by a login of claude or a key.
    Anthropic,
    /// The Responses API, by a key.
    OpenAi,
    /// The same with a subscription, by a login of codex.
    ChatGpt,
    /// openrouter.ai, by a key.
    OpenRouter,
}

impl Provider {
    pub(super) const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::ChatGpt, Self::OpenRouter];

    /// The name, which is the first part of the paths that peers ask for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::ChatGpt => "chatgpt",
            Self::OpenRouter => "openrouter",
        }
    }

    pub(super) fn host(self) -> &'static str {
        match self {
            Self::Anthropic => "api.anthropic.com",
            Self::OpenAi => "api.openai.com",
            Self::ChatGpt => "chatgpt.com",
            Self::OpenRouter => "openrouter.ai",
        }
    }

    /// What may be asked for, in the syntax of [`crate::auth::Rule`].
    pub(super) fn rules(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &[
                "POST /v1/messages",
                "POST /v1/messages/count_tokens",
                "GET /v1/models",
                "GET /v1/models/*",
                "HEAD /",
            ],
            Self::OpenAi => &["POST /v1/responses", "POST /v1/chat/completions", "GET /v1/models"],
            Self::ChatGpt => &["GET /backend-api/codex/*", "POST /backend-api/codex/*"],
            Self::OpenRouter => &[
                "POST /api/v1/messages",
                "POST /api/v1/messages/count_tokens",
                "POST /api/v1/responses",
                "POST /api/v1/chat/completions",
                "GET /api/v1/models",
                "GET /api/v1/models/*",
                "HEAD /api",
            ],
        }
    }

    /// Whether it answers over WebSocket too.
    pub(super) fn has_websocket(self) -> bool {
        self == Self::ChatGpt
    }

    /// Where its logins are renewed, the preferred URL first.
    pub(super) fn token_urls(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &[
                "https://platform.claude.com/v1/oauth/token",
                "https://console.anthropic.com/v1/oauth/token",
            ],
            Self::ChatGpt => &["https://auth.openai.com/oauth/token"],
            Self::OpenAi | Self::OpenRouter => &[],
        }
    }

    /// The public client id of the tool whose login it is.
    pub(super) fn client_id(self) -> &'static str {
        match self {
            Self::Anthropic => "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
            Self::ChatGpt => "app_EMoamEEZ73f0CkXaXp7hrann",
            Self::OpenAi | Self::OpenRouter => "",
        }
    }

    /// The variables that may hold a key.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::OpenAi => &["OPENAI_API_KEY", "CODEX_API_KEY"],
            Self::ChatGpt => &[],
            Self::OpenRouter => &["OPENROUTER_API_KEY"],
        }
    }

    /// Of these the one that its tool takes in the place of a login.
    pub(super) fn own_key(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("CODEX_API_KEY"),
            Self::ChatGpt | Self::OpenRouter => None,
        }
    }

    /// The member of the login file that holds the tokens.
    pub(super) fn login_member(self) -> &'static str {
        match self {
            Self::Anthropic => "claudeAiOauth",
            Self::OpenAi | Self::ChatGpt | Self::OpenRouter => "tokens",
        }
    }

    /// How the operator logs in, as a command.
    pub(super) fn how_to_log_in(self) -> String {
        let tool = match self {
            Self::Anthropic => "claude",
            Self::ChatGpt => "codex",
            Self::OpenAi | Self::OpenRouter => return format!("set {}", self.keys().join(" or ")),
        };
        peers_model::login::how(tool).map(|how| format!("log in: {how}")).unwrap_or_default()
    }
}
