//! Commit messages: the one trailer grammar of the product, `## Name` sections, JSON blocks.
//!
//! All of it reads text that agents wrote. Every function is total: any text gives an answer, in
//! time bounded by the size cap of a message.

use std::fmt;
use std::iter::Peekable;
use std::str::Lines;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::limits;

/// JSON objects tried in one text: starts at more braces than this are not looked at.
const JSON_STARTS: usize = 256;
/// Bytes looked at in one text, all tries together.
const JSON_WORK: usize = 1 << 20;

/// Keys that mark a trailing paragraph as trailers for certain. A paragraph of other `word: text`
/// lines is read as trailers too, but stays part of the section above it.
const KNOWN_KEYS: [&str; 22] = [
    "Peer",
    "Peer-Status",
    "Self-Review",
    "Skeptic",
    "Bug-Report",
    "Bug-Resolves",
    "Bug-Defer",
    "Bug-Reproduce",
    "Bug-Reproduce-Waive",
    "Bug-Verified",
    "Bug-Ack",
    "Bug-Reopen",
    "Peer-Review-Of",
    "Peers-Review",
    "Justified-Test-Only",
    "Dependency-Justification",
    "Breaking-API",
    "Diff-Size-Waive",
    "Test-Rename",
    "Architecture-Amendment",
    "Co-Authored-By",
    "Signed-Off-By",
];

/// One `Key: value` pair that fits the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    key: String,
    value: String,
}

/// A key or value that no trailer can hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a trailer: {1}")]
pub struct InvalidTrailer(String, &'static str);

impl Trailer {
    /// Makes a trailer to be written; its value is trimmed.
    ///
    /// # Errors
    /// [`InvalidTrailer`] when reading it back would not give the same pair.
    pub fn new(key: &str, value: &str) -> Result<Self, InvalidTrailer> {
        let bad = |why| InvalidTrailer(key.chars().filter(|c| !c.is_control()).take(80).collect(), why);
        let value = value.trim();
        if value.contains('\n') {
            return Err(bad("its value has more than one line"));
        }
        match trailer_line(&format!("{key}: {value}")) {
            Some((k, v)) if k == key && v == value => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            Some(_) | None => Err(bad("its key or value does not fit the grammar")),
        }
    }

    /// The key as written.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value, trimmed, continuation lines joined by one blank.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether this is the trailer `key`, letter case aside.
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }
}

impl fmt::Display for Trailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:", self.key)
        } else {
            write!(f, "{}: {}", self.key, self.value)
        }
    }
}

/// The trailers of a message, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trailers(Vec<Trailer>);

impl Trailers {
    /// Reads all trailing paragraphs that hold nothing but trailers and cherry-pick lines.
    #[must_use]
    pub fn parse(message: &str) -> Self {
        Message::parse(message).trailers
    }

    /// The value of the last trailer `key`: the one that counts where only one can.
    #[must_use]
    pub fn last(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|t| t.is(key)).map(Trailer::value)
    }

    /// The values of all trailers `key`, in order.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |t| t.is(key)).map(Trailer::value)
    }

    /// All trailers in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Trailer> {
        self.0.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Trailers {
    type Item = &'a Trailer;
    type IntoIter = std::slice::Iter<'a, Trailer>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Trailer> for Trailers {
    fn from_iter<I: IntoIterator<Item = Trailer>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

/// One trailer on each line, each line ended by a newline.
impl fmt::Display for Trailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|t| writeln!(f, "{t}"))
    }
}

/// A commit message taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// First line that is not blank, trimmed.
    pub subject: &'a str,
    /// The text above the trailers. Trailing paragraphs of `word: text` lines belong to it as long
    /// as none above or among them holds a key that we know.
    pub body: &'a str,
    /// The trailers.
    pub trailers: Trailers,
    /// The message was longer than [`limits::COMMIT_MESSAGE`]: only its end was read.
    pub cut: bool,
}

