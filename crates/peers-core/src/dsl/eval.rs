//! Evaluation of a checked tree. Every failure is an error, and an error is never green.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use thiserror::Error;

use super::ast::{CmpOp, JsonRef, Kind, Method, Node, Ty};
use super::json;
use super::parse::Expr;
use super::value::{Val, contains, equal, order, truncate};

/// Longest string that `+` may build, bytes.
const MAX_TEXT: usize = 8 * 1024 * 1024;

/// The exit codes that a shell can end with.
const EXIT_CODES: std::ops::RangeInclusive<i64> = 0..=255;

/// What the command left behind.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The exit code; `128 + N` when the command died by signal N.
    pub exit_code: i64,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Whether the gate's time limit ended the command.
    pub timed_out: bool,
    /// Standard output as far as it was kept.
    pub stdout: &'a str,
    /// Standard error as far as it was kept.
    pub stderr: &'a str,
    /// Reads a JSON file by its normalised path below the root of the gate's tree (see
    /// [`super::strict_json`]); the error is a sentence fragment. Asked at most once per path.
    pub json: &'a dyn Fn(&str) -> Result<Value, String>,
}

impl Evidence<'static> {
    /// A command that printed nothing and wrote no file.
    #[must_use]
    pub const fn silent(exit_code: i64) -> Self {
        let json = &|_: &str| Err(String::new());
        Self { exit_code, signal: None, timed_out: false, stdout: "", stderr: "", json }
    }
}

/// Why an expression has no value for this evidence. The gate is red.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (column {column})")]
pub struct EvalError {
    /// 1-based character position of the part that failed.
    pub column: usize,
    /// What went wrong. Holds no output of the command.
    pub message: String,
}

impl Expr {
    /// Whether the gate passes on this evidence.
    ///
    /// # Errors
    /// [`EvalError`] when a file, key, number or type is not what the expression needs. Callers
    /// treat it as red.
    pub fn eval(&self, evidence: &Evidence<'_>) -> Result<bool, EvalError> {
        let run = Run { evidence, files: RefCell::new(BTreeMap::new()) };
        match run.value(self.root())? {
            Val::Bool(value) => Ok(value),
            other => Err(EvalError {
                column: self.root().column,
                message: format!("the result is {}, not True or False", other.noun()),
            }),
        }
    }

    /// Whether the gate passes with every exit code, and asks for nothing else. `false` proves nothing.
    #[must_use]
    pub fn cannot_fail(&self) -> bool {
        !self.reads().more && EXIT_CODES.into_iter().all(|code| self.passes_silently(code))
    }

    /// Whether the gate is red with every exit code, and asks for nothing else. `false` proves nothing.
    #[must_use]
    pub fn cannot_pass(&self) -> bool {
        !self.reads().more && !EXIT_CODES.into_iter().any(|code| self.passes_silently(code))
    }

    fn passes_silently(&self, exit_code: i64) -> bool {
        self.eval(&Evidence::silent(exit_code)).unwrap_or(false)
    }
}

struct Run<'a> {
    evidence: &'a Evidence<'a>,
    /// One reading per path, so that an expression sees one state of each file.
    files: RefCell<BTreeMap<String, Rc<Value>>>,
}

