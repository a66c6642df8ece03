//! What else a file says: its comments, what it imports, and bodies that do nothing yet.

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The line on which it ends.
    pub end: usize,
    /// All of it, with its marks.
    pub text: String,
    /// Nothing else stands on its first line before it.
    pub alone: bool,
}

/// Something of another module that a file uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The line, from 1.
    pub line: usize,
    /// The module as it is named there: `a.b`, `./x`, `crate::a::b`, `example.com/x/y`. Python's own package is `.`.
    pub module: String,
    /// What is taken of it; empty for all of it.
    pub names: Vec<String>,
}

/// A function or a class that does nothing, or nothing that depends on anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// Its name.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// What it returns, as it is written; nothing where it has no statement at all.
    pub returns: Option<String>,
    /// It is declared for others to fill: an abstract method, a member of a protocol, an exception class.
    pub declares: bool,
}

/// A place that says by its code that something is not done: `todo!()`, `raise NotImplementedError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The line, from 1.
    pub line: usize,
    /// The code, in one line.
    pub code: String,
    /// It stands in what is declared for others to fill.
    pub declares: bool,
}
