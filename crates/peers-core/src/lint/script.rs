//! The outline of a shell command: which commands it has, and how they are joined.
//!
//! Enough of the grammar to see whose exit code the whole has. What is not understood (`if`, `case`,
//! functions, here-documents) gives no outline at all, so nothing is said about it.

/// Deepest nesting.
const DEPTH: usize = 16;

/// Commands one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct List {
    pub(super) items: Vec<Item>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Join, Pipeline)>,
    /// It ends in `&`.
    pub(super) background: bool,
    /// It ends in `&>`, which is that and a redirection, where the shell is not bash.
    pub(super) joined: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    And,
    Or,
}

/// Commands joined by `|`. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) negated: bool,
    pub(super) stages: Vec<Stage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    Simple(Vec<Word>),
    /// `( … )` or `{ …; }`.
    Group(List),
    /// What a `for`, `while` or `until` does each time.
    Loop(List),
}

/// A word without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Nothing in it is replaced by the shell.
    pub(super) literal: bool,
    /// Nothing of it was quoted, so it can be a word of the language.
    bare: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// `;`, `;;` or the end of a line.
    End,
    Background,
    /// `&>` with its target.
    Joined,
    And,
    Or,
    Pipe,
    Open,
    Close,
    /// A redirection with its target.
    Redirect,
    Eof,
}

/// The outline of a command; `None` if it is not understood.
pub(super) fn outline(text: &str) -> Option<List> {
    let mut lexer = Lexer { rest: text.chars().collect(), at: 0 };
    let mut tokens = Vec::new();
    loop {
        match lexer.token()? {
            Token::Eof => break,
            token => tokens.push(token),
        }
    }
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let list = parser.list()?;
    (parser.at == parser.tokens.len()).then_some(list)
}

struct Lexer {
    rest: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    /// The next token; `None`: not understood.
    fn token(&mut self) -> Option<Token> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t' | '\r'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                (Some('#'), _) => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
        let Some(c) = self.peek(0) else { return Some(Token::Eof) };
        let double = self.peek(1) == Some(c);
        let (token, length) = match c {
            '\n' => (Token::End, 1),
            ';' => (Token::End, 1 + usize::from(double)),
            '&' if double => (Token::And, 2),
            '&' if self.peek(1) == Some('>') => {
                self.at += 1;
                self.redirect()?;
                return Some(Token::Joined);
            }
            '&' => (Token::Background, 1),
            '|' if double => (Token::Or, 2),
            '|' if self.peek(1) == Some('&') => return None,
            '|' => (Token::Pipe, 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '<' | '>' => {
                self.redirect()?;
                return Some(Token::Redirect);
            }
            _ => {
                let word = self.word()?;
                let number = word.bare && word.text.bytes().all(|b| b.is_ascii_digit());
                if number && matches!(self.peek(0), Some('<' | '>')) {
                    self.redirect()?;
                    return Some(Token::Redirect);
                }
                return Some(Token::Word(word));
            }
        };
        self.at += length;
        Some(token)
    }

    /// `<`, `>`, `>>`, `>|`, `<>`, `>&`, `<&` with what follows.
    fn redirect(&mut self) -> Option<()> {
        let first = self.next()?;
        match self.peek(0) {
            // A here-document changes how everything after it is read.
            Some('<') if first == '<' => return None,
            // `<(…)` is a process of its own.
            Some('(') => return None,
            Some('>' | '|' | '&') => self.at += 1,
            _ => {}
        }
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        self.word().map(drop)
    }

