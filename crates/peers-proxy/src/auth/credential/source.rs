//! Where credentials are found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use peers_sys::FileError;
use peers_sys::env::Env;
use secrecy::ExposeSecret;
use thiserror::Error;

use super::document;
use super::file::LoginFile;
use super::login::Login;
use super::oauth::Oauth;
use super::{Credential, Kind, Scheme};
use crate::auth::provider::Provider;

/// A variable with a token of a login that is not renewed.
const LONG_LIVED: &str = "CLAUDE_CODE_OAUTH_TOKEN";
/// A token for whatever stands behind the operator's own address of the service. Claude takes it before its login.
const GATEWAY: &str = "ANTHROPIC_AUTH_TOKEN";
/// The member of a login file of codex that holds a key.
const KEY_MEMBER: &str = "OPENAI_API_KEY";

/// Why there is no credential for a service.
#[derive(Debug, Error)]
pub enum NoCredential {
    /// Nowhere is one.
    #[error("no credential for `{service}`; {hint}")]
    Missing {
        /// The service.
        service: &'static str,
        /// What the operator can do.
        hint: String,
    },
    /// The file that the operator named holds none.
    #[error("{} holds no credential for `{service}`", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The service.
        service: &'static str,
    },
    /// A login file cannot be read, or looks tampered with.
    #[error("read the credential for `{service}`")]
    File {
        /// The service.
        service: &'static str,
        /// Why not.
        #[source]
        source: FileError,
    },
}

impl Credential {
    /// Finds the credential for `provider`: in the file that the operator named, in the login files of its tool, in
    /// the environment. `oauth` is how a login is renewed.
    ///
    /// # Errors
    /// [`NoCredential`].
    pub fn find(
        provider: Provider,
        explicit: Option<&Path>,
        env: &Env,
        oauth: &Oauth,
    ) -> Result<Arc<Self>, NoCredential> {
        let service = provider.name();
        let found =
            explicit.map_or_else(|| find(provider, env, oauth), |path| from_file(provider, path, oauth));
        let kind = found.map_err(|source| NoCredential::File { service, source })?;
        let kind = kind.ok_or_else(|| match explicit {
            Some(path) => NoCredential::Empty { path: path.to_owned(), service },
            None => NoCredential::Missing { service, hint: provider.how_to_log_in() },
        })?;
        Ok(Arc::new(Self { kind }))
    }
}

