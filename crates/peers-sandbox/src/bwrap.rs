//! The backend `bwrap`: a file system, processes and, if asked, a network of its own, made by bubblewrap.
//!
//! What bubblewrap is told is a pure function of what is asked and of how the system's directories lie; the second
//! stub, in the new place, puts the filter of system calls on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use peers_sys::confine::{Confine, Filter};
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::rand;
use peers_sys::spawn::{Spawn, Within};

use crate::access::{Access, Network, RESOLVING, SYSTEM, covered};
use crate::settings;

/// Processes and threads of one child. Of root's children the kernel does not count them.
const PROCESSES: u64 = 4096;
/// Our program, behind a wall that has a file system of its own.
pub const STUB: &str = "/run/peers/bin/peers";

/// What of the system a child has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Roots {
    /// Directories that are there, with where those lead that are links.
    pub(crate) dirs: Vec<(PathBuf, Option<PathBuf>)>,
    /// What it has as `/etc`; nothing before that was made.
    pub(crate) etc: Option<PathBuf>,
    /// We are in a container, which gave the machine this name already and lets nobody give it another one.
    pub(crate) is_named: bool,
}

impl Roots {
    pub(crate) fn look() -> Self {
        let there = SYSTEM.iter().map(PathBuf::from).filter(|path| path.is_dir());
        let link = |path: &PathBuf| {
            let real = path.canonicalize().ok().filter(|real| real != path)?;
            real.strip_prefix("/").ok().map(Path::to_owned)
        };
        let dirs = there.map(|path| (path.clone(), link(&path))).collect();
        Self { dirs, etc: None, is_named: peers_sys::identity::is_kept_loop() }
    }

    /// Makes what children have as `/etc`, in a directory that none of them writes.
    pub(crate) fn with_settings(mut self, scratch: &SafeDir) -> Result<Self, FileError> {
        let random = rand::hex::<8>();
        let random = random.map_err(|source| {
            let path = scratch.path().to_owned();
            FileError::Io { path, op: "draw a random name in", source }
        })?;
        let etc = scratch.create_subdir(format!("etc-{random}"))?;
        settings::copy(Path::new("/etc"), &etc)?;
        self.etc = Some(etc.path().to_owned());
        Ok(self)
    }
}

pub(crate) fn put_up(
    mut spawn: Spawn,
    access: &Access,
    (bwrap, ours): (&Path, &Path),
    (roots, filter): (&Roots, Filter),
) -> Spawn {
    spawn.confine = Confine { files: None, filter: Some(filter), apart: access.network == Network::Host };
    spawn.limits.processes = spawn.limits.processes.or(Some(PROCESSES));
    let mut args = args(access, roots, ours);
    args.extend(["--chdir".into(), spawn.cwd.clone().into_os_string(), "--".into()]);
    spawn.within = Some(Within { program: bwrap.to_owned(), args, stub: STUB.into(), kept: None });
    spawn
}

