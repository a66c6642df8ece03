//! Operator commands for a running loop: dropped as files, taken at the next tick boundary.

use peers_model::record::{OperatorOp, OperatorRecord, Record};
use peers_model::{RunId, Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk};
use crate::store::{Store, StoreError};
use crate::{json, layout};

/// The newest version of the file.
const VERSION: u32 = 1;
/// How the names of commands end.
const SUFFIX: &str = ".json";

/// `commands/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Version.
    pub v: u32,
    /// What is asked.
    pub op: OperatorOp,
    /// Login name of who asks.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What lies in the directory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiting {
    /// Commands in order: file name and record.
    pub commands: Vec<(String, OperatorRecord)>,
    /// A sentence for each file that could not be read and was moved aside.
    pub aside: Vec<String>,
}

/// Drops a command. `id` sorts by time and is unique.
///
/// # Errors
/// [`StoreError`].
pub fn drop_command<D: Disk>(disk: &mut D, id: &str, command: &Command) -> Result<(), StoreError> {
    let path = format!("{}/{id}{SUFFIX}", layout::store::COMMANDS);
    let bytes = serde_json::to_vec(command).map_err(|e| StoreError::File {
        path: path.clone(),
        what: format!("cannot be written: {e}"),
        remedy: None,
    })?;
    disk.publish(Area::Store, &path, &bytes, true)?;
    Ok(())
}

/// What waits, in order: file name and record. What [`take`] moved aside is told as a warning.
///
/// # Errors
/// [`StoreError`].
pub fn waiting<D: Disk>(disk: &mut D) -> Result<Vec<(String, OperatorRecord)>, StoreError> {
    let Waiting { commands, aside } = take(disk)?;
    for what in aside {
        tracing::warn!("{what}");
    }
    Ok(commands)
}

/// What waits. A file that cannot be read, whatever it is, is moved aside under a free name, so that it
/// neither blocks nor vanishes.
///
/// # Errors
/// [`StoreError`] when the directory cannot be read, or a file not be moved.
pub fn take<D: Disk>(disk: &mut D) -> Result<Waiting, StoreError> {
    let dir = layout::store::COMMANDS;
    let mut found = Waiting::default();
    for name in disk.make_printable(Area::Store, dir, ".bad")? {
        found.aside.push(sentence(&name, "its name is not UTF-8"));
    }
    for name in disk.irregular(Area::Store, dir)?.into_iter().filter(|name| name.ends_with(SUFFIX)) {
        found.aside.push(set_aside(disk, &name, "it is not a regular file")?);
    }
    for name in disk.list(Area::Store, dir)? {
        if !name.ends_with(SUFFIX) {
            continue;
        }
        match read(disk, &name) {
            Ok(Some(command)) => {
                found.commands.push((name, OperatorRecord { op: command.op, by: command.by }));
            }
            Ok(None) => {}
            Err(error) => {
                let why = error.to_string();
                found.aside.push(set_aside(disk, &name, &why)?);
            }
        }
    }
    Ok(found)
}

/// What waits, in order, for whoever only looks: nothing is moved, and what cannot be read is left out.
pub fn look<D: Disk>(disk: &mut D) -> Vec<OperatorRecord> {
    let names = disk.list(Area::Store, layout::store::COMMANDS).unwrap_or_default();
    let read = |name: &String| read(disk, name).ok().flatten();
    let commands = names.iter().filter(|name| name.ends_with(SUFFIX)).filter_map(read);
    commands.map(|command| OperatorRecord { op: command.op, by: command.by }).collect()
}

/// Records what waits where no loop takes it any more, oldest first. Returns how many.
///
/// `run` is the run that was live when it was given, if that is known.
///
/// # Errors
/// [`StoreError`].
pub fn record_waiting<D: Disk>(
    store: &mut Store<D>,
    at: Timestamp,
    run: Option<&RunId>,
) -> Result<usize, StoreError> {
    let waiting = waiting(store.disk())?;
    for (name, record) in &waiting {
        store.append(at, run, &[Record::Operator(record.clone())])?;
        remove(store.disk(), std::slice::from_ref(name))?;
    }
    if !waiting.is_empty() {
        // A cache of the journal, where these stand: whoever is told that it failed would give them twice.
        let _cached = store.write_snapshot();
    }
    Ok(waiting.len())
}

/// Whether a command of a newer program waits: to be asked before a start, which such a command forbids.
///
/// # Errors
/// [`StoreError::Newer`], or when the directory cannot be read.
pub fn refuse_newer<D: Disk>(disk: &mut D) -> Result<(), StoreError> {
    for name in disk.list(Area::Store, layout::store::COMMANDS)? {
        if name.ends_with(SUFFIX)
            && let Err(error @ StoreError::Newer { .. }) = read(disk, &name)
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Removes recorded commands.
///
/// # Errors
/// [`StoreError`].
pub fn remove<D: Disk>(disk: &mut D, names: &[String]) -> Result<(), StoreError> {
    for name in names {
        disk.remove(Area::Store, &format!("{}/{name}", layout::store::COMMANDS))?;
    }
    Ok(())
}

fn read<D: Disk>(disk: &mut D, name: &str) -> Result<Option<Command>, StoreError> {
    let path = format!("{}/{name}", layout::store::COMMANDS);
    json::read(disk, &path, (limits::STORE_FILE, VERSION), "give the command again")
}

fn set_aside<D: Disk>(disk: &mut D, name: &str, why: &str) -> Result<String, StoreError> {
    let path = format!("{}/{name}", layout::store::COMMANDS);
    let free = json::free_beside(disk, &path)?;
    disk.rename(Area::Store, &path, &free)?;
    Ok(sentence(free.rsplit('/').next().unwrap_or(&free), why))
}

fn sentence(kept: &str, why: &str) -> String {
    peers_sys::term::line(
        &format!("a command of the operator was not taken ({why}); it is kept as commands/{kept}"),
        400,
    )
}
