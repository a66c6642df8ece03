//! What each test of a set of files asserts, as far as it is come to.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::File;
use super::claims::{
    Claim, EXACT, LOOSE, checked, condition, constant, equal, is_name, number, split, tokens,
};
use super::places::{self, Modules};
use crate::language::Language;
use crate::source::{Source, text_of};
use crate::symbol::children;
use crate::testing::{SkipKind, Test, asserts, walk};

/// Nothing is counted further.
pub(super) const MOST: u64 = 10_000;
/// How deep blocks and calls of helpers are followed.
const DEEPEST: usize = 100;
const DEEPEST_CALL: usize = 4;

/// What a test asserts.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) file: usize,
    pub(super) path: String,
    /// How surely a runner finds it.
    pub(super) place: u8,
    /// Each claim, and how often its cases repeat it.
    pub(super) claims: Vec<(Claim, u64)>,
    /// Marks that keep it from running or from failing.
    pub(super) skips: u64,
    /// It is not run at all.
    pub(super) off: bool,
    /// The names in it.
    pub(super) words: BTreeSet<String>,
}

/// All changed files, before or after.
pub(super) struct Version<'a, 't> {
    files: &'a [File<'t>],
    /// Functions that tests may call, by their names.
    helpers: BTreeMap<&'a str, (&'a Source<'t>, Node<'a>)>,
}

impl<'a, 't> Version<'a, 't> {
    pub(super) fn new(files: &'a [File<'t>]) -> Self {
        let mut helpers = BTreeMap::new();
        for file in files {
            let source = &file.source;
            // What the product checks by itself is no assertion of a test; in Rust tests stand in its files.
            if !file.is_test() && source.tests().0.is_empty() {
                continue;
            }
            walk(source.root(), &mut |node| {
                if let Some((name, body)) = function(node, source.text()) {
                    helpers.insert(name, (source, body));
                }
                true
            });
        }
        Self { files, helpers }
    }

    /// The tests that a runner finds; a table whose cases cannot be counted has `unknown` of them.
    pub(super) fn tests(&self, unknown: u64, modules: &Modules) -> Vec<Measured> {
        let mut out = Vec::new();
        for file in self.files {
            let source = &file.source;
            let place = places::place(file, modules);
            let (tests, skips) = source.tests();
            let gone = gone(source);
            for (at, test) in tests.iter().enumerate() {
                let inner = tests.iter().any(|outer| outer.body != test.body && covers(outer, test));
                let later = tests.iter().skip(at + 1).any(|later| later.path == test.path);
                let shadowed = later && source.language() == Language::Python;
                let Some(body) = body_of(source, test).filter(|_| !inner && !shadowed) else { continue };
                if gone.contains(&test.path.as_str()) || !is_found(source, body) {
                    continue;
                }
                let of_this = skips.iter().filter(|skip| {
                    let target = skip.target.as_str();
                    let around = test.path.strip_prefix(target).is_some_and(|rest| {
                        rest.is_empty() || target.is_empty() || rest.starts_with(['.', ' ', '/', ':'])
                    });
                    around || (test.line..=test.end).contains(&skip.line)
                });
                let of_this: Vec<SkipKind> = of_this.map(|skip| skip.kind).collect();
                let under = modules_under_condition(source, body);
                let text = source.text();
                let mut walk = Walk { version: self, unknown, claims: Vec::new(), calls: Vec::new() };
                if test.asserts.iter().any(|claim| claim == "should_panic") {
                    walk.claims.push((Claim::new(EXACT, &tokens(body, text)), 1));
                }
                walk.node(source, body, cases(source, body, unknown), 0);
                let locals = locals(body, text);
                for (claim, _) in &mut walk.claims {
                    claim.words = meant(&claim.words, &locals);
                }
                out.push(Measured {
                    file: file.at,
                    path: test.path.clone(),
                    place,
                    claims: walk.claims,
                    skips: count(of_this.len() + under),
                    off: under > 0
                        || of_this.iter().any(|kind| matches!(kind, SkipKind::Skip | SkipKind::MayFail)),
                    words: tokens(body, text).into_iter().filter(|t| is_name(t)).map(str::to_owned).collect(),
                });
            }
        }
        out
    }
}

