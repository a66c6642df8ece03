//! Old logs of loops that do not run.

use std::time::Duration;

use peers_run::boot::Finding;
use peers_sys::clock;
use peers_sys::dir::Kind;

use crate::config::ConfigDir;
use crate::refresh::Seen;
use crate::registry::{ProjectName, State};
use crate::runlog;

/// Most files that are looked at.
const FILES: usize = 10_000;

/// What was removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The logs.
    pub logs: Vec<Log>,
    /// What was left alone although it is old, for people.
    pub skipped: Vec<String>,
}

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// Removes logs that were last written before `older`: of the projects `only`, or of all and of those that are no
/// longer registered. A project that runs, or of which nobody knows, keeps its own.
///
/// # Errors
/// A [`Finding`] when the directory cannot be read, or a log not be removed.
pub fn prune(
    config: &ConfigDir,
    all: &[Seen],
    only: Option<&[ProjectName]>,
    older: Duration,
    dry_run: bool,
) -> Result<Pruned, Finding> {
    let mut pruned = Pruned::default();
    let Some(logs) = config.logs_if_any()? else { return Ok(pruned) };
    let now = clock::now();
    let listing = logs.list(FILES).map_err(|error| Finding::from(&error))?;
    let mut entries: Vec<_> = listing
        .entries
        .into_iter()
        .filter_map(|entry| Some((entry.name.into_string().ok()?, entry.kind)))
        .collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    for (file, kind) in entries {
        let owner = all.iter().find(|one| runlog::names(&one.project.log_name()).contains(&file));
        let wanted = match (owner, only) {
            (Some(one), Some(only)) => only.contains(&one.project.name),
            (None, Some(_)) => false,
            (_, None) => file.contains(".log"),
        };
        if !wanted {
            continue;
        }
        if kind != Kind::File {
            pruned.skipped.push(format!(
                "{} is not a regular file and was not changed",
                peers_sys::term::inline(&file)
            ));
            continue;
        }
        let busy = owner.is_some_and(|one| matches!(one.project.state, State::Running | State::Unknown));
        let current = owner.is_some_and(|one| one.project.log_name() == file);
        let Some(stat) = logs.stat(&file).map_err(|error| Finding::from(&error))? else { continue };
        if (busy && current) || now.since(stat.modified()) < older {
            continue;
        }
        if !dry_run {
            logs.remove_file(&file).map_err(|error| Finding::from(&error))?;
        }
        pruned.logs.push(Log { name: file, bytes: stat.size });
    }
    Ok(pruned)
}
