//! Text to tokens. Everything that is not part of the language is named in the error.

use super::advice;
use super::ast::CmpOp;
use super::parse::DslError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tok {
    Name(String),
    Str(String),
    Int(i64),
    Float(f64),
    True,
    False,
    Null,
    And,
    Or,
    Not,
    In,
    Is,
    Cmp(CmpOp),
    Plus,
    Minus,
    Dot,
    Comma,
    Open,
    Close,
}

impl Tok {
    /// How an error message names the token.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Str(_) => "a string".into(),
            Self::Int(n) => format!("`{n}`"),
            Self::Float(n) => format!("`{n}`"),
            Self::True => "`True`".into(),
            Self::False => "`False`".into(),
            Self::Null => "`None`".into(),
            Self::And => "`and`".into(),
            Self::Or => "`or`".into(),
            Self::Not => "`not`".into(),
            Self::In => "`in`".into(),
            Self::Is => "`is`".into(),
            Self::Cmp(op) => format!("`{}`", op.text()),
            Self::Plus => "`+`".into(),
            Self::Minus => "`-`".into(),
            Self::Dot => "`.`".into(),
            Self::Comma => "`,`".into(),
            Self::Open => "`(`".into(),
            Self::Close => "`)`".into(),
        }
    }
}

/// Most digits of an int literal.
const MAX_INT_DIGITS: usize = 18;

/// Splits the whole source. Its length was checked by the caller.
pub(crate) fn lex(source: &str) -> Result<Vec<Token>, DslError> {
    let mut cursor = Cursor { chars: source.chars().collect(), at: 0 };
    let mut tokens = Vec::new();
    while let Some(c) = cursor.peek() {
        let column = cursor.column();
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            cursor.at += 1;
            continue;
        }
        let tok = if c.is_ascii_digit() || (c == '.' && cursor.ahead(1).is_some_and(|d| d.is_ascii_digit())) {
            number(&mut cursor)?
        } else if c.is_ascii_alphabetic() || c == '_' {
            word(&mut cursor)?
        } else if c == '\'' || c == '"' {
            Tok::Str(string(&mut cursor, Escapes::Read)?)
        } else {
            symbol(&mut cursor)?
        };
        tokens.push(Token { tok, column });
    }
    Ok(tokens)
}

struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| keep(*c)) {
            text.push(c);
            self.at += 1;
        }
        text
    }

    fn column(&self) -> usize {
        self.at + 1
    }

    fn error(&self, message: impl Into<String>) -> DslError {
        DslError { column: self.column(), message: message.into() }
    }
}

fn word(cursor: &mut Cursor) -> Result<Tok, DslError> {
    let start = cursor.column();
    let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    if matches!(cursor.peek(), Some('\'' | '"')) {
        return match name.as_str() {
            "r" | "R" => Ok(Tok::Str(string(cursor, Escapes::Raw)?)),
            _ => Err(DslError {
                column: start,
                message: format!(
                    "strings with the prefix `{name}` are not supported, only '…', \"…\" and r'…'"
                ),
            }),
        };
    }
    Ok(match name.as_str() {
        "True" => Tok::True,
        "False" => Tok::False,
        "None" => Tok::Null,
        "and" => Tok::And,
        "or" => Tok::Or,
        "not" => Tok::Not,
        "in" => Tok::In,
        "is" => Tok::Is,
        "lambda" | "if" | "else" | "elif" | "for" | "while" | "await" | "async" | "yield" | "import"
        | "from" | "def" | "class" | "return" | "assert" | "del" | "with" | "raise" | "try" | "pass" => {
            return Err(DslError {
                column: start,
                message: format!("`{name}` is not part of this language"),
            });
        }
        "true" | "false" | "null" | "none" => {
            return Err(DslError {
                column: start,
                message: format!("unknown name `{name}`; the constants are True, False and None"),
            });
        }
        _ => Tok::Name(name),
    })
}

