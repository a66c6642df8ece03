//! Where a loop that runs in the background writes: one file for each project, which begins anew when it has
//! become large.

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use peers_model::{RunId, RunRequest, Timestamp};
use peers_run::boot::Finding;
use peers_sys::dir::{FileError, FileId, SafeDir, WriteMode};
use peers_sys::{OpenFile, term};

/// A log that is larger than this is put aside before the next run writes into it, bytes.
const LARGE: u64 = 64 * 1024 * 1024;
/// So many old logs are kept.
const KEPT: usize = 5;
/// How the line begins that stands before what a run writes.
pub const HEADER: &str = "=== ";

/// Opens the log of a project for a run, with a line that says which.
///
/// # Errors
/// A [`Finding`], exit 5 where something else lies there.
pub fn open(
    logs: &SafeDir,
    name: &str,
    run: &RunId,
    request: &RunRequest,
    now: Timestamp,
) -> Result<OpenFile, Finding> {
    if logs.stat(name).map_err(|e| Finding::from(&e))?.is_some_and(|stat| stat.size > LARGE) {
        put_aside(logs, name).map_err(|error| Finding::from(&error))?;
    }
    let mut log =
        logs.create_file_for_write(name, WriteMode::Append).map_err(|error| Finding::from(&error))?;
    let words: Vec<String> = request.words().iter().map(|word| term::inline(word)).collect();
    let line = format!("{HEADER}{now} run {run}: peers {}\n", words.join(" "));
    log.write_all(line.as_bytes())
        .map_err(|error| Finding::plain(peers_model::exit::BUG, format!("write the log: {error}")))?;
    Ok(log)
}

/// Makes the log that a run will write into, if there is none.
///
/// # Errors
/// A [`Finding`].
pub fn create(logs: &SafeDir, name: &str) -> Result<(), Finding> {
    logs.create_file_for_write(name, WriteMode::Append).map(drop).map_err(|error| Finding::from(&error))
}

fn put_aside(logs: &SafeDir, name: &str) -> Result<(), FileError> {
    for n in (1..KEPT).rev() {
        let old = format!("{name}.{n}");
        if logs.stat(&old)?.is_some() {
            logs.rename(&old, format!("{name}.{}", n + 1))?;
        }
    }
    logs.rename(name, format!("{name}.1"))
}

/// The names of a project's logs: the one that is written, then the old ones, the newest first.
#[must_use]
pub fn names(name: &str) -> Vec<String> {
    std::iter::once(name.to_owned()).chain((1..=KEPT).map(|n| format!("{name}.{n}"))).collect()
}

/// The last `lines` lines of a log, at most 256 KiB of it. Untrusted text: agents' words are in it.
///
/// # Errors
/// A [`Finding`], exit 5 where something else lies there.
pub fn tail(logs: &SafeDir, name: &str, lines: usize) -> Result<Vec<String>, Finding> {
    const WINDOW: u64 = 256 * 1024;
    let tail = match logs.read_tail(name, WINDOW) {
        Ok(tail) => tail,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(Finding::from(&error)),
    };
    let text = String::from_utf8_lossy(&tail.bytes);
    let all: Vec<&str> = text.lines().collect();
    let skip = all.len().saturating_sub(lines);
    Ok(all.into_iter().skip(skip).map(str::to_owned).collect())
}

/// The last `lines` of what one run wrote: none where it wrote nothing. Untrusted text.
///
/// # Errors
/// As [`tail`].
pub fn of_run(logs: &SafeDir, name: &str, run: &RunId, lines: usize) -> Result<Vec<String>, Finding> {
    let mut all = tail(logs, name, usize::MAX)?;
    let header = format!(" run {run}: ");
    let begins = all.iter().rposition(|line| line.starts_with(HEADER) && line.contains(&header));
    // A header that is not in the window is further back than what is wanted.
    all.drain(..begins.map_or(0, |at| at + 1));
    all.drain(..all.len().saturating_sub(lines));
    Ok(all)
}

/// A log that is followed, also when it is put aside or cut.
#[derive(Debug)]
pub struct Follow {
    name: String,
    file: Option<(FileId, u64)>,
    /// A line without its end yet.
    part: Vec<u8>,
    first: usize,
    run: Option<RunId>,
}

/// So much is read at once, bytes.
const PIECE: usize = 256 * 1024;
/// A line is shown without its end when it is longer than this, bytes.
const LINE: usize = 64 * 1024;

impl Follow {
    /// Follows a log from `lines` lines before its end on. It need not be there yet.
    ///
    /// # Errors
    /// A [`Finding`], exit 5 where something else lies there.
    pub fn new(logs: &SafeDir, name: &str, lines: usize) -> Result<Self, Finding> {
        // What lies there is looked at now, so that a wrong one is told at once.
        match logs.open_read(name) {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(Finding::from(&error)),
        }
        Ok(Self { name: name.to_owned(), file: None, part: Vec::new(), first: lines, run: None })
    }

    /// Follows it from the beginning of a run on.
    ///
    /// # Errors
    /// As [`Follow::new`].
    pub fn of_run(logs: &SafeDir, name: &str, run: RunId) -> Result<Self, Finding> {
        Ok(Self { run: Some(run), ..Self::new(logs, name, usize::MAX)? })
    }