impl<'a> Run<'a> {
    fn value(&self, node: &'a Node) -> Result<Val<'a>, EvalError> {
        let at = |message: String| EvalError { column: node.column, message };
        Ok(match &node.kind {
            Kind::Null => Val::Null,
            Kind::Bool(value) => Val::Bool(*value),
            Kind::Int(value) => Val::Int(*value),
            Kind::Float(value) => Val::Float(*value),
            Kind::Str(text) => Val::Str(Cow::Borrowed(text)),
            Kind::ExitCode => Val::Int(self.evidence.exit_code),
            Kind::Signal => self.evidence.signal.map_or(Val::Null, |n| Val::Int(n.into())),
            Kind::TimedOut => Val::Bool(self.evidence.timed_out),
            Kind::Stdout => Val::Str(Cow::Borrowed(self.evidence.stdout)),
            Kind::Stderr => Val::Str(Cow::Borrowed(self.evidence.stderr)),
            Kind::And(parts) => {
                for part in parts {
                    if !self.truth(part)? {
                        return Ok(Val::Bool(false));
                    }
                }
                Val::Bool(true)
            }
            Kind::Or(parts) => {
                for part in parts {
                    if self.truth(part)? {
                        return Ok(Val::Bool(true));
                    }
                }
                Val::Bool(false)
            }
            Kind::Not(inner) => Val::Bool(!self.truth(inner)?),
            Kind::Compare { first, rest } => Val::Bool(self.chain(first, rest)?),
            Kind::Sum(terms) => {
                let mut terms = terms.iter();
                let Some(first) = terms.next() else { return Err(at("an empty sum".into())) };
                let mut total = self.value(first)?;
                if !matches!(total, Val::Int(_) | Val::Float(_) | Val::Str(_)) {
                    return Err(at(format!("cannot add {}", total.noun())));
                }
                for term in terms {
                    total = add(total, self.value(term)?).map_err(at)?;
                }
                total
            }
            Kind::Regex { pattern, text } => match self.value(text)? {
                Val::Str(text) if pattern.found_in(&text) => Val::Match,
                Val::Str(_) => Val::Null,
                other => return Err(at(format!("regex() cannot search {}", other.noun()))),
            },
            Kind::Json(reference) => self.json(reference).map_err(at)?,
            Kind::ToInt(inner) => Val::Int(to_int(&self.value(inner)?).map_err(at)?),
            Kind::ToFloat(inner) => Val::Float(to_float(&self.value(inner)?).map_err(at)?),
            Kind::Len(inner) => {
                let length = match self.value(inner)? {
                    Val::Str(text) => text.chars().count(),
                    Val::List(items) => items.len(),
                    Val::Json(Value::Array(items)) => items.len(),
                    Val::Json(Value::Object(object)) => object.len(),
                    other => return Err(at(format!("{} has no length", other.noun()))),
                };
                Val::Int(i64::try_from(length).map_err(|_| at("too long".into()))?)
            }
            Kind::Method { on, method, arg } => {
                let arg = match arg {
                    None => None,
                    Some(arg) => match self.value(arg)? {
                        Val::Str(text) => Some(text),
                        other => {
                            return Err(at(format!("the argument must be a string, not {}", other.noun())));
                        }
                    },
                };
                match self.value(on)? {
                    Val::Str(text) => call(*method, text, arg.as_deref()).map_err(at)?,
                    other => return Err(at(format!("{} has no methods", other.noun()))),
                }
            }
        })
    }

    /// The value as an operand of `and`, `or`, `not`.
    fn truth(&self, node: &'a Node) -> Result<bool, EvalError> {
        match self.value(node)? {
            Val::Bool(value) => Ok(value),
            Val::Match => Ok(true),
            Val::Null if node.ty == Ty::Match => Ok(false),
            other => Err(EvalError {
                column: node.column,
                message: format!("{} is neither true nor false", other.noun()),
            }),
        }
    }

    fn chain(&self, first: &'a Node, rest: &'a [(CmpOp, Node)]) -> Result<bool, EvalError> {
        let mut left = self.value(first)?;
        for (op, node) in rest {
            let right = self.value(node)?;
            let holds =
                compare(*op, &left, &right).map_err(|message| EvalError { column: node.column, message })?;
            if !holds {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    fn json(&self, reference: &JsonRef) -> Result<Val<'a>, String> {
        let JsonRef { path, steps } = reference;
        let known = self.files.borrow().get(path).cloned();
        let root = if let Some(root) = known {
            root
        } else {
            let root = Rc::new((self.evidence.json)(path).map_err(|e| format!("json('{path}'): {e}"))?);
            self.files.borrow_mut().insert(path.clone(), Rc::clone(&root));
            root
        };
        Val::from_json(json::follow(&root, steps, path)?)
    }
}

fn compare(op: CmpOp, left: &Val<'_>, right: &Val<'_>) -> Result<bool, String> {
    let ordered = |test: fn(Ordering) -> bool| order(left, right).map(|o| o.is_some_and(test));
    match op {
        CmpOp::Eq => Ok(equal(left, right)),
        CmpOp::Ne => Ok(!equal(left, right)),
        CmpOp::Lt => ordered(Ordering::is_lt),
        CmpOp::Le => ordered(Ordering::is_le),
        CmpOp::Gt => ordered(Ordering::is_gt),
        CmpOp::Ge => ordered(Ordering::is_ge),
        CmpOp::In => contains(left, right),
        CmpOp::NotIn => contains(left, right).map(|found| !found),
        CmpOp::Is => Ok(matches!(left, Val::Null)),
        CmpOp::IsNot => Ok(!matches!(left, Val::Null)),
    }
}

fn add<'a>(left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, String> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => {
            a.checked_add(b).map(Val::Int).ok_or_else(|| "the sum is too large".into())
        }
        (Val::Str(a), Val::Str(b)) => {
            if a.len().saturating_add(b.len()) > MAX_TEXT {
                return Err("the joined text is too long".into());
            }
            let mut text = a.into_owned();
            text.push_str(&b);
            Ok(Val::Str(Cow::Owned(text)))
        }
        (left @ (Val::Int(_) | Val::Float(_)), right @ (Val::Int(_) | Val::Float(_))) => {
            let sum = to_float(&left)? + to_float(&right)?;
            if sum.is_finite() { Ok(Val::Float(sum)) } else { Err("the sum is too large".into()) }
        }
        (left, right) => Err(format!("cannot add {} and {}", left.noun(), right.noun())),
    }
}