fn symbol(cursor: &mut Cursor) -> Result<Tok, DslError> {
    let Some(c) = cursor.peek() else { return Err(cursor.error("unexpected end")) };
    let with_equals = cursor.ahead(1) == Some('=');
    let tok = match c {
        '=' if with_equals => Tok::Cmp(CmpOp::Eq),
        '!' if with_equals => Tok::Cmp(CmpOp::Ne),
        '<' if with_equals => Tok::Cmp(CmpOp::Le),
        '>' if with_equals => Tok::Cmp(CmpOp::Ge),
        '<' => Tok::Cmp(CmpOp::Lt),
        '>' => Tok::Cmp(CmpOp::Gt),
        '+' => Tok::Plus,
        '-' => Tok::Minus,
        '.' => Tok::Dot,
        ',' => Tok::Comma,
        '(' => Tok::Open,
        ')' => Tok::Close,
        '#' => return Err(cursor.error("comments are not allowed here; use the goal's `description`")),
        '=' if cursor.ahead(1) == Some('~') => {
            return Err(cursor.error("`=~` has no meaning here; write `regex('pattern', stdout)`"));
        }
        '=' => return Err(cursor.error("a single `=` has no meaning here; compare with `==`")),
        '!' => return Err(cursor.error("`!` has no meaning here; write `not` or `!=`")),
        '&' | '|' => return Err(cursor.error("write `and` or `or`")),
        '*' | '/' | '%' | '^' | '~' | '@' => {
            return Err(cursor.error(format!("`{c}` is not supported; the only operator on values is `+`")));
        }
        '[' | ']' => {
            let before: String = cursor.chars.iter().take(cursor.at).collect();
            return Err(cursor.error(advice::bracket(&before)));
        }
        '{' | '}' | ';' | ':' | '`' | '\\' | '?' | '$' => {
            return Err(cursor.error(format!("`{c}` has no meaning here")));
        }
        other if other.is_control() => return Err(cursor.error("control characters are not allowed")),
        other => return Err(cursor.error(format!("`{other}` has no meaning here"))),
    };
    cursor.at += match tok {
        Tok::Cmp(CmpOp::Eq | CmpOp::Ne | CmpOp::Le | CmpOp::Ge) => 2,
        _ => 1,
    };
    Ok(tok)
}

fn number(cursor: &mut Cursor) -> Result<Tok, DslError> {
    let start = cursor.column();
    let fail = |message: &str| DslError { column: start, message: message.into() };
    let radix = match (cursor.peek(), cursor.ahead(1)) {
        (Some('0'), Some('x' | 'X')) => Some(16),
        (Some('0'), Some('b' | 'B')) => Some(2),
        _ => None,
    };
    if let Some(radix) = radix {
        cursor.at += 2;
        let digits = plain_digits(&cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_'))
            .ok_or_else(|| fail("malformed number"))?;
        return int(&digits, radix).map_err(|m| fail(&m)).map(Tok::Int);
    }
    let mut text = cursor.take_while(|c| c.is_ascii_digit() || c == '_');
    let mut is_float = false;
    if cursor.peek() == Some('.') {
        is_float = true;
        cursor.at += 1;
        text.push('.');
        text.push_str(&cursor.take_while(|c| c.is_ascii_digit() || c == '_'));
    }
    if matches!(cursor.peek(), Some('e' | 'E')) {
        is_float = true;
        cursor.at += 1;
        text.push('e');
        if let Some(sign) = cursor.peek().filter(|c| matches!(c, '+' | '-')) {
            cursor.at += 1;
            text.push(sign);
        }
        text.push_str(&cursor.take_while(|c| c.is_ascii_digit()));
    }
    if cursor.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(fail("malformed number: only decimal, 0x and 0b ints and decimal floats are supported"));
    }
    if is_float {
        let digits: Option<Vec<String>> = text.split('.').map(plain_part).collect();
        let joined = digits.map(|parts| parts.join(".")).ok_or_else(|| fail("malformed number"))?;
        let value: f64 = joined.parse().map_err(|_| fail("malformed number"))?;
        if !value.is_finite() {
            return Err(fail("this number is too large"));
        }
        return Ok(Tok::Float(value));
    }
    let digits = plain_digits(&text).ok_or_else(|| fail("malformed number"))?;
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(fail("a number must not start with 0"));
    }
    int(&digits, 10).map_err(|m| fail(&m)).map(Tok::Int)
}

