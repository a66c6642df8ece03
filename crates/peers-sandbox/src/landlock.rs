//! The backend `landlock`: the stub puts the rules on itself.
//!
//! A rule holds for a directory with all below it, and none takes away what another gives: what is to stay as it is
//! within a place that is written, or to be hidden in it, does not ([`super::Access::kept`], [`super::Access::hidden`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use peers_sys::confine::{Confine, Files, Filter};
use peers_sys::spawn::Spawn;

use crate::access::{Access, RESOLVING, SETTINGS, SYSTEM};

/// What of the system is read besides its programs.
const READ: [&str; 5] =
    ["/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/run/systemd/resolve", "/dev/fd"];
/// What of the system is written: terminals of one's own, memory that processes share.
const WRITTEN: [&str; 3] = ["/dev/ptmx", "/dev/pts", "/dev/shm"];

pub(crate) fn put_up(mut spawn: Spawn, access: &Access, filter: Filter) -> Spawn {
    spawn.confine = Confine { files: Some(files(access)), filter: Some(filter), apart: true };
    if let Some(scratch) = &access.scratch {
        spawn.env.push(("TMPDIR".into(), OsString::from(scratch)));
    }
    spawn
}

pub(crate) fn files(access: &Access) -> Files {
    let settings = SETTINGS.iter().chain([&RESOLVING]).map(|name| Path::new("/etc").join(name));
    let system = SYSTEM.iter().chain(&READ).map(PathBuf::from).chain(settings);
    let written = WRITTEN.iter().map(PathBuf::from);
    Files {
        read: system.chain(access.read.iter().cloned()).collect(),
        write: written.chain(access.write.iter().cloned()).chain(access.scratch.clone()).collect(),
    }
}