pub(super) fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

type Locals<'t> = BTreeMap<&'t str, BTreeSet<String>>;

/// What the variables of a test were made of.
fn locals<'t>(body: Node<'_>, text: &'t str) -> Locals<'t> {
    let mut out: Locals<'t> = BTreeMap::new();
    walk(body, &mut |node| {
        let of = |fields: [&str; 3]| fields.iter().find_map(|field| node.child_by_field_name(field));
        let gives = matches!(
            node.kind(),
            "assignment"
                | "variable_declarator"
                | "let_declaration"
                | "short_var_declaration"
                | "assignment_expression"
        );
        if let (true, Some(left), Some(right)) =
            (gives, of(["left", "name", "pattern"]), of(["right", "value", "value"]))
        {
            let words =
                tokens(right, text).into_iter().filter(|token| is_name(token)).map(str::to_owned).collect();
            let words = meant(&words, &out);
            for name in tokens(left, text).into_iter().filter(|token| is_name(token)) {
                out.entry(name).or_default().extend(words.iter().cloned());
            }
        }
        true
    });
    out
}

/// Names, with what a variable was made of in place of the variable.
fn meant(words: &BTreeSet<String>, locals: &Locals<'_>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for word in words {
        match locals.get(word.as_str()).filter(|made_of| !made_of.is_empty()) {
            Some(made_of) => out.extend(made_of.iter().cloned()),
            None => drop(out.insert(word.clone())),
        }
    }
    out
}

fn covers(outer: &Test, inner: &Test) -> bool {
    outer.body.start <= inner.body.start && inner.body.end <= outer.body.end
}

fn body_of<'a>(source: &'a Source<'_>, test: &Test) -> Option<Node<'a>> {
    let mut node = source.root().descendant_for_byte_range(test.body.start, test.body.end)?;
    while let Some(parent) = node.parent().filter(|parent| parent.byte_range() == node.byte_range()) {
        node = parent;
    }
    Some(node)
}

/// Tests that the module takes back: `del test_a`, `test_a = None`.
fn gone<'t>(source: &Source<'t>) -> Vec<&'t str> {
    if source.language() != Language::Python {
        return Vec::new();
    }
    let mut out = Vec::new();
    for node in children(source.root()) {
        match (node.kind(), node.named_child(0)) {
            ("delete_statement", _) => out.extend(tokens(node, source.text())),
            ("expression_statement", Some(set)) if set.kind() == "assignment" => {
                out.extend(set.child_by_field_name("left").map(|left| text_of(left, source.text())));
            }
            _ => {}
        }
    }
    out
}

/// Whether a runner finds the test where it stands in its file: not below what never holds, nor in a class of Python that
/// is none of tests.
fn is_found(source: &Source<'_>, body: Node<'_>) -> bool {
    let text = source.text();
    let mut inner = body;
    while let Some(node) = inner.parent() {
        let part = |field| node.child_by_field_name(field);
        if node.kind() == "if_statement" && part("consequence") == Some(inner) {
            let when = part("condition").map(|when| tokens(when, text)).unwrap_or_default();
            if constant(&when) == Some(false) || when.contains(&"__name__") {
                return false;
            }
        }
        if node.kind() == "class_definition" && source.language() == Language::Python {
            let bases = part("superclasses").is_some_and(|bases| text_of(bases, text).contains("Test"));
            let whole = part("body").map(|body| tokens(body, text));
            let off = whole.is_some_and(|all| all.windows(3).any(|w| w == ["__test__", "=", "False"]));
            if off || !(bases || part("name").is_some_and(|name| text_of(name, text).starts_with("Test"))) {
                return false;
            }
        }
        inner = node;
    }
    true
}

