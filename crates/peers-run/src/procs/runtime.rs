//! What a green answer depends on besides the tree: the definition, the environment and the tools.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_model::goal::GateRun;
use peers_sys::SafeDir;
use peers_sys::digest::Sha256;
use peers_sys::dir::{FileStat, Kind};
use peers_sys::env;

use super::Gate;
use crate::env::Vars;

/// Variables that name something made anew for each run or gate.
const PASSING: [&str; 6] =
    ["HOME", "TMPDIR", "GIT_CONFIG_GLOBAL", "PEERS_RUN_ID", "PEERS_ITERATION", "PEERS_BIN"];
/// Words of a command that are looked up as programs.
const WORDS: usize = 200;
/// Names of a directory that are looked at.
const ENTRIES: usize = 1000;
/// Below these, a toolchain manager keeps what its programs hand over to.
const MANAGED: [(&str, &[&str]); 4] = [
    ("RUSTUP_HOME", &["settings.toml", "toolchains"]),
    ("PYENV_ROOT", &["version", "versions"]),
    ("NVM_DIR", &["alias", "versions"]),
    ("JAVA_HOME", &["release"]),
];

/// What the answer of a gate is about, as a digest: `scope` names tree and place.
///
/// The programs that the command names are known by path, size and time of change. A program that another one
/// starts is not seen: an operator who updates one of those clears the cache (`--fresh`).
pub(super) fn about(gate: &Gate, limit_s: u64, vars: &Vars, scope: &str) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(bytes);
    };
    part(env!("CARGO_PKG_VERSION").as_bytes());
    part(format!("{:?}", gate.hard).as_bytes());
    part(&limit_s.to_le_bytes());
    part(scope.as_bytes());
    let value = |name: &str| vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str());
    let mut kept: Vec<_> = vars
        .iter()
        .filter(|(name, _)| !PASSING.iter().any(|passing| name == *passing))
        .map(|(name, value)| (name.as_encoded_bytes(), value.as_encoded_bytes()))
        .collect();
    kept.sort_unstable();
    for (name, value) in kept {
        part(name);
        part(value);
    }
    // Its name is that of a process; what counts is the program.
    let bin = value("PEERS_BIN").and_then(|bin| env::program_stat(Path::new(bin)));
    part(bin.map(|stat| facts(&stat)).unwrap_or_default().as_bytes());
    if let GateRun::Shell { cmd, .. } = &gate.hard.run {
        let dirs = value("PATH").map(directories).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
        let mut words: Vec<&str> = cmd.split(|c| !plain(c)).filter(|word| !word.is_empty()).collect();
        words.sort_unstable();
        words.dedup();
        for word in words.into_iter().take(WORDS) {
            if let Some(found) = dirs.iter().find_map(|dir| stamp(dir, word)) {
                part(found.as_bytes());
            }
        }
        part(stamp(Path::new("/bin"), "sh").unwrap_or_default().as_bytes());
    }
    for (variable, names) in MANAGED {
        for name in names {
            let found = value(variable).and_then(|dir| stamp(Path::new(dir), name));
            part(found.unwrap_or_default().as_bytes());
        }
    }
    hash.finish_hex()
}

fn directories(path: &OsStr) -> Vec<PathBuf> {
    path.as_bytes().split(|b| *b == b':').map(|dir| PathBuf::from(OsStr::from_bytes(dir))).collect()
}

/// A file, or a directory with the names in it, as it is now, behind links; `None` where there is none.
fn stamp(dir: &Path, name: &str) -> Option<String> {
    let target = dir.join(name).canonicalize().ok()?;
    let above = SafeDir::open_shared(target.parent()?).ok()?;
    let last = target.file_name()?;
    let stat = above.stat(last).ok()??;
    let mut text = format!("{}\0{}", target.display(), facts(&stat));
    if stat.kind == Kind::Dir {
        let inner = above.subdir(last).ok()?;
        let mut names: Vec<_> = inner.list(ENTRIES).ok()?.entries.into_iter().map(|e| e.name).collect();
        names.sort_unstable();
        for name in names {
            let stat = inner.stat(&name).ok().flatten();
            text.extend(["\0", &name.to_string_lossy(), "\0"]);
            text.push_str(&stat.map(|stat| facts(&stat)).unwrap_or_default());
        }
    }
    Some(text)
}

fn facts(stat: &FileStat) -> String {
    format!("{}\0{}\0{}", stat.size, stat.changed_ns, stat.id.ino)
}
