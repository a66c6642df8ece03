//! The backend `bwrap`: a file system, processes and, if asked, a network of its own, made by bubblewrap.
//!
//! What bubblewrap is told is a pure function of what is asked and of how the system's directories lie; the second
//! stub, in the new place, puts the filter of system calls on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use peers_sys::confine::{Confine, Filter};
use peers_sys::spawn::{Spawn, Within};

use crate::access::{Access, Network, RESOLVING, SETTINGS, SYSTEM};

/// Our program, in there.
pub(crate) const STUB: &str = "/run/peers/bin/peers";

/// The system's directories that are there, with where those lead that are links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Roots(pub(crate) Vec<(PathBuf, Option<PathBuf>)>);

impl Roots {
    pub(crate) fn look() -> Self {
        let there = SYSTEM.iter().map(PathBuf::from).filter(|path| path.is_dir());
        let link = |path: &PathBuf| {
            let real = path.canonicalize().ok().filter(|real| real != path)?;
            real.strip_prefix("/").ok().map(Path::to_owned)
        };
        Self(there.map(|path| (path.clone(), link(&path))).collect())
    }
}

pub(crate) fn put_up(
    mut spawn: Spawn,
    access: &Access,
    (bwrap, ours): (&Path, &Path),
    (roots, filter): (&Roots, Filter),
) -> Spawn {
    spawn.confine = Confine { files: None, filter: Some(filter) };
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
    out.words(&["--die-with-parent", "--cap-drop", "ALL", "--hostname", "peers"]);
    for (path, link) in &roots.0 {
        match link {
            Some(to) => out.pair("--symlink", to, path),
            None => out.pair("--ro-bind", path, path),
        }
    }
    for name in SETTINGS {
        let path = Path::new("/etc").join(name);
        out.pair("--ro-bind-try", &path, &path);
    }
    if access.network == Network::Host {
        for path in RESOLVING.map(Path::new) {
            out.pair("--ro-bind-try", path, path);
        }
    }
    out.words(&["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run"]);
    if let Some(home) = &access.home {
        out.path("--tmpfs", home);
    }
    for path in &access.read {
        out.pair("--ro-bind-try", path, path);
    }
    out.pair("--ro-bind", ours, Path::new(STUB));
    for path in &access.write {
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
    out.words(&["--remount-ro", "/"]);
    out.0
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
            read: vec![path("/h/.nvm/v22")],
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
        };
        let roots = Roots(vec![(path("/usr"), None), (path("/bin"), Some(path("usr/bin")))]);
        let args = args(&access, &roots, Path::new("/opt/peers"));
        let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let mut lines = words.join(" ").replace(" --", "\n--");
        for name in SETTINGS {
            let line = format!("--ro-bind-try /etc/{name} /etc/{name}\n");
            assert!(lines.contains(&line), "{line}");
            lines = lines.replacen(&line, "", 1);
        }
        let told = "--unshare-user\n--unshare-pid\n--unshare-ipc\n--unshare-uts\n--unshare-cgroup-try\n--unshare-net\n\
            --die-with-parent\n--cap-drop ALL\n--hostname peers\n--ro-bind /usr /usr\n--symlink usr/bin /bin\n--dev /dev\n\
            --proc /proc\n--tmpfs /tmp\n--tmpfs /run\n--tmpfs /h\n--ro-bind-try /h/.nvm/v22 /h/.nvm/v22\n\
            --ro-bind /opt/peers /run/peers/bin/peers\n--bind-try /h/repo /h/repo\n\
            --bind /h/turn/.git /h/repo/.git\n\
            --ro-bind-try /h/repo/.peers /h/repo/.peers\n--tmpfs /h/repo/.peers/inbox\n\
            --bind-try /h/repo/.peers/inbox/ann /h/repo/.peers/inbox/ann\n--remount-ro /h/repo/.peers/inbox\n\
            --remount-ro /";
        assert_eq!(lines, told);
    }
}
