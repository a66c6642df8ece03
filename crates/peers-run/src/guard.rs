//! The real guard of the control plane: `.peers/` before and after a turn, the trusted store over it.
//!
//! Where agents run unconfined as our own user nothing here prevents anything; it finds out, so that
//! the loop stops before it builds on what somebody else wrote. What a wall keeps from them is not looked at.

mod homes;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use peers_model::outcome::TamperKind;
use peers_model::record::OperatorOp;
use peers_model::{limits, record};
use peers_place::PEERS_DIR;
use peers_store::accept::Accepted;
use peers_store::commands::Command;
use peers_store::layout;
use peers_sys::digest::Sha256;
use peers_sys::dir::{FileStat, Kind};
use peers_sys::term::quoted;
use peers_sys::{FileError, SafeDir, term};

use crate::ports::{Guard, Sweep};
pub use homes::ToolHomes;

/// Files of `.peers/` that are ours or the operator's.
const FILES: [&str; 16] = [
    layout::peers::CONFIG,
    layout::peers::GOALS,
    layout::peers::STATE,
    layout::peers::MIRROR,
    layout::peers::STOP_REASON,
    layout::peers::HALTED,
    layout::peers::REPORT,
    layout::peers::VERIFY,
    "secrets-allowlist",
    "modes-applied.txt",
    layout::peers::RECON,
    layout::peers::CODEMAP,
    layout::peers::CODEMAP_DIGEST,
    "PLAN.original.md",
    "awaiting_user",
    "hooks/README.md",
];
/// Directories of `.peers/`.
const DIRS: [&str; 10] = [
    "log",
    layout::peers::LOG_PEERS,
    layout::peers::LOG_PROMPTS,
    layout::peers::LOG_GATES,
    layout::peers::LOG_HOOKS,
    layout::peers::COMMS,
    layout::peers::INBOX,
    "hooks",
    layout::peers::SCHEMA,
    "contracts",
];
/// What operators and controllers may write while a loop runs, and what has its own guard.
const FREE: [&str; 6] = [
    layout::store::COMMANDS,
    layout::store::EDITS,
    layout::store::OUTLINES,
    "git",
    layout::store::RUN_LOCK,
    "op.lock",
];
/// Most names in one directory, and directories below each other.
const NAMES: usize = 20_000;
const DEPTH: usize = 8;

/// The real guard.
#[derive(Debug)]
pub struct FsGuard {
    peers: SafeDir,
    store: SafeDir,
    /// What else is read and written by its path.
    held: Vec<(TamperKind, SafeDir)>,
    before: Option<Result<Seen, String>>,
    journal: Segment,
    homes: ToolHomes,
    /// Nobody but us reaches the store.
    walled: bool,
}

/// The store at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    files: BTreeMap<String, FileStat>,
    run_lock: Option<Vec<u8>>,
}

/// The journal's newest segment, as far as it was read.
#[derive(Debug, Clone, Default)]
struct Segment {
    name: String,
    len: u64,
    hash: Sha256,
}

impl FsGuard {
    /// Guards the directories that `peers` and `store` are now, under the paths they were opened by.
    #[must_use]
    pub fn new(peers: SafeDir, store: SafeDir) -> Self {
        let (before, journal, homes) = (None, Segment::default(), ToolHomes::default());
        Self { peers, store, held: Vec::new(), before, journal, homes, walled: false }
    }

    /// Stops the run as `kind` once the path that `dir` was opened by is not this directory itself.
    #[must_use]
    pub fn holding(mut self, kind: TamperKind, dir: SafeDir) -> Self {
        self.held.push((kind, dir));
        self
    }

    /// Agents and gates are behind a wall that keeps the store from them: it is not compared.
    #[must_use]
    pub fn walled(self, walled: bool) -> Self {
        Self { walled, ..self }
    }

