//! The patterns of `.gitignore` and `.gitattributes`.
//!
//! A pattern is compiled to tokens once and matched by a table, so that no pattern takes more than
//! (length of pattern) x (length of path) steps.

/// Patterns longer than this match nothing. (No sane path needs one.)
const MAX_PATTERN: usize = 2048;

/// One compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// It takes back what an earlier pattern said.
    pub(crate) negative: bool,
    /// It ends in `/`: directories only.
    pub(crate) dir_only: bool,
    /// Without an inner `/` it is compared with the last component alone.
    by_name: bool,
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`: any byte but `/`.
    One,
    /// `[...]`: any of these bytes but `/`.
    Class(Box<[bool; 256]>),
    /// `*`: any run without `/`.
    Star,
    /// `**`: any run.
    Deep,
    /// `**/` at a border: nothing, or any run that ends in `/`.
    DeepDirs,
}

impl Pattern {
    /// Compiles one line of a pattern file, already without its line end. `None` = it says nothing.
    pub(crate) fn compile(line: &[u8]) -> Option<Self> {
        let (negative, text) = match line.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (dir_only, text) = match text.strip_suffix(b"/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if text.len() > MAX_PATTERN {
            return None;
        }
        let by_name = !text.contains(&b'/');
        let text = if by_name { text } else { text.strip_prefix(b"/").unwrap_or(text) };
        let tokens = tokens(text, by_name)?;
        Some(Self { negative, dir_only, by_name, tokens })
    }

    /// Does it match `path`, relative to the directory of the pattern file?
    pub(crate) fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        if self.dir_only && !is_dir {
            return false;
        }
        let subject = if self.by_name {
            path.iter().rposition(|b| *b == b'/').and_then(|slash| path.get(slash + 1..)).unwrap_or(path)
        } else {
            path
        };
        matches(&self.tokens, subject)
    }
}

/// `None` for a pattern that can match nothing (an open bracket, a trailing backslash).
fn tokens(text: &[u8], by_name: bool) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    // Git compares the part before the first special byte literally and starts over behind it, so a
    // `**` there counts as one at the border.
    let literal = text.iter().position(|b| matches!(b, b'*' | b'?' | b'[' | b'\\')).unwrap_or(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => {
                out.push(Token::Byte(*text.get(at + 1)?));
                at += 2;
            }
            b'?' => {
                out.push(Token::One);
                at += 1;
            }
            b'[' => {
                let (class, next) = class(text, at + 1)?;
                out.push(Token::Class(class));
                at = next;
            }
            b'*' => {
                let end = at + text.get(at..)?.iter().take_while(|b| **b == b'*').count();
                let border = at == literal || at.checked_sub(1).and_then(|i| text.get(i)) == Some(&b'/');
                let rest = text.get(end..).unwrap_or(&[]);
                let deep =
                    end - at > 1 && (rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/"));
                if by_name {
                    out.push(Token::Deep);
                } else if deep && border && rest.starts_with(b"/") {
                    out.push(Token::DeepDirs);
                    at = end + 1;
                    continue;
                } else if deep && border {
                    out.push(Token::Deep);
                } else {
                    out.push(Token::Star);
                }
                at = end;
            }
            other => {
                out.push(Token::Byte(other));
                at += 1;
            }
        }
    }
    Some(out)
}

/// A bracket expression from behind its `[`; returns the set and the place behind its `]`.
fn class(text: &[u8], start: usize) -> Option<(Box<[bool; 256]>, usize)> {
    let mut set = Box::new([false; 256]);
    let mut add = |low: u8, high: u8| {
        for b in low..=high {
            if let Some(slot) = set.get_mut(usize::from(b)) {
                *slot = true;
            }
        }
    };
    let mut at = start;
    let negated = matches!(text.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let mut previous: Option<u8> = None;
    let mut first = true;
    loop {
        let byte = *text.get(at)?;
        match byte {
            b']' if !first => break,
            b'\\' => {
                let literal = *text.get(at + 1)?;
                add(literal, literal);
                previous = Some(literal);
                at += 2;
            }
            b'-' if previous.is_some() && text.get(at + 1).is_some_and(|b| *b != b']') => {
                let mut high = *text.get(at + 1)?;
                at += 2;
                if high == b'\\' {
                    high = *text.get(at)?;
                    at += 1;
                }
                add(previous?, high);
                previous = None;
            }
            b'[' if text.get(at + 1) == Some(&b':') => {
                let close = at + 2 + text.get(at + 2..)?.iter().position(|b| *b == b']')?;
                let name = text.get(at + 2..close)?;
                if let Some(name) = name.strip_suffix(b":") {
                    let member = named_class(name)?;
                    (0..=u8::MAX).filter(|b| member(*b)).for_each(|b| add(b, b));
                    previous = None;
                    at = close + 1;
                } else {
                    add(b'[', b'[');
                    previous = Some(b'[');
                    at += 1;
                }
            }
            other => {
                add(other, other);
                previous = Some(other);
                at += 1;
            }
        }
        first = false;
    }
    if negated {
        set.iter_mut().for_each(|slot| *slot = !*slot);
    }
    if let Some(slot) = set.get_mut(usize::from(b'/')) {
        *slot = false;
    }
    Some((set, at + 1))
}

fn named_class(name: &[u8]) -> Option<fn(u8) -> bool> {
    Some(match name {
        b"alnum" => |b| b.is_ascii_alphanumeric(),
        b"alpha" => |b| b.is_ascii_alphabetic(),
        b"blank" => |b| b == b' ' || b == b'\t',
        b"cntrl" => |b| b.is_ascii_control(),
        b"digit" => |b| b.is_ascii_digit(),
        b"graph" => |b| b.is_ascii_graphic(),
        b"lower" => |b| b.is_ascii_lowercase(),
        b"print" => |b| b == b' ' || b.is_ascii_graphic(),
        b"punct" => |b| b.is_ascii_punctuation(),
        b"space" => |b| matches!(b, b' ' | 9..=13),
        b"upper" => |b| b.is_ascii_uppercase(),
        b"xdigit" => |b| b.is_ascii_hexdigit(),
        _ => return None,
    })
}

/// All places in `text` that the tokens so far can have reached, token by token.
fn matches(tokens: &[Token], text: &[u8]) -> bool {
    // The common case needs no table.
    if let Some(plain) = plain(tokens, text) {
        return plain;
    }
    let mut reach = vec![false; text.len() + 1];
    if let Some(start) = reach.first_mut() {
        *start = true;
    }
    for token in tokens {
        let mut next = vec![false; text.len() + 1];
        let mut running = false;
        for (at, slot) in next.iter_mut().enumerate() {
            let here = reach.get(at).copied().unwrap_or(false);
            let before = at.checked_sub(1).and_then(|i| Some((*reach.get(i)?, *text.get(i)?)));
            *slot = match token {
                Token::Byte(b) => before.is_some_and(|(ok, byte)| ok && byte == *b),
                Token::One => before.is_some_and(|(ok, byte)| ok && byte != b'/'),
                Token::Class(set) => before
                    .is_some_and(|(ok, byte)| ok && set.get(usize::from(byte)).copied().unwrap_or(false)),
                Token::Star => {
                    running = here || (running && before.is_some_and(|(_, byte)| byte != b'/'));
                    running
                }
                Token::Deep => {
                    running |= here;
                    running
                }
                Token::DeepDirs => {
                    let after_slash = running && before.is_some_and(|(_, byte)| byte == b'/');
                    running |= here;
                    here || after_slash
                }
            };
        }
        if !next.contains(&true) {
            return false;
        }
        reach = next;
    }
    reach.last().copied().unwrap_or(false)
}

/// Decides patterns of literal bytes, with at most one leading `*` that may match anything.
fn plain(tokens: &[Token], text: &[u8]) -> Option<bool> {
    let (tail, exact) = match tokens.split_first() {
        Some((Token::Deep, rest)) => (rest, false),
        _ => (tokens, true),
    };
    if !tail.iter().all(|token| matches!(token, Token::Byte(_))) {
        return None;
    }
    let end = text.len().checked_sub(tail.len()).and_then(|at| text.get(at..));
    let same = end.is_some_and(|end| end.iter().zip(tail).all(|(b, token)| *token == Token::Byte(*b)));
    Some(same && (!exact || tail.len() == text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(pattern: &str, path: &str) -> bool {
        Pattern::compile(pattern.as_bytes()).is_some_and(|p| p.matches(path.as_bytes(), false))
    }

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        assert!(hit("*.o", "a/b.o"));
        assert!(hit("/*.o", "b.o") && !hit("/*.o", "a/b.o"));
        assert!(hit("a/**/b", "a/b") && hit("a/**/b", "a/x/y/b") && !hit("a/**/b", "ab"));
        assert!(hit("**/x", "x") && hit("**/x", "a/b/x") && !hit("**/x", "ax"));
        assert!(hit("a/**", "a/b/c") && !hit("a/**", "a"));
        assert!(hit("a/*/c", "a/b/c") && !hit("a/*/c", "a/b/b/c"));
        assert!(!hit("a/x**y/b", "a/xz/zy/b") && hit("a/x**y/b", "a/xzy/b"));
    }

    #[test]
    fn brackets_follow_the_shell() {
        assert!(hit("[a-c]x", "bx") && !hit("[!a-c]x", "bx") && hit("[^a-c]x", "dx"));
        assert!(hit("[]-]", "]") && hit("[]-]", "-") && hit("[[:digit:]_]", "7") && hit("[[:digit:]_]", "_"));
        assert!(hit("[\\]]", "]") && !hit("[a", "[a") && !hit("[[:nope:]]", "n") && !hit("a[!x]b", "a/b"));
    }

    #[test]
    fn escapes_and_negation_are_literal_where_they_must() {
        assert!(hit("\\!a", "!a") && hit("\\#a", "#a") && !hit("a\\", "a\\"));
        assert!(Pattern::compile(b"!a").unwrap().negative);
        assert!(Pattern::compile(b"a/").unwrap().dir_only && !hit("a/", "a"));
    }

    #[test]
    fn a_pattern_made_to_explode_is_decided() {
        let pattern = "*a".repeat(500) + "/b";
        let path = "a".repeat(2000);
        assert!(!hit(&pattern, &path));
        assert!(Pattern::compile("*".repeat(5000).as_bytes()).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_pattern_is_total(pattern in "[a*?/\\[\\]!\\\\:-]{0,12}", path in "[a/!\\]-]{0,12}") {
            let _ = hit(&pattern, &path);
        }
    }
}
