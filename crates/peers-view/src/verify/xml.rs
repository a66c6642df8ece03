//! Text in XML 1.0.

/// `text` for an element or an attribute in double quotes. What XML 1.0 cannot hold, escaped or not, shows
/// as U+FFFD; line ends and tabs in attributes stay what they are.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            // Also ends `]]>`, which may not stand in text.
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The same for an element, whose line ends stay readable.
pub(super) fn text(text: &str) -> String {
    escaped(text).replace("&#10;", "\n")
}
