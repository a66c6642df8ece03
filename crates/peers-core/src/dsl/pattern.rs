//! Literal patterns: compiled at load, linear in the text they search.

use regex::{Regex, RegexBuilder};

/// Longest regex pattern, bytes.
const MAX_PATTERN: usize = 1024;
/// Largest compiled regex, bytes.
const MAX_COMPILED: usize = 1024 * 1024;

/// A compiled literal pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The pattern holds a `$`, which also matches before one final newline: nearly every
    /// program's output ends in one, and a `$` that never matched would let
    /// `regex('FAIL$', stdout) == None` pass on a failure.
    dollar: bool,
}

impl Pattern {
    /// Compiles within limits; the error says why not.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_PATTERN {
            return Err(format!("a pattern has at most {MAX_PATTERN} bytes"));
        }
        let built = RegexBuilder::new(source)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .nest_limit(64)
            .build();
        match built {
            Ok(regex) => Ok(Self { regex, dollar: source.contains('$') }),
            Err(regex::Error::CompiledTooBig(_)) => Err("this pattern is too large when compiled".into()),
            Err(error) => {
                let text = error.to_string();
                if text.contains("look-around") {
                    return Err(
                        "look-around is not supported; combine several regex() with `and` and `not`".into()
                    );
                }
                if text.contains("backreferences") {
                    return Err("back-references are not supported".into());
                }
                // The last line of the report is the reason; the lines above draw a caret.
                let reason = text.lines().next_back().unwrap_or("").trim_start_matches("error: ");
                Err(format!("bad pattern: {reason}"))
            }
        }
    }

    pub(crate) fn found_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
            || (self.dollar && text.strip_suffix('\n').is_some_and(|cut| self.regex.is_match(cut)))
    }
}
