//! Changed lines, read off hunks of ours.

use peers_core::cheat::ChangedLine;

/// The changed lines of one file.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) removed: Vec<ChangedLine>,
    pub(super) added: Vec<ChangedLine>,
}

/// The changed lines of one file, from its hunks.
pub(super) fn parse(text: &str) -> Lines {
    let mut out = Lines::default();
    let (mut old, mut new) = (0_usize, 0_usize);
    let (mut left_old, mut left_new) = (0_usize, 0_usize);
    for line in text.split('\n') {
        if left_old == 0 && left_new == 0 {
            if let Some(((o, ol), (n, nl))) = hunk_header(line) {
                (old, new, left_old, left_new) = (o, n, ol, nl);
            }
            continue;
        }
        match line.split_at_checked(1) {
            Some(("-", rest)) => {
                out.removed.push(ChangedLine { number: old, text: rest.to_owned() });
                old += 1;
                left_old = left_old.saturating_sub(1);
            }
            Some(("+", rest)) => {
                out.added.push(ChangedLine { number: new, text: rest.to_owned() });
                new += 1;
                left_new = left_new.saturating_sub(1);
            }
            Some(("\\", _)) => {}
            _ => {
                old += 1;
                new += 1;
                left_old = left_old.saturating_sub(1);
                left_new = left_new.saturating_sub(1);
            }
        }
    }
    out
}

/// `@@ -3,2 +4,5 @@` → ((3, 2), (4, 5)).
fn hunk_header(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let side = |word: &str| -> Option<(usize, usize)> {
        match word.split_once(',') {
            Some((start, len)) => Some((start.parse().ok()?, len.parse().ok()?)),
            None => Some((word.parse().ok()?, 1)),
        }
    };
    let old = side(words.next()?)?;
    let new = side(words.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_read_with_line_numbers() {
        let lines = parse("@@ -1,2 +1,3 @@\n same\n-old\n+new\n+--- a/evil\n");
        assert_eq!(lines.removed, vec![ChangedLine { number: 2, text: "old".into() }]);
        assert_eq!(lines.added.len(), 2, "a line that looks like a header is a line");
    }

    #[test]
    fn a_line_that_looks_like_a_hunk_is_a_line() {
        let text =
            "@@ -1,1 +1,1 @@\n-@@ -1,90 +1,90 @@\n+b\n\\ No newline at end of file\n@@ -9,1 +9,0 @@\n-c\n";
        let removed: Vec<_> = parse(text).removed.into_iter().map(|l| l.number).collect();
        assert_eq!(removed, [1, 9]);
    }
}