fn to_int(value: &Val<'_>) -> Result<i64, String> {
    match value {
        Val::Int(n) => Ok(*n),
        Val::Float(f) => truncate(*f).ok_or_else(|| "int() of a number that is too large".into()),
        Val::Str(text) => {
            let text = text.trim();
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err("int() of a text that is not an int".into());
            }
            text.parse().map_err(|_| "int() of a number that is too large".into())
        }
        other => Err(format!("int() cannot convert {}", other.noun())),
    }
}

fn to_float(value: &Val<'_>) -> Result<f64, String> {
    match value {
        Val::Int(n) => {
            #[expect(
                clippy::as_conversions,
                clippy::cast_precision_loss,
                reason = "float() rounds, as asked"
            )]
            let float = *n as f64;
            Ok(float)
        }
        Val::Float(f) => Ok(*f),
        Val::Str(text) => {
            // The standard parser also reads `inf` and `nan`, which would make comparisons lie.
            let value: Option<f64> = text.trim().parse().ok();
            value
                .filter(|v| v.is_finite())
                .ok_or_else(|| "float() of a text that is not a finite number".into())
        }
        other => Err(format!("float() cannot convert {}", other.noun())),
    }
}

fn call<'a>(method: Method, text: Cow<'a, str>, arg: Option<&str>) -> Result<Val<'a>, String> {
    let set = |c: char| arg.map_or_else(|| c.is_whitespace(), |set| set.contains(c));
    Ok(match method {
        Method::Strip => Val::Str(part(text, |t| t.trim_matches(set))),
        Method::StripStart => Val::Str(part(text, |t| t.trim_start_matches(set))),
        Method::StripEnd => Val::Str(part(text, |t| t.trim_end_matches(set))),
        Method::Lower => Val::Str(Cow::Owned(text.to_lowercase())),
        Method::Upper => Val::Str(Cow::Owned(text.to_uppercase())),
        Method::LastLine => Val::Str(part(text, |t| t.lines().rfind(|l| !l.trim().is_empty()).unwrap_or(""))),
        Method::Split => match arg {
            None => Val::List(parts(text, |t| t.split_whitespace().collect())),
            Some("") => return Err("`split` needs a separator that is not empty".into()),
            Some(separator) => Val::List(parts(text, |t| t.split(separator).collect())),
        },
        Method::SplitLines => Val::List(parts(text, split_lines)),
        Method::Lines => Val::List(parts(text, |t| t.lines().collect())),
        Method::StartsWith => Val::Bool(arg.is_some_and(|prefix| text.starts_with(prefix))),
        Method::EndsWith => Val::Bool(arg.is_some_and(|suffix| text.ends_with(suffix))),
    })
}

fn part(text: Cow<'_, str>, cut: impl Fn(&str) -> &str) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(cut(text)),
        Cow::Owned(text) => Cow::Owned(cut(&text).to_owned()),
    }
}

fn parts(text: Cow<'_, str>, cut: impl Fn(&str) -> Vec<&str>) -> Vec<Cow<'_, str>> {
    match text {
        Cow::Borrowed(text) => cut(text).into_iter().map(Cow::Borrowed).collect(),
        Cow::Owned(text) => cut(&text).into_iter().map(|line| Cow::Owned(line.to_owned())).collect(),
    }
}

/// Splits at every line boundary that Unicode knows, without a last empty line.
fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let boundary = rest.char_indices().find(|(_, c)| {
            matches!(
                c,
                '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
            )
        });
        let Some((at, c)) = boundary else {
            lines.push(rest);
            break;
        };
        let (line, tail) = rest.split_at(at);
        lines.push(line);
        let width = if tail.starts_with("\r\n") { 2 } else { c.len_utf8() };
        rest = tail.get(width..).unwrap_or("");
    }
    lines
}
