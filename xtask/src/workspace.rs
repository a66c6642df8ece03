//! What cargo and the file system say about this workspace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use serde::Deserialize;

use crate::Failure;

/// A file above this size is data, not text that somebody wrote.
const MAX_TEXT_BYTES: u64 = 2 * 1024 * 1024;

/// The part of `cargo metadata` that tidy reads.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// `[workspace.metadata]`.
    pub(crate) metadata: Option<Records>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Records {
    pub(crate) ceilings: BTreeMap<String, Ceiling>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The name in the registry, also where the manifest renames it.
    pub(crate) name: String,
    pub(crate) kind: Option<DependencyKind>,
    /// `None` for a path dependency.
    pub(crate) source: Option<String>,
}

/// Cargo writes `null` for a normal dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    Build,
    Dev,
}

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What a crate may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Ceiling {
    /// Lines that are neither blank nor a comment, without tests.
    pub(crate) lines: usize,
    /// Files that use each other in a circle.
    pub(crate) in_circles: usize,
}

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    // Cargo sets the variable at run time; the built-in value serves a binary that is started by hand.
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = PathBuf::from(here);
    here.parent().map(Path::to_owned).ok_or_else(|| format!("{} has no parent", here.display()).into())
}

/// Reads the workspace members and their direct dependencies.
pub(crate) fn metadata(root: &Path) -> Result<Metadata, Failure> {
    let json = cargo(root, &["metadata", "--format-version", "1", "--no-deps"])?;
    serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}").into())
}

/// Runs cargo in `root` and returns its standard output; a failure carries what it said.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("start cargo: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo {}: {}", arguments.join(" "), said.trim()).into());
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo {}: {error}", arguments.join(" ")).into())
}

/// Every text file below `root`, sorted by path, without build output and the git directory.
/// Symbolic links are not followed.
pub(crate) fn text_files(root: &Path) -> Result<Vec<TextFile>, Failure> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries =
            fs::read_dir(&directory).map_err(|error| format!("read {}: {error}", directory.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("read {}: {error}", directory.display()))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| format!("stat {}: {error}", path.display()))?;
            if kind.is_dir() {
                if is_ours(root, &path) {
                    pending.push(path);
                }
            } else if kind.is_file()
                && let Some(text) = read_text(&path)?
            {
                files.push(TextFile { path: relative(root, &path)?, text });
            }
        }
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

fn is_ours(root: &Path, directory: &Path) -> bool {
    // Cargo and other tools tag their caches, whatever the directory is called. Cargo does so only when it
    // makes the directory itself, so the usual name counts too.
    !directory.ends_with(".git")
        && directory != root.join("target")
        && !directory.join("CACHEDIR.TAG").exists()
}

/// `None` for a file that is not UTF-8, too large to be text, or gone since it was listed.
fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    let read = || -> io::Result<Option<String>> {
        if fs::metadata(path)?.len() > MAX_TEXT_BYTES {
            return Ok(None);
        }
        Ok(String::from_utf8(fs::read(path)?).ok())
    };
    match read() {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("read {}: {error}", path.display()).into()),
    }
}

/// `path` below `root`, with `/` between its parts.
pub(crate) fn relative(root: &Path, path: &Path) -> Result<String, Failure> {
    let rest =
        path.strip_prefix(root).map_err(|_| format!("{} is not below {}", path.display(), root.display()))?;
    let parts: Vec<_> = rest.iter().map(|part| part.to_string_lossy()).collect();
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_skips_caches_git_binaries_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for sub in ["src/target", "target", "cache", ".git"] {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        fs::write(root.join("cache/CACHEDIR.TAG"), "x").unwrap();
        fs::write(root.join("cache/a.rs"), "x").unwrap();
        fs::write(root.join("target/a.rs"), "x").unwrap();
        fs::write(root.join("src/target/a.rs"), "x").unwrap();
        fs::write(root.join(".git/config"), "x").unwrap();
        fs::write(root.join("src/b.rs"), "x").unwrap();
        fs::write(root.join("src/picture"), [0xff, 0xfe]).unwrap();
        fs::write(root.join("a.md"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("a.md"), root.join("link.md")).unwrap();
        let paths: Vec<_> = text_files(root).unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, ["a.md", "src/b.rs", "src/target/a.rs"]);
    }

    #[test]
    fn cargo_says_why_it_failed() {
        let dir = tempfile::tempdir().unwrap();
        let failure = metadata(dir.path()).unwrap_err().to_string();
        assert!(failure.contains("Cargo.toml"), "{failure}");
    }
}
