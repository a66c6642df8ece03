//! Settings of build tools outside of the repository that decide what a gate runs.
//!
//! Gates have an empty home, but are told where the homes of build tools are: a setting there (`runner` of
//! cargo, the default toolchain of rustup) is a part of every gate. They are what they were when the run
//! began, or the run stops. Programs and caches there are not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use peers_model::limits;
use peers_store::layout;
use peers_sys::digest::sha256_hex;
use peers_sys::{SafeDir, term};
use serde::{Deserialize, Serialize};

/// A longer one is known by size and time of change.
const CAP: u64 = 1 << 20;
const VERSION: u32 = 1;
const ABSENT: &str = "absent";

/// The settings that are watched, as they were.
#[derive(Debug, Default)]
pub struct ToolHomes {
    known: BTreeMap<PathBuf, String>,
    /// Of these a run that was killed knew something else than there was when this one began.
    before: BTreeSet<PathBuf>,
}

/// As it is kept for the run that comes after one that was killed.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    v: u32,
    files: BTreeMap<String, String>,
}

impl ToolHomes {
    /// Looks at these files.
    #[must_use]
    pub fn look(files: Vec<PathBuf>) -> Self {
        let known = files.into_iter().map(|path| (path.clone(), state(&path))).collect();
        Self { known, before: BTreeSet::new() }
    }

    /// The same as a killed run knew it: nobody has looked since.
    #[must_use]
    pub fn as_kept_in(mut self, store: &SafeDir) -> Self {
        let read = store.read_opt(layout::store::TOOL_HOMES, limits::STORE_FILE).ok().flatten();
        let kept = read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        for (path, before) in kept.filter(|kept| kept.v == VERSION).into_iter().flat_map(|kept| kept.files) {
            let path = PathBuf::from(path);
            if let Some(known) = self.known.get_mut(&path)
                && *known != before
            {
                *known = before;
                self.before.insert(path);
            }
        }
        self
    }

    /// Keeps it for the next run, in case this one is killed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep(&self, store: &SafeDir) -> Result<(), peers_sys::FileError> {
        let files =
            self.known.iter().map(|(path, state)| (path.to_string_lossy().into_owned(), state.clone()));
        let kept = Kept { v: VERSION, files: files.collect() };
        // Texts always fit.
        let bytes = serde_json::to_vec_pretty(&kept).unwrap_or_default();
        store.publish(layout::store::TOOL_HOMES, &bytes)
    }

    /// The first that is not what it was when the run began.
    pub(crate) fn changed(&self) -> Option<String> {
        let Changed { path, what, before } = self.first_changed()?;
        let since = if before { "the run that was killed began" } else { "the run began" };
        Some(format!(
            "{path}, which decides what build tools do in gates, {what} since {since}\nlook at it, put it \
             back unless it is yours, and start again"
        ))
    }

    /// The first that is not what it was when a command began that runs gates outside of a loop.
    #[must_use]
    pub fn changed_meanwhile(&self) -> Option<String> {
        let Changed { path, what, .. } = self.first_changed()?;
        Some(format!(
            "tamper:tool-home: {path}, which decides what build tools do in gates, {what} while gates ran, so \
             that none of their answers stands"
        ))
    }

    fn first_changed(&self) -> Option<Changed> {
        self.known.iter().find_map(|(path, before)| {
            let now = state(path);
            let what = match (before.as_str(), now.as_str()) {
                (before, now) if before == now => return None,
                (ABSENT, _) => "was added",
                (_, ABSENT) => "was removed",
                _ => "was changed",
            };
            let before = self.before.contains(path);
            Some(Changed { path: format!("`{}`", term::inline(&path.to_string_lossy())), what, before })
        })
    }
}

/// A setting that is not what it was.
struct Changed {
    /// For people.
    path: String,
    what: &'static str,
    /// A run that was killed knew something else.
    before: bool,
}

/// What is at a path: where links lead, and the content there.
fn state(path: &Path) -> String {
    let Ok(real) = path.canonicalize() else {
        // A link that leads nowhere is not nothing, and is none of its targets.
        let link = path.parent().zip(path.file_name()).and_then(|(dir, name)| {
            let stat = SafeDir::open_shared(dir).ok()?.stat(name).ok()??;
            Some(format!("nowhere {}", stat.changed_ns))
        });
        return link.unwrap_or_else(|| ABSENT.to_owned());
    };
    let found = real.parent().zip(real.file_name()).and_then(|(dir, name)| {
        let dir = SafeDir::open_shared(dir).ok()?;
        // What others may have under another name, or own, is read by tools all the same.
        let facts = |stat: peers_sys::dir::FileStat| {
            format!("{:?} {} {} {}", stat.kind, stat.size, stat.changed_ns, stat.id.ino)
        };
        match dir.read(name, CAP) {
            Ok(bytes) => Some(sha256_hex(&bytes)),
            Err(_) => dir.stat(name).ok()?.map(facts),
        }
    });
    format!("{} {}", real.to_string_lossy(), found.as_deref().unwrap_or("unreadable"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_setting_is_known_by_its_content_wherever_links_lead() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let setting = at("config.toml");
        let homes = || ToolHomes::look(vec![setting.clone()]);
        let before = homes();
        assert_eq!(before.changed(), None);
        fs::write(&setting, "a").unwrap();
        assert!(before.changed().unwrap().contains("was added since the run began"));
        assert!(before.changed_meanwhile().unwrap().contains("was added while gates ran"));
        let before = homes();
        fs::write(&setting, "b").unwrap();
        assert!(before.changed().unwrap().contains("was changed"));
        fs::write(&setting, "a").unwrap();
        assert_eq!(before.changed(), None, "the same content is the same setting");
        fs::remove_file(&setting).unwrap();
        assert!(before.changed().unwrap().contains("was removed"));
        symlink(at("elsewhere"), &setting).unwrap();
        let before = homes();
        assert_eq!(before.changed(), None);
        fs::write(at("elsewhere"), "a").unwrap();
        assert!(before.changed().is_some(), "what a link leads to counts");
        let before = homes();
        fs::write(at("elsewhere"), "b").unwrap();
        assert!(before.changed().is_some());
        // Too long, or with a second name: known by what no program can set.
        fs::write(at("elsewhere"), vec![b'a'; 2 << 20]).unwrap();
        fs::hard_link(at("elsewhere"), at("twice")).unwrap();
        let before = homes();
        assert_eq!(before.changed(), None);
        fs::write(at("twice"), "b").unwrap();
        assert!(before.changed().is_some());
    }

    #[test]
    fn what_a_killed_run_knew_is_what_counts() {
        let dir = tempfile::tempdir().unwrap();
        let store = SafeDir::open_root(dir.path()).unwrap();
        let setting = dir.path().join("config.toml");
        let look = || ToolHomes::look(vec![setting.clone()]);
        assert_eq!(look().as_kept_in(&store).changed(), None, "nothing was kept");
        look().keep(&store).unwrap();
        fs::write(&setting, "a").unwrap();
        assert_eq!(look().changed(), None);
        assert!(look().as_kept_in(&store).changed().unwrap().contains("was added"));
    }
}
