//! A loop that runs, and whose directory was moved or removed.

use peers_console::error::CommandError;
use peers_fleet::Project;
use peers_fleet::observe::{Observation, PathSeen, Probe};
use peers_model::command::Step;
use peers_model::exit;
use peers_sys::term;
use peers_view::Adrift;

/// What holds its run lock, where its directory is gone.
pub(crate) fn of(seen: &Observation) -> Option<Adrift> {
    match (&seen.path, &seen.probe) {
        (PathSeen::Missing, Probe::Alive(holder)) => {
            Some(Adrift { pid: holder.pid, run_id: holder.run_id.clone() })
        }
        _ => None,
    }
}

/// The refusal of a command that has to look into that directory.
///
/// # Errors
/// Exit code 3 where that is so.
pub(crate) fn refuse(project: &Project, seen: &Observation) -> Result<(), CommandError> {
    let Some(Adrift { pid, .. }) = of(seen) else { return Ok(()) };
    let name = &project.name;
    let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let message = format!("{name} runs{process}, and its directory is gone: {}", term::inline(&project.path));
    Err(CommandError::new(exit::INVALID, message).hint(Step::text(
        "`peers-ctl stop {}` ends it; if the directory was moved: `peers-ctl remove {}` then, and `peers-ctl add NEW-PATH --name {}`",
        &[name.as_str(); 3],
    )))
}
