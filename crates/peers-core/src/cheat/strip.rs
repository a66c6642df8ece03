//! A text without comments and without the insides of strings: what a compiler would look at.

use crate::classify_path::{Piece, is_script, pieces};

/// How a file is written, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// Blocks by indentation, `#` comments.
    Python,
    /// Blocks between words, `#` comments.
    Ruby,
    /// As Ruby, with other long strings.
    Elixir,
    Rust,
    /// JavaScript and what is compiled to it.
    Script,
    Go,
    /// Braces, `//` and `/* */`.
    Braces,
    /// Braces and a preprocessor.
    C,
    Shell,
}

impl Language {
    /// By the extension of a path; `None` for what we cannot read.
    pub(super) fn of(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        Some(match extension.as_str() {
            "py" | "pyi" => Self::Python,
            "rb" => Self::Ruby,
            "ex" | "exs" => Self::Elixir,
            "rs" => Self::Rust,
            "go" => Self::Go,
            "java" | "kt" | "kts" | "groovy" | "scala" | "php" | "dart" => Self::Braces,
            "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" | "cs" | "swift" | "m" | "mm" => Self::C,
            "sh" | "bats" => Self::Shell,
            script if is_script(script) => Self::Script,
            _ => return None,
        })
    }

    fn line_comment(self) -> &'static str {
        match self {
            Self::Python | Self::Ruby | Self::Elixir | Self::Shell => "#",
            Self::Rust | Self::Script | Self::Go | Self::Braces | Self::C => "//",
        }
    }

    /// Openings of strings, longest first, what closes them is the same: whether a backslash
    /// escapes, and whether the string may go on in the next line.
    fn quotes(self) -> &'static [(&'static str, bool, bool)] {
        const ONE: [(&str, bool, bool); 2] = [("\"", true, false), ("'", true, false)];
        const THREE: [(&str, bool, bool); 4] =
            [("\"\"\"", true, true), ("'''", true, true), ("\"", true, false), ("'", true, false)];
        const SCRIPT: [(&str, bool, bool); 3] = [("`", true, true), ("\"", true, false), ("'", true, false)];
        const GO: [(&str, bool, bool); 3] = [("`", false, true), ("\"", true, false), ("'", true, false)];
        match self {
            Self::Python | Self::Elixir | Self::Braces | Self::C => &THREE,
            Self::Script => &SCRIPT,
            Self::Go => &GO,
            Self::Rust | Self::Ruby | Self::Shell => &ONE,
        }
    }
}

/// A line, without what nobody runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    /// Without comments and without strings that reach over several lines.
    pub(super) code: String,
    /// Without any strings either; their quotes stay.
    pub(super) bare: String,
}

/// The lines of a text, as many as it has.
pub(super) fn strip(language: Language, text: &str) -> Vec<Line> {
    let mut out = Output::default();
    if language == Language::Rust {
        for (taken, piece) in pieces(text) {
            match piece {
                Piece::Comment => out.blank(taken),
                // A lifetime is no text that hides anything.
                Piece::Text if taken.len() > 2 => out.string(taken, 1, 1),
                Piece::Text | Piece::Blank | Piece::Code(_) => out.plain(taken),
            }
        }
        return out.lines();
    }
    let mut rest = text;
    let mut before = Before::default();
    while let Some(c) = rest.chars().next() {
        let (length, what) = next(language, rest, c, before);
        let (taken, after) = rest.split_at_checked(length.max(c.len_utf8())).unwrap_or((rest, ""));
        match what {
            Part::Plain => out.plain(taken),
            Part::Comment => out.blank(taken),
            Part::String { quote } => out.string(taken, quote, quote),
        }
        before.passed(taken, what);
        rest = after;
    }
    out.lines()
}

/// What stands before a place.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    /// The very character; `None` at the start.
    last: Option<char>,
    /// The last one in this line that is code and no blank.
    code: Option<char>,
}

impl Before {
    fn passed(&mut self, taken: &str, what: Part) {
        self.last = taken.chars().next_back();
        match (what, self.last) {
            (_, Some('\n')) => self.code = None,
            (Part::Plain, Some(last)) if !last.is_whitespace() => self.code = Some(last),
            (Part::String { .. }, _) => self.code = Some('"'),
            (Part::Plain | Part::Comment, _) => {}
        }
    }

    fn at_line_start(self) -> bool {
        self.last.is_none_or(|c| c == '\n')
    }
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Plain,
    Comment,
    String { quote: usize },
}

