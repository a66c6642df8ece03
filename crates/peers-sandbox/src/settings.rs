//! What a child has as `/etc`: copies of the settings that everybody may read, in one directory. Each mount more would
//! cost each child time, and a directory that is mounted as it is shows to root what only root may read.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use peers_sys::dir::{FileError, FileMode, SafeDir};

use crate::access::{RESOLVING, SETTINGS, SYSTEM, covered};

/// A larger file is left out, and what lies deeper.
const FILE_CAP: u64 = 16 << 20;
const DEEPEST: usize = 16;

/// Copies [`SETTINGS`] from `etc` into a directory.
///
/// # Errors
/// [`FileError`] for what cannot be written. What cannot be read is left out.
pub(crate) fn copy(etc: &Path, to: &SafeDir) -> Result<(), FileError> {
    let shown = SETTINGS.iter().map(|name| etc.join(name));
    let shown: Vec<PathBuf> = shown.chain(SYSTEM.iter().map(PathBuf::from)).collect();
    for name in SETTINGS {
        entry(&etc.join(name), to, &shown, 0)?;
    }
    // The one of the moment is mounted over it: it changes with the network.
    to.publish_mode(RESOLVING, b"", FileMode::Plain)
}

fn entry(from: &Path, to: &SafeDir, shown: &[PathBuf], depth: usize) -> Result<(), FileError> {
    let (Some(name), Ok(found)) = (from.file_name(), from.symlink_metadata()) else { return Ok(()) };
    let mode = found.permissions().mode();
    if found.is_symlink() {
        return target(from, shown).map_or(Ok(()), |target| to.link(name, &target));
    }
    if found.is_dir() && mode & 0o5 == 0o5 && depth < DEEPEST {
        let inner = to.create_subdir(name)?;
        for found in from.read_dir().into_iter().flatten().flatten() {
            entry(&found.path(), &inner, shown, depth + 1)?;
        }
    } else if found.is_file()
        && mode & 0o4 != 0
        && let Some(dir) = from.parent()
        && let Ok(bytes) = SafeDir::open_shared(dir).and_then(|dir| dir.read(name, FILE_CAP))
    {
        let mode = if mode & 0o1 == 0 { FileMode::Plain } else { FileMode::Executable };
        to.publish_mode(name, &bytes, mode)?;
    }
    Ok(())
}

/// Where the copy of a link leads: to where the link does, unless the child lacks that and has what it ends at.
fn target(link: &Path, shown: &[PathBuf]) -> Option<PathBuf> {
    let has = |path: &Path| covered(path, shown.iter().map(PathBuf::as_path));
    let target = link.read_link().ok()?;
    let mut next = PathBuf::new();
    for part in link.parent()?.join(&target).components() {
        match part {
            Component::ParentDir => {
                next.pop();
            }
            part => next.push(part),
        }
    }
    if has(&next) { Some(target) } else { link.canonicalize().ok().filter(|real| has(real)) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_everybody_may_read_is_copied_and_nothing_else() {
        let tmp = tempfile::tempdir().unwrap();
        let (etc, to) = (tmp.path().canonicalize().unwrap().join("etc"), tmp.path().join("to"));
        for (path, mode) in [
            ("passwd", 0o644),
            ("group", 0o640),
            ("shadow", 0o644),
            ("ssl/certs/a.pem", 0o644),
            ("ssl/certs/run", 0o755),
            ("ssl/private/key.pem", 0o644),
        ] {
            let path = etc.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        fs::set_permissions(etc.join("ssl/private"), PermissionsExt::from_mode(0o711)).unwrap();
        for (target, link) in [
            ("a.pem", "ssl/certs/by-hash"),
            ("/usr/share/zoneinfo/UTC", "localtime"),
            ("static/zone", "timezone"),
            ("../../shadow", "ssl/certs/out"),
        ] {
            symlink(target, etc.join(link)).unwrap();
        }
        fs::create_dir(etc.join("static")).unwrap();
        symlink("/usr/bin", etc.join("static/zone")).unwrap();

        copy(&etc, &SafeDir::create_root(&to).unwrap()).unwrap();
        let mut found = Vec::new();
        let mut todo = vec![to.clone()];
        while let Some(dir) = todo.pop() {
            for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                let meta = path.symlink_metadata().unwrap();
                if meta.is_dir() {
                    todo.push(path);
                    continue;
                }
                let end = match fs::read_link(&path) {
                    Ok(target) => format!(" -> {}", target.display()),
                    Err(_) => format!(" {:o}", meta.permissions().mode() & 0o777),
                };
                found.push(format!("{}{end}", path.strip_prefix(&to).unwrap().display()));
            }
        }
        found.sort();
        let bin = Path::new("/usr/bin").canonicalize().unwrap();
        let right = [
            "localtime -> /usr/share/zoneinfo/UTC".to_owned(),
            "passwd 644".to_owned(),
            "resolv.conf 644".to_owned(),
            "ssl/certs/a.pem 644".to_owned(),
            "ssl/certs/by-hash -> a.pem".to_owned(),
            "ssl/certs/run 755".to_owned(),
            format!("timezone -> {}", bin.display()),
        ];
        assert_eq!(found, right);
    }
}
