//! The operator's hooks around a commit, where the operator wants them to run in turns.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::state::TurnGit;
use crate::error::GitError;
use crate::files;
use crate::place::{Content, Place};
use crate::repo::PeerRepo;

/// Those that look at a commit that is being made.
const HOOKS: [&str; 3] = ["pre-commit", "prepare-commit-msg", "commit-msg"];
const HOOK_CAP: u64 = 1 << 20;

/// Takes them over. One in the work tree is called where it lies: it may need what lies beside it.
pub(super) fn write(turn: &TurnGit, checkout: &PeerRepo, path: Option<PathBuf>) -> Result<(), GitError> {
    let usual = || checkout.common_dir().join("hooks");
    let dir = path.map_or_else(usual, |path| checkout.work_dir().join(path));
    let mut place = Place::ours(&turn.git_dir())?;
    for name in HOOKS {
        let path = dir.join(name);
        // A link to a program is as good.
        let Ok(target) = files::canonical(&path) else { continue };
        if !target.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0) {
            continue;
        }
        let inside = target.starts_with(checkout.work_dir()) && !target.starts_with(checkout.common_dir());
        let bytes = if inside {
            calling(&path)
        } else {
            let Some(bytes) = files::small(&target, HOOK_CAP)? else { continue };
            bytes
        };
        let _stat = place
            .write(format!("hooks/{name}").as_bytes(), &Content::File { bytes: &bytes, executable: true })?;
    }
    Ok(())
}

fn calling(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.as_os_str().as_bytes().split(|b| *b == b'\'').collect();
    [b"#!/bin/sh\nexec '", parts.join(&b"'\\''"[..]).as_slice(), b"' \"$@\"\n"].concat()
}