/// The length of what stands at the start, and what it is.
fn next(language: Language, rest: &str, c: char, before: Before) -> (usize, Part) {
    let to_line_end = || rest.find('\n').unwrap_or(rest.len());
    if before.at_line_start()
        && let Some(length) = block_of_lines(language, rest)
    {
        return (length, Part::Comment);
    }
    let marker = language.line_comment();
    // `#` within a word is no comment in Ruby and in shells.
    let begins = marker != "#" || language == Language::Python || before.last.is_none_or(char::is_whitespace);
    if rest.starts_with(marker) && begins && !is_directive(rest) {
        return (to_line_end(), Part::Comment);
    }
    if marker == "//" && rest.starts_with("/*") {
        let end = rest.get(2..).and_then(|inner| inner.find("*/")).map_or(rest.len(), |end| end + 4);
        return (end, Part::Comment);
    }
    if language == Language::Script && c == '/' && regex_may_begin(before.code) {
        return regex_length(rest).map_or((1, Part::Plain), |length| (length, Part::String { quote: 1 }));
    }
    for (quote, escaping, long) in language.quotes() {
        if rest.starts_with(quote) {
            let length = string_length(rest, quote, *escaping, *long);
            return (length, Part::String { quote: quote.len() });
        }
    }
    if c.is_alphanumeric() || c == '_' {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return (length, Part::Plain);
    }
    (c.len_utf8(), Part::Plain)
}

/// Comments that a tool reads: build constraints of Go.
fn is_directive(rest: &str) -> bool {
    rest.starts_with("//go:build") || rest.starts_with("// +build")
}

/// The length of a comment that is made of whole lines.
fn block_of_lines(language: Language, rest: &str) -> Option<usize> {
    let line_after =
        |from: usize| rest.get(from..).and_then(|tail| tail.find('\n')).map_or(rest.len(), |end| from + end);
    match language {
        Language::Ruby if rest.starts_with("__END__\n") => Some(rest.len()),
        Language::Ruby if rest.starts_with("=begin") => {
            Some(rest.find("\n=end").map_or(rest.len(), |end| line_after(end + 1)))
        }
        Language::Shell if rest.starts_with(": <<") => {
            let first = rest.lines().next()?;
            let word: String = first.chars().skip(4).filter(|c| c.is_alphanumeric() || *c == '_').collect();
            if word.is_empty() {
                return None;
            }
            let end = rest.find(&format!("\n{word}\n"));
            Some(end.map_or(rest.len(), |end| line_after(end + 1)))
        }
        _ => None,
    }
}

/// Whether a slash begins a regular expression, by what stands before it.
fn regex_may_begin(before: Option<char>) -> bool {
    before.is_none_or(|c| "(,=:[!&|?{};+-*%<>~^".contains(c))
}

/// The length of a regular expression that ends in its line.
fn regex_length(rest: &str) -> Option<usize> {
    let (mut escaped, mut in_class) = (false, false);
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(i + 1),
            _ => {}
        }
    }
    None
}

fn string_length(rest: &str, quote: &str, escaping: bool, long: bool) -> usize {
    let Some(inner) = rest.get(quote.len()..) else { return rest.len() };
    let mut escaped = false;
    for (i, c) in inner.char_indices() {
        if escaped {
            escaped = false;
        } else if escaping && c == '\\' {
            escaped = true;
        } else if inner.get(i..).is_some_and(|tail| tail.starts_with(quote)) {
            return quote.len() + i + quote.len();
        } else if c == '\n' && !long {
            return quote.len() + i;
        }
    }
    rest.len()
}

#[derive(Default)]
struct Output {
    code: String,
    bare: String,
}

impl Output {
    fn plain(&mut self, text: &str) {
        self.code.push_str(text);
        self.bare.push_str(text);
    }

    fn blank(&mut self, text: &str) {
        let blank: String = text.chars().map(blanked).collect();
        self.plain(&blank);
    }

    /// A string with so many bytes of quotes at either end.
    fn string(&mut self, text: &str, open: usize, close: usize) {
        let inner_end = text.len().saturating_sub(close).max(open);
        let (Some(head), Some(inner), Some(tail)) =
            (text.get(..open), text.get(open..inner_end), text.get(inner_end..))
        else {
            return self.plain(text);
        };
        let blank: String = inner.chars().map(blanked).collect();
        self.code.push_str(head);
        self.code.push_str(if text.contains('\n') { &blank } else { inner });
        self.code.push_str(tail);
        self.bare.push_str(head);
        self.bare.push_str(&blank);
        self.bare.push_str(tail);
    }

