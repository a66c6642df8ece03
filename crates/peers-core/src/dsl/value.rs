//! Run-time values and the three questions about two of them: equal, ordered, contained.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::json;

#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Cow<'a, str>),
    List(Vec<Cow<'a, str>>),
    /// A regex that matched; one that did not is `Null`.
    Match,
    /// A JSON array or object; scalars are turned into the variants above.
    Json(Value),
}

impl Val<'_> {
    /// How a message names the value. Never the value itself, which is the command's output.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Str(_) => "a string",
            Self::List(_) => "a list",
            Self::Match => "a regex match",
            Self::Json(value) => json::kind(value),
        }
    }

    pub(crate) fn from_json(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::String(s) => Self::Str(Cow::Owned(s.clone())),
            Value::Number(n) => {
                if let Some(i) = n.as_i64() {
                    Self::Int(i)
                } else if n.is_u64() {
                    return Err("the JSON file holds an int that is too large".into());
                } else {
                    Self::Float(
                        n.as_f64().filter(|f| f.is_finite()).ok_or("the JSON file holds a bad number")?,
                    )
                }
            }
            Value::Array(_) | Value::Object(_) => Self::Json(value.clone()),
        })
    }
}

/// Equality across kinds is false, ints and floats compare by value.
pub(crate) fn equal(left: &Val<'_>, right: &Val<'_>) -> bool {
    match (left, right) {
        (Val::Null, Val::Null) | (Val::Match, Val::Match) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Str(a), Val::Str(b)) => a == b,
        (Val::List(a), Val::List(b)) => a == b,
        (Val::Json(a), Val::Json(b)) => json_equal(a, b),
        (Val::List(list), Val::Json(Value::Array(items)))
        | (Val::Json(Value::Array(items)), Val::List(list)) => {
            list.len() == items.len()
                && list.iter().zip(items).all(|(text, item)| item.as_str() == Some(text.as_ref()))
        }
        _ => numbers(left, right) == Ok(Some(Ordering::Equal)),
    }
}

fn json_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| json_equal(a, b)))
        }
        (Value::Number(a), Value::Number(b)) => {
            a == b || matches!((Val::from_json(left), Val::from_json(right)), (Ok(a), Ok(b)) if equal(&a, &b))
        }
        _ => left == right,
    }
}

/// The order of two values; `Ok(None)` when a NaN is involved.
pub(crate) fn order(left: &Val<'_>, right: &Val<'_>) -> Result<Option<Ordering>, String> {
    if let (Val::Str(a), Val::Str(b)) = (left, right) {
        return Ok(Some(a.cmp(b)));
    }
    numbers(left, right).map_err(|NotNumbers| format!("cannot order {} and {}", left.noun(), right.noun()))
}

#[derive(Debug, PartialEq, Eq)]
struct NotNumbers;

fn numbers(left: &Val<'_>, right: &Val<'_>) -> Result<Option<Ordering>, NotNumbers> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => Ok(Some(a.cmp(b))),
        (Val::Float(a), Val::Float(b)) => Ok(a.partial_cmp(b)),
        (Val::Int(a), Val::Float(b)) => Ok(int_with_float(*a, *b)),
        (Val::Float(a), Val::Int(b)) => Ok(int_with_float(*b, *a).map(Ordering::reverse)),
        _ => Err(NotNumbers),
    }
}

/// Exact, unlike a comparison after rounding the int.
fn int_with_float(int: i64, float: f64) -> Option<Ordering> {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= TWO_POW_63 {
        return Some(Ordering::Less);
    }
    if float < -TWO_POW_63 {
        return Some(Ordering::Greater);
    }
    let whole = truncate(float)?;
    Some(int.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

/// The int part of a float, when an int can hold it.
pub(crate) fn truncate(float: f64) -> Option<i64> {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    if !(-TWO_POW_63..TWO_POW_63).contains(&float) {
        return None;
    }
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "the range was checked just above"
    )]
    Some(float.trunc() as i64)
}

pub(crate) fn contains(needle: &Val<'_>, hay: &Val<'_>) -> Result<bool, String> {
    match (needle, hay) {
        (Val::Str(needle), Val::Str(hay)) => Ok(hay.contains(needle.as_ref())),
        (Val::Str(needle), Val::List(items)) => Ok(items.contains(needle)),
        (needle, Val::Json(Value::Array(items))) => {
            for item in items {
                if equal(needle, &Val::from_json(item)?) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Val::Str(key), Val::Json(Value::Object(object))) => Ok(object.contains_key(key.as_ref())),
        (needle, hay) => Err(format!("cannot look for {} in {}", needle.noun(), hay.noun())),
    }
}
