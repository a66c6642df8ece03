//! `/proc/<pid>/stat`, parsed so that a process cannot lie by its name.

use std::io;
use std::path::PathBuf;

use super::{IdentityError, Pid};

/// The fields of `/proc/<pid>/stat` that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcStat {
    pub(crate) pid: Pid,
    /// `None` for a process whose parent lives outside our pid namespace.
    pub(crate) parent: Option<Pid>,
    pub(crate) pgid: Option<Pid>,
    pub(crate) session: Option<Pid>,
    /// The state letter of the thread group leader.
    pub(crate) state: u8,
    pub(crate) threads: u64,
    /// Clock ticks since boot.
    pub(crate) start_time: u64,
}

impl ProcStat {
    /// Whether nothing of the process runs any more.
    ///
    /// A process can end its first thread and go on in another: it then looks like a zombie, but
    /// still counts more than one thread.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

pub(crate) fn read(pid: Pid) -> Result<ProcStat, IdentityError> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if is_gone(&error) => return Err(IdentityError::Gone { pid }),
        Err(source) => return Err(IdentityError::Read { path, source }),
    };
    match parse(&bytes) {
        // A process that ended between open and read gives an empty file.
        None if bytes.is_empty() => Err(IdentityError::Gone { pid }),
        None => Err(IdentityError::Malformed { path }),
        Some(stat) => Ok(stat),
    }
}

/// Whether an error of a file below `/proc/<pid>` says that the process has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The name in parentheses may hold anything, parentheses and newlines included, so the fields are
/// counted from the last `)` on.
fn parse(bytes: &[u8]) -> Option<ProcStat> {
    let open = bytes.iter().position(|b| *b == b'(')?;
    let close = bytes.iter().rposition(|b| *b == b')')?;
    let number = std::str::from_utf8(bytes.get(..open)?).ok()?.trim();
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let mut next = || fields.next()?.parse::<i32>().ok().map(Pid::new);
    let (parent, pgid, session) = (next()?, next()?, next()?);
    // Fields 7 to 19 are skipped, except for the thread count in 20; the start time is field 22.
    let threads = fields.nth(13)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    Some(ProcStat { pid: Pid::new(number.parse().ok()?)?, parent, pgid, session, state, threads, start_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 7 42 41 34816 42 4194304 100 0 0 0 1 2 3 4 20 0 3 0 987654 1000 200 18446744";

    fn pid(number: i32) -> Pid {
        Pid::new(number).unwrap()
    }

    #[test]
    fn the_fields_are_where_proc_5_says() {
        let stat = parse(format!("42 (sh) {TAIL}\n").as_bytes()).unwrap();
        let expected = ProcStat {
            pid: pid(42),
            parent: Some(pid(7)),
            pgid: Some(pid(42)),
            session: Some(pid(41)),
            state: b'S',
            threads: 3,
            start_time: 987_654,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn a_hostile_name_cannot_shift_the_fields() {
        let honest = parse(format!("42 (sh) {TAIL}\n").as_bytes()).unwrap();
        for name in ["a) (b", ") R 1 1 1", "(", ")", "x) Z 1 (", "new\nline", ""] {
            let stat = parse(format!("42 ({name}) {TAIL}\n").as_bytes()).unwrap();
            assert_eq!(stat, honest, "{name:?}");
        }
        let mut bytes = b"42 (\xff\xfe) ".to_vec();
        bytes.extend_from_slice(TAIL.as_bytes());
        assert_eq!(parse(&bytes), Some(honest), "a name need not be UTF-8");
    }

    #[test]
    fn a_parent_outside_the_namespace_is_none() {
        let stat = parse(b"42 (sh) S 0 0 -1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0").unwrap();
        assert_eq!((stat.parent, stat.pgid, stat.session), (None, None, None));
    }

    #[test]
    fn a_cut_line_is_no_process() {
        for text in ["", "42", "42 (sh", "42 (sh) S 7", "42 (sh) S 7 42 41 0 0 0 0", "x (sh) S 1 1 1"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_process_that_lost_only_its_first_thread_is_not_dead() {
        let mut stat = parse(format!("42 (sh) {TAIL}").as_bytes()).unwrap();
        stat.state = b'Z';
        assert!(!stat.is_dead());
        stat.threads = 1;
        assert!(stat.is_dead());
    }
}