/// How many conditions under which tests are not always compiled stand at the modules of Rust around a test.
fn modules_under_condition(source: &Source<'_>, body: Node<'_>) -> usize {
    let text = source.text();
    let mut count = 0;
    let mut above = body.parent();
    while let Some(node) = above.filter(|_| source.language() == Language::Rust) {
        if node.kind() == "mod_item" {
            count += attributes(node, text).filter(|text| is_condition(text)).count();
        }
        let within = children(node).filter(|child| child.kind() == "inner_attribute_item");
        count += within.filter(|child| is_condition(text_of(*child, text))).count();
        above = node.parent();
    }
    count
}

/// Whether an attribute of Rust asks for more than a run of the tests on a usual system.
pub(super) fn is_condition(attribute: &str) -> bool {
    let words =
        || attribute.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words().next() == Some("cfg")
        && (!attribute.contains(char::is_alphabetic)
            || words().count() == 2 && attribute.contains("any()")
            || words().any(|word| {
                !matches!(word, "cfg" | "all" | "test" | "unix" | "target_os" | "linux" | "macos")
            }))
}

/// The attributes before an item, and comments between them.
pub(super) fn attribute_nodes(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    std::iter::successors(node.prev_sibling(), Node::prev_sibling)
        .take_while(|node| node.kind() == "attribute_item" || node.kind().ends_with("comment"))
}

/// The same as text.
pub(super) fn attributes<'t>(node: Node<'_>, text: &'t str) -> impl Iterator<Item = &'t str> {
    attribute_nodes(node).map(move |node| text_of(node, text))
}

/// How many cases the table at a test has.
fn cases(source: &Source<'_>, body: Node<'_>, unknown: u64) -> u64 {
    let text = source.text();
    let Some(function) = body.parent() else { return 1 };
    let cases = match source.language() {
        Language::Go => 1,
        Language::Rust => {
            let of = |name: &str| name.starts_with("#[case") || name.starts_with("#[test_case");
            count(attributes(function, text).filter(|attribute| of(attribute)).count().max(1))
        }
        Language::Python => {
            let whole = function.parent().filter(|parent| parent.kind() == "decorated_definition");
            let decorators = whole.into_iter().flat_map(children).filter(|child| child.kind() == "decorator");
            let tables = decorators.filter_map(|decorator| {
                let call = decorator.named_child(0)?;
                let name = text_of(call.child_by_field_name("function")?, text);
                let place = usize::from(name.ends_with("parametrize"));
                (place == 1 || name.ends_with("parameterized.expand"))
                    .then(|| children(call.child_by_field_name("arguments")?).nth(place))?
            });
            tables.fold(1, |all, table| all * elements(source, table, 0).unwrap_or(unknown).min(MOST))
        }
        Language::JavaScript => {
            // `it.each([...])("...", () => {})`
            let call = function.parent().and_then(|arguments| arguments.parent());
            let each = call.and_then(|call| call.child_by_field_name("function"));
            let each = each.filter(|each| each.kind() == "call_expression");
            let table = each
                .and_then(|each| each.child_by_field_name("arguments"))
                .and_then(|list| list.named_child(0));
            table.map_or(1, |table| elements(source, table, 0).unwrap_or(unknown))
        }
    };
    cases.min(MOST)
}

