//! Free-text patterns: the fallback where a tool has no structured channel.
//!
//! Only complete lines are matched, so the split into chunks cannot cut a line's start away. For a
//! tool with a structured channel, lines of standard output that begin with `{` are its events and
//! are never searched: an agent's words inside them prove nothing. Neither are lines of standard error in
//! which opencode tells of a request that it makes again: its decoder reads them.

use std::sync::Arc;

use regex::bytes::{Regex, RegexSet, RegexSetBuilder};
use thiserror::Error;

use crate::echo::is_echo;
use crate::event::{FailureKind, Stream};
use crate::jsonl::{Line, LineSplitter};
use crate::lenient::cut;
use crate::opencode::is_failed_request;
use crate::reset::words;
use crate::signals::judge_text;

/// How much of a line that matched is judged: log lines begin with times, names and ids.
pub const JUDGED_BYTES: usize = 4096;
/// Most entries of one list.
pub const MAX_PATTERNS: usize = 50;
/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1024;
/// Longest start of a line that is searched, in bytes.
const LINE_BYTES: usize = 64 * 1024;
/// Compiled size of all patterns together.
const PROGRAM_BYTES: usize = 4 * 1024 * 1024;
/// Hits kept of one child; the first one decides anyway.
const MAX_HITS: usize = 16;

/// The default `health.error_patterns`: worth another attempt.
///
/// Each wants an upper-case `ERROR` or `FATAL` in a line without a quote before it, so that an echo of
/// the configuration file itself does not match.
pub const DEFAULT_ERROR_PATTERNS: [&str; 3] = [
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\b(?i:rate[ _-]?limit)"#,
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\bAPI [Ee]rror\b[^\n]*?\b5[0-9][0-9]\b"#,
    r"^Error: rate_limit",
];

/// The default `health.halt_patterns`: a person must act.
pub const DEFAULT_HALT_PATTERNS: [&str; 6] = [
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\b[Aa]uthentication[ _](?:failed|error)\b"#,
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\b(?:[Ii]nvalid|[Mm]issing|[Ee]xpired) (?:API|api)[ _-][Kk]ey\b"#,
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\b[Qq]uota exhausted\b"#,
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\b[Uu]sage limit (?:reached|exceeded|exhausted)\b"#,
    r#"^[^"\n]*?\b(?:ERROR|FATAL)\b[^\n]*?\bhit your usage limit\b"#,
    r"^Error: authentication_(?:failed|error)\b",
];

/// The keys of the two lists.
const HALTS: &str = "health.halt_patterns";
const ERRORS: &str = "health.error_patterns";

/// What a match means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HitClass {
    /// A person must act.
    Halt,
    /// Worth another attempt.
    Error,
}

/// A line that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternHit {
    /// What the match means.
    pub class: HitClass,
    /// The pattern as the operator wrote it.
    pub pattern: String,
    /// Where it stands, such as `health.error_patterns[1]`.
    pub key: String,
    /// The line without escape sequences, at most [`crate::event::WORDS_CHARS`] characters, secrets and all: for
    /// [`crate::brief`].
    pub snippet: String,
    /// What the words of the line say, of its first [`JUDGED_BYTES`].
    pub kind: FailureKind,
    /// Where the line was printed.
    pub stream: Stream,
}

