//! Whether a pattern of `health` can be used.

use peers_sys::term;

/// Why a pattern of `health` cannot be used, and what to do. The settings are those of the matcher.
pub(super) fn unusable(pattern: &str) -> Option<(String, String)> {
    const PROGRAM_BYTES: usize = 4 * 1024 * 1024;
    let build = |unicode: bool| {
        regex::bytes::RegexBuilder::new(pattern)
            .multi_line(true)
            .unicode(unicode)
            .size_limit(PROGRAM_BYTES)
            .dfa_size_limit(PROGRAM_BYTES)
            .nest_limit(64)
            .build()
    };
    match build(false).or_else(|_| build(true)) {
        Ok(regex) if regex.is_match(b"") => Some((
            "matches the empty line, and so every line".into(),
            "name the words that must occur".into(),
        )),
        Ok(_) => None,
        Err(error) => {
            let text = error.to_string();
            if text.contains("look-around") || text.contains("backreferences") {
                return Some((
                    "uses look-around or a back-reference, which this engine does not have".into(),
                    "write it without `(?=`, `(?!`, `(?<=`, `(?<!` and `\\1`".into(),
                ));
            }
            // The engine draws the pattern over several lines; the last one names the error.
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Some((
                format!("is not a usable regular expression: {}", term::line(last, 200)),
                "correct the pattern".into(),
            ))
        }
    }
}
