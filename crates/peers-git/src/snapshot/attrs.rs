//! `.gitattributes` files, as far as they change what content is stored: line ends and `$Id$`.
//!
//! Drivers (`filter=`, `diff=`, `merge=`) name programs; there are none here, so they do nothing.

use std::collections::HashMap;

use crate::snapshot::pattern::Pattern;

/// An attributes file larger than this is not read.
pub(crate) const ATTRS_CAP: u64 = 1024 * 1024;
const MAX_LINES: usize = 20_000;
/// Git ignores longer lines.
const MAX_LINE: usize = 2048;

/// How a file's content is turned into what git stores, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) struct Conversion {
    pub(crate) eol: Eol,
    pub(crate) ident: bool,
}

/// Line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) enum Eol {
    /// As it is.
    #[default]
    Raw,
    /// Text: stored with LF, and written with LF.
    Lf,
    /// Text: stored with LF, written with CR LF.
    CrLf,
    /// Text if it looks like it; written with LF.
    Auto,
    /// Text if it looks like it; written with CR LF.
    AutoCrLf,
}

impl Conversion {
    /// One byte for the cache.
    pub(crate) fn code(self) -> u8 {
        let eol = match self.eol {
            Eol::Raw => 0,
            Eol::Lf => 1,
            Eol::CrLf => 2,
            Eol::Auto => 3,
            Eol::AutoCrLf => 4,
        };
        eol | u8::from(self.ident) << 3
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Set,
    Unset,
    /// `!name`: as if nobody had said anything.
    Unspecified,
    Text(Vec<u8>),
}

type Assignments = Vec<(Vec<u8>, Value)>;

/// The lines of one file.
pub(crate) struct AttrFile {
    base: usize,
    lines: Vec<(Pattern, Assignments)>,
    /// Macros; only the file at the top may define them.
    macros: HashMap<Vec<u8>, Assignments>,
    /// Any line that could matter to us.
    relevant: bool,
}

impl AttrFile {
    /// Reads the text of a file in a directory whose path, with a trailing `/`, is `base` bytes long.
    pub(crate) fn parse(base: usize, text: &[u8]) -> Self {
        let mut file = Self { base, lines: Vec::new(), macros: HashMap::new(), relevant: false };
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for line in text.split(|b| *b == b'\n').take(MAX_LINES) {
            if line.len() < MAX_LINE {
                file.line(line);
            }
        }
        file.relevant = !file.macros.is_empty()
            || file.lines.iter().flat_map(|(_, set)| set).any(|(name, _)| {
                matches!(name.as_slice(), b"text" | b"crlf" | b"eol" | b"ident" | b"binary")
            });
        file
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii_start();
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        let bare = || {
            let end = line.iter().position(|b| is_blank(*b)).unwrap_or(line.len());
            (line.get(..end).unwrap_or(line).to_vec(), line.get(end..).unwrap_or(&[]))
        };
        let (head, rest) = quoted(line).unwrap_or_else(bare);
        let set = assignments(rest);
        if let Some(name) = head.strip_prefix(b"[attr]").filter(|name| !name.is_empty()) {
            if self.base == 0 {
                self.macros.insert(name.to_vec(), set);
            }
            return;
        }
        match Pattern::compile(&head) {
            Some(pattern) if !pattern.negative => self.lines.push((pattern, set)),
            _ => {}
        }
    }
}

/// The attributes of `path`, given the attribute files from the top down.
fn attributes<'f>(files: &'f [AttrFile], path: &[u8]) -> HashMap<&'f [u8], &'f Value> {
    let macros = files.first().map(|file| &file.macros);
    let mut found: HashMap<&'f [u8], &'f Value> = HashMap::new();
    for file in files.iter().rev() {
        let Some(inner) = path.get(file.base..) else { continue };
        for (pattern, set) in file.lines.iter().rev() {
            if pattern.matches(inner, false) {
                fill(&mut found, macros, set, 0);
            }
        }
    }
    found
}

/// The attribute of `path` that hands its content to a program or stores it in another encoding, as it is
/// written: nothing of that is done here.
pub(crate) fn special(files: &[AttrFile], path: &[u8]) -> Option<String> {
    let found = attributes(files, path);
    ["filter", "working-tree-encoding"].into_iter().find_map(|name| match found.get(name.as_bytes())? {
        Value::Text(value) if !value.is_empty() => Some(format!("{name}={}", String::from_utf8_lossy(value))),
        _ => None,
    })
}

/// How the content at `path` is converted, given the attribute files from the top down.
pub(crate) fn conversion(files: &[AttrFile], path: &[u8]) -> Conversion {
    if !files.iter().any(|file| file.relevant) {
        return Conversion::default();
    }
    let found = attributes(files, path);
    let get = |name: &[u8]| found.get(name).copied();
    let text = crlf(get(b"text")).or_else(|| crlf(get(b"crlf")));
    let eol = match get(b"eol") {
        Some(Value::Text(value)) if value == b"lf" => Some(false),
        Some(Value::Text(value)) if value == b"crlf" => Some(true),
        _ => None,
    };
    let eol = match (text, eol) {
        (Some(Text::Binary), _) | (None, None) => Eol::Raw,
        (Some(Text::Auto), Some(true)) => Eol::AutoCrLf,
        (Some(Text::Auto), _) => Eol::Auto,
        (_, Some(true)) => Eol::CrLf,
        (Some(Text::Yes | Text::Input), _) | (None, Some(false)) => Eol::Lf,
    };
    Conversion { eol, ident: get(b"ident") == Some(&Value::Set) }
}

