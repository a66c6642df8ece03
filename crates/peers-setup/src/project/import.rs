//! What the operator should know of the files that became the first commit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use peers_git::{FirstCommit, PeerRepo};
use peers_model::limits::{KIB, MIB};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::redact::redact_text;
use peers_sys::term;

use super::Notice;

/// A larger file is told.
const LARGE: u64 = 5 * MIB;
/// A larger file is not read.
const READ: u64 = 256 * KIB;
/// All that is read.
const READ_ALL: u64 = 64 * MIB;
/// Files of one kind that are named.
const NAMED: usize = 10;

/// What is worth a word.
pub(super) fn notices(repo: &PeerRepo, first: &FirstCommit) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut tell = |code, paths: &[String], what: &str| {
        if !paths.is_empty() {
            let named = term::first_of(paths.len(), paths.iter().take(NAMED).cloned());
            notices.push(Notice { code, message: format!("{what}: {named}") });
        }
    };
    let (mut secrets, mut large) = (Vec::new(), Vec::new());
    let paths = repo.facts().paths_of_files(&first.commit).unwrap_or_default();
    if let Ok(work) = SafeDir::open_shared(repo.work_dir()) {
        let mut left = READ_ALL;
        for path in &paths {
            let (secret, size) = look(&work, path, &mut left);
            if secret {
                secrets.push(shown(path));
            }
            if size > LARGE {
                large.push(shown(path));
            }
        }
    }
    tell("secret", &secrets, "the first commit has what looks like a secret; agents will read it");
    tell("large", &large, "the first commit has files of more than 5 MiB");
    let left_out: Vec<_> = first.left_out.iter().map(|path| shown(path)).collect();
    tell("left-out", &left_out, "not in the first commit, since they are too large or cannot be read");
    tell("unrepresentable", &first.unrepresentable, "no commit can have these");
    notices
}

/// Whether a file looks like a secret, and its size.
fn look(work: &SafeDir, path: &[u8], left: &mut u64) -> (bool, u64) {
    let Ok((dir, name)) = work.parent_of(Path::new(OsStr::from_bytes(path))) else { return (false, 0) };
    let Ok(Some(stat)) = dir.stat(&name) else { return (false, 0) };
    if stat.kind != Kind::File {
        return (false, 0);
    }
    if is_secret_name(&name.to_string_lossy().to_ascii_lowercase()) {
        return (true, stat.size);
    }
    if stat.size > READ || stat.size > *left {
        return (false, stat.size);
    }
    *left -= stat.size;
    let text = dir.read_text(&name, READ).unwrap_or_default();
    (redact_text(&text) != text, stat.size)
}

/// Names of files that hold nothing else, in lower case.
fn is_secret_name(name: &str) -> bool {
    const WHOLE: [&str; 12] = [
        ".env",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".htpasswd",
        ".git-credentials",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "credentials.json",
        "service-account.json",
    ];
    const ENDS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
    // A sample is for everybody.
    let sample = ["example", "sample", "template", "dist"].iter().any(|word| name.ends_with(word));
    !sample
        && (WHOLE.contains(&name) || name.starts_with(".env.") || ENDS.iter().any(|end| name.ends_with(end)))
}

fn shown(path: &[u8]) -> String {
    term::line(&String::from_utf8_lossy(path), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_and_samples_are_none() {
        for name in [".env", ".env.local", "server.pem", "id_ed25519", "store.jks"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [".env.example", "env", "id_rsa.pub", "keys", "a.pem.template", "monkey"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
