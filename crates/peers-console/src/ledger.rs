//! The bug ledger of a place: what commit messages report, resolve and verify.

use std::path::Path;

use peers_checks::{Asked, CheckCx, read_ledger};
use peers_core::bugs::Ledger;
use peers_place::Place;
use peers_store::FsDisk;

use crate::cx::Cx;

/// The ledger at HEAD of a place that is set up.
///
/// # Errors
/// Why the repository or its history cannot be read, for people.
pub fn ledger(place: &Place, disk: &mut FsDisk, cx: &Cx) -> Result<Ledger, String> {
    ledger_at(place, place.work_dir(), disk, cx)
}

/// The ledger at HEAD of a work tree of a place.
///
/// # Errors
/// Why the repository or its history cannot be read, for people.
pub fn ledger_at(place: &Place, repo: &Path, disk: &mut FsDisk, cx: &Cx) -> Result<Ledger, String> {
    let control = cx.control(place).map_err(|error| error.render().trim_end().to_owned())?;
    let asked = Asked { repo, control, head: None, base: None };
    let opened = CheckCx::open(asked, Some(disk)).map_err(|why| why.to_string())?;
    read_ledger(&opened).map(|reading| reading.ledger).map_err(|why| why.to_string())
}