/// How many elements a loop goes over, where that can be told.
fn elements(source: &Source<'_>, node: Node<'_>, depth: usize) -> Option<u64> {
    if depth > 8 {
        return None;
    }
    let text = source.text();
    let again = |node: Node<'_>| elements(source, node, depth + 1);
    let listed =
        |node: Node<'_>| count(children(node).filter(|child| !child.kind().ends_with("comment")).count());
    match node.kind() {
        "list" | "tuple" | "set" | "dictionary" | "array" | "object" | "array_expression" => {
            Some(listed(node))
        }
        "composite_literal" => Some(listed(node.child_by_field_name("body")?)),
        "macro_invocation" => {
            let all = tokens(node, text);
            let inner = all.get(3..all.len().checked_sub(1)?)?;
            Some(count(split(inner, &[","]).len()))
        }
        "reference_expression"
        | "parenthesized_expression"
        | "as_expression"
        | "range_clause"
        | "expression_list" => again(
            node.child_by_field_name("right")
                .or_else(|| node.child_by_field_name("value"))
                .or_else(|| node.named_child(0))?,
        ),
        "range_expression" => match tokens(node, text)[..] {
            [from, "..", to] => Some(to.parse::<u64>().ok()?.saturating_sub(from.parse().ok()?)),
            _ => None,
        },
        "identifier" => again(resolve(node, text)?),
        "call" | "call_expression" => {
            let function = node.child_by_field_name("function")?;
            let name = text_of(function, text);
            let first = children(node.child_by_field_name("arguments")?).next();
            match name.rsplit(['.', ':']).next()? {
                "range" => match tokens(node, text)[..] {
                    ["range", "(", to, ")"] => to.parse().ok(),
                    _ => None,
                },
                "enumerate" | "zip" | "subtests" => again(first?),
                "entries" if name == "Object.entries" => again(first?),
                "iter" | "into_iter" | "items" | "entries" | "values" => {
                    let of = ["object", "value", "operand"]
                        .iter()
                        .find_map(|field| function.child_by_field_name(field));
                    again(of?)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// What a name was given nearest before, or around.
fn resolve<'n>(name: Node<'n>, text: &str) -> Option<Node<'n>> {
    let wanted = text_of(name, text);
    let mut above = name.parent();
    while let Some(node) = above {
        let mut found = None;
        for child in children(node) {
            let given = if child.kind() == "expression_statement" {
                child.named_child(0).unwrap_or(child)
            } else {
                child
            };
            for given in std::iter::once(given).chain(children(given)) {
                let of = |fields: [&str; 3]| fields.iter().find_map(|field| given.child_by_field_name(field));
                let left = of(["left", "name", "pattern"]).filter(|left| text_of(*left, text) == wanted);
                let is_one = matches!(
                    given.kind(),
                    "assignment"
                        | "variable_declarator"
                        | "let_declaration"
                        | "const_item"
                        | "static_item"
                        | "short_var_declaration"
                        | "var_spec"
                );
                found = left.filter(|_| is_one).and_then(|_| of(["right", "value", "value"])).or(found);
            }
        }
        if found.is_some() {
            return found;
        }
        above = node.parent();
    }
    None
}

/// The name and the body of a function that can be called.
fn function<'n, 't>(node: Node<'n>, text: &'t str) -> Option<(&'t str, Node<'n>)> {
    let body = match node.kind() {
        "function_definition"
        | "function_declaration"
        | "method_declaration"
        | "function_item"
        | "method_definition" => node,
        "variable_declarator" => node
            .child_by_field_name("value")
            .filter(|value| matches!(value.kind(), "arrow_function" | "function_expression"))?,
        _ => return None,
    };
    Some((text_of(node.child_by_field_name("name")?, text), body.child_by_field_name("body")?))
}

struct Walk<'v, 'a, 't> {
    version: &'v Version<'a, 't>,
    unknown: u64,
    claims: Vec<(Claim, u64)>,
    /// The helpers that are being followed.
    calls: Vec<usize>,
}

impl Walk<'_, '_, '_> {
    fn node(&mut self, source: &Source<'_>, node: Node<'_>, times: u64, depth: usize) {
        if depth > DEEPEST || times == 0 || count(self.claims.len()) > MOST {
            return;
        }
        let text = source.text();
        let part = |field: &str| node.child_by_field_name(field);
        match node.kind() {
            "block" | "statement_block" | "statement_list" => {
                for child in children(node) {
                    self.node(source, child, times, depth + 1);
                    if ends(child) {
                        return;
                    }
                }
                return;
            }
            // Of another function, which is followed where it is called.
            "function_definition" | "class_definition" | "function_item" | "function_declaration" => return,
            "if_statement" | "if_expression" | "while_statement" | "while_expression" => {
                let holds = part("condition").and_then(|condition| constant(&tokens(condition, text)));
                let never = if holds == Some(false) { part("consequence").or(part("body")) } else { None };
                for child in children(node).filter(|child| Some(*child) != never) {
                    self.node(source, child, times, depth + 1);
                }
                return;
            }
            "for_statement" | "for_in_statement" | "for_expression" => {
                let range = children(node).find(|child| child.kind() == "range_clause");
                let over = part("right")
                    .or(part("value"))
                    .or(range)
                    .filter(|_| node.kind() != "for_statement" || range.is_some() || part("left").is_some());
                let cases = over.map_or(1, |over| elements(source, over, 0).unwrap_or(self.unknown));
                if let Some(body) = part("body") {
                    self.node(source, body, (times * cases).min(MOST), depth + 1);
                }
                return;
            }
            "try_statement" if swallows(node, text) => return,
            _ => {}
        }
        let found = match source.language() {
            Language::Python => python(node, text),
            Language::JavaScript => javascript(node, text),
            Language::Rust => rust(node, text),
            Language::Go => go(node, text),
        };
        if let Some(helper) = self.helper(node, text) {
            self.follow(helper, times, depth);
        } else if let Some(found) = found {
            self.claims.extend(found.into_iter().map(|claim| (claim, times)));
            // With a block: `with pytest.raises(...)` stands beside it, not around it.
            return;
        }
        // `[1, 2].forEach((x) => ...)`
        let mut inner = times;
        if let Some(called) = part("function").filter(|called| text_of(*called, text).ends_with(".forEach")) {
            let over = called.child_by_field_name("object");
            inner = over
                .map_or(1, |over| elements(source, over, 0).unwrap_or(self.unknown))
                .saturating_mul(times)
                .min(MOST);
        }
        for child in children(node) {
            self.node(source, child, inner, depth + 1);
        }
    }

    /// The helper that a node calls, by its place in the list of all.
    fn helper(&self, node: Node<'_>, text: &str) -> Option<usize> {
        if !matches!(node.kind(), "call" | "call_expression") {
            return None;
        }
        let name = text_of(node.child_by_field_name("function")?, text);
        let (of, last) = name.rsplit_once(['.', ':']).unwrap_or(("", name));
        let own =
            of.is_empty() || matches!(of.trim_end_matches(':'), "self" | "cls" | "this" | "Self" | "super");
        let by_module = of.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':') && of != "t";
        if !own && !by_module {
            return None;
        }
        self.version.helpers.keys().position(|helper| *helper == last)
    }

    fn follow(&mut self, helper: usize, times: u64, depth: usize) {
        if self.calls.len() >= DEEPEST_CALL || self.calls.contains(&helper) {
            return;
        }
        if let Some((source, body)) = self.version.helpers.values().nth(helper).copied() {
            self.calls.push(helper);
            self.node(source, body, times, depth + 1);
            self.calls.pop();
        }
    }
}

