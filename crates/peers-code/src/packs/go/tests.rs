//! Tests of `go test`.

use tree_sitter::Node;

use crate::symbol::children;
use crate::testing::{Assertion, SkipKind, Tests, asserts, one_line, walk};

pub(super) fn read(out: &mut Tests<'_>, root: Node<'_>) {
    for node in children(root) {
        match node.kind() {
            "comment" if out.of(node).starts_with("//go:build") => {
                out.skip(SkipKind::Conditional, node, "", None, None);
            }
            "function_declaration" => function(out, node),
            _ => {}
        }
    }
}

fn function(out: &mut Tests<'_>, node: Node<'_>) {
    let (Some(name), Some(body)) = (out.field(node, "name"), node.child_by_field_name("body")) else {
        return;
    };
    let Some(rest) = name.strip_prefix("Test").or_else(|| name.strip_prefix("Fuzz")) else {
        out.helper(name, body, assertion);
        return;
    };
    if rest.starts_with(char::is_lowercase)
        || !out.field(node, "parameters").is_some_and(|list| list.contains("testing."))
    {
        return;
    }
    out.test(name.to_owned(), node, body, assertion);
    walk(body, &mut |inner| {
        if inner.kind() == "call_expression" {
            called(out, inner, name);
        }
        true
    });
}

/// `t.Run("name", func ...)`, and calls that end the test.
fn called(out: &mut Tests<'_>, node: Node<'_>, test: &str) {
    let Some(function) =
        node.child_by_field_name("function").filter(|name| name.kind() == "selector_expression")
    else {
        return;
    };
    let arguments: Vec<Node<'_>> =
        node.child_by_field_name("arguments").into_iter().flat_map(children).collect();
    match out.field(function, "field") {
        Some("Run") => {
            let title = arguments.first().and_then(|title| literal(out, *title));
            let body = arguments.last().filter(|body| body.kind() == "func_literal");
            if let (Some(title), Some(body)) = (title, body.and_then(|body| body.child_by_field_name("body")))
            {
                let title = title.replace(' ', "_");
                out.test(format!("{}/{title}", groups(out, node, test)), node, body, assertion);
            }
        }
        Some("Skip" | "Skipf" | "SkipNow") => {
            let conditional = is_conditional(node);
            let kind = if conditional { SkipKind::Conditional } else { SkipKind::Skip };
            let reason = arguments.first().and_then(|reason| literal(out, *reason));
            out.skip(kind, node, groups(out, node, test), reason, None);
        }
        _ => {}
    }
}

/// The test and the literal names of the groups that a call stands in.
fn groups(out: &Tests<'_>, node: Node<'_>, test: &str) -> String {
    let mut names = Vec::new();
    let mut above = node.parent();
    while let Some(node) = above {
        let runs = node.kind() == "call_expression"
            && out.field(node, "function").is_some_and(|function| function.ends_with(".Run"));
        let first =
            node.child_by_field_name("arguments").filter(|_| runs).and_then(|list| list.named_child(0));
        names.extend(first.and_then(|title| literal(out, title)).map(|title| title.replace(' ', "_")));
        above = node.parent();
    }
    names.push(test.to_owned());
    names.reverse();
    names.join("/")
}

fn is_conditional(node: Node<'_>) -> bool {
    let mut above = node.parent();
    while let Some(node) = above {
        match node.kind() {
            "if_statement" | "expression_case" | "type_case" => return true,
            "func_literal" | "function_declaration" => return false,
            _ => above = node.parent(),
        }
    }
    false
}

fn literal(out: &Tests<'_>, node: Node<'_>) -> Option<String> {
    let is_text = matches!(node.kind(), "interpreted_string_literal" | "raw_string_literal");
    is_text.then(|| one_line(out.of(node).trim_matches(['"', '`'])))
}

fn assertion(out: &Tests<'_>, node: Node<'_>) -> Option<Assertion> {
    const FAILS: [&str; 6] = ["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"];
    const OF_ERROR: [&str; 12] = [
        "Error",
        "Errorf",
        "ErrorIs",
        "ErrorAs",
        "ErrorContains",
        "EqualError",
        "Panics",
        "PanicsWithError",
        "PanicsWithValue",
        "NotNil",
        "HasOccurred",
        "MatchError",
    ];
    match node.kind() {
        "call_expression" => {
            let function = node.child_by_field_name("function")?;
            let name = out.of(function);
            let (of, last) = name.rsplit_once('.').unwrap_or(("", name));
            if matches!(of, "t" | "b" | "f" | "tb") && FAILS.contains(&last) {
                return Some(Assertion::Plain);
            }
            let first = of.split(['.', '(']).next().unwrap_or(of);
            if matches!((first, last), ("errors", "Is" | "As")) {
                return Some(Assertion::OfError);
            }
            let of_library = matches!(first, "assert" | "require" | "is" | "qt" | "td");
            if !of_library && !asserts(last) && !asserts(first) {
                return None;
            }
            Some(if of_library && OF_ERROR.contains(&last) { Assertion::OfError } else { Assertion::Plain })
        }
        // `if err == nil { t.Fatal(...) }`, and tables with a field such as `wantErr`.
        "binary_expression" => {
            let text = one_line(out.of(node));
            let left = text.split(' ').next().unwrap_or_default();
            (text.ends_with("== nil") && left.to_ascii_lowercase().ends_with("err"))
                .then_some(Assertion::Hint)
        }
        "identifier" | "field_identifier" => {
            let name = out.of(node).to_ascii_lowercase();
            (name.contains("err") && (name.contains("want") || name.contains("expect")))
                .then_some(Assertion::Hint)
        }
        _ => None,
    }
}
