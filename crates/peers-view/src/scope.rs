//! Which paths a glob takes: the files that a soft goal is about, and those that an ignore file hides.
//!
//! The loop decides with matchers of its own. Should this one ever differ from them, a review is shown
//! as stale that counts, never the other way round: the digest would be another one.

use peers_core::classify_path::{PathKind, classify};

/// Whether a soft goal with these globs is about `path`; without globs it is about every file that is no
/// documentation.
pub(crate) fn holds(globs: &[String], path: &str) -> bool {
    match classify(path) {
        PathKind::Control => false,
        PathKind::Doc if globs.is_empty() => false,
        PathKind::Doc | PathKind::Test | PathKind::Source => {
            globs.is_empty() || globs.iter().any(|glob| matches(glob.trim_start_matches("./"), path))
        }
    }
}

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
            free => matches(free, path) || matches(&format!("**/{free}"), path),
        };
        if hit {
            verdict = ignored;
        }
    }
    verdict
}

/// Whether the glob takes the path or a directory above it.
fn matches(glob: &str, path: &str) -> bool {
    let glob: Vec<char> = glob.chars().collect();
    let path: Vec<char> = path.chars().collect();
    // `reached` holds the places of the path to which the glob so far can lead: no pattern costs more
    // than its length times that of the path.
    let mut reached = vec![false; path.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    let mut at = 0;
    while let Some(c) = glob.get(at).copied() {
        let stars = c == '*' && glob.get(at + 1) == Some(&'*');
        let whole = stars && glob.get(at + 2) == Some(&'/');
        let mut next = vec![false; path.len() + 1];
        for place in (0..reached.len()).filter(|place| reached.get(*place) == Some(&true)) {
            if stars || c == '*' {
                for end in place..=path.len() {
                    let passed = end.checked_sub(1).filter(|_| end > place).and_then(|last| path.get(last));
                    if !stars && passed == Some(&'/') {
                        break;
                    }
                    // `**/` ends behind a slash, or takes nothing.
                    if !whole || end == place || passed == Some(&'/') {
                        set(&mut next, end);
                    }
                }
            } else if path.get(place).is_some_and(|here| *here == c || (c == '?' && *here != '/')) {
                set(&mut next, place + 1);
            }
        }
        reached = next;
        at += if whole {
            3
        } else if stars {
            2
        } else {
            1
        };
    }
    // A directory means everything below it.
    (0..reached.len()).any(|end| reached.get(end) == Some(&true) && path.get(end).is_none_or(|c| *c == '/'))
}

fn set(places: &mut [bool], at: usize) {
    if let Some(place) = places.get_mut(at) {
        *place = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_hold_what_people_expect() {
        let holds = |globs: &[&str], path: &str| {
            super::holds(&globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>(), path)
        };
        assert!(holds(&["src/**"], "src/a/b.rs"));
        assert!(holds(&["src"], "src/a.rs") && !holds(&["src"], "srcs/a.rs"));
        assert!(holds(&["**/*.py"], "x.py") && holds(&["**/*.py"], "a/b/x.py"));
        assert!(!holds(&["src/*.rs"], "src/a/b.rs") && holds(&["./src/?.rs"], "src/a.rs"));
        assert!(holds(&["docs/**"], "docs/a.md"), "named documentation counts");
        assert!(!holds(&[], "README.md") && holds(&[], "src/a.rs"));
        assert!(!holds(&["**"], ".peers/config.yaml"));
    }

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

    #[test]
    fn a_pattern_that_backtracks_costs_no_more() {
        let glob = "*a".repeat(200) + "b";
        assert!(!matches(&glob, &"a".repeat(2000)));
    }
}
