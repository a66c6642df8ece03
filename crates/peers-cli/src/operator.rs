//! What an operator does to a project: a record, or a command for the loop that runs.

use peers_model::record::{OperatorOp, OperatorRecord, Record};
use peers_run::place::{Place, PlaceError};
use peers_store::commands::{self, Command};
use peers_store::{FsDisk, Store, projection};
use peers_sys::clock;

use crate::cx::Cx;
use crate::error::CommandError;

/// Where an act went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It stands in the journal.
    Recorded,
    /// A loop runs: it takes the act up at its next tick boundary.
    Handed,
}

impl Taken {
    /// The word in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Handed => "handed-to-the-loop",
        }
    }

    /// For people, after a sentence.
    pub(crate) fn said(self) -> &'static str {
        match self {
            Self::Recorded => "",
            Self::Handed => "; the running loop takes it up before its next tick",
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
            Ok(Taken::Handed)
        }
        Err(error) => Err(error.into()),
    }
}