/// Digits without their separators; `None` when a `_` does not stand between two digits.
fn plain_digits(text: &str) -> Option<String> {
    let misplaced = text.is_empty() || text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!misplaced).then(|| text.replace('_', ""))
}

/// One side of a float's dot, which may be empty.
fn plain_part(text: &str) -> Option<String> {
    if text.is_empty() { Some(String::new()) } else { plain_digits(text) }
}

fn int(digits: &str, radix: u32) -> Result<i64, String> {
    if digits.len() > MAX_INT_DIGITS {
        return Err(format!("an int has at most {MAX_INT_DIGITS} digits"));
    }
    i64::from_str_radix(digits, radix).map_err(|_| "malformed number".into())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Read,
    Raw,
}

/// Reads a literal; the cursor stands on its opening quote.
fn string(cursor: &mut Cursor, escapes: Escapes) -> Result<String, DslError> {
    let start = cursor.column();
    let Some(quote) = cursor.next() else { return Err(cursor.error("unexpected end")) };
    let mut text = String::new();
    loop {
        let column = cursor.column();
        match cursor.next() {
            None => return Err(DslError { column: start, message: "this string is not closed".into() }),
            Some('\n' | '\r') => {
                return Err(DslError { column, message: "a string must not span lines; write \\n".into() });
            }
            Some(c) if c == quote => break,
            Some('\\') if escapes == Escapes::Raw => {
                text.push('\\');
                // As in Python: a quote after a backslash does not close the literal.
                if let Some(c) = cursor.peek().filter(|c| *c == quote || *c == '\\') {
                    cursor.at += 1;
                    text.push(c);
                }
            }
            Some('\\') => escape(cursor, column, &mut text)?,
            Some(c) => text.push(c),
        }
    }
    if text.is_empty() && cursor.peek() == Some(quote) {
        return Err(DslError { column: start, message: "triple-quoted strings are not supported".into() });
    }
    Ok(text)
}

/// Reads what follows a backslash. An unknown escape keeps its backslash, so that `'\d+'` is the
/// pattern it looks like; those whose two readings differ are refused.
fn escape(cursor: &mut Cursor, column: usize, text: &mut String) -> Result<(), DslError> {
    let fail = |message: String| Err(DslError { column, message });
    match cursor.next() {
        None => return fail("this string is not closed".into()),
        Some(c @ ('\\' | '\'' | '"')) => text.push(c),
        Some('n') => text.push('\n'),
        Some('t') => text.push('\t'),
        Some('r') => text.push('\r'),
        Some('x') => text.push(code_point(cursor, 2, column)?),
        Some('u') => text.push(code_point(cursor, 4, column)?),
        Some('U') => text.push(code_point(cursor, 8, column)?),
        Some(c @ ('a' | 'b' | 'f' | 'v' | 'N')) => {
            return fail(format!(
                "`\\{c}` is ambiguous; write `\\\\{c}` (or r'\\{c}') for a pattern, \\x.. for a character"
            ));
        }
        Some(c) if c.is_ascii_digit() => {
            return fail(format!(
                "`\\{c}` is ambiguous: write \\x.. for a character; back-references are not supported"
            ));
        }
        Some(c) if c.is_control() => return fail("a backslash must not end a line".into()),
        Some(c) => {
            text.push('\\');
            text.push(c);
        }
    }
    Ok(())
}

fn code_point(cursor: &mut Cursor, digits: usize, column: usize) -> Result<char, DslError> {
    let mut value: u32 = 0;
    for _ in 0..digits {
        let digit = cursor.next().and_then(|c| c.to_digit(16));
        let Some(digit) = digit else {
            return Err(DslError { column, message: format!("this escape needs {digits} hex digits") });
        };
        value = value.saturating_mul(16).saturating_add(digit);
    }
    char::from_u32(value).ok_or_else(|| DslError { column, message: "this escape names no character".into() })
}
