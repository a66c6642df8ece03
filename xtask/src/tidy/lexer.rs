//! A small Rust lexer: enough to tell code from comments and literals.
//!
//! It never fails. On text that is not Rust it returns some tokens, and the compiler will have complained.

/// A token with the line (1-based) on which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword; a raw one without its `r#`.
    Ident(String),
    /// `::`
    PathSep,
    /// Any other single character of punctuation.
    Punct(char),
    /// The content of a string literal of any kind, escapes as written.
    Str(String),
    /// A number, a character, a lifetime.
    Other,
}

/// A comment, doc comments included, with the line on which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) line: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
}

impl Token {
    pub(crate) fn ident(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            Kind::PathSep | Kind::Punct(_) | Kind::Str(_) | Kind::Other => None,
        }
    }

    pub(crate) fn is_ident(&self, name: &str) -> bool {
        self.ident() == Some(name)
    }

    pub(crate) fn is_punct(&self, punct: char) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

/// Splits `source` into tokens and comments.
pub(crate) fn lex(source: &str) -> Lexed {
    let mut lexed = Lexed::default();
    let mut cursor = Cursor { rest: source, line: 1 };
    while let Some(next) = cursor.peek() {
        let line = cursor.line;
        let kind = match next {
            _ if next.is_whitespace() => {
                cursor.bump();
                continue;
            }
            '/' if cursor.rest.starts_with("//") => {
                let text = cursor.take_while(|c| c != '\n');
                lexed.comments.push(Comment { text, line });
                continue;
            }
            '/' if cursor.rest.starts_with("/*") => {
                let text = cursor.block_comment();
                lexed.comments.push(Comment { text, line });
                continue;
            }
            '"' => cursor.string(),
            '\'' => cursor.quote(),
            _ if is_ident_start(next) => cursor.word(),
            _ if next.is_ascii_digit() => {
                cursor.take_while(is_ident_part);
                Kind::Other
            }
            ':' if cursor.rest.starts_with("::") => {
                cursor.bump();
                cursor.bump();
                Kind::PathSep
            }
            punct => {
                cursor.bump();
                Kind::Punct(punct)
            }
        };
        lexed.tokens.push(Token { kind, line });
    }
    lexed
}

fn is_ident_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_ident_part(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn peek_at(&self, n: usize) -> Option<char> {
        self.rest.chars().nth(n)
    }

    fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek().filter(|c| keep(*c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }

    /// Block comments nest.
    fn block_comment(&mut self) -> String {
        let mut text = String::new();
        let mut depth = 0_usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
            } else if self.rest.starts_with("*/") {
                depth -= 1;
            } else {
                match self.bump() {
                    Some(c) => text.push(c),
                    None => return text,
                }
                continue;
            }
            self.bump();
            self.bump();
            if depth == 0 {
                return text;
            }
        }
    }

    /// A string with escapes; the cursor stands on the opening quote.
    fn string(&mut self) -> Kind {
        self.bump();
        let mut text = String::new();
        while let Some(c) = self.bump() {
            match c {
                '"' => break,
                '\\' => {
                    text.push(c);
                    text.extend(self.bump());
                }
                _ => text.push(c),
            }
        }
        Kind::Str(text)
    }

    /// The part of a raw string from its first `#` or quote on; `None` if this is not one.
    fn raw_string(&mut self) -> Option<Kind> {
        let hashes = self.rest.chars().take_while(|c| *c == '#').count();
        if self.peek_at(hashes) != Some('"') {
            return None;
        }
        for _ in 0..=hashes {
            self.bump();
        }
        let end = format!("\"{}", "#".repeat(hashes));
        let mut text = String::new();
        while !self.rest.starts_with(&end) {
            match self.bump() {
                Some(c) => text.push(c),
                None => return Some(Kind::Str(text)),
            }
        }
        for _ in 0..=hashes {
            self.bump();
        }
        Some(Kind::Str(text))
    }

    /// A character literal or a lifetime; the cursor stands on the quote.
    fn quote(&mut self) -> Kind {
        self.bump();
        if self.peek() == Some('\\') {
            self.bump();
            self.bump();
            self.take_while(|c| c != '\'');
            self.bump();
        } else if self.peek_at(1) == Some('\'') {
            self.bump();
            self.bump();
        } else {
            self.take_while(is_ident_part);
        }
        Kind::Other
    }

    /// An identifier, or the literal whose prefix it is.
    fn word(&mut self) -> Kind {
        let word = self.take_while(is_ident_part);
        match (word.as_str(), self.peek()) {
            ("r" | "br" | "cr", Some('"' | '#')) => {
                if let Some(string) = self.raw_string() {
                    return string;
                }
                if word == "r" && self.peek_at(1).is_some_and(is_ident_start) {
                    self.bump();
                    return Kind::Ident(self.take_while(is_ident_part));
                }
                Kind::Ident(word)
            }
            ("b" | "c", Some('"')) => self.string(),
            ("b", Some('\'')) => self.quote(),
            _ => Kind::Ident(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idents(source: &str) -> Vec<String> {
        lex(source).tokens.iter().filter_map(|token| token.ident().map(str::to_owned)).collect()
    }

    #[test]
    fn strings_of_every_kind_hide_their_content() {
        let source = r###"a "std::fs \" x" b r"c:\" c r#"d " e"# f b"x" g br##"x"# y"## h c"x" i"###;
        assert_eq!(idents(source), ["a", "b", "c", "f", "g", "h", "i"]);
    }

    #[test]
    fn comments_are_kept_apart_with_their_line() {
        let lexed = lex("a // b\n/* c /* d */ e\n */ f /// g");
        assert_eq!(lexed.tokens.iter().filter_map(Token::ident).collect::<Vec<_>>(), ["a", "f"]);
        let lines: Vec<_> = lexed.comments.iter().map(|comment| comment.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn a_comment_sign_in_a_string_and_a_quote_in_a_comment_do_not_confuse() {
        assert_eq!(idents("let u = \"http://x\"; a // it's\n b /* \" */ c"), ["let", "u", "a", "b", "c"]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(
            idents("fn f<'a>(x: &'a str) { '\"'; '\\''; b'\"'; '\\u{22}'; 'x: loop {} } y"),
            ["fn", "f", "x", "str", "loop", "y"]
        );
    }

    #[test]
    fn raw_identifiers_lose_their_prefix() {
        assert_eq!(idents("r#type r#fs r"), ["type", "fs", "r"]);
    }

    #[test]
    fn lines_count_through_multi_line_strings() {
        let lexed = lex("\"a\nb\\\nc\"\nd");
        assert_eq!(lexed.tokens.last().unwrap().line, 4);
    }

    #[test]
    fn unfinished_literals_end_at_the_end() {
        for source in ["\"abc", "r#\"abc", "/* abc", "'", "'\\", "r#", "b'"] {
            lex(source);
        }
    }
}
