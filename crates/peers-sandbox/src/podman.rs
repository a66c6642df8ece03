//! The backend `podman`: each child in a container of its own, from an image that the operator made.
//!
//! What podman is told is a pure function of what is asked and of what podman is like here. The child's command and
//! environment are no part of it: they go in by [`peers_sys::contain`]. Programs are those of the image; everything that
//! is bound has the path that it has outside, so that paths in what a tool says stay true.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_sys::confine::{Confine, Filter};
use peers_sys::contain::{DOOR, ENTRY};
use peers_sys::reap::RUN_MARKER;
use peers_sys::spawn::{Kept, Spawn, Within};

use crate::access::{Access, Caps, Network};

/// Our program, in an image.
pub const INSIDE: &str = "/usr/local/bin/peers";
/// The image that is taken where nobody names another.
pub const USUAL_IMAGE: &str = "localhost/peers:dev";

/// What a container may use at most where nobody says more: bytes, processes, processors.
const MEMORY: u64 = 8 << 30;
const PROCESSES: u64 = 4096;
const PROCESSORS: u64 = 4;
/// Of a whole loop: agents and gates besides each other.
const LOOP_PROCESSES: u64 = 8192;
/// Open files, and processes of one user.
const FILES: u64 = 8192;
const NPROC: u64 = 4096;
/// Sizes of what lies in memory.
const TMP: &str = "512m";
const HOME: &str = "256m";
const HIDDEN: &str = "1m";

/// What podman is like here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Podman {
    pub(crate) program: PathBuf,
    pub(crate) image: String,
    /// Its environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) rootless: bool,
    /// The limits that the kernel can enforce here.
    pub(crate) limits: Vec<Limit>,
    /// Open files that may be granted.
    pub(crate) open_files: Option<u64>,
    /// A container has a whole loop, which puts walls up in there.
    pub(crate) whole_loop: bool,
}

/// What can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Memory,
    Processes,
    Processors,
}

impl Limit {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::Processors];

    /// The kernel's name of what enforces it.
    pub(crate) fn controller(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::Processors => "cpu",
        }
    }

    fn words(self, podman: &Podman, caps: Caps) -> Vec<String> {
        let processes = if podman.whole_loop { LOOP_PROCESSES } else { PROCESSES };
        match self {
            Self::Memory => match caps.memory.unwrap_or(MEMORY) {
                // Without this word there is no limit.
                0 => Vec::new(),
                most => vec![format!("--memory={most}b"), format!("--memory-swap={most}b")],
            },
            // Without this word there is podman's own limit, which zero takes away.
            Self::Processes => vec![format!("--pids-limit={}", caps.pids.unwrap_or(processes))],
            Self::Processors => vec![format!("--cpus={}", caps.cpus.unwrap_or(PROCESSORS))],
        }
    }
}

/// Behind it.
pub(crate) fn put_up(mut spawn: Spawn, access: &Access, (podman, filter): (&Podman, Filter)) -> Spawn {
    spawn.confine = Confine { files: None, filter: Some(filter), apart: access.network == Network::Host };
    // Those of the image are found by the image's own.
    spawn.env.retain(|(name, _)| name != "PATH");
    let run = spawn.env.iter().rev().find(|(name, _)| name == RUN_MARKER).map(|(_, run)| run.as_os_str());
    let args = args(&there(access), podman, run);
    within(spawn, args, podman, false)
}

/// A loop in a container of its own, which has all of its processes and none of the walls that it puts up itself. `run`
/// is that of the loop.
pub(crate) fn whole_loop(mut spawn: Spawn, access: &Access, (podman, run): (&Podman, &OsStr)) -> Spawn {
    spawn.env.retain(|(name, _)| name != "PATH");
    let args = args(&there(access), podman, Some(run));
    within(spawn, args, podman, true)
}

fn within(mut spawn: Spawn, args: Vec<OsString>, podman: &Podman, with_lock: bool) -> Spawn {
    let kept = Some(Kept { env: podman.env.clone(), with_lock });
    spawn.within = Some(Within { program: podman.program.clone(), args, stub: INSIDE.into(), kept });
    spawn
}

/// Without what is not there, which podman would refuse.
fn there(access: &Access) -> Access {
    let found = |paths: &[PathBuf]| paths.iter().filter(|path| path.exists()).cloned().collect();
    Access {
        read: found(&access.read),
        write: found(&access.write),
        kept: found(&access.kept),
        hidden: found(&access.hidden),
        shown: found(&access.shown),
        ..access.clone()
    }
}

/// What lies at one place inside.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lies {
    Bound { from: PathBuf, writable: bool },
    Memory { size: &'static str, mode: &'static str, writable: bool },
}

