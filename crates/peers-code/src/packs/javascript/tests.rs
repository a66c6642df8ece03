//! Tests of jest, vitest, mocha, jasmine, playwright and the runner of Node.

use tree_sitter::Node;

use crate::symbol::children;
use crate::testing::{Assertion, SkipKind, Tests, asserts, walk};

/// A function that declares a test or a group of them.
struct Declares {
    is_test: bool,
    /// What its name, or a word after it, does to what it declares.
    marks: Option<SkipKind>,
}

pub(super) fn read(out: &mut Tests<'_>, root: Node<'_>) {
    walk(root, &mut |node| {
        match node.kind() {
            "call_expression" => match declares(out, node) {
                Some(declares) => declared(out, node, &declares),
                None => called(out, node),
            },
            "function_declaration" | "variable_declarator" => helper(out, node),
            _ => {}
        }
        true
    });
}

/// `function name() {...}` and `const name = () => ...`.
fn helper(out: &mut Tests<'_>, node: Node<'_>) {
    let function = if node.kind() == "function_declaration" {
        Some(node)
    } else {
        node.child_by_field_name("value").filter(|value| is_function(*value))
    };
    let body = function.and_then(|function| function.child_by_field_name("body"));
    if let (Some(name), Some(body)) = (out.field(node, "name"), body) {
        out.helper(name, body, assertion);
    }
}

fn declared(out: &mut Tests<'_>, node: Node<'_>, declares: &Declares) {
    let Some(title) = title(out, node) else { return };
    let path = path(out, node, &title);
    let arguments = || node.child_by_field_name("arguments").into_iter().flat_map(children);
    let body = arguments().filter(|argument| is_function(*argument)).last();
    let body = body.and_then(|function| function.child_by_field_name("body"));
    if let Some(kind) = declares.marks
        && let Some(function) = node.child_by_field_name("function")
    {
        let reason = comment(out, node);
        out.skip(kind, function, path.clone(), reason, Some(node));
    }
    for pair in arguments().filter(|argument| argument.kind() == "object").flat_map(children) {
        let kind = match out.field(pair, "key") {
            Some("skip") => SkipKind::Skip,
            Some("todo") => SkipKind::MayFail,
            Some("only") => SkipKind::Only,
            _ => continue,
        };
        let Some(value) = pair.child_by_field_name("value").filter(|value| out.of(*value) != "false") else {
            continue;
        };
        let reason = literal(out, value).or_else(|| comment(out, node));
        out.skip(kind, pair, path.clone(), reason, Some(node));
    }
    if let Some(body) = body.filter(|_| declares.is_test) {
        out.test(path, node, body, assertion);
    }
}

/// Calls within a test that end it: `t.skip()`, `this.skip()`, `context.todo()`, `test.skip(condition)`.
fn called(out: &mut Tests<'_>, node: Node<'_>) {
    let Some(function) =
        node.child_by_field_name("function").filter(|name| name.kind() == "member_expression")
    else {
        return;
    };
    let kind = match (out.field(function, "object"), out.field(function, "property")) {
        (Some("t" | "this" | "ctx" | "context"), Some("skip" | "fixme")) => SkipKind::Skip,
        (Some("t" | "ctx" | "context"), Some("todo")) => SkipKind::MayFail,
        _ => return,
    };
    let Some((target, conditional)) = inside(out, node) else { return };
    let kind = if conditional && kind == SkipKind::Skip { SkipKind::Conditional } else { kind };
    let reason = title(out, node).or_else(|| comment(out, node));
    out.skip(kind, node, target, reason, None);
}

