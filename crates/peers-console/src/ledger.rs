//! The bug ledger of a place: what commit messages report, resolve and verify.

use std::path::Path;

use peers_checks::{Asked, CheckCx, read_ledger};
use peers_core::bugs::Ledger;
use peers_git::ControlDir;
use peers_place::Place;
use peers_store::FsDisk;

use crate::cx::Cx;
use crate::error::CommandError;

/// The ledger at HEAD of a place that is set up.
///
/// # Errors
/// Why the repository or its history cannot be read, for people.
pub fn ledger(place: &Place, disk: &mut FsDisk, cx: &Cx) -> Result<Ledger, String> {
    at(place.work_dir(), cx.control(place), disk)
}

/// The ledger at HEAD of a work tree, with the control directory of its place.
///
/// # Errors
/// Why the control directory, the repository or its history cannot be read, for people.
pub(crate) fn at(
    repo: &Path,
    control: Result<Option<ControlDir>, CommandError>,
    disk: &mut FsDisk,
) -> Result<Ledger, String> {
    let control = control.map_err(|error| error.render().trim_end().to_owned())?;
    let asked = Asked { repo, control, head: None, base: None };
    let opened = CheckCx::open(asked, Some(disk)).map_err(|why| why.to_string())?;
    read_ledger(&opened).map(|reading| reading.ledger).map_err(|why| why.to_string())
}
