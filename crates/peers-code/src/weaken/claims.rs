//! One assertion: what it says, how much, and about what.

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::source::text_of;

/// One thing that a test asserts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    /// How much it says: one of [`EITHER`], [`LOOSE`], [`EXACT`].
    pub(super) strength: u8,
    /// How far the value may be off.
    pub(super) tolerance: f64,
    /// Its tokens.
    pub(super) text: String,
    /// The names in it that are neither the language's nor the runner's.
    pub(super) words: BTreeSet<String>,
}

/// One of several things holds.
pub(super) const EITHER: u8 = 1;
/// Something holds.
pub(super) const LOOSE: u8 = 2;
/// Something equals something.
pub(super) const EXACT: u8 = 3;

/// What a comparison of floating-point numbers allows by default.
const USUAL: f64 = 1e-6;

impl Claim {
    pub(super) fn new(strength: u8, tokens: &[&str]) -> Self {
        let words = tokens.iter().filter(|token| is_name(token)).map(|&token| token.to_owned()).collect();
        Self { strength, tolerance: 0.0, text: tokens.join(" "), words }
    }

    pub(super) fn within(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Whether this says at least as much as another.
    pub(super) fn says_as_much(&self, other: &Self) -> bool {
        self.strength >= other.strength && self.tolerance <= other.tolerance.max(USUAL)
    }

    /// Whether both speak of a common name.
    pub(super) fn is_about(&self, other: &Self) -> bool {
        self.text == other.text || !self.words.is_disjoint(&other.words)
    }
}

/// Whether a token is a name that a test gives or takes, not one of a language or a runner.
pub(super) fn is_name(token: &str) -> bool {
    const COMMON: &str =
        "self this t assert expect require pytest unittest np math len str int float list dict
        set tuple bool sorted abs isinstance True False None true false null undefined nil
        and or not is in if else Some Ok Err vec String to_string await new approx length
        lambda";
    token.starts_with(|c: char| c.is_alphabetic() || c == '_') && !super::settings::among(COMMON, token)
}

/// The tokens of a node, comments left out; a string is one.
pub(super) fn tokens<'t>(node: Node<'_>, text: &'t str) -> Vec<&'t str> {
    let mut out = Vec::new();
    crate::testing::walk(node, &mut |inner| {
        if inner.kind().ends_with("comment") {
            return false;
        }
        let whole = inner.child_count() == 0
            || (inner.kind().contains("string") && inner.kind() != "concatenated_string")
            || inner.kind() == "char_literal";
        // Line breaks of Go are tokens.
        let token = text_of(inner, text).trim();
        if whole && !token.is_empty() {
            out.push(token);
        }
        !whole
    });
    out
}

/// The parts of tokens between separators outside of all brackets; a last empty one is left out.
pub(super) fn split<'a, 't>(tokens: &'a [&'t str], at: &[&str]) -> Vec<&'a [&'t str]> {
    let (mut depth, mut start, mut out) = (0_i32, 0, Vec::new());
    for (place, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            token if depth == 0 && at.contains(&token) => {
                out.extend(tokens.get(start..place));
                start = place + 1;
            }
            _ => {}
        }
    }
    out.extend(tokens.get(start..).filter(|rest| !rest.is_empty()));
    out
}

/// Whether a condition always holds, or never.
pub(super) fn constant(tokens: &[&str]) -> Option<bool> {
    match bare(tokens) {
        ["True" | "true" | "1"] => Some(true),
        ["False" | "false" | "0" | "None" | "null" | "nil"] => Some(false),
        ["not" | "!", rest @ ..] => constant(rest).map(|holds| !holds),
        [only] => (only.starts_with(['"', '\'']) || only.parse::<f64>().is_ok()).then_some(true),
        _ => None,
    }
}

/// Without the brackets around all of it.
fn bare<'a, 't>(mut tokens: &'a [&'t str]) -> &'a [&'t str] {
    while let ["(", inner @ .., ")"] = tokens {
        let mut depth = 0_i32;
        let step = |token: &&str| i32::from(*token == "(") - i32::from(*token == ")");
        if inner.iter().map(step).any(|step| {
            depth += step;
            depth < 0
        }) {
            break;
        }
        tokens = inner;
    }
    tokens
}

/// What is asserted where a condition is.
pub(super) fn condition(tokens: &[&str]) -> Vec<Claim> {
    let inner = bare(tokens);
    // A tuple is always true in Python.
    let tuple = inner.len() < tokens.len() && split(inner, &[","]).len() > 1;
    if tuple || constant(inner) == Some(true) {
        return Vec::new();
    }
    if constant(inner) == Some(false) {
        return vec![Claim::new(LOOSE, inner)];
    }
    let either = split(inner, &["or", "||"]);
    if either.len() > 1 {
        if either.iter().any(|part| constant(part) == Some(true)) {
            return Vec::new();
        }
        let open: Vec<_> = either.iter().filter(|part| constant(part).is_none()).collect();
        return match open.as_slice() {
            [only] => condition(only),
            _ => checked(Claim::new(EITHER, inner)),
        };
    }
    let all = split(inner, &["and", "&&"]);
    if all.len() > 1 {
        return all.iter().flat_map(|part| condition(part)).collect();
    }
    for operator in ["==", "===", "is", "<=", ">=", "<", ">"] {
        let [left, right] = split(inner, &[operator])[..] else { continue };
        let off = left.iter().any(|token| matches!(*token, "abs" | "fabs" | "Abs"));
        if let ([bound], true) = (right, off && operator.starts_with('<')) {
            return checked(Claim::new(EXACT, inner).within(number(bound)));
        }
        let denied = operator == "is" && right.first() == Some(&"not");
        let exact = matches!(operator, "==" | "===" | "is") && !denied;
        return equal(left, right, if exact { EXACT } else { LOOSE });
    }
    checked(Claim::new(LOOSE, inner))
}

/// Two values are the same.
pub(super) fn equal(left: &[&str], right: &[&str], strength: u8) -> Vec<Claim> {
    if bare(left) == bare(right) {
        return Vec::new();
    }
    let strength = if split(left, &["||", "or"]).len() > 1 { EITHER } else { strength };
    let both: Vec<&str> = left.iter().chain(&["=="]).chain(right).copied().collect();
    checked(Claim::new(strength, &both).within(tolerance(&both)))
}

/// What speaks of constants alone holds whatever the product does.
pub(super) fn checked(claim: Claim) -> Vec<Claim> {
    if claim.words.is_empty() { Vec::new() } else { vec![claim] }
}

/// `approx(x, abs=0.1)`, `atol=0.1`, `delta=0.1`, `places=3`.
pub(super) fn tolerance(tokens: &[&str]) -> f64 {
    let named = tokens.windows(3).filter_map(|window| match window {
        ["abs" | "rel" | "atol" | "rtol" | "delta", "=", value] => Some(number(value)),
        ["places" | "decimal", "=", value] => Some(10_f64.powf(-number(value))),
        _ => None,
    });
    named.fold(0.0, f64::max)
}

/// A number, or without limit.
pub(super) fn number(token: &str) -> f64 {
    let plain = token.trim_end_matches("f64").trim_end_matches("f32").replace('_', "");
    plain.parse().unwrap_or(if plain.contains("EPSILON") { 0.0 } else { f64::INFINITY })
}