/// Whether nothing after this statement is come to.
fn ends(node: Node<'_>) -> bool {
    let inner =
        if node.kind() == "expression_statement" { node.named_child(0).unwrap_or(node) } else { node };
    matches!(
        inner.kind(),
        "return_statement"
            | "raise_statement"
            | "throw_statement"
            | "return_expression"
            | "break_statement"
            | "continue_statement"
    )
}

/// Whether a failed assertion in a `try` is caught, and nothing comes of it.
fn swallows(node: Node<'_>, text: &str) -> bool {
    children(node).any(|clause| {
        let broad = match clause.kind() {
            "catch_clause" => true,
            "except_clause" => {
                let all = tokens(clause, text);
                let caught = all.split(|token| *token == ":").next().unwrap_or_default();
                caught.len() == 1
                    || caught.iter().any(|t| matches!(*t, "AssertionError" | "Exception" | "BaseException"))
            }
            _ => false,
        };
        // What is thrown on, asserted or failed there is no silence.
        let speaks = |token: &&str| matches!(*token, "raise" | "throw" | "fail" | "done") || asserts(token);
        let all = tokens(clause, text);
        // What is caught is named before the colon.
        let body = all.iter().skip_while(|token| clause.kind() == "except_clause" && **token != ":");
        broad && !body.into_iter().any(speaks)
    })
}

