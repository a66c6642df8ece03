//! Whether a changed expression asks for more or for less.
//!
//! Both are brought into one form (negations inside, chains split, sides in one order), then each is
//! tried to be derived from the other. What is derived is so for every run; what cannot be derived is
//! called changed, never weaker or stronger by guess.

use std::cmp::Ordering;

use super::ast::{CmpOp, JsonStep, Kind, Node, Ty};
use super::lint;
use super::parse::Expr;

/// Steps that a comparison may take; beyond it the expressions are called changed.
const STEPS: u32 = 20_000;

/// What a new expression is to an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both pass in the same runs.
    Same,
    /// The new one passes wherever the old one did, and maybe elsewhere.
    Weaker,
    /// The new one passes only where the old one did.
    Stronger,
    /// Neither can be told.
    Changed,
}

impl Expr {
    /// What `new` is to this expression.
    #[must_use]
    pub fn compare(&self, new: &Self) -> Comparison {
        let (old, new) = (form(self.root(), true), form(new.root(), true));
        let derived = |from: &Form, to: &Form| {
            let mut steps = STEPS;
            implies(from, to, &mut steps)
        };
        match (derived(&old, &new), derived(&new, &old)) {
            (true, true) => Comparison::Same,
            (true, false) => Comparison::Weaker,
            (false, true) => Comparison::Stronger,
            (false, false) => Comparison::Changed,
        }
    }
}

/// Whether two nodes are the same but for where they stand.
pub(super) fn same(left: &Node, right: &Node) -> bool {
    key(left) == key(right)
}

/// An expression without negations of anything but a question.
#[derive(Debug, Clone, PartialEq)]
enum Form {
    And(Vec<Form>),
    Or(Vec<Form>),
    /// A question, and whether its evaluation may end in an error.
    Atom(Atom, bool),
}

#[derive(Debug, Clone, PartialEq)]
enum Atom {
    /// A value that is a truth, or its negation.
    Truth(String, bool),
    /// A value against a number.
    Number(String, CmpOp, Num),
    /// Two values.
    Pair(String, CmpOp, String),
    Constant(bool),
}

/// A literal number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Num {
    Int(i64),
    Float(f64),
}

fn form(node: &Node, positive: bool) -> Form {
    let join = |parts: Vec<Form>, and: bool| {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Form::And(inner) if and => flat.extend(inner),
                Form::Or(inner) if !and => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if and { Form::And(flat) } else { Form::Or(flat) }
    };
    match &node.kind {
        Kind::And(parts) => join(parts.iter().map(|part| form(part, positive)).collect(), positive),
        Kind::Or(parts) => join(parts.iter().map(|part| form(part, positive)).collect(), !positive),
        Kind::Not(inner) => form(inner, !positive),
        Kind::Compare { first, rest } => {
            let mut left: &Node = first;
            let mut links = Vec::new();
            for (op, right) in rest {
                links.push(link(left, *op, right, positive, lint::may_error(node)));
                left = right;
            }
            match <[Form; 1]>::try_from(links) {
                Ok([one]) => one,
                Err(links) => join(links, positive),
            }
        }
        Kind::Bool(value) => Form::Atom(Atom::Constant(*value == positive), false),
        _ => Form::Atom(Atom::Truth(key(node), positive), lint::may_error(node)),
    }
}

