//! The files of accepted modes, which their gates may need.

use std::sync::Arc;

use peers_model::exit;
use peers_store::Disk;
use peers_store::accept::{self, AcceptedMode};
use peers_sys::term;

use super::finding::Finding;
use crate::procs::ModeFiles;

/// Reads the files of the accepted modes.
///
/// # Errors
/// A [`Finding`] where one is gone, or is not what was accepted.
pub fn mode_files<D: Disk>(disk: &mut D, modes: &[AcceptedMode]) -> Result<ModeFiles, Finding> {
    let mut found = ModeFiles::new();
    for mode in modes.iter().filter(|mode| !mode.files.is_empty()) {
        let files = accept::read_mode(disk, mode)?;
        if peers_modes::digest(&files) != mode.sha256 {
            let name = term::line(&mode.name, 80);
            return Err(Finding::new(
                exit::REFUSED,
                format!(
                    "the files of the mode `{name}` in the trusted store are not those that were accepted"
                ),
                "set up again from your own copy of the mode: `peers init --force --modes A,B`",
            ));
        }
        let files = Arc::new(files);
        found.extend(mode.gates.iter().map(|gate| (gate.clone(), Arc::clone(&files))));
    }
    Ok(found)
}
