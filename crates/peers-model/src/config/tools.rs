//! The older form of `peers`: a mapping from names to commands.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Config, PeerSpec, Permissions, PromptMode, Role};
use crate::ids::PeerName;

/// The entries of `tools`, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools(pub Vec<PeerSpec>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    argv: Vec<String>,
    #[serde(default)]
    prompt_mode: PromptMode,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    permissions: Option<Permissions>,
}

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Tools;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping (`key: value`)")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tools, A::Error> {
                let mut peers = Vec::new();
                while let Some((name, entry)) = map.next_entry::<PeerName, Entry>()? {
                    let Entry { argv, prompt_mode, model, reasoning, provider, permissions } = entry;
                    let (tool, role) = (Some(name.as_str().to_owned()), Role::Default);
                    peers.push(PeerSpec {
                        name,
                        tool,
                        argv,
                        prompt_mode,
                        role,
                        model,
                        reasoning,
                        provider,
                        permissions,
                    });
                }
                Ok(Tools(peers))
            }
        }
        d.deserialize_map(Entries)
    }
}

impl Config {
    /// Makes each entry of `tools` a peer. That not both forms are there is checked by the reader.
    #[must_use]
    pub fn promote(mut self) -> Self {
        if self.peers.is_empty() {
            self.peers = self.tools.0.clone();
        }
        self
    }
}
