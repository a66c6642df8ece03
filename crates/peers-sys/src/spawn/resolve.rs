//! Finding the program before a process is started for it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{SpawnError, interpreter};

/// The file that `program` means, absolute.
///
/// A name without a slash is looked up in `path` (the value of a `PATH` variable), whose empty and
/// relative entries are skipped: they would find whatever lies in the work tree. A name with a
/// slash is taken relative to `cwd`.
///
/// # Errors
/// [`SpawnError::NotFound`], [`SpawnError::NotExecutable`] or [`SpawnError::NoInterpreter`].
pub fn resolve_program(program: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, SpawnError> {
    let mut refused = None;
    for candidate in candidates(program, path, cwd) {
        // What cannot be looked at is not there, as for a shell.
        if !candidate.metadata().is_ok_and(|found| found.is_file()) {
            if candidate.is_dir() && has_slash(program) {
                refused = Some(candidate);
            }
        } else if rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() {
            return match interpreter::absent(&candidate, cwd) {
                None => Ok(candidate),
                Some(interpreter) => Err(SpawnError::NoInterpreter {
                    program: program.to_owned(),
                    path: candidate,
                    interpreter,
                }),
            };
        } else {
            refused.get_or_insert(candidate);
        }
    }
    let program = program.to_owned();
    Err(match refused {
        Some(path) => SpawnError::NotExecutable { program, path },
        None => SpawnError::NotFound { program },
    })
}

fn candidates(program: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Vec<PathBuf> {
    if program.is_empty() {
        Vec::new()
    } else if has_slash(program) {
        vec![cwd.join(program)]
    } else {
        let entries = path.unwrap_or_default().as_bytes().split(|b| *b == b':');
        let directories = entries.map(|entry| Path::new(OsStr::from_bytes(entry)));
        directories.filter(|directory| directory.is_absolute()).map(|d| d.join(program)).collect()
    }
}

fn has_slash(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, name: &str, mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        fn path(&self, entries: &[&str]) -> OsString {
            let full = entries.iter().map(|e| self.0.path().join(e).into_os_string());
            full.collect::<Vec<_>>().join(OsStr::new(":"))
        }

        fn resolve(&self, program: &str, path: &OsStr) -> Result<PathBuf, SpawnError> {
            resolve_program(OsStr::new(program), Some(path), self.0.path())
        }
    }

    #[test]
    fn the_first_executable_on_the_path_wins() {
        let tree = Tree::new();
        tree.file("a/tool", 0o644);
        let wanted = tree.file("b/tool", 0o755);
        tree.file("c/tool", 0o755);
        assert_eq!(tree.resolve("tool", &tree.path(&["a", "b", "c"])).unwrap(), wanted);
    }

    #[test]
    fn relative_and_empty_path_entries_find_nothing() {
        let tree = Tree::new();
        tree.file("tool", 0o755);
        for path in ["", ":", ".", ".:", "::."] {
            let found = tree.resolve("tool", OsStr::new(path));
            assert!(matches!(found, Err(SpawnError::NotFound { .. })), "{path:?}");
        }
    }

    #[test]
    fn a_name_with_a_slash_is_relative_to_the_working_directory() {
        let tree = Tree::new();
        let wanted = tree.file("bin/tool", 0o755);
        assert_eq!(tree.resolve("bin/tool", OsStr::new("")).unwrap(), wanted);
        assert_eq!(tree.resolve(wanted.to_str().unwrap(), OsStr::new("")).unwrap(), wanted);
    }

    #[test]
    fn missing_and_not_executable_are_told_apart() {
        let tree = Tree::new();
        tree.file("bin/text", 0o644);
        let path = tree.path(&["bin"]);
        let missing = tree.resolve("nothing", &path).unwrap_err();
        assert_eq!(missing.exit_code(), 127);
        for name in ["text", "bin/text", "./bin"] {
            let refused = tree.resolve(name, &path).unwrap_err();
            assert!(matches!(refused, SpawnError::NotExecutable { .. }), "{name}: {refused}");
            assert_eq!(refused.exit_code(), 126);
        }
        assert_eq!(tree.resolve("", &path).unwrap_err().exit_code(), 127);
    }
}
