//! What can be said about an expression without running it, worth a warning.

use super::ast::{CmpOp, Kind, Node, Ty};
use super::parse::Expr;

impl Expr {
    /// Whether the expression is true whatever the command did, as far as a simple analysis can
    /// tell (`… or True`, a value compared with itself, the empty string looked for in a text).
    /// Worth a warning; `false` proves nothing.
    #[must_use]
    pub fn cannot_fail(&self) -> bool {
        known(self.root()) == Some(true)
    }

    /// Whether the expression looks at the exit code. A command that ends in `|| true` makes such
    /// a look worthless.
    #[must_use]
    pub fn reads_exit_code(&self) -> bool {
        any_node(self.root(), &|node| matches!(node.kind, Kind::ExitCode))
    }
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

/// The value that a node has in every run in which it has one at all.
fn known(node: &Node) -> Option<bool> {
    match &node.kind {
        Kind::Bool(value) => Some(*value),
        Kind::Not(inner) => known(inner).map(|value| !value),
        Kind::And(parts) => joined(parts, true),
        Kind::Or(parts) => joined(parts, false),
        Kind::Compare { first, rest } => {
            let mut left: &Node = first;
            for (op, right) in rest {
                let holds = match op {
                    CmpOp::Eq | CmpOp::Le | CmpOp::Ge => same_name(left, right),
                    CmpOp::In => {
                        matches!(&left.kind, Kind::Str(text) if text.is_empty()) && right.ty == Ty::Str
                    }
                    CmpOp::Ne | CmpOp::Lt | CmpOp::Gt | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => false,
                };
                if !holds {
                    return None;
                }
                left = right;
            }
            Some(true)
        }
        Kind::Null
        | Kind::Int(_)
        | Kind::Float(_)
        | Kind::Str(_)
        | Kind::ExitCode
        | Kind::Signal
        | Kind::TimedOut
        | Kind::Stdout
        | Kind::Stderr
        | Kind::Sum(_)
        | Kind::Regex { .. }
        | Kind::Json(_)
        | Kind::ToInt(_)
        | Kind::ToFloat(_)
        | Kind::Len(_)
        | Kind::Method { .. } => None,
    }
}

/// `neutral` is what a part must be to leave the rest in charge.
fn joined(parts: &[Node], neutral: bool) -> Option<bool> {
    let values: Vec<Option<bool>> = parts.iter().map(known).collect();
    if values.contains(&Some(!neutral)) {
        return Some(!neutral);
    }
    values.iter().all(|v| *v == Some(neutral)).then_some(neutral)
}

fn same_name(left: &Node, right: &Node) -> bool {
    matches!(
        (&left.kind, &right.kind),
        (Kind::ExitCode, Kind::ExitCode)
            | (Kind::Signal, Kind::Signal)
            | (Kind::TimedOut, Kind::TimedOut)
            | (Kind::Stdout, Kind::Stdout)
            | (Kind::Stderr, Kind::Stderr)
    )
}
