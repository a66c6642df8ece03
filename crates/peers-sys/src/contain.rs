//! Children in a container: who keeps one outside, and who is its first process inside.
//!
//! A container is made by a daemon or a monitor, so its processes are no descendants of whoever asked for it and do not
//! end with it. Therefore two processes of ours stand around the program, joined by one socket. The *keeper*, which is
//! the child that [`crate::spawn`] knows, asks for the container, hands the program's environment, command and its three
//! streams in through the socket, passes signals on and ends as the program ended. The *first process* inside starts the
//! program and ends as soon as the socket closes, whatever closed it; the kernel then ends all that is left inside. So
//! no way of ending the keeper, or whoever started it, leaves a process behind. Nothing of the program's environment
//! or output passes through the container's own tools.

mod door;
mod inside;
mod keeper;
mod wire;

pub use inside::main;
pub(crate) use keeper::keep;
pub use wire::PROTO;

/// The first argument by which a binary is asked to be the first process of a container.
pub const ENTRY: &str = "__inside";

/// The directory of the socket, inside.
pub const DOOR: &str = "/run/peers/door";

/// The label of a container that names its keeper.
pub const KEEPER_LABEL: &str = "io.peers.keeper";

use crate::identity::{ProcIdentity, is_alive};

/// The value of [`KEEPER_LABEL`] for this process.
fn own_label() -> Option<String> {
    ProcIdentity::of_self().ok()?.label()
}

/// Whether the keeper that a label names still runs. Of a label that makes no sense it does not.
#[must_use]
pub fn is_kept(label: &str) -> bool {
    ProcIdentity::of_label(label).is_some_and(|keeper| is_alive(&keeper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_one_process_and_no_later_one() {
        let own = own_label().unwrap();
        assert!(is_kept(&own));
        for other in ["", "1", "x.y.z", &own.replacen('.', ".1", 1), &format!("{own}x")] {
            assert!(!is_kept(other), "{other}");
        }
    }
}
