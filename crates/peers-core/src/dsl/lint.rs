//! What can be said about an expression without running it, worth a warning.
//!
//! A small abstract evaluation: each part has the answers that it can have, numbers have a range, and
//! whatever is not known can be anything. So "cannot fail" is said only of what cannot fail.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::ast::{CmpOp, Kind, Method, Node, Ty};
use super::compare;
use super::eval::{self, Evidence};
use super::parse::Expr;

/// The exit codes that a shell can end with.
const EXIT_CODES: std::ops::RangeInclusive<i64> = 0..=255;
/// More than any text has characters.
const LONGEST: i64 = 1 << 40;
/// Integers up to here are exact as a float.
const EXACT: i64 = 1 << 53;

impl Expr {
    /// Whether the gate passes whatever the command does (`exit_code >= 0`, `… or True`, a value compared
    /// with itself). `false` proves nothing.
    #[must_use]
    pub fn cannot_fail(&self) -> bool {
        self.each_exit_code(|can| !can.no && !can.error)
    }

    /// Whether the gate is red whatever the command does. `false` proves nothing.
    #[must_use]
    pub fn cannot_pass(&self) -> bool {
        self.each_exit_code(|can| !can.yes)
    }

    /// Whether the expression looks at the exit code. A command that ends in `|| true` makes such
    /// a look worthless.
    #[must_use]
    pub fn reads_exit_code(&self) -> bool {
        any_node(self.root(), &|node| matches!(node.kind, Kind::ExitCode))
    }

    /// Whether the gate passes where the shell did not even find the command: exit code 127, nothing
    /// printed but the shell's own complaint, no file.
    #[must_use]
    pub fn passes_when_not_found(&self) -> bool {
        self.eval(&NOT_FOUND).unwrap_or(false)
    }

    /// Whether it may pass there as well where the files that `json()` reads lie there already.
    #[must_use]
    pub fn passes_by_files_alone(&self) -> bool {
        !self.json_files().is_empty() && unrun(self.root()).yes
    }

    /// Whether all that is asked, or one of the things that each suffice, is what was printed: a command that
    /// fails can print it too.
    #[must_use]
    pub fn asks_for_text_alone(&self) -> bool {
        text_alone(self.root())
    }

    /// The files that `json()` reads, each once, as paths below the tree.
    #[must_use]
    pub fn json_files(&self) -> BTreeSet<String> {
        let found = RefCell::new(BTreeSet::new());
        any_node(self.root(), &|node| {
            if let Kind::Json(file) = &node.kind {
                found.borrow_mut().insert(file.path.clone());
            }
            false
        });
        found.into_inner()
    }

    fn each_exit_code(&self, holds: impl Fn(Can) -> bool) -> bool {
        if !self.reads_exit_code() {
            return holds(truth(self.root(), EXIT_CODES));
        }
        EXIT_CODES.into_iter().all(|code| holds(truth(self.root(), code..=code)))
    }
}

/// What is there where the shell did not find the command.
const NOT_FOUND: Evidence<'_> = Evidence {
    exit_code: 127,
    signal: None,
    timed_out: false,
    stdout: "",
    stderr: "/bin/sh: 1: a-command-that-is-not-there: not found\n",
    json: &|_| Err("no such file".to_owned()),
};

/// The answers that a part can have there, when of the files nothing is known.
fn unrun(node: &Node) -> Can {
    if !any_node(node, &|node| matches!(node.kind, Kind::Json(_))) {
        // Without an answer it is red.
        return eval::answer(node, &NOT_FOUND).map_or(Can { yes: false, no: false, error: true }, Can::is);
    }
    match &node.kind {
        Kind::Not(inner) => unrun(inner).denied(),
        Kind::And(parts) => joined(parts.iter().map(unrun)),
        Kind::Or(parts) => joined(parts.iter().map(|part| unrun(part).denied())).denied(),
        _ => truth(node, NOT_FOUND.exit_code..=NOT_FOUND.exit_code),
    }
}

