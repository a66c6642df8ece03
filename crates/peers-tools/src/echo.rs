//! Tells lines that echo repository content from lines that a program says about itself.
//!
//! A genuine error begins with the error, so only the start of a line is looked at; when unsure, a
//! line counts as genuine. A halted run costs a night, but so does an endless retry.

/// Extensions after which `path.ext:12` looks like a place in a file.
const EXTENSIONS: [&str; 13] =
    ["py", "md", "yaml", "yml", "txt", "rs", "js", "ts", "sh", "toml", "json", "c", "h"];
const MORE_EXTENSIONS: [&str; 4] = ["cc", "cpp", "go", "jsonl"];

/// Whether `line` looks like echoed repository content.
pub(crate) fn is_echo(line: &str) -> bool {
    let start = line.trim_start_matches([' ', '\t']);
    ["diff ", "index ", "@@ ", "+++ ", "--- ", "+", "# ", "> "].iter().any(|mark| line.starts_with(mark))
        || is_commit(line)
        || is_numbered(start)
        || is_tagged_bullet(start)
        || is_json_key(start)
        || is_place(start)
}

/// `1a2b3c4 subject`.
fn is_commit(line: &str) -> bool {
    let hex = line.bytes().take_while(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)).count();
    (7..=40).contains(&hex) && line.as_bytes().get(hex) == Some(&b' ')
}

/// `12. text` or `12) text`.
fn is_numbered(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..).unwrap_or_default();
    (1..=4).contains(&digits) && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// `- [tag] text`.
fn is_tagged_bullet(line: &str) -> bool {
    ["- [", "* [", "\u{2022} ["].iter().any(|mark| line.starts_with(mark))
}

/// `"key": value`.
fn is_json_key(line: &str) -> bool {
    line.strip_prefix('"')
        .and_then(|rest| rest.split_once('"'))
        .is_some_and(|(_, rest)| rest.trim_start().starts_with(':'))
}

/// `path/to/file.rs:12`.
fn is_place(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else { return false };
    let Some((_, extension)) = path.rsplit_once('.') else { return false };
    !path.contains(char::is_whitespace)
        && (EXTENSIONS.contains(&extension) || MORE_EXTENSIONS.contains(&extension))
        && rest.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoed_content_is_recognised_by_the_start_of_the_line() {
        for line in [
            "1a2b3c4 fix: ERROR invalid API key",
            "diff --git a/x b/x",
            "@@ -1 +1 @@ ERROR quota exhausted",
            "+ERROR quota exhausted",
            "--- ERROR",
            "# ERROR usage limit reached",
            "> ERROR usage limit reached",
            "3. ERROR usage limit reached",
            "  - [halt] ERROR usage limit reached",
            "  \"error\": \"ERROR usage limit reached\"",
            "src/a.rs:12: ERROR usage limit reached",
            "docs/x.yaml:3:ERROR",
        ] {
            assert!(is_echo(line), "{line}");
        }
    }

    #[test]
    fn a_genuine_error_is_not_an_echo() {
        for line in [
            "ERROR usage limit reached",
            "Error: authentication_failed",
            "2026-01-01T00:00:00Z ERROR quota exhausted",
            "[codex] FATAL invalid api key",
            "deadbeef",
            "http://x.y:80 ERROR",
            "config.yaml: ERROR expired API key",
            "abc ERROR",
        ] {
            assert!(!is_echo(line), "{line}");
        }
    }
}