enum Text {
    Yes,
    Binary,
    Input,
    Auto,
}

fn crlf(value: Option<&Value>) -> Option<Text> {
    match value? {
        Value::Set => Some(Text::Yes),
        Value::Unset => Some(Text::Binary),
        Value::Text(value) if value == b"input" => Some(Text::Input),
        Value::Text(value) if value == b"auto" => Some(Text::Auto),
        _ => None,
    }
}

/// The first word about an attribute counts (lines are visited from the last one up). A macro that is
/// set brings its own assignments.
fn fill<'f>(
    found: &mut HashMap<&'f [u8], &'f Value>,
    macros: Option<&'f HashMap<Vec<u8>, Assignments>>,
    set: &'f Assignments,
    depth: u32,
) {
    for (name, value) in set.iter().rev() {
        if found.contains_key(name.as_slice()) {
            continue;
        }
        found.insert(name, value);
        if *value != Value::Set || depth > 16 {
            continue;
        }
        match macros.and_then(|macros| macros.get(name)) {
            Some(inner) => fill(found, macros, inner, depth + 1),
            // Built in: `binary` is `-diff -merge -text`; only the last matters here.
            None if name == b"binary" => {
                found.entry(b"text").or_insert(&Value::Unset);
            }
            None => {}
        }
    }
}

fn assignments(text: &[u8]) -> Assignments {
    text.split(|b| is_blank(*b))
        .filter(|word| !word.is_empty())
        .filter_map(|word| {
            let (name, value) = match word.first()? {
                b'-' => (word.get(1..)?, Value::Unset),
                b'!' => (word.get(1..)?, Value::Unspecified),
                _ => match word.iter().position(|b| *b == b'=') {
                    Some(at) => (word.get(..at)?, Value::Text(word.get(at + 1..)?.to_vec())),
                    None => (word, Value::Set),
                },
            };
            let ok = !name.is_empty()
                && !name.starts_with(b"-")
                && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
            ok.then(|| (name.to_vec(), value))
        })
        .collect()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// A pattern in quotes, with C escapes; `None` when the line does not start with one.
fn quoted(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = line.strip_prefix(b"\"")?.iter().copied().enumerate();
    let mut out = Vec::new();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => return Some((out, line.get(at + 2..)?)),
            b'\\' => {
                let (_, escape) = rest.next()?;
                out.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => escape,
                    b'0'..=b'3' => {
                        let mut value = escape - b'0';
                        for _ in 0..2 {
                            let (_, digit) = rest.next().filter(|(_, d)| (b'0'..=b'7').contains(d))?;
                            value = value.wrapping_mul(8).wrapping_add(digit - b'0');
                        }
                        value
                    }
                    _ => return None,
                });
            }
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eol(text: &str, path: &str) -> Eol {
        conversion(&[AttrFile::parse(0, text.as_bytes())], path.as_bytes()).eol
    }

    #[test]
    fn the_usual_lines_mean_what_they_mean_to_git() {
        let text = "* text=auto\n*.bat text eol=crlf\n*.png binary\n*.sh eol=lf\n*.raw -text\n*.x !text\n";
        assert_eq!(eol(text, "a.c"), Eol::Auto);
        assert_eq!(eol(text, "d/a.bat"), Eol::CrLf);
        assert_eq!(eol(text, "a.png"), Eol::Raw);
        assert_eq!(eol(text, "a.sh"), Eol::Auto);
        assert_eq!(eol(text, "a.raw"), Eol::Raw);
        assert_eq!(eol(text, "a.x"), Eol::Raw);
        assert_eq!(eol("*.s eol=lf", "a.s"), Eol::Lf);
        assert_eq!(eol("*.s crlf=input", "a.s"), Eol::Lf);
    }

    #[test]
    fn macros_are_followed_and_do_not_loop() {
        assert_eq!(eol("[attr]doc text eol=crlf\n*.md doc", "a.md"), Eol::CrLf);
        assert_eq!(eol("[attr]a b\n[attr]b a text\n* a", "x"), Eol::Lf);
    }

    #[test]
    fn patterns_in_quotes_may_hold_blanks() {
        assert_eq!(eol("\"a \\\"b\\101\" text", "a \"bA"), Eol::Lf);
        assert_eq!(eol("\"open text", "open"), Eol::Raw);
    }

    #[test]
    fn an_inner_file_overrules_an_outer_one() {
        let files = [AttrFile::parse(0, b"*.c text"), AttrFile::parse(4, b"*.c -text ident")];
        assert_eq!(conversion(&files, b"sub/a.c"), Conversion { eol: Eol::Raw, ident: true });
        assert_eq!(conversion(&files, b"a.c").eol, Eol::Lf);
    }
}