/// Whether a condition is about what was printed and nothing else. Several of them joined by `and` were
/// thought about, and are not meant.
fn text_alone(node: &Node) -> bool {
    match &node.kind {
        Kind::Regex { .. } | Kind::Method { method: Method::StartsWith | Method::EndsWith, .. } => true,
        Kind::Not(inner) => match &inner.kind {
            // Twice denied it stays the same question.
            Kind::Not(again) => text_alone(again),
            _ => false,
        },
        Kind::Or(parts) => parts.iter().any(text_alone),
        Kind::Compare { first, rest } => match rest.as_slice() {
            [(CmpOp::Ne | CmpOp::IsNot, right)] if matches!(right.kind, Kind::Null) => text_alone(first),
            [(CmpOp::NotIn, _)] => false,
            _ => {
                let reads = |test: &dyn Fn(&Node) -> bool| {
                    any_node(first, test) || rest.iter().any(|(_, node)| any_node(node, test))
                };
                reads(&|node| matches!(node.kind, Kind::Stdout | Kind::Stderr))
                    && !reads(&|node| matches!(node.kind, Kind::ExitCode | Kind::Signal | Kind::Json(_)))
            }
        },
        _ => false,
    }
}

/// Whether evaluating the node may end in an error.
pub(super) fn may_error(node: &Node) -> bool {
    truth(node, EXIT_CODES).error
}

fn any_node(node: &Node, test: &dyn Fn(&Node) -> bool) -> bool {
    if test(node) {
        return true;
    }
    match &node.kind {
        Kind::And(parts) | Kind::Or(parts) | Kind::Sum(parts) => parts.iter().any(|n| any_node(n, test)),
        Kind::Not(inner) | Kind::ToInt(inner) | Kind::ToFloat(inner) | Kind::Len(inner) => {
            any_node(inner, test)
        }
        Kind::Compare { first, rest } => any_node(first, test) || rest.iter().any(|(_, n)| any_node(n, test)),
        Kind::Regex { text, .. } => any_node(text, test),
        Kind::Method { on, arg, .. } => {
            any_node(on, test) || arg.as_deref().is_some_and(|n| any_node(n, test))
        }
        Kind::Null
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Float(_)
        | Kind::Str(_)
        | Kind::ExitCode
        | Kind::Signal
        | Kind::TimedOut
        | Kind::Stdout
        | Kind::Stderr
        | Kind::Json(_) => false,
    }
}

/// The answers that a part can have. More than it has is allowed, fewer is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Can {
    yes: bool,
    no: bool,
    error: bool,
}

impl Can {
    fn is(value: bool) -> Self {
        Self { yes: value, no: !value, error: false }
    }

    /// Either, when all goes well.
    fn either(error: bool) -> Self {
        Self { yes: true, no: true, error }
    }

    fn known(value: Option<bool>) -> Self {
        value.map_or(Self::either(false), Self::is)
    }

    fn or_error(self, error: bool) -> Self {
        Self { error: self.error || error, ..self }
    }

    fn denied(self) -> Self {
        Self { yes: self.no, no: self.yes, error: self.error }
    }
}

type Codes = std::ops::RangeInclusive<i64>;

