//! What may meet what, decided before the run. Each rule answers with the message for the author.

use super::advice;
use super::ast::{CmpOp, Kind, Node, Ty};

impl Ty {
    /// How a message names a value of this type.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Bool => "a bool",
            Self::Int => "an int",
            Self::Float => "a float",
            Self::Str => "a string",
            Self::List => "a list",
            Self::Match => "a regex result",
            Self::Null => "None",
            Self::MaybeInt => "an int or None",
            Self::Any => "a JSON value",
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Float | Self::MaybeInt)
    }
}

/// May the value stand as an operand of `and`, `or`, `not`?
pub(crate) fn truth(ty: Ty) -> Result<(), String> {
    let hint = match ty {
        Ty::Bool | Ty::Match | Ty::Any => return Ok(()),
        Ty::Int | Ty::Float | Ty::MaybeInt => "; write a comparison such as `exit_code == 0`",
        Ty::Str => "; write a comparison such as `stdout != ''`",
        Ty::List => "; write a comparison such as `len(…) > 0`",
        Ty::Null => "",
    };
    Err(format!("{} is neither true nor false{hint}", ty.noun()))
}

/// May the value be the whole expression's?
pub(crate) fn whole(ty: Ty) -> Result<(), String> {
    match ty {
        Ty::Bool | Ty::Any => Ok(()),
        Ty::Match => Err(
            "this is not a condition by itself; write `exit_code == 0 and regex(…)`, or `regex(…) != None`"
                .into(),
        ),
        Ty::Int | Ty::Float | Ty::Str | Ty::List | Ty::Null | Ty::MaybeInt => truth(ty),
    }
}

pub(crate) fn comparison(left: &Node, op: CmpOp, right: &Node) -> Result<(), String> {
    let (l, r) = (left.ty, right.ty);
    match op {
        CmpOp::Eq | CmpOp::Ne => equality(l, r),
        CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => {
            let fits = |ty: Ty| ty.is_number() || ty == Ty::Any;
            let texts = |ty: Ty| matches!(ty, Ty::Str | Ty::Any);
            if (fits(l) && fits(r)) || (texts(l) && texts(r)) {
                return Ok(());
            }
            let advice = if l == Ty::Match { advice::of_type(l) } else { advice::of_type(r) };
            Err(format!("`{}` cannot order {} and {}{advice}", op.text(), l.noun(), r.noun()))
        }
        CmpOp::In | CmpOp::NotIn => match (l, r) {
            (Ty::Str | Ty::Any, Ty::Str | Ty::List | Ty::Any)
            | (Ty::Bool | Ty::Int | Ty::Float | Ty::List | Ty::Null | Ty::MaybeInt, Ty::Any) => Ok(()),
            _ => Err(format!("`{}` cannot look for {} in {}", op.text(), l.noun(), r.noun())),
        },
        CmpOp::Is | CmpOp::IsNot => {
            if !matches!(right.kind, Kind::Null) {
                return Err(format!("`{}` is only for None; compare with `==`", op.text()));
            }
            match l {
                Ty::Match | Ty::MaybeInt | Ty::Any => Ok(()),
                Ty::Null => Err("None is always None".into()),
                Ty::Bool | Ty::Int | Ty::Float | Ty::Str | Ty::List => {
                    Err(format!("{} is never None", l.noun()))
                }
            }
        }
    }
}

fn equality(l: Ty, r: Ty) -> Result<(), String> {
    let fits = match (l, r) {
        (Ty::Any, _)
        | (_, Ty::Any)
        | (Ty::Match | Ty::MaybeInt, Ty::Null)
        | (Ty::Null, Ty::Match | Ty::MaybeInt) => true,
        (Ty::Match | Ty::Null, _) | (_, Ty::Match | Ty::Null) => false,
        (l, r) if l.is_number() && r.is_number() => true,
        (l, r) => l == r,
    };
    if fits { Ok(()) } else { Err(format!("comparing {} with {} says nothing", l.noun(), r.noun())) }
}

/// The type of a sum, or which two terms do not fit.
pub(crate) fn sum(terms: &[Node]) -> Result<Ty, String> {
    let mut known: Option<Ty> = None;
    let mut any = false;
    for term in terms {
        let ty = match term.ty {
            Ty::Any => {
                any = true;
                continue;
            }
            Ty::MaybeInt => Ty::Int,
            ty @ (Ty::Int | Ty::Float | Ty::Str) => ty,
            ty @ (Ty::Bool | Ty::List | Ty::Match | Ty::Null) => {
                return Err(format!("`+` cannot add {}", ty.noun()));
            }
        };
        known = Some(match known {
            None => ty,
            Some(before) if before == ty => ty,
            Some(Ty::Int | Ty::Float) if ty != Ty::Str => Ty::Float,
            Some(before) => return Err(format!("`+` cannot add {} and {}", before.noun(), ty.noun())),
        });
    }
    Ok(match known {
        Some(Ty::Str) => Ty::Str,
        Some(ty) if !any => ty,
        Some(_) | None => Ty::Any,
    })
}

pub(crate) fn to_number(name: &str, ty: Ty) -> Result<(), String> {
    match ty {
        Ty::Str | Ty::Int | Ty::Float | Ty::MaybeInt | Ty::Any => Ok(()),
        Ty::Bool | Ty::List | Ty::Match | Ty::Null => {
            Err(format!("{name}() cannot convert {}{}", ty.noun(), advice::of_type(ty)))
        }
    }
}

pub(crate) fn length(ty: Ty) -> Result<(), String> {
    match ty {
        Ty::Str | Ty::List | Ty::Any => Ok(()),
        Ty::Bool | Ty::Int | Ty::Float | Ty::MaybeInt | Ty::Match | Ty::Null => {
            Err(format!("{} has no length", ty.noun()))
        }
    }
}

pub(crate) fn text(what: &str, ty: Ty) -> Result<(), String> {
    match ty {
        Ty::Str | Ty::Any => Ok(()),
        Ty::Bool | Ty::Int | Ty::Float | Ty::MaybeInt | Ty::List | Ty::Match | Ty::Null => {
            Err(format!("{what} must be a string, not {}", ty.noun()))
        }
    }
}