    /// What came since. Untrusted text: agents' words are in it.
    ///
    /// # Errors
    /// As [`Follow::new`].
    pub fn poll(&mut self, logs: &SafeDir) -> Result<Vec<String>, Finding> {
        let stat = logs.stat(&self.name).map_err(|error| Finding::from(&error))?;
        let Some(stat) = stat else { return Ok(Vec::new()) };
        let begin = match self.file {
            Some((id, at)) if id == stat.id && at <= stat.size => at,
            // Another file, or a shorter one: from its beginning.
            Some(_) => {
                self.part.clear();
                0
            }
            None => {
                let lines = match &self.run {
                    Some(run) => of_run(logs, &self.name, run, self.first)?,
                    None => tail(logs, &self.name, self.first)?,
                };
                self.file = Some((stat.id, stat.size));
                return Ok(lines);
            }
        };
        let file = logs.open_read(&self.name).map_err(|error| Finding::from(&error))?;
        let mut at = begin;
        let mut lines = Vec::new();
        while at < stat.size {
            let left = usize::try_from(stat.size - at).unwrap_or(PIECE).min(PIECE);
            let mut piece = vec![0; left];
            let got = file
                .read_at(&mut piece, at)
                .map_err(|error| Finding::plain(peers_model::exit::BUG, format!("read the log: {error}")))?;
            if got == 0 {
                break;
            }
            at += u64::try_from(got).unwrap_or_default();
            for byte in piece.into_iter().take(got) {
                if byte == b'\n' || self.part.len() >= LINE {
                    lines.push(String::from_utf8_lossy(&std::mem::take(&mut self.part)).into_owned());
                }
                if byte != b'\n' {
                    self.part.push(byte);
                }
            }
        }
        self.file = Some((stat.id, at));
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs() -> (tempfile::TempDir, SafeDir) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = SafeDir::open_root(tmp.path()).unwrap();
        (tmp, dir)
    }

    fn run() -> RunId {
        RunId::new("0123456789abcdef").unwrap()
    }

    #[test]
    fn each_run_begins_with_a_line_that_names_it() {
        let (tmp, dir) = logs();
        for branch in ["try", "a\u{1b}[2Jb"] {
            let request = RunRequest { branch: Some(branch.to_owned()), ..RunRequest::default() };
            open(&dir, "p.log", &run(), &request, Timestamp::from_millis(0)).unwrap();
        }
        let text = std::fs::read_to_string(tmp.path().join("p.log")).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.starts_with("=== 1970-01-01T00:00:00.000Z run 0123456789abcdef: peers run --branch=try\n")
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_large_log_is_put_aside_and_five_are_kept() {
        let (tmp, dir) = logs();
        for n in 0..8_u64 {
            let file = dir.create_file_for_write("p.log", WriteMode::Append).unwrap();
            file.set_len(LARGE + 1 + n).unwrap();
            open(&dir, "p.log", &run(), &RunRequest::default(), Timestamp::from_millis(0)).unwrap();
        }
        let mut names: Vec<String> = std::fs::read_dir(tmp.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["p.log", "p.log.1", "p.log.2", "p.log.3", "p.log.4", "p.log.5"]);
        assert_eq!(dir.stat("p.log.1").unwrap().unwrap().size, LARGE + 8, "the newest comes first");
        assert!(dir.stat("p.log").unwrap().unwrap().size < 200);
    }

    #[test]
    fn a_linked_log_is_refused() {
        let (tmp, dir) = logs();
        std::os::unix::fs::symlink("/dev/null", tmp.path().join("p.log")).unwrap();
        let error =
            open(&dir, "p.log", &run(), &RunRequest::default(), Timestamp::from_millis(0)).unwrap_err();
        assert_eq!(error.exit, 5);
        assert_eq!(tail(&dir, "p.log", 5).unwrap_err().exit, 5);
    }

    #[test]
    fn a_log_is_followed_over_being_put_aside_and_cut() {
        let (_tmp, dir) = logs();
        let write = |text: &str| {
            dir.create_file_for_write("p.log", WriteMode::Append)
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
        };
        write("a\nb\nc\n");
        let mut log = Follow::new(&dir, "p.log", 2).unwrap();
        assert_eq!(log.poll(&dir).unwrap(), ["b", "c"]);
        write("d\nhal");
        assert_eq!(log.poll(&dir).unwrap(), ["d"]);
        write("f\n");
        assert_eq!(log.poll(&dir).unwrap(), ["half"]);
        put_aside(&dir, "p.log").unwrap();
        assert_eq!(log.poll(&dir).unwrap(), Vec::<String>::new());
        write("new\n");
        assert_eq!(log.poll(&dir).unwrap(), ["new"]);
        dir.create_file_for_write("p.log", WriteMode::Truncate).unwrap().write_all(b"x\n").unwrap();
        assert_eq!(log.poll(&dir).unwrap(), ["x"]);
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_for_ever() {
        let (_tmp, dir) = logs();
        dir.publish("p.log", b"").unwrap();
        let mut log = Follow::new(&dir, "p.log", 1).unwrap();
        assert_eq!(log.poll(&dir).unwrap(), Vec::<String>::new());
        let endless = vec![b'x'; LINE * 3 + 1];
        dir.create_file_for_write("p.log", WriteMode::Append).unwrap().write_all(&endless).unwrap();
        assert_eq!(log.poll(&dir).unwrap().iter().map(String::len).collect::<Vec<_>>(), [LINE; 3]);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        let (_tmp, dir) = logs();
        dir.publish("p.log", b"a\nb\nc\n").unwrap();
        assert_eq!(tail(&dir, "p.log", 2).unwrap(), ["b", "c"]);
        assert_eq!(tail(&dir, "none.log", 2).unwrap(), Vec::<String>::new());
    }
}
