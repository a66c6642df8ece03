//! What an assertion says, in each language.

use tree_sitter::Node;

use super::claims::{
    Claim, EITHER, EXACT, LOOSE, checked, condition, constant, equal, number, split, tokens, tolerance,
};
use super::settings::among;
use crate::language::Language;
use crate::source::text_of;
use crate::symbol::children;
use crate::testing::asserts;

/// What a function asserts of its arguments.
#[derive(Clone, Copy)]
enum Says {
    /// The first one holds.
    Holds,
    /// The first two are the same; loosely, that they are not.
    Same(u8),
    /// The first two are the same but for the third: a number of digits.
    Digits,
    /// The same, for a difference.
    Near,
    /// Something, this surely.
    Something(u8),
}

/// The functions of runners and of libraries of assertions, by their last names.
const FUNCTIONS: [(Says, &str); 7] = [
    (Says::Holds, "assert assert_ assertTrue ok isTrue true True"),
    (
        Says::Same(EXACT),
        "assertIs assert_eq equal equals eql eq is strictEqual deepEqual deepStrictEqual toBe toEqual
        toStrictEqual Equal Equals EqualValues Exactly Same JSONEq ElementsMatch",
    ),
    (
        Says::Same(LOOSE),
        "assertNotEqual assertIsNot assert_ne notEqual notStrictEqual notDeepEqual not NotEqual",
    ),
    (Says::Digits, "assertAlmostEqual assert_almost_equal toBeCloseTo"),
    (Says::Near, "assert_allclose closeTo approximately InDelta InEpsilon"),
    (Says::Something(EXACT), "assertIsNone fail"),
    (
        Says::Something(LOOSE),
        "panic unreachable toBeDefined toBeGreaterThan toBeGreaterThanOrEqual toBeLessThan toBeLessThanOrEqual
        toBeInstanceOf toHaveBeenCalled exist above below toBeFalsy toBeTruthy assert_called assert_called_once
        NotNil NotEmpty Error NotZero Panics Greater GreaterOrEqual Less",
    ),
];

/// What a node asserts; nothing if it is no assertion.
pub(super) fn claims(language: Language, node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    match language {
        Language::Python => python(node, text),
        Language::JavaScript => javascript(node, text),
        Language::Rust => rust(node, text),
        Language::Go => go(node, text),
    }
}

/// What a function that is known by its name asserts.
fn known(name: &str, given: &[&[&str]], all: &[&str]) -> Option<Vec<Claim>> {
    let (says, _) = FUNCTIONS.iter().find(|(_, names)| among(names, name))?;
    let near = |left: &[&str], right: &[&str], off: f64| -> Vec<Claim> {
        equal(left, right, EXACT).into_iter().map(|claim| claim.within(off)).collect()
    };
    Some(match (says, given) {
        (Says::Holds, [what, ..]) => condition(what),
        (Says::Same(strength), [left, right, ..]) => equal(left, right, *strength),
        (Says::Digits, [left, right, [digits], ..]) => near(left, right, 10_f64.powf(-number(digits))),
        (Says::Near, [left, right, [off], ..]) => near(left, right, number(off)),
        (Says::Digits | Says::Near, [left, right, ..]) => {
            near(left, right, if name == "toBeCloseTo" { 0.01 } else { tolerance(all) })
        }
        (Says::Something(strength), _) => vec![Claim::new(*strength, all)],
        _ => return None,
    })
}

/// An assertion by a function that is not seen.
fn opaque(name: &str, all: &[&str]) -> Vec<Claim> {
    let of_runner = name.strip_prefix("assert").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    vec![Claim::new(if of_runner { LOOSE } else { EXACT }, all)]
}

/// The name of what a node calls, and the tokens of its arguments with their brackets.
fn call<'t>(node: Node<'_>, text: &'t str) -> Option<(&'t str, Vec<&'t str>)> {
    if !matches!(node.kind(), "call" | "call_expression") {
        return None;
    }
    let name = text_of(node.child_by_field_name("function")?, text);
    Some((name, tokens(node.child_by_field_name("arguments")?, text)))
}

/// The arguments of a call, without the brackets around them.
fn arguments<'a, 't>(all: &'a [&'t str]) -> Vec<&'a [&'t str]> {
    split(all.get(1..all.len().saturating_sub(1)).unwrap_or_default(), &[","])
}

fn python(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    if node.kind() == "assert_statement" {
        return Some(condition(&tokens(node.named_child(0)?, text)));
    }
    let (name, all) = call(node, text)?;
    let name = name.rsplit('.').next().unwrap_or(name);
    let mut given = arguments(&all);
    given.retain(|part| !matches!(part, ["msg" | "err_msg", "=", ..]));
    Some(match (name, given.as_slice()) {
        (
            "raises" | "assertRaises" | "assertRaisesRegex" | "warns" | "assertWarns" | "assertRaisesMessage",
            [what, ..],
        ) => {
            let any = matches!(what, ["Exception" | "BaseException"]);
            vec![Claim::new(if any { LOOSE } else { EXACT }, &all)]
        }
        ("assertFalse", [what, ..]) if constant(what) == Some(false) => Vec::new(),
        _ if !asserts(name) && name != "fail" => return None,
        (_, given) => known(name, given, &all).unwrap_or_else(|| match given {
            [left, right, ..] if name.to_lowercase().ends_with("equal") => equal(left, right, EXACT),
            _ => opaque(name, &tokens(node, text)),
        }),
    })
}

