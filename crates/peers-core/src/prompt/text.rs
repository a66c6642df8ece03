//! Cleaning and cutting of text that goes into a prompt.

/// Takes out what a reader does not see or a terminal would act on: escape sequences, control
/// characters except newline and tab, and invisible format characters (zero-width, bidirectional,
/// tag characters). Every line boundary becomes `\n`.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{1b}' => match chars.peek() {
                Some('[') => {
                    chars.next();
                    skip_csi(&mut chars);
                }
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    chars.next();
                    skip_string(&mut chars);
                }
                _ => {}
            },
            '\u{9b}' => skip_csi(&mut chars),
            c if c.is_control() || invisible(c) => {}
            c => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// `CSI parameters final`. A malformed sequence ends where it stops being one.
fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// A control string. It ends at its terminator; an unterminated one must not swallow the rest of
/// the text, so a line end also ends it.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.peek() {
        match c {
            '\n' | '\r' => return,
            '\u{7}' | '\u{9c}' => {
                chars.next();
                return;
            }
            '\u{1b}' => {
                chars.next();
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {
                chars.next();
            }
        }
    }
}

fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The longest prefix of at most `max` bytes.
pub(crate) fn prefix(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max.min(text.len()))).unwrap_or("")
}

/// The longest suffix of at most `max` bytes.
fn suffix(text: &str, max: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(max))..).unwrap_or("")
}

/// The longest prefix of at most `max` characters.
pub(crate) fn first_chars(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// The text on one line, at most `max` bytes (of at least 3).
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ");
    if joined.len() <= max {
        return joined;
    }
    format!("{}…", prefix(&joined, max.saturating_sub('…'.len_utf8())))
}

/// The text in at most `max` bytes: its beginning, a note of how much was left out, and its end,
/// which gets more room, since summaries and errors stand there.
pub(crate) fn head_and_tail(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    // The count cannot have more digits than the length of the whole.
    let widest = omission(text.len()).len();
    let Some(room) = max.checked_sub(widest) else { return prefix(text, max).to_owned() };
    let head = prefix(text, room / 3);
    let tail = suffix(text, room - head.len());
    format!("{head}{}{tail}", omission(text.len() - head.len() - tail.len()))
}

fn omission(bytes: usize) -> String {
    format!("\n[... {bytes} bytes left out ...]\n")
}

/// Lines that fit into `max` bytes, each with its line end, and how many were left out. A line
/// that says so, made by `more`, is part of what has to fit.
pub(crate) fn fit(lines: &[String], max: usize, more: impl Fn(usize) -> String) -> (String, usize) {
    let whole: usize = lines.iter().map(|l| l.len() + 1).sum();
    let mut out = String::new();
    if whole <= max {
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
        return (out, 0);
    }
    let reserve = more(lines.len()).len() + 1;
    let mut left_out = lines.len();
    for line in lines {
        if out.len() + line.len() + 1 + reserve > max {
            break;
        }
        out.push_str(line);
        out.push('\n');
        left_out -= 1;
    }
    if reserve > max {
        return (String::new(), lines.len());
    }
    out.push_str(&more(left_out));
    out.push('\n');
    (out, left_out)
}