/// Patterns that cannot be used.
#[derive(Debug, Error)]
pub enum PatternError {
    /// A list is too long.
    #[error("{list} has {count} entries, at most {MAX_PATTERNS} are allowed")]
    TooMany {
        /// The configuration key.
        list: &'static str,
        /// Its length.
        count: usize,
    },
    /// A pattern is too long.
    #[error("{list}[{index}] is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong {
        /// The configuration key.
        list: &'static str,
        /// Which entry, from 0.
        index: usize,
    },
    /// A pattern matches the empty line, so it would match everything.
    #[error("{list}[{index}] `{pattern}` matches every line")]
    MatchesAll {
        /// The configuration key.
        list: &'static str,
        /// Which entry, from 0.
        index: usize,
        /// The pattern.
        pattern: String,
    },
    /// Look-around and back-references have no linear-time match.
    #[error("{list}[{index}] `{pattern}` uses look-around or a back-reference, which is not supported")]
    LookAround {
        /// The configuration key.
        list: &'static str,
        /// Which entry, from 0.
        index: usize,
        /// The pattern.
        pattern: String,
    },
    /// A pattern is no regular expression, or its compiled form is too big.
    #[error("{list}[{index}] `{pattern}` is not a usable regular expression")]
    Invalid {
        /// The configuration key.
        list: &'static str,
        /// Which entry, from 0.
        index: usize,
        /// The pattern.
        pattern: String,
        /// Why.
        #[source]
        source: Box<regex::Error>,
    },
    /// Each pattern is fine but all together are too big.
    #[error("the patterns together are too big")]
    TooBig(#[source] Box<regex::Error>),
}

/// A compiled pair of pattern lists. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Patterns {
    /// Shared, with what it learns while it searches: a clone of the set itself would learn it anew.
    set: Arc<RegexSet>,
    /// The source texts, halt patterns first.
    texts: Arc<[String]>,
    halts: usize,
}

impl Patterns {
    /// Compiles operator patterns: multi-line, case-sensitive, `\b \w \d` mean ASCII unless the
    /// pattern itself needs Unicode.
    ///
    /// # Errors
    /// [`PatternError`] names the entry and what is wrong with it.
    pub fn compile(error: &[String], halt: &[String]) -> Result<Self, PatternError> {
        for (list, patterns) in [(HALTS, halt), (ERRORS, error)] {
            if patterns.len() > MAX_PATTERNS {
                return Err(PatternError::TooMany { list, count: patterns.len() });
            }
            for (index, pattern) in patterns.iter().enumerate() {
                check(list, index, pattern)?;
            }
        }
        let texts: Vec<String> = halt.iter().chain(error).cloned().collect();
        let set = build(&texts, false)
            .or_else(|_| build(&texts, true))
            .map_err(|source| PatternError::TooBig(Box::new(source)))?;
        Ok(Self { set: Arc::new(set), texts: texts.into(), halts: halt.len() })
    }

    /// The default lists.
    ///
    /// # Errors
    /// None in practice: a test compiles them.
    pub fn defaults() -> Result<Self, PatternError> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Self::compile(&owned(&DEFAULT_ERROR_PATTERNS), &owned(&DEFAULT_HALT_PATTERNS))
    }

    fn hit(&self, stream: Stream, line: &[u8]) -> Option<PatternHit> {
        let plain = without_escapes(line);
        let line = plain.as_deref().unwrap_or(line);
        let matches = self.set.matches(line);
        if !matches.matched_any() {
            return None;
        }
        let text = String::from_utf8_lossy(line);
        let echo = is_echo(&text);
        let at = matches.iter().find(|&at| at >= self.halts || !echo)?;
        let (class, list, index) = match at.checked_sub(self.halts) {
            None => (HitClass::Halt, HALTS, at),
            Some(at) => (HitClass::Error, ERRORS, at),
        };
        Some(PatternHit {
            class,
            key: format!("{list}[{index}]"),
            pattern: self.texts.get(at).cloned().unwrap_or_default(),
            snippet: words(&text),
            kind: judge_text(cut(&text, JUDGED_BYTES)),
            stream,
        })
    }
}

fn build(texts: &[String], unicode: bool) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(texts)
        .multi_line(true)
        .unicode(unicode)
        .size_limit(PROGRAM_BYTES)
        .dfa_size_limit(PROGRAM_BYTES)
        .nest_limit(64)
        .build()
}