/// The arguments of a call, as tokens.
fn arguments<'a, 't>(all: &'a [&'t str]) -> Vec<&'a [&'t str]> {
    match all {
        ["(", inner @ .., ")"] => split(inner, &[","]),
        _ => Vec::new(),
    }
}

fn python(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    if node.kind() == "assert_statement" {
        return Some(condition(&tokens(node.named_child(0)?, text)));
    }
    let (name, all) = call(node, text)?;
    let name = name.rsplit('.').next().unwrap_or(name);
    let parts: Vec<_> =
        arguments(&all).into_iter().filter(|part| !matches!(part, ["msg" | "err_msg", "=", ..])).collect();
    Some(match (name, parts.as_slice()) {
        (
            "raises" | "assertRaises" | "assertRaisesRegex" | "warns" | "assertWarns" | "assertRaisesMessage",
            [what, ..],
        ) => {
            let any = matches!(what, ["Exception" | "BaseException"]);
            vec![Claim::new(if any { LOOSE } else { EXACT }, &all)]
        }
        ("assertTrue" | "assert_", [what, ..]) => condition(what),
        ("assertFalse", [what, ..]) if constant(what) == Some(false) => Vec::new(),
        ("assertAlmostEqual" | "assert_almost_equal" | "assert_allclose", [left, right, ..]) => {
            let within = tolerance_of(&all, parts.get(2).copied());
            equal(left, right, EXACT).into_iter().map(|claim| claim.within(within)).collect()
        }
        ("assertIs" | "assertNotEqual" | "assertIsNot", [left, right, ..]) => {
            equal(left, right, if name == "assertIs" { EXACT } else { LOOSE })
        }
        (_, [left, right, ..]) if name.starts_with("assert") && name.to_lowercase().ends_with("equal") => {
            equal(left, right, EXACT)
        }
        ("assertIsNone" | "fail", _) => vec![Claim::new(EXACT, &all)],
        _ if name.starts_with("assert_called") || name.starts_with("assert_has_calls") => {
            let with = name.ends_with("with") || name.ends_with("calls");
            vec![Claim::new(if with { EXACT } else { LOOSE }, &tokens(node, text))]
        }
        _ if !asserts(name) => return None,
        _ => opaque(name, &tokens(node, text)),
    })
}