/// All arguments after `run` and what the keeper adds, with the image and its command.
pub(crate) fn args(access: &Access, podman: &Podman, run: Option<&OsStr>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut words = |words: &[&str]| out.extend(words.iter().map(OsString::from));
    words(&["--pull=never", "--log-driver=none", "--http-proxy=false", "--image-volume=ignore"]);
    if podman.rootless {
        words(&["--userns=keep-id"]);
    }
    words(&[&format!("--user={}:{}", podman.user, podman.group), "--hostname=peers"]);
    words(&[if access.network == Network::None { "--network=none" } else { "--network=host" }]);
    words(&["--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=label=disable"]);
    if podman.whole_loop && podman.rootless {
        // bubblewrap mounts `/proc` anew, which the kernel allows where nothing of it is covered. As root no: there who has
        // root's number may change settings of the system by what was covered.
        words(&["--security-opt=unmask=/proc/*"]);
    }
    words(&["--read-only", "--shm-size=64m", "--stop-timeout=10", "--ulimit=core=0:0"]);
    let capped = |most: u64| podman.open_files.map_or(most, |allowed| allowed.min(most));
    words(&[&format!("--ulimit=nofile={0}:{0}", capped(FILES)), &format!("--ulimit=nproc={NPROC}:{NPROC}")]);
    for limit in &podman.limits {
        words(&limit.words(podman, access.caps).iter().map(String::as_str).collect::<Vec<_>>());
    }
    if let Some(run) = run {
        let mut label = OsString::from("io.peers.run=");
        label.push(run);
        out.extend(["--label".into(), label]);
    }
    for (at, lies) in &lie(access) {
        out.extend(lies.option(at));
    }
    // Podman makes the user's entry in the list of users of it.
    let home = access.home.as_deref().unwrap_or(Path::new("/"));
    out.extend(["--workdir".into(), home.into(), OsString::from("--entrypoint")]);
    out.extend([INSIDE.into(), podman.image.clone().into(), ENTRY.into(), DOOR.into()]);
    out
}

/// Where something lies, the outer before the inner; of two for one place the later one counts.
fn lie(access: &Access) -> BTreeMap<PathBuf, Lies> {
    let memory = |size, mode, writable| Lies::Memory { size, mode, writable };
    let bound = |from: &Path, writable| Lies::Bound { from: from.to_owned(), writable };
    let mut all = BTreeMap::from([(PathBuf::from("/tmp"), memory(TMP, "1777", true))]);
    if let Some(home) = &access.home {
        all.insert(home.clone(), memory(HOME, "0755", true));
    }
    for (paths, writable) in [(&access.read, false), (&access.write, true)] {
        for path in paths {
            // The image has its own.
            if path != Path::new(INSIDE) {
                all.insert(path.clone(), bound(path, writable));
            }
        }
    }
    for mount in &access.mounts {
        all.insert(mount.inside.clone(), bound(&mount.outside, mount.writable));
    }
    all.extend(access.kept.iter().map(|path| (path.clone(), bound(path, false))));
    all.extend(access.hidden.iter().map(|path| (path.clone(), memory(HIDDEN, "0755", false))));
    all.extend(access.shown.iter().map(|path| (path.clone(), bound(path, true))));
    all
}

impl Lies {
    fn option(&self, at: &Path) -> [OsString; 2] {
        let mut out = OsString::new();
        match self {
            Self::Memory { size, mode, writable } => {
                out.push("type=tmpfs,destination=");
                out.push(at);
                out.push(format!(",tmpfs-size={size},tmpfs-mode={mode},chown=true,notmpcopyup"));
                out.push(if *writable { "" } else { ",ro=true" });
            }
            // Each form has a character that no path in it may have. With both podman refuses it.
            Self::Bound { from, writable } if [from.as_path(), at].iter().any(|path| has_comma(path)) => {
                out.push(from);
                out.push(":");
                out.push(at);
                out.push(if *writable { "" } else { ":ro" });
                return ["--volume".into(), out];
            }
            Self::Bound { from, writable } => {
                out.push("type=bind,source=");
                out.push(from);
                out.push(",destination=");
                out.push(at);
                out.push(if *writable { "" } else { ",ro=true" });
            }
        }
        ["--mount".into(), out]
    }
}