fn truth(node: &Node, codes: Codes) -> Can {
    match &node.kind {
        Kind::Bool(value) => Can::is(*value),
        Kind::Not(inner) => truth(inner, codes).denied(),
        Kind::And(parts) => joined(parts.iter().map(|part| truth(part, codes.clone()))),
        Kind::Or(parts) => joined(parts.iter().map(|part| truth(part, codes.clone()).denied())).denied(),
        Kind::Compare { first, rest } => {
            let mut left: &Node = first;
            let mut links = Vec::new();
            for (op, right) in rest {
                links.push(link(left, *op, right, codes.clone()));
                left = right;
            }
            joined(links.into_iter()).or_error(error(first, codes))
        }
        Kind::Regex { pattern, text } => {
            let constant = match &text.kind {
                Kind::Str(text) => Some(pattern.found_in(text)),
                _ => pattern.always_found().then_some(true),
            };
            Can::known(constant).or_error(error(text, codes))
        }
        Kind::Method { on, method: Method::StartsWith | Method::EndsWith, arg } => {
            let empty =
                matches!(arg.as_deref().map(|arg| &arg.kind), Some(Kind::Str(text)) if text.is_empty());
            let part = arg.as_deref().is_some_and(|arg| error(arg, codes.clone()) || arg.ty != Ty::Str);
            Can::known(empty.then_some(true)).or_error(part || error(on, codes))
        }
        Kind::TimedOut => Can::either(false),
        // Not a truth value, or a JSON value that need not be one.
        _ => Can::either(node.ty == Ty::Any || error(node, codes)),
    }
}

/// All of them, in order, up to the first that is not so.
fn joined(parts: impl Iterator<Item = Can>) -> Can {
    let mut whole = Can::is(true);
    for part in parts {
        if !whole.yes {
            break;
        }
        whole = Can { yes: part.yes, no: whole.no || part.no, error: whole.error || part.error };
    }
    whole
}

/// One link of a chain of comparisons. What is wrong with the left side is told by whoever began the chain.
fn link(left: &Node, op: CmpOp, right: &Node, codes: Codes) -> Can {
    if left.ty == Ty::Match && matches!(right.kind, Kind::Null) {
        // A search compared with `None` is the search.
        let found = truth(left, codes);
        return if matches!(op, CmpOp::Eq | CmpOp::Is) { found.denied() } else { found };
    }
    let ordering = matches!(op, CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge);
    let any = left.ty == Ty::Any || right.ty == Ty::Any;
    // `None` has no order, and a JSON value may be anything.
    let misfit = match op {
        CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => {
            any || left.ty == Ty::MaybeInt || right.ty == Ty::MaybeInt
        }
        CmpOp::In | CmpOp::NotIn => any,
        CmpOp::Eq | CmpOp::Ne | CmpOp::Is | CmpOp::IsNot => false,
    };
    let same = compare::same(left, right);
    let known = match (range(left, codes.clone()), range(right, codes.clone())) {
        _ if same => match op {
            CmpOp::Eq | CmpOp::Le | CmpOp::Ge => Some(true),
            CmpOp::Ne | CmpOp::Lt | CmpOp::Gt => Some(false),
            CmpOp::In if left.ty == Ty::Str => Some(true),
            CmpOp::NotIn if left.ty == Ty::Str => Some(false),
            CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => None,
        },
        (Some(l), Some(r)) if ordering || matches!(op, CmpOp::Eq | CmpOp::Ne) => l.compared(op, r),
        _ => literal(left, op, right),
    };
    Can::known(known).or_error(misfit || error(right, codes))
}

/// What two literals say, and the empty text, which is part of every text.
fn literal(left: &Node, op: CmpOp, right: &Node) -> Option<bool> {
    let found = match (&left.kind, &right.kind) {
        (Kind::Str(l), Kind::Str(r)) => match op {
            CmpOp::Eq | CmpOp::Ne => l == r,
            CmpOp::In | CmpOp::NotIn => r.contains(l.as_str()),
            CmpOp::Lt => return Some(l < r),
            CmpOp::Le => return Some(l <= r),
            CmpOp::Gt => return Some(l > r),
            CmpOp::Ge => return Some(l >= r),
            CmpOp::Is | CmpOp::IsNot => return None,
        },
        (Kind::Bool(l), Kind::Bool(r)) if matches!(op, CmpOp::Eq | CmpOp::Ne) => l == r,
        (Kind::Str(l), _) if l.is_empty() && right.ty == Ty::Str => match op {
            CmpOp::In | CmpOp::NotIn | CmpOp::Le => true,
            CmpOp::Gt => return Some(false),
            _ => return None,
        },
        (_, Kind::Str(r)) if r.is_empty() && left.ty == Ty::Str => match op {
            CmpOp::Ge => true,
            CmpOp::Lt => return Some(false),
            _ => return None,
        },
        _ => return None,
    };
    Some(found != matches!(op, CmpOp::Ne | CmpOp::NotIn))
}

