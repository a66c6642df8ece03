//! Text of foreign origin, made fit for a terminal.
//!
//! Removed are control bytes (C0, C1, DEL), whole escape sequences, bidirectional controls and
//! invisible format characters, so that text can neither move the cursor, hide itself nor pose as
//! something else. Everything else, including any script, stays.

use std::borrow::Cow;
use std::iter::Peekable;
use std::os::fd::AsFd;
use std::str::Chars;

use unicode_width::UnicodeWidthChar;

/// An escape string (title, device control) longer than this counts as unterminated.
const STRING_MAX: usize = 4096;
/// Marks stacked on one base character; more would draw over other lines.
const MARKS_MAX: usize = 4;

/// How many cells wide the terminal behind this is; `None` where there is none, or it does not say.
#[must_use]
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// How many lines high the terminal behind this is; `None` where there is none, or it does not say.
#[must_use]
pub fn rows(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_row > 0).then_some(usize::from(size.ws_row))
}

/// `text` with its lines and tabs, all else that steers a terminal removed.
///
/// Returns the argument itself when there is nothing to remove.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    filter(text, |c| out.push(c));
    Cow::Owned(out)
}

/// [`block`] for bytes of any encoding; what is not UTF-8 shows as U+FFFD.
#[must_use]
pub fn block_bytes(bytes: &[u8]) -> String {
    block(&String::from_utf8_lossy(bytes)).into_owned()
}

/// `text` as one line of at most `max_width` terminal cells; a cut is marked by `…`.
///
/// Line ends and tabs become spaces.
#[must_use]
pub fn line(text: &str, max_width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    // Where to cut if one cell more than allowed turns up.
    let mut cut = 0;
    let mut overflow = false;
    filter(text, |c| {
        if overflow {
            return;
        }
        let c = if c == '\n' || c == '\t' { ' ' } else { c };
        used += char_width(c);
        overflow = used > max_width;
        if overflow {
            return;
        }
        out.push(c);
        if used < max_width {
            cut = out.len();
        }
    });
    if overflow {
        out.truncate(cut);
        if max_width > 0 {
            out.push('…');
        }
    }
    out
}

/// [`line()`] of any length: for messages that carry a foreign name.
#[must_use]
pub fn inline(text: &str) -> String {
    line(text, usize::MAX)
}

/// The first of so many names, and how many more there are: `a, b and 3 more`.
#[must_use]
pub fn first_of(all: usize, first: impl IntoIterator<Item = String>) -> String {
    let first: Vec<String> = first.into_iter().collect();
    match all.saturating_sub(first.len()) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// `text` as one word of a POSIX shell, to be read and pasted: what a terminal should not be sent stands there as
/// numbers.
#[must_use]
pub fn quoted(text: &str) -> String {
    quoted_bytes(text.as_bytes())
}

/// The same for a name that need not be UTF-8.
#[must_use]
pub fn quoted_bytes(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) if inline(text) == text => peers_model::command::word(text),
        _ => numbered(bytes),
    }
}

/// [`inline()`] of a foreign name that stands between backticks, which it must not close.
#[must_use]
pub fn name(text: &str) -> String {
    inline(text).replace('`', "'")
}

/// A word that the shell puts together from these bytes.
fn numbered(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut word = String::new();
    for &byte in bytes {
        match byte {
            b'\\' => word.push_str(r"\\"),
            b' '..=b'~' if byte != b'\'' => word.push(char::from(byte)),
            _ => {
                let _infallible = write!(word, r"\0{byte:03o}");
            }
        }
    }
    format!("\"$(printf %b '{word}')\"")
}

fn harmless(c: char) -> bool {
    (c.is_ascii() && !c.is_ascii_control()) || c == '\n' || c == '\t' || (c > '\u{9f}' && plain(c))
}

// Beyond ASCII and Latin-1: neither invisible nor a mark (marks have to be counted).
fn plain(c: char) -> bool {
    !invisible(c) && !matches!(c, '\u{2028}' | '\u{2029}') && char_width(c) > 0
}

fn filter(text: &str, mut put: impl FnMut(char)) {
    let mut chars = text.chars().peekable();
    let mut marks = 0;
    while let Some(c) = chars.next() {
        let shown = match c {
            '\u{1b}' => {
                escape(&mut chars);
                continue;
            }
            '\u{9b}' => {
                control_sequence(&mut chars);
                continue;
            }
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                control_string(&mut chars);
                continue;
            }
            // A carriage return alone would let the rest of the line overwrite its beginning.
            '\r' => {
                chars.next_if_eq(&'\n');
                '\n'
            }
            '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
            '\n' | '\t' => c,
            c if c.is_control() || invisible(c) => continue,
            c => c,
        };
        marks = if char_width(shown) == 0 { marks + 1 } else { 0 };
        if marks <= MARKS_MAX {
            put(shown);
        }
    }
}

// After ESC.
fn escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            control_sequence(chars);
        }
        Some('P' | 'X' | ']' | '^' | '_') => {
            chars.next();
            control_string(chars);
        }
        _ => {
            while chars.next_if(|c| ('\u{20}'..='\u{2f}').contains(c)).is_some() {}
            chars.next_if(|c| ('\u{30}'..='\u{7e}').contains(c));
        }
    }
}

// After CSI: parameters, intermediates, one final byte.
fn control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

