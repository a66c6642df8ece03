//! Which paths an ignore file hides.

use peers_core::scope::Glob;

/// Whether the lines of an ignore file take `path`; the last line that says something decides.
pub(crate) fn excluded(lines: &str, path: &str) -> bool {
    let mut verdict = false;
    for line in lines.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (pattern, ignored) = line.strip_prefix('!').map_or((line, true), |rest| (rest, false));
        let pattern = pattern.trim_end_matches('/');
        // A slash before the end ties the pattern to the top; without one it holds at any depth.
        let hit = match pattern.trim_start_matches('/') {
            "" => false,
            tied if pattern.contains('/') => matches(tied, path),
            free => matches(&format!("**/{free}"), path),
        };
        if hit {
            verdict = ignored;
        }
    }
    verdict
}

fn matches(glob: &str, path: &str) -> bool {
    Glob::new(glob).is_some_and(|glob| glob.matches(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_an_ignore_file_that_says_something_decides() {
        let lines = "# c\n*.log\n/build/\na/b\n!keep.log\n";
        for hidden in ["x.log", "d/x.log", "build/o", "a/b", "a/b/c"] {
            assert!(excluded(lines, hidden), "{hidden}");
        }
        for seen in ["keep.log", "d/build", "b", "x.txt", "c"] {
            assert!(!excluded(lines, seen), "{seen}");
        }
    }
}
