//! What an operator does to a project: a record, or a command for the loop that runs.

use peers_model::record::{OperatorOp, OperatorRecord, Record};
use peers_run::place::{Holder, Place, PlaceError};
use peers_store::commands::{self, Command};
use peers_store::{FsDisk, Store, projection};
use peers_sys::clock;

use crate::cx::Cx;
use crate::error::CommandError;

/// Where an act went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It stands in the journal.
    Recorded,
    /// A loop runs: it takes the act up at its next tick boundary.
    Handed,
    /// Somebody else holds the lock, such as `land`: the next run takes the act up.
    Waiting {
        /// Who, for people.
        behind: String,
    },
}

impl Taken {
    /// The word in JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Handed => "handed-to-the-loop",
            Self::Waiting { .. } => "waiting",
        }
    }

    /// For people, after a sentence.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Recorded => String::new(),
            Self::Handed => "; the running loop takes it up before its next tick".to_owned(),
            Self::Waiting { behind } => format!("; {behind}"),
        }
    }
}

/// Records an act of this command, or hands it to the loop that runs. `before` is done first, under the lock if no
/// loop runs.
pub(crate) fn act(
    cx: &Cx,
    place: &Place,
    (command, op): (&str, OperatorOp),
    before: impl FnOnce(&mut FsDisk) -> Result<(), CommandError>,
) -> Result<Taken, CommandError> {
    let by = cx.operator();
    let at = clock::now();
    match place.lock(command) {
        Ok(lock) => {
            let (mut store, _) = Store::open(place.open_store_disk()?)?;
            // What was handed to a loop that ended before it took it comes first.
            commands::record_waiting(&mut store, at, None)?;
            before(store.disk())?;
            store.append(at, None, &[Record::Operator(OperatorRecord { op, by })])?;
            store.write_snapshot()?;
            let (state, position) = (store.state().clone(), store.position().clone());
            // For people: the next run writes it anyway.
            if let Err(error) = projection::write_state(store.disk(), &state, &position) {
                tracing::warn!(%error, "state.json was not written");
            }
            drop(lock);
            Ok(Taken::Recorded)
        }
        Err(PlaceError::Locked { holder }) if !holder.foreign => {
            let mut disk = place.open_store_disk()?;
            before(&mut disk)?;
            let random = peers_sys::rand::hex::<6>().map_err(|error| {
                CommandError::new(peers_model::exit::BUG, format!("random bytes: {error}"))
            })?;
            let id = format!("{:013}-{random}", at.as_millis());
            commands::drop_command(&mut disk, &id, &Command { v: 1, op, by, at })?;
            Ok(if holder.command.is_none() && holder.run_id.is_some() {
                Taken::Handed
            } else {
                Taken::Waiting { behind: behind(&holder) }
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Who holds the lock where that is no run that has begun, and what follows.
fn behind(holder: &Holder) -> String {
    match &holder.command {
        Some(_) => format!("{holder}, so it waits; the next run takes it up"),
        None => format!(
            "somebody holds the lock of this repository ({holder}): if that is a run, it takes it up before its next tick, else the next run does"
        ),
    }
}