impl<'a> Message<'a> {
    /// Takes a message apart. Of one that is too long the end is read, since trailers stand there.
    #[must_use]
    pub fn parse(message: &'a str) -> Self {
        let subject = message.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
        let text = readable(message);
        let mut block = Vec::new();
        let mut body_end = text.len();
        for paragraph in paragraphs(text).into_iter().rev() {
            let Some(found) = trailer_paragraph(paragraph.text) else { break };
            if found.iter().any(|t| KNOWN_KEYS.iter().any(|k| t.is(k))) {
                body_end = paragraph.start;
            }
            block.push(found);
        }
        let trailers = Trailers(block.into_iter().rev().flatten().collect());
        Self {
            subject,
            body: text.get(..body_end).unwrap_or(text),
            trailers,
            cut: text.len() < message.len(),
        }
    }

    /// The bodies of all sections `## name` (letter case aside), in order.
    pub fn sections(&self, name: &str) -> impl Iterator<Item = &'a str> {
        sections(self.body, name)
    }

    /// Whether there is a section of that name, empty or not.
    #[must_use]
    pub fn has_section(&self, name: &str) -> bool {
        self.sections(name).next().is_some()
    }
}

/// The part of a message that claims are read from: its end, from a line start on.
fn readable(message: &str) -> &str {
    let cap = usize::try_from(limits::COMMIT_MESSAGE).unwrap_or(usize::MAX);
    if message.len() <= cap {
        return message;
    }
    let mut from = message.len() - cap;
    while !message.is_char_boundary(from) {
        from += 1;
    }
    let tail = message.get(from..).unwrap_or_default();
    tail.split_once('\n').map_or("", |(_, rest)| rest)
}

struct Paragraph<'a> {
    start: usize,
    text: &'a str,
}

/// Runs of lines that are not blank, with their byte offsets.
fn paragraphs(text: &str) -> Vec<Paragraph<'_>> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.trim().is_empty();
        match (open, blank) {
            (None, false) => open = Some(at),
            (Some(start), true) => {
                found.push(Paragraph { start, text: text.get(start..at).unwrap_or_default() });
                open = None;
            }
            (None, true) | (Some(_), false) => {}
        }
        at += line.len();
    }
    if let Some(start) = open {
        found.push(Paragraph { start, text: text.get(start..).unwrap_or_default() });
    }
    found
}

fn trailer_paragraph(text: &str) -> Option<Vec<Trailer>> {
    let mut found: Vec<Trailer> = Vec::new();
    let mut foldable = false;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            let last = found.last_mut().filter(|_| foldable)?;
            // What is no value on the line of its key is none below it.
            if last.value.is_empty() && line.trim().starts_with("//") {
                return None;
            }
            if !last.value.is_empty() {
                last.value.push(' ');
            }
            last.value.push_str(line.trim());
        } else if cherry_pick_line(line.trim_end()) {
            foldable = false;
        } else {
            let (key, value) = trailer_line(line)?;
            found.push(Trailer { key: key.to_owned(), value: value.to_owned() });
            foldable = true;
        }
    }
    Some(found)
}

fn trailer_line(line: &str) -> Option<(&str, &str)> {
    const URL_SCHEMES: [&str; 8] = ["http", "https", "ftp", "ftps", "ssh", "file", "ws", "wss"];
    let (key, value) = line.split_once(':')?;
    let value = value.trim();
    let mut bytes = key.bytes();
    let fits = key.len() >= 2
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !value.starts_with("//")
        && !URL_SCHEMES.iter().any(|s| key.eq_ignore_ascii_case(s));
    fits.then_some((key, value))
}