fn has_comma(path: &Path) -> bool {
    path.as_os_str().as_bytes().contains(&b',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Mount;

    fn podman() -> Podman {
        Podman {
            program: "/usr/bin/podman".into(),
            image: USUAL_IMAGE.into(),
            env: Vec::new(),
            user: 1001,
            group: 1002,
            rootless: true,
            limits: Limit::ALL.into(),
            open_files: Some(4000),
            whole_loop: false,
        }
    }

    fn told(access: &Access, podman: &Podman) -> String {
        let args = args(access, podman, Some(OsStr::new("r1")));
        let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn what_podman_is_told_is_this_in_this_order() {
        let path = |path: &str| PathBuf::from(path);
        let access = Access {
            read: vec![path("/usr/local/bin/peers"), path("/h/data")],
            write: vec![path("/h/repo"), path("/h/.claude")],
            mounts: vec![
                Mount { outside: path("/h/turn/.git"), inside: path("/h/repo/.git"), writable: true },
                Mount {
                    outside: path("/h/repo/.git/objects"),
                    inside: path("/run/peers/objects"),
                    writable: false,
                },
            ],
            kept: vec![path("/h/repo/.peers")],
            hidden: vec![path("/h/repo/.peers/inbox")],
            shown: vec![path("/h/repo/.peers/inbox/ann")],
            home: Some(path("/h")),
            scratch: None,
            network: Network::None,
            caps: Caps::default(),
        };
        let expected = "--pull=never\n--log-driver=none\n--http-proxy=false\n--image-volume=ignore\n--userns=keep-id\n\
            --user=1001:1002\n--hostname=peers\n--network=none\n--cap-drop=ALL\n--security-opt=no-new-privileges\n\
            --security-opt=label=disable\n--read-only\n--shm-size=64m\n--stop-timeout=10\n--ulimit=core=0:0\n\
            --ulimit=nofile=4000:4000\n--ulimit=nproc=4096:4096\n--memory=8589934592b\n--memory-swap=8589934592b\n--pids-limit=4096\n\
            --cpus=4\n--label io.peers.run=r1\n\
            --mount type=tmpfs,destination=/h,tmpfs-size=256m,tmpfs-mode=0755,chown=true,notmpcopyup\n\
            --mount type=bind,source=/h/.claude,destination=/h/.claude\n\
            --mount type=bind,source=/h/data,destination=/h/data,ro=true\n\
            --mount type=bind,source=/h/repo,destination=/h/repo\n\
            --mount type=bind,source=/h/turn/.git,destination=/h/repo/.git\n\
            --mount type=bind,source=/h/repo/.peers,destination=/h/repo/.peers,ro=true\n\
            --mount type=tmpfs,destination=/h/repo/.peers/inbox,tmpfs-size=1m,tmpfs-mode=0755,chown=true,notmpcopyup,ro=true\n\
            --mount type=bind,source=/h/repo/.peers/inbox/ann,destination=/h/repo/.peers/inbox/ann\n\
            --mount type=bind,source=/h/repo/.git/objects,destination=/run/peers/objects,ro=true\n\
            --mount type=tmpfs,destination=/tmp,tmpfs-size=512m,tmpfs-mode=1777,chown=true,notmpcopyup\n\
            --workdir /h\n--entrypoint /usr/local/bin/peers localhost/peers:dev __inside /run/peers/door";
        assert_eq!(told(&access, &podman()), expected);
    }

    #[test]
    fn as_root_there_is_no_user_namespace_and_limits_that_do_not_hold_are_not_asked_for() {
        let root =
            Podman { user: 0, group: 0, rootless: false, limits: Vec::new(), open_files: None, ..podman() };
        let told = told(&Access::default(), &root);
        assert!(told.contains("--user=0:0\n") && !told.contains("userns") && !told.contains("--memory"));
        assert!(told.contains("--network=host\n") && told.contains("--ulimit=nofile=8192:8192\n"));
    }

    #[test]
    fn a_whole_loop_has_more_processes_and_without_root_an_uncovered_proc_for_walls_inside() {
        let told = |rootless| told(&Access::default(), &Podman { rootless, whole_loop: true, ..podman() });
        assert!(told(true).contains("--pids-limit=8192\n") && told(true).contains("unmask=/proc/*\n"));
        assert!(!told(false).contains("unmask"));
    }

    #[test]
    fn what_a_container_may_use_is_what_the_operator_says_and_zero_is_no_limit() {
        let told = |caps| told(&Access { caps, ..Access::default() }, &podman());
        let some = told(Caps { memory: Some(64 << 20), pids: Some(100), cpus: Some(1) });
        assert!(some.contains("--memory=67108864b\n--memory-swap=67108864b\n--pids-limit=100\n--cpus=1\n"));
        let none = told(Caps { memory: Some(0), pids: Some(0), cpus: Some(0) });
        assert!(!none.contains("--memory") && none.contains("--pids-limit=0\n--cpus=0\n"));
    }

    #[test]
    fn a_loop_keeps_its_environment_and_has_no_filter_but_its_own() {
        let mut spawn = Spawn::new(peers_sys::spawn::StubProgram::at("/x"), INSIDE, "/");
        spawn.env = [("PATH", "/b"), ("KEY", "v")].map(|(name, value)| (name.into(), value.into())).into();
        let put = whole_loop(spawn, &Access::default(), (&podman(), OsStr::new("r1")));
        assert_eq!((put.env.len(), put.confine), (1, Confine::default()));
        assert!(put.within.unwrap().kept.unwrap().with_lock);
    }

    #[test]
    fn a_path_with_a_comma_goes_by_the_other_option() {
        let access = Access { write: vec!["/h/a,b".into()], ..Access::default() };
        assert!(told(&access, &podman()).contains("\n--volume /h/a,b:/h/a,b\n"));
    }
}