fn find(provider: Provider, env: &Env, oauth: &Oauth) -> Result<Option<Kind>, FileError> {
    let home = env.home();
    // As the tools do, which ask for no login where they are given a key.
    if provider == Provider::Anthropic
        && let Some(token) = env.text(GATEWAY)
    {
        return Ok(Some(Kind::Fixed { scheme: Scheme::Bearer, secret: token.into() }));
    }
    if let Some(key) = provider.own_key().and_then(|name| env.text(name)) {
        return Ok(Some(Kind::Fixed { scheme: key_scheme(provider), secret: key.into() }));
    }
    let below = |variable: &str, dir: &str, name: &str| {
        let dir = env.absolute(variable).or_else(|| home.as_ref().map(|home| home.join(dir)));
        dir.map(|dir| dir.join(name))
    };
    let file = match provider {
        Provider::Anthropic => below("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
        Provider::OpenAi | Provider::ChatGpt => below("CODEX_HOME", ".codex", "auth.json"),
        Provider::OpenRouter => None,
    };
    if let Some(path) = file {
        match from_file(provider, &path, oauth) {
            Ok(None) | Err(FileError::NotFound { .. }) => {}
            found => return found,
        }
    }
    if provider == Provider::Anthropic {
        // Old versions kept the login in their settings, which nearly everybody has, without a login.
        let legacy = home.map(|home| home.join(".claude.json"));
        if let Some(Ok(Some(kind))) = legacy.map(|path| from_file(provider, &path, oauth)) {
            return Ok(Some(kind));
        }
        if let Some(token) = env.text(LONG_LIVED) {
            return Ok(Some(Kind::Fixed { scheme: Scheme::AnthropicLogin, secret: token.into() }));
        }
    }
    let key = provider.keys().iter().find_map(|name| env.text(name));
    Ok(key.map(|key| Kind::Fixed { scheme: key_scheme(provider), secret: key.into() }))
}

fn from_file(provider: Provider, path: &Path, oauth: &Oauth) -> Result<Option<Kind>, FileError> {
    let Some(file) = LoginFile::new(path) else { return Ok(None) };
    let text = file.read()?;
    let text = text.expose_secret();
    if matches!(provider, Provider::OpenAi | Provider::OpenRouter) {
        let key = document::top_level(text, KEY_MEMBER);
        return Ok(key.map(|key| Kind::Fixed { scheme: Scheme::Bearer, secret: key.into() }));
    }
    let scheme = if provider == Provider::Anthropic { Scheme::AnthropicLogin } else { Scheme::Bearer };
    let tokens = document::tokens(text, provider.login_member());
    Ok(tokens.map(|tokens| {
        let login = Arc::new(Login::new(provider, file.clone(), oauth.clone(), tokens));
        Kind::Login { scheme, login }
    }))
}

fn key_scheme(provider: Provider) -> Scheme {
    match provider {
        Provider::Anthropic => Scheme::ApiKey,
        Provider::OpenAi | Provider::ChatGpt | Provider::OpenRouter => Scheme::Bearer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str = r#"{"claudeAiOauth":{"accessToken":"file-a","refreshToken":"file-r"}}"#;
    const CODEX: &str = r#"{"OPENAI_API_KEY":"sk-file","tokens":{"access_token":"a","refresh_token":"r","account_id":"acc"}}"#;

    struct Home {
        tmp: tempfile::TempDir,
        vars: Vec<(String, String)>,
    }

    impl Home {
        fn new(files: &[(&str, &str)], vars: &[(&str, &str)]) -> Self {
            let tmp = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = tmp.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let home = ("HOME".to_owned(), tmp.path().to_str().unwrap().to_owned());
            let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Self { vars: vars.chain([home]).collect(), tmp }
        }

        fn find(&self, provider: Provider, explicit: Option<&str>) -> Result<String, NoCredential> {
            let env = Env::from_pairs(self.vars.clone());
            let explicit = explicit.map(|path| self.tmp.path().join(path));
            let found = Credential::find(provider, explicit.as_deref(), &env, &Oauth::new(provider, &env))?;
            Ok(match &found.kind {
                Kind::Fixed { scheme, secret } => format!("{scheme:?} {}", secret.expose_secret()),
                Kind::Login { login, .. } => {
                    login.path().strip_prefix(self.tmp.path()).unwrap().display().to_string()
                }
            })
        }
    }

    #[test]
    fn a_key_comes_before_a_login_of_claude_and_that_before_its_old_place() {
        let key = [("ANTHROPIC_API_KEY", "key"), (LONG_LIVED, "long")];
        let both = [(".claude/.credentials.json", LOGIN), (".claude.json", LOGIN), ("mine.json", LOGIN)];
        let find = |files: &[(&str, &str)], vars: &[(&str, &str)]| {
            Home::new(files, vars).find(Provider::Anthropic, None)
        };
        assert_eq!(Home::new(&both, &key).find(Provider::Anthropic, Some("mine.json")).unwrap(), "mine.json");
        assert_eq!(find(&both, &key).unwrap(), "ApiKey key");
        assert_eq!(find(&both, &key[1..]).unwrap(), ".claude/.credentials.json");
        assert_eq!(find(&both[1..], &key[1..]).unwrap(), ".claude.json");
        assert_eq!(find(&[(".claude.json", "{\"projects\":{}}")], &key[1..]).unwrap(), "AnthropicLogin long");
        assert_eq!(find(&[(".claude/.credentials.json", "{}")], &key[..1]).unwrap(), "ApiKey key");
        assert!(matches!(find(&[], &[]), Err(NoCredential::Missing { .. })));
        assert_eq!(find(&both, &[(GATEWAY, "own"), key[0]]).unwrap(), "Bearer own");
    }

    #[test]
    fn the_file_of_codex_serves_both_kinds_of_login() {
        let home = Home::new(&[(".codex/auth.json", CODEX)], &[("OPENAI_API_KEY", "env")]);
        assert_eq!(home.find(Provider::ChatGpt, None).unwrap(), ".codex/auth.json");
        assert_eq!(home.find(Provider::OpenAi, None).unwrap(), "Bearer sk-file");
        let home =
            Home::new(&[(".codex/auth.json", "{\"OPENAI_API_KEY\":null}")], &[("OPENAI_API_KEY", "env")]);
        assert_eq!(home.find(Provider::OpenAi, None).unwrap(), "Bearer env");
        assert!(home.find(Provider::ChatGpt, None).is_err());
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = Home::new(&[], &[]).find(Provider::OpenRouter, None).unwrap_err();
        assert_eq!(error.to_string(), "no credential for `openrouter`; set OPENROUTER_API_KEY");
        let error = Home::new(&[], &[]).find(Provider::Anthropic, None).unwrap_err();
        assert!(error.to_string().contains("/login"), "{error}");
    }

    #[test]
    fn a_named_file_without_a_login_is_an_error() {
        let home = Home::new(&[("mine.json", "{}")], &[("ANTHROPIC_API_KEY", "key")]);
        assert!(matches!(home.find(Provider::Anthropic, Some("mine.json")), Err(NoCredential::Empty { .. })));
        assert!(matches!(home.find(Provider::Anthropic, Some("other.json")), Err(NoCredential::File { .. })));
    }

    #[test]
    fn a_linked_login_file_is_refused_and_not_passed_over() {
        let home = Home::new(&[("real.json", LOGIN), (".claude/x", "")], &[(LONG_LIVED, "long")]);
        let place = home.tmp.path().join(".claude/.credentials.json");
        std::os::unix::fs::symlink(home.tmp.path().join("real.json"), &place).unwrap();
        let error = home.find(Provider::Anthropic, None).unwrap_err();
        assert!(matches!(error, NoCredential::File { source: FileError::Symlink { .. }, .. }), "{error:?}");
        std::fs::remove_file(&place).unwrap();
        std::fs::hard_link(home.tmp.path().join("real.json"), &place).unwrap();
        let error = home.find(Provider::Anthropic, None).unwrap_err();
        assert!(
            matches!(error, NoCredential::File { source: FileError::HardLinked { .. }, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let env = Env::from_pairs([("ANTHROPIC_API_KEY", "s3cret"), ("HOME", "/nonexistent")]);
        let oauth = Oauth::new(Provider::Anthropic, &env);
        let found = Credential::find(Provider::Anthropic, None, &env, &oauth).unwrap();
        assert_eq!(format!("{found:?}"), "Fixed { scheme: ApiKey, .. }");
    }
}