fn check(list: &'static str, index: usize, pattern: &str) -> Result<(), PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLong { list, index });
    }
    let one = [pattern.to_owned()];
    if let Err(source) = build(&one, false).or_else(|_| build(&one, true)) {
        let pattern = pattern.to_owned();
        let text = source.to_string();
        if text.contains("look-around") || text.contains("backreferences") {
            return Err(PatternError::LookAround { list, index, pattern });
        }
        return Err(PatternError::Invalid { list, index, pattern, source: Box::new(source) });
    }
    if Regex::new(pattern).is_ok_and(|regex| regex.is_match(b"")) {
        return Err(PatternError::MatchesAll { list, index, pattern: pattern.to_owned() });
    }
    Ok(())
}

/// The line without terminal escape sequences, if it has any.
fn without_escapes(line: &[u8]) -> Option<Vec<u8>> {
    if !line.contains(&0x1b) {
        return None;
    }
    let mut out = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != 0x1b {
            out.push(byte);
        } else if bytes.next() == Some(b'[') {
            // A control sequence ends with the first byte from `@` to `~`.
            bytes.by_ref().find(|byte| (0x40..=0x7e).contains(byte));
        }
    }
    Some(out)
}

/// Watches the two streams of one child for patterns.
#[derive(Debug)]
pub struct PatternScanner {
    patterns: Patterns,
    structured: bool,
    stdout: LineSplitter,
    stderr: LineSplitter,
    /// The unfinished line of each stream already gave its hit.
    reported: [bool; 2],
    hits: usize,
}

impl PatternScanner {
    /// A scanner for one child. `structured`: its decoder reads events.
    #[must_use]
    pub fn new(patterns: Patterns, structured: bool) -> Self {
        Self {
            patterns,
            structured,
            stdout: LineSplitter::new(LINE_BYTES),
            stderr: LineSplitter::new(LINE_BYTES),
            reported: [false; 2],
            hits: 0,
        }
    }

    /// Takes the next bytes of a stream; each complete line that matches gives one hit, a halt before
    /// an error. After sixteen hits nothing more is looked at.
    pub fn feed(&mut self, from: Stream, chunk: &[u8], out: &mut Vec<PatternHit>) {
        let Self { patterns, structured, stdout, stderr, reported: [out_told, err_told], hits } = self;
        let (splitter, told, structured) = match from {
            Stream::Stdout => (stdout, out_told, *structured),
            Stream::Stderr => (stderr, err_told, *structured),
        };
        splitter.feed(chunk, |line| {
            if !std::mem::replace(told, false) {
                scan(patterns, structured, from, line, hits, out);
            }
        });
    }

    /// How many bytes of unfinished lines it holds: at most 128 KiB.
    #[must_use]
    pub fn held(&self) -> usize {
        self.stdout.held() + self.stderr.held()
    }

    /// Looks at the unfinished lines, from their own starts. Call it when a stream has been quiet for a
    /// while; the line may still go on.
    pub fn flush_tail(&mut self, out: &mut Vec<PatternHit>) {
        let Self { patterns, structured, stdout, stderr, reported: [out_told, err_told], hits } = self;
        for (from, splitter, told) in
            [(Stream::Stdout, &*stdout, out_told), (Stream::Stderr, &*stderr, err_told)]
        {
            if let Some(line) = splitter.tail().filter(|_| !*told) {
                let before = out.len();
                scan(patterns, *structured, from, line, hits, out);
                *told = out.len() > before;
            }
        }
    }
}

