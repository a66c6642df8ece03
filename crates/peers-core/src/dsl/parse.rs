//! Tokens to a typed tree, within limits.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use super::advice;
use super::ast::{CmpOp, JsonRef, JsonStep, Kind, Method, Node, Ty};
use super::json;
use super::lex::{Tok, Token, lex};
use super::pattern::Pattern;
use super::typing;

/// Longest expression, bytes.
const MAX_BYTES: usize = 4096;
/// Deepest nesting.
const MAX_DEPTH: usize = 32;
/// Most nodes of the tree.
const MAX_NODES: usize = 256;
/// Longest string literal, bytes. The limit on the whole expression is tighter today.
const MAX_STRING: usize = 8192;

/// Why an expression was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("column {column}: {message}")]
pub struct DslError {
    /// 1-based character position; a line break counts as one character.
    pub column: usize,
    /// What is wrong, in lower case, without a full stop.
    pub message: String,
}

/// A checked `pass_when` expression.
#[derive(Debug, Clone)]
pub struct Expr {
    source: String,
    root: Node,
    reads: Reads,
}

/// What of a run an expression looks at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reads {
    pub(crate) exit_code: bool,
    /// Anything else of the run.
    pub(crate) more: bool,
    /// Files, as paths below the tree.
    json_files: BTreeSet<String>,
}

impl Expr {
    /// Parses and checks an expression.
    ///
    /// # Errors
    /// [`DslError`] for whatever is not in the language, cannot be true and false depending on the
    /// run, mixes types that never meet, or exceeds a limit.
    pub fn parse(source: &str) -> Result<Self, DslError> {
        if source.len() > MAX_BYTES {
            let message = format!("an expression has at most {MAX_BYTES} bytes");
            return Err(DslError { column: 1, message });
        }
        let mut parser = Parser { tokens: lex(source)?, at: 0, depth: 0, nodes: 0, reads: Reads::default() };
        if parser.tokens.is_empty() {
            return Err(DslError { column: 1, message: "the expression is empty".into() });
        }
        let root = parser.expression()?;
        if let Some(token) = parser.tokens.get(parser.at) {
            let message = match token.tok {
                Tok::Minus => "the only operator on values is `+`".into(),
                Tok::Name(ref word) => {
                    format!("unexpected `{word}` after the end of the expression{}", advice::holds(word))
                }
                _ => format!("unexpected {} after the end of the expression", token.tok.describe()),
            };
            return Err(DslError { column: token.column, message });
        }
        typing::whole(root.ty).map_err(|message| DslError { column: root.column, message })?;
        let reads = parser.reads;
        if !(reads.exit_code || reads.more) {
            let message = "the expression is constant: it says nothing about the run".into();
            return Err(DslError { column: 1, message });
        }
        Ok(Self { source: source.to_owned(), root, reads })
    }

    /// The text that was parsed.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether another expression says the same in the same words, however they are set.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let words =
            |expr: &Self| lex(&expr.source).map(|all| all.into_iter().map(|t| t.tok).collect::<Vec<_>>());
        words(self) == words(other)
    }

    /// Whether the expression looks at the exit code. A command that ends in `|| true` makes such
    /// a look worthless.
    #[must_use]
    pub fn reads_exit_code(&self) -> bool {
        self.reads.exit_code
    }

    /// The files that `json()` reads, each once, as paths below the tree.
    #[must_use]
    pub fn json_files(&self) -> BTreeSet<String> {
        self.reads.json_files.clone()
    }

    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl PartialEq for Expr {
    /// Equal source means an equal tree.
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Expr {}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    nodes: usize,
    /// Nothing of the run is an expression that is constant; a function call counts as a look.
    reads: Reads,
}

type Parsed = Result<Node, DslError>;

impl Parser {
    fn peek(&self) -> Option<&Tok> {
        self.tokens.get(self.at).map(|t| &t.tok)
    }

    fn column(&self) -> usize {
        match self.tokens.get(self.at) {
            Some(token) => token.column,
            None => self.tokens.last().map_or(1, |t| t.column + 1),
        }
    }

    fn accept(&mut self, tok: &Tok) -> bool {
        let hit = self.peek() == Some(tok);
        self.at += usize::from(hit);
        hit
    }

    fn expect(&mut self, tok: &Tok) -> Result<(), DslError> {
        if self.accept(tok) { Ok(()) } else { Err(self.unexpected(&tok.describe())) }
    }