    fn lines(self) -> Vec<Line> {
        let own = |line: &str| line.trim_end_matches('\r').to_owned();
        let pairs = self.code.split('\n').zip(self.bare.split('\n'));
        pairs.map(|(code, bare)| Line { code: own(code), bare: own(bare) }).collect()
    }
}

fn blanked(c: char) -> char {
    if c == '\n' { c } else { ' ' }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(language: Language, text: &str) -> Vec<String> {
        strip(language, text).into_iter().map(|l| l.code.trim().to_owned()).collect()
    }

    #[test]
    fn comments_are_left_out_in_every_language() {
        for (language, text) in [
            (Language::Python, "a # b\n\"\"\"b\nb\n\"\"\""),
            (Language::Ruby, "a # b\n=begin\nb\n=end"),
            (Language::Ruby, "a\n__END__\nb\nb"),
            (Language::Elixir, "a # b\n\"\"\"\nb\n\"\"\""),
            (Language::Rust, "a // b\n/* b /* b\n*/ b\n*/"),
            (Language::Script, "a // b\n/* b\nb\n*/"),
            (Language::Script, "a\n`\nb\n`"),
            (Language::Go, "a // b\n`b\nb\\\n`"),
            (Language::C, "a // b\n/* b\nb\n*/"),
            (Language::Shell, "a # b\n: <<'X'\nb\nX"),
        ] {
            let lines = code(language, text);
            assert_eq!(lines.len(), text.split('\n').count(), "{language:?}");
            assert_eq!(lines[0], "a", "{language:?}");
            assert!(lines.iter().skip(1).all(|l| !l.contains('b')), "{language:?}: {lines:?}");
        }
    }

    #[test]
    fn what_looks_like_a_comment_is_none() {
        for (language, text) in [
            (Language::Python, "a = '#' + \"#\" + f"),
            (Language::Ruby, "a = \"#{b}\" + f"),
            (Language::Rust, "let a: &'a str = \"/*\"; f"),
            (Language::Rust, "let a = '\"'; f"),
            (Language::Script, "a = /[/*\"]/; f"),
            (Language::Script, "a = x / y / '/*'.length; f"),
            (Language::Script, "a = \"//\" + '/*' + `/*`; f"),
            (Language::Go, "a := `/*` + f"),
            (Language::Shell, "a=${b#c} f"),
        ] {
            let lines = strip(language, &format!("{text}\ng"));
            assert!(lines[0].code.ends_with('f') && lines[1].code == "g", "{language:?}: {lines:?}");
            assert_eq!(lines[0].code, text);
        }
    }

    #[test]
    fn a_string_of_one_line_stays_and_its_inside_is_not_bare() {
        let lines = strip(Language::Python, "f(\"assert x\", '''y''')");
        assert_eq!(lines[0].code, "f(\"assert x\", '''y''')");
        assert_eq!(lines[0].bare, "f(\"        \", ''' ''')");
    }

    #[test]
    fn build_constraints_are_kept() {
        assert_eq!(code(Language::Go, "//go:build x\n// other"), ["//go:build x", ""]);
    }

    #[test]
    fn a_language_is_known_by_the_extension() {
        assert_eq!(Language::of("a/b.TSX"), Some(Language::Script));
        assert_eq!(Language::of("a.b/c"), None);
        assert_eq!(Language::of("a.json"), None);
    }

    proptest! {
        #[test]
        fn lines_are_neither_lost_nor_made(parts in proptest::collection::vec(prop_oneof![
            Just("\""), Just("'"), Just("`"), Just("\"\"\""), Just("/*"), Just("*/"), Just("//"), Just("#"),
            Just("\n"), Just("\\"), Just("/"), Just("é"), Just("=begin"), Just("\n=end"), Just(": <<X\n"), Just("a"),
        ], 0..40)) {
            let text = parts.concat();
            for language in [
                Language::Python, Language::Ruby, Language::Elixir, Language::Rust, Language::Script,
                Language::Go, Language::Braces, Language::C, Language::Shell,
            ] {
                prop_assert_eq!(strip(language, &text).len(), text.split('\n').count(), "{:?}", language);
            }
        }
    }
}