    /// Watches the settings of build tools too.
    #[must_use]
    pub fn with_homes(self, homes: ToolHomes) -> Self {
        Self { homes, ..self }
    }

    fn changed_setting(&self) -> Option<(TamperKind, String)> {
        self.homes.changed().map(|what| (TamperKind::ToolHome, what))
    }

    /// The first directory that is no longer at its path, `.peers/` aside, and what is there.
    fn displaced(&self) -> Option<(TamperKind, String)> {
        let held = self.held.iter().map(|(kind, dir)| (*kind, dir));
        std::iter::once((TamperKind::Store, &self.store))
            .chain(held)
            .find_map(|(kind, dir)| Some((kind, displaced(dir.path(), dir)?)))
    }

    fn displaced_peers(&self) -> Option<(TamperKind, String)> {
        displaced(Path::new(PEERS_DIR), &self.peers).map(|what| (TamperKind::PeerDir, what))
    }

    /// What happened to the store since the last look before, if it was not us.
    fn touched_store(&mut self) -> Option<String> {
        let before = self.before.take()?;
        let compared = before.and_then(|before| {
            let after = self.look()?;
            self.difference(&before, &after)
        });
        match compared {
            Ok(what) => what,
            Err(why) => Some(format!("it cannot be compared with what it was: {why}")),
        }
    }

    fn look(&self) -> Result<Seen, String> {
        let mut files = BTreeMap::new();
        list(&self.store, "", 0, &mut files)?;
        let run_lock = self
            .store
            .read_opt(layout::store::RUN_LOCK, limits::STORE_FILE)
            .map_err(|error| format!("{}: {error}", layout::store::RUN_LOCK))?;
        Ok(Seen { files, run_lock })
    }

    /// The newest segment as it is before a turn. What was read at earlier turns is not read again,
    /// so a change there is found after this turn.
    fn mark_journal(&mut self, seen: &Seen) -> Result<(), String> {
        let Some((name, stat)) = newest_segment(seen) else {
            self.journal = Segment::default();
            return Ok(());
        };
        if self.journal.name != name || self.journal.len > stat.size {
            self.journal = Segment { name: name.to_owned(), ..Segment::default() };
        }
        let more = stat.size.saturating_sub(self.journal.len);
        let bytes = self.read_segment(name, self.journal.len, more)?;
        self.journal.hash.update(&bytes);
        self.journal.len = self.journal.len.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    fn read_segment(&self, name: &str, offset: u64, len: u64) -> Result<Vec<u8>, String> {
        let fail = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let (dir, name) = self.store.parent_of(name).map_err(|e| fail(&e))?;
        let mut file = dir.open_read(&name).map_err(|e| fail(&e))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.take(len).read_to_end(&mut bytes))
            .map_err(|e| fail(&e))?;
        Ok(bytes)
    }

    /// What happened to the store, if it was not us.
    fn difference(&self, before: &Seen, after: &Seen) -> Result<Option<String>, String> {
        if before.run_lock != after.run_lock {
            return Ok(Some(format!("{} was changed", layout::store::RUN_LOCK)));
        }
        let journal = format!("{}/", layout::store::JOURNAL);
        let mut accepted = false;
        let mut changed = |name: &str| {
            let ours = name == layout::store::ACCEPTED
                || name.starts_with(&format!("{}.", layout::store::ACCEPTED))
                || name.starts_with(&format!("{}/", layout::store::ACCEPTED_DIR));
            accepted |= ours;
            !ours
        };
        for (name, stat) in &before.files {
            let grown = *name == self.journal.name;
            match after.files.get(name) {
                None if changed(name) => return Ok(Some(format!("{name} was removed"))),
                // Same file, not shorter: its content is looked at below.
                Some(now) if grown && same_file(stat, now) && now.size >= stat.size => {}
                Some(_) if grown => return Ok(Some(format!("{name} was replaced or cut"))),
                Some(now) if now != stat && changed(name) => return Ok(Some(format!("{name} was changed"))),
                _ => {}
            }
        }
        let mut fresh = Vec::new();
        for name in after.files.keys().filter(|name| !before.files.contains_key(*name)) {
            if name.starts_with(&journal) {
                fresh.push(name.as_str());
            } else if changed(name) {
                return Ok(Some(format!("{name} was added")));
            }
        }
        if accepted && !self.acceptance_was_announced() {
            return Ok(Some(format!("{} was changed", layout::store::ACCEPTED)));
        }
        self.foreign_lines(after, &fresh)
    }

