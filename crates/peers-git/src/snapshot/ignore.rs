//! `.gitignore` files.

use std::path::Path;

use crate::files::{self, Small};
use crate::repo::PeerRepo;
use crate::snapshot::pattern::Pattern;

/// An ignore file larger than this is not read: more stays visible, never less.
pub(crate) const IGNORE_CAP: u64 = 1024 * 1024;
/// Patterns of one file that count.
const MAX_PATTERNS: usize = 20_000;

/// The patterns of one file.
pub(crate) struct IgnoreFile {
    /// Length of the directory's path with its `/`.
    base: usize,
    patterns: Vec<Pattern>,
}

impl IgnoreFile {
    /// Reads the text of a file that lies in a directory whose path, with a trailing `/`, is `base` bytes.
    pub(crate) fn parse(base: usize, text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let patterns = text
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
            .map(|line| trim(line.strip_suffix(b"\r").unwrap_or(line)))
            .filter(|line| !line.is_empty())
            .filter_map(Pattern::compile)
            .take(MAX_PATTERNS)
            .collect();
        Self { base, patterns }
    }

    /// What the file says about `path`: ignored, taken back, or nothing.
    fn verdict(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        let inner = path.get(self.base..)?;
        self.patterns.iter().rev().find(|p| p.matches(inner, is_dir)).map(|p| !p.negative)
    }
}

/// What the files say, innermost (last) first.
pub(crate) fn ignored(files: &[IgnoreFile], path: &[u8], is_dir: bool) -> bool {
    files.iter().rev().find_map(|file| file.verdict(path, is_dir)).unwrap_or(false)
}

/// The operator's own ignore file, which may be a symlink.
pub(crate) fn of_operator(excludes: Option<&Path>) -> Option<IgnoreFile> {
    let file = std::fs::canonicalize(excludes?).ok()?;
    Some(IgnoreFile::parse(0, &files::read_small(&file, IGNORE_CAP).ok()?.bytes()?))
}

impl PeerRepo {
    /// The directory on the way to `path`, from the top, that git ignores, so that no clean checkout has what lies
    /// there; `excludes` is one more ignore file, see [`crate::operator_excludes`]. `None` also for a file of the
    /// commit at `HEAD`, and where that cannot be told.
    #[must_use]
    pub fn ignored_dir(&self, path: &str, excludes: Option<&Path>) -> Option<String> {
        let facts = self.facts();
        let committed = facts.head().and_then(|head| facts.tree_of(&head.commit));
        if committed.and_then(|tree| facts.has_file(&tree, path.as_bytes())).ok()? {
            return None;
        }
        let mut files: Vec<IgnoreFile> = of_operator(excludes).into_iter().collect();
        // Where the directory is not there, what is above it still says that it is ignored.
        let mut dir = Some(files::open_dir(self.work_dir()).ok()?);
        let mut base = 0;
        for (at, _) in path.match_indices('/') {
            if let Some(dir) = &dir
                && let Ok(Small::Bytes(text)) = files::read_small_at(dir, b".gitignore", IGNORE_CAP)
            {
                files.push(IgnoreFile::parse(base, &text));
            }
            let way = path.get(..at)?;
            if ignored(&files, way.as_bytes(), true) {
                return Some(way.to_owned());
            }
            let name = path.get(base..at)?;
            dir = dir.and_then(|dir| files::open_dir_at(dir, name.as_bytes()).ok());
            base = at + 1;
        }
        None
    }
}

/// Trailing spaces go, unless escaped.
fn trim(line: &[u8]) -> &[u8] {
    let mut kept = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b' ' => at += 1,
            b'\\' => {
                at = (at + 2).min(line.len());
                kept = at;
            }
            _ => {
                at += 1;
                kept = at;
            }
        }
    }
    line.get(..kept).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored_by(text: &str, path: &str) -> bool {
        ignored(&[IgnoreFile::parse(0, text.as_bytes())], path.as_bytes(), false)
    }

    #[test]
    fn the_last_matching_line_decides() {
        assert!(!ignored_by("*.log\n!keep.log\n", "keep.log"));
        assert!(ignored_by("!keep.log\n*.log\n", "keep.log"));
    }

    #[test]
    fn comments_blank_lines_crlf_and_trailing_spaces_are_as_git_reads_them() {
        assert!(ignored_by("\u{feff}# x\r\n\r\na.txt  \r\n", "a.txt"));
        assert!(ignored_by("b\\ \n", "b "));
        assert!(!ignored_by("# x\n", "# x"));
    }

    #[test]
    fn an_inner_file_overrules_an_outer_one_and_is_relative_to_its_place() {
        let files = [IgnoreFile::parse(0, b"*.log"), IgnoreFile::parse(4, b"!/a.log")];
        assert!(!ignored(&files, b"sub/a.log", false));
        assert!(ignored(&files, b"sub/x/a.log", false));
    }
}
