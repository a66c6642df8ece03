//! What those see of the git directory of the checkout who get none of their own: all of it but the tokens.

use std::path::{Path, PathBuf};

use peers_git::{PeerRepo, readable_config};
use peers_sandbox::{Access, Mount};
use peers_sys::dir::Kind;
use peers_sys::{FileError, SafeDir};

use super::Site;

/// What is seen of configurations, in the scratch directory.
const CONFIGS: &str = "git-configs";
/// Directories of submodules below one another, at most.
const DEPTH: usize = 12;
/// Submodules that are looked for, at most.
const MODULES: usize = 1000;

impl Site {
    /// Writes what is seen of the configuration of the git directory where that is not the turn's own: no tokens.
    ///
    /// # Errors
    /// [`FileError`] if it cannot be written.
    pub(super) fn look_at_git(&self) -> Result<(), FileError> {
        if !self.spec.wall.backend().has_mounts() {
            return Ok(());
        }
        let configs = PeerRepo::open(&self.spec.repo).map(|repo| configs(&repo)).unwrap_or_default();
        let dir = self.spec.scratch.create_subdir(CONFIGS)?;
        let mut seen = Vec::new();
        for (n, inside) in configs.into_iter().enumerate() {
            let name = n.to_string();
            dir.publish_unsynced(&name, readable_config(&inside).as_bytes())?;
            seen.push(Mount { outside: dir.path().join(name), inside, writable: false });
        }
        self.git_seen.replace(seen);
        Ok(())
    }

    /// The git directory as it is, but for its configuration.
    pub(super) fn show_git(&self, access: &mut Access) {
        access.read.extend(self.spec.git.iter().cloned());
        let dot_git = self.spec.repo.join(".git");
        if self.spec.wall.backend().has_mounts() {
            access.mounts.push(Mount { outside: dot_git.clone(), inside: dot_git, writable: false });
            access.mounts.extend(self.git_seen.borrow().iter().cloned());
        } else {
            access.kept.push(dot_git);
        }
    }
}

/// The configuration files of a checkout and of its submodules.
fn configs(checkout: &PeerRepo) -> Vec<PathBuf> {
    let mut dirs = vec![checkout.common_dir().to_owned()];
    if checkout.git_dir() != checkout.common_dir() {
        dirs.push(checkout.git_dir().to_owned());
    }
    for dir in dirs.clone() {
        git_dirs(&dir.join("modules"), DEPTH, &mut dirs);
    }
    let files = dirs.iter().flat_map(|dir| ["config", "config.worktree"].map(|name| dir.join(name)));
    files.filter(|file| file.symlink_metadata().is_ok()).collect()
}

/// Adds the git directories below `dir`, which may have slashes in their names and others in them.
fn git_dirs(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(listing) = SafeDir::open_shared(dir).and_then(|dir| dir.list(MODULES)) else { return };
    for entry in listing.entries {
        let path = dir.join(entry.name);
        if depth == 0 || found.len() > MODULES || entry.kind != Kind::Dir {
            continue;
        }
        let is_one = path.join("HEAD").is_file();
        let below = if is_one { path.join("modules") } else { path.clone() };
        if is_one {
            found.push(path);
        }
        git_dirs(&below, depth.saturating_sub(1), found);
    }
}