    /// Our own lines of a turn are the one that says that the peer runs, and, where that filled the
    /// segment, the first of a new one.
    fn foreign_lines(&self, after: &Seen, fresh: &[&str]) -> Result<Option<String>, String> {
        let mut new_lines = Vec::new();
        if let Some(stat) = after.files.get(&self.journal.name) {
            let all = self.read_segment(&self.journal.name, 0, stat.size)?;
            let known = usize::try_from(self.journal.len).unwrap_or(usize::MAX);
            let Some((old, new)) = all.split_at_checked(known) else {
                return Ok(Some(format!("{} was cut", self.journal.name)));
            };
            let mut hash = Sha256::new();
            hash.update(old);
            if hash.finish() != self.journal.hash.clone().finish() {
                return Ok(Some(format!("{} was rewritten", self.journal.name)));
            }
            new_lines = events(new);
        }
        if fresh.len() > 1 {
            return Ok(Some("the journal has files that are not ours".into()));
        }
        for name in fresh {
            let size = after.files.get(*name).map_or(0, |stat| stat.size);
            let first = events(&self.read_segment(name, 0, size)?);
            if first != [Some("checkpoint")] {
                return Ok(Some(format!("{name} is not ours")));
            }
        }
        match new_lines.as_slice() {
            [] | [Some("peer-spawned")] => {}
            _ => return Ok(Some("the journal has a line that is not ours".into())),
        }
        Ok(None)
    }

    /// Whether a command waits that says what is accepted now, or what is about to be: `goals edit` gives it first.
    fn acceptance_was_announced(&self) -> bool {
        let read = |dir: &SafeDir, name: &OsStr| dir.read(name, limits::STORE_FILE).ok();
        let accepted = read(&self.store, OsStr::new(layout::store::ACCEPTED));
        let Some(accepted) = accepted.and_then(|bytes| serde_json::from_slice::<Accepted>(&bytes).ok())
        else {
            return false;
        };
        let Ok(commands) = self.store.subdir(layout::store::COMMANDS) else { return false };
        let Ok(listing) = commands.list(NAMES) else { return false };
        listing.entries.iter().any(|entry| {
            let command =
                read(&commands, &entry.name).and_then(|b| serde_json::from_slice::<Command>(&b).ok());
            command.is_some_and(|c| {
                matches!(c.op, OperatorOp::Accepted { old, new, .. } if [&old, &new].contains(&&accepted.digests))
            })
        })
    }
}

impl Guard for FsGuard {
    fn sweep(&mut self) -> Result<Sweep, (TamperKind, String)> {
        if let Some(displaced) = self.displaced() {
            return Err(displaced);
        }
        let mut warnings = Vec::new();
        let tamper = self.displaced_peers().or_else(|| match sweep_peers(&self.peers, &mut warnings) {
            Err(what) => Some((TamperKind::PeerDir, what)),
            Ok(()) => self.changed_setting(),
        });
        Ok(Sweep { tamper, warnings })
    }

    fn before(&mut self) {
        if self.walled {
            return;
        }
        let seen = self.look().and_then(|seen| self.mark_journal(&seen).map(|()| seen));
        self.before = Some(seen);
    }

