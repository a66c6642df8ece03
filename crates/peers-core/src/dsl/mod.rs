//! `pass_when`: one boolean expression over what a gate's command left behind.
//!
//! [`Expr::parse`] does everything that can be done before a run: syntax, names, types, regex
//! compilation, path checks and size limits. What is left for [`Expr::eval`] can fail only on what
//! the command printed or wrote, and every such failure is an [`EvalError`]: red, never green.
//!
//! The language has no loops, no definitions and no host access; its cost is bounded by the size of
//! the expression times the size of the evidence. JSON files are read by the caller, through
//! [`Evidence::json`]; [`strict_json`] is the parser meant for them.

mod advice;
mod ast;
mod eval;
mod json;
mod lex;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;
mod typing;
mod value;

pub use eval::{EvalError, Evidence};
pub use json::{MAX_JSON_BYTES, strict_json};
pub use parse::{DslError, Expr};