fn link(left: &Node, op: CmpOp, right: &Node, positive: bool, error: bool) -> Form {
    let op = if positive { op } else { denied(op) };
    // A number stands on the right, `None` too.
    let literal = |node: &Node| matches!(node.kind, Kind::Int(_) | Kind::Float(_) | Kind::Null);
    let (left, op, right) = match mirrored(op) {
        Some(mirrored) if literal(left) && !literal(right) => (right, mirrored, left),
        _ => (left, op, right),
    };
    let equality = match op {
        CmpOp::Eq | CmpOp::Is => Some(true),
        CmpOp::Ne | CmpOp::IsNot => Some(false),
        _ => None,
    };
    let atom = match (&right.kind, equality) {
        // A search compared with `None` is the search.
        (Kind::Null, Some(equal)) if left.ty == Ty::Match => Atom::Truth(key(left), !equal),
        (Kind::Null, Some(equal)) => {
            Atom::Pair(key(left), if equal { CmpOp::Eq } else { CmpOp::Ne }, "None".to_owned())
        }
        (Kind::Int(n), _) if !matches!(op, CmpOp::In | CmpOp::NotIn) => {
            let whole = left.ty == Ty::Int;
            let (op, n) = match op {
                CmpOp::Gt if whole && n.checked_add(1).is_some() => (CmpOp::Ge, n + 1),
                CmpOp::Lt if whole && n.checked_sub(1).is_some() => (CmpOp::Le, n - 1),
                op => (op, *n),
            };
            Atom::Number(key(left), op, Num::Int(n))
        }
        (Kind::Float(f), _) if !matches!(op, CmpOp::In | CmpOp::NotIn) => {
            Atom::Number(key(left), op, Num::Float(*f))
        }
        _ => {
            let (l, r) = (key(left), key(right));
            match op {
                CmpOp::Gt => Atom::Pair(r, CmpOp::Lt, l),
                CmpOp::Ge => Atom::Pair(r, CmpOp::Le, l),
                CmpOp::Eq | CmpOp::Ne if r < l => Atom::Pair(r, op, l),
                op => Atom::Pair(l, op, r),
            }
        }
    };
    Form::Atom(atom, error)
}

/// The opposite. There is no value that is neither: what is not a number is an error.
fn denied(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq => CmpOp::Ne,
        CmpOp::Ne => CmpOp::Eq,
        CmpOp::Lt => CmpOp::Ge,
        CmpOp::Le => CmpOp::Gt,
        CmpOp::Gt => CmpOp::Le,
        CmpOp::Ge => CmpOp::Lt,
        CmpOp::In => CmpOp::NotIn,
        CmpOp::NotIn => CmpOp::In,
        CmpOp::Is => CmpOp::IsNot,
        CmpOp::IsNot => CmpOp::Is,
    }
}

/// The same with the sides changed.
fn mirrored(op: CmpOp) -> Option<CmpOp> {
    Some(match op {
        CmpOp::Eq => CmpOp::Eq,
        CmpOp::Ne => CmpOp::Ne,
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
        CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => return None,
    })
}

/// Whether `to` is true in every run in which `from` is.
fn implies(from: &Form, to: &Form, steps: &mut u32) -> bool {
    let Some(left) = steps.checked_sub(1) else { return false };
    *steps = left;
    if from == to {
        return true;
    }
    match (from, to) {
        (_, Form::And(all)) => return all.iter().all(|part| implies(from, part, steps)),
        // Whatever came first was answered before, with no error.
        (Form::Or(was), Form::Or(is)) if is.starts_with(was) => return true,
        (Form::Or(any), _) => return any.iter().all(|part| implies(part, to, steps)),
        _ => {}
    }
    if let Form::Or(any) = to {
        for part in any {
            if implies(from, part, steps) {
                return true;
            }
            // An error there is the end, before what follows is asked.
            if errs(part) {
                break;
            }
        }
    }
    match (from, to) {
        (Form::And(all), _) => all.iter().any(|part| implies(part, to, steps)),
        (Form::Atom(Atom::Constant(false), _), _) | (_, Form::Atom(Atom::Constant(true), _)) => true,
        (Form::Atom(from, _), Form::Atom(to, _)) => atoms(from, to),
        _ => false,
    }
}

fn errs(form: &Form) -> bool {
    match form {
        Form::And(parts) | Form::Or(parts) => parts.iter().any(errs),
        Form::Atom(_, error) => *error,
    }
}

fn atoms(from: &Atom, to: &Atom) -> bool {
    match (from, to) {
        (Atom::Number(a, op, n), Atom::Number(b, asked, m)) if a == b => numbers(*op, *n, *asked, *m),
        (Atom::Pair(a, CmpOp::Lt, b), Atom::Pair(c, CmpOp::Le | CmpOp::Ne, d)) => {
            (a, b) == (c, d) || (matches!(to, Atom::Pair(_, CmpOp::Ne, _)) && (b, a) == (c, d))
        }
        _ => from == to,
    }
}