    fn after(&mut self) -> Option<(TamperKind, String)> {
        if let Some(displaced) = self.displaced().or_else(|| self.displaced_peers()) {
            return Some(displaced);
        }
        let Some(what) = self.touched_store() else { return self.changed_setting() };
        Some((
            TamperKind::Store,
            format!("another program changed the trusted store: {}", term::inline(&what)),
        ))
    }
}

fn displaced(shown: &Path, dir: &SafeDir) -> Option<String> {
    let what = dir.displaced()?;
    Some(format!("`{}` {what} when the run began", term::inline(&shown.to_string_lossy())))
}

fn sweep_peers(peers: &SafeDir, warnings: &mut Vec<String>) -> Result<(), String> {
    for name in FILES.into_iter().chain(DIRS) {
        let (dir, leaf) = match peers.parent_of(name) {
            Ok(parent) => parent,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(format!(".peers/{name}: {error}")),
        };
        match dir.stat(&leaf) {
            Ok(Some(stat)) => {
                refuse(name, &stat).map_err(|what| format!("{what}{}", remedy(name, &stat)))?;
                let wanted = if FILES.contains(&name) { Kind::File } else { Kind::Dir };
                if stat.kind != wanted {
                    let (is, not) =
                        if wanted == Kind::File { ("directory", "file") } else { ("file", "directory") };
                    return Err(format!(".peers/{name} is a {is}, not a {not}; move it away"));
                }
            }
            Ok(None) => {}
            Err(error) => return Err(format!(".peers/{name}: {error}")),
        }
    }
    let below = [
        ("hooks", false),
        (layout::peers::SCHEMA, false),
        (layout::peers::COMMS, false),
        (layout::peers::INBOX, true),
    ];
    for (name, boxes) in below {
        match peers.open_path(name) {
            Ok(dir) => walk(&dir, name, 0, boxes, warnings)?,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(format!(".peers/{name}: {error}")),
        }
    }
    Ok(())
}

/// Everything below `dir`; inside a drop box what must not be there is removed.
fn walk(
    dir: &SafeDir,
    at: &str,
    depth: usize,
    boxes: bool,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let fail = |error: &FileError| format!(".peers/{at}: {error}");
    let listing = dir.list(NAMES).map_err(|e| fail(&e))?;
    if listing.truncated || depth >= DEPTH {
        return Err(format!(".peers/{at} holds too much"));
    }
    for entry in listing.entries {
        let name = format!("{at}/{}", term::inline(&entry.name.to_string_lossy()));
        let Some(stat) = dir.stat(&entry.name).map_err(|e| fail(&e))? else { continue };
        match refuse(&name, &stat) {
            Ok(()) if stat.kind == Kind::Dir => {
                let below = dir.subdir(&entry.name).map_err(|e| fail(&e))?;
                walk(&below, &name, depth + 1, boxes, warnings)?;
            }
            Ok(()) => {}
            // The box itself is ours; what lies in it is its owner's.
            Err(what) if boxes && depth > 0 => {
                dir.remove_file(&entry.name).map_err(|e| fail(&e))?;
                warnings.push(format!("{what}; it was removed"));
            }
            Err(what) => return Err(format!("{what}{}", remedy(&name, &stat))),
        }
    }
    Ok(())
}

/// How a file of ours gets a name of its own again. An agent may have named it.
fn remedy(name: &str, stat: &FileStat) -> String {
    if stat.kind != Kind::File {
        return String::new();
    }
    let file = quoted(&format!(".peers/{name}"));
    format!("; `f={file}; cp \"$f\" \"$f.new\" && mv \"$f.new\" \"$f\"` gives it one of its own")
}

fn refuse(name: &str, stat: &FileStat) -> Result<(), String> {
    match stat.kind {
        Kind::Symlink => Err(format!(".peers/{name} is a symbolic link")),
        Kind::Special => Err(format!(".peers/{name} is a special file")),
        Kind::File if stat.links > 1 => Err(format!(".peers/{name} has more than one name (a hard link)")),
        Kind::File | Kind::Dir => Ok(()),
    }
}

