//! The one line that keeps `.peers/` out of the history, in the syntax of `.gitignore`.

use crate::GITIGNORE;

/// Whether the last word that these rules say about `.peers` at the top is "ignored".
#[must_use]
pub fn lists(rules: &[u8]) -> bool {
    let verdict = |line: &[u8]| {
        let line = line.trim_ascii_end();
        let (line, ignored) = match line.strip_prefix(b"!") {
            Some(line) => (line, false),
            None => (line, true),
        };
        is_ours(line).then_some(ignored)
    };
    rules.split(|&b| b == b'\n').filter_map(verdict).next_back().unwrap_or(false)
}

/// The rules with our line at the end, in their own style of line ends.
#[must_use]
pub fn added(rules: &[u8]) -> Vec<u8> {
    let mut out = rules.to_vec();
    let end: &[u8] = if rules.windows(2).any(|pair| pair == b"\r\n") { b"\r\n" } else { b"\n" };
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.extend_from_slice(end);
    }
    out.extend_from_slice(GITIGNORE.trim_end().as_bytes());
    out.extend_from_slice(end);
    out
}

/// The rules without the line that [`added`] wrote; `None` when it is not there. Other spellings are
/// somebody else's and stay.
#[must_use]
pub fn removed(rules: &[u8]) -> Option<Vec<u8>> {
    let ours = GITIGNORE.trim_end().as_bytes();
    let lines = || rules.split_inclusive(|&b| b == b'\n');
    let is_ours = |line: &&[u8]| line.trim_ascii_end() == ours;
    lines()
        .any(|line| is_ours(&line))
        .then(|| lines().filter(|line| !is_ours(line)).flatten().copied().collect())
}

fn is_ours(line: &[u8]) -> bool {
    matches!(line, b".peers" | b".peers/" | b"/.peers" | b"/.peers/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_counts_and_look_alikes_do_not() {
        for listed in [".peers", ".peers/", "/.peers", "a\n/.peers/\r\nb", ".peers/  "] {
            assert!(lists(listed.as_bytes()), "{listed:?}");
        }
        for not in [
            "",
            "# .peers/",
            " .peers/",
            ".peersx",
            ".peers/log",
            "x/.peers/",
            "!.peers",
            ".peers\n!.peers/\n",
        ] {
            assert!(!lists(not.as_bytes()), "{not:?}");
        }
    }

    #[test]
    fn a_missing_line_end_is_added_first() {
        assert_eq!(added(b""), b".peers/\n");
        assert_eq!(added(b"a"), b"a\n.peers/\n");
        assert_eq!(added(b"a\r\nb"), b"a\r\nb\r\n.peers/\r\n");
        assert_eq!(added(b"\xff\n"), b"\xff\n.peers/\n");
    }

    #[test]
    fn what_was_added_can_be_taken_away() {
        for rules in [&b""[..], b"a\n", b"a\r\n.peersx\r\n"] {
            assert_eq!(removed(&added(rules)).as_deref(), Some(rules));
        }
        assert_eq!(removed(b"a\n/.peers\n"), None);
    }
}
