//! What the operator adds by name: their own `sandbox.yaml`.

use std::path::{Path, PathBuf};

use peers_model::limits;
use peers_sys::env::Env;
use peers_sys::yaml::{self, YamlError};
use peers_sys::{FileError, SafeDir};
use serde::Deserialize;
use thiserror::Error;

use super::never_passes;

/// Below the operator's configuration directory.
const POLICY_DIR: &str = "peers";
/// The operator's own file.
const POLICY_FILE: &str = "sandbox.yaml";

/// Names of variables that the operator passes on, from `sandbox.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorEnv {
    /// For peers.
    pub peers: Vec<String>,
    /// For gates, as far as `goals.env` asks for them.
    pub gates: Vec<String>,
}

/// Why the operator's `sandbox.yaml` cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: FileError,
    },
    /// It has other keys, or is no YAML.
    #[error("{0}; this version reads only `peers.env` and `gates.env` there, each a list of names")]
    Syntax(Box<YamlError>),
    /// A name that makes no sense or is never passed.
    #[error("{}: `{key}` names `{name}`, {why}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The name, made printable.
        name: String,
        /// Why not.
        why: &'static str,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyFile {
    peers: PolicyPart,
    gates: PolicyPart,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyPart {
    env: Vec<String>,
}

impl OperatorEnv {
    /// Reads `$XDG_CONFIG_HOME/peers/sandbox.yaml`; nothing is passed when there is none.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn load(operator: &Env) -> Result<Self, PolicyError> {
        let Some(config) = operator.config_home() else { return Ok(Self::default()) };
        let path = config.join(POLICY_DIR).join(POLICY_FILE);
        // The operator may keep it as a link into a collection of such files.
        let Ok(target) = path.canonicalize() else { return Ok(Self::default()) };
        let read = |source| PolicyError::Read { path: path.clone(), source };
        let (Some(holder), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(Self::default());
        };
        let holder = SafeDir::open_shared(holder).map_err(read)?;
        match holder.read_text_opt(name, limits::CONFIG).map_err(read)? {
            Some(text) => Self::parse(&path, &text),
            None => Ok(Self::default()),
        }
    }

    /// Reads the text of the file; `path` is for messages.
    fn parse(path: &Path, text: &str) -> Result<Self, PolicyError> {
        let file: PolicyFile =
            yaml::from_str(POLICY_FILE, text).map_err(|error| PolicyError::Syntax(Box::new(error)))?;
        let lists = [("peers.env", &file.peers.env, true), ("gates.env", &file.gates.env, false)];
        for (key, names, secrets) in lists {
            for name in names {
                if let Some(why) = refusal(name, secrets) {
                    let name = peers_sys::term::line(name, 80);
                    return Err(PolicyError::Name { path: path.to_owned(), key, name, why });
                }
            }
        }
        Ok(Self { peers: file.peers.env, gates: file.gates.env })
    }

    /// Why no gate gets the variable `name`, which `goals.env` asks for; `None` where gates get it.
    #[must_use]
    pub fn withheld_from_gates(&self, name: &str) -> Option<&'static str> {
        let listed = self.gates.iter().any(|listed| listed == name);
        refusal(name, listed).or((!listed).then_some("which `gates.env` does not list"))
    }
}

fn refusal(name: &str, secrets: bool) -> Option<&'static str> {
    let tame = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(tame) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("which is not the name of a variable")
    } else if never_passes(name) {
        Some("which is never passed on")
    } else if !secrets && is_credential(name) {
        Some("a credential; gates run the project's own code and get none")
    } else {
        None
    }
}

fn is_credential(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.ends_with("_API_KEY") || upper.ends_with("_TOKEN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_file_takes_names_and_nothing_else() {
        let path = Path::new("/c/sandbox.yaml");
        let parse = |text: &str| OperatorEnv::parse(path, text);
        let good = parse("peers: {env: [MY_API_KEY]}\ngates:\n  env: [DATABASE_URL]\n").unwrap();
        assert_eq!(
            good,
            OperatorEnv { peers: vec!["MY_API_KEY".into()], gates: vec!["DATABASE_URL".into()] }
        );
        assert_eq!(parse("").unwrap(), OperatorEnv::default());
        for (text, word) in [
            ("backend: bwrap\n", "this version reads only"),
            ("peers: {net: host}\n", "this version reads only"),
            ("peers: {env: [LD_PRELOAD]}\n", "never passed"),
            ("peers: {env: ['A=1']}\n", "not the name"),
            ("gates: {env: [MY_API_KEY]}\n", "get none"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn what_gates_do_not_get_is_known_with_its_reason() {
        let chosen = OperatorEnv { peers: vec!["PGHOST".into()], gates: vec!["DATABASE_URL".into()] };
        assert_eq!(chosen.withheld_from_gates("DATABASE_URL"), None);
        for (name, why) in [("PGHOST", "does not list"), ("A_TOKEN", "credential"), ("LD_PRELOAD", "never")] {
            assert!(chosen.withheld_from_gates(name).unwrap().contains(why), "{name}");
        }
    }

    #[test]
    fn without_the_file_nothing_is_passed_and_a_link_to_it_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::from_pairs([("HOME", home.path())]);
        assert_eq!(OperatorEnv::load(&env).unwrap(), OperatorEnv::default());
        std::fs::create_dir_all(home.path().join(".config/peers")).unwrap();
        std::fs::write(home.path().join("elsewhere.yaml"), "peers: {env: [A]}\n").unwrap();
        let file = home.path().join(".config/peers/sandbox.yaml");
        std::os::unix::fs::symlink(home.path().join("elsewhere.yaml"), file).unwrap();
        assert_eq!(OperatorEnv::load(&env).unwrap().peers, ["A"]);
    }
}
