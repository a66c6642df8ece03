//! What a new configuration gets that fits this machine and this repository.

use peers_modes::{CONFIG, config_with_budget, setup};
use peers_store::layout::peers;
use peers_sys::env::Env;

use super::Site;
use crate::{ScaffoldError, codex, programs};

impl Site {
    /// Whether the configuration is a new one.
    pub(super) fn is_configured_anew(&self) -> Result<bool, ScaffoldError> {
        let there = match &self.kept {
            Some(dir) => dir.stat(peers::CONFIG)?.is_some(),
            None => false,
        };
        // One that an `init` laid down before it was cut short is told from another by what this one would write.
        Ok((!there || self.unfinished) && self.accepted_bytes[0].is_none())
    }

    /// Writes what fits this machine and this repository into a configuration that is new: the model of codex,
    /// and the usual `setup` for the commands of the gates.
    pub(super) fn propose(&mut self, env: &Env) -> Result<(), ScaffoldError> {
        if !self.is_configured_anew()? {
            return Ok(());
        }
        let base = self.configured.as_deref().unwrap_or(CONFIG);
        if let Some((text, said)) = codex::pinned(base, env) {
            self.configured = Some(text);
            self.proposed.push(said);
        }
        if let Some(modes) = &self.modes {
            let base = self.configured.as_deref().unwrap_or(CONFIG);
            self.configured = Some(config_with_budget(base, modes.budget));
        }
        let commands: Vec<&str> = self.template.asked.iter().map(String::as_str).collect();
        if commands.is_empty() {
            return Ok(());
        }
        self.proposed.extend(programs::missing(&commands, env));
        let base = self.configured.as_deref().unwrap_or(CONFIG);
        let proposed = setup::usual(&self.work, &commands, &setup::installed(env));
        if let Some((line, text)) =
            proposed.and_then(|line| setup::write(base, &line).map(|text| (line, text)))
        {
            self.configured = Some(text);
            self.proposed.push(format!(
                "each clean checkout is set up by `{line}` before the tests run there (`setup` in .peers/config.yaml)"
            ));
        }
        Ok(())
    }
}