// After OSC, DCS, SOS, PM or APC. A terminal swallows an unterminated one to the end of the output;
// here only its introducer goes, so that it cannot hide what follows.
fn control_string(chars: &mut Peekable<Chars<'_>>) {
    let mut ahead = chars.clone();
    for _ in 0..STRING_MAX {
        match ahead.next() {
            Some('\u{7}' | '\u{9c}') => {
                *chars = ahead;
                return;
            }
            Some('\u{1b}') if ahead.next_if_eq(&'\\').is_some() => {
                *chars = ahead;
                return;
            }
            // Nor does a terminal take another beginning for a part of it; many of them are looked at once each.
            None | Some('\n' | '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => return,
            Some(_) => {}
        }
    }
}

/// Whether `c` is drawn as nothing yet changes how its neighbours read: bidirectional controls,
/// zero-width characters, tags, fillers, variation selectors.
#[must_use]
pub fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The cells that a text takes on a terminal.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The cells of one character: 0 for combining marks, 2 for East Asian wide characters and emoji, 1 for what a
/// terminal should never be sent.
#[must_use]
pub fn char_width(c: char) -> usize {
    UnicodeWidthChar::width(c).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_of_common_characters() {
        for (c, cells) in [
            ('a', 1),
            ('é', 1),
            ('я', 1),
            ('日', 2),
            ('한', 2),
            ('🙂', 2),
            ('\u{301}', 0),
            ('─', 1),
            ('\n', 1),
        ] {
            assert_eq!(char_width(c), cells, "{c:?}");
        }
    }

    #[test]
    fn whole_colour_and_cursor_sequences_go() {
        assert_eq!(block("\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J\u{1b}[?25l!"), "red!");
        assert_eq!(block("\u{9b}31mred"), "red");
        assert_eq!(block("\u{1b}(Bx\u{1b}7y\u{1b}"), "xy");
    }

    #[test]
    fn titles_and_clipboard_writes_go_with_their_text() {
        assert_eq!(block("a\u{1b}]0;evil\u{7}b\u{1b}]52;c;ZXZpbA==\u{1b}\\c"), "abc");
        assert_eq!(block("a\u{1b}P1$r\u{1b}\\b\u{9d}8;;http://x\u{9c}c"), "abc");
    }

    #[test]
    fn a_string_that_begins_within_another_is_looked_at_by_itself() {
        assert_eq!(block("a\u{9d}b\u{90}c\u{9c}d"), "abd");
        assert_eq!(block(&format!("{}x", "\u{9d}".repeat(1 << 20))), "x");
    }

    #[test]
    fn an_unterminated_string_cannot_hide_the_rest() {
        assert_eq!(block("a\u{1b}]0;b\nc"), "a0;b\nc");
        assert!(block(&format!("\u{1b}]{}end", "x".repeat(5000))).ends_with("end"));
    }

    #[test]
    fn bidirectional_and_invisible_characters_go() {
        assert_eq!(block("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0041}f\u{ad}g\u{200d}h"), "abcdefgh");
    }

    #[test]
    fn a_carriage_return_cannot_overwrite_a_line() {
        assert_eq!(block("50%\r100%\r\ndone"), "50%\n100%\ndone");
        assert_eq!(block("a\u{8}\u{0}\u{7f}b\u{2028}c\u{85}d"), "ab\nc\nd");
    }

    #[test]
    fn a_quoted_text_is_one_word_of_a_shell() {
        let words = [
            ("a/b-c_1.x", "a/b-c_1.x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("a\u{1b}[2J'\\", r#""$(printf %b 'a\0033[2J\0047\\')""#),
            ("\u{202e}x", r#""$(printf %b '\0342\0200\0256x')""#),
            ("日本 é", "'日本 é'"),
        ];
        for (text, word) in words {
            assert_eq!(quoted(text), word);
            let shell = std::process::Command::new("sh").args(["-c", &format!("printf %s {word}")]).output();
            assert_eq!(shell.unwrap().stdout, text.as_bytes(), "{word}");
        }
        for unseen in ["\u{200b}", "\u{9b}31m", "\u{7f}", "\n", "\u{ad}", "\u{fe0f}", "\u{2028}"] {
            let word = quoted(unseen);
            assert!(word.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{word:?}");
        }
    }

    #[test]
    fn one_line_is_cut_by_cells_not_by_characters() {
        assert_eq!(line("abc\ndef", 10), "abc def");
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcde…");
        assert_eq!(line("日本語", 6), "日本語");
        assert_eq!(line("日本語", 5), "日本…");
        assert_eq!(line("日本語", 4), "日…");
        assert_eq!(line("x", 0), "");
        assert_eq!(line("", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_that_steers_a_terminal_survives(text in any::<String>(), max in 0_usize..40) {
            let safe = block(&text);
            prop_assert!(safe.chars().all(|c| c == '\n' || c == '\t' || !(c.is_control() || invisible(c))));
            let again = block(&safe);
            prop_assert_eq!(again.as_ref(), safe.as_ref());
            let one = line(&text, max);
            let breaks = ['\n', '\t'];
            prop_assert!(!one.contains(breaks));
            prop_assert!(width(&one) <= max);
        }

        #[test]
        fn escape_soup_is_cleaned(parts in proptest::collection::vec(
            prop_oneof!["\u{1b}", "\\[", "\\]", "[0-9;]{1,3}", "m", "\u{7}", "\u{9b}", "\\\\", "\n", "x"], 0..40))
        {
            let safe = block_bytes(parts.concat().as_bytes());
            let steering = ['\u{1b}', '\u{9b}', '\u{7}'];
            prop_assert!(!safe.contains(steering));
        }
    }
}