    fn word(&mut self) -> Option<Word> {
        let mut word = Word { text: String::new(), literal: true, bare: true };
        let begin = self.at;
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.at += 1;
                    word.bare = false;
                    loop {
                        match self.next()? {
                            '\'' => break,
                            c => word.text.push(c),
                        }
                    }
                }
                '"' => self.double(&mut word)?,
                '\\' => {
                    self.at += 1;
                    word.bare = false;
                    match self.next()? {
                        '\n' => {}
                        c => word.text.push(c),
                    }
                }
                '$' | '`' => self.expansion(&mut word)?,
                '*' | '?' | '[' | '~' => {
                    word.literal = false;
                    word.text.push(c);
                    self.at += 1;
                }
                c => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        (self.at > begin).then_some(word)
    }

    fn double(&mut self, word: &mut Word) -> Option<()> {
        self.at += 1;
        word.bare = false;
        loop {
            match self.peek(0)? {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    self.at += 1;
                    match self.next()? {
                        '\n' => {}
                        c @ ('"' | '\\' | '$' | '`') => word.text.push(c),
                        c => word.text.extend(['\\', c]),
                    }
                }
                '$' | '`' => self.expansion(word)?,
                c => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// `$name`, `${…}`, `$(…)`, `` `…` ``: what it becomes is not known.
    fn expansion(&mut self, word: &mut Word) -> Option<()> {
        let begin = self.at;
        if self.next()? == '`' {
            while self.next()? != '`' {}
        } else {
            match self.peek(0) {
                Some('(') => self.balanced('(', ')', 0)?,
                Some('{') => self.balanced('{', '}', 0)?,
                // `$'…'` has escapes of its own, and not in every shell.
                Some('\'') => return None,
                Some(c) if c.is_ascii_alphanumeric() || "_?!#@*$-".contains(c) => self.at += 1,
                _ => {
                    word.text.push('$');
                    return Some(());
                }
            }
        }
        word.literal = false;
        word.text.extend(self.rest.get(begin..self.at).unwrap_or_default());
        Some(())
    }

    fn balanced(&mut self, open: char, close: char, depth: usize) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek(0)? {
                c if c == close => {
                    self.at += 1;
                    return Some(());
                }
                c if c == open => self.balanced(open, close, depth + 1)?,
                '\'' => {
                    self.at += 1;
                    while self.next()? != '\'' {}
                }
                '"' => self.double(&mut Word::default())?,
                '\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// Words that begin what is not understood here, or end it.
const COMPOUND: [&str; 15] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "function",
    "select", "[[",
];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn bare(&self) -> Option<&str> {
        match self.peek()? {
            Token::Word(word) if word.bare => Some(&word.text),
            _ => None,
        }
    }

    fn take(&mut self, token: &Token) -> bool {
        let hit = self.peek() == Some(token);
        self.at += usize::from(hit);
        hit
    }

    /// Whether a list of commands ends here.
    fn closes(&self) -> bool {
        self.peek().is_none_or(|token| *token == Token::Close)
            || self.bare().is_some_and(|word| matches!(word, "}" | "do" | "done"))
    }

    fn list(&mut self) -> Option<List> {
        let mut list = List::default();
        loop {
            while self.take(&Token::End) {}
            if self.closes() {
                return Some(list);
            }
            let mut item = self.item()?;
            item.joined = self.take(&Token::Joined);
            item.background = item.joined || self.take(&Token::Background);
            let ended = item.background || self.peek() == Some(&Token::End);
            list.items.push(item);
            if !ended && !self.closes() {
                return None;
            }
        }
    }

    fn item(&mut self) -> Option<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let join = match self.peek() {
                Some(Token::And) => Join::And,
                Some(Token::Or) => Join::Or,
                _ => return Some(Item { first, rest, background: false, joined: false }),
            };
            self.at += 1;
            while self.take(&Token::End) {}
            rest.push((join, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Option<Pipeline> {
        let negated = self.bare() == Some("!");
        self.at += usize::from(negated);
        let mut stages = vec![self.stage()?];
        while self.take(&Token::Pipe) {
            while self.take(&Token::End) {}
            stages.push(self.stage()?);
        }
        Some(Pipeline { negated, stages })
    }

    /// What follows `for`, `while` or `until`, to the end of the loop.
    fn repeated(&mut self, over_words: bool) -> Option<List> {
        if over_words {
            // The name, and what it stands for one after the other.
            while matches!(self.peek(), Some(Token::Word(_))) && self.bare() != Some("do") {
                self.at += 1;
            }
            while self.take(&Token::End) {}
        } else if self.list()?.items.is_empty() {
            return None;
        }
        if self.bare() != Some("do") {
            return None;
        }
        self.at += 1;
        let body = self.list()?;
        if self.bare() != Some("done") || body.items.is_empty() {
            return None;
        }
        self.at += 1;
        Some(body)
    }

    fn stage(&mut self) -> Option<Stage> {
        let brace = self.bare() == Some("{");
        if brace || self.peek() == Some(&Token::Open) {
            self.depth += 1;
            if self.depth > DEPTH {
                return None;
            }
            self.at += 1;
            let list = self.list()?;
            let closed = if brace { self.bare() == Some("}") } else { self.peek() == Some(&Token::Close) };
            if !closed || list.items.is_empty() {
                return None;
            }
            self.at += 1;
            self.depth -= 1;
            while self.take(&Token::Redirect) {}
            return Some(Stage::Group(list));
        }
        if let Some(word @ ("for" | "while" | "until")) = self.bare() {
            let over_words = word == "for";
            self.depth += 1;
            if self.depth > DEPTH {
                return None;
            }
            self.at += 1;
            let body = self.repeated(over_words)?;
            self.depth -= 1;
            while self.take(&Token::Redirect) {}
            return Some(Stage::Loop(body));
        }
        if self.bare().is_some_and(|word| COMPOUND.contains(&word)) {
            return None;
        }
        let mut words = Vec::new();
        let mut redirected = false;
        loop {
            match self.peek() {
                Some(Token::Word(word)) => words.push(word.clone()),
                Some(Token::Redirect) => redirected = true,
                // `name()` defines a function.
                Some(Token::Open) => return None,
                _ => break,
            }
            self.at += 1;
        }
        (redirected || !words.is_empty()).then_some(Stage::Simple(words))
    }
}
