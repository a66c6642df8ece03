//! What an operator does to a project: a record, or a command for the loop that runs.

use peers_model::record::OperatorOp;
use peers_place::{Holder, Place, PlaceError};
use peers_store::FsDisk;
use peers_store::commands::{self, Command};
use peers_sys::clock;

use crate::cx::Cx;
use crate::error::CommandError;

/// Where an act went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
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
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Handed => "handed-to-the-loop",
            Self::Waiting { .. } => "waiting",
        }
    }

    /// For people, after a sentence.
    #[must_use]
    pub fn said(&self) -> String {
        match self {
            Self::Recorded => String::new(),
            Self::Handed => "; the running loop takes it up before its next tick".to_owned(),
            Self::Waiting { behind } => format!("; {behind}"),
        }
    }
}

/// Records an act of this command, or hands it to the loop that runs. `before` is done first, under the lock if no
/// loop runs.
///
/// # Errors
/// Another machine holds the lock, the journal or the command cannot be written, or `before` fails.
pub fn act(
    cx: &Cx,
    place: &Place,
    (command, op): (&str, OperatorOp),
    before: impl FnOnce(&mut FsDisk) -> Result<(), CommandError>,
) -> Result<Taken, CommandError> {
    cx.operators_alone(place, command)?;
    match place.lock_own(command) {
        Ok(lock) => {
            record(cx, place, op, before)?;
            drop(lock);
            Ok(Taken::Recorded)
        }
        Err(PlaceError::Locked { holder }) => {
            let mut disk = place.open_store_disk()?;
            before(&mut disk)?;
            hand_over(cx, &mut disk, op)?;
            Ok(given_to(&holder))
        }
        Err(error) => Err(error.into()),
    }
}

/// Accepts and writes a control file as one act. `accept` makes the acceptance durable, `write` puts the file
/// into its place.
///
/// No run sees a file that was not accepted. Where none runs, the file comes first: cut short, the change stands
/// there unaccepted, and `goals diff` shows it. A loop that runs is told first; it leaves the message lying until
/// the file is what was accepted, so that it takes over both or neither.
///
/// # Errors
/// Another machine holds the lock, the journal or the command cannot be written, or a step given fails.
pub fn exchange(
    cx: &Cx,
    place: &Place,
    (command, op): (&str, OperatorOp),
    accept: impl FnOnce(&mut FsDisk) -> Result<(), CommandError>,
    write: impl FnOnce(&mut FsDisk) -> Result<(), CommandError>,
) -> Result<Taken, CommandError> {
    match place.lock_own(command) {
        Ok(lock) => {
            record(cx, place, op, |disk| {
                write(disk)?;
                accept(disk)
            })?;
            drop(lock);
            Ok(Taken::Recorded)
        }
        Err(PlaceError::Locked { holder }) => {
            let mut disk = place.open_store_disk()?;
            hand_over(cx, &mut disk, op)?;
            accept(&mut disk)?;
            write(&mut disk)?;
            Ok(given_to(&holder))
        }
        Err(error) => Err(error.into()),
    }
}

/// Under the lock: what is to be done, and the record of it.
fn record(
    cx: &Cx,
    place: &Place,
    op: OperatorOp,
    before: impl FnOnce(&mut FsDisk) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    peers_place::operator::record(place, &cx.operator(), vec![op], before)
}

/// Drops the act where the loop that runs looks for it.
fn hand_over(cx: &Cx, disk: &mut FsDisk, op: OperatorOp) -> Result<(), CommandError> {
    let (by, at) = (cx.operator(), clock::now());
    let random = peers_sys::rand::hex::<6>()
        .map_err(|error| CommandError::new(peers_model::exit::BUG, format!("random bytes: {error}")))?;
    let id = format!("{:013}-{random}", at.as_millis());
    commands::drop_command(disk, &id, &Command { v: 1, op, by, at })?;
    Ok(())
}

/// Where an act went that somebody else holds the lock for.
fn given_to(holder: &Holder) -> Taken {
    if holder.command.is_none() && holder.run_id.is_some() {
        Taken::Handed
    } else {
        Taken::Waiting { behind: behind(holder) }
    }
}

/// Who holds the lock where that is no run that has begun, and what follows.
fn behind(holder: &Holder) -> String {
    match &holder.command {
        Some(_) => format!("{holder}, so it waits; the next run takes it up"),
        None => format!(
            "another process holds the lock of this repository ({holder}): a run applies this before its next tick; otherwise the next run does"
        ),
    }
}