fn javascript(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    if node.kind() == "member_expression" {
        let whole = tokens(node, text);
        return (whole.first() == Some(&"expect")).then(|| checked(Claim::new(LOOSE, &whole)));
    }
    let (name, all) = call(node, text)?;
    let whole = tokens(node, text);
    let first = name.split(['.', '(', '[']).next().unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let given = arguments(&all);
    if first == "expect" {
        return expected(node, text, last, &given);
    }
    match known(last, &given, &whole).filter(|_| matches!(first, "assert" | "t" | "chai")) {
        Some(found) => Some(found),
        None if first == "t" && among("skip todo test plan end diagnostic", last) => None,
        None => (first == "t" || asserts(first) || name.contains(".should")).then(|| opaque(last, &whole)),
    }
}

/// What `expect(subject).matcher(given)` says.
fn expected(node: Node<'_>, text: &str, matcher: &str, given: &[&[&str]]) -> Option<Vec<Claim>> {
    let (chain, whole) = (node.child_by_field_name("function")?, tokens(node, text));
    // Without a matcher nothing is asserted.
    if chain.kind() != "member_expression" || matches!(given, [["expect", ".", "anything", ..], ..]) {
        return Some(Vec::new());
    }
    let mut subjects = std::iter::successors(Some(chain), |node| node.child_by_field_name("object"));
    let (_, subject) = subjects.find_map(|node| call(node, text)).unwrap_or_default();
    let subject = arguments(&subject).first().copied().unwrap_or_default().to_vec();
    let denied = text_of(chain, text).contains(".not.");
    let both: Vec<&[&str]> = std::iter::once(subject.as_slice()).chain(given.iter().copied()).collect();
    let is = among("toBe toEqual toStrictEqual equal eql eq toBeTruthy ok", matcher);
    let truly = matches!(given, [["true"]]);
    let mut found = match given {
        [] | [["true"]] if is && !denied => condition(&subject),
        [] if among("toThrow throw toThrowError", matcher) => vec![Claim::new(LOOSE, &whole)],
        _ => known(matcher, &both, &whole).unwrap_or_else(|| vec![Claim::new(EXACT, &whole)]),
    };
    for claim in &mut found {
        claim.strength = match claim.strength {
            LOOSE if truly && is && !denied => EXACT,
            strength if denied => strength.min(LOOSE),
            strength => strength,
        };
    }
    Some(found)
}

fn rust(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    if let Some((name, all)) = call(node, text) {
        return match name.rsplit(['.', ':']).next().unwrap_or(name) {
            "unwrap_err" | "expect_err" => Some(vec![Claim::new(LOOSE, &tokens(node, text))]),
            "expect" => None,
            name => asserts(name).then(|| vec![Claim::new(EXACT, &all)]),
        };
    }
    let name = node.child_by_field_name("macro").filter(|_| node.kind() == "macro_invocation")?;
    let name = text_of(name, text).rsplit("::").next()?;
    let name = name.trim_start_matches("debug_").trim_start_matches("prop_");
    let all = tokens(children(node).find(|child| child.kind() == "token_tree")?, text);
    let other = || asserts(name).then(|| vec![Claim::new(EXACT, &tokens(node, text))]);
    known(name, &arguments(&all), &all).or_else(other)
}

fn go(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    let (name, all) = call(node, text)?;
    let (of, last) = name.rsplit_once('.').unwrap_or(("", name));
    let first = of.split(['.', '(']).next().unwrap_or(of);
    if among("t b f tb", of) && among("Error Errorf Fatal Fatalf Fail FailNow", last) {
        return Some(failing(node, text));
    }
    let other = || vec![Claim::new(EXACT, &tokens(node, text))];
    if !among("assert require is qt td", first) {
        return (asserts(last) || asserts(first)).then(other);
    }
    let mut given = arguments(&all);
    given.retain(|part| !matches!(part, ["t"]));
    Some(known(last, &given, &all).unwrap_or_else(other))
}

/// What a call that fails a test asserts: that the condition around it does not hold.
fn failing(node: Node<'_>, text: &str) -> Vec<Claim> {
    let above = std::iter::successors(node.parent(), Node::parent)
        .take_while(|node| !matches!(node.kind(), "func_literal" | "function_declaration"));
    let mut branches = above.filter(|node| node.kind() == "if_statement");
    let Some(when) = branches.next().and_then(|branch| branch.child_by_field_name("condition")) else {
        return vec![Claim::new(LOOSE, &tokens(node, text))];
    };
    let all = tokens(when, text);
    let narrowed = split(&all, &["&&"]);
    if narrowed.iter().any(|part| constant(part) == Some(false)) {
        return Vec::new();
    }
    if narrowed.len() > 1 {
        return checked(Claim::new(EITHER, &all));
    }
    let parts = split(&all, &["||"]).into_iter();
    let claims = parts.flat_map(|part| {
        if let [left, right] = split(part, &["!="])[..] {
            return equal(left, right, EXACT);
        }
        // It fails where the difference is larger: it asserts that it is smaller.
        let turned: Vec<&str> = part.iter().map(|t| if *t == ">" { "<" } else { t }).collect();
        let surely = |claim: &Claim| if claim.tolerance > 0.0 { EXACT } else { LOOSE };
        condition(&turned).into_iter().map(|c| Claim { strength: surely(&c), ..c }).collect()
    });
    claims.collect()
}