/// What a call declares, by its name: `it`, `test.each(...)`, `describe.skip`.
fn declares(out: &Tests<'_>, call: Node<'_>) -> Option<Declares> {
    let mut marks = None;
    let mut node = call.child_by_field_name("function")?;
    loop {
        match node.kind() {
            "member_expression" => {
                match out.field(node, "property")? {
                    "skip" | "fixme" => marks = Some(SkipKind::Skip),
                    "todo" | "fails" | "failing" | "fail" => marks = Some(SkipKind::MayFail),
                    "only" => marks = Some(SkipKind::Only),
                    "skipIf" | "runIf" => marks = Some(SkipKind::Conditional),
                    "each" | "for" | "concurrent" | "sequential" | "serial" | "parallel" | "describe" => {}
                    _ => return None,
                }
                node = node.child_by_field_name("object")?;
            }
            "call_expression" => node = node.child_by_field_name("function")?,
            "identifier" => break,
            _ => return None,
        }
    }
    let (is_test, own) = match out.of(node) {
        "it" | "test" | "specify" => (true, None),
        "describe" | "suite" | "context" => (false, None),
        "xit" | "xtest" | "xspecify" => (true, Some(SkipKind::Skip)),
        "xdescribe" | "xcontext" => (false, Some(SkipKind::Skip)),
        "fit" => (true, Some(SkipKind::Only)),
        "fdescribe" => (false, Some(SkipKind::Only)),
        _ => return None,
    };
    Some(Declares { is_test, marks: marks.or(own) })
}

/// The first argument, where it is a literal.
fn title(out: &Tests<'_>, call: Node<'_>) -> Option<String> {
    literal(out, children(call.child_by_field_name("arguments")?).next()?)
}

fn literal(out: &Tests<'_>, node: Node<'_>) -> Option<String> {
    let text = match node.kind() {
        "string" | "template_string" => out.of(node),
        _ => return None,
    };
    text.get(1..text.len().saturating_sub(1)).map(str::to_owned)
}

/// The titles of the groups that a call stands in, and its own.
fn path(out: &Tests<'_>, call: Node<'_>, title: &str) -> String {
    let mut titles = vec![title.to_owned()];
    let mut above = call.parent();
    while let Some(node) = above {
        if node.kind() == "call_expression" && declares(out, node).is_some() {
            titles.extend(self::title(out, node));
        }
        above = node.parent();
    }
    titles.reverse();
    titles.join(" > ")
}

/// The test that a call stands in, and whether a branch stands between.
fn inside(out: &Tests<'_>, call: Node<'_>) -> Option<(String, bool)> {
    let mut conditional = false;
    let mut above = call.parent();
    while let Some(node) = above {
        match node.kind() {
            "if_statement" | "ternary_expression" | "catch_clause" => conditional = true,
            "call_expression" if declares(out, node).is_some() => {
                return Some((path(out, node, &title(out, node)?), conditional));
            }
            _ => {}
        }
        above = node.parent();
    }
    None
}

/// What a comment says at the end of the line before a statement, or on the same one.
fn comment(out: &Tests<'_>, node: Node<'_>) -> Option<String> {
    let mut statement = node;
    while let Some(parent) = statement.parent().filter(|parent| parent.kind() != "statement_block") {
        if parent.kind() == "program" {
            break;
        }
        statement = parent;
    }
    let row = statement.start_position().row;
    let before = statement.prev_sibling().filter(|before| before.end_position().row + 1 >= row);
    let after = statement.next_sibling().filter(|after| after.start_position().row == row);
    let found = [before, after].into_iter().flatten().find(|node| node.kind() == "comment")?;
    let text = out.of(found).trim_start_matches(['/', '*', ' ']).trim_end_matches(['/', '*', ' ']);
    Some(text.to_owned())
}

fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression")
}

fn assertion(out: &Tests<'_>, node: Node<'_>) -> Option<Assertion> {
    const OF_ERROR: [&str; 10] = [
        "toThrow",
        "toThrowError",
        "toThrowErrorMatchingSnapshot",
        "rejects",
        "throws",
        "throwsAsync",
        "rejectedWith",
        "throw",
        "doesNotMatchError",
        "rejected",
    ];
    match node.kind() {
        "call_expression" => {
            let name = out.field(node, "function")?;
            let first = name.split(['.', '(', '[']).next().unwrap_or(name);
            let words = || name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            // `t.equal(...)` of node-tap, ava and others.
            let of_context = matches!(first, "t" | "chai" | "cy")
                && !words()
                    .any(|word| matches!(word, "skip" | "todo" | "test" | "plan" | "end" | "diagnostic"));
            let chained = words().any(|word| word == "should");
            if !(asserts(first) || of_context || chained) {
                return None;
            }
            Some(if words().any(|word| OF_ERROR.contains(&word)) {
                Assertion::OfError
            } else {
                Assertion::Plain
            })
        }
        // `expect(x).to.be.true` of chai.
        "member_expression" if out.of(node).starts_with("expect(") => Some(Assertion::Plain),
        _ => None,
    }
}