/// All arguments but the working directory and the command.
pub(crate) fn args(access: &Access, roots: &Roots, ours: &Path) -> Vec<OsString> {
    let mut out = Args(Vec::new());
    out.words(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    if access.network == Network::None {
        out.words(&["--unshare-net"]);
    }
    out.words(&["--die-with-parent", "--cap-drop", "ALL"]);
    if !roots.is_named {
        out.words(&["--hostname", "peers"]);
    }
    for (path, link) in &roots.dirs {
        match link {
            Some(to) => out.pair("--symlink", to, path),
            None => out.pair("--ro-bind", path, path),
        }
    }
    if let Some(etc) = &roots.etc {
        // It stays as it is: what else is mounted in it gets its place there first.
        out.pair("--bind", etc, Path::new("/etc"));
        if access.network == Network::Host {
            let path = Path::new("/etc").join(RESOLVING);
            out.pair("--ro-bind-try", &path, &path);
        }
    }
    out.words(&["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run"]);
    if let Some(home) = &access.home {
        out.path("--tmpfs", home);
    }
    let written = outermost(&access.write, []);
    // Where the home directory lies in it, it is not there as it is.
    let is_whole = |root: &Path| !access.home.as_ref().is_some_and(|home| home.starts_with(root));
    let system = roots.dirs.iter().filter(|(root, link)| link.is_none() && is_whole(root));
    let there = system.map(|(root, _)| root.as_path()).chain(written.iter().copied());
    for path in outermost(&access.read, there) {
        out.pair("--ro-bind-try", path, path);
    }
    out.pair("--ro-bind", ours, Path::new(STUB));
    for path in written {
        out.pair("--bind-try", path, path);
    }
    for mount in &access.mounts {
        let option = if mount.writable { "--bind" } else { "--ro-bind" };
        out.pair(option, &mount.outside, &mount.inside);
    }
    for path in &access.kept {
        out.pair("--ro-bind-try", path, path);
    }
    for path in &access.hidden {
        out.path("--tmpfs", path);
        for shown in access.shown.iter().filter(|shown| shown.starts_with(path)) {
            out.pair("--bind-try", shown, shown);
        }
        out.path("--remount-ro", path);
    }
    // The ground on which all of this was put.
    if roots.etc.is_some() {
        out.words(&["--remount-ro", "/etc"]);
    }
    out.words(&["--remount-ro", "/"]);
    out.0
}

/// The places among these that neither lie in another one nor in what is there already. bubblewrap reads the list of all
/// mounts for each one that it makes.
fn outermost<'a>(places: &'a [PathBuf], there: impl IntoIterator<Item = &'a Path>) -> Vec<&'a Path> {
    let there: Vec<&Path> = there.into_iter().collect();
    let mut out: Vec<&Path> = Vec::new();
    for (n, path) in places.iter().enumerate() {
        let others = places.iter().enumerate().filter(|(m, other)| n != *m && (*other != path || *m < n));
        let others = others.map(|(_, other)| other.as_path()).chain(there.iter().copied());
        if !covered(path, others) {
            out.push(path);
        }
    }
    out
}

struct Args(Vec<OsString>);

impl Args {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, option: &str, path: &Path) {
        self.0.extend([option.into(), path.into()]);
    }

    fn pair(&mut self, option: &str, from: &Path, to: &Path) {
        self.0.extend([option.into(), from.into(), to.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Mount;

    #[test]
    fn what_bubblewrap_is_told_is_this_in_this_order() {
        let path = |path: &str| PathBuf::from(path);
        let access = Access {
            read: ["/h/.nvm/v22/lib", "/h/.nvm/v22", "/usr/bin", "/h/repo/.git/objects", "/opt/h"]
                .map(PathBuf::from)
                .into(),
            write: vec![path("/h/repo")],
            mounts: vec![Mount {
                outside: path("/h/turn/.git"),
                inside: path("/h/repo/.git"),
                writable: true,
            }],
            kept: vec![path("/h/repo/.peers")],
            hidden: vec![path("/h/repo/.peers/inbox")],
            shown: vec![path("/h/repo/.peers/inbox/ann")],
            home: Some(path("/h")),
            scratch: None,
            network: Network::None,
            caps: crate::Caps::default(),
        };
        let roots = Roots {
            dirs: vec![(path("/usr"), None), (path("/bin"), Some(path("usr/bin")))],
            etc: Some(path("/h/scratch/etc")),
            is_named: false,
        };
        let args = args(&access, &roots, Path::new("/opt/peers"));
        let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let lines = words.join(" ").replace(" --", "\n--");
        let told = "--unshare-user\n--unshare-pid\n--unshare-ipc\n--unshare-uts\n--unshare-cgroup-try\n--unshare-net\n\
            --die-with-parent\n--cap-drop ALL\n--hostname peers\n--ro-bind /usr /usr\n--symlink usr/bin /bin\n\
            --bind /h/scratch/etc /etc\n--dev /dev\n\
            --proc /proc\n--tmpfs /tmp\n--tmpfs /run\n--tmpfs /h\n--ro-bind-try /h/.nvm/v22 /h/.nvm/v22\n\
            --ro-bind-try /opt/h /opt/h\n\
            --ro-bind /opt/peers /run/peers/bin/peers\n--bind-try /h/repo /h/repo\n\
            --bind /h/turn/.git /h/repo/.git\n\
            --ro-bind-try /h/repo/.peers /h/repo/.peers\n--tmpfs /h/repo/.peers/inbox\n\
            --bind-try /h/repo/.peers/inbox/ann /h/repo/.peers/inbox/ann\n--remount-ro /h/repo/.peers/inbox\n\
            --remount-ro /etc\n--remount-ro /";
        assert_eq!(lines, told);
    }
}