fn cherry_pick_line(line: &str) -> bool {
    line.strip_prefix("(cherry picked from commit ")
        .and_then(|rest| rest.strip_suffix(')'))
        .is_some_and(|hex| (4..=64).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The bodies of all sections `## name` of a text, letter case aside. A section ends at the next
/// line that starts with `## `, or at the end.
pub fn sections<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let mut bodies = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(title) = heading(line) {
            bodies.extend(open.take().and_then(|start| text.get(start..at)));
            open = title.eq_ignore_ascii_case(name).then_some(at + line.len());
        }
        at += line.len();
    }
    bodies.extend(open.and_then(|start| text.get(start..)));
    bodies.into_iter()
}

/// The title of a second-level heading, without closing `#` and colon.
fn heading(line: &str) -> Option<&str> {
    let title = line.strip_prefix("##")?;
    if !title.starts_with([' ', '\t']) {
        return None;
    }
    Some(title.trim().trim_end_matches(['#', ':', ' ', '\t']))
}

/// A JSON object found in text.
pub type JsonObject = Map<String, Value>;

/// All JSON objects of a text, in order, none inside another.
///
/// Each `{` is tried with a real parser, so quotes and braces in prose hide nothing. Lines of code
/// fences need no care; `//` comments are skipped. An object nested deeper than
/// [`limits::JSON_DEPTH`] is none. At most 256 braces are tried, and a bounded number of bytes is
/// read over and over.
#[must_use]
pub fn json_objects(text: &str) -> Vec<JsonObject> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut budget = JSON_WORK;
    for _ in 0..JSON_STARTS {
        let Some(rest) = text.get(at..).filter(|_| budget > 0) else { break };
        let Some(brace) = rest.find('{') else { break };
        let candidate = rest.get(brace..).unwrap_or_default();
        let mut attempt = first_object(candidate);
        if let Attempt::Broken { at_comment: true, .. } = attempt {
            budget = budget.saturating_sub(candidate.len());
            attempt = first_object(&without_comments(candidate));
        }
        at += brace;
        let read = match attempt {
            Attempt::Object { object, length } => {
                found.push(object);
                at += length;
                length
            }
            Attempt::Broken { read, .. } => {
                at += 1;
                read
            }
        };
        budget = budget.saturating_sub(read);
    }
    found
}

enum Attempt {
    /// The text starts with this object, `length` bytes long.
    Object { object: JsonObject, length: usize },
    /// It does not. `read` bytes were looked at; the trouble may be a comment.
    Broken { read: usize, at_comment: bool },
}

fn first_object(text: &str) -> Attempt {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(Value::Object(object))) => {
            let length = stream.byte_offset();
            if object.values().map(depth).max().unwrap_or(0) < limits::JSON_DEPTH {
                Attempt::Object { object, length }
            } else {
                Attempt::Broken { read: length, at_comment: false }
            }
        }
        Some(Ok(_)) | None => Attempt::Broken { read: stream.byte_offset(), at_comment: false },
        Some(Err(error)) => {
            let before = error.line().saturating_sub(1);
            let lines: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
            let read = lines.saturating_add(error.column()).min(text.len());
            let near = text.as_bytes().get(read.saturating_sub(2)..).unwrap_or_default();
            Attempt::Broken { read: read.max(1), at_comment: near.iter().take(3).any(|b| *b == b'/') }
        }
    }
}

/// Nesting of a value. The parser's own limit (128) bounds this recursion.
fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Object(object) => object.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    deepest.unwrap_or(0) + 1
}

/// The same text with `//` comments outside JSON strings blanked, byte for byte as long.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let comment = comment_start(line);
        let (code, rest) = line.split_at_checked(comment).unwrap_or((line, ""));
        out.push_str(code);
        out.extend(rest.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
    }
    out
}

/// Where the comment of a line starts; the line's length when there is none. JSON strings do not
/// span lines.
fn comment_start(line: &str) -> usize {
    let mut chars: Peekable<std::str::CharIndices<'_>> = line.char_indices().peekable();
    let mut in_string = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if in_string => {
                chars.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek().is_some_and(|(_, next)| *next == '/') => return at,
            _ => {}
        }
    }
    line.len()
}

