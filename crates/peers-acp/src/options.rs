//! What the bridge is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use peers_model::config::Permissions;
use peers_sys::env::{self, Env};
use thiserror::Error;

/// The agent and how it is answered.
#[derive(Debug, Clone)]
pub struct Options {
    /// What its permission requests are answered.
    pub permissions: Permissions,
    /// Its program and arguments. The program is looked up as [`peers_sys::spawn::resolve_program`] does.
    pub argv: Vec<OsString>,
    /// Where it works, absolute.
    pub cwd: PathBuf,
    /// Its environment.
    pub env: Env,
    /// How long it may take to end by itself after its turn.
    pub patience: Duration,
}

/// Arguments that the bridge does not understand.
#[derive(Debug, Error)]
pub enum OptionsError {
    /// No such option.
    #[error("`{0}` is unknown; write [--permissions allow|reject] -- PROGRAM [ARGUMENT...]")]
    Unknown(String),
    /// An option without a usable value.
    #[error("`--permissions` takes `allow` or `reject`")]
    Permissions,
    /// There is no agent.
    #[error("no program was given; write it behind `--`")]
    NoAgent,
    /// The working directory is gone.
    #[error("the working directory is unknown")]
    WorkDir(#[source] std::io::Error),
}

impl Options {
    /// The usual patience.
    pub const PATIENCE: Duration = Duration::from_secs(5);

    /// Reads `[--permissions allow|reject] -- ARGV...`; the rest comes from this process.
    ///
    /// # Errors
    /// [`OptionsError`] says what to write.
    pub fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Self, OptionsError> {
        let mut permissions = Permissions::default();
        loop {
            let Some(word) = words.next() else { return Err(OptionsError::NoAgent) };
            match word.to_str() {
                Some("--") => break,
                Some("--permissions") => {
                    let value = words.next();
                    permissions = match value.as_ref().and_then(|value| value.to_str()) {
                        Some("allow") => Permissions::Allow,
                        Some("reject") => Permissions::Reject,
                        _ => return Err(OptionsError::Permissions),
                    };
                }
                _ => return Err(OptionsError::Unknown(word.to_string_lossy().into_owned())),
            }
        }
        let argv: Vec<OsString> = words.collect();
        if argv.first().is_none_or(|program| program.is_empty()) {
            return Err(OptionsError::NoAgent);
        }
        let cwd = env::current_dir().map_err(OptionsError::WorkDir)?;
        Ok(Self { permissions, argv, cwd, env: Env::current(), patience: Self::PATIENCE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_is_behind_the_dashes_is_the_agents() {
        let options = parse("--permissions reject -- agent --permissions allow -- x").unwrap();
        assert_eq!(options.permissions, Permissions::Reject);
        assert_eq!(options.argv, ["agent", "--permissions", "allow", "--", "x"]);
        assert_eq!(parse("-- agent").unwrap().permissions, Permissions::Allow);
    }

    #[test]
    fn the_adapter_asks_for_what_is_understood() {
        use peers_tools::{Ask, PromptMode, ToolKind, ToolSpec, adapter};
        for permissions in [Permissions::Allow, Permissions::Reject] {
            let spec = ToolSpec {
                kind: ToolKind::Acp,
                argv: vec!["agent".to_owned(), "acp".to_owned()],
                prompt_mode: PromptMode::Stdin,
                model: None,
                reasoning: None,
                provider: None,
                permissions,
            };
            let ask = Ask { prompt: String::new(), prompt_file: None };
            let plan = adapter(&spec.kind).plan(&spec, &ask).unwrap();
            let mut words = plan.bridge.unwrap().into_iter().chain(plan.argv).map(OsString::from);
            assert_eq!(words.next().unwrap(), crate::ENTRY);
            let options = Options::parse(words).unwrap();
            assert_eq!(
                (options.permissions, options.argv),
                (permissions, vec!["agent".into(), "acp".into()])
            );
        }
    }

    #[test]
    fn each_mistake_is_named() {
        for (line, words) in [
            ("", "no program"),
            ("--", "no program"),
            ("--permissions allow", "no program"),
            ("--permissions maybe -- x", "`allow` or `reject`"),
            ("--permissions", "`allow` or `reject`"),
            ("agent acp", "`agent` is unknown"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
