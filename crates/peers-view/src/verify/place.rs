//! Where a finding is: `path:line` in what a gate said.

use super::VerifyRow;
use peers_core::test_output::tails;

/// Longest path that is taken for one.
const PATH: usize = 400;

/// A place in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Relative, with `/`.
    pub(super) path: String,
    /// From 1.
    pub(super) line: u64,
}

impl Place {
    /// The first place that the row names, as built-in checks, compilers and linters do, else where it is
    /// defined. A claim of what ran: nobody looked whether there is such a file.
    pub(super) fn of(row: &VerifyRow) -> Self {
        let found = match tails(&row.diagnostic) {
            Some((_, out, err)) => out.lines().chain(err.lines()).find_map(named),
            None => row.diagnostic.lines().find_map(named),
        };
        found.unwrap_or_else(|| Self { path: row.source.file.to_owned(), line: row.source.line })
    }

    /// The path as a relative reference: one that no reader takes for an address or a place elsewhere.
    pub(super) fn uri(&self) -> String {
        let mut out = String::with_capacity(self.path.len());
        for byte in self.path.bytes() {
            if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.extend(char::from_digit(digit.into(), 16).map(|c| c.to_ascii_uppercase()));
                }
            }
        }
        out
    }
}

/// `path:line: …` or `path:line:column…`, also behind the arrow of rustc and clippy.
fn named(text: &str) -> Option<Place> {
    let text = text.trim_start();
    let text = text.strip_prefix("--> ").unwrap_or(text);
    let (path, rest) = text.split_once(':')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (line, after) = rest.split_at_checked(digits)?;
    // SARIF readers keep lines in 32 bits.
    let line = line.parse::<u32>().ok().filter(|line| (1..=0x7fff_ffff).contains(line))?;
    if !after.starts_with(':') {
        return None;
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    let plain = path.len() <= PATH
        && path.contains(['.', '/'])
        && !path.starts_with('-')
        && !path.contains(['\\', '"', '\'', '`'])
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    plain.then(|| Place { path: path.to_owned(), line: line.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_path_below_the_top_and_a_line() {
        let place = |text| named(text).map(|place| (place.path, place.line));
        let some = |path: &str, line| Some((path.to_owned(), line));
        assert_eq!(place("  src/a.rs:3: stub: todo!()"), some("src/a.rs", 3));
        assert_eq!(place("./b.c:12:5: error"), some("b.c", 12));
        assert_eq!(place("a b/ü.md:1: x"), some("a b/ü.md", 1));
        assert_eq!(place("  --> src/lib.rs:3:1"), some("src/lib.rs", 3));
        for other in [
            "",
            "12:30: late",
            "x.rs:0: a",
            "x.rs:3",
            "x.rs:3 a",
            "---> src/x.rs:3:1",
            "../x.rs:3: a",
            "/etc/passwd:3: a",
            "a//b.c:3: a",
            "http://x:3: a",
            "x.rs:99999999999: a",
            "C\\x.c:3: a",
            "a/./b.c:1: x",
            "--> --> a.rs:3:1",
            "-x/a.rs:3:1",
            "--> /w/src/lib.rs:3:1",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
        assert_eq!(place(&format!("{}.c:1: x", "a".repeat(PATH))), None);
    }

    #[test]
    fn a_path_is_percent_encoded_as_a_relative_reference() {
        let uri = |path: &str| Place { path: path.to_owned(), line: 1 }.uri();
        assert_eq!(uri("src/a_b-1.rs"), "src/a_b-1.rs");
        assert_eq!(uri("a b/ü#?%.md"), "a%20b/%C3%BC%23%3F%25.md");
        assert_eq!(uri("javascript:x"), "javascript%3Ax");
    }
}
