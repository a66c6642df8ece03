//! What a child may see and change.

use std::path::{Path, PathBuf};

/// Files and the network, as one child has them. Paths are absolute and the same outside and inside; of those that are
/// not there nothing comes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Read and executed, besides what the system has for everybody ([`SYSTEM`]).
    pub read: Vec<PathBuf>,
    /// Read and written.
    pub write: Vec<PathBuf>,
    /// What lies over that, in this order, where the backend has mounts.
    pub mounts: Vec<Mount>,
    /// Places within [`Access::write`] that stay as they are.
    pub kept: Vec<PathBuf>,
    /// Directories within all of that which are empty for the child.
    pub hidden: Vec<PathBuf>,
    /// Directories within [`Access::hidden`] that the child has all the same, and writes.
    pub shown: Vec<PathBuf>,
    /// The operator's home directory: for the child an empty one, but for what else is named here.
    pub home: Option<PathBuf>,
    /// A directory of the child's own for what is temporary, where the backend has no `/tmp` for it alone.
    pub scratch: Option<PathBuf>,
    /// The network.
    pub network: Network,
    /// What it may use at most, where the backend limits that.
    pub caps: Caps,
}

/// What a child may use at most, all of its processes together. Absent: what is usual; zero: whatever there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// Memory, bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Processors.
    pub cpus: Option<u64>,
}

/// A file or directory that a child has at another place than we.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is.
    pub outside: PathBuf,
    /// Where the child has it.
    pub inside: PathBuf,
    /// It is written.
    pub writable: bool,
}

/// What a child reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// What we reach.
    #[default]
    Host,
    /// Itself.
    None,
}

/// What every program of a system needs, to be read and executed.
pub const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"];

/// Settings of the system, in `/etc`.
pub(crate) const SETTINGS: [&str; 27] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "group",
    "hosts",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "inputrc",
    "localtime",
    "login.defs",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "protocols",
    "services",
    "shells",
    "ssl",
    "timezone",
];

/// Besides them where the network is the one that we reach: where names of hosts are asked for.
pub(crate) const RESOLVING: &str = "resolv.conf";

/// Whether `path` lies in one of these, or is one.
pub(crate) fn covered<'a>(path: &Path, mut by: impl Iterator<Item = &'a Path>) -> bool {
    by.any(|there| path.starts_with(there))
}

/// The places from which programs of a search path come: of a directory `bin`, what it lies in, since programs there
/// are links to their neighbours. Not what every child has, and neither a home directory nor what holds one.
#[must_use]
pub fn places_of_programs(search: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for dir in search {
        let above = dir.parent().filter(|above| {
            let named =
                dir.file_name().is_some_and(|name| name == "bin" || name == "sbin" || name == "shims");
            let narrow = above.components().count() > 2 && !above.ends_with(".local");
            named && narrow && home.is_none_or(|home| !home.starts_with(above))
        });
        // Beside programs lie settings of their tools, with their logins: only what programs are made of.
        let parts = above.iter().flat_map(|above| BESIDE.iter().map(|name| above.join(name)));
        let shims = above.filter(|_| dir.ends_with("shims")).map(Path::to_owned);
        for place in [dir.clone()].into_iter().chain(parts).chain(shims) {
            let has = SYSTEM.iter().map(Path::new).chain(out.iter().map(PathBuf::as_path));
            if place.is_absolute()
                && !covered(&place, has)
                && home.is_none_or(|home| !home.starts_with(&place))
            {
                out.push(place);
            }
        }
    }
    out
}

/// What lies beside a directory of programs and belongs to them.
const BESIDE: [&str; 6] = ["lib", "lib64", "libexec", "share", "include", "versions"];

/// The place of one program with what belongs to it: the package that its file lies in, or the directory of that file;
/// where that is a home directory or holds one, the file alone. `real` is the file after all links.
#[must_use]
pub fn place_of_program(real: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let package = real.ancestors().filter(|above| above.ends_with("node_modules")).last();
    let place = package.or_else(|| real.parent())?;
    let wide = home.is_some_and(|home| home.starts_with(place));
    Some(if wide { real } else { place }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(search: &[&str]) -> Vec<PathBuf> {
        let search: Vec<PathBuf> = search.iter().map(PathBuf::from).collect();
        places_of_programs(&search, Some(Path::new("/home/ann")))
    }

    #[test]
    fn a_directory_of_programs_comes_with_what_they_are_links_to_and_never_with_a_home() {
        assert_eq!(places(&["/usr/bin", "/usr/local/sbin", "/opt/x/bin"]), Vec::<PathBuf>::new());
        let found = places(&["/home/ann/.nvm/v22/bin", "/home/ann/.nvm/v22/bin"]);
        assert_eq!(found[..2], ["/home/ann/.nvm/v22/bin", "/home/ann/.nvm/v22/lib"].map(PathBuf::from));
        assert!(
            found.iter().all(|place| place != Path::new("/home/ann/.nvm/v22")),
            "what lies beside is its own"
        );
        let found = places(&["/home/ann/.pyenv/shims"]);
        assert!(found.contains(&PathBuf::from("/home/ann/.pyenv")));
        let found =
            places(&["/home/ann/bin", "/home/ann/.local/bin", "/srv/bin", "/home/ann", "relative/bin"]);
        assert_eq!(found, ["/home/ann/bin", "/home/ann/.local/bin", "/srv/bin"].map(PathBuf::from));
    }

    #[test]
    fn a_program_comes_with_its_package() {
        let place = |path: &str| place_of_program(Path::new(path), Some(Path::new("/home/ann"))).unwrap();
        assert_eq!(place("/home/ann/agent.sh"), Path::new("/home/ann/agent.sh"));
        assert_eq!(place("/p/lib/node_modules/a/node_modules/b/cli.js"), Path::new("/p/lib/node_modules"));
        assert_eq!(place("/home/ann/.local/share/x/1.2/x"), Path::new("/home/ann/.local/share/x/1.2"));
    }
}
