//! `pass_when`: parse, lint, evaluate.
//!
//! The input is up to five texts between lines `==`: the expression, stdout, stderr, the bytes of
//! every JSON file, and flags (an exit code as a digit; `s` a signal, `t` a timeout, `b` the output
//! repeated up to 64 KiB).

use std::cell::RefCell;

use peers_core::dsl::{DslError, EvalError, Evidence, Expr, strict_json};
use peers_model::limits::JSON_DEPTH;
use serde_json::Value;

/// In no error message unless the expression itself says it: messages hold no output.
const CANARY: &str = "zQ7canary";

/// Longest message of an error, bytes: an expression is at most 4096 bytes long.
const MESSAGE: usize = 8 * 1024;

/// Puts one input through everything.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.splitn(5, "\n==\n");
    let source = parts.next().unwrap_or_default();
    let stdout = parts.next().unwrap_or_default();
    let stderr = parts.next().unwrap_or_default();
    let json = parts.next().unwrap_or_default();
    let flags = parts.next().unwrap_or_default();

    strict(json.as_bytes());
    let first = Expr::parse(source);
    same_twice(source, &first);
    match first {
        Err(error) => refused(source, &error),
        Ok(expr) => {
            let stdout = grown(stdout, flags);
            let stderr = grown(stderr, flags);
            let digits: String = flags.chars().filter(char::is_ascii_digit).take(3).collect();
            let run = Run {
                exit_code: digits.parse().unwrap_or(0),
                signal: flags.contains('s').then_some(9),
                timed_out: flags.contains('t'),
                stdout: &stdout,
                stderr: &stderr,
                json,
            };
            accepted(source, &expr, &run);
        }
    }
}

/// The evidence of one run, owned by the caller.
struct Run<'a> {
    exit_code: i64,
    signal: Option<i32>,
    timed_out: bool,
    stdout: &'a str,
    stderr: &'a str,
    json: &'a str,
}

/// The text with the canary behind it; 64 KiB of it where the flags ask for that.
fn grown(text: &str, flags: &str) -> String {
    const MANY: usize = 64 * 1024;
    let times = if flags.contains('b') && !text.is_empty() { MANY / text.len() } else { 1 };
    let mut grown = text.repeat(times.max(1));
    grown.push_str(CANARY);
    grown
}

fn same_twice(source: &str, first: &Result<Expr, DslError>) {
    assert_eq!(&Expr::parse(source), first, "parsing is deterministic");
}

/// A refusal points into the text and says something that fits on a screen.
fn refused(source: &str, error: &DslError) {
    inside(source, error.column);
    assert!(!error.message.is_empty() && error.message.len() <= MESSAGE, "{error:?}");
    // Blanks before it move the column and change nothing else.
    if source.len() < 4096 {
        let moved = Expr::parse(&format!("\n{source}")).expect_err("still refused");
        assert_eq!(moved.message, error.message);
    }
}

fn inside(source: &str, column: usize) {
    let chars = source.chars().count();
    assert!(column >= 1 && column <= chars + 1, "column {column} of {chars} characters");
}

fn accepted(source: &str, expr: &Expr, run: &Run<'_>) {
    assert!(source.len() <= 4096);
    assert_eq!(expr.source(), source);
    assert_eq!(Expr::parse(&expr.to_string()).as_ref(), Ok(expr), "what is printed is read again");

    let answer = evaluate(source, expr, run);
    assert_eq!(answer, evaluate(source, expr, run), "the same evidence gives the same answer");
    if expr.cannot_fail() {
        assert_ne!(answer, Ok(false), "an expression that cannot fail did");
    }
    if !expr.reads_exit_code() {
        let other = Run { exit_code: run.exit_code ^ 1, ..*run };
        assert_eq!(answer, evaluate(source, expr, &other), "the exit code is not looked at");
    }
    // `not (…)` is the opposite, and an error stays one: no error can be turned into a pass.
    let opposite = format!("not ({source})");
    if let Ok(negated) = Expr::parse(&opposite) {
        let flipped = evaluate(&opposite, &negated, run);
        match answer {
            Ok(value) => assert_eq!(flipped, Ok(!value)),
            Err(_) => assert!(flipped.is_err(), "an error became {flipped:?}"),
        }
    }
}

fn evaluate(source: &str, expr: &Expr, run: &Run<'_>) -> Result<bool, EvalError> {
    let asked: RefCell<Vec<String>> = RefCell::default();
    let json = |path: &str| {
        relative(path);
        assert!(!asked.borrow().iter().any(|p| p == path), "{path} is read twice");
        asked.borrow_mut().push(path.to_owned());
        strict_json(run.json.as_bytes())
    };
    let Run { exit_code, signal, timed_out, stdout, stderr, json: _ } = *run;
    let answer = expr.eval(&Evidence { exit_code, signal, timed_out, stdout, stderr, json: &json });
    if let Err(error) = &answer {
        inside(source, error.column);
        assert!(!error.message.is_empty() && error.message.len() <= MESSAGE, "{error:?}");
        let known = source.contains(CANARY) || run.json.contains(CANARY);
        assert!(known || !error.message.contains(CANARY), "a message holds output: {error:?}");
    }
    answer
}

/// A path that `json()` asks for stays below the root, whatever the expression says.
fn relative(path: &str) {
    let good = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    assert!(path.split('/').all(good), "`{path}` is not normalised");
}

/// The strict reader reads less than the ordinary one, and what it reads is the same.
fn strict(bytes: &[u8]) {
    let read = strict_json(bytes);
    assert_eq!(read, strict_json(bytes));
    match read {
        Ok(value) => {
            let ordinary: Value = serde_json::from_slice(bytes).expect("the ordinary reader reads it too");
            assert_eq!(value, ordinary, "no key is hidden");
            assert!(depth(&value) <= JSON_DEPTH);
        }
        Err(message) => assert!(!message.is_empty() && message.len() <= MESSAGE),
    }
}

/// Nesting of a value; a scalar has none.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