/// All files of the store but those that are free, by their path.
fn list(dir: &SafeDir, at: &str, depth: usize, files: &mut BTreeMap<String, FileStat>) -> Result<(), String> {
    let fail = |error: FileError| error.to_string();
    let listing = dir.list(NAMES).map_err(fail)?;
    if listing.truncated || depth >= DEPTH {
        return Err(format!("{at} holds too much"));
    }
    for entry in listing.entries {
        let name = entry.name.to_string_lossy();
        // Whatever replaces a file in one step writes such a one first.
        let temporary = name.ends_with(".tmp");
        if temporary || (at.is_empty() && FREE.contains(&&*name)) {
            continue;
        }
        let path = if at.is_empty() { name.into_owned() } else { format!("{at}/{name}") };
        match dir.stat(&entry.name).map_err(fail)? {
            Some(stat) if stat.kind == Kind::Dir => {
                list(&dir.subdir(&entry.name).map_err(fail)?, &path, depth + 1, files)?;
            }
            Some(stat) => {
                files.insert(path, stat);
            }
            None => {}
        }
    }
    Ok(())
}

/// What the lines are, by their tags.
fn events(lines: &[u8]) -> Vec<Option<&'static str>> {
    let event = |line| record::Line::read(line).ok().map(|line| line.record.event());
    lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(event).collect()
}

fn same_file(before: &FileStat, now: &FileStat) -> bool {
    before.id == now.id && now.kind == Kind::File && now.links == 1
}

