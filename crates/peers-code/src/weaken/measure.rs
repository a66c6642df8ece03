//! What each test of a set of files asserts, as far as it is come to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tree_sitter::Node;

use super::File;
use super::claims::{Claim, EXACT, constant, is_name, split, tokens};
use super::places::{self, Modules};
use super::said;
use super::settings::among;
use crate::aside::attributes;
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
    helpers: BTreeMap<&'a str, Helper<'a, 't>>,
}

/// A function, by its file and its body.
type Helper<'a, 't> = (&'a Source<'t>, Node<'a>);

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
                let within =
                    |bytes: &Range<usize>| bytes.start <= test.body.start && test.body.end <= bytes.end;
                let inner = tests.iter().any(|outer| outer.body != test.body && within(&outer.body));
                let later = tests.iter().skip(at + 1).any(|later| later.path == test.path);
                let shadowed = later && source.language() == Language::Python;
                let Some(body) = body_of(source, test).filter(|_| !inner && !shadowed) else { continue };
                if gone.contains(&test.path.as_str()) || !is_found(source, body) {
                    continue;
                }
                let of_this = skips.iter().filter(|skip| {
                    let inside = (test.line..=test.end).contains(&skip.line);
                    // What alone is run keeps all others of its file from it.
                    let only = skip.kind == SkipKind::Only;
                    only || inside || skip.target.is_empty() || within(&skip.guarded)
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
                    words: names(body, text),
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

/// The names in a node.
fn names(node: Node<'_>, text: &str) -> BTreeSet<String> {
    tokens(node, text).into_iter().filter(|token| is_name(token)).map(str::to_owned).collect()
}

/// What gives a name to a value: both.
fn binding(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    const KINDS: &str = "assignment variable_declarator let_declaration const_item static_item
        short_var_declaration var_spec assignment_expression";
    let of = |fields: [&str; 3]| fields.iter().find_map(|field| node.child_by_field_name(field));
    let both = of(["left", "name", "pattern"]).zip(of(["right", "value", "value"]));
    both.filter(|_| among(KINDS, node.kind()))
}

/// What the variables of a test were made of.
fn locals<'t>(body: Node<'_>, text: &'t str) -> Locals<'t> {
    let mut out: Locals<'t> = BTreeMap::new();
    walk(body, &mut |node| {
        if let Some((left, right)) = binding(node) {
            let words = meant(&names(right, text), &out);
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

fn body_of<'a>(source: &'a Source<'_>, test: &Test) -> Option<Node<'a>> {
    let node = source.root().descendant_for_byte_range(test.body.start, test.body.end)?;
    let above = std::iter::successors(Some(node), Node::parent);
    above.take_while(|above| above.byte_range() == node.byte_range()).last()
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
    let around = std::iter::successors(body.parent(), Node::parent);
    let attributes = around.filter(|_| source.language() == Language::Rust).flat_map(|node| {
        let own = (node.kind() == "mod_item").then(|| attributes(node, text));
        let inner = children(node).filter(|child| child.kind() == "inner_attribute_item");
        own.into_iter().flatten().chain(inner.map(|inner| text_of(inner, text)))
    });
    attributes.filter(|attribute| is_condition(attribute)).count()
}

/// Whether an attribute of Rust asks for more than a run of the tests on a usual system.
pub(super) fn is_condition(attribute: &str) -> bool {
    let words = attribute.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut words = words.filter(|word| !word.is_empty());
    words.next() == Some("cfg") && words.any(|word| !among("all test unix target_os linux macos", word))
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
    const AROUND: &str = "reference_expression parenthesized_expression as_expression range_clause
        composite_literal expression_list";
    if depth > 8 {
        return None;
    }
    let text = source.text();
    let again = |node: Node<'_>| elements(source, node, depth + 1);
    match node.kind() {
        "list" | "tuple" | "set" | "dictionary" | "array" | "object" | "array_expression"
        | "literal_value" => {
            Some(count(children(node).filter(|child| !child.kind().ends_with("comment")).count()))
        }
        "macro_invocation" => {
            let all = tokens(node, text);
            let inner = all.get(3..all.len().checked_sub(1)?)?;
            Some(count(split(inner, &[","]).len()))
        }
        kind if among(AROUND, kind) => {
            let of = ["right", "value", "body"].iter().find_map(|field| node.child_by_field_name(field));
            again(of.or_else(|| node.named_child(0))?)
        }
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

/// What a name was given last in what is nearest around.
fn resolve<'n>(name: Node<'n>, text: &str) -> Option<Node<'n>> {
    let wanted = text_of(name, text);
    std::iter::successors(name.parent(), Node::parent).find_map(|around| {
        let within = children(around).flat_map(|child| std::iter::once(child).chain(children(child)));
        let given = within.filter_map(binding).filter(|(left, _)| text_of(*left, text) == wanted);
        given.last().map(|(_, right)| right)
    })
}

/// The name and the body of a function that can be called.
fn function<'n, 't>(node: Node<'n>, text: &'t str) -> Option<(&'t str, Node<'n>)> {
    const KINDS: &str =
        "function_definition function_declaration method_declaration function_item method_definition";
    let given = node.child_by_field_name("value").filter(|_| node.kind() == "variable_declarator");
    let given = given.filter(|value| among("arrow_function function_expression", value.kind()));
    let body = if among(KINDS, node.kind()) { node } else { given? };
    Some((text_of(node.child_by_field_name("name")?, text), body.child_by_field_name("body")?))
}

struct Walk<'v, 'a, 't> {
    version: &'v Version<'a, 't>,
    unknown: u64,
    claims: Vec<(Claim, u64)>,
    /// The helpers that are being followed.
    calls: Vec<&'a str>,
}

impl<'a, 't> Walk<'_, 'a, 't> {
    fn node(&mut self, source: &Source<'_>, node: Node<'_>, times: u64, depth: usize) {
        if depth > DEEPEST || times == 0 || count(self.claims.len()) > MOST {
            return;
        }
        let text = source.text();
        let part = |field: &str| node.child_by_field_name(field);
        match node.kind() {
            "block" | "statement_block" | "statement_list" => {
                let mut sometimes = false;
                for child in children(node) {
                    if child.kind() == "attribute_item" {
                        sometimes |= is_condition(text_of(child, text));
                    } else if !std::mem::take(&mut sometimes) {
                        self.node(source, child, times, depth + 1);
                        if ends(child) {
                            return;
                        }
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
            "with_statement" if suppresses(node, text) => return,
            _ if is_idle(node, text) => return,
            _ => {}
        }
        let found = said::claims(source.language(), node, text);
        if let Some((name, (source, body))) = self.helper(node, text) {
            if self.calls.len() < DEEPEST_CALL && !self.calls.contains(&name) {
                self.calls.push(name);
                self.node(source, body, times, depth + 1);
                self.calls.pop();
            }
        } else if let Some(found) = found {
            self.claims.extend(found.into_iter().map(|claim| (claim, times)));
            // With a block: `with pytest.raises(...)` stands beside it, not around it.
            return;
        }
        // `[1, 2].forEach((x) => ...)`
        let each = part("function").filter(|called| text_of(*called, text).ends_with(".forEach"));
        let over = each.and_then(|called| called.child_by_field_name("object"));
        let cases = over.map_or(1, |over| elements(source, over, 0).unwrap_or(self.unknown));
        let inner = times.saturating_mul(cases).min(MOST);
        for child in children(node) {
            self.node(source, child, inner, depth + 1);
        }
    }

    /// The helper that a node calls, with its name.
    fn helper(&self, node: Node<'_>, text: &str) -> Option<(&'a str, Helper<'a, 't>)> {
        if !matches!(node.kind(), "call" | "call_expression") {
            return None;
        }
        let name = text_of(node.child_by_field_name("function")?, text);
        let (of, last) = name.rsplit_once(['.', ':']).unwrap_or(("", name));
        // Its own, or of a module: not of a value.
        let plain = of != "t" && of.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
        let (name, helper) = self.version.helpers.get_key_value(last).filter(|_| plain)?;
        Some((name, *helper))
    }
}

/// Whether nothing after this statement is come to.
fn ends(node: Node<'_>) -> bool {
    const KINDS: &str = "return_statement raise_statement throw_statement return_expression break_statement
        continue_statement";
    let inner = node.named_child(0).filter(|_| node.kind() == "expression_statement");
    among(KINDS, inner.unwrap_or(node).kind())
}

/// Whether a failed assertion in a `try` is caught, and nothing comes of it.
fn swallows(node: Node<'_>, text: &str) -> bool {
    children(node).any(|clause| {
        let all = tokens(clause, text);
        // What is caught is named before the colon.
        let colon = all.iter().position(|token| *token == ":").unwrap_or_default();
        let (caught, body) = match clause.kind() {
            "catch_clause" => all.split_at(0),
            "except_clause" => all.split_at(colon),
            _ => return false,
        };
        // What is thrown on, asserted or failed there is no silence.
        let speaks = |token: &&str| among("raise throw fail done", token) || asserts(token);
        (caught.len() < 2 || caught.iter().any(|token| is_broad(token))) && !body.iter().any(speaks)
    })
}

/// `with suppress(AssertionError):`, from `contextlib`.
fn suppresses(with: Node<'_>, text: &str) -> bool {
    let clause = children(with).find(|child| child.kind() == "with_clause");
    let said = clause.map(|clause| tokens(clause, text)).unwrap_or_default();
    said.contains(&"suppress") && said.iter().any(|token| is_broad(token))
}

/// Whether an exception of Python is that of a failed assertion, or covers it.
fn is_broad(name: &str) -> bool {
    among("AssertionError Exception BaseException", name)
}

/// Whether nothing comes of what is asserted in a closure: it is given a name that nobody says again, or a panic in it
/// is caught.
fn is_idle(node: Node<'_>, text: &str) -> bool {
    const CLOSURES: &str = "closure_expression arrow_function function_expression func_literal";
    if node.kind() == "call_expression" {
        let called = node.child_by_field_name("function").map(|called| text_of(called, text));
        return called.is_some_and(|called| called.ends_with("catch_unwind"));
    }
    let Some((name, value)) = binding(node) else { return false };
    let value = if value.kind() == "expression_list" { value.named_child(0).unwrap_or(value) } else { value };
    let around = std::iter::successors(node.parent(), Node::parent)
        .find(|around| among("block statement_block statement_list", around.kind()));
    let name = text_of(name, text);
    let said = |around| tokens(around, text).into_iter().filter(|token| *token == name).count();
    among(CLOSURES, value.kind()) && around.is_some_and(|around| said(around) < 2)
}