fn tolerance_of(all: &[&str], third: Option<&[&str]>) -> f64 {
    let named = super::claims::tolerance(all);
    match third {
        Some([places]) => 10_f64.powf(-number(places)),
        _ => named,
    }
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

fn javascript(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    if node.kind() == "member_expression" {
        let all = tokens(node, text);
        return (all.first() == Some(&"expect")).then(|| checked(Claim::new(LOOSE, &all)));
    }
    let (name, all) = call(node, text)?;
    let first = name.split(['.', '(', '[']).next().unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let given = arguments(&all);
    let whole = || tokens(node, text);
    if first == "expect" {
        // Without a matcher nothing is asserted.
        let chain = node.child_by_field_name("function")?;
        if chain.kind() != "member_expression" {
            return Some(Vec::new());
        }
        let mut inner = chain;
        while let Some(next) =
            inner.child_by_field_name("object").or_else(|| inner.child_by_field_name("function"))
        {
            if inner.kind() == "call_expression" {
                break;
            }
            inner = next;
        }
        let subject = call(inner, text).map(|(_, all)| all).unwrap_or_default();
        let denied = name.contains(".not.");
        let due = given.first().copied().unwrap_or_default();
        if matches!(due, ["expect", ".", "anything", ..]) {
            return Some(Vec::new());
        }
        let subject = arguments(&subject).first().map(|part| part.to_vec()).unwrap_or_default();
        return Some(match last {
            "toBe" | "toEqual" | "toStrictEqual" | "equal" | "eql" | "eq" | "toBeTruthy" | "ok"
                if !denied && matches!(due, [] | ["true"]) =>
            {
                let exact = matches!(due, ["true"]);
                let raise = |claim: Claim| Claim {
                    strength: if exact && claim.strength == LOOSE { EXACT } else { claim.strength },
                    ..claim
                };
                condition(&subject).into_iter().map(raise).collect()
            }
            "toBe" | "toEqual" | "toStrictEqual" | "equal" | "eql" | "eq" | "equals" => {
                equal(&subject, due, if denied { LOOSE } else { EXACT })
            }
            "toBeCloseTo" | "closeTo" | "approximately" => {
                let off = match given.get(1) {
                    Some([digits]) if last == "toBeCloseTo" => 10_f64.powf(-number(digits)),
                    Some([delta]) => number(delta),
                    _ => 0.01,
                };
                equal(&subject, due, EXACT).into_iter().map(|claim| claim.within(off)).collect()
            }
            "toBeDefined"
            | "toBeGreaterThan"
            | "toBeGreaterThanOrEqual"
            | "toBeLessThan"
            | "toBeLessThanOrEqual"
            | "toBeInstanceOf"
            | "toHaveBeenCalled"
            | "exist"
            | "above"
            | "below"
            | "toBeFalsy"
            | "toBeTruthy" => checked(Claim::new(LOOSE, &whole())),
            "toThrow" | "throw" | "toThrowError" => {
                vec![Claim::new(if due.is_empty() { LOOSE } else { EXACT }, &whole())]
            }
            _ => vec![Claim::new(if denied { LOOSE } else { EXACT }, &whole())],
        });
    }
    let of_assert = matches!(first, "assert" | "t" | "chai");
    Some(match (last, given.as_slice()) {
        ("assert" | "ok" | "isTrue" | "true", [what, ..]) if of_assert => condition(what),
        ("equal" | "strictEqual" | "deepEqual" | "deepStrictEqual" | "is", [left, right, ..])
            if of_assert =>
        {
            equal(left, right, EXACT)
        }
        ("notEqual" | "notStrictEqual" | "notDeepEqual" | "not", [left, right, ..]) if of_assert => {
            equal(left, right, LOOSE)
        }
        ("skip" | "todo" | "test" | "plan" | "end" | "diagnostic", _) if first == "t" => return None,
        _ if of_assert || asserts(first) || name.contains(".should") => opaque(last, &whole()),
        _ => return None,
    })
}

fn rust(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    if let Some((name, all)) = call(node, text) {
        let name = name.rsplit(['.', ':']).next().unwrap_or(name);
        return match name {
            "unwrap_err" | "expect_err" => Some(vec![Claim::new(LOOSE, &tokens(node, text))]),
            "expect" => None,
            _ => asserts(name).then(|| vec![Claim::new(EXACT, &all)]),
        };
    }
    if node.kind() != "macro_invocation" {
        return None;
    }
    let name = text_of(node.child_by_field_name("macro")?, text).rsplit("::").next()?;
    let name = name.trim_start_matches("debug_").trim_start_matches("prop_");
    let tree = children(node).find(|child| child.kind() == "token_tree")?;
    let all = tokens(tree, text);
    let inner = all.get(1..all.len().saturating_sub(1)).unwrap_or_default();
    let given = split(inner, &[","]);
    Some(match (name, given.as_slice()) {
        ("assert", [what, ..]) => condition(what),
        ("assert_eq", [left, right, ..]) => equal(left, right, EXACT),
        ("assert_ne", [left, right, ..]) => equal(left, right, LOOSE),
        ("panic" | "unreachable", _) => vec![Claim::new(LOOSE, &tokens(node, text))],
        _ if !asserts(name) => return None,
        _ => vec![Claim::new(EXACT, &tokens(node, text))],
    })
}

fn go(node: Node<'_>, text: &str) -> Option<Vec<Claim>> {
    const FAILS: [&str; 6] = ["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"];
    let (name, all) = call(node, text)?;
    let (of, last) = name.rsplit_once('.').unwrap_or(("", name));
    let first = of.split(['.', '(']).next().unwrap_or(of);
    let given = arguments(&all);
    if matches!(of, "t" | "b" | "f" | "tb") && FAILS.contains(&last) {
        return Some(failing(node, text));
    }
    if !matches!(first, "assert" | "require" | "is" | "qt" | "td") {
        return (asserts(last) || asserts(first)).then(|| vec![Claim::new(EXACT, &tokens(node, text))]);
    }
    let given =
        if matches!(given.first(), Some(["t"])) { given.get(1..).unwrap_or_default() } else { &given };
    Some(match (last, given) {
        (
            "Equal" | "Equals" | "EqualValues" | "Exactly" | "Same" | "JSONEq" | "ElementsMatch",
            [left, right, ..],
        ) => equal(left, right, EXACT),
        ("NotEqual", [left, right, ..]) => equal(left, right, LOOSE),
        ("InDelta" | "InEpsilon", [left, right, [delta], ..]) => {
            equal(left, right, EXACT).into_iter().map(|claim| claim.within(number(delta))).collect()
        }
        ("True", [what, ..]) => condition(what),
        (
            "NotNil" | "NotEmpty" | "Error" | "NotZero" | "Panics" | "Greater" | "GreaterOrEqual" | "Less",
            _,
        ) => checked(Claim::new(LOOSE, &tokens(node, text))),
        _ => vec![Claim::new(EXACT, &tokens(node, text))],
    })
}

/// What a call that fails a test asserts: that the condition around it does not hold.
fn failing(node: Node<'_>, text: &str) -> Vec<Claim> {
    let mut above = node.parent();
    while let Some(branch) =
        above.filter(|branch| !matches!(branch.kind(), "func_literal" | "function_declaration"))
    {
        if branch.kind() == "if_statement"
            && let Some(when) = branch.child_by_field_name("condition")
        {
            let all = tokens(when, text);
            if constant(&all) == Some(false) {
                return Vec::new();
            }
            let narrowed = split(&all, &["&&"]);
            if narrowed.iter().any(|part| constant(part) == Some(false)) {
                return Vec::new();
            }
            if narrowed.len() > 1 {
                return checked(Claim::new(super::claims::EITHER, &all));
            }
            return split(&all, &["||"])
                .into_iter()
                .flat_map(|part| match split(part, &["!="])[..] {
                    [left, right] => equal(left, right, EXACT),
                    // It fails where the difference is larger: it asserts that it is smaller.
                    _ => condition(
                        &part.iter().map(|token| if *token == ">" { "<" } else { token }).collect::<Vec<_>>(),
                    )
                    .into_iter()
                    .map(|claim| Claim {
                        strength: if claim.tolerance > 0.0 { EXACT } else { LOOSE },
                        ..claim
                    })
                    .collect(),
                })
                .collect();
        }
        above = branch.parent();
    }
    vec![Claim::new(LOOSE, &tokens(node, text))]
}
