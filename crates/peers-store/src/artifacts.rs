//! Logs for people: prompts and outputs, within a byte budget.

use peers_model::TickNo;
use peers_model::verdict::Place;

use crate::disk::{Area, Disk, DiskError};
use crate::layout;

/// The directories that share the budget.
const GROUPS: [&str; 4] = [
    layout::peers::LOG_PEERS,
    layout::peers::LOG_PROMPTS,
    layout::peers::LOG_GATES,
    layout::peers::LOG_HOOKS,
];

/// Name of a per-tick file: `tick-00012-claude.stdout.log`.
#[must_use]
pub fn tick_file(tick: TickNo, who: &str, suffix: &str) -> String {
    format!("tick-{:05}-{who}{suffix}", tick.0)
}

/// How the name of a gate's log ends, by where it ran.
#[must_use]
pub fn gate_log_suffix(place: Place) -> &'static str {
    match place {
        Place::Live => ".log",
        Place::GateTree => ".tree.log",
        Place::Pristine => ".proof.log",
    }
}

/// Deletes the oldest files until all logs together fit into `budget` bytes. Returns how many went.
///
/// # Errors
/// [`DiskError`].
pub fn enforce_budget<D: Disk>(disk: &mut D, budget: u64) -> Result<usize, DiskError> {
    let mut files = Vec::new();
    let mut total: u64 = 0;
    for group in GROUPS {
        for name in disk.list(Area::Peers, group)? {
            let path = format!("{group}/{name}");
            if let Some(size) = disk.len(Area::Peers, &path)? {
                total = total.saturating_add(size);
                files.push((name, path, size));
            }
        }
    }
    // Names carry the tick number, so their order is their age.
    files.sort();
    let mut removed = 0;
    for (_, path, size) in files {
        if total <= budget {
            break;
        }
        disk.remove(Area::Peers, &path)?;
        total = total.saturating_sub(size);
        removed += 1;
    }
    Ok(removed)
}
