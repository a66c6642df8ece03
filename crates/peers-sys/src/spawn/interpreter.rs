//! The interpreter of a script, which has to be there as well.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// So much of a script's beginning does the kernel read.
const FIRST: u64 = 256;
/// Cells of an interpreter's name that are shown.
const SHOWN: usize = 80;

/// The interpreter that the first line of `file` names, if that is not there. A file that cannot be read is
/// left to the kernel. A relative interpreter is relative to `cwd`, where the program is started.
pub(super) fn absent(file: &Path, cwd: &Path) -> Option<OsString> {
    let named = named(file)?;
    // What cannot be looked at for another reason may be there.
    let gone = cwd.join(&named).metadata().is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    });
    gone.then_some(named)
}

/// What stands behind `#!`.
fn named(file: &Path) -> Option<OsString> {
    // Others may put a FIFO there between two looks: no open may wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut first = Vec::new();
    file.take(FIRST).read_to_end(&mut first).ok()?;
    let rest = first.strip_prefix(b"#!")?;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let rest = rest.get(rest.iter().position(|byte| !blank(byte))?..)?;
    // One that does not end in what the kernel reads is none.
    let end = rest.iter().position(|byte| blank(byte) || matches!(byte, b'\n' | 0));
    let end = end.or_else(|| (first.len() < 256).then_some(rest.len()))?;
    let name = rest.get(..end).filter(|name| !name.is_empty())?;
    Some(OsStr::from_bytes(name).to_owned())
}

/// An interpreter that is not there, in words, and what helps.
pub(super) fn words(path: &Path, interpreter: &OsStr) -> String {
    let file = crate::term::inline(&path.to_string_lossy());
    let name = interpreter.to_string_lossy();
    let shown = crate::term::line(name.trim_end(), SHOWN);
    let (odd, mend) = if name.ends_with('\r') {
        (" with a carriage return behind it", "give that file lines that end as on Unix")
    } else {
        ("", "install it, or correct that line")
    };
    format!("{file} is there, but the interpreter that its first line names is not: `{shown}`{odd}; {mend}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_what_the_kernel_takes_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(dir.path().join("here"), "").unwrap();
        let long = format!("#!/{}", "x".repeat(400));
        for (text, gone) in [
            ("#!/no/such/thing\n", Some("/no/such/thing")),
            ("#! \t/no/such/thing -x y\n", Some("/no/such/thing")),
            ("#!/no/such/thing", Some("/no/such/thing")),
            ("#!/bin/sh/none\n", Some("/bin/sh/none")),
            ("#!/bin/sh\r\n", Some("/bin/sh\r")),
            ("#!none\n", Some("none")),
            ("#!here\n", None),
            ("#!/bin/sh -e\n", None),
            ("#!\n", None),
            ("#!", None),
            ("", None),
            ("\n#!/no/such/thing\n", None),
            (&long, None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(absent(&file, dir.path()), gone.map(OsString::from), "{text:?}");
        }
        assert_eq!(absent(dir.path(), dir.path()), None);
    }

    #[test]
    fn the_words_name_it_bounded_and_tamed() {
        let odd = format!("/\u{1b}]0;x\u{7}{}", "y".repeat(250));
        let said = words(Path::new("/a/\u{1b}[31mb"), OsStr::new(&odd));
        assert!(said.starts_with("/a/b is there") && said.contains("yyy…`; install it"), "{said:?}");
        assert!(!said.contains(char::is_control) && said.len() < 300, "{said:?}");
        let said = words(Path::new("/a"), OsStr::new("/bin/sh\r"));
        assert!(
            said.ends_with(
                "is not: `/bin/sh` with a carriage return behind it; give that file lines that end as on Unix"
            ),
            "{said}"
        );
    }
}