    fn unexpected(&self, wanted: &str) -> DslError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), Tok::describe);
        self.error(format!("expected {wanted}, found {found}"))
    }

    fn error(&self, message: impl Into<String>) -> DslError {
        DslError { column: self.column(), message: message.into() }
    }

    fn node(&mut self, kind: Kind, ty: Ty, column: usize) -> Parsed {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(DslError { column, message: format!("an expression has at most {MAX_NODES} parts") });
        }
        Ok(Node { kind, ty, column })
    }

    fn deeper(&mut self) -> Result<(), DslError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("an expression nests at most {MAX_DEPTH} deep")));
        }
        Ok(())
    }

    fn expression(&mut self) -> Parsed {
        self.deeper()?;
        let node = self.either(&Tok::Or)?;
        self.depth -= 1;
        Ok(node)
    }

    /// `or` over `and` over `not`: one level per call, so that the stack is bounded by nesting.
    fn either(&mut self, joint: &Tok) -> Parsed {
        let is_or = *joint == Tok::Or;
        let first = if is_or { self.either(&Tok::And)? } else { self.negation()? };
        if self.peek() != Some(joint) {
            return Ok(first);
        }
        let column = first.column;
        let mut parts = vec![first];
        while self.accept(joint) {
            parts.push(if is_or { self.either(&Tok::And)? } else { self.negation()? });
        }
        for part in &parts {
            typing::truth(part.ty).map_err(|message| DslError { column: part.column, message })?;
        }
        self.node(if is_or { Kind::Or(parts) } else { Kind::And(parts) }, Ty::Bool, column)
    }

    fn negation(&mut self) -> Parsed {
        let column = self.column();
        if !self.accept(&Tok::Not) {
            return self.comparison();
        }
        self.deeper()?;
        let inner = self.negation()?;
        self.depth -= 1;
        typing::truth(inner.ty).map_err(|message| DslError { column: inner.column, message })?;
        self.node(Kind::Not(Box::new(inner)), Ty::Bool, column)
    }

    fn comparison(&mut self) -> Parsed {
        let first = self.sum()?;
        let mut rest: Vec<(CmpOp, Node)> = Vec::new();
        loop {
            let column = self.column();
            let Some(op) = self.comparison_operator()? else { break };
            let right = self.sum()?;
            let left = rest.last().map_or(&first, |(_, node)| node);
            typing::comparison(left, op, &right).map_err(|message| DslError { column, message })?;
            rest.push((op, right));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let column = first.column;
        self.node(Kind::Compare { first: Box::new(first), rest }, Ty::Bool, column)
    }

    fn comparison_operator(&mut self) -> Result<Option<CmpOp>, DslError> {
        let op = match self.peek() {
            Some(Tok::Cmp(op)) => *op,
            Some(Tok::In) => CmpOp::In,
            Some(Tok::Is) => {
                self.at += 1;
                return Ok(Some(if self.accept(&Tok::Not) { CmpOp::IsNot } else { CmpOp::Is }));
            }
            Some(Tok::Not) => {
                self.at += 1;
                self.expect(&Tok::In)?;
                return Ok(Some(CmpOp::NotIn));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(op))
    }

    fn sum(&mut self) -> Parsed {
        let first = self.postfix()?;
        if self.peek() != Some(&Tok::Plus) {
            return Ok(first);
        }
        let column = first.column;
        let mut terms = vec![first];
        while self.accept(&Tok::Plus) {
            terms.push(self.postfix()?);
        }
        let ty = typing::sum(&terms).map_err(|message| DslError { column, message })?;
        self.node(Kind::Sum(terms), ty, column)
    }

    fn postfix(&mut self) -> Parsed {
        let mut node = self.atom()?;
        let mut chained = 0;
        while self.accept(&Tok::Dot) {
            chained += 1;
            if self.depth + chained > MAX_DEPTH {
                return Err(self.error(format!("an expression nests at most {MAX_DEPTH} deep")));
            }
            node = self.attribute(node)?;
        }
        Ok(node)
    }

    fn attribute(&mut self, on: Node) -> Parsed {
        let column = self.column();
        let name = match self.peek() {
            Some(Tok::Name(name)) => name.clone(),
            Some(Tok::In | Tok::Is | Tok::Not | Tok::And | Tok::Or | Tok::True | Tok::False | Tok::Null) => {
                return Err(self.error("a key that is a word of the language needs json('file', '/key')"));
            }
            _ => return Err(self.unexpected("a name after `.`")),
        };
        self.at += 1;
        let fail = |message: String| Err(DslError { column, message });
        if name.starts_with('_') {
            return fail(format!(
                "`{name}`: names that start with `_` are not reachable; use json('file', '/{name}')"
            ));
        }
        let called = self.peek() == Some(&Tok::Open);
        if let Kind::Json(mut reference) = on.kind {
            if called {
                return fail("a JSON value has no methods".into());
            }
            reference.steps.push(JsonStep::Key(name));
            return Ok(Node { kind: Kind::Json(reference), ty: Ty::Any, column: on.column });
        }
        if matches!(on.kind, Kind::Str(_) | Kind::Int(_) | Kind::Float(_) | Kind::Bool(_) | Kind::Null) {
            return fail("a literal has no attributes".into());
        }
        if on.ty != Ty::Str {
            return fail(format!("{} has no attributes{}", on.ty.noun(), advice::of_type(on.ty)));
        }
        let Some(method) = Method::named(&name) else {
            let meant = advice::holds(&name);
            return fail(format!("unknown method `{name}`{meant}; there are {}", Method::NAMES));
        };
        if !called {
            return fail(format!("`{name}` must be called: `{name}()`"));
        }
        let args = self.arguments(&name)?;
        let (fewest, most) = method.arity();
        if args.len() < fewest || args.len() > most {
            return fail(format!("`{name}` takes {} arguments", arity_text(fewest, most)));
        }
        let arg = args.into_iter().next();
        if let Some(arg) = &arg {
            typing::text("the argument", arg.ty)
                .map_err(|message| DslError { column: arg.column, message })?;
            if method == Method::Split && matches!(&arg.kind, Kind::Str(text) if text.is_empty()) {
                return fail("`split` needs a separator that is not empty".into());
            }
        }
        let start = on.column;
        let kind = Kind::Method { on: Box::new(on), method, arg: arg.map(Box::new) };
        self.node(kind, method.result(), start)
    }

    /// Reads `( expr, … )`.
    fn arguments(&mut self, name: &str) -> Result<Vec<Node>, DslError> {
        self.expect(&Tok::Open)?;
        let mut args = Vec::new();
        if self.accept(&Tok::Close) {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.accept(&Tok::Close) {
                return Ok(args);
            }
            if !self.accept(&Tok::Comma) {
                return Err(self.unexpected(&format!("`,` or `)` in the arguments of `{name}`")));
            }
        }
    }

    fn atom(&mut self) -> Parsed {
        let column = self.column();
        let Some(tok) = self.peek().cloned() else { return Err(self.unexpected("a value")) };
        self.at += 1;
        match tok {
            Tok::Name(name) => self.name(&name, column),
            Tok::Str(mut text) => {
                while let Some(Tok::Str(more)) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                if text.len() > MAX_STRING {
                    return Err(DslError {
                        column,
                        message: format!("a string has at most {MAX_STRING} bytes"),
                    });
                }
                self.node(Kind::Str(text), Ty::Str, column)
            }
            Tok::Int(n) => self.node(Kind::Int(n), Ty::Int, column),
            Tok::Float(n) => self.node(Kind::Float(n), Ty::Float, column),
            Tok::True => self.node(Kind::Bool(true), Ty::Bool, column),
            Tok::False => self.node(Kind::Bool(false), Ty::Bool, column),
            Tok::Null => self.node(Kind::Null, Ty::Null, column),
            Tok::Minus => {
                let Some(Tok::Int(n)) = self.peek() else {
                    return Err(DslError { column, message: "`-` may stand only before an int".into() });
                };
                let n = n.saturating_neg();
                self.at += 1;
                self.node(Kind::Int(n), Ty::Int, column)
            }
            Tok::Open => {
                let inner = self.expression()?;
                if self.peek() == Some(&Tok::Comma) {
                    return Err(self.error(format!("tuples are not supported{}", advice::ONE_OF)));
                }
                self.expect(&Tok::Close)?;
                Ok(inner)
            }
            Tok::And
            | Tok::Or
            | Tok::Not
            | Tok::In
            | Tok::Is
            | Tok::Cmp(_)
            | Tok::Plus
            | Tok::Dot
            | Tok::Comma
            | Tok::Close => {
                self.at -= 1;
                Err(self.unexpected("a value"))
            }
        }
    }

    fn name(&mut self, name: &str, column: usize) -> Parsed {
        let called = self.peek() == Some(&Tok::Open);
        let (kind, ty) = match name {
            "exit_code" => (Kind::ExitCode, Ty::Int),
            "signal" => (Kind::Signal, Ty::MaybeInt),
            "timed_out" => (Kind::TimedOut, Ty::Bool),
            "stdout" => (Kind::Stdout, Ty::Str),
            "stderr" => (Kind::Stderr, Ty::Str),
            "regex" | "json" | "int" | "float" | "len" if called => {
                self.reads.more = true;
                let args = self.arguments(name)?;
                return self.call(name, args, column);
            }
            "regex" | "json" | "int" | "float" | "len" => {
                return Err(DslError { column, message: format!("`{name}` is a function; call it") });
            }
            _ => {
                let what = if called { "function" } else { "name" };
                let known = if called {
                    "regex, json, int, float, len"
                } else {
                    "exit_code, signal, timed_out, stdout, stderr, True, False, None"
                };
                return Err(DslError {
                    column,
                    message: format!(
                        "unknown {what} `{name}`{}; there are {known}",
                        advice::unknown_name(name)
                    ),
                });
            }
        };
        if called {
            return Err(DslError { column, message: format!("`{name}` is not a function") });
        }
        if matches!(kind, Kind::ExitCode) {
            self.reads.exit_code = true;
        } else {
            self.reads.more = true;
        }
        self.node(kind, ty, column)
    }

    fn call(&mut self, name: &str, args: Vec<Node>, column: usize) -> Parsed {
        let fail = |message: String| DslError { column, message };
        let count = args.len();
        let mut args = args.into_iter();
        match (name, args.next(), args.next(), count) {
            ("regex", Some(pattern), Some(text), 2) => {
                typing::text("the second argument of regex()", text.ty)
                    .map_err(|message| DslError { column: text.column, message })?;
                let Kind::Str(source) = &pattern.kind else {
                    let swapped = matches!(text.kind, Kind::Str(_));
                    let order = if swapped { "; it comes first: regex('pattern', text)" } else { "" };
                    return Err(fail(format!("the pattern of regex() must be a literal{order}")));
                };
                let pattern = Pattern::compile(source)
                    .map_err(|message| DslError { column: pattern.column, message })?;
                self.node(Kind::Regex { pattern, text: Box::new(text) }, Ty::Match, column)
            }
            ("json", Some(path), pointer, 1 | 2) => {
                let Kind::Str(path_text) = &path.kind else {
                    let output = matches!(path.kind, Kind::Stdout | Kind::Stderr);
                    let file = "; json() reads files alone: let the command write one, json('report.json')";
                    let file = if output { file } else { "" };
                    return Err(fail(format!("the path of json() must be a literal{file}")));
                };
                let path = json::relative_path(path_text)
                    .map_err(|message| DslError { column: path.column, message })?;
                let steps = match pointer {
                    None => Vec::new(),
                    Some(Node { kind: Kind::Str(text), column, .. }) => {
                        json::pointer(&text).map_err(|message| DslError { column, message })?
                    }
                    Some(_) => return Err(fail("the pointer of json() must be a literal".into())),
                };
                self.reads.json_files.insert(path.clone());
                self.node(Kind::Json(JsonRef { path, steps }), Ty::Any, column)
            }
            ("int" | "float", Some(value), None, 1) => {
                typing::to_number(name, value.ty).map_err(fail)?;
                let value = Box::new(value);
                if name == "int" {
                    self.node(Kind::ToInt(value), Ty::Int, column)
                } else {
                    self.node(Kind::ToFloat(value), Ty::Float, column)
                }
            }
            ("len", Some(value), None, 1) => {
                typing::length(value.ty).map_err(fail)?;
                self.node(Kind::Len(Box::new(value)), Ty::Int, column)
            }
            _ => {
                let wanted = match name {
                    "regex" => "regex(pattern, text)",
                    "json" => "json(path) or json(path, pointer)",
                    _ => "one argument",
                };
                Err(fail(format!("wrong number of arguments for `{name}`: expected {wanted}")))
            }
        }
    }
}

fn arity_text(fewest: usize, most: usize) -> String {
    match (fewest, most) {
        (0, 0) => "no".into(),
        (a, b) if a == b => a.to_string(),
        (a, b) => format!("{a} or {b}"),
    }
}
