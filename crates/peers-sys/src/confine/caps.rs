//! What the administrator may do and no one else: given up.
//!
//! A plain user has none of it. A process of root that keeps it looks into others past Landlock.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

pub(super) fn give_up() -> io::Result<()> {
    if capabilities(None)?.permitted.is_empty() {
        return Ok(());
    }
    // Else the next program of root has all again.
    for one in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(one) {
            // This kernel does not know it.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
