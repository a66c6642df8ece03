//! Who asks: a person, or something that a running loop started.
//!
//! An agent has the rights of the operator, so this is a rail and no wall. What it stops is the agent
//! that simply runs the command; what got past it is named by status and report.

use peers_model::exit;
use peers_place::{Homes, Place, held_locks};
use peers_store::layout;
use peers_store::{Area, Disk as _};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::term;

use crate::cx::Cx;
use crate::error::CommandError;

/// Processes between this one and the loop that are looked at.
const GENERATIONS: usize = 128;
/// A file of the kernel about a process is shorter.
const STAT: u64 = 4096;

/// Refuses an act of the operator that comes out of a turn or a gate of any project of this user: who may command
/// every loop is no agent.
///
/// # Errors
/// Exit code 5.
pub fn no_run(env: &Env, command: &str) -> Result<(), CommandError> {
    let Some(how) = inside_any(env) else { return Ok(()) };
    Err(CommandError::new(
        exit::REFUSED,
        format!("`peers-ctl {command}` is for the operator alone, and this call comes from inside a run ({how})"),
    )
    .hint("agents: hand off with a trailer `Goal-Proposal: <what should change>`. Operators: use a terminal that no run started"))
}

/// By what it is seen that this process belongs to a run, of whatever project.
fn inside_any(env: &Env) -> Option<String> {
    if let Some(name) = ["PEERS_IN_TICK", "PEERS_RUN_ID"].into_iter().find(|name| env.var(name).is_some()) {
        return Some(format!("{name} is set"));
    }
    let held = held_locks(&Homes::of(env).ok()?);
    if held.is_empty() {
        return None;
    }
    // A lock can name anybody, and anybody can open it; only who holds it is its loop.
    let has = |pid: &u32| {
        let process = i32::try_from(*pid).ok().and_then(peers_sys::identity::Pid::new);
        process.is_some_and(|process| held.iter().any(|lock| peers_sys::identity::has_locked(process, *lock)))
    };
    ancestors().find(has).map(|pid| format!("process {pid}, which holds a run lock, started it"))
}

impl Cx {
    /// Refuses an act of the operator that comes out of a turn or a gate of this project.
    ///
    /// # Errors
    /// Exit code 5.
    pub fn operators_alone(&self, place: &Place, command: &str) -> Result<(), CommandError> {
        let Some(how) = self.inside(place) else { return Ok(()) };
        Err(CommandError::new(
            exit::REFUSED,
            format!("`peers {command}` is for the operator alone, and this call comes from inside a run of this project ({how})"),
        )
        .hint("agents: hand off with a trailer `Goal-Proposal: <what should change>`. Operators: use a terminal that the run did not start"))
    }

    /// [`Cx::operators_alone`] where the place may not be known yet.
    ///
    /// # Errors
    /// Exit code 5.
    pub fn operators_alone_here(&self, command: &str) -> Result<(), CommandError> {
        // Whoever goes on says what is wrong with the place.
        self.place().map_or(Ok(()), |place| self.operators_alone(&place, command))
    }

    /// By what it is seen that this process belongs to a run of the project.
    fn inside(&self, place: &Place) -> Option<String> {
        if self.env.text("PEERS_IN_TICK") == Some(place.id().as_str()) {
            return Some("PEERS_IN_TICK names it".to_owned());
        }
        if let Some(run) = self.env.text("PEERS_RUN_ID")
            && let Ok(run) = peers_model::RunId::new(run)
            && let Ok(mut disk) = place.open_view_disk()
            && disk.len(Area::Store, &layout::run_record(&run)).is_ok_and(|len| len.is_some())
        {
            return Some("PEERS_RUN_ID names one of its runs".to_owned());
        }
        let holder = place.holder().ok().flatten()?;
        // A lock can name anybody, such as the first process of the machine; only who holds it is its loop.
        let pid = ancestors().find(|pid| holds_lock(place, *pid, holder.pid))?;
        let run = holder.run_id.map(|run| format!(" of run {}", term::line(&run, 40)));
        Some(format!("process {pid}{} started it", run.unwrap_or_default()))
    }
}

/// Whether this process holds the run lock. Where the system does not tell, the one that it names does.
fn holds_lock(place: &Place, pid: u32, named: Option<u32>) -> bool {
    if !cfg!(target_os = "linux") {
        return named == Some(pid);
    }
    let store = place.view_store().ok().flatten();
    let lock = store.and_then(|store| store.stat(layout::store::RUN_LOCK).ok().flatten());
    let pid = i32::try_from(pid).ok().and_then(peers_sys::identity::Pid::new);
    pid.zip(lock).is_some_and(|(pid, lock)| peers_sys::identity::has_locked(pid, lock.id))
}

/// The processes above this one, the nearest first. A loop adopts what its agents leave behind, so a
/// detached child of an agent has it among them too. Empty where the system does not tell.
fn ancestors() -> impl Iterator<Item = u32> {
    let mut next = parent(std::process::id());
    std::iter::from_fn(move || {
        let pid = next?;
        next = parent(pid);
        Some(pid)
    })
    .take(GENERATIONS)
}

fn parent(pid: u32) -> Option<u32> {
    let dir = SafeDir::open_shared(format!("/proc/{pid}")).ok()?;
    parse(&dir.read("stat", STAT).ok()?)
}

/// The second field behind the name, which stands in parentheses and may hold anything.
fn parse(stat: &[u8]) -> Option<u32> {
    let close = stat.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pretend_another_parent() {
        assert_eq!(parse(b"42 (sh) S 7 42 41 0"), Some(7));
        assert_eq!(parse(b"42 (a) S 1 (b) S 9 1 1"), Some(9));
        assert_eq!(parse(b"1 (init) S 0 1 1"), None);
        assert_eq!(parse(b"42 (sh"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_parent_of_this_process_is_its_first_ancestor() {
        assert_eq!(ancestors().next(), Some(std::os::unix::process::parent_id()));
    }
}