/// Whether a value may be missing.
fn error(node: &Node, codes: Codes) -> bool {
    match &node.kind {
        Kind::Null
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Float(_)
        | Kind::Str(_)
        | Kind::ExitCode
        | Kind::Signal
        | Kind::TimedOut
        | Kind::Stdout
        | Kind::Stderr => false,
        Kind::And(_) | Kind::Or(_) | Kind::Not(_) | Kind::Compare { .. } | Kind::Regex { .. } => {
            truth(node, codes).error
        }
        // What fits is known of few sums: two streams fit, small numbers do.
        Kind::Sum(terms) => {
            let texts = terms.len() <= 3
                && terms.iter().all(|n| matches!(n.kind, Kind::Stdout | Kind::Stderr | Kind::Str(_)));
            !texts && range(node, codes).is_none()
        }
        Kind::Json(_) => true,
        Kind::ToInt(inner) | Kind::ToFloat(inner) => inner.ty != Ty::Int || error(inner, codes),
        Kind::Len(inner) => inner.ty == Ty::Any || error(inner, codes),
        Kind::Method { on, method, arg } => {
            let arg_may = arg.as_deref().is_some_and(|arg| {
                arg.ty != Ty::Str
                    || error(arg, codes.clone())
                    || (*method == Method::Split && !matches!(arg.kind, Kind::Str(_)))
            });
            arg_may || on.ty != Ty::Str || error(on, codes)
        }
    }
}

/// Where a number lies, both ends included. Whole numbers that are exact as a float.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn ints(low: i64, high: i64) -> Option<Self> {
        let exact = |n: i64| (-EXACT..=EXACT).contains(&n);
        #[expect(
            clippy::as_conversions,
            clippy::cast_precision_loss,
            reason = "exact below 2^53, which was looked at"
        )]
        let float = |n: i64| n as f64;
        (exact(low) && exact(high)).then(|| Self { low: float(low), high: float(high) })
    }

    fn compared(self, op: CmpOp, other: Self) -> Option<bool> {
        let below = self.high < other.low;
        let above = self.low > other.high;
        let not_above = self.high <= other.low;
        let not_below = self.low >= other.high;
        let decided = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
        match op {
            CmpOp::Lt => decided(below, not_below),
            CmpOp::Le => decided(not_above, above),
            CmpOp::Gt => decided(above, not_above),
            CmpOp::Ge => decided(not_below, below),
            // Both ends on one point on both sides: equal.
            CmpOp::Eq => decided(not_above && not_below, below || above),
            CmpOp::Ne => decided(below || above, not_above && not_below),
            CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => None,
        }
    }
}

/// `None` for what is no number, and for one of which nothing is known.
fn range(node: &Node, codes: Codes) -> Option<Range> {
    match &node.kind {
        Kind::Int(n) => Range::ints(*n, *n),
        Kind::Float(f) => Some(Range { low: *f, high: *f }),
        Kind::ExitCode => Range::ints(*codes.start(), *codes.end()),
        Kind::Len(_) => Range::ints(0, LONGEST),
        Kind::ToInt(inner) if inner.ty == Ty::Int => range(inner, codes),
        // A float sum rounds; only whole numbers are added here.
        Kind::Sum(terms) if node.ty == Ty::Int => {
            let mut total = Range { low: 0.0, high: 0.0 };
            for term in terms {
                if term.ty != Ty::Int {
                    return None;
                }
                let next = range(term, codes.clone())?;
                total = Range { low: total.low + next.low, high: total.high + next.high };
            }
            #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a power of two is exact")]
            let limit = EXACT as f64;
            (-limit..=limit).contains(&total.low).then_some(total).filter(|t| t.high <= limit)
        }
        _ => None,
    }
}
