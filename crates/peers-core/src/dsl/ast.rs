//! The typed tree that the parser builds and the evaluator walks.

use super::pattern::Pattern;

/// A node with its type and the place it came from.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) ty: Ty,
    /// 1-based character position in the source.
    pub(crate) column: usize,
}

/// What is known about a value before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    Bool,
    Int,
    Float,
    Str,
    /// A list of strings, from `split` and its like.
    List,
    /// What `regex` gives: a match or `None`.
    Match,
    /// The literal `None`.
    Null,
    /// `signal`: an int or `None`.
    MaybeInt,
    /// A JSON value: known only at run time.
    Any,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    ExitCode,
    Signal,
    TimedOut,
    Stdout,
    Stderr,
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    /// `first op node op node …`, each operand evaluated once.
    Compare {
        first: Box<Node>,
        rest: Vec<(CmpOp, Node)>,
    },
    Sum(Vec<Node>),
    Regex {
        pattern: Pattern,
        text: Box<Node>,
    },
    Json(JsonRef),
    ToInt(Box<Node>),
    ToFloat(Box<Node>),
    Len(Box<Node>),
    Method {
        on: Box<Node>,
        method: Method,
        arg: Option<Box<Node>>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
    Is,
    IsNot,
}

impl CmpOp {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Is => "is",
            Self::IsNot => "is not",
        }
    }
}

/// `json(path)`, then a pointer or a walk through object keys.
#[derive(Debug, Clone)]
pub(crate) struct JsonRef {
    /// Normalised, relative, without `..`.
    pub(crate) path: String,
    pub(crate) steps: Vec<JsonStep>,
}

#[derive(Debug, Clone)]
pub(crate) enum JsonStep {
    /// From the dot form: a key of an object.
    Key(String),
    /// From a JSON pointer: a key of an object or an index of an array.
    Token(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Strip,
    StripStart,
    StripEnd,
    Split,
    Lower,
    Upper,
    SplitLines,
    StartsWith,
    EndsWith,
    Lines,
    LastLine,
}

impl Method {
    pub(crate) const NAMES: &'static str =
        "strip, lstrip, rstrip, split, lower, upper, splitlines, lines, last_line, startswith, endswith";

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "strip" => Self::Strip,
            "lstrip" => Self::StripStart,
            "rstrip" => Self::StripEnd,
            "split" => Self::Split,
            "lower" => Self::Lower,
            "upper" => Self::Upper,
            "splitlines" => Self::SplitLines,
            "startswith" => Self::StartsWith,
            "endswith" => Self::EndsWith,
            "lines" => Self::Lines,
            "last_line" => Self::LastLine,
            _ => return None,
        })
    }

    /// Fewest and most arguments.
    pub(crate) fn arity(self) -> (usize, usize) {
        match self {
            Self::Strip | Self::StripStart | Self::StripEnd | Self::Split => (0, 1),
            Self::Lower | Self::Upper | Self::SplitLines | Self::Lines | Self::LastLine => (0, 0),
            Self::StartsWith | Self::EndsWith => (1, 1),
        }
    }

    pub(crate) fn result(self) -> Ty {
        match self {
            Self::Strip | Self::StripStart | Self::StripEnd | Self::Lower | Self::Upper | Self::LastLine => {
                Ty::Str
            }
            Self::Split | Self::SplitLines | Self::Lines => Ty::List,
            Self::StartsWith | Self::EndsWith => Ty::Bool,
        }
    }
}
