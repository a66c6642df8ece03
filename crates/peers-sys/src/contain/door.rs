//! The socket of one container: a directory of its own, which only this user and that container have.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The socket, in its directory.
pub(super) const SOCKET: &str = "socket";
/// Bytes that the kernel takes for the path of a socket.
const LONGEST: usize = 107;

#[derive(Debug)]
pub(super) struct Door {
    dir: PathBuf,
}

impl Door {
    /// Makes one, below the operator's runtime directory where there is one.
    pub(super) fn open(runtime: Option<&OsStr>) -> io::Result<(Self, UnixListener)> {
        let name = format!("peers-{}", crate::rand::hex::<8>()?);
        let path = |base: &Path| base.join(&name).join(SOCKET);
        let fits = |base: &&Path| base.is_absolute() && path(base).as_os_str().as_bytes().len() <= LONGEST;
        let base = runtime.map(Path::new).filter(fits).filter(|base| base.is_dir());
        let dir = base.unwrap_or_else(|| Path::new("/tmp")).join(&name);
        DirBuilder::new().mode(0o700).create(&dir)?;
        let door = Self { dir };
        let listener = UnixListener::bind(door.dir.join(SOCKET))?;
        Ok((door, listener))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Empty and private: what stays costs nothing.
        let _gone = fs::remove_file(self.dir.join(SOCKET));
        let _gone = fs::remove_dir(&self.dir);
    }
}