fn newest_segment(seen: &Seen) -> Option<(&str, &FileStat)> {
    let journal = format!("{}/", layout::store::JOURNAL);
    let segment =
        |name: &str| name.strip_prefix(&journal).is_some_and(|name| name.strip_suffix(".jsonl").is_some());
    seen.files.iter().rfind(|(name, _)| segment(name)).map(|(name, stat)| (name.as_str(), stat))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use peers_model::record::{Digests, Record};
    use peers_model::{TickNo, Timestamp};
    use peers_store::{Area, Disk, FsDisk, accept, commands};

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        guard: FsGuard,
        disk: FsDisk,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for name in [".peers/log", ".peers/inbox/claude/to-codex", ".peers/comms", "store/git"] {
                fs::create_dir_all(dir.path().join(name)).unwrap();
            }
            let open = |name: &str| SafeDir::open_root(dir.path().join(name)).unwrap();
            let mut disk = FsDisk::new(open("store"), Some(open(".peers")));
            disk.publish(Area::Store, "run.lock", b"{\"pid\":1}", true).unwrap();
            accept::write(&mut disk, b"goals", b"config", Timestamp::from_millis(1), "op", None).unwrap();
            let guard = FsGuard::new(open(".peers"), open("store"));
            let mut place = Self { dir, guard, disk };
            (1..4).for_each(|tick| place.append(1, &mirror(tick)));
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn append(&mut self, segment: u32, record: &Record) {
            let line = record::Line {
                v: record::LINE_VERSION,
                seq: 1,
                ts: Timestamp::from_millis(5),
                run_id: None,
                prev: String::new(),
                record: record.clone(),
            };
            let mut text = serde_json::to_vec(&line).unwrap();
            text.push(b'\n');
            self.disk.append(Area::Store, &layout::segment(segment), &text).unwrap();
        }

        /// A turn in which `act` happens, and our own record.
        fn turn(&mut self, act: impl FnOnce(&mut Self)) -> Option<String> {
            self.guard.before();
            self.append(1, &spawned());
            act(self);
            let found = self.guard.after();
            found.map(|(kind, what)| {
                assert_eq!(kind, TamperKind::Store);
                what
            })
        }

        fn tampered(&mut self) -> Option<String> {
            let sweep = self.guard.sweep().unwrap();
            sweep.tamper.map(|(kind, what)| {
                assert_eq!(kind, TamperKind::PeerDir);
                what
            })
        }

        /// Moves the directory aside and puts a link to it in its place; what the detail of the stop says.
        fn swap_for_a_link(&self, name: &str) -> String {
            fs::rename(self.at(name), self.at("moved")).unwrap();
            symlink(self.at("moved"), self.at(name)).unwrap();
            let moved = self.at("moved").display().to_string();
            format!("is now a symbolic link to `{moved}`; it was a directory when the run began")
        }
    }

    fn mirror(tick: u64) -> Record {
        Record::MirrorRestored(record::MirrorRestored { tick: Some(TickNo(tick)), what: "x".into() })
    }

    fn spawned() -> Record {
        Record::PeerSpawned(record::PeerSpawned {
            tick: TickNo(4),
            pid: 9,
            start_time: 9,
            boot_id: "b".into(),
        })
    }

    #[test]
    fn a_quiet_turn_with_our_own_record_is_no_tampering() {
        let mut place = Place::new();
        for _ in 0..3 {
            assert_eq!(place.turn(|_| {}), None);
            place.append(1, &mirror(5));
        }
    }

    #[test]
    fn whatever_is_touched_in_the_store_is_named() {
        type Act = fn(&Path);
        let acts: [(&str, Act); 8] = [
            ("accepted.json", |s| fs::write(s.join("accepted.json"), "{}").unwrap()),
            ("accepted.json", |s| fs::write(s.join("accepted/goals.yaml"), "goals: []").unwrap()),
            // As long and as old as before.
            ("accepted.json", |s| {
                let path = s.join("accepted/goals.yaml");
                let old = fs::metadata(&path).unwrap().modified().unwrap();
                fs::write(&path, "GOALS").unwrap();
                fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
            }),
            ("runs/x.json was added", |s| {
                fs::create_dir_all(s.join("runs")).unwrap();
                fs::write(s.join("runs/x.json"), "{}").unwrap();
            }),
            ("run.lock", |s| fs::write(s.join("run.lock"), "{}").unwrap()),
            ("a line that is not ours", |s| {
                let path = s.join("journal/000001.jsonl");
                let mut text = fs::read_to_string(&path).unwrap();
                text.push_str("{\"v\":1}\n");
                fs::write(path, text).unwrap();
            }),
            ("was rewritten", |s| {
                let path = s.join("journal/000001.jsonl");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, text.replacen("\"x\"", "\"y\"", 1)).unwrap();
            }),
            ("was replaced or cut", |s| fs::write(s.join("journal/000001.jsonl"), "").unwrap()),
        ];
        for (word, act) in acts {
            let mut place = Place::new();
            let store = place.at("store");
            let found = place.turn(|_| act(&store)).unwrap_or_else(|| panic!("not found: {word}"));
            assert!(found.contains(word), "{word}: {found}");
        }
    }

    #[test]
    fn a_segment_that_begins_in_the_turn_is_ours_only_if_it_begins_as_ours_do() {
        let checkpoint = || Record::Checkpoint(record::CheckpointRecord { state: serde_json::Value::Null });
        let rotate = |place: &mut Place, records: &[Record]| {
            place.guard.before();
            for record in records {
                place.append(2, record);
            }
            place.guard.after().map(|(_, what)| what)
        };
        assert_eq!(rotate(&mut Place::new(), &[checkpoint()]), None);
        for forged in [[mirror(9)].as_slice(), &[checkpoint(), mirror(9)], &[]] {
            let mut place = Place::new();
            place.guard.before();
            fs::write(place.at("store/journal/000002.jsonl"), "").unwrap();
            for record in forged {
                place.append(2, record);
            }
            let (_, found) = place.guard.after().unwrap();
            assert!(found.contains("not ours"), "{found}");
        }
        // The record of the turn may be the one that fills the segment.
        let mut place = Place::new();
        place.guard.before();
        place.append(1, &spawned());
        place.append(2, &checkpoint());
        assert_eq!(place.guard.after(), None);
    }

    #[test]
    fn commands_of_the_operator_and_git_are_free() {
        let mut place = Place::new();
        let found = place.turn(|place| {
            fs::create_dir_all(place.at("store/commands")).unwrap();
            fs::write(place.at("store/commands/1.json"), "{}").unwrap();
            fs::write(place.at("store/git/HEAD"), "ref").unwrap();
            fs::write(place.at("store/op.lock"), "").unwrap();
            fs::create_dir_all(place.at("store/edits/0123456789abcdef")).unwrap();
            fs::write(place.at("store/edits/0123456789abcdef/.goals.yaml.swp"), "an editor's").unwrap();
        });
        assert_eq!(found, None);
    }

    #[test]
    fn an_acceptance_by_the_operator_is_no_tampering_once_its_command_waits() {
        let mut place = Place::new();
        let found = place.turn(|place| {
            let new =
                accept::write(&mut place.disk, b"new", b"config", Timestamp::from_millis(2), "op", None)
                    .unwrap();
            let old = Digests { goals: "a".into(), config: "b".into() };
            let op = OperatorOp::Accepted { old, new: new.digests, note: None, rules: None };
            let command = Command { v: 1, op, by: "op".into(), at: Timestamp::from_millis(2) };
            commands::drop_command(&mut place.disk, "01", &command).unwrap();
        });
        assert_eq!(found, None);
    }

    #[test]
    fn an_acceptance_that_was_announced_may_be_half_written_when_a_turn_ends() {
        let announce = |place: &mut Place, new: &str| {
            let old = accept::read(&mut place.disk).unwrap().unwrap().digests;
            let new = accept::digests(new.as_bytes(), b"config");
            let op = OperatorOp::Accepted { old, new, note: None, rules: None };
            let command = Command { v: 1, op, by: "op".into(), at: Timestamp::from_millis(2) };
            commands::drop_command(&mut place.disk, "01", &command).unwrap();
        };
        let mut place = Place::new();
        let found = place.turn(|place| {
            announce(place, "new");
            fs::write(place.at("store/accepted/goals.yaml"), "new").unwrap();
        });
        assert_eq!(found, None);
        let mut place = Place::new();
        let found = place.turn(|place| fs::write(place.at("store/accepted/goals.yaml"), "new").unwrap());
        assert!(found.is_some(), "nobody announced it");
    }

    #[test]
    fn a_swapped_control_directory_is_found() {
        let mut place = Place::new();
        assert_eq!(place.tampered(), None);
        fs::rename(place.at(".peers"), place.at("old")).unwrap();
        assert!(place.tampered().unwrap().contains("cannot be found"));
        fs::create_dir(place.at(".peers")).unwrap();
        let what = "`.peers` is not the directory that it was when the run began";
        assert_eq!(place.tampered().as_deref(), Some(what));
    }

    #[test]
    fn a_control_directory_swapped_for_a_link_to_itself_is_found() {
        let mut place = Place::new();
        place.guard.before();
        let what = format!("`.peers` {}", place.swap_for_a_link(".peers"));
        assert_eq!(place.tampered(), Some(what.clone()));
        assert_eq!(place.guard.after(), Some((TamperKind::PeerDir, what)), "by a gate");
    }

    #[test]
    fn a_trusted_store_swapped_for_a_link_to_itself_is_found() {
        let mut place = Place::new();
        place.guard.before();
        let store = place.at("store").display().to_string();
        let displaced = (TamperKind::Store, format!("`{store}` {}", place.swap_for_a_link("store")));
        assert_eq!(place.guard.sweep(), Err(displaced.clone()));
        assert_eq!(place.guard.after(), Some(displaced), "by a gate");
    }

    #[test]
    fn a_repository_root_swapped_for_a_link_to_itself_is_found() {
        let mut place = Place::new();
        fs::create_dir(place.at("repo")).unwrap();
        let root = SafeDir::open_shared(place.at("repo")).unwrap();
        place.guard = place.guard.holding(TamperKind::PeerDir, root);
        place.guard.before();
        assert_eq!(place.tampered(), None);
        let repo = place.at("repo").display().to_string();
        let displaced = (TamperKind::PeerDir, format!("`{repo}` {}", place.swap_for_a_link("repo")));
        assert_eq!(place.guard.sweep(), Err(displaced.clone()));
        assert_eq!(place.guard.after(), Some(displaced), "by a gate");
    }

    #[test]
    fn a_link_or_special_file_among_ours_is_named() {
        for name in ["goals.yaml", "log/runs.jsonl", "log/peers", "comms/a-to-b", "hooks/x", "inbox/codex"] {
            let mut place = Place::new();
            fs::create_dir_all(place.at(".peers/hooks")).unwrap();
            symlink("/etc", place.at(&format!(".peers/{name}"))).unwrap();
            let found = place.tampered().unwrap_or_else(|| panic!("{name} was not found"));
            assert!(found.contains(name) && found.contains("symbolic link"), "{found}");
        }
        let mut place = Place::new();
        fs::write(place.at("victim"), "x").unwrap();
        fs::hard_link(place.at("victim"), place.at(".peers/state.json")).unwrap();
        assert!(place.tampered().unwrap().contains("hard link"));
    }

    #[test]
    fn each_of_our_files_and_directories_is_watched_for_each_kind_of_swap() {
        type Swap = (&'static str, fn(&Path, &Path));
        let swaps: [Swap; 3] = [
            ("symbolic link", |at, other| symlink(other, at).unwrap()),
            ("special file", |at, _| {
                let made = std::process::Command::new("mkfifo").arg(at).status().unwrap();
                assert!(made.success());
            }),
            ("hard link", |at, other| {
                fs::write(other, "x").unwrap();
                fs::hard_link(other, at).unwrap();
            }),
        ];
        for (kind, swap) in swaps {
            let dirs: &[&str] = if kind == "hard link" { &[] } else { &DIRS };
            for name in FILES.iter().chain(dirs) {
                let mut place = Place::new();
                let at = place.at(&format!(".peers/{name}"));
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                drop(fs::remove_file(&at).or_else(|_| fs::remove_dir_all(&at)));
                swap(&at, &place.at("other"));
                let found = place.tampered().unwrap_or_else(|| panic!("{kind} at {name} was not found"));
                // A directory may be met first by a file in it.
                assert!(
                    found.contains(name) && (found.contains(kind) || found.contains("not a directory")),
                    "{name}: {found}"
                );
            }
        }
    }

    #[test]
    fn a_directory_where_a_file_belongs_is_named_and_the_other_way_round() {
        let mut place = Place::new();
        fs::create_dir(place.at(".peers/state.json")).unwrap();
        assert!(place.tampered().unwrap().contains("state.json is a directory"));
        let mut place = Place::new();
        fs::write(place.at(".peers/log/gates"), "").unwrap();
        assert!(place.tampered().unwrap().contains("log/gates is a file"));
    }

    #[test]
    fn inside_a_drop_box_it_is_removed_with_a_warning() {
        let mut place = Place::new();
        let link = place.at(".peers/inbox/claude/to-codex/a.md");
        symlink("/etc/passwd", &link).unwrap();
        fs::write(place.at(".peers/inbox/claude/to-codex/b.md"), "hello").unwrap();
        let sweep = place.guard.sweep().unwrap();
        assert_eq!(sweep.tamper, None);
        assert_eq!(sweep.warnings.len(), 1, "{:?}", sweep.warnings);
        assert!(link.symlink_metadata().is_err() && place.at(".peers/inbox/claude/to-codex/b.md").exists());
    }
}