fn scan(
    patterns: &Patterns,
    structured: bool,
    from: Stream,
    line: Line<'_>,
    hits: &mut usize,
    out: &mut Vec<PatternHit>,
) {
    let event = || match from {
        Stream::Stdout => line.bytes.trim_ascii_start().first() == Some(&b'{'),
        Stream::Stderr => is_failed_request(line.bytes),
    };
    if (structured && event()) || *hits >= MAX_HITS {
        return;
    }
    let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(line.bytes);
    if let Some(hit) = patterns.hit(from, bytes) {
        *hits += 1;
        out.push(hit);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan_all(structured: bool, stream: Stream, chunks: &[&[u8]]) -> Vec<PatternHit> {
        let mut scanner = PatternScanner::new(Patterns::defaults().expect("defaults"), structured);
        let mut out = Vec::new();
        for chunk in chunks {
            scanner.feed(stream, chunk, &mut out);
        }
        scanner.flush_tail(&mut out);
        out
    }

    fn classes(line: &str) -> Vec<HitClass> {
        scan_all(false, Stream::Stderr, &[line.as_bytes(), b"\n"]).into_iter().map(|hit| hit.class).collect()
    }

    #[test]
    fn a_request_that_fails_in_the_log_of_opencode_is_no_hit_where_its_decoder_reads() {
        let line =
            b"timestamp=T level=ERROR run=R message=\"stream error\" error.error=\"Rate limit reached\"\n";
        assert_eq!(scan_all(true, Stream::Stderr, &[line]), []);
        assert_eq!(scan_all(true, Stream::Stderr, &[&line[..line.len() - 1]]), [], "nor without its end");
        assert_eq!(scan_all(false, Stream::Stderr, &[line]).len(), 1);
        assert_eq!(scan_all(true, Stream::Stdout, &[line]).len(), 1);
        assert_eq!(
            scan_all(true, Stream::Stderr, &[b"level=ERROR message=\"stream error\" rate limit\n"]).len(),
            1
        );
    }

    #[test]
    fn a_hit_says_where_its_pattern_stands() {
        let keys = |line: &str| -> Vec<String> {
            let hits = scan_all(false, Stream::Stderr, &[line.as_bytes(), b"\n"]);
            hits.into_iter().map(|hit| hit.key).collect()
        };
        assert_eq!(keys("Error: rate_limit"), ["health.error_patterns[2]"]);
        assert_eq!(keys("ERROR rate limit"), ["health.error_patterns[0]"]);
        assert_eq!(keys("Error: authentication_failed"), ["health.halt_patterns[5]"]);
    }

    #[test]
    fn the_default_patterns_find_what_they_are_for() {
        for line in [
            "ERROR rate limit reached",
            "2026-01-01 ERROR: Rate-limit",
            "FATAL API Error: 503 down",
            "Error: rate_limit",
        ] {
            assert_eq!(classes(line), [HitClass::Error], "{line}");
        }
        for line in [
            "ERROR authentication failed",
            "Error: authentication_error: no",
            "[x] ERROR invalid API key",
            "ERROR expired api key",
            "FATAL quota exhausted",
            "ERROR usage limit exceeded",
            "ERROR: you have hit your usage limit",
            "\u{1b}[31mERROR\u{1b}[0m usage limit reached",
        ] {
            assert_eq!(classes(line), [HitClass::Halt], "{line}");
        }
        for line in [
            "error rate limit",
            "rate limit",
            "say \"ERROR rate limit\"",
            "ERROR in module 503",
            "ERRORS: rate limit",
        ] {
            assert!(classes(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn the_default_patterns_do_not_match_their_own_text() {
        for text in DEFAULT_ERROR_PATTERNS.iter().chain(&DEFAULT_HALT_PATTERNS) {
            for line in [format!("    - '{text}'"), (*text).to_owned()] {
                assert!(classes(&line).is_empty(), "{line}");
            }
        }
    }

    #[test]
    fn an_echo_never_halts_but_may_be_an_error() {
        assert!(classes("1a2b3c4 ERROR usage limit reached ERROR usage limit reached").is_empty());
        assert!(classes("src/x.py:3: ERROR invalid API key").is_empty());
        assert_eq!(classes("1a2b3c4 ERROR usage limit reached, rate limit"), [HitClass::Error]);
    }

    #[test]
    fn an_echo_split_between_two_chunks_stays_an_echo() {
        let chunks: [&[u8]; 2] = [b"1a2b3c4 docs: ", b"ERROR usage limit reached\n"];
        assert!(scan_all(false, Stream::Stdout, &chunks).is_empty());
    }

    #[test]
    fn a_halt_comes_before_an_error_on_the_same_line() {
        assert_eq!(classes("ERROR rate limit: usage limit reached"), [HitClass::Halt]);
    }

    #[test]
    fn structured_stdout_is_searched_only_outside_its_events() {
        let event: &[u8] = b"  {\"text\": 1} ERROR usage limit reached\n";
        assert!(scan_all(true, Stream::Stdout, &[event]).is_empty());
        assert_eq!(scan_all(true, Stream::Stdout, &[b"ERROR usage limit reached\n"]).len(), 1);
        let brace: &[u8] = b"{x} ERROR usage limit reached\n";
        assert_eq!(scan_all(true, Stream::Stderr, &[brace]).len(), 1, "standard error has no events");
    }

    #[test]
    fn an_unterminated_line_is_seen_by_flush_tail_and_reported_once() {
        let mut scanner = PatternScanner::new(Patterns::defaults().expect("defaults"), false);
        let mut out = Vec::new();
        scanner.feed(Stream::Stderr, b"ERROR usage limit", &mut out);
        scanner.flush_tail(&mut out);
        assert!(out.is_empty());
        scanner.feed(Stream::Stderr, b" reached", &mut out);
        scanner.flush_tail(&mut out);
        scanner.flush_tail(&mut out);
        scanner.feed(Stream::Stderr, b" now\nERROR quota exhausted\n", &mut out);
        let snippets: Vec<_> = out.iter().map(|hit| hit.snippet.as_str()).collect();
        assert_eq!(snippets, ["ERROR usage limit reached", "ERROR quota exhausted"]);
    }

    #[test]
    fn a_line_is_judged_beyond_what_is_shown_of_it() {
        let line =
            format!("time=12:51 level=ERROR {} error.error=\"Rate limit reached\"\n", "id=1 ".repeat(50));
        let hits = scan_all(true, Stream::Stderr, &[line.as_bytes()]);
        let told: Vec<_> = hits.iter().map(|hit| (hit.class, hit.kind)).collect();
        assert_eq!(told, [(HitClass::Error, FailureKind::RateLimit { retry_after: None })]);
    }

    #[test]
    fn unusable_patterns_are_refused_with_their_place() {
        let compile = |pattern: &str| Patterns::compile(&["ok".to_owned(), pattern.to_owned()], &[]);
        for look in ["(?=x)y", "(?<!a)b", "(?<=a)b", r"(a)\1"] {
            let error = compile(look).expect_err(look);
            assert!(matches!(error, PatternError::LookAround { index: 1, .. }), "{look}: {error}");
        }
        assert!(matches!(compile("("), Err(PatternError::Invalid { index: 1, .. })));
        assert!(matches!(compile("a{1000}{1000}{10}"), Err(PatternError::Invalid { .. })));
        assert!(matches!(compile(".*"), Err(PatternError::MatchesAll { .. })));
        assert!(matches!(compile(&"x".repeat(1025)), Err(PatternError::TooLong { .. })));
        let many = vec!["x".to_owned(); 51];
        assert!(matches!(Patterns::compile(&[], &many), Err(PatternError::TooMany { count: 51, .. })));
        assert!(compile(r"\p{Greek}+").is_ok(), "a pattern that needs Unicode still compiles");
    }

    #[test]
    fn a_flood_of_hits_is_bounded() {
        let flood = b"ERROR quota exhausted\n".repeat(1000);
        assert_eq!(scan_all(false, Stream::Stdout, &[&flood]).len(), MAX_HITS);
    }

    proptest! {
        #[test]
        fn hits_do_not_depend_on_the_chunks(cuts in prop::collection::vec(0usize..120, 0..6)) {
            let text: &[u8] = b"ok\r\n1a2b3c4 ERROR quota exhausted\nERROR quota exhausted\r\n{\"a\":1}\nError: rate_limit";
            let mut at: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            prop_assert_eq!(scan_all(true, Stream::Stdout, &chunks), scan_all(true, Stream::Stdout, &[text]));
        }
    }
}
