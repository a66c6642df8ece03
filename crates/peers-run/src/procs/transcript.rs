//! The session files of Claude Code: a second sign of life.
//!
//! Without structured output that program prints nothing for many minutes, but it goes on writing
//! its session file. Only files that are newer than the turn count, so somebody else's session in
//! the same directory keeps nobody alive; and only that they change, not when they say they did.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_sys::SafeDir;
use peers_sys::dir::Kind;

use crate::env::Host;

/// Names looked at in one directory.
const NAMES: usize = 10_000;
/// Bounds of the time between two looks.
const SOONEST: Duration = Duration::from_millis(250);
const LATEST: Duration = Duration::from_secs(30);

/// The session files that a turn may write.
#[derive(Debug)]
pub(super) struct Transcripts {
    places: Vec<PathBuf>,
    /// Those that were there before.
    older: BTreeSet<(usize, OsString)>,
    /// Size and time of the others when they were last looked at.
    seen: BTreeMap<(usize, OsString), (u64, i64)>,
}

impl Transcripts {
    /// What is there before a turn. `state`: the tool's directory, where it is not the operator's.
    pub(super) fn before(host: &Host, state: Option<PathBuf>) -> Option<Self> {
        let own = host.operator("CLAUDE_CONFIG_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let base = state.or(own).or_else(|| host.home().map(|home| home.join(".claude")))?.join("projects");
        let places = names_of(host.repo())?.into_iter().map(|name| base.join(name)).collect();
        let mut transcripts = Self { places, older: BTreeSet::new(), seen: BTreeMap::new() };
        transcripts.older = transcripts.list().into_keys().collect();
        Some(transcripts)
    }

    /// How often to look, when silence of `idle` ends a peer.
    pub(super) fn interval(idle: Duration) -> Duration {
        (idle / 4).clamp(SOONEST, LATEST)
    }

    /// Whether one of the turn's own files came or changed since the last look.
    pub(super) fn moved(&mut self) -> bool {
        let mut now = self.list();
        now.retain(|name, _| !self.older.contains(name));
        let moved = now != self.seen;
        self.seen = now;
        moved
    }

    fn list(&self) -> BTreeMap<(usize, OsString), (u64, i64)> {
        let mut files = BTreeMap::new();
        for (at, place) in self.places.iter().enumerate() {
            // Not there yet, or not to be read: no sign of life, which never ends a peer by itself.
            let Ok(dir) = SafeDir::open_shared(place) else { continue };
            let Ok(listing) = dir.list(NAMES) else { continue };
            for entry in listing.entries {
                let known = self.older.contains(&(at, entry.name.clone()));
                let session = Path::new(&entry.name).extension().is_some_and(|e| e == "jsonl");
                if known || !session || entry.kind != Kind::File {
                    continue;
                }
                if let Ok(Some(stat)) = dir.stat(&entry.name) {
                    files.insert((at, entry.name), (stat.size, stat.modified_ns));
                }
            }
        }
        files
    }
}

/// The directory of a work tree's sessions: all but letters and digits replaced, or slashes alone.
fn names_of(repo: &Path) -> Option<Vec<String>> {
    let path = repo.to_str()?;
    let mut names = vec![path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()];
    let slashes = path.replace('/', "-");
    if !names.contains(&slashes) {
        names.push(slashes);
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use peers_sys::env::Env;

    use super::*;

    fn transcripts(home: &Path) -> Transcripts {
        let env = Env::from_pairs([("HOME", home.as_os_str().to_owned())]);
        let host = Host::with(&env, Path::new("/home/op/my.work"), &|p| Some(p.to_owned()));
        Transcripts::before(&host, None).unwrap()
    }

    #[test]
    fn a_new_session_file_is_a_sign_of_life_as_long_as_it_changes() {
        for name in ["-home-op-my-work", "-home-op-my.work"] {
            let home = tempfile::tempdir().unwrap();
            let mut transcripts = transcripts(home.path());
            assert!(!transcripts.moved(), "nothing is there");
            let place = home.path().join(".claude/projects").join(name);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("s.jsonl"), "1").unwrap();
            assert!(transcripts.moved(), "it came");
            assert!(!transcripts.moved(), "it rests");
            fs::write(place.join("s.jsonl"), "12").unwrap();
            assert!(transcripts.moved(), "it grew");
        }
    }

    #[test]
    fn a_session_that_is_older_than_the_turn_is_somebody_elses() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join(".claude/projects/-home-op-my-work");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("old.jsonl"), "1").unwrap();
        let mut transcripts = transcripts(home.path());
        fs::write(place.join("old.jsonl"), "12").unwrap();
        fs::write(place.join("note.txt"), "1").unwrap();
        assert!(!transcripts.moved());
    }
}