/// Whether `x op n` makes `x asked m` true.
fn numbers(op: CmpOp, n: Num, asked: CmpOp, m: Num) -> bool {
    let Some(order) = ordered(n, m) else { return false };
    match (op, asked) {
        (CmpOp::Eq, CmpOp::Eq) | (CmpOp::Ne, CmpOp::Ne) => order.is_eq(),
        (CmpOp::Eq, CmpOp::Ne) => order.is_ne(),
        (CmpOp::Eq | CmpOp::Ge, CmpOp::Gt) | (CmpOp::Ge, CmpOp::Ne) => order.is_gt(),
        (CmpOp::Gt, CmpOp::Gt | CmpOp::Ge | CmpOp::Ne) | (CmpOp::Eq | CmpOp::Ge, CmpOp::Ge) => order.is_ge(),
        (CmpOp::Eq | CmpOp::Le, CmpOp::Lt) | (CmpOp::Le, CmpOp::Ne) => order.is_lt(),
        (CmpOp::Lt, CmpOp::Lt | CmpOp::Le | CmpOp::Ne) | (CmpOp::Eq | CmpOp::Le, CmpOp::Le) => order.is_le(),
        _ => false,
    }
}

fn ordered(n: Num, m: Num) -> Option<Ordering> {
    match (n, m) {
        (Num::Int(a), Num::Int(b)) => Some(a.cmp(&b)),
        (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b),
        (Num::Int(a), Num::Float(b)) => exact(a).and_then(|a| a.partial_cmp(&b)),
        (Num::Float(a), Num::Int(b)) => exact(b).and_then(|b| a.partial_cmp(&b)),
    }
}

fn exact(n: i64) -> Option<f64> {
    i32::try_from(n).ok().map(f64::from)
}

/// A text that two nodes share only if they are the same question.
fn key(node: &Node) -> String {
    let list = |nodes: &[Node]| nodes.iter().map(key).collect::<Vec<_>>().join(",");
    match &node.kind {
        Kind::Null => "None".to_owned(),
        Kind::Bool(value) => format!("bool {value}"),
        Kind::Int(n) => format!("int {n}"),
        Kind::Float(f) => format!("float {f:?}"),
        Kind::Str(text) => format!("{text:?}"),
        Kind::ExitCode => "exit_code".to_owned(),
        Kind::Signal => "signal".to_owned(),
        Kind::TimedOut => "timed_out".to_owned(),
        Kind::Stdout => "stdout".to_owned(),
        Kind::Stderr => "stderr".to_owned(),
        Kind::And(parts) => format!("and({})", list(parts)),
        Kind::Or(parts) => format!("or({})", list(parts)),
        Kind::Not(inner) => format!("not({})", key(inner)),
        Kind::Compare { first, rest } => {
            let links: Vec<String> = rest.iter().map(|(op, n)| format!("{} {}", op.text(), key(n))).collect();
            format!("cmp({} {})", key(first), links.join(" "))
        }
        Kind::Sum(terms) => format!("sum({})", list(terms)),
        Kind::Regex { pattern, text } => format!("regex({:?},{})", pattern.source(), key(text)),
        Kind::Json(reference) => {
            let steps: Vec<String> = reference
                .steps
                .iter()
                .map(|step| match step {
                    JsonStep::Key(name) => format!("key {name:?}"),
                    JsonStep::Token(token) => format!("token {token:?}"),
                })
                .collect();
            format!("json({:?};{})", reference.path, steps.join(";"))
        }
        Kind::ToInt(inner) => format!("int({})", key(inner)),
        Kind::ToFloat(inner) => format!("float({})", key(inner)),
        Kind::Len(inner) => format!("len({})", key(inner)),
        Kind::Method { on, method, arg } => {
            let arg = arg.as_deref().map(key).unwrap_or_default();
            format!("{}.{method:?}({arg})", key(on))
        }
    }
}
