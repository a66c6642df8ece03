//! What every subcommand is given: the registry, the terminal, and the forms in which results are told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::Out;
use peers_fleet::refresh::{self, Seen};
use peers_fleet::registry::{self, Loaded, Warning};
use peers_fleet::select::Selection;
use peers_fleet::{ConfigDir, Project, ProjectName};
use peers_model::command::Step;
use peers_model::exit;
use peers_sys::clock;
use peers_sys::env::Env;
use serde::Serialize;
use serde_json::json;

/// What every subcommand is given.
#[derive(Debug, Clone)]
pub(crate) struct Ctl {
    /// The environment.
    pub(crate) env: Env,
    /// The terminal.
    pub(crate) out: Out,
    /// The directory that the command line names.
    pub(crate) config_dir: Option<PathBuf>,
    /// The result is wanted as JSON.
    pub(crate) json: bool,
    /// Nothing but results and errors is said.
    pub(crate) quiet: bool,
    /// The registry is taken as it is.
    pub(crate) as_it_is: bool,
    /// Another controller is waited for so long.
    pub(crate) wait: Duration,
}

impl Ctl {
    /// The config directory. One that the operator names has to be there.
    pub(crate) fn config(&self) -> Result<ConfigDir, CommandError> {
        let named = self.config_dir.is_some()
            || self.env.text(peers_fleet::config::CONFIG_DIR).is_some_and(|dir| !dir.is_empty());
        if named && ConfigDir::look(self.config_dir.as_deref(), &self.env).map_err(failed)?.is_none() {
            let path = ConfigDir::path(self.config_dir.as_deref(), &self.env).map_err(failed)?;
            let shown = peers_sys::term::quoted(&path.to_string_lossy());
            return Err(CommandError::new(exit::INVALID, format!("there is no registry in {shown}"))
                .hint("`peers-ctl new` and `peers-ctl add` make one there"));
        }
        self.config_made()
    }

    /// The config directory, made where it is missing.
    pub(crate) fn config_made(&self) -> Result<ConfigDir, CommandError> {
        ConfigDir::open(self.config_dir.as_deref(), &self.env).map_err(failed)
    }

    /// The registry as it stands in its file. What is odd about it is told.
    pub(crate) fn registry(&self, config: &ConfigDir) -> Result<Loaded, CommandError> {
        let loaded = registry::load(config).map_err(failed)?;
        self.warn(&loaded.warnings);
        Ok(loaded)
    }

    /// The projects that are meant.
    pub(crate) fn names(
        &self,
        config: &ConfigDir,
        selection: &Selection,
    ) -> Result<Vec<ProjectName>, CommandError> {
        self.bring_up(config, selection)?;
        let loaded = self.registry(config)?;
        selection.of(&loaded.registry, here().as_deref()).map_err(failed)
    }

    /// Looks at all projects where some are chosen by their state, so that it is the state that they are in.
    pub(crate) fn bring_up(&self, config: &ConfigDir, selection: &Selection) -> Result<(), CommandError> {
        if !selection.states.is_empty() && !self.as_it_is {
            let (_, warnings) = refresh::refresh(config, &self.env, |_| true).map_err(failed)?;
            self.warn(&warnings);
        }
        Ok(())
    }

    /// The projects that are meant, looked at now.
    pub(crate) fn seen(
        &self,
        config: &ConfigDir,
        wanted: impl Fn(&Project) -> bool,
    ) -> Result<(Vec<Seen>, Vec<Warning>), CommandError> {
        if self.as_it_is {
            return refresh::as_it_is(config, wanted).map_err(failed);
        }
        refresh::refresh(config, &self.env, wanted).map_err(failed)
    }

    /// The same of those with these names.
    pub(crate) fn seen_of(
        &self,
        config: &ConfigDir,
        names: &[ProjectName],
    ) -> Result<(Vec<Seen>, Vec<Warning>), CommandError> {
        let names: BTreeSet<&ProjectName> = names.iter().collect();
        self.seen(config, |project| names.contains(&project.name))
    }

    /// What the subcommands of `peers` are given, for this project.
    pub(crate) fn cx(&self, project: &Project) -> Cx {
        let target = PathBuf::from(&project.path);
        let out = Out::new(&self.env, crate::board::spelling(self, project));
        Cx { env: self.env.clone(), out, target, project: project.project_id.clone() }
    }

    /// What went wrong with this project, with commands that work from everywhere.
    pub(crate) fn about(&self, project: &Project, error: CommandError) -> CommandError {
        error.spelt(&crate::board::spelling(self, project))
    }

    /// The same for the project of this name.
    pub(crate) fn about_name(&self, name: &ProjectName, error: CommandError) -> CommandError {
        // Without the registry the texts stay as they are: they are true all the same.
        let project = self.config().ok().and_then(|config| peers_fleet::start::project(&config, name).ok());
        match project {
            Some(project) => self.about(&project, error),
            None => error,
        }
    }

    /// Tells what is odd, unless JSON carries it.
    pub(crate) fn warn(&self, warnings: &[Warning]) {
        if self.json || self.quiet {
            return;
        }
        for warning in warnings {
            self.out.talk(&format!("warning: {}", warning.message));
        }
    }

    /// The same of processes that this look ended; what else is odd is said already.
    pub(crate) fn warn_ended(&self, warnings: &[Warning]) {
        self.warn(&Self::ended_of(warnings));
    }

    /// Those of them that say which processes were ended.
    pub(crate) fn ended_of(warnings: &[Warning]) -> Vec<Warning> {
        let ended = warnings.iter().filter(|warning| warning.code == refresh::LEFTOVERS_ENDED);
        ended.cloned().collect()
    }

    /// Says something to a person, unless nobody wants to hear it.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet && !self.json {
            self.out.talk(text);
        }
    }

    /// One of our own sentences with its values, its commands as they are typed here, see [`Step::text`].
    pub(crate) fn spelt(&self, sentence: &'static str, values: &[&str]) -> String {
        self.out.spelling().tell(&Step::text(sentence, values))
    }

    /// A command whose only output is for another program has no JSON.
    pub(crate) fn refuse_json(&self, command: &str) -> Result<(), CommandError> {
        if !self.json {
            return Ok(());
        }
        Err(CommandError::usage(format!("`{command}` has no JSON: what it prints is read by other programs"))
            .hint("leave out --json"))
    }

    /// Writes the result for machines.
    pub(crate) fn document<T: Serialize>(
        &self,
        command: &str,
        data: &T,
        warnings: &[Warning],
    ) -> Result<(), CommandError> {
        let warnings: Vec<_> = warnings
            .iter()
            .map(|warning| json!({"code": warning.code, "message": warning.message, "project": warning.project}))
            .collect();
        let body = json!({"generated_at": clock::now(), "data": data, "warnings": warnings});
        self.out.json(&format!("peers-ctl.{command}/1"), &body)
    }
}

/// A finding as the failure of a command.
pub(crate) fn failed(finding: peers_run::boot::Finding) -> CommandError {
    peers_run::boot::BootError::from(finding).into()
}

/// The directory in which the command was given.
pub(crate) fn here() -> Option<PathBuf> {
    let here = peers_sys::env::current_dir().ok()?;
    Some(Path::new(&here).canonicalize().unwrap_or(here))
}
