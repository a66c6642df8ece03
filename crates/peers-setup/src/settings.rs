//! `--peer-model`, `--peer-reasoning` and `--peer-provider` of `peers init`.

use peers_model::config::PeerSpec;
use peers_modes::{CONFIG, config_with_agents, peer, setup};
use peers_store::load;
use peers_sys::env::Env;
use peers_sys::term;

use super::ScaffoldError;

/// A setting of some peers: `VALUE` for all, `KEY=VALUE` for those whose name or tool is `KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSetting {
    /// What is set.
    pub field: Field,
    /// As it stands on the command line.
    pub text: String,
}

/// What can be set of a peer from the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the config key of the same name")]
pub enum Field {
    Model,
    Reasoning,
    Provider,
}

impl Field {
    /// The key in an entry of `peers`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Reasoning => "reasoning",
            Self::Provider => "provider",
        }
    }

    /// The option of the command line.
    pub(super) fn option(self) -> String {
        format!("peer-{}", self.key())
    }
}

/// The agents that a configuration is known for, by the names of their programs.
const AGENTS: [&str; 3] = ["claude", "codex", "opencode"];

/// The agents whose programs are on the operator's `PATH`.
#[must_use]
pub fn installed_agents(env: &Env) -> Vec<&'static str> {
    let installed = setup::installed(env);
    AGENTS.into_iter().filter(|agent| installed(agent)).collect()
}

/// Which agents a new configuration is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Agents {
    /// Those of the template.
    #[default]
    Template,
    /// Those that are installed; where none is, those of the template.
    Installed,
    /// These, by the names of their programs; at least one.
    Named(Vec<&'static str>),
}

impl Agents {
    /// Their names; empty: those of the template.
    pub(super) fn tools(&self, env: &Env) -> Vec<&'static str> {
        match self {
            Self::Template => Vec::new(),
            Self::Installed => installed_agents(env),
            Self::Named(tools) => tools.clone(),
        }
    }
}

/// The configuration that is laid down, with the settings in it: the one that was accepted before, else
/// the template; with these agents in any case the template.
///
/// # Errors
/// [`ScaffoldError`] where a setting fits no peer, or makes no valid configuration.
pub(super) fn configure(
    accepted: Option<&[u8]>,
    agents: &[&str],
    settings: &[PeerSetting],
) -> Result<String, ScaffoldError> {
    let base = match accepted {
        _ if !agents.is_empty() => config_with_agents(agents).ok_or_else(|| {
            let why =
                format!("no entry is known for {}; write it into .peers/config.yaml", agents.join(", "));
            ScaffoldError::option("agents", why)
        })?,
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => CONFIG.to_owned(),
    };
    let refuse = |field: Field, why: String| ScaffoldError::option(&field.option(), why);
    let peers = match (load::load_config(&base), settings.first()) {
        (Ok(config), _) => config.peers,
        (Err(error), Some(first)) => return Err(refuse(first.field, error.to_string())),
        (Err(_), None) => return Ok(base),
    };
    let mut text = base;
    for PeerSetting { field, text: written } in settings {
        let (of, value) = match written.split_once('=') {
            Some((of, value)) => (Some(of.trim()), value.trim()),
            None => (None, written.trim()),
        };
        let shown = term::line(written, 80);
        if value.is_empty() || of.is_some_and(str::is_empty) {
            return Err(refuse(*field, format!("`{shown}` has no value; write VALUE, or PEER=VALUE")));
        }
        let meant = |peer: &&PeerSpec| of.is_none_or(|of| of == peer.name.as_str() || of == peer.tool_name());
        let mut meant = peers.iter().filter(meant).peekable();
        if meant.peek().is_none() {
            let names: Vec<_> = peers.iter().map(|peer| format!("`{}`", peer.name)).collect();
            return Err(refuse(
                *field,
                format!("no peer has the name or tool of `{shown}`; there are {}", names.join(", ")),
            ));
        }
        for peer in meant {
            text = peer::set(&text, peer.name.as_str(), field.key(), value).ok_or_else(|| {
                refuse(
                    *field,
                    format!(
                        "the entry of `{}` has another form than the template's; write it into .peers/config.yaml",
                        peer.name
                    ),
                )
            })?;
        }
    }
    match (load::load_config(&text), settings.last()) {
        (Err(error), Some(last)) => {
            let told: Vec<_> = error.problems().iter().map(|problem| problem.message.as_str()).collect();
            Err(refuse(last.field, told.join("; ")))
        }
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &[(Field, &str)]) -> Result<Vec<PeerSpec>, String> {
        let settings: Vec<_> = settings
            .iter()
            .map(|(field, text)| PeerSetting { field: *field, text: (*text).to_owned() })
            .collect();
        let text = configure(None, &[], &settings).map_err(|error| error.to_string())?;
        Ok(load::load_config(&text).unwrap().peers)
    }

    #[test]
    fn a_value_reaches_all_peers_and_a_named_one_those_of_that_name_or_tool() {
        let models = |settings: &[(Field, &str)]| -> Vec<Option<String>> {
            with(settings).unwrap().into_iter().map(|peer| peer.model).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(models(&[(Field::Model, "m 1: x")]), [some("m 1: x"), some("m 1: x")]);
        assert_eq!(models(&[(Field::Model, "codex=a=b")]), [None, some("a=b")]);
        assert_eq!(models(&[(Field::Model, "x"), (Field::Model, "claude=y")]), [some("y"), some("x")]);
        let peers = with(&[(Field::Reasoning, "High"), (Field::Provider, "openrouter")]).unwrap();
        assert!(peers.iter().all(|peer| peer.provider.as_deref() == Some("openrouter")));
    }

    #[test]
    fn what_fits_no_peer_or_no_tool_is_refused_with_the_option() {
        for (field, text, says) in [
            (Field::Model, "", "has no value"),
            (Field::Model, "claude=", "has no value"),
            (Field::Model, "=x", "has no value"),
            (Field::Model, "gemini=x", "no peer has the name or tool"),
            (Field::Reasoning, "codex=max", "`reasoning: max` is unknown for codex"),
            (Field::Provider, "bedrock", "`provider: bedrock` is unknown for claude"),
        ] {
            let error = with(&[(field, text)]).unwrap_err();
            assert!(
                error.starts_with(&format!("--peer-{}: ", field.key())) && error.contains(says),
                "{error}"
            );
        }
    }
}