/// The items of all lists in a text (`-`, `*`, `+`, `1.`, `1)`), trimmed, that hold a letter.
pub fn list_items(text: &str) -> impl Iterator<Item = &str> {
    let lines: Lines<'_> = text.lines();
    lines.filter_map(|line| list_item(line.trim())).filter(|item| item.chars().any(char::is_alphabetic))
}

fn list_item(line: &str) -> Option<&str> {
    let numbered = || {
        let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() == line.len() { None } else { after.strip_prefix(['.', ')']) }
    };
    let rest = line.strip_prefix(['-', '*', '+']).or_else(numbered)?;
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(message: &str) -> Vec<(String, String)> {
        Trailers::parse(message).iter().map(|t| (t.key().to_owned(), t.value().to_owned())).collect()
    }

    fn keys(message: &str) -> Vec<String> {
        pairs(message).into_iter().map(|(k, _)| k).collect()
    }

    #[test]
    fn a_folded_value_that_could_not_be_written_is_none() {
        for text in ["Bug-Ack: //x", "Bug-Ack:\n //x", "Bug-Ack: \n\t//"] {
            assert_eq!(pairs(&format!("s\n\n{text}\n")), [], "{text:?}");
        }
        assert_eq!(pairs("s\n\nBug-Ack: a\n //x\n"), [("Bug-Ack".to_owned(), "a //x".to_owned())]);
    }

    #[test]
    fn row_13_duplicate_trailers_last_wins() {
        let t = Trailers::parse("s\n\nSelf-Review: pass\nPeer: a\nself-review: fail\n");
        assert_eq!(t.last("Self-Review"), Some("fail"));
        assert_eq!(t.all("SELF-REVIEW").collect::<Vec<_>>(), ["pass", "fail"]);
    }

    #[test]
    fn row_13_crlf_is_tolerated() {
        let t = Trailers::parse("s\r\n\r\nbody\r\n\r\nPeer: claude\r\nPeer-Status: handoff\r\n\r\n");
        assert_eq!(t.last("Peer"), Some("claude"));
        assert_eq!(t.last("Peer-Status"), Some("handoff"));
    }

    #[test]
    fn row_13_a_url_as_last_line_is_no_trailer() {
        for last in ["https://example.org/x", "http://a", "HTTPS: //a", "ftp:x", "See: //host/share", "wss:1"]
        {
            assert!(pairs(&format!("s\n\nPeer: a\n\n{last}\n")).is_empty(), "{last}");
        }
    }

    #[test]
    fn row_13_a_record_separator_in_the_body_changes_nothing() {
        let message =
            "s\n\nbo\u{1e}dy\u{0}\u{1f}\u{85}\u{2028}Peer: forged\n\nPeer: a\u{1e}b\nBug-Report: X\n";
        assert_eq!(pairs(message), [("Peer".into(), "a\u{1e}b".into()), ("Bug-Report".into(), "X".into())]);
    }

    #[test]
    fn row_14_a_co_author_paragraph_does_not_hide_the_trailers_above() {
        let t = Trailers::parse(
            "s\n\nbody\n\nPeer: a\nPeer-Status: handoff\n\nCo-Authored-By: C <c@example.org>\n",
        );
        assert_eq!(t.last("Peer-Status"), Some("handoff"));
        assert_eq!(t.len(), 3);
    }

    #[test]
    fn the_block_stops_at_the_first_paragraph_of_prose() {
        assert_eq!(keys("s\n\nPeer: no\n\nprose here\n\nPeer: a\n\nAb: c"), ["Peer", "Ab"]);
        assert_eq!(keys("s\n\nPeer: a\nand prose\n"), Vec::<String>::new());
        assert_eq!(keys(""), Vec::<String>::new());
        assert_eq!(keys("\n\n  \n"), Vec::<String>::new());
    }

    #[test]
    fn cherry_pick_lines_belong_to_the_block() {
        let message =
            "s\n\nPeer: a\n(cherry picked from commit 0123abcD)\n\n(cherry picked from commit deadbeef)\n";
        assert_eq!(keys(message), ["Peer"]);
        for bad in ["(cherry picked from commit abc)", "(cherry picked from commit xyzw)", "(cherry picked)"]
        {
            assert!(keys(&format!("s\n\nPeer: a\n{bad}\n")).is_empty(), "{bad}");
        }
    }

    #[test]
    fn continuation_lines_are_folded() {
        let message = "s\n\nNote: one\n  two\n\tthree  \nEmpty:\n filled\n";
        assert_eq!(
            pairs(message),
            [("Note".into(), "one two three".into()), ("Empty".into(), "filled".into())]
        );
        assert!(keys("s\n\n  Peer: a\n").is_empty(), "a paragraph cannot start with a continuation");
        assert!(keys("s\n\n(cherry picked from commit deadbeef)\n more\n").is_empty());
    }

    #[test]
    fn keys_are_a_letter_and_then_letters_digits_and_dashes() {
        for good in ["Ab", "a1", "A-", "Bug-Report"] {
            assert_eq!(keys(&format!("s\n\n{good}: v")), [good]);
            assert_eq!(keys(&format!("s\n\n{good}:v")), [good], "the blank is optional");
        }
        for bad in ["A", "1a", "-a", "a b", "a_b", "ä1", ""] {
            assert!(keys(&format!("s\n\n{bad}: v")).is_empty(), "{bad}");
        }
    }

    #[test]
    fn of_a_long_message_the_end_is_read() {
        let message = format!("subject\n\n{}\n\nPeer: a\n", "ä".repeat(100_000));
        let parsed = Message::parse(&message);
        assert!(parsed.cut);
        assert_eq!(parsed.subject, "subject");
        assert_eq!(parsed.trailers.last("Peer"), Some("a"));
        assert!(Message::parse(&"x".repeat(100_000)).trailers.is_empty());
    }

    #[test]
    fn a_section_ends_at_the_next_heading_or_at_the_trailers() {
        let message =
            "s\n\n##  SELF-review:\nfine\n### sub\nmore\n## Other ##\nx\n\nPeer: a\n\nCo-Authored-By: b\n";
        let m = Message::parse(message);
        assert_eq!(m.sections("Self-Review").collect::<Vec<_>>(), ["fine\n### sub\nmore\n"]);
        assert_eq!(m.sections("other").collect::<Vec<_>>(), ["x\n\n"]);
        assert!(!m.has_section("missing"));
        assert!(!Message::parse("s\n\n##Review\n# Review\n### Review\n").has_section("Review"));
    }

    #[test]
    fn plain_notes_in_trailer_shape_stay_in_their_section() {
        let m = Message::parse("s\n\n## Self-Review\n\ntests-pass: green now\nlint: clean\n\nPeer: a\n");
        assert_eq!(m.sections("self-review").next().unwrap().trim(), "tests-pass: green now\nlint: clean");
        assert_eq!(m.trailers.last("lint"), Some("clean"), "they are trailers by the grammar all the same");
    }

    #[test]
    fn json_is_found_whatever_stands_around_it() {
        let cases = [
            r#"a 5" display shows {"id": "B"}"#,
            "```json\n{\"id\": \"B\"}\n```",
            "{not json} { { {\"id\": \"B\"}",
            "{\n  // crit|high|med\n  \"id\": \"B\" // the id\n}",
            "it's {\"id\":\"B\"} } }",
            "\u{1e}{\"id\":\"B\"}\u{0}",
        ];
        for text in cases {
            let found = json_objects(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0]["id"], "B", "{text}");
        }
    }

    #[test]
    fn objects_are_found_in_order_and_not_inside_each_other() {
        let found = json_objects(r#"{"a": {"b": 1}} and {"c": "// no comment {"} "#);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1]["c"], "// no comment {");
        assert_eq!(found[0]["a"]["b"], 1);
    }

    #[test]
    fn a_slash_pair_in_a_string_survives_comment_removal() {
        let found = json_objects("{\"u\": \"https://x\\\" // y\", // why\n \"n\": 1}");
        assert_eq!(found[0]["u"], "https://x\" // y");
    }

    #[test]
    fn json_that_is_too_deep_is_none() {
        let nest = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
        assert_eq!(json_objects(&nest(64)).len(), 1);
        // The outermost objects are too deep; the first one that is not is found inside.
        assert_eq!(depth(&Value::Object(json_objects(&nest(70)).remove(0))), 64);
    }

    #[test]
    fn the_number_of_braces_tried_is_bounded() {
        assert!(json_objects(&format!("{}{{\"a\":1}}", "{".repeat(JSON_STARTS))).is_empty());
        assert_eq!(json_objects(&format!("{}{{\"a\":1}}", "{".repeat(JSON_STARTS - 1))).len(), 1);
    }

    #[test]
    fn the_work_for_one_text_is_bounded() {
        let text = format!("{}{{\"b\":1}}", "{\"a\":[1,".repeat(20));
        assert_eq!(json_objects(&text).len(), 1, "a few open braces do no harm");
        // Nothing of this closes, so each brace costs the whole rest.
        let text = format!("{}{}{{\"b\":1}}", "{\"a\":[".repeat(30), "1,".repeat(30_000));
        assert!(json_objects(&text).is_empty());
    }

    #[test]
    fn comments_are_skipped_wherever_json_allows_blanks() {
        for text in [
            "{//c\n\"a\":1}",
            "{\"a\"//c\n:1}",
            "{\"a\"://c\n1}",
            "{\"a\":1//c\n}",
            "{\"a\":1 // c { \"\n , // d\n \"b\": [ // e\n 2 // f\n, 3]}",
            "{\"a\":true// c\n}",
            "{\"a\":\"x\"// c\r\n}",
        ] {
            assert_eq!(json_objects(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn list_items_need_a_marker_and_a_letter() {
        let text = "- a\n * b\n+ c\n1. d\n22) e\n-no\n- \n- 1\n1.f\nplain\n  - nested";
        assert_eq!(list_items(text).collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "nested"]);
    }

    #[test]
    fn a_trailer_that_would_not_read_back_cannot_be_made() {
        for (key, value) in
            [("a b", "x"), ("A", "x"), ("http", "x"), ("Key", "//x"), ("Key", "x\ny"), ("K:y", "v")]
        {
            assert!(Trailer::new(key, value).is_err(), "{key}: {value}");
        }
        assert_eq!(Trailer::new("Peer", " a ").unwrap().to_string(), "Peer: a");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in any::<String>()) {
            let m = Message::parse(&text);
            prop_assert!(m.trailers.len() <= text.lines().count());
            let braces = text.matches('{').count();
            prop_assert!(json_objects(&text).len() <= braces);
            prop_assert!(list_items(&text).count() <= text.lines().count());
        }

        #[test]
        fn text_of_the_dangerous_alphabet_is_read_without_panic(text in "[-{}\"\\\\/:#`\\[\\]\n\r\t aAé1,]{0,200}") {
            let m = Message::parse(&text);
            prop_assert!(text.contains(m.body));
            let braces = text.matches('{').count();
            prop_assert!(json_objects(&text).len() <= braces);
            prop_assert!(m.sections("a").count() <= text.matches("##").count());
            prop_assert_eq!(without_comments(&text).len(), text.len());
        }

        #[test]
        fn trailers_survive_a_round_trip(
            made in proptest::collection::vec(("[A-Za-z][A-Za-z0-9-]{1,12}", "[ -~]{0,40}"), 1..8)
        ) {
            let trailers: Trailers = made.iter().filter_map(|(k, v)| Trailer::new(k, v).ok()).collect();
            let message = format!("a subject\n\nsome prose\n\n{trailers}");
            prop_assert_eq!(Trailers::parse(&message), trailers);
        }
    }
}
